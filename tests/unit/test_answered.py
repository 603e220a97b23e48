"""What the package answers where inputs never change: as it was; `answered.py`."""

from __future__ import annotations

import answered
import pytest


@pytest.mark.parametrize("group", answered.GROUPS)
def test_what_is_answered_changes_on_purpose_only(group: str) -> None:
    assert answered.lines_of(group) == [
        line for line in answered.kept() if line.partition("  ")[2].startswith(f"{group}: ")
    ]


def test_every_answer_is_kept() -> None:
    groups = [line.partition("  ")[2].partition(": ")[0] for line in answered.kept()]
    assert list(dict.fromkeys(groups)) == list(answered.GROUPS)

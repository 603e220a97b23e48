"""What explorations try, in which order, and when they give up: as it was, by a clock of their own; `explored.py`."""

from __future__ import annotations

import explored
import pytest


@pytest.mark.parametrize("name", explored.EXPLORATIONS)
def test_what_is_tried_changes_on_purpose_only(name: str) -> None:
    assert explored.lines_of(name) == explored.kept()[name]


def test_every_exploration_is_kept() -> None:
    assert list(explored.kept()) == list(explored.EXPLORATIONS)

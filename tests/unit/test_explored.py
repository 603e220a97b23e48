"""What explorations try, in which order, and when they give up: as it was, by a clock of their own; `explored.py`."""

from __future__ import annotations

import explored
import pytest
from effort import brief


@pytest.mark.parametrize("name", explored.EXPLORATIONS)
def test_what_is_tried_changes_on_purpose_only(name: str) -> None:
    assert explored.lines_of(name) == explored.kept()[name]


def test_every_exploration_is_kept() -> None:
    assert list(explored.kept()) == list(explored.EXPLORATIONS)


@pytest.mark.parametrize("seed", brief((1, 10), range(60)))
def test_progress_and_time_stay_within_what_there_is(seed: int) -> None:
    assert explored.wrongly_told(seed) == []

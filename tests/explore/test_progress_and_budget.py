"""Explorations by a clock of their own (`explored.py`): what they report of their progress, and the time they take."""

from __future__ import annotations

import explored
import pytest
from effort import brief


@pytest.mark.parametrize("seed", brief((1, 10), range(60)))
def test_progress_and_time_stay_within_what_there_is(seed: int) -> None:
    assert explored.wrongly_told(seed) == []

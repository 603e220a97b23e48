"""Progress and time of explorations that run by a clock of their own (`simulated_explorations.py`)."""

from __future__ import annotations

import pytest
import simulated_explorations
from run_length import brief


@pytest.mark.parametrize("seed", brief((1, 10), range(60)))
def test_progress_and_time_stay_within_what_there_is(seed: int) -> None:
    assert simulated_explorations.wrong_progress(seed) == []

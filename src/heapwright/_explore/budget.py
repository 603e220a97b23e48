"""Time budget of an exploration: ranking, then copies and held-out traces, then stress tests, then reading the study.

The steps after ranking are estimated, and their time is kept for them, up to a share; steps cut short are reported.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

COPIES, STRESS_TEST, READING = 0.25, 0.25, 0.05
"""Largest shares of the time kept for copies and held-out traces, for stress tests, and for reading the study."""

MADE_A_CALL = 0.8e-6
"""Seconds to make a call of a copy, before any was measured."""

FEWEST = 20
"""Fewest recipes worth a copy: if there is no time for these on one copy, no time is kept."""

VALIDATED = 60
"""Recipes replayed on copies and the hold-out set, about."""

STRESS_TEST_SECONDS = 12.0
"""Processor seconds that futures and the stress test take, about."""


@dataclass
class TimeBudget:
    """When each step has to end, as times of `time.perf_counter`; never, if ``until`` is inf.

    ``calls`` are those of all copies and held-out traces; ``replays`` the number of replays on copies and held-out
    traces for each on the traces explored; ``jobs`` the number of recipes evaluated at a time.
    """

    until: float = inf
    calls: int = 0
    replays: float = 0.0
    stress_tested: bool = False
    jobs: int = 1
    each: float = 0.0
    """Seconds that a recipe takes on all traces explored; 0 before any was measured."""
    validation_until: float = inf
    """When copies and held-out traces end."""
    short: list[str] = field(default_factory=list)
    """Steps for which there was no time, in words."""

    def __post_init__(self) -> None:
        """Share out the time left now."""
        self._whole = max(self.until - time.perf_counter(), 0.0) if self.until < inf else 0.0

    def end_exploring(self) -> None:
        """Share out the time left once exploring has ended, perhaps late."""
        now, kept = time.perf_counter(), self.validation + self.stress_testing
        if self.until < inf:
            share = self.validation / kept if kept else 0.0
            self.validation_until = now + share * max(self.stress_tests_until - now, 0.0)

    @property
    def validation(self) -> float:
        """Seconds for copies and held-out traces, by the time of a recipe; the whole share if that is unknown."""
        most = COPIES * self._whole if self.replays else 0.0
        if not self.each or self.until == inf:
            return most
        made, replayed = self.calls * MADE_A_CALL, self.replays * self.each / self.jobs
        if made + FEWEST * replayed > most * self.replays:
            return 0.0
        return min(made + VALIDATED * replayed, most)

    @property
    def stress_testing(self) -> float:
        """Seconds for futures and stress tests."""
        return min(STRESS_TEST_SECONDS / self.jobs, STRESS_TEST * self._whole) if self.stress_tested else 0.0

    @property
    def exploring_until(self) -> float:
        """When exploring ends."""
        return self.stress_tests_until - self.stress_testing - self.validation

    @property
    def stress_tests_until(self) -> float:
        """When stress tests end."""
        return self.until - READING * self._whole

    def note(self, what: str, done: int, wanted: int) -> None:
        """Record a step if it was cut short."""
        if done < wanted:
            self.short.append(f"{what}: {done:,} of {wanted:,} in the time")


def in_bisecting_order(count: int) -> Sequence[int]:
    """The numbers below ``count``: both ends, then the middle, then the middles of what is between, and so on."""
    order = list(dict.fromkeys([0, count - 1]))[:count]
    step = count - 1
    while len(order) < count:
        step = max(step // 2, 1)
        order = list(dict.fromkeys([*order, *range(0, count, step)]))
    return order

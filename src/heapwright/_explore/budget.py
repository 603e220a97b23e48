"""The time of a budget, shared out: exploring, then copies and traces held out, then endurance, then what is told.

What comes after exploring is estimated, and so much of the time is kept for it, up to a share; what was cut is told.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

COPIES, ENDURANCE, TELLING = 0.25, 0.25, 0.05
"""Shares of the time that are kept at most for copies and held-out traces, for endurance, and for reading the study."""

MADE_A_CALL = 0.8e-6
"""Seconds to make a call of a copy, before any copy tells."""

FEWEST = 20
"""So few recipes are tried on a copy at least: where there is no time for these on one copy, none is kept."""

MOST_APART = 60
"""Recipes that are tried on copies and the hold-out set, about."""

ENDURED = 12.0
"""Seconds of a processor that futures and the stress test take, about."""


@dataclass
class TimeBudget:
    """When each step has to end, as times of `time.perf_counter`; never, where ``until`` is inf.

    ``calls`` are those of all copies and held-out traces, ``replays`` how often a recipe is replayed on their like
    for each time that it is on the traces explored on, ``jobs`` how many recipes are tried at a time.
    """

    until: float = inf
    calls: int = 0
    replays: float = 0.0
    endured: bool = False
    jobs: int = 1
    each: float = 0.0
    """Seconds that a recipe takes on all traces explored on, as far as that is known."""
    apart_until: float = inf
    """When copies and traces held out end."""
    short: list[str] = field(default_factory=list)
    """What there was no time for, in words."""

    def __post_init__(self) -> None:
        """Share out what is left now."""
        self._whole = max(self.until - time.perf_counter(), 0.0) if self.until < inf else 0.0

    def end_exploring(self) -> None:
        """Share out what is left once exploring has ended, perhaps later than it was to."""
        now, kept = time.perf_counter(), self.apart + self.lasting
        if self.until < inf:
            share = self.apart / kept if kept else 0.0
            self.apart_until = now + share * max(self.lasting_until - now, 0.0)

    @property
    def apart(self) -> float:
        """Seconds for copies and traces held out, by what a recipe takes; as much as may be where nobody knows."""
        most = COPIES * self._whole if self.replays else 0.0
        if not self.each or self.until == inf:
            return most
        made, replayed = self.calls * MADE_A_CALL, self.replays * self.each / self.jobs
        if made + FEWEST * replayed > most * self.replays:
            return 0.0
        return min(made + MOST_APART * replayed, most)

    @property
    def lasting(self) -> float:
        """Seconds for endurance."""
        return min(ENDURED / self.jobs, ENDURANCE * self._whole) if self.endured else 0.0

    @property
    def exploring_until(self) -> float:
        """When exploring ends."""
        return self.lasting_until - self.lasting - self.apart

    @property
    def lasting_until(self) -> float:
        """When endurance ends."""
        return self.until - TELLING * self._whole

    def tell(self, what: str, done: int, asked: int) -> None:
        """Take note of a step that was cut short, if it was."""
        if done < asked:
            self.short.append(f"{what}: {done:,} of {asked:,} in the time")


def in_bisecting_order(count: int) -> Sequence[int]:
    """The numbers below ``count``: both ends, then the middle, then the middles of what is between, and so on."""
    order = list(dict.fromkeys([0, count - 1]))[:count]
    step = count - 1
    while len(order) < count:
        step = max(step // 2, 1)
        order = list(dict.fromkeys([*order, *range(0, count, step)]))
    return order

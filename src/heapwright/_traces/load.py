"""Load: the permanent and the load-dependent part of a trace's live bytes."""

from __future__ import annotations

from typing import NamedTuple

from heapwright._support.errors import ParameterError
from heapwright._traces.trace import Trace

EDGE = 0.1
"""Shares of the calls at the beginning and at the end that are taken as start and shutdown."""


class LoadOf(NamedTuple):
    """Live requested bytes of a trace at its peak, in two parts.

    Attributes:
        fixed_bytes: the least that was live between start and shutdown (`EDGE`): tables, buffers, configuration. A
            client that stays all along counts among them.
        varying_bytes: the rest of the peak: what clients, connections or packets hold.
    """

    fixed_bytes: int
    varying_bytes: int

    @property
    def peak_bytes(self) -> int:
        """Both."""
        return self.fixed_bytes + self.varying_bytes

    def factor(self, growth: float) -> float:
        """How much larger the peak is where what varies is `growth` times as much, above 0."""
        return (self.fixed_bytes + growth * self.varying_bytes) / self.peak_bytes if self.peak_bytes else 1.0

    def growth_for(self, live_bytes: float) -> float:
        """How many times as much of what varies gives a live peak of that many bytes.

        Raises ParameterError if that is no more than what is permanent, or nothing varies.
        """
        if live_bytes <= self.fixed_bytes:
            raise ParameterError(
                f"{live_bytes:,.0f}: of the recording {self.fixed_bytes:,} bytes are permanent; give more",
                parameter="live",
            )
        if not self.varying_bytes:
            raise ParameterError(
                "all live bytes of the recording are permanent; none vary with the load", parameter="live"
            )
        return (live_bytes - self.fixed_bytes) / self.varying_bytes


def load_of(trace: Trace) -> LoadOf:
    """The two parts of a trace's live bytes. O(calls)."""
    edge = int(EDGE * len(trace))
    between = trace.live_bytes[edge : len(trace) - edge]
    fixed = int(between.min()) if len(between) else 0
    return LoadOf(fixed, trace.peak_live_bytes - fixed)

"""Whether anything bounds what a queue holds; if not, whether the link keeps up with the packets, and a ring for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from heapwright._traces.live_bound import FALLING_BEHIND, LiveBound
from heapwright._traces.validation import FREE
from heapwright._traffic.workloads.loads import STEP

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

STEEP = 2.0
"""The same for the ratio of the peak at a tenth more load."""

HEADROOM = 2
"""The proposed ring has room for this many times what a link that keeps up holds at most."""

KEEPING_UP = 0.7
"""Load at which a link keeps up."""

LEAST_RING = 16


@dataclass(frozen=True)
class QueueBound:
    """What bounds a queue.

    Attributes:
        bound: most objects at once, if a ring or a limit says so.
        waiting: the largest share of all bytes that waited at once.
        steeper: ratio of the live peak at a tenth more load to that at this load.
        ring: a ring to use, in packets; None with a bound.
        dropped: share of the packets that this ring, or the queue's own, drops.
    """

    bound: LiveBound | None
    waiting: float
    steeper: float
    ring: int | None
    dropped: float

    @property
    def keeps_up(self) -> bool:
        """Whether the link keeps up with the packets."""
        return self.bound is not None or (self.waiting < FALLING_BEHIND and self.steeper < STEEP)

    def sentence(self, peak_bytes: int) -> str:
        """The finding in words; ``peak_bytes`` is the live peak of the trace."""
        if self.bound is not None:
            lost = f"; {100 * self.dropped:.2g} % of the packets were dropped" if self.dropped else ""
            return f"The queue holds at most {self.bound}, {self.bound.payload_bytes:,} bytes{lost}."
        ring = f"A ring of {self.ring} would bound it and drop {100 * self.dropped:.2g} % of the packets"
        if self.keeps_up:
            return f"Nothing bounds the queue: a reserve holds for this load only. {ring}."
        return (
            f"The link is too slow or the queue too long: {100 * self.waiting:.2g} % of all bytes, {peak_bytes:,}, "
            f"wait at once, {self.steeper:.2g} times as many at {100 * STEP:.0f} % more load; nothing bounds them. "
            f"{ring}."
        )


def queue_bound(trace: Trace, make: Callable[..., Trace], load: float | None) -> QueueBound:
    """What bounds the queue of a workload's trace. ``make`` makes the trace for a `load` or `rate`, and a `ring`.

    ``load``: share of time that the link is busy; None for a queue that is filled and emptied, or a given rate.
    """
    bound = LiveBound.of(trace)
    packets = int(np.count_nonzero(trace.op != FREE))
    dropped = int(trace.metadata.get("dropped", 0))
    if bound is not None:
        return QueueBound(bound, 0.0, 1.0, None, dropped / max(dropped + packets, 1))
    total = int(trace.size[trace.op != FREE].sum(dtype=np.int64))
    rate = float(trace.metadata["bits_a_second"])
    faster = {"rate": rate / (1 + STEP)} if load is None else {"load": load * (1 + STEP)}
    steeper = make(**faster).peak_live_bytes / max(trace.peak_live_bytes, 1)
    enough = make(load=KEEPING_UP) if load is None or load > KEEPING_UP else trace
    ring = 1 << (max(LEAST_RING, HEADROOM * _most_packets(enough)) - 1).bit_length()
    here = {"rate": rate} if load is None else {"load": load}
    lost = int(make(**here, ring=ring).metadata["dropped"])
    count = max(int(trace.metadata.get("used", 0)), packets)
    return QueueBound(None, trace.peak_live_bytes / max(total, 1), steeper, ring, lost / max(count, 1))


def _most_packets(trace: Trace) -> int:
    return trace.peak_live_objects

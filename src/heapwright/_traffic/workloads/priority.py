"""Strict priority: short packets, such as voice, control and acknowledgements, are sent before all others."""

from __future__ import annotations

import functools
from collections import deque
from typing import TYPE_CHECKING

from heapwright._traffic.workloads import link
from heapwright._traffic.workloads.scheduled import Packet, run_queue

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace
    from heapwright._traffic.packets import PacketTable

URGENT = 200
"""Frames of up to this many bytes are urgent: voice (G.711 at 20 ms has 214 with all headers, G.729 some 74),
acknowledgements, and most control packets."""


class Queue:
    """Two queues, each first in, first out; the urgent one is served first."""

    def __init__(self, urgent: int = URGENT) -> None:
        """``urgent``: bytes of the largest urgent frame."""
        self._urgent, self._queues = urgent, (deque[Packet](), deque[Packet]())

    def put(self, packet: Packet) -> None:
        """Append the packet to its queue."""
        self._queues[packet.bytes > self._urgent].append(packet)

    def take(self) -> Packet | None:
        """Return the oldest urgent packet, else the oldest of the others."""
        queue = self._queues[0] or self._queues[1]
        return queue.popleft() if queue else None


def priority(
    packets: PacketTable,
    *,
    size: link.Size = "frame",
    count: int | None = None,
    load: float = link.LOAD,
    rate: float | None = None,
    ring: int | None = None,
    urgent: int = URGENT,
    extra: int = 0,
) -> Trace:
    """The heap calls of a strict-priority queue: one block a packet, from arrival to the end of its sending.

    Args:
        packets: the traffic.
        size: whether a block is a frame or an IP packet.
        count: use the first packets only; None for all.
        load: share of the time the link is busy over all packets; shapes the queues. Not used with `rate`.
        rate: bits a second of the link.
        ring: most packets queued; a packet that finds it full is dropped. None is no bound.
        urgent: bytes of the largest frame that is sent before others.
        extra: bytes stored with each packet.

    Raises:
        HeapwrightError: no packets, or a size, a ring, a link rate or extra bytes that cannot be used.
    """
    return run_queue(
        "priority",
        functools.partial(Queue, urgent),
        packets,
        size=size,
        count=count,
        load=load,
        rate=rate,
        ring=ring,
        extra=extra,
        urgent=urgent,
    )

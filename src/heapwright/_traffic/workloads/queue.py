"""A transmit queue (Mamagkakis et al. 2007, "Middleware design optimization of wireless protocols based on the
exploitation of dynamic input patterns", sections 4 and 5): 1,000 packets in Linux 2.6, 100 in Linux 2.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heapwright._support.errors import ParameterError
from heapwright._traces.live_bound import KEY as LIVE_BOUND
from heapwright._traces.live_bound import LiveBound, ObjectClass
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC
from heapwright._traffic.workloads import link

if TYPE_CHECKING:
    from heapwright._traffic.packets import PacketTable

LIMIT = 1000
"""Packets the queue holds: the default of Linux 2.6 (2007, section 4)."""


def queue(
    packets: PacketTable,
    *,
    size: link.Size = "ip",
    count: int | None = None,
    limit: int = LIMIT,
    burst: int | None = None,
    cycles: int | None = 1,
    load: float | None = None,
    rate: float | None = None,
) -> Trace:
    """The heap calls of a transmit queue; a packet that finds it full is dropped (tail drop), without a call.

    Without `load` and `rate` the queue is filled by a burst and then emptied, first in, first out, as in the paper
    ("1000 memory allocations and 1000 memory de-allocations"). With one of them it is filled as packets arrive and
    emptied as the link sends.

    Args:
        packets: the traffic.
        size: whether a block is an IP packet (the paper: 40 and 1500 bytes) or a frame.
        count: use the first packets only; None for all.
        limit: packets the queue holds.
        burst: packets that arrive before the queue is emptied; what is beyond `limit` is dropped. None is `limit`.
        cycles: how many times the queue is filled and emptied, each time with the next packets; the paper: once. None
            for as often as there are packets.
        load: share of the time the link is busy over all packets.
        rate: bits a second of the link.

    The trace's metadata says how many packets were `used` and `dropped`.

    Raises:
        HeapwrightError: no packets, a limit or burst below 1, or a link rate that cannot be used.
    """
    for name, value in (("limit", limit), ("burst", burst), ("cycles", cycles)):
        if value is not None and value < 1:
            raise ParameterError(f"{value}: must be at least 1", parameter=name)
    held = _held(packets, size, limit)
    packets = link.first_packets(packets, count)
    if load is not None or rate is not None:
        return _timed(packets, size, limit, held, link.LOAD if load is None else load, rate)
    if burst is None:
        burst = limit
    used = len(packets) if cycles is None else min(len(packets), cycles * burst)
    packets = link.first_packets(packets, used)
    events = _filled_and_emptied(packets, limit, burst)
    bound = LiveBound.from_classes(held).text
    info = {"limit": limit, "burst": burst, "used": used, "dropped": events.dropped, LIVE_BOUND: bound}
    metadata = link.label(packets, "queue", size=size, **info)
    return link.trace_of("queue", events, link.sizes(packets, size), 0, metadata)


def _timed(
    packets: PacketTable,
    size: link.Size,
    limit: int,
    held: list[ObjectClass],
    load: float,
    rate: float | None,
) -> Trace:
    bits = link.bits_a_second(packets, load, rate)
    events = link.serve(packets, bits, limit=limit)
    info = link.link_facts(bits, load, rate, None, events, held) | {"used": len(packets), "dropped": events.dropped}
    metadata = link.label(packets, "queue", size=size, limit=limit, **info)
    return link.trace_of("queue", events, link.sizes(packets, size), 0, metadata)


def _held(packets: PacketTable, size: link.Size, limit: int) -> list[ObjectClass]:
    return [ObjectClass(limit, 0, link.largest_size(packets, size))]


def _filled_and_emptied(packets: PacketTable, limit: int, burst: int) -> link.Events:
    """All packets in bursts; each is stored up to the limit and then emptied in order, before the next begins.

    A packet is stored at its own time, and all of a burst is sent at the time of its last packet.
    """
    number = np.arange(len(packets))
    cycle, place = number // burst, number % burst
    last = np.minimum((cycle + 1) * burst, len(packets)) - 1
    stored = place < limit
    times = packets.ts_us.astype(np.int64) * 1000
    both = np.concatenate([number[stored], number[stored]])
    op = np.repeat(np.array([MALLOC, FREE], np.uint8), np.count_nonzero(stored))
    order = np.lexsort((both, op, cycle[both]))
    ns = np.where(op == FREE, times[last[both]], times[both])
    dropped = int(np.count_nonzero(~stored))
    return link.Events(ns[order], both[order].astype(np.uint32), op[order], len(packets), dropped)

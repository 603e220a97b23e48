"""URL-based switching, from NetBench (Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications",
section 6): a table of patterns is formed, then the header of every packet is parsed and looked up in it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.live_bound import ObjectClass
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC
from heapwright._traffic.workloads import link

if TYPE_CHECKING:
    from heapwright._traffic.packets import PacketTable

NODE, TEXT, HEADER = 8, 11, 20
"""The dominant blocks of the paper, in bytes: here a list node of two pointers, a short text with its final 0, and an
IP header or a route record. The paper gives only the sizes; the roles are this project's reading.
"""
PATTERNS = 64
"""Entries of the pattern table. The paper does not say."""
IP_AND_TCP = 40
"""Bytes of a packet from which on it carries data."""

_LIST, _ROUTE, _TEXT, _COPY = range(4)
_BYTES = np.array([NODE, HEADER, TEXT, HEADER], np.uint32)
_ROW = [_ROUTE, _TEXT, _LIST]
_ORDER = [_COPY, _TEXT, _LIST, _ROUTE]


def url(
    packets: PacketTable,
    *,
    size: link.Size = "ip",
    count: int | None = None,
    load: float = link.LOAD,
    rate: float | None = None,
    ring: int | None = None,
    patterns: int = PATTERNS,
) -> Trace:
    """The heap calls of a URL switch that forwards `packets`; phases "init" and "forward".

    In "init" each pattern of the table takes a route record (20 bytes), its text (11) and a list node (8), for good. In
    "forward" each packet takes a copy of its IP header (20), a list node (8) and a route record (20); the first packet
    with data of each flow, taken to be the request, also the text of its URL (11). All go when the link has sent the
    packet. So about two in three blocks have 20 bytes, one in three 8, few 11.

    Args:
        packets: the traffic.
        size: whether a packet's data is counted from the IP packet or the frame.
        count: use the first packets only (the paper: 50,000); None for all.
        load: share of the time the link is busy over all packets; shapes the queue. Not used with `rate`.
        rate: bits a second of the link.
        ring: most packets queued, as in a driver's ring of that many descriptors; a packet that finds it full is
            dropped, and counted in the metadata. None is no bound.
        patterns: entries of the pattern table.

    Raises:
        HeapwrightError: no packets, or a size, a ring, a link rate or a number of patterns that cannot be used.
    """
    link.require("patterns", patterns, 0, 1 << 20)
    packets = link.first_packets(packets, count)
    bits = link.bits_a_second(packets, load, rate)
    events = link.serve(packets, bits, limit=link.ring_limit(ring))
    info = link.link_facts(bits, load, rate, ring, events, _held(ring, patterns) if ring else [])
    rows = patterns * len(_ROW)
    used = np.ones((len(events.op), len(_ORDER)), np.bool_)
    used[:, _ORDER.index(_TEXT)] = _requests(packets, size)[events.object]
    free = events.op == FREE
    ids = (np.uint32(rows) + events.object * np.uint32(len(_ORDER)))[:, None] + np.array(_ORDER, np.uint32)
    size_of = np.where(free[:, None], np.uint32(0), _BYTES[_ORDER])
    op = np.broadcast_to(events.op[:, None], used.shape)
    time = np.broadcast_to((events.ns // 1000)[:, None], used.shape)
    return Trace.from_columns(
        op=np.concatenate([np.full(rows, MALLOC, np.uint8), op[used]]),
        id=np.concatenate([np.arange(rows, dtype=np.uint32), ids[used]]),
        size=np.concatenate([np.tile(_BYTES[_ROW], patterns), size_of[used]]),
        ts_us=np.concatenate([np.zeros(rows, np.int64), time[used]]),
        phase=np.repeat(np.array([0, 1], np.uint16), [rows, int(np.count_nonzero(used))]),
        phases=("init", "forward"),
        name="url",
        metadata=link.label(packets, "url", size=size, **info, patterns=patterns),
    )


def _held(ring: int, patterns: int) -> list[ObjectClass]:
    """Objects at once: of the table, and of each packet in the ring."""
    counts = Counter(_BYTES[_ROW].tolist() * patterns) + Counter(_BYTES[_ORDER].tolist() * ring)
    return [ObjectClass(count, size, size) for size, count in counts.items()]


def _requests(packets: PacketTable, size: link.Size) -> NDArray[np.bool_]:
    """Whether each packet is the first of its flow that carries data."""
    with_data = np.flatnonzero(link.sizes(packets, size) > IP_AND_TCP)
    _, first = np.unique(packets.flow[with_data], return_index=True)
    requests = np.zeros(len(packets), np.bool_)
    requests[with_data[first]] = True
    return requests

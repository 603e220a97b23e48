"""Buffering in Infineon's Easyport (Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications",
section 6): Ethernet frames are stored until they are forwarded, first in, first out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heapwright._traces.live_bound import ObjectClass
from heapwright._traffic.workloads import link

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace
    from heapwright._traffic.packets import PacketTable


def easyport(
    packets: PacketTable,
    *,
    size: link.Size = "frame",
    count: int | None = None,
    load: float = link.LOAD,
    rate: float | None = None,
    ring: int | None = None,
    extra: int = 0,
) -> Trace:
    """The heap calls of a gateway that buffers `packets`: one block a frame, from arrival to the end of its sending.

    Args:
        packets: the traffic.
        size: whether a block is a frame, as in the paper (66 and 1514 bytes), or an IP packet.
        count: use the first packets only (the paper: 4,200); None for all. A ring's bound holds for all packets.
        load: share of the time the link is busy over all packets; shapes the queue. Not used with `rate`.
        rate: bits a second of the link.
        ring: most packets queued, as in a driver's ring of that many descriptors; a packet that finds it full is
            dropped, and counted in the metadata. None is no bound.
        extra: bytes stored with each frame; the paper mentions none.

    Raises:
        HeapwrightError: no packets, or a size, a ring, a link rate or extra bytes that cannot be used.
    """
    link.require("extra", extra, 0, link.MOST_BESIDE)
    table, packets = packets, link.first_packets(packets, count)
    bits = link.bits_a_second(packets, load, rate)
    events = link.serve(packets, bits, limit=link.ring_limit(ring))
    held = [ObjectClass(ring, extra, link.largest_size(table, size) + extra)] if ring else []
    info = link.link_facts(bits, load, rate, ring, events, held)
    metadata = link.label(packets, "easyport", size=size, **info, extra=extra)
    return link.trace_of("easyport", events, link.sizes(packets, size) + extra, 0, metadata)

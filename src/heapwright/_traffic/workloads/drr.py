"""Deficit round robin: packets wait in a queue for each flow until the link takes them.

The scheduler of Mamagkakis et al. 2006 ("Reducing memory fragmentation in network applications", section 6), after
Shreedhar and Varghese 1995 ("Efficient fair queuing using deficit round robin").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heapwright._traces.live_bound import ObjectClass
from heapwright._traffic.workloads import link

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace
    from heapwright._traffic.packets import PacketTable

QUANTUM = 9 * 1024
"""Bytes a queue may send more at each visit: 9 Kbytes, "used in most Cisco Routers" (2006, section 6)."""
EXTRA = 16
"""Extra bytes for each packet, for what the application stores with it (2006, section 6)."""
IP_HEADERS = 40
"""Bytes of an IP packet that are not stored where blocks are sized by it: those of IP and TCP without options."""
NODE = 24
"""Bytes of a queue node: next, previous, head, tail, deficit and flow, of 4 bytes each. The paper does not say."""

ROTATIONS = ("restart", "classic")


def drr(
    packets: PacketTable,
    *,
    size: link.Size = "payload",
    count: int | None = None,
    load: float = link.LOAD,
    rate: float | None = None,
    ring: int | None = None,
    quantum: int = QUANTUM,
    rotation: str = "restart",
    extra: int = EXTRA,
    headers: int | None = None,
    node: int = NODE,
    queues: int | None = None,
) -> Trace:
    """The heap calls of a deficit-round-robin scheduler that carries `packets`.

    An arriving packet is a block of its payload + `extra` bytes; the first of a queue creates the queue's node before
    it. A sent packet is freed, and with the last of its queue the node. At equal times what is sent goes first.

    Args:
        packets: the traffic.
        size: what of a packet is stored: the data in it, as in the paper (0 bytes of an acknowledgement, 1460 of a full
            packet), or what `headers` leave of the IP packet or the frame.
        count: use the first packets only (the paper: 50,000); None for all.
        load: share of the time the link is busy over all packets; shapes the queues. Not used with `rate`.
        rate: bits a second of the link.
        ring: most packets queued, as in a driver's ring of that many descriptors; a packet that finds it full is
            dropped, and counted in the metadata. None is no bound.
        quantum: bytes of deficit at each visit of a queue.
        rotation: "restart" looks for each packet from the oldest queue on, as the paper says; "classic" goes on from
            the queue served last, as Shreedhar and Varghese do.
        extra: bytes stored with each packet.
        headers: bytes of each packet that are not stored; None is 40 for sizes of IP packets, 0 for the others.
        node: bytes of a queue node.
        queues: hash the flows into this many queues; None is a queue for each flow.

    Raises:
        HeapwrightError: no packets, or a ring or a link rate that cannot be used; ParameterError for other values out
            of range.
    """
    link.require("quantum", quantum, 1, 1 << 40)
    link.require_word("rotation", rotation, ROTATIONS)
    link.require("extra", extra, 0, link.MOST_BESIDE)
    link.require("headers", headers, 0, 1 << 31)
    link.require("node", node, 0, link.MOST_BESIDE)
    link.require("queues", queues, 1, 1 << 31)
    table, packets = packets, link.first_packets(packets, count)
    bits = link.bits_a_second(packets, load, rate)
    flow = packets.flow if queues is None else packets.flow % np.uint32(queues)
    _, queue = np.unique(flow, return_inverse=True)
    events = link.serve(
        packets,
        bits,
        queue=queue.astype(np.uint32),
        quantum=quantum,
        restart=rotation == "restart",
        nodes=True,
        limit=link.ring_limit(ring),
    )
    stored, most = _stored(packets, size, headers), _largest_stored(table, size, headers)
    held = [ObjectClass(ring, extra, most + extra), ObjectClass(ring, node, node)] if ring else []
    info = link.link_facts(bits, load, rate, ring, events, held)
    options = {"quantum": quantum, "rotation": rotation, "extra": extra, "node": node, "queues": queues}
    metadata = link.label(packets, "drr", size=size, headers=headers, **info, **options)
    return link.trace_of("drr", events, stored + extra, node, metadata)


def _largest_stored(packets: PacketTable, size: link.Size, headers: int | None) -> int:
    """Bytes stored of the largest packet that may come."""
    if size == "payload" or "mtu" in packets.metadata:
        removed = (IP_HEADERS if size == "ip" else 0) if headers is None else headers
        return max(link.largest_size(packets, size) - removed, 0)
    return int(_stored(packets, size, headers).max(initial=0))


def _stored(packets: PacketTable, size: link.Size, headers: int | None) -> link.Int64s:
    sizes = link.sizes(packets, size)
    if headers is not None:
        return np.maximum(sizes - headers, 0)
    counted_from_ip = (packets.ip_len > 0) & (size == "ip")
    return np.maximum(sizes - np.where(counted_from_ip, IP_HEADERS, 0), 0)

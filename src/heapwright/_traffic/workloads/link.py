"""A link with queues in front of it: when each packet comes and goes, and when each queue does.

The simulation itself is native (native/workloads.c); this module says how packets, sizes and link rates are chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._support.errors import HeapwrightError, ParameterError, did_you_mean
from heapwright._traces.live_bound import KEY as LIVE_BOUND
from heapwright._traces.live_bound import LiveBound, ObjectClass
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MAX_SIZE
from heapwright._traffic.payload import most_payload, payload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heapwright._traffic.packets import PacketTable

Size = Literal["ip", "payload", "frame"]
Int64s = NDArray[np.int64]

LOAD = 0.9
"""Default share of time the link is busy over the whole trace: high enough that bursts queue up, below the 1 from which
queues grow without end. The papers give no link rate.
"""
MOST_PACKETS = 1 << 30
MOST_BESIDE = 1 << 20
"""Largest number of extra bytes for each packet, or of a queue's node."""


@dataclass(frozen=True)
class Events:
    """What happened at the link, in order; arrays have one entry an event.

    Attributes:
        ns: int64, nanoseconds, never falling.
        object: uint32, the packet, or, from `packets` on, a queue.
        op: uint8, 0 created, 3 gone.
        packets: how many packets came.
        dropped: how many of them met full queues; they cause no event.
    """

    ns: Int64s
    object: NDArray[np.uint32]
    op: NDArray[np.uint8]
    packets: int
    dropped: int


def first_packets(packets: PacketTable, count: int | None) -> PacketTable:
    """The first `count` packets, all for None. Raises HeapwrightError where there are none, or more than 2^30."""
    if not len(packets):
        raise HeapwrightError("the packet table is empty; a workload needs at least one packet")
    if count is None or count >= len(packets):
        count = len(packets)
    if not 0 < count <= MOST_PACKETS:
        raise ParameterError(f"{count}: a workload takes 1 to {MOST_PACKETS} packets", parameter="count")
    columns = {
        name: getattr(packets, name)[:count] for name in ("ts_us", "frame_len", "ip_len", "proto", "flow", "dir")
    }
    return type(packets)(**columns, metadata=packets.metadata)


def sizes(packets: PacketTable, size: Size) -> Int64s:
    """Bytes of each packet: "frame" its frame_len, "ip" its ip_len, "payload" the data in it.

    Where it carries no IP the two latter are its frame_len. Raises ParameterError for another word.
    """
    require_word("size", size, get_args(Size))
    frame = packets.frame_len.astype(np.int64)
    if size == "frame":
        return frame
    inside = packets.ip_len.astype(np.int64) if size == "ip" else payload(packets)
    return np.where(packets.ip_len > 0, inside, frame)


def largest_size(packets: PacketTable, size: Size) -> int:
    """Bytes of the largest packet that may come, as `sizes` counts them: of these packets, or of one of the MTU."""
    if size == "payload":
        return most_payload(packets)
    most = int(sizes(packets, size).max(initial=0))
    mtu = int(packets.metadata.get("mtu", 0))
    carried = packets.ip_len > 0
    around = packets.frame_len[carried].astype(np.int64) - packets.ip_len[carried]
    framed = int(np.median(around)) if size == "frame" and carried.any() else 0
    return max(most, mtu + framed if mtu else 0)


def require(name: str, value: int | None, least: int, most: int) -> None:
    """Raise ParameterError for a number of this parameter that is out of range; None is not looked at."""
    if value is not None and not least <= value <= most:
        raise ParameterError(f"{value}: {least} to {most} is valid", parameter=name)


def require_word(name: str, word: str, valid: Sequence[str]) -> None:
    """Raise ParameterError for a word of this parameter that is none of these."""
    if word not in valid:
        raise ParameterError(f"{word}: unknown; {did_you_mean(word, valid)}", parameter=name)


def bits_a_second(packets: PacketTable, load: float, rate: float | None) -> float:
    """The link's rate: `rate`, or the one that is busy for the share `load` of the packets' time.

    Gaps that `PacketTable.closing_gaps` has closed are no part of that time. Raises HeapwrightError where a value is
    out of range, or no time passes between the packets.
    """
    if rate is not None:
        if not rate > 0:
            raise ParameterError(f"{rate:g}: a link sends more than 0 bits a second", parameter="rate")
        return rate
    if not load > 0:
        raise ParameterError(f"{load:g}: must be more than 0; 1 is a link that is always busy", parameter="load")
    gaps = np.diff(packets.ts_us)
    longest = packets.metadata.get("longest_gap")
    microseconds = int(gaps.sum() if longest is None else gaps[gaps < float(longest) * 1e6].sum())
    if microseconds <= 0:
        raise HeapwrightError(
            "all packets have the same time, so the load is undefined; give the link a rate", parameter="rate"
        )
    return float(packets.frame_len.sum(dtype=np.int64)) * 8e6 / microseconds / load


def serve(
    packets: PacketTable,
    rate: float,
    *,
    queue: NDArray[np.uint32] | None = None,
    quantum: int = 1 << 62,
    restart: bool = False,
    nodes: bool = False,
    limit: int = 0,
) -> Events:
    """Run packets through queues and a link of `rate` bits a second until it is idle.

    Args:
        packets: at least one.
        rate: see `bits_a_second`; a packet takes the link for its frame_len.
        queue: uint32, queue of each packet, numbered densely from 0; None is one queue: first in, first out.
        quantum: bytes of deficit a queue is given at each visit; with the default a visit always sends.
        restart: look for each packet from the oldest queue on, not from the queue served last.
        nodes: whether queues are objects too.
        limit: most packets in all queues together; later ones are dropped. 0 is no limit.
    """
    count = len(packets)
    queue = np.zeros(count, np.uint32) if queue is None else np.ascontiguousarray(queue, np.uint32)
    wire = np.ascontiguousarray(packets.frame_len, np.uint32)
    ns = packets.ts_us.astype(np.int64) * 1000
    service = np.maximum(np.rint(wire * (8e9 / rate)), 1)
    if not ns[-1] + service.sum() < 1 << 62:
        raise HeapwrightError(
            f"a link of {rate:g} bits a second takes more than a century; give it a higher rate", parameter="rate"
        )
    service_ns = service.astype(np.int64)
    room = count * (4 if nodes else 2)
    times, objects, ops = np.empty(room, np.int64), np.empty(room, np.uint32), np.empty(room, np.uint8)
    arrivals = ffi.new("struct hw_arrivals *")
    arrivals.count, arrivals.queues = count, int(queue.max()) + 1
    arrivals.ns, arrivals.service_ns = _pointer("int64_t", ns), _pointer("int64_t", service_ns)
    arrivals.bytes, arrivals.queue = _pointer("uint32_t", wire), _pointer("uint32_t", queue)
    link = ffi.new("struct hw_link *", {"quantum": quantum, "limit": limit, "restart": restart, "nodes": nodes})
    events = ffi.new("struct hw_events *")
    events.ns, events.object, events.op = (
        _pointer("int64_t", times),
        _pointer("uint32_t", objects),
        _pointer("uint8_t", ops),
    )
    if lib.hw_serve(arrivals, link, events):
        raise HeapwrightError("out of memory; use fewer packets at a time", parameter="count")
    result = int(events.count)
    return Events(times[:result], objects[:result], ops[:result], count, int(events.dropped))


def trace_of(
    name: str,
    events: Events,
    sizes: Int64s,
    node_bytes: int,
    metadata: Mapping[str, str],
) -> Trace:
    """The trace in which every packet is one block of `sizes` bytes, and every queue one of `node_bytes`."""
    if sizes.max(initial=0) > MAX_SIZE:
        raise HeapwrightError(f"a packet of {sizes.max()} bytes; a trace has blocks up to {MAX_SIZE}")
    bytes_of = np.append(sizes, node_bytes).astype(np.uint32)
    size = bytes_of[np.minimum(events.object, np.uint32(events.packets))]
    size[events.op == FREE] = 0
    return Trace.from_columns(
        op=events.op, id=events.object, size=size, ts_us=events.ns // 1000, name=name, metadata=metadata
    )


def label(packets: PacketTable, workload: str, **options: object) -> dict[str, str]:
    """Metadata of a trace made of packets: the workload, its options, and where the packets are from."""
    origin = {"packets_from": packets.metadata["source"]} if "source" in packets.metadata else {}
    return {
        "workload": workload,
        **{key: str(value) for key, value in options.items() if value is not None},
        **origin,
        **{key: packets.metadata[key] for key in ("synthetic", "longest_gap", "mtu") if key in packets.metadata},
    }


def ring_limit(ring: int | None) -> int:
    """The limit that `serve` takes for a ring of that many packets. Raises ParameterError for a ring below 1."""
    if ring is not None and ring < 1:
        raise ParameterError(f"{ring}: must be at least 1", parameter="ring")
    return ring or 0


def link_facts(
    bits: float,
    load: float,
    rate: float | None,
    ring: int | None,
    events: Events,
    held: Sequence[ObjectClass] = (),
) -> dict[str, object]:
    """Facts about a trace's link for its metadata: the load where that chose the rate, and what a ring has dropped.

    ``held``: the objects that a ring, if there is one, bounds (`heapwright._traces.live_bound`).
    """
    return {
        "bits_a_second": f"{bits:.6g}",
        "load": f"{load:g}" if rate is None else None,
        "ring": ring,
        "dropped": None if ring is None else events.dropped,
        LIVE_BOUND: LiveBound.from_classes(held).text if held else None,
    }


def _pointer(type_: str, array: NDArray[np.generic]) -> object:
    return ffi.cast(f"{type_} *", ffi.from_buffer(array))

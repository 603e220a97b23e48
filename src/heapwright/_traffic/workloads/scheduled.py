"""Queues written in Python: which packet is dropped, and which is sent next, decided by an object of two methods.

`heapwright workload my_queue.py PACKETS` takes a file with a class ``Queue``; `heapwright._traffic.workloads.priority`
is one. The link, the trace and the bound on what is held are as in the other workloads.
"""

from __future__ import annotations

import functools
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heapwright._support.errors import HeapwrightError
from heapwright._traces.live_bound import ObjectClass
from heapwright._traces.validation import FREE, MALLOC
from heapwright._traffic.workloads import link

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace
    from heapwright._traffic.packets import PacketTable


class Packet(NamedTuple):
    """Packet that arrives: its number from 0 on, time in ns, bytes on the link, flow, direction, IP protocol number."""

    number: int
    ns: int
    bytes: int
    flow: int
    direction: int
    proto: int


class PacketQueue(Protocol):
    """Queue in front of a link. A packet that finds the ring full never comes to it."""

    def put(self, packet: Packet) -> bool | None:
        """Take a packet that arrives; False drops it."""

    def take(self) -> Packet | None:
        """Remove the packet to send next; None if there is none."""


def run_queue(
    name: str,
    make: Callable[[], PacketQueue],
    packets: PacketTable,
    *,
    size: link.Size = "frame",
    count: int | None = None,
    load: float = link.LOAD,
    rate: float | None = None,
    ring: int | None = None,
    extra: int = 0,
    **options: object,
) -> Trace:
    """The heap calls of packets in a queue: one block a packet, from arrival to the end of its sending.

    Arguments are as for `heapwright._traffic.workloads.easyport.easyport`; ``options`` go to the metadata. O(packets),
    some microseconds each. Raises HeapwrightError also for a queue that returns a packet that it does not hold, or
    keeps some at the end.
    """
    link.require("extra", extra, 0, link.MOST_BESIDE)
    table, packets = packets, link.first_packets(packets, count)
    bits = link.bits_a_second(packets, load, rate)
    link.ring_limit(ring)
    events = _run(name, make(), packets, bits, ring)
    held = [ObjectClass(ring, extra, link.largest_size(table, size) + extra)] if ring else []
    info = link.link_facts(bits, load, rate, ring, events, held)
    metadata = link.label(packets, name, size=size, **info, extra=extra, **options)
    return link.trace_of(name, events, link.sizes(packets, size) + extra, 0, metadata)


def _run(name: str, queue: PacketQueue, packets: PacketTable, bits: float, ring: int | None) -> link.Events:
    arrivals: list[NDArray[Any]] = [
        packets.ts_us.astype(np.int64) * 1000,
        packets.frame_len,
        packets.flow,
        packets.dir,
        packets.proto,
    ]
    service = np.maximum(np.rint(packets.frame_len * (8e9 / bits)), 1).astype(np.int64).tolist()
    rows: list[tuple[int, int, int]] = []
    held, dropped, end = set[int](), 0, 0
    sending: Packet | None = None

    def send_next(now: int) -> None:
        nonlocal sending, end
        sending = queue.take()
        if sending is None:
            return
        if sending.number not in held:
            raise HeapwrightError(f"{name}: take() returned packet {sending.number}, which the queue does not hold")
        end = now + service[sending.number]

    def send_until(now: int) -> None:
        nonlocal sending
        while sending is not None and end <= now:
            held.remove(sending.number)
            rows.append((end, sending.number, FREE))
            send_next(end)

    for packet in map(Packet, range(len(packets)), *(column.tolist() for column in arrivals)):
        send_until(packet.ns)
        if (ring is not None and len(held) >= ring) or queue.put(packet) is False:
            dropped += 1
            continue
        held.add(packet.number)
        rows.append((packet.ns, packet.number, MALLOC))
        if sending is None:
            send_next(packet.ns)
    send_until(1 << 62)
    if held:
        raise HeapwrightError(f"{name}: take() returned None although {len(held)} packets were held")
    ns, object_, op = (np.array(column) for column in zip(*rows, strict=True)) if rows else (np.zeros(0, int),) * 3
    return link.Events(ns.astype(np.int64), object_.astype(np.uint32), op.astype(np.uint8), len(packets), dropped)


def queue_file(path: Path) -> Callable[..., Trace]:
    """The workload of a Python file with a class ``Queue``. The file is run: it is code of yours.

    Raises HeapwrightError if it cannot be run, or has no such class.
    """
    try:
        queue = runpy.run_path(str(path)).get("Queue")
    except Exception as error:
        raise HeapwrightError(f"{path}: {type(error).__name__}: {error}") from error
    if not callable(queue):
        raise HeapwrightError(f"{path}: has no class Queue with put(packet) and take()")
    return functools.partial(run_queue, path.stem, queue)

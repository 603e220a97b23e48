"""Where originals that no package carries put the objects of the examples, recorded once: what their rows are held to.

    python tests/helpers/original_addresses.py HEAP ADAPTER=PATH LESS

runs the original that lies at PATH, in arenas of LESS bytes less than the row has, and writes HEAP's lines of the
table again: trace, arena of the row and of the original, and a digest of the address of each call's object, counted
from the first one's; where the row differs on purpose, its lines have the smallest arenas instead. What ran is their
published text, without comments, statistics, options that are off, and what waits for memory: memmgr 22821a6; ThreadX
1b5816a with tx_byte_pool_create.c of 205b6ef; Contiki-NG 01809bb; Contiki 56984d1 with list.c of 0555c40; FreeBSD
10.4; Zephyr's heap.c of 01b8849 with heap.h of 00cdac6, whose names were put in place of three that differ; the ESP8266
core's umm_malloc.cpp of f946290 as C. Whole files: espressif/tlsf ba64d19, LVGL 7cc13aa, NuttX 4ebc8a7.
"""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright._heaps import heaps
from heapwright._heaps.foreign.heap import ForeignHeap, addresses
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.arena_sizes import fit
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_suffix(".csv")
HEADINGS = "heap,trace,arena,original_arena,digest"
BY_FOOTPRINT = ("contiki-mmem", "kingsley")
"""Heaps whose smallest arenas are recorded alone."""
LARGEST_OF_KINGSLEY = 2044
"""FreeBSD takes a page more for each block above."""
RESIZED = ("esp8266-umm", "nuttx-mm", "rt-thread-memheap")
"""Heaps that are recorded on a trace of many reallocs, too."""
ALIGNED = ("espressif-tlsf", "espressif-tlsf-large", "lvgl-tlsf", "nuttx-mm", "tlsf")
"""Heaps whose aligned calls are compared; those that no package carries are recorded on traces with such calls, too."""
AMPLE = {
    "espressif-tlsf": (1 << 18) - 4,
    "espressif-tlsf-large": (1 << 25) - 4,
    "lvgl-tlsf": (1 << 16) - 8,
    "zephyr-sys-heap": 250_000,
}
"""The arena of a heap whose lists, and with them the bytes that are left for blocks, are more in a larger arena."""


class Recorded(NamedTuple):
    """A line of the table; `digest` is empty where the original's smallest arena is all that is recorded."""

    heap: str
    trace: str
    arena: int
    original_arena: int
    digest: str


def examples() -> dict[str, Trace]:
    """The recordings that ship, in a length for arenas above 64,000 bytes and in one for those below."""
    broker = Trace.read(ROOT / "examples" / "mosquitto_broker.parquet")
    server = Trace.read(ROOT / "examples" / "lighttpd_server.parquet")
    results = [broker, first_calls(server, 2000), first_calls(broker, 1000), first_calls(server, 550)]
    return {trace.name: trace for trace in results}


def first_calls(whole: Trace, count: int) -> Trace:
    columns = {key: getattr(whole, key)[:count] for key in ("op", "id", "size")}
    return Trace.from_columns(**columns, name=f"{whole.name} of {count} calls")


def resizing(scale: int) -> Trace:
    """3,000 calls, a third of them reallocs, half of these to a little less; sizes are multiples of `scale` bytes."""
    draw, live, calls = random.Random(1), dict[int, int](), list[tuple[int, int, int]]()
    for number in range(3000):
        size = draw.randint(1, draw.choice([64, 300, 1200]))
        roll = draw.random()
        if live and roll < 1 / 3:
            object_ = draw.choice(list(live))
            live[object_] = max(1, live[object_] - draw.randint(1, 30)) if draw.random() < 0.5 else size
            calls.append((REALLOC, object_, live[object_] * scale))
        elif live and roll < 1 / 3 + len(live) / 200:
            object_ = draw.choice(list(live))
            del live[object_]
            calls.append((FREE, object_, 0))
        else:
            live[number] = size
            calls.append((MALLOC, number, size * scale))
    op, id_, sizes = np.array(calls).T
    return Trace.from_columns(op=op, id=id_, size=sizes, name=f"resizing by {scale}")


def aligning(trace: Trace) -> Trace:
    """The trace with alignments of 8 to 256 bytes for a fifth of its allocations."""
    draw = random.Random(1)
    drawn = [draw.choice([8, 16, 32, 64, 128, 256]) * (draw.random() < 0.2) for _ in trace.op]
    align = np.where(np.isin(trace.op, (REALLOC, FREE)), 0, drawn)
    columns = {key: getattr(trace, key) for key in ("op", "id", "size")}
    return Trace.from_columns(**columns, align=align, name=f"aligning {trace.name}")


def without_large(trace: Trace, largest: int) -> Trace:
    """The calls of the objects that are never larger."""
    kept = ~np.isin(trace.id, trace.id[trace.size > largest])
    columns = {key: getattr(trace, key)[kept] for key in ("op", "id", "size")}
    return Trace.from_columns(**columns, name=trace.name)


def traces_for(heap: str) -> dict[str, Trace]:
    result = examples()
    if heap in RESIZED:
        result[resizing(1).name] = resizing(1)
    if heap in ALIGNED:
        result |= {item.name: item for item in map(aligning, [*examples().values(), resizing(1)])}
    return {n: without_large(item, LARGEST_OF_KINGSLEY) for n, item in result.items()} if heap == "kingsley" else result


def digest(places: NDArray[np.int64]) -> str:
    """Of where each call's object lies, counted from the first one; -1 where there is none."""
    placed = places >= 0
    counted = np.where(placed, places - places[placed][0], -1)
    return hashlib.sha256(counted.astype("<i8").tobytes()).hexdigest()[:32]


def recorded() -> list[Recorded]:
    lines = [line.split(",") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]
    return [Recorded(heap, trace, int(arena), int(its), text) for heap, trace, arena, its, text in lines]


def record(heap: str, original: ForeignHeap, less: int) -> list[Recorded]:
    """What the original does on every example that its row serves."""
    lines = []
    for name, trace in traces_for(heap).items():
        smallest = fit(trace, zoo.load(heap))
        if smallest is None or smallest > AMPLE.get(heap, smallest):
            continue
        if heap in BY_FOOTPRINT:
            lines.append(Recorded(heap, name, smallest, original.fit(trace) or 0, ""))
            continue
        for arena in [AMPLE[heap]] if heap in AMPLE else [smallest - 32, smallest, 2 * smallest]:
            result = addresses(trace, original, arena - less)
            lines.append(Recorded(heap, name, arena, arena - less, digest(result)))
    return lines


def main(heap: str, name: str, less: str) -> None:
    """Write the lines of a heap again."""
    original = heaps.resolve(name, 32)
    assert isinstance(original, ForeignHeap)
    kept = [line for line in recorded() if line.heap != heap] if TABLE.exists() else []
    lines = sorted(kept + record(heap, original, int(less)))
    TABLE.write_text("\n".join([HEADINGS, *(",".join(map(str, line)) for line in lines)]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

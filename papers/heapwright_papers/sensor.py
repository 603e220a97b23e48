"""Allocators of sensor nodes: Table I and Figures 6 to 9.

Das, Singh, Singh and Kumar, "A low overhead dynamic memory management system for constrained memory embedded systems".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from heapwright import FREE, zoo
from heapwright_papers import sensor_pictures, sensor_runs
from heapwright_papers.case_study import mutants
from heapwright_papers.measuring import CPU, NO_TOOLS, cell, code_bytes, replayed
from heapwright_papers.page import Page
from heapwright_papers.sensor_runs import (
    FIVE,
    HOLES,
    KINDS,
    LEVELS,
    MANTIS,
    MOVING,
    RECORDED,
    SEARCHED,
    SEEDS,
    SOS,
    ST,
    SYNTHETIC_CALLS,
    SYNTHETIC_LIVE,
    TABLE_1,
    TRIES,
    UNIT,
    Results,
    allocation_bytes,
    alone,
    compared,
    descriptor_bytes,
    holes,
    largest,
    measure,
    served,
    traces,
    uses_holes,
)

PAPER = "Das et al."

_INTRODUCTION = """\
{paper} compare two allocators for microcontrollers with three others, on traces of axTLS, a Huffman coder, SimpleXML
and random requests. None of the traces is to be had. These stand in, recorded by this project on 64-bit Linux
(`examples/record_sensor.sh`; pointers inside their objects are 8 bytes wide, so a 32-bit build asks for less):"""

_BESIDES = """\
The random traces are synthetic: sizes even over a range, about {live} objects alive, each freed at random; {seeds}
seeds of each, with averages in the tables and the spread where a statement turns on it.

ST_MEMMGR has allocation frames of 2 bytes here, the size of its descriptor, so that neither is padded; the paper leaves
the frame open (1, 2, 4 or 8 bytes). ST_COMPACT_MEMMGR rounds to 2 bytes, too. heapLib's source could not be had; its
recipe follows the paper's description. The paper's figures have no numbers in the text: what stands beside ours is what
its text says of them."""

_DIFFERENCES = """\
## Where ours differ, and why

- A free in ST_MEMMGR resets a bit, says the paper, in constant time; in memmgr it looks for its place in a list. So
  memmgr cannot be the fastest to free, here or in any program that does what the paper describes.
- mmem moves everything above a freed object at once, and walks its list of handles. What it copies depends on the
  trace: the longer-lived objects are above, the more.
- Our ST_COMPACT_MEMMGR slides before it takes memory that was never used, because a heap here must show the smallest
  arena in one run; the paper does not tell when its heap slides. In an arena with room to spare it slides more often
  than need be, which the random traces show.
- Code is generated for each recipe from one core, and compiled with a later compiler than the paper's."""

_WHAT = {
    "tls": "a TLS 1.2 client (mbed TLS) opens three connections and sends readings",
    "huffman": "a Huffman coder packs and unpacks a text, 4 KB at a time",
    "xml": "an event-driven XML reader (expat) sums meter readings",
}


def page(packets: Path | None, progress: Callable[[str], None], calls: int = SYNTHETIC_CALLS) -> Page:
    """Table I and Figures 6 to 9; no packets are needed. `calls` are those of the synthetic traces."""
    results = measure(traces(calls), progress)
    made = Page("sensor", "Allocators for sensor nodes", PAPER)
    for name, some in results.traces.items():
        for seed, trace in enumerate(some, 1):
            made.traffic(f"{name}, seed {seed}" if len(some) > 1 else name, trace)
    _introduce(made, results)
    _table_1(made)
    _times(made, results)
    _memory(made, results)
    _code(made, results)
    _growth(made, results)
    _worst(made, results)
    made.text(_DIFFERENCES)
    made.judge(_names(results))
    progress("sensor: other allocators in the places of the paper's")
    arena = largest(results)
    others = {name: alone({name: recipe}, results.traces, arena) for name, recipe in mutants("sensor").items()}
    made.mutate(others, lambda place, other: _names(results.with_other(place, other)))
    return made


def _names(results: Results) -> dict[str, Any]:
    """What the statements' expressions see: the results, probes of single allocators, and the constants of the runs."""
    recipes = results.recipes
    sos = recipes[SOS]
    names = {
        "recorded": [name for name in results.traces if name in RECORDED],
        "random": [name for name in results.traces if name not in RECORDED],
    }
    random = [trace for name in names["random"] for trace in results.traces[name]]
    first = {name: some[0] for name, some in results.traces.items()}
    codes = {level: {heap: code_bytes(results.codes[heap], level) for heap in FIVE} for level in LEVELS}

    def ratios(heap: str, other: str, *kinds: str) -> list[float]:
        """Instructions of a call of each kind together, over the other's, on each trace."""
        both = [[results.mean_of(one, name, *kinds) for name in results.traces] for one in (heap, other)]
        return [ours / theirs for ours, theirs in zip(*both, strict=True)]

    return {
        **{name: value for name, value in vars(sensor_runs).items() if name.isupper()},
        **{name: getattr(results, name) for name in ("traces", "found", "worst", "grown")},
        **{name: getattr(results, name) for name in ("memory", "instructions", "most")},
        "CPU": CPU,
        "no_tools": NO_TOOLS if results.most(ST, "free") is None else "",
        "no_codes": NO_TOOLS if any(None in of.values() for of in codes.values()) else "",
        "names": names,
        "known": {
            where: [
                {heap: results.found[heap][name][at].memory or 0 for heap in FIVE}
                for name in of
                for at in range(len(results.traces[name]))
            ]
            for where, of in names.items()
        },
        "codes": codes,
        "ratios": ratios,
        "zoo": zoo,
        "sos": sos,
        "served": lambda sizes: served(sizes, sos),
        "footprint": lambda recipe: int(replayed(holes(HOLES[-1]), recipe)["footprint_bytes"]),
        "requests": [int(size) for trace in random for size in trace.size[trace.op != FREE]],
        "refused": {
            name: int(replayed(trace, sos)["failed"]) / int((trace.op != FREE).sum()) for name, trace in first.items()
        },
        "descriptor": {heap: descriptor_bytes(recipes[heap]) for heap in TABLE_1},
        "loses": {heap: not uses_holes(recipes[heap]) for heap in TABLE_1},
        "whole": {heap: allocation_bytes(recipes[heap]) for heap in MOVING},
    }


def _introduce(page: Page, results: Results) -> None:
    rows = []
    for name, some in results.traces.items():
        numbers = (
            mean(len(trace) for trace in some),
            mean(trace.peak_live_bytes for trace in some),
            mean(trace.peak_live_objects for trace in some),
            max(int(trace.size.max()) for trace in some),
        )
        told = (name, RECORDED.get(name, "synthetic"), _WHAT.get(name, "random requests"))
        rows.append([*told, *(f"{number:,.0f}" for number in numbers)])
    page.text(_INTRODUCTION.format(paper=PAPER))
    page.table(
        ("stand-in", "for", "what it does", "calls", "most live bytes", "most live blocks", "largest"), rows, words=3
    )
    page.text(_BESIDES.format(live=SYNTHETIC_LIVE, seeds=SEEDS))


def _table_1(page: Page) -> None:
    page.text(
        "## Table I: descriptor of an allocation\n\nDescriptors are measured by allocating one object. mmem's is the "
        "handle, which its caller keeps; ST_COMPACT_MEMMGR's caller keeps a pointer of 4 bytes besides. Fragmentation "
        f"is measured by a full arena with {HOLES[-1]} free blocks apart from each other, and a request nearly as "
        "large as all of them: where it is refused, there is external fragmentation."
    )
    recipes = compared()
    rows = []
    for heap, (theirs, fragments) in TABLE_1.items():
        ours = "no" if uses_holes(recipes[heap]) else "yes"
        rows.append((heap, theirs, descriptor_bytes(recipes[heap]), "yes" if fragments else "no", ours))
    page.table(("", "the paper, B", "here, B", "the paper: external fragmentation", "here"), rows)


def _times(page: Page, results: Results) -> None:
    page.text(
        "## Figures 6 and 7: time of an allocation and of a deallocation\n\nThe paper counts cycles of a PC's "
        f"time-stamp counter, which change from run to run; ours are instructions on an emulated {CPU} (-Os), the "
        "paper's own target, averages over the calls of each trace. Copies are made byte by byte."
    )
    for kind, figure, words in (("malloc", 6, "allocation"), ("free", 7, "deallocation")):
        page.text(f"Figure {figure}, instructions of {'an' if kind == 'malloc' else 'a'} {words}:")
        page.table(
            ("", *results.traces),
            [
                [heap, *(cell(results.instructions(heap, name, kind), 1) for name in results.traces)]
                for heap in (*FIVE, MANTIS)
            ],
        )
        drawn = sensor_pictures.times(results, kind)
        if drawn:
            page.figure(drawn)


def _memory(page: Page, results: Results) -> None:
    page.text(
        f"## Figure 8: cost metric\n\nThe smallest memory that serves the whole trace, in units of {UNIT} bytes, with "
        "the few bytes of control data that our heaps keep inside it; of the random traces least and most of all seeds:"
    )
    rows = [[heap, *(_units(results.memory(heap, name)) for name in results.traces)] for heap in (*FIVE, MANTIS)]
    page.table(("", *results.traces), rows)
    page.figure(sensor_pictures.memory(results))
    page.text(
        "In bytes, averages of the seeds, and with what callers keep for the objects that move (handles, or pointers "
        "of 4 bytes):"
    )
    rows = []
    for heap in FIVE:
        rows.append([heap, *(_average(results.memory(heap, name)) for name in results.traces)])
        if heap in MOVING:
            whole = [
                [one.with_handles for one in results.found[heap][name] if one.with_handles is not None]
                for name in results.traces
            ]
            rows.append([f"{heap}, with handles", *map(_average, whole)])
    page.table(("", *results.traces), rows)


def _units(sizes: Sequence[int]) -> str:
    units = [size // UNIT for size in sizes]
    return "–" if not units else "–".join(str(one) for one in dict.fromkeys((min(units), max(units))))


def _average(sizes: Sequence[int]) -> str:
    return cell(mean(sizes) if sizes else None)


def _code(page: Page, results: Results) -> None:
    page.text(
        f"## Figure 9: code footprint\n\nBytes of code and constants of `malloc` and `free` with what they call, for a "
        f"{CPU}; `memcpy` and `memmove` are not counted."
    )
    rows = [[heap, *(cell(code_bytes(results.codes[heap], level)) for level in LEVELS)] for heap in FIVE]
    page.table(("", *(f"-{level}" for level in LEVELS)), rows)
    drawn = sensor_pictures.code(results)
    if drawn:
        page.figure(drawn)


def _growth(page: Page, results: Results) -> None:
    page.text(
        f"## Time and the number of blocks\n\nAccesses of one call behind {', '.join(map(str, HOLES))} free blocks "
        "that lie apart and are too small for it: what the paper writes as O(1) and O(n)."
    )
    rows = [[heap, *(f"{value}" for kind in KINDS for value in results.grown[heap][kind])] for heap in (SOS, *TABLE_1)]
    page.table(("", *(f"{kind}, {count}" for kind in KINDS for count in HOLES)), rows)


def _worst(page: Page, results: Results) -> None:
    page.text(
        f"## The worst call on a {CPU}\n\nBeyond the paper, which names unbounded time as what keeps such heaps out of "
        "products. *On the traces* is the dearest call of all traces of this page, exact. *Found* is the dearest that "
        f"a search of {TRIES} programs finds (`heapwright trace worst`, for most accesses in one call), with the sizes "
        f"and the live bytes of *{SEARCHED}*: a lower bound of what a program can meet, not the worst there is."
    )
    rows = []
    for heap in (*FIVE, MANTIS):
        found = results.worst[heap].instructions if results.worst else {}
        rows.append([heap, *(cell(value) for kind in KINDS for value in (results.most(heap, kind), found.get(kind)))])
    page.table(("", *(f"{kind}, {what}" for kind in KINDS for what in ("on the traces", "found"))), rows)
    drawn = sensor_pictures.worst(results)
    if drawn:
        page.figure(drawn)

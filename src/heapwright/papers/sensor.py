"""Allocators of sensor nodes: Table I and Figures 6 to 9.

Das, Singh, Singh and Kumar, "A low overhead dynamic memory management system for constrained memory embedded systems".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from heapwright.host.timing import Bench
from heapwright.papers import measuring
from heapwright.papers.measuring import cell
from heapwright.papers.page import Page, percent
from heapwright.recipes.pools import Compact
from heapwright.recipes.recipe import Recipe
from heapwright.replay.replay import handles_outside_bytes, replay
from heapwright.replay.smallest import fit
from heapwright.traces.trace import Trace
from heapwright.traces.validation import CALLOC, FREE, MALLOC
from heapwright.zoo.catalogue import load

PAPER = "Das et al."
UNIT = 256
"""Bytes of a step of the paper's cost metric."""
LEVELS = ("O0", "O3", "Os")

HEAPLIB, MEMMGR, ST, MMEM, ST_COMPACT = "heapLib", "memmgr", "ST_MEMMGR", "Contiki mmem", "ST_COMPACT_MEMMGR"
MANTIS = "MantisOS"
FIVE = (HEAPLIB, MEMMGR, ST, MMEM, ST_COMPACT)
MOVING = (MMEM, ST_COMPACT)
FIXED_PLACE = (MEMMGR, HEAPLIB, ST)
"""Those without compaction, in the paper's order of the memory they need, most first."""
TABLE_1 = {
    MANTIS: (12, True),
    MMEM: (12, False),
    HEAPLIB: (5, True),
    MEMMGR: (8, True),
    ST: (2, True),
    ST_COMPACT: (4, False),
}
"""Bytes of a descriptor for each allocation, and whether there is external fragmentation."""

STAND_INS = {"tls": "axTLS", "huffman": "Huffman compression", "xml": "SimpleXML"}
SYNTHETIC = {"random, 1–128 B": (1, 128), "random, 1–1024 B": (1, 1024)}
"""Sizes of the random requests."""
SYNTHETIC_CALLS, SYNTHETIC_LIVE = 4000, 40
_WHOLE = 120
"""Bytes of an object that takes just one of the pieces in which memmgr takes memory, so that no rest has a header."""


_INTRODUCTION = """\
{paper} compare two allocators for microcontrollers with three others, on traces of axTLS, a Huffman coder, SimpleXML
and random requests. None of the traces is to be had. These stand in, recorded by this project on 64-bit Linux
(`examples/record_sensor.sh`; pointers inside their objects are 8 bytes wide, so a 32-bit build asks for less):"""

_BESIDES = """\
The two random traces are synthetic: sizes even over a range, about {live} objects alive, each freed at random.

heapLib's source could not be had; its recipe follows the paper's description. The paper's figures have no numbers in
the text: what stands beside ours is what its text says of them."""

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


@dataclass(frozen=True)
class Measured:
    """What one allocator made of one trace; None where this machine cannot tell, or no arena serves."""

    memory: int | None
    handles: int
    ticks: Mapping[str, float] | None
    instructions: Mapping[str, float] | None
    dearest_free: int | None


def heaps() -> dict[str, Recipe]:
    """The paper's five allocators."""
    return {
        HEAPLIB: load("heaplib"),
        MEMMGR: load("memmgr"),
        ST: load("st-memmgr"),
        MMEM: load("contiki-mmem"),
        ST_COMPACT: load("st-compact-memmgr"),
    }


def traces(calls: int = SYNTHETIC_CALLS) -> dict[str, Trace]:
    """The recorded stand-ins, and the synthetic traces of so many calls."""
    folder = Path(__file__).with_name("traces")
    found = {name: Trace.read(folder / f"{name}.parquet") for name in STAND_INS}
    return found | {name: synthetic(low, high, calls) for name, (low, high) in SYNTHETIC.items()}


def synthetic(low: int, high: int, calls: int = SYNTHETIC_CALLS, seed: int = 1) -> Trace:
    """Random requests of `low` to `high` bytes; the more objects live beyond SYNTHETIC_LIVE, the likelier a free."""
    random = np.random.default_rng(seed)
    rows: list[tuple[int, int, int]] = []
    live: list[int] = []
    for number in range(calls):
        if live and random.random() < len(live) / (2 * SYNTHETIC_LIVE):
            rows.append((FREE, live.pop(int(random.integers(len(live)))), 0))
        else:
            rows.append((MALLOC, number, int(random.integers(low, high, endpoint=True))))
            live.append(number)
    op, id, size = zip(*rows, strict=True)
    return Trace.from_columns(op=op, id=id, size=size, name=f"random-{low}-{high}")


def descriptor_bytes(recipe: Recipe) -> int:
    """Bytes that the allocator keeps for one allocation, in front of it and in its handle, as Table I counts them.

    The pointer through which a program finds an object that moves is not counted, as in the paper.
    """
    alone = Trace.from_columns(op=[MALLOC], id=[0], size=[_WHOLE])
    header = int(replay(alone, recipe)["header_bytes"] or 0)
    pool = recipe.canonical().pools[0]
    return header if header or not isinstance(pool, Compact) else pool.handle_bytes


def page(packets: Path | None, progress: Callable[[str], None], calls: int = SYNTHETIC_CALLS) -> Page:
    """Table I and Figures 6 to 9; no packets are needed. `calls` are those of the synthetic traces."""
    found: dict[str, dict[str, Measured]] = {}
    given = traces(calls)
    with Bench() as bench:
        for name, trace in given.items():
            progress(f"sensor: {name}")
            found[name] = _measure(trace, bench)
    progress("sensor: code")
    codes = {heap: measuring.code_sizes(recipe, LEVELS) for heap, recipe in heaps().items()}
    made = Page("sensor", "Allocators for sensor nodes", PAPER)
    _introduce(made, given)
    _table_1(made)
    _times(made, found)
    _memory(made, found)
    _code(made, codes)
    made.text(_DIFFERENCES)
    _check_table_1(made)
    _check_memory(made, found)
    _check_times(made, found)
    _check_code(made, codes)
    return made


def _measure(trace: Trace, bench: Bench) -> dict[str, Measured]:
    """Each heap's smallest arena; then all in an arena that is large enough for all."""
    memory = {heap: fit(trace, recipe, step=UNIT) for heap, recipe in heaps().items()}
    arena = max(one for one in memory.values() if one is not None)
    ticks = measuring.host_ticks(bench, heaps(), trace, arena)
    kinds = {"malloc": np.isin(trace.op, (MALLOC, CALLOC)), "free": trace.op == FREE}
    found = {}
    for heap, recipe in heaps().items():
        counted = measuring.on_target(recipe, trace, arena=arena)
        calls = counted[0]["calls"] if counted else None
        found[heap] = Measured(
            memory[heap],
            handles_outside_bytes(trace, recipe),
            None if ticks is None else {kind: float(ticks[heap][among].mean()) for kind, among in kinds.items()},
            None if calls is None else {kind: float(calls[kind]["instructions_mean"]) for kind in kinds},
            None if calls is None else int(calls["free"]["instructions_max"]),
        )
    return found


# ---- tables and figures --------------------------------------------------------------------------------------------


def _introduce(page: Page, given: Mapping[str, Trace]) -> None:
    rows = []
    for name, trace in given.items():
        numbers = (len(trace), trace.peak_live_bytes, trace.peak_live_objects, int(trace.size.max()))
        told = (name, STAND_INS.get(name, "synthetic"), _WHAT.get(name, "random requests"))
        rows.append([*told, *(f"{number:,}" for number in numbers)])
    page.text(_INTRODUCTION.format(paper=PAPER))
    page.table(
        ("stand-in", "for", "what it does", "calls", "most live bytes", "most live blocks", "largest"), rows, words=3
    )
    page.text(_BESIDES.format(live=SYNTHETIC_LIVE))


def _table_1(page: Page) -> None:
    page.text(
        "## Table I: descriptor of an allocation\n\nMeasured by allocating one object. mmem's descriptor is the "
        "handle, which its caller keeps; ST_COMPACT_MEMMGR's caller keeps a pointer of 4 bytes besides."
    )
    recipes = {MANTIS: load("mantisos"), **heaps()}
    rows = []
    for heap, (theirs, fragments) in TABLE_1.items():
        ours = "no" if heap in MOVING else "yes"
        rows.append((heap, theirs, descriptor_bytes(recipes[heap]), "yes" if fragments else "no", ours))
    page.table(("", "the paper, B", "here, B", "the paper: external fragmentation", "here"), rows)


def _times(page: Page, found: Mapping[str, Mapping[str, Measured]]) -> None:
    page.text(
        "## Figures 6 and 7: time of an allocation and of a deallocation\n\n*Ticks* are those of this host's "
        "time-stamp counter, as in the paper: the median of repeated passes for each call, then the mean over calls. "
        f"*Instructions* are those of a {measuring.CPU} (-Os), executed by an emulator. All five run in an arena of "
        "the same size, the smallest that serves them all. Copies are made byte by byte on the target."
    )
    for kind, figure, words in (("malloc", 6, "allocation"), ("free", 7, "deallocation")):
        for unit in ("ticks", "instructions"):
            page.text(f"Figure {figure}, {words}: {'host ' if unit == 'ticks' else ''}{unit}:")
            page.table(
                ("", *found),
                [[heap, *(cell(_time(one[heap], unit, kind), 1) for one in found.values())] for heap in FIVE],
            )
        rows = [
            {"trace": name, "heap": heap, "value": _time(one[heap], "ticks", kind)}
            for name, one in found.items()
            for heap in FIVE
        ]
        if all(row["value"] is not None for row in rows):
            title = {"malloc": "Allocation: a search, or a place at the end", "free": "A walk, a flag, or a copy"}[kind]
            note = "Mean ticks of the host's time-stamp counter; logarithmic. Blue: allocators that move objects."
            page.figure(_points(f"sensor-{kind}", title, note, rows, f"ticks of a {kind}", log=True))


def _time(measured: Measured, unit: str, kind: str) -> float | None:
    values = measured.ticks if unit == "ticks" else measured.instructions
    return None if values is None else values[kind]


def _memory(page: Page, found: Mapping[str, Mapping[str, Measured]]) -> None:
    page.text(
        f"## Figure 8: cost metric\n\nThe smallest memory that serves the whole trace, in units of {UNIT} bytes, with "
        "the few bytes of control data that our heaps keep inside it:"
    )
    page.table(("", *found), [[heap, *(_units(one[heap]) for one in found.values())] for heap in FIVE])
    rows = [
        {"trace": name, "heap": heap, "value": (one[heap].memory or 0) // UNIT}
        for name, one in found.items()
        for heap in FIVE
        if one[heap].memory is not None
    ]
    note = f"Units of {UNIT} bytes; logarithmic. Handles, which callers keep, are not counted, as in the paper."
    page.figure(_points("sensor-memory", "The smallest memory that serves a trace", note, rows, "units of 256 B", True))
    page.text("In bytes, and with what callers keep for the objects that move (handles, or pointers of 4 bytes):")
    rows_ = []
    for heap in FIVE:
        rows_.append([heap, *(cell(one[heap].memory) for one in found.values())])
        if heap in MOVING:
            whole = (_with_handles(one[heap]) for one in found.values())
            rows_.append([f"{heap}, with handles", *(cell(value) for value in whole)])
    page.table(("", *found), rows_)


def _units(measured: Measured) -> str:
    return cell(None if measured.memory is None else measured.memory // UNIT)


def _with_handles(measured: Measured) -> int | None:
    return None if measured.memory is None else measured.memory + measured.handles


def _code(page: Page, codes: Mapping[str, Any]) -> None:
    page.text(
        f"## Figure 9: code footprint\n\nBytes of code and constants of `malloc` and `free` with what they call, for a "
        f"{measuring.CPU}; `memcpy` and `memmove` are not counted."
    )
    rows = [[heap, *(cell(_bytes(codes[heap], level)) for level in LEVELS)] for heap in FIVE]
    page.table(("", *(f"-{level}" for level in LEVELS)), rows)
    shown = [
        {"trace": f"-{level}", "heap": heap, "value": _bytes(codes[heap], level)} for level in LEVELS for heap in FIVE
    ]
    if all(row["value"] is not None for row in shown):
        note = f"malloc and free with what they call, {measuring.CPU}. Blue: allocators that move objects."
        page.figure(_points("sensor-code", "Code of each allocator", note, shown, "bytes of code", log=False))


def _bytes(code: Any, level: str) -> int | None:
    return None if code is None else int(code[level].text + code[level].data)


def _points(name: str, title: str, note: str, rows: Sequence[dict[str, Any]], axis: str, log: bool) -> Any:
    import altair as alt

    from heapwright.report.figure import BLUE, CLOUD, INK, VERMILLION, Figure, inline

    places = list(dict.fromkeys(row["trace"] for row in rows))
    colours = alt.Scale(domain=FIVE, range=[CLOUD, INK, VERMILLION, BLUE, BLUE])
    chart = (
        inline(rows)
        .mark_point(filled=True, size=90, opacity=1)
        .encode(
            x=alt.X("value:Q", title=axis, scale=alt.Scale(type="log") if log else alt.Scale(zero=True)),
            y=alt.Y("trace:N", title=None, sort=places, axis=alt.Axis(grid=True, labelLimit=220)),
            yOffset=alt.YOffset("heap:N", sort=list(FIVE)),
            color=alt.Color("heap:N", sort=None, scale=colours, legend=alt.Legend(columns=3)),
            shape=alt.Shape("heap:N", sort=None, scale=alt.Scale(domain=FIVE)),
        )
        .properties(height=66 * len(places))
    )
    return Figure(name, title, note, chart, 620)


# ---- claims --------------------------------------------------------------------------------------------------------


def _check_table_1(page: Page) -> None:
    recipes = {MANTIS: load("mantisos"), **heaps()}
    ours = {heap: descriptor_bytes(recipes[heap]) for heap in TABLE_1}
    theirs = {heap: size for heap, (size, _) in TABLE_1.items()}
    said, found = (", ".join(f"{heap} {size}" for heap, size in sizes.items()) for sizes in (theirs, ours))
    page.claim("Table I: bytes of a descriptor", said, found, ours == theirs)
    whole = {heap: _overhead(recipes[heap]) for heap in MOVING}
    saved = 1 - whole[ST_COMPACT] / whole[MMEM]
    page.claim(
        "ST_COMPACT_MEMMGR needs 33 % less for each allocation than mmem",
        "8 and 12 bytes",
        f"{whole[ST_COMPACT]} and {whole[MMEM]} bytes: {percent(saved)}",
        abs(saved - 0.33) < 0.01,
    )


def _overhead(recipe: Recipe) -> int:
    """Header and handle of an object that moves, on a 32-bit target."""
    pool = recipe.canonical().pools[0]
    assert isinstance(pool, Compact)
    return pool.header + pool.handle_bytes


def _check_memory(page: Page, found: Mapping[str, Mapping[str, Measured]]) -> None:
    memory = {name: {heap: one[heap].memory for heap in FIVE} for name, one in found.items()}
    known: dict[str, dict[str, int]] = {}
    for name, of in memory.items():
        served = {heap: size for heap, size in of.items() if size is not None}
        if len(served) == len(FIVE):
            known[name] = served
    less = [of[other] - of[ST] for of in known.values() for other in (HEAPLIB, MEMMGR)]
    page.claim(
        "ST_MEMMGR needs 256 to 5376 bytes less than heapLib and memmgr",
        "256–5376 B",
        f"{min(less):,} to {max(less):,} B",
        min(less) >= UNIT,
    )
    ordered = [name for name, of in known.items() if of[MEMMGR] > of[HEAPLIB] > of[ST]]
    _on(page, " > ".join(FIXED_PLACE) + " in the memory they need", ordered, known)
    moving = [
        name for name, of in known.items() if max(of[heap] for heap in MOVING) <= min(of[heap] for heap in FIXED_PLACE)
    ]
    _on(page, "allocators with compaction need the least memory", moving, known)
    better = [name for name, of in known.items() if of[MMEM] <= of[ST_COMPACT]]
    _on(page, "mmem needs less than ST_COMPACT_MEMMGR, its descriptors being outside", better, known)
    whole = {name: {heap: _with_handles(one[heap]) or 0 for heap in MOVING} for name, one in found.items()}
    turned = [name for name in known if whole[name][ST_COMPACT] < whole[name][MMEM]]
    _on(page, "with handles counted, ST_COMPACT_MEMMGR needs less", turned, known)


def _on(page: Page, claim: str, where: Sequence[str], known: Mapping[str, Any]) -> None:
    """A claim about every trace."""
    others = [name for name in known if name not in where]
    ours = f"on {len(where)} of {len(known)} traces" + (f"; not on {', '.join(others)}" if others else "")
    page.claim(claim, "on all", ours, not others)


def _check_times(page: Page, found: Mapping[str, Mapping[str, Measured]]) -> None:
    for unit in ("ticks", "instructions"):
        for kind in ("malloc", "free"):
            values = {name: {heap: _time(one[heap], unit, kind) for heap in FIVE} for name, one in found.items()}
            known = {
                name: {heap: value for heap, value in of.items() if value is not None} for name, of in values.items()
            }
            if all(len(of) == len(FIVE) for of in known.values()):
                _check_order(page, f"{kind}, {unit}", known)
    dearest = [one[ST].dearest_free for one in found.values()]
    if None not in dearest:
        page.claim(
            "freeing in ST_MEMMGR only resets a bit, in constant time",
            "O(1)",
            f"at most {max(value or 0 for value in dearest)} instructions on any trace",
            len(set(dearest)) == 1,
        )


def _check_order(page: Page, what: str, known: Mapping[str, Mapping[str, float]]) -> None:
    best = [name for name, of in known.items() if of[MEMMGR] == min(of.values())]
    _on(page, f"memmgr is the fastest ({what})", best, known)
    faster = [name for name, of in known.items() if of[ST_COMPACT] < of[MMEM]]
    _on(page, f"ST_COMPACT_MEMMGR is faster than mmem ({what})", faster, known)
    ratios = {other: mean(of[ST] / of[other] for of in known.values()) for other in (HEAPLIB, MMEM)}
    page.claim(
        f"ST_MEMMGR is comparable with heapLib and mmem ({what})",
        "comparable",
        f"{ratios[HEAPLIB]:.2f} times heapLib's, {ratios[MMEM]:.2f} times mmem's on average",
        all(0.5 <= ratio <= 2 for ratio in ratios.values()),
    )


def _check_code(page: Page, codes: Mapping[str, Any]) -> None:
    if any(code is None for code in codes.values()):
        return
    size = {level: {heap: _bytes(codes[heap], level) or 0 for heap in FIVE} for level in LEVELS}
    largest = max(size["O0"], key=lambda heap: size["O0"][heap])
    page.claim(
        "ST_MEMMGR has the largest code without optimisation",
        "largest at -O0",
        f"{size['O0'][ST]:,} bytes; the largest is {largest} with {size['O0'][largest]:,}",
        largest == ST,
    )
    shares = [size[level][ST] / mean(size[level].values()) for level in ("O3", "Os")]
    page.claim(
        "with -O3 and -Os it is comparable to the others",
        "comparable",
        f"{percent(shares[0])} and {percent(shares[1])} of the mean of the five",
        all(0.5 <= share <= 1.5 for share in shares),
    )
    least = {level: min(size[level], key=lambda heap: size[level][heap]) for level in LEVELS}
    page.claim(
        "ST_COMPACT_MEMMGR has the least code at all levels",
        "least",
        "; ".join(f"-{level}: {least[level]}" for level in LEVELS),
        all(heap == ST_COMPACT for heap in least.values()),
    )

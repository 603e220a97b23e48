"""A multi-channel modem concentrator: Tables 1 to 3, Figure 5, and what the paper leaves as future work.

Peintner, Bukhatwa and Patel, "Analysing dynamic memory allocation in embedded systems for multi-channel modems".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright.host.timing import Bench
from heapwright.papers import measuring
from heapwright.papers.measuring import cell
from heapwright.papers.page import ALIGN, Page, percent
from heapwright.recipes.recipe import Recipe
from heapwright.replay.pictures import HEAP_MAP_STATES, heap_map
from heapwright.replay.replay import replay
from heapwright.traces.trace import Trace
from heapwright.traces.validation import FREE, MALLOC
from heapwright.workloads.modem import MEMORY, modem
from heapwright.zoo.catalogue import load

PAPER = "Peintner, Bukhatwa and Patel"
FOUR = {
    "first fit, slow free": "first-fit-slow-free",
    "first fit, fast free": "first-fit-fast-free",
    "best fit, slow free": "best-fit-slow-free",
    "best fit, fast free": "best-fit-fast-free",
}
FIRST_SLOW, FIRST_FAST, BEST_SLOW, BEST_FAST = FOUR
LINKED, INDEXED = "best fit, linked", "best fit, indexed"
CALLS, SEEDS = 1000, (1, 2, 3, 4, 5)
LENGTHS = (10, 30, 100, 300, 1000, 3000)
"""Modem calls of the runs that show how fragments grow."""
FULL = 0.9
"""The crucial state for response times: calls at which at least this share of the most live blocks are live."""
INSTANCES = (1, 2, 5, 10, 20, 50, 100)
CALLS_AN_INSTANCE = 100
THE_PAPERS = 5
"""Instances of the paper's system."""
SHORT = (32, 28, 24, 20, 16)
"""KiB of memory in the last experiment."""

TABLE_1 = {
    "physical size": (30420, 30420, 30464, 30464),
    "effective used": (29788, 29796, 29788, 29788),
    "headers": (532, 532, 532, 532),
    "fragments": (100, 92, 144, 144),
}
"""Bytes, by allocator in the order of FOUR; the paper's caption repeats "slow free" where it alternates."""
TABLE_2 = {
    "malloc": (2.80, 2.89, 2.72, 3.24),
    "free": (1.28, 0.24, 1.42, 0.36),
    "total": (4.08, 3.13, 4.14, 3.60),
    "swap": (128.88, 134.33, 138.36, 144.28),
}
"""Microseconds."""
TABLE_3 = {"text": (2721, 3193, 2753, 3225), "data": (72, 72, 72, 72), "bss": (0, 0, 0, 0)}

_LINKS = """
name = "{name}"
align = {align}
[[pool]]
kind = "general"
header = 4
free_list = "double"
order = "address"
boundary_tags = true
fit = "best"
coalesce = "immediate"
{bins}
"""

_INTRODUCTION = """\
{paper} compare four allocators on a model of a modem concentrator, whose unit sizes and times are unpublished. Ours is
`heapwright workload modem`: five instances, {calls:,} calls, the protocols and restrictions of section 2; block sizes
were set before any allocator ran on them, so that five connected instances hold about what Table 1 shows (133 blocks
and 29,788 bytes there; {blocks} blocks and {used:,} bytes here). It is synthetic, and not tuned to the allocators.
Numbers are means over seeds {seeds}; ranges are in brackets.

The four allocators are `{zoo}` of the zoo. The paper's column heads all say “slow free” in Table 1; as in its other
tables they are taken to alternate."""

_FUTURE = f"""\
## Future work 1: scalability

The paper asks how the allocators scale. Each instance has its share of the memory and {CALLS_AN_INSTANCE} calls;
seed 1.

## Future work 2: a search tree

“Link fields to build up hidden search trees” would let the search skip used blocks, and all free ones but a path.
Heapwright has no kind with trees. Two recipes stand on either side of one:

- *{LINKED}*: the free blocks are linked in order of address, and best fit walks them all. A tree over the same links
  walks a part of them.
- *{INDEXED}*: a list for each size of small blocks, with a bitmap of those that hold blocks: the best fit in a few
  steps, whatever the number of blocks; its list heads take memory that a tree does not need (control data).

Both have links and a boundary tag in free blocks, so the smallest block has 16 bytes, not 8."""


@dataclass(frozen=True)
class Peak:
    """Bytes of the smallest arena that serves a trace, when most is live for the first time (the paper's Table 1)."""

    physical: int
    used: int
    headers: int
    control: int

    @property
    def fragments(self) -> int:
        """What is neither used nor the allocator's."""
        return self.physical - self.used - self.headers - self.control

    def of(self, row: str) -> int:
        """The value of a row of the table."""
        names = {"physical size": "physical", "effective used": "used"}
        return int(getattr(self, names.get(row, row)))


@dataclass(frozen=True)
class Response:
    """What calls of one allocator take; None where this machine cannot tell."""

    accesses: float
    ticks: NDArray[np.float64] | None
    whole: dict[str, Any] | None
    full: dict[str, Any] | None

    def instructions(self, kind: str, crucial: bool = False) -> float | None:
        """Mean of a malloc or a free on the target, of all calls or of those in the crucial state."""
        measured = self.full if crucial else self.whole
        if measured is None:
            return None
        calls = measured["phases"]["full"] if crucial else measured["calls"]
        return float(calls[kind]["instructions_mean"])


def heaps() -> dict[str, Recipe]:
    """The paper's four allocators, and the two that stand for a search tree."""
    bins = 'bins = "exact"\nlinear_up_to = 1024\nbins_per_octave = 4'
    return {
        **{label: load(name) for label, name in FOUR.items()},
        LINKED: Recipe.parse(_LINKS.format(name=LINKED, align=ALIGN, bins="")),
        INDEXED: Recipe.parse(_LINKS.format(name=INDEXED, align=ALIGN, bins=bins)),
    }


def peak(trace: Trace, recipe: Recipe) -> Peak:
    """Table 1's split of the smallest arena."""
    physical = int(replay(trace, recipe, fit=True)["smallest_arena_bytes"] or 0)
    map_ = heap_map(first_calls(trace, int(trace.live_bytes.argmax()) + 1), recipe, columns=2)
    last = map_["blocks"][map_["blocks"]["column"] == 1]
    bytes_of = {state: int(last["size"][last["state"] == at].sum()) for at, state in enumerate(HEAP_MAP_STATES)}
    return Peak(physical, bytes_of["payload in use"], bytes_of["header"], bytes_of["control data"])


def first_calls(trace: Trace, count: int) -> Trace:
    """The trace up to a call."""
    return Trace.from_columns(op=trace.op[:count], id=trace.id[:count], size=trace.size[:count], name=trace.name)


def crucial(trace: Trace) -> NDArray[np.bool_]:
    """The calls at which the number of blocks is near its maximum."""
    near: NDArray[np.bool_] = trace.live_objects >= FULL * trace.live_objects.max()
    return near


def swaps(trace: Trace) -> int:
    """How often a unit was replaced by another: a swap is at one time, in one instance."""
    inside = trace.phase == trace.phases.index("swap")
    return len(np.unique(np.column_stack([trace.ts_us[inside], trace.tid[inside]]), axis=0))


def page(packets: Path | None, progress: Callable[[str], None], calls: int = CALLS, most: int = INSTANCES[-1]) -> Page:
    """Tables 1 to 3, Figure 5, scalability up to `most` instances, the search tree, and short memory; no packets."""
    progress("modem: memory")
    traces = [modem(calls=calls, seed=seed) for seed in SEEDS]
    peaks = {label: [peak(trace, recipe) for trace in traces] for label, recipe in heaps().items()}
    progress("modem: response times")
    with Bench() as bench:
        responses = _responses(traces[0], bench)
    progress("modem: code")
    codes = {label: measuring.code_sizes(recipe, ("O0", "Os")) for label, recipe in heaps().items()}
    progress("modem: scalability")
    scaled = [row for count in INSTANCES if count <= most for row in _scaled(count)]
    made = Page("modem", "Four allocators in a modem concentrator", PAPER)
    _introduce(made, traces, calls)
    _table_1(made, peaks, [count for count in LENGTHS if count <= 3 * calls])
    _table_2(made, responses, traces[0])
    _table_3(made, codes)
    _future(made, scaled)
    refused = _short(made, calls)
    _check_memory(made, peaks)
    _check_times(made, responses, traces[0])
    _check_code(made, codes)
    _check_future(made, scaled, refused)
    return made


def _introduce(page: Page, traces: Sequence[Trace], calls: int) -> None:
    page.text(
        _INTRODUCTION.format(
            paper=PAPER,
            calls=calls,
            blocks=max(trace.peak_live_objects for trace in traces),
            used=max(trace.peak_live_bytes for trace in traces),
            seeds=f"{SEEDS[0]} to {SEEDS[-1]}",
            zoo="`, `".join(FOUR.values()),
        )
    )


# ---- Table 1 and Figure 5 ------------------------------------------------------------------------------------------


def _table_1(page: Page, peaks: dict[str, list[Peak]], lengths: Sequence[int]) -> None:
    page.text(
        "## Table 1: use of main memory\n\nBytes of the smallest heap that serves the whole run, at the first time "
        "when most is live. *Control* is what our heaps keep besides the blocks: where they end, and the like."
    )
    rows = []
    for row in ("physical size", "effective used", "headers", "control", "fragments"):
        found = [[one.of(row) for one in peaks[label]] for label in FOUR]
        ours = [f"{mean(values):,.0f} [{min(values):,}–{max(values):,}]" for values in found]
        rows.append([row, *map(cell, TABLE_1.get(row, [None] * len(FOUR))), *ours])
    wasted = [[one.fragments / one.physical for one in peaks[label]] for label in FOUR]
    share = [f"{percent(mean(of), 2)} [{percent(min(of), 2)}–{percent(max(of), 2)}]" for of in wasted]
    theirs = [
        percent(part / whole, 2) for part, whole in zip(TABLE_1["fragments"], TABLE_1["physical size"], strict=True)
    ]
    rows.append(["fragments of memory", *theirs, *share])
    page.table(("", *(f"the paper: {label}" for label in FOUR), *(f"here: {label}" for label in FOUR)), rows)
    page.text(
        "Headers are as many as in the paper, fragments are not. What a run needs is the most over the whole run, so "
        "it grows with its length, which the paper does not tell. Fragments of memory, means over the seeds, by the "
        "number of modem calls in the run:"
    )
    page.table(("", *(f"{count:,} calls" for count in lengths)), _by_length(lengths))
    page.text("### Figure 5")
    page.figure(_efficiency(peaks))


def _by_length(lengths: Sequence[int]) -> list[list[str]]:
    """Table 1's last row for runs of so many modem calls; slow and fast free need the same memory."""
    traces = {count: [modem(calls=count, seed=seed) for seed in SEEDS] for count in lengths}
    rows = []
    for label in (FIRST_FAST, BEST_FAST):
        recipe = load(FOUR[label])
        shares = (_mean_share([peak(trace, recipe) for trace in traces[count]], "fragments") for count in lengths)
        rows.append([label.split(",")[0], *(percent(share, 2) for share in shares)])
    return rows


PARTS = ("headers", "fragments")


def _efficiency(peaks: dict[str, list[Peak]]) -> Any:
    import altair as alt

    from heapwright.report.figure import BLUE, CLOUD, Figure, inline

    rows = []
    for at, label in enumerate(FOUR):
        for part in PARTS:
            theirs = TABLE_1[part][at] / TABLE_1["physical size"][at]
            rows.append({"who": f"{label}: the paper", "part": part, "share": theirs})
            ours = mean(one.of(part) / one.physical for one in peaks[label])
            rows.append({"who": f"{label}: here", "part": part, "share": ours})
    order = [f"{label}: {who}" for label in FOUR for who in ("the paper", "here")]
    chart = (
        inline(rows)
        .mark_bar(stroke="white")
        .encode(
            x=alt.X("share:Q", title="share of the physical memory", axis=alt.Axis(format="%")),
            y=alt.Y("who:N", title=None, sort=order, axis=alt.Axis(labelLimit=220)),
            color=alt.Color("part:N", sort=None, scale=alt.Scale(domain=PARTS, range=[CLOUD, BLUE])),
            order=alt.Order("part:N", sort="descending"),
        )
        .properties(height=190)
    )
    title = "What is not the program's own: headers and fragments"
    note = (
        f"Mean over {len(SEEDS)} seeds. All else is used by the program; the heap's control data is too little to show."
    )
    return Figure("modem-memory", title, note, chart, 620)


# ---- Table 2 -------------------------------------------------------------------------------------------------------


def _responses(trace: Trace, bench: Bench) -> dict[str, Response]:
    ticks = measuring.host_ticks(bench, heaps(), trace)
    near = Trace.from_columns(
        op=trace.op, id=trace.id, size=trace.size, phase=crucial(trace).astype(int), phases=("else", "full")
    )
    found = {}
    for label, recipe in heaps().items():
        accesses = float(replay(trace, recipe)["accesses"] or 0) / len(trace)
        whole, full = measuring.on_target(recipe, trace, near) or (None, None)
        found[label] = Response(accesses, None if ticks is None else ticks[label], whole, full)
    return found


def _table_2(page: Page, responses: dict[str, Response], trace: Trace) -> None:
    page.text(
        "## Table 2: response times\n\nThe paper's times are those of its simulation, which nobody can repeat: their "
        "order and ratios can be compared. *Ticks* are those of this host's time-stamp counter, the median of "
        "repeated passes for each call, then the mean over calls (seed 1). *Instructions* are those of a "
        f"{measuring.CPU}, executed by an emulator. *Crucial state*: at least {percent(FULL)} of the most live blocks "
        f"are live, {percent(crucial(trace).mean())} of the calls.\n\nThe paper does not define `swap()`. Here it is "
        f"what the allocator does when one unit replaces another, {swaps(trace):,} times in the run; no data is "
        "copied. The paper's four values differ by few microseconds, and fast free, whose frees are cheapest, has the "
        "larger: so most of them is no allocator's time, and some 120 µs look like a copy of one instance's memory."
    )
    rows: list[list[str]] = []
    for key, theirs in TABLE_2.items():
        rows.append([f"the paper: {key}, µs", *(f"{value:.2f}" for value in theirs), "–", "–"])
    for kind, op in (("malloc", MALLOC), ("free", FREE)):
        rows.append([f"host ticks: {kind}", *(cell(_ticks(one, trace.op == op), 1) for one in responses.values())])
        state = crucial(trace) & (trace.op == op)
        rows.append([f"… in the crucial state: {kind}", *(cell(_ticks(one, state), 1) for one in responses.values())])
    rows.append(["host ticks: total", *(cell(_total_ticks(one, trace), 1) for one in responses.values())])
    rows.append(["host ticks: swap", *(cell(_swap_ticks(one, trace)) for one in responses.values())])
    for kind in ("malloc", "free"):
        rows.append([f"instructions: {kind}", *(cell(one.instructions(kind), 1) for one in responses.values())])
        full = (cell(one.instructions(kind, crucial=True), 1) for one in responses.values())
        rows.append([f"… in the crucial state: {kind}", *full])
    rows.append(["instructions: dearest free", *(cell(_dearest_free(one)) for one in responses.values())])
    rows.append(["instructions: total", *(cell(_total_instructions(one), 1) for one in responses.values())])
    rows.append(["instructions: swap", *(cell(_swap_instructions(one, trace)) for one in responses.values())])
    rows.append(["accesses of metadata a call", *(f"{one.accesses:.1f}" for one in responses.values())])
    page.table(("", *responses), rows)
    if responses[FIRST_FAST].ticks is not None or responses[FIRST_FAST].whole is not None:
        page.figure(_times(responses, trace))


def _ticks(response: Response, among: NDArray[np.bool_]) -> float | None:
    return None if response.ticks is None else float(response.ticks[among].mean())


def _total_ticks(response: Response, trace: Trace) -> float | None:
    return _sum(*(_ticks(response, trace.op == op) for op in (MALLOC, FREE)))


def _swap_ticks(response: Response, trace: Trace) -> float | None:
    if response.ticks is None:
        return None
    return float(response.ticks[trace.phase == trace.phases.index("swap")].sum()) / swaps(trace)


def _total_instructions(response: Response) -> float | None:
    return _sum(*(response.instructions(kind) for kind in ("malloc", "free")))


def _sum(malloc: float | None, free: float | None) -> float | None:
    return None if malloc is None or free is None else malloc + free


def _swap_instructions(response: Response, trace: Trace) -> float | None:
    if response.whole is None:
        return None
    kinds = response.whole["phases"]["swap"].values()
    return float(sum(kind["count"] * kind["instructions_mean"] for kind in kinds)) / swaps(trace)


def _dearest_free(response: Response) -> int | None:
    return None if response.whole is None else int(response.whole["calls"]["free"]["instructions_max"])


def _times(responses: dict[str, Response], trace: Trace) -> Any:
    """Ticks of a malloc and of a free, or instructions where this host has no counter; one panel."""
    import altair as alt

    from heapwright.report.figure import BLUE, VERMILLION, Figure, inline

    rows = []
    for label, response in responses.items():
        for kind, op in (("malloc", MALLOC), ("free", FREE)):
            value = _ticks(response, trace.op == op)
            value = response.instructions(kind) if value is None else value
            rows.append({"heap": label, "kind": kind, "value": value})
    unit = "instructions, Cortex-M3" if next(iter(responses.values())).ticks is None else "ticks of the host's counter"
    chart = (
        inline(rows)
        .mark_bar(stroke="white")
        .encode(
            x=alt.X("value:Q", title=f"{unit}, mean of a call", stack="zero"),
            y=alt.Y("heap:N", title=None, sort=list(responses), axis=alt.Axis(labelLimit=220)),
            color=alt.Color("kind:N", sort=None, scale=alt.Scale(domain=["malloc", "free"], range=[BLUE, VERMILLION])),
            order=alt.Order("kind:N", sort="descending"),
        )
        .properties(height=150)
    )
    title = "Time of a malloc and a free, stacked"
    note = "The last two search free blocks alone; the paper's four walk used blocks, too."
    return Figure("modem-times", title, note, chart, 620)


# ---- Table 3 -------------------------------------------------------------------------------------------------------


def _table_3(page: Page, codes: dict[str, Any]) -> None:
    page.text(
        "## Table 3: size of the allocator\n\nBytes. Ours are `malloc` and `free` with what they call, generated for a "
        f"{measuring.CPU} and linked; the paper tells neither processor nor compiler options."
    )
    rows: list[list[str]] = []
    for part, theirs in TABLE_3.items():
        rows.append([f"the paper: {part}", *map(str, theirs), "–", "–"])
    rows.append(["the paper: sum", *(str(sum(parts)) for parts in zip(*TABLE_3.values(), strict=True)), "–", "–"])
    for level in ("O0", "Os"):
        for part in TABLE_3:
            found = [None if one is None else getattr(one[level], part) for one in codes.values()]
            rows.append([f"here, -{level}: {part}", *map(cell, found)])
    page.table(("", *codes), rows)


# ---- future work ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scaled:
    """One heap with so many instances."""

    instances: int
    blocks: int
    heap: str
    overhead: float
    accesses: float
    worst: int


def _scaled(instances: int) -> list[Scaled]:
    share = MEMORY * instances // THE_PAPERS
    trace = modem(instances=instances, calls=CALLS_AN_INSTANCE * instances, memory=share, seed=1)
    found = []
    for label, recipe in heaps().items():
        metrics: dict[str, Any] = dict(replay(trace, recipe))
        found.append(
            Scaled(
                instances,
                trace.peak_live_objects,
                label,
                metrics["footprint_bytes"] / metrics["requested_peak_bytes"] - 1,
                metrics["accesses"] / len(trace),
                max(metrics["accesses_malloc_max"], metrics["accesses_free_max"]),
            )
        )
    return found


def _future(page: Page, scaled: list[Scaled]) -> None:
    page.text(_FUTURE)
    labels = tuple(heaps())
    shown: list[tuple[str, Callable[[Scaled], str]]] = [
        ("Accesses of metadata a call, mean", lambda one: f"{one.accesses:.1f}"),
        ("Accesses of the dearest call", lambda one: f"{one.worst:,}"),
        ("Memory beyond what was asked for: headers, control data, fragments", lambda one: percent(one.overhead, 1)),
    ]
    for what, show in shown:
        page.text(f"{what}:")
        rows = []
        for count in dict.fromkeys(one.instances for one in scaled):
            of = {one.heap: one for one in scaled if one.instances == count}
            rows.append([count, of[LINKED].blocks, *(show(of[label]) for label in labels)])
        page.table(("instances", "most live blocks", *labels), rows)
    page.figure(_scaling(scaled))


def _scaling(scaled: list[Scaled]) -> Any:
    import altair as alt

    from heapwright.report.figure import BLUE, CLOUD, INK, VERMILLION, Figure, inline

    labels = list(heaps())
    rows = [{"instances": one.instances, "heap": one.heap, "accesses": one.accesses} for one in scaled]
    colours = [VERMILLION, VERMILLION, BLUE, BLUE, CLOUD, INK]
    chart = inline(rows).encode(
        x=alt.X("instances:Q", title="modem instances", scale=alt.Scale(type="log")),
        y=alt.Y("accesses:Q", title="accesses a call", scale=alt.Scale(type="log")),
        color=alt.Color(
            "heap:N", sort=None, scale=alt.Scale(domain=labels, range=colours), legend=alt.Legend(columns=3)
        ),
        shape=alt.Shape("heap:N", sort=None, scale=alt.Scale(domain=labels)),
    )
    drawn = chart.mark_line(strokeWidth=1.5) + chart.mark_point(filled=True, size=60, opacity=1)
    title = "All four slow down with every instance; an index of sizes does not"
    note = "Loads and stores of metadata, mean of all calls; both axes logarithmic."
    return Figure("modem-scaling", title, note, drawn.properties(height=260), 620)


def _short(page: Page, calls: int) -> list[tuple[int, int]]:
    """Memory that runs short; returns (failed mallocs, calls connected) of each row and heap."""
    page.text(
        "## Future work 3: when memory runs short\n\n“The algorithm will block low priority jobs in order to increase "
        "resources for high priority jobs” (section 3), “untouched in this work yet” (section 6). The workload refuses "
        "a call that would not fit beside what connected calls may still take; a quarter of the calls have low "
        "priority and must leave a tenth of the memory free. *Failed* are requests that the allocator refused, after "
        "all, in an arena of that size: fragments are what the guard does not see."
    )
    rows, found = [], []
    for kib in SHORT:
        trace = modem(calls=calls, memory=kib * 1024, seed=1)
        told = trace.metadata
        failed = [int(replay(trace, load(name), arena=kib * 1024)["failed"] or 0) for name in FOUR.values()]
        found += [(count, int(told["connected"])) for count in failed]
        rows.append([f"{kib} KiB", told["connected"], told["refused_low"], told["refused_high"], *map(str, failed)])
    page.table(("memory", "connected", "refused, low", "refused, high", *(f"failed: {label}" for label in FOUR)), rows)
    return found


# ---- claims --------------------------------------------------------------------------------------------------------


def _mean_share(peaks: Sequence[Peak], part: str) -> float:
    return mean(one.of(part) / one.physical for one in peaks)


def _check_memory(page: Page, peaks: dict[str, list[Peak]]) -> None:
    wasted = {label: _mean_share(peaks[label], "fragments") for label in FOUR}
    low, high = min(wasted.values()), max(wasted.values())
    page.claim(
        "all allocators have less than 0.5 % fragmentation",
        "0.30–0.47 %",
        f"{percent(low, 2)} to {percent(high, 2)} on average",
        high < 0.005,
    )
    used = {label: _mean_share(peaks[label], "used") for label in FOUR}
    page.claim(
        "more than 97.8 % of the memory store user data",
        "97.8 %",
        f"{percent(min(used.values()), 1)} to {percent(max(used.values()), 1)}",
        min(used.values()) > 0.978,
    )
    headers = max(_mean_share(peaks[label], "headers") for label in FOUR)
    page.claim("the worst needs 1.8 % for headers", "1.8 %", percent(headers, 2), headers < 0.0185)
    for slow, fast in ((FIRST_SLOW, FIRST_FAST), (BEST_SLOW, BEST_FAST)):
        apart = max(abs(a.physical - b.physical) for a, b in zip(peaks[slow], peaks[fast], strict=True))
        page.claim(
            f"{slow.split(',')[0]} needs the same memory with slow and fast free",
            "the same",
            f"at most {apart} bytes apart",
            apart == 0,
        )
    first, best = wasted[FIRST_FAST], wasted[BEST_FAST]
    fewer = sum(a.fragments < b.fragments for a, b in zip(peaks[FIRST_FAST], peaks[BEST_FAST], strict=True))
    page.claim(
        "first fit has fewer fragments than best fit",
        "0.30 % and 0.47 %",
        f"{percent(first, 2)} and {percent(best, 2)}; fewer with {fewer} of {len(SEEDS)} seeds",
        first < best,
    )
    page.claim(
        "Johnstone and Wilson's 0.91 % (first fit) and 0.98 % (best fit) are in good agreement",
        "0.3 % and 0.5 %",
        f"{percent(first, 2)} and {percent(best, 2)}",
        max(first, best) < 0.02,
    )


def _check_times(page: Page, responses: dict[str, Response], trace: Trace) -> None:
    measures: list[tuple[str, Callable[[Response, str], float | None]]] = [
        ("host ticks", lambda one, kind: _ticks(one, trace.op == (MALLOC if kind == "malloc" else FREE))),
        ("instructions", lambda one, kind: one.instructions(kind)),
    ]
    for unit, of in measures:
        values = {(label, kind): of(responses[label], kind) for label in FOUR for kind in ("malloc", "free")}
        known = {key: value for key, value in values.items() if value is not None}
        if len(known) == len(values):
            _check_order(page, unit, known)
    swap = {label: _swap_instructions(responses[label], trace) for label in FOUR}
    if all(value is not None for value in swap.values()):
        gain = {
            fast: (swap[fast] or 0) - (swap[slow] or 0)
            for slow, fast in ((FIRST_SLOW, FIRST_FAST), (BEST_SLOW, BEST_FAST))
        }
        page.claim(
            "slow free is faster when swapping",
            "by 5.5 and 5.9 µs",
            f"fast free takes {gain[FIRST_FAST]:+,.0f} and {gain[BEST_FAST]:+,.0f} instructions a swap",
            min(gain.values()) > 0,
        )
        dearest = [_dearest_free(responses[label]) for label in (FIRST_FAST, BEST_FAST)]
        slow = [_dearest_free(responses[label]) for label in (FIRST_SLOW, BEST_SLOW)]
        page.claim(
            "fast free takes constant time",
            "constant",
            f"at most {dearest[0]} and {dearest[1]} instructions; slow free {slow[0]:,} and {slow[1]:,}",
            max(value or 0 for value in dearest) < 100,
        )


def _check_order(page: Page, unit: str, values: dict[tuple[str, str], float]) -> None:
    total = {label: values[label, "malloc"] + values[label, "free"] for label in FOUR}
    order = sorted(total, key=lambda label: total[label])
    theirs = sorted(FOUR, key=lambda label: TABLE_2["total"][list(FOUR).index(label)])
    page.claim(
        f"first fit with fast free is the fastest ({unit})",
        "3.13 µs, next 3.60 µs",
        "; ".join(f"{label} {total[label]:,.0f}" for label in order),
        order[0] == FIRST_FAST,
    )
    page.claim(f"the order of all four ({unit})", " < ".join(theirs), " < ".join(order), order == theirs)
    for slow, fast, ratio in ((FIRST_SLOW, FIRST_FAST, 1.28 / 0.24), (BEST_SLOW, BEST_FAST, 1.42 / 0.36)):
        ours = values[slow, "free"] / values[fast, "free"]
        page.claim(
            f"fast free frees significantly faster ({slow.split(',')[0]}, {unit})",
            f"{ratio:.1f} times",
            f"{ours:.1f} times",
            ours > 2,
        )
    for first, best in ((FIRST_SLOW, BEST_SLOW), (FIRST_FAST, BEST_FAST)):
        page.claim(
            f"first fit takes less time than best fit ({first.split(', ')[1]}, {unit})",
            f"{TABLE_2['total'][list(FOUR).index(first)]} and {TABLE_2['total'][list(FOUR).index(best)]} µs",
            f"{total[first]:,.0f} and {total[best]:,.0f}",
            total[first] < total[best],
        )


def _check_code(page: Page, codes: dict[str, Any]) -> None:
    if any(code is None for code in codes.values()):
        return
    size = {label: codes[label]["O0"].text + codes[label]["O0"].data for label in FOUR}
    small = {label: codes[label]["Os"].text + codes[label]["Os"].data for label in FOUR}
    page.claim(
        "the largest module is less than 3.3 Kbytes",
        "3,297 bytes",
        f"{max(size.values()):,} bytes at -O0, {max(small.values()):,} at -Os",
        max(size.values()) < 3300,
    )
    more = [size[fast] - size[slow] for slow, fast in ((FIRST_SLOW, FIRST_FAST), (BEST_SLOW, BEST_FAST))]
    less = [small[fast] - small[slow] for slow, fast in ((FIRST_SLOW, FIRST_FAST), (BEST_SLOW, BEST_FAST))]
    page.claim(
        "fast free needs about 470 bytes more",
        "472 bytes",
        f"{more[0]:+d} and {more[1]:+d} bytes at -O0, {less[0]:+d} and {less[1]:+d} at -Os",
        min(more) > 0,
    )


def _check_future(page: Page, scaled: list[Scaled], refused: list[tuple[int, int]]) -> None:
    first, last = scaled[0].instances, scaled[-1].instances
    growth = {
        label: next(one.accesses for one in scaled if one.heap == label and one.instances == last)
        / next(one.accesses for one in scaled if one.heap == label and one.instances == first)
        for label in heaps()
    }
    page.claim(
        "(future work) do the four scale?",
        "“of interest”",
        f"from {first} to {last} instances accesses a call grow "
        f"{min(growth[label] for label in FOUR):.0f} to {max(growth[label] for label in FOUR):.0f} times",
        max(growth[label] for label in FOUR) < 2,
    )
    page.claim(
        "(future work) a search structure over free blocks speeds the search up",
        "“could”",
        f"indexed sizes: {growth[INDEXED]:.1f} times the accesses; linked free blocks: {growth[LINKED]:.1f} times",
        growth[INDEXED] < min(growth[label] for label in FOUR),
    )
    failed = sum(count for count, _ in refused)
    page.claim(
        "(future work) a guard by priority keeps requests from failing",
        "“untouched”",
        f"{failed} requests failed in {len(refused)} runs with short memory",
        failed == 0,
    )

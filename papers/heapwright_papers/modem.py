"""A multi-channel modem concentrator: Tables 1 to 3, Figure 5, and what the paper leaves as future work.

Peintner, Bukhatwa and Patel, "Analysing dynamic memory allocation in embedded systems for multi-channel modems".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from heapwright import zoo
from heapwright_papers import measuring, modem_pictures, modem_runs
from heapwright_papers.answers import percent
from heapwright_papers.case_study import mutants
from heapwright_papers.measuring import cell, code_bytes
from heapwright_papers.modem_runs import (
    BEST_FAST,
    BEST_SLOW,
    CALLS,
    COALESCE,
    FIRST_FAST,
    FIRST_SLOW,
    FITS,
    FOUR,
    FULL,
    INSTANCES,
    LEVELS,
    SEEDS,
    SPLITS_OF,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    Results,
    Scaled,
    crucial,
    heaps,
    measure,
)
from heapwright_papers.page import Page

PAPER = "Peintner, Bukhatwa and Patel"

_INTRODUCTION = """\
{paper} compare four allocators on a model of a modem concentrator, whose unit sizes and times are unpublished. Ours is
`heapwright workload modem`: five instances, {calls:,} calls, the protocols and restrictions of section 2; block sizes
were set before any allocator ran on them, so that five connected instances hold about what Table 1 shows (133 blocks
and 29,788 bytes there; {blocks} blocks and {used:,} bytes here). It is synthetic, and not tuned to the allocators.
Numbers are means over seeds {seeds}; ranges are in brackets.

The four allocators are `{zoo}` of the zoo. The paper's column heads all say “slow free” in Table 1; as in its other
tables they are taken to alternate."""

_TABLE_2 = """\
## Table 2: response times

The paper's times are those of its simulation, which nobody can repeat: their order and ratios can be compared.
*Instructions* are those of a {cpu}, executed by an emulator (seed 1). *Crucial state*: at least {full} of the most live
blocks are live, {share} of the calls. The last two columns are the search trees of the section below.

The paper does not define `swap()`. Here one unit of a call replaces another, {swaps:,} times in the run: the outgoing
unit's blocks are freed, the incoming one's are taken, and the instance's context, all that it holds, is copied. At
{connected} of the swaps the line of a connected call got worse: then an instance holds {context:,.0f} bytes. At the
others it holds little but what it negotiates with; the mean of all is {mean:,.0f} bytes. A byte takes {copy}
instructions, as in the copy of a realloc that moves. The paper's four values differ by few microseconds: some 120 of
the 129 to 144 are no allocator's. That is what copying one instance's 6 KB at 50 MB/s takes, and so is most of our swap
of a connected call."""

_LENGTH = """\
## Deferred coalescing, by the length of the run

The paper leaves deferred coalescing out because of what others measured (4.3.3), and does not tell how long its run is.
Both matter. What a run needs is the most over the whole run, so it grows with its length. Here freed blocks are marked
and left; when a search has found nothing, all neighbours are merged and it is repeated. Without boundary tags the
paper's immediate coalescing walks to the block before the freed one; deferred coalescing has nothing to look for."""

_TREES = """\
## Search trees of free blocks

“Link fields to build up hidden search trees” (section 6) let a search skip used blocks, and all free ones but a path.
Both fits with `free_list = "tree"` ([recipes](../recipes.md#a-search-tree)), boundary tags and immediate coalescing:
for a best fit ordered by size; for a first fit by address, with the largest block at the root. Two links and a tag in a
free block make the smallest block 16 bytes, not 8. Each instance has its share of the memory and 100 calls; seed 1.

Accesses of metadata a call, mean:"""


def page(packets: Path | None, progress: Callable[[str], None], calls: int = CALLS, most: int = INSTANCES[-1]) -> Page:
    """Tables 1 to 3, Figure 5, deferred coalescing, and search trees with up to `most` instances; no packets."""
    results = measure(progress, calls, most)
    made = Page("modem", "Four allocators in a modem concentrator", PAPER)
    for seed, trace in zip(SEEDS, results.traces, strict=True):
        made.traffic(f"workload modem, seed {seed}", trace)
    made.text(
        _INTRODUCTION.format(
            paper=PAPER,
            calls=calls,
            blocks=max(trace.peak_live_objects for trace in results.traces),
            used=max(trace.peak_live_bytes for trace in results.traces),
            seeds=f"{SEEDS[0]} to {SEEDS[-1]}",
            zoo="`, `".join(FOUR.values()),
        )
    )
    _table_1(made, results)
    _table_2(made, results)
    _table_3(made, results)
    _lengths(made, results)
    _trees(made, results)
    made.judge(_names(results))
    progress("modem: other allocators in the places of the paper's")
    others = {name: modem_runs.other(recipe, results) for name, recipe in mutants("modem").items()}
    made.mutate(others, lambda place, one: _names(results.with_other(place, one)))
    return made


NO_TOOLS = "no cross compiler or emulator here"


def _names(results: Results) -> dict[str, Any]:
    """What the statements' expressions see: the results, and the constants of the runs."""
    longest = max(one.calls for one in results.lengths)
    codes = {level: {label: code_bytes(results.codes[label], level) for label in FOUR} for level in LEVELS}
    return {
        **{name: value for name, value in vars(modem_runs).items() if name.isupper()},
        **vars(results),
        "length": results.length,
        "mean_share": results.mean_share,
        "PAIRS": ((FIRST_SLOW, FIRST_FAST), (BEST_SLOW, BEST_FAST)),
        "reach": zoo(FOUR[FIRST_FAST]).reach or 1 << 31,
        "calls": min(longest, CALLS),
        "no_times": NO_TOOLS if any(one.whole is None for one in results.responses.values()) else "",
        "no_codes": NO_TOOLS if any(one is None for one in results.codes.values()) else "",
        "codes": codes,
        "dearest": {label: one.dearest_free() for label, one in results.responses.items()},
        "usual": {label: results.responses[label].instructions("free") for label in FOUR},
        "total": {label: results.responses[label].total() for label in FOUR},
    }


# ---- Table 1 and Figure 5 ------------------------------------------------------------------------------------------


def _table_1(page: Page, results: Results) -> None:
    page.text(
        "## Table 1: use of main memory\n\nBytes of the smallest heap that serves the whole run, at the first time "
        "when most is live. *Control* is what our heaps keep besides the blocks: where they end, and the like."
    )
    rows = []
    for row in ("physical size", "effective used", "headers", "control", "fragments"):
        found = [[one.of(row) for one in results.peaks[label]] for label in FOUR]
        ours = [f"{mean(values):,.0f} [{min(values):,}–{max(values):,}]" for values in found]
        rows.append([row, *map(cell, TABLE_1.get(row, [None] * len(FOUR))), *ours])
    wasted = [[one.fragments / one.physical for one in results.peaks[label]] for label in FOUR]
    share = [f"{percent(mean(of), 2)} [{percent(min(of), 2)}–{percent(max(of), 2)}]" for of in wasted]
    theirs = [
        percent(part / whole, 2) for part, whole in zip(TABLE_1["fragments"], TABLE_1["physical size"], strict=True)
    ]
    rows.append(["fragments of memory", *theirs, *share])
    page.table(("", *(f"the paper: {label}" for label in FOUR), *(f"here: {label}" for label in FOUR)), rows)
    page.text("### Figure 5")
    page.figure(modem_pictures.memory(results))


# ---- Tables 2 and 3 ------------------------------------------------------------------------------------------------


def _table_2(page: Page, results: Results) -> None:
    swaps, trace = results.swaps, results.traces[0]
    page.text(
        _TABLE_2.format(
            cpu=measuring.CPU,
            full=percent(FULL),
            share=percent(crucial(trace).mean()),
            swaps=len(swaps.contexts),
            connected=int(swaps.connected.sum()),
            context=swaps.context(True) if swaps.connected.any() else 0.0,
            mean=swaps.context(False),
            copy=cell(swaps.copy, 1),
        )
    )
    found = results.responses
    dashes = ["–"] * (len(found) - len(FOUR))
    rows: list[list[str]] = []
    for key, theirs in TABLE_2.items():
        rows.append([f"the paper: {key}, µs", *(f"{value:.2f}" for value in theirs), *dashes])
    for kind in ("malloc", "free"):
        rows.append([f"instructions: {kind}", *(cell(one.instructions(kind), 1) for one in found.values())])
        full = (cell(one.instructions(kind, crucial=True), 1) for one in found.values())
        rows.append([f"… in the crucial state: {kind}", *full])
    rows.append(["instructions: dearest free", *(cell(one.dearest_free()) for one in found.values())])
    rows.append(["instructions: total", *(cell(one.total(), 1) for one in found.values())])
    for connected, name in ((False, "swap"), (True, "swap of a connected call")):
        rows += _swap_rows(name, results, connected)
    rows.append(["accesses of metadata a call", *(f"{one.accesses:.1f}" for one in found.values())])
    page.table(("", *found), rows)
    if all(one.whole is not None for one in found.values()):
        page.figure(modem_pictures.times(found))


def _swap_rows(name: str, results: Results, connected: bool) -> list[list[str]]:
    """What a swap takes in the allocator, what the copy takes, and both."""
    if connected and not results.swaps.connected.any():
        return []
    copied = results.swaps.copied(connected)
    inside = [results.swaps.allocator(one, connected) for one in results.responses.values()]
    both = (None if one is None or copied is None else one + copied for one in inside)
    return [
        [f"instructions: {name}, allocator", *map(cell, inside)],
        [f"instructions: {name}, copy", *(cell(copied) for _ in inside)],
        [f"instructions: {name}", *map(cell, both)],
    ]


def _table_3(page: Page, results: Results) -> None:
    page.text(
        "## Table 3: size of the allocator\n\nBytes. Ours are `malloc` and `free` with what they call, generated for a "
        f"{measuring.CPU} and linked; the paper tells neither processor nor compiler options."
    )
    codes = results.codes
    dashes = ["–"] * (len(codes) - len(FOUR))
    rows: list[list[str]] = []
    for part, theirs in TABLE_3.items():
        rows.append([f"the paper: {part}", *map(cell, theirs), *dashes])
    rows.append(["the paper: sum", *(cell(sum(parts)) for parts in zip(*TABLE_3.values(), strict=True)), *dashes])
    for level in LEVELS:
        for part in TABLE_3:
            found = [None if one is None else getattr(one[level], part) for one in codes.values()]
            rows.append([f"here, -{level}: {part}", *map(cell, found)])
    page.table(("", *codes), rows)


# ---- beyond the paper ----------------------------------------------------------------------------------------------


def _lengths(page: Page, results: Results) -> None:
    page.text(_LENGTH)
    counts = list(dict.fromkeys(one.calls for one in results.lengths))
    header = ("", *(f"{count:,} calls" for count in counts))
    fragments, accesses = [], []
    for fit, name in FITS.items():
        for merge in COALESCE:
            ways = [results.length(count, fit, merge) for count in counts]
            fragments.append([f"{name}, {merge}", *(percent(mean(one.share("fragments")), 2) for one in ways)])
            accesses.append([f"{name}, {merge}", *(f"{mean(one.accesses):.1f}" for one in ways)])
    page.text("Fragments of memory, means over the seeds:")
    page.table(header, fragments)
    page.text("Accesses of metadata a call, means over the seeds:")
    page.table(header, accesses)
    page.figure(modem_pictures.deferred(results.lengths))
    page.text(
        f"In a run of {SPLITS_OF} calls (seed 1, first fit) {percent(results.splits['immediate'])} of the mallocs "
        f"split a block under immediate coalescing, {percent(results.splits['deferred'])} under deferred: there blocks "
        "of the sizes that come again lie ready."
    )


def _trees(page: Page, results: Results) -> None:
    page.text(_TREES)
    labels = tuple(heaps())
    shown: list[tuple[str, Callable[[Scaled], str]]] = [
        ("", lambda one: f"{one.accesses:.1f}"),
        ("Accesses of the dearest call:", lambda one: f"{one.worst:,}"),
        ("Memory beyond what was asked for (headers, control data, fragments):", lambda one: percent(one.overhead, 1)),
    ]
    for what, show in shown:
        if what:
            page.text(what)
        rows = []
        for count in dict.fromkeys(one.instances for one in results.scaled):
            of = {one.heap: one for one in results.scaled if one.instances == count}
            rows.append([count, f"{of[labels[0]].blocks:,}", *(show(of[label]) for label in labels)])
        page.table(("instances", "most live blocks", *labels), rows)
    page.figure(modem_pictures.trees(results.scaled, labels))

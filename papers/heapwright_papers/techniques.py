"""Tables 1 and 2: which technique the allocators use, and what each of the four does to memory and speed.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance", sections 3 to 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import heapwright as hw
from heapwright_papers import mixes, techniques_answers
from heapwright_papers.case_study import MIX, PAPER, REAL, SYSTEMS, stand_ins, system
from heapwright_papers.page import ALIGN, Page
from heapwright_papers.techniques_answers import NONE_WITHIN, SINGLE_WITHIN, TABLE_1, TABLE_2, shown
from heapwright_papers.techniques_grid import ANY, BEST, FIRST, PROPOSED, Beside, Grid, changes, together
from heapwright_papers.traffic import marked, packet_tables

if TYPE_CHECKING:
    from heapwright import PacketTable, Trace, figure

PACKETS, NETWORKS, FORMS = 1_500, 3, 3
LEAST_PACKETS_LOOKED_AT = 50_000
WORKLOADS = ("drr", "easyport", "url")
DOMINANT = {"drr": (40, 1500), "easyport": (52, 1500), "url": (40, 1500)}
"""Bytes of the two most frequent IP packets of the paper's mix, by application."""
WIDTH = 540
"""Pixels: at the width of a phone the words are still three quarters of their size."""

_INTRODUCTION = """\
{paper} sum up what they learnt from exploring about 10,000 allocators in each of three applications. Here the same
grid, every combination of ten levels of freelists, fit, splitting and coalescing (fewer where the traffic has fewer
sizes), runs on the three applications, {packets:,} packets each, under two kinds of traffic:

- **{real}**: {networks}, those of the folder with most distinct sizes of IP packets; the paper's traces are not to be
  had. {recipes:,} replays of the whole grid.
- **{mix}** of sizes, as on [the page about DRR](drr-details.html#the-papers-own-mix): {forms}, {seeds} seeds of
  each. {thinned:,} replays, of four to six levels of each technique."""

_METHOD = """\
## Table 2: what each technique does

For every pair of allocators that differ in one technique alone, full use against none, the change in memory lost inside
blocks and between them and in accesses of the allocator to its own data, as geometric means over all pairs and traces:
of (requested + internal) and of (requested + external), over requested, when the footprint is largest, and of accesses
a call. Performance is the inverse of accesses. Up to {none} % is "None", up to {single} % one sign, more two. Freelists
are two against none; best fit against first fit, both over one list; splitting always against never; coalescing at once
against never. The paper gives no numbers, and its four rows without a technique are the opposite of those with it.
*All* is the geometric mean over the three applications, of which url has three sizes in three lists and little else; a
statement holds where that and the median of the three have the paper's sign."""

_REASONS = """\
Why signs differ, as far as it is known:

- The paper does not say when it measures internal and external fragmentation; ours are the parts of the footprint when
  that is largest. What an unsplit block wastes is internal here; had it been split, the rest may lie free beside it,
  which is external.
- Where blocks are cut to size, best fit finds nothing inside them to save. What it saves, if anything, lies between
  blocks: it leaves large holes whole.
- The first table is over the whole grid, also over heaps without coalescing, in which a freed block waits for its size
  with a freelist or without. Around the design that the paper proposes, in the second table, it makes a difference.
- Merged blocks are handed out whole where they are not split, and what was split stays apart where it is not merged.
- In url a block that can be merged needs a header and a tag when free, so the smallest block grows and the list node of
  8 bytes wastes more: the rise of internal fragmentation by coalescing. Its three sizes leave little to split or merge.
- Techniques depend on each other, as the paper says: without coalescing lists grow, and every search with them."""

Grids = Mapping[str, Sequence[Grid]]


def page(packets: Path | None, progress: Callable[[str], None]) -> Page:
    """Tables 1 and 2, with the curves behind them.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`, or where no table holds enough IP packets.
    """
    tables = stand_ins(packet_tables(packets), LEAST_PACKETS_LOOKED_AT, NETWORKS)
    made = Page("techniques", "What each technique does", PAPER)
    for name, table in tables.items():
        made.traffic(name, table)
    traces = {**({REAL: _real(tables)} if tables else {}), MIX: _mix(made)}
    found: dict[str, dict[str, list[Grid]]] = {on: {} for on in traces}
    for on, of in traces.items():
        for name, some in of.items():
            progress(f"techniques: {name}, {on}")
            found[on][name] = Grid.of(some, thinned=on == MIX)
    count = {on: sum(grid.recipes for some in of.values() for grid in some) for on, of in found.items()}
    told = {"paper": PAPER, "real": REAL, "mix": MIX, "networks": ", ".join(map(marked, tables)), "packets": PACKETS}
    told |= {"recipes": count.get(REAL, 0), "thinned": count[MIX], "seeds": len(mixes.SEEDS)}
    made.text(_INTRODUCTION.format(**told, forms=", ".join(mix.name for mix in mixes.mixes((40, 1500), FORMS))))
    _table_1(made)
    _table_2(made, found)
    made.text("## From none to full")
    for name in WORKLOADS:
        on, grids = next(iter(found.items()))
        made.figure(_paths(name, grids[name], on))
    made.judge(techniques_answers.names(found, traces.get(REAL)))
    return made


def _real(tables: Mapping[str, PacketTable]) -> dict[str, list[Trace]]:
    return {name: [hw.workload(name, table, count=PACKETS) for table in tables.values()] for name in WORKLOADS}


def _mix(made: Page) -> dict[str, list[Trace]]:
    traces = {}
    for name in WORKLOADS:
        forms = mixes.mixes(DOMINANT[name], FORMS)
        drawn = {(mix.name, seed): mix.packets(PACKETS, seed) for seed in mixes.SEEDS for mix in forms}
        traces[name] = [hw.workload(name, table, rate=mixes.RATE) for table in drawn.values()]
        if DOMINANT[name] == DOMINANT["drr"]:
            for (form, seed), table in drawn.items():
                made.traffic(f"{form}, seed {seed}", table)
    return traces


def _table_1(page: Page) -> None:
    page.text("## Table 1: which techniques the allocators of operating systems use")
    rows = [[name, TABLE_1[name], system(name).summary(ALIGN)] for name in SYSTEMS]
    page.table(("allocator", "the paper", "ours"), rows, words=3)
    page.text(
        "Where they differ: our Windows CE has one implicit list that is searched from the last block freed, which is "
        "what its documentation says and what LIFO comes to; it merges while it searches. Our Lea merges and splits "
        "what is larger than its quick lists, and never what lies in these."
    )


# ---- Table 2 ---------------------------------------------------------------------------------------------------------


def _table_2(page: Page, found: Mapping[str, Grids]) -> None:
    page.text(_METHOD.format(none=round(100 * NONE_WITHIN), single=round(100 * SINGLE_WITHIN)))
    _changes_table(page, found, ANY)
    page.text(
        "The same with the three other techniques as the paper proposes them (two freelists, first fit, full use):"
    )
    _changes_table(page, found, PROPOSED)
    page.text(_REASONS)


def _changes_table(page: Page, found: Mapping[str, Grids], beside: Beside) -> None:
    short = {REAL: "real", MIX: "mix"}
    header = ["technique", "effect on", "the paper"]
    header += [f"{name}, {short[on]}" for on in found for name in (*found[on], "all")]
    rows = []
    for technique, signs in TABLE_2.items():
        of = {on: [changes(some, technique, beside) for some in grids.values()] for on, grids in found.items()}
        for effect, theirs in signs.items():
            row = [technique, effect, theirs]
            for each in of.values():
                row += [shown(one[effect] if one else None) for one in each] + [shown(together(each, effect))]
            rows.append(row)
    page.table(header, rows, words=3)


# ---- figures ---------------------------------------------------------------------------------------------------------

_COLOURS = {"freelists": "#0072B2", "best fit": "#D55E00", "split": "#009E73", "coalesce": "#CC79A7"}
"""Of Okabe and Ito, who chose them to be told apart with every colour blindness; shapes differ as well."""
_WORDS = {"freelists": "freelists", "best fit": "best fit", "split": "splitting", "coalesce": "coalescing"}
_SHAPES = {"freelists": "circle", "best fit": "square", "split": "triangle-up", "coalesce": "diamond"}


def _steps(grid: Grid) -> dict[str, tuple[str, list[int]]]:
    """The levels of each technique from none to full, those that form a scale."""
    fits = [FIRST, *(at for at, fit in enumerate(hw.families.FITS) if "search_percent" in fit), BEST]
    return {
        "freelists": ("freelists", list(range(grid.last("freelists") + 1))),
        "best fit": ("fit", fits),
        "split": ("split", list(range(grid.last("split"), -1, -1))),
        "coalesce": ("coalesce", [grid.last("coalesce"), *range(3, -1, -1)]),
    }


def _paths(name: str, grids: Sequence[Grid], on: str) -> figure.Figure:
    import altair as alt

    from heapwright import figure

    rows = [row for technique in TABLE_2 for row in _path(grids, technique)]
    colour = alt.Color("technique:N", scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())))
    shape = alt.Shape("technique:N", scale=alt.Scale(domain=list(_SHAPES), range=list(_SHAPES.values())))
    base = figure.inline(rows).encode(
        x=_fitted("accesses", "accesses a call, geometric mean", rows),
        y=_fitted("memory", "memory beyond what is requested, %", rows),
        color=colour,
    )
    lines = base.mark_line(strokeWidth=2).encode(order="step:Q")
    points = base.mark_point(filled=True, opacity=1).encode(
        shape=shape, size=alt.condition("datum.step == datum.last", alt.value(190), alt.value(40))
    )
    memory, accesses = (_WORDS[_most(rows, field)] for field in ("memory", "accesses"))
    title = f"{name}: most memory is saved by {memory}, most accesses by {accesses}"
    note = (
        "Each path leads from none of a technique to its full use, the large mark, as the mean over all levels of the "
        f"other three and over {'the ' * (on == REAL)}{on}."
    )
    return figure.Figure(f"techniques-{name}", title, note, alt.layer(lines, points).properties(height=340), WIDTH)


def _fitted(field: str, title: str, rows: Sequence[dict[str, Any]]) -> Any:
    """An axis just as long as its values need."""
    import altair as alt

    values = [float(row[field]) for row in rows]
    margin = 0.06 * (max(values) - min(values))
    domain = [min(values) - margin, max(values) + margin]
    key = {"accesses": alt.X, "memory": alt.Y}[field]
    return key(f"{field}:Q", title=title, scale=alt.Scale(domain=domain, nice=False), axis=alt.Axis(tickCount=7))


def _most(rows: Sequence[dict[str, Any]], field: str) -> str:
    """The technique whose full use takes least of something in comparison with none of it."""
    ends = {
        technique: [row[field] for row in rows if row["technique"] == technique and row["step"] in (0, row["last"])]
        for technique in TABLE_2
    }
    return min(ends, key=lambda technique: ends[technique][-1] - ends[technique][0])


def _path(grids: Sequence[Grid], technique: str) -> list[dict[str, Any]]:
    """A row for each step; grids are left out of the levels that they lack."""
    attribute, steps = _steps(grids[0])[technique]
    known = [[log for grid in grids for log in grid.level_means(attribute, level)] for level in steps]
    logs = [of for of in known if of]
    rows = []
    for step, of in enumerate(logs):
        memory, accesses = np.exp(np.mean(of, axis=0))
        point = {"memory": 100 * (float(memory) - 1), "accesses": float(accesses)}
        rows.append({"technique": technique, "step": step, "last": len(logs) - 1, **point})
    return rows

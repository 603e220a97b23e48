"""Tables 1 and 2: which technique the allocators use, and what each of the four does to memory and speed.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance", sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heapwright.explore.families import FITS, Techniques, technique_grid
from heapwright.explore.search import explore
from heapwright.explore.space import Space
from heapwright.explore.study import Study
from heapwright.files.temporary import temporary_folder
from heapwright.papers.case_study import PAPER, SYSTEMS, stand_ins
from heapwright.papers.page import ALIGN, Page
from heapwright.papers.traffic import packet_tables
from heapwright.workloads.drr import drr
from heapwright.workloads.easyport import easyport
from heapwright.workloads.url import url
from heapwright.zoo.catalogue import load

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from heapwright.report.figure import Figure
    from heapwright.traces.trace import Trace

PACKETS, NETWORKS = 3_000, 3
LEAST_PACKETS_LOOKED_AT = 50_000
NONE_WITHIN, SINGLE_WITHIN = 0.01, 0.10
"""A change of up to 1 % is "none", of up to 10 % one sign, of more two."""

TABLE_1 = {
    "Windows CE": "one heap of singly linked blocks, LIFO; first fit; merged on every allocation or free",
    "Windows XP": "127 freelists of 8-byte steps to 1024 bytes, larger blocks in a doubly linked FIFO list; first fit; "
    "full splitting and coalescing",
    "Linux": "Lea 2.7.2: up to 128 freelists; best fit; splitting and coalescing from 0 % for small blocks to "
    "100 % for large ones",
    "Enea OSE": "8 freelists and no main heap; best fit; neither splitting nor coalescing",
    "uClinux": "powers of two to 4 KB, whole pages above; two freelists; neither splitting nor coalescing",
}

TABLE_2 = {
    "freelists": ("--", "+", "++"),
    "best fit": ("--", "None", "--"),
    "split": ("--", "None", "--"),
    "coalesce": ("None", "--", "+"),
}
"""Internal and external fragmentation and performance when a technique is used; the other four rows of the paper's
table, without the technique, are the opposite.
"""

FIRST, BEST = FITS.index({"fit": "first"}), FITS.index({"fit": "best"})
WORKLOADS: dict[str, Callable[..., Trace]] = {"drr": drr, "easyport": easyport, "url": url}

_INTRODUCTION = """\
{paper} sum up what they learnt from exploring about 10,000 allocators in each of three applications. Here the same
grid, every combination of ten levels of freelists, fit, splitting and coalescing (fewer where the traffic has fewer
sizes), runs on the three applications under the traffic of {networks}, {packets:,} packets each: {recipes:,} replays in
{seconds:.0f} seconds. These networks stand in for the paper's, which are not to be had; they are those of the folder
with most distinct sizes of IP packets."""

_METHOD = """\
## Table 2: what each technique does

For every pair of allocators that differ in one technique alone, full use against none, the change in memory lost inside
blocks and between them and in accesses of the allocator to its own data, as geometric means over all pairs and
networks: of (requested + internal) and of (requested + external), over requested, when the footprint is largest, and of
accesses a call. Performance is the inverse of accesses. Up to {none} % is "None", up to {single} % one sign, more two.
Freelists are two against none; best fit against first fit, both over one list; splitting always against never;
coalescing at once against never. The paper gives no numbers, and its four rows without a technique are the opposite of
those with it. A claim holds where the geometric mean over the three applications has the paper's direction."""

_REASONS = """\
Why signs differ, as far as it is known:

- The paper does not say when it measures internal and external fragmentation; ours are the parts of the footprint when
  that is largest. What an unsplit block wastes is internal here; had it been split, the rest may lie free beside it,
  which is external.
- Where blocks are cut to size, best fit finds nothing inside them to save. What it saves, if anything, lies between
  blocks: it leaves large holes whole.
- The first table is over the whole grid, also over heaps without coalescing, in which a freed block waits for its size
  with a freelist or without. Around the design that the paper proposes, in the second table, it makes a difference.
  The figures show how much the size matters that the next list is for.
- In url a block that can be merged needs a header and a tag when free, so the smallest block grows and the list node of
  8 bytes wastes more: the rise of internal fragmentation by coalescing. Its three sizes leave little to split or merge.
- Techniques depend on each other, as the paper says: without coalescing lists grow, and every search with them."""


@dataclass(frozen=True)
class Grid:
    """One network's trace under every recipe of the grid: for each its levels, and float64[recipes] columns.

    `internal`, `external` and `memory` are over the bytes requested, at the peak; `accesses` are a call.
    """

    rows: Mapping[Techniques, int]
    internal: NDArray[np.float64]
    external: NDArray[np.float64]
    memory: NDArray[np.float64]
    accesses: NDArray[np.float64]
    served: NDArray[np.bool_]
    evaluations: int
    seconds: float

    @classmethod
    def explore(cls, trace: Trace) -> Grid:
        """Replay the whole grid, none of it given up early."""
        recipes = {levels: recipe.canonical() for levels, recipe in technique_grid([trace], ALIGN).items()}
        with temporary_folder("papers") as folder:
            space = Space([recipes.values()], align=ALIGN, move_zoo=False)
            found = explore([trace], space, study_path=folder / "study.duckdb")
            with Study.open(found.study) as study:
                results = study.combined
        at = {id: row for row, id in enumerate(results.ids)}
        columns, peak = results.columns, trace.peak_live_bytes
        return cls(
            {levels: at[recipe.hash] for levels, recipe in recipes.items()},
            1 + columns["internal_bytes"] / peak,
            1 + columns["external_bytes"] / peak,
            columns["footprint_bytes"] / peak,
            columns["accesses"] / len(trace),
            columns["failed"] == 0,
            found.evaluations,
            found.seconds,
        )

    def levels(self, technique: str) -> int:
        """The highest level of a technique."""
        return max(int(getattr(levels, technique)) for levels in self.rows)

    def pairs(self, technique: str, without: int, used: int, base: Techniques | None = None) -> NDArray[np.int64]:
        """int64[pairs, 2]: rows that differ in one technique alone, without it and with it; those beside `base`."""
        found = [
            (row, self.rows[levels._replace(**{technique: used})])
            for levels, row in self.rows.items()
            if getattr(levels, technique) == without
            and (base is None or levels == base._replace(**{technique: without}))
        ]
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return pairs[self.served[pairs].all(axis=1)]

    def change(self, column: str, pairs: NDArray[np.int64]) -> float:
        """The mean of log(with / without)."""
        values = getattr(self, column)[pairs]
        return float(np.log(values[:, 1] / values[:, 0]).mean())

    def level_means(self, technique: str, level: int) -> list[tuple[float, float]]:
        """Means of log(memory) and log(accesses) over the recipes with this level; empty where there is none."""
        rows = np.array([row for levels, row in self.rows.items() if getattr(levels, technique) == level], np.int64)
        rows = rows[self.served[rows]]
        if not len(rows):
            return []
        return [(float(np.log(self.memory[rows]).mean()), float(np.log(self.accesses[rows]).mean()))]


Grids = Mapping[str, Sequence[Grid]]


def page(packets: Path | None, progress: Callable[[str], None]) -> Page:
    """Tables 1 and 2, with the curves behind them.

    Raises HeapwrightError as `heapwright.papers.packet_tables`, or where no table holds enough IP packets.
    """
    tables = stand_ins(packet_tables(packets), LEAST_PACKETS_LOOKED_AT, NETWORKS)
    grids: dict[str, list[Grid]] = {}
    for name, workload in WORKLOADS.items():
        progress(f"techniques: {name}")
        grids[name] = [Grid.explore(workload(table, count=PACKETS)) for table in tables.values()]
    made = Page("techniques", "What each technique does", PAPER)
    every = [grid for some in grids.values() for grid in some]
    told = {"paper": PAPER, "networks": ", ".join(tables), "packets": PACKETS}
    told |= {"recipes": sum(grid.evaluations for grid in every), "seconds": sum(grid.seconds for grid in every)}
    made.text(_INTRODUCTION.format(**told))
    _table_1(made)
    _table_2(made, grids)
    made.text("## From none to full")
    for name, some in grids.items():
        made.figure(_paths(name, some))
    return made


def _table_1(page: Page) -> None:
    page.text("## Table 1: which techniques the allocators of operating systems use")
    rows = [[name, theirs, load(SYSTEMS[name]).summary(ALIGN)] for name, theirs in TABLE_1.items()]
    page.table(("allocator", "the paper", "ours"), rows)


# ---- Table 2 ---------------------------------------------------------------------------------------------------------


def _contrasts(grid: Grid) -> dict[str, tuple[str, int, int]]:
    """The rows of the table: attribute, level without the technique, level with it."""
    lists = min(2, grid.levels("freelists"))
    return {
        "freelists": ("freelists", 0, lists),
        "best fit": ("fit", FIRST, BEST),
        "split": ("split", grid.levels("split"), 0),
        "coalesce": ("coalesce", grid.levels("coalesce"), 0),
    }


PROPOSED = Techniques(freelists=2, fit=FIRST, split=0, coalesce=0)
"""The levels of the allocator that the paper proposes."""


def _table_2(page: Page, grids: Grids) -> None:
    page.text(_METHOD.format(none=round(100 * NONE_WITHIN), single=round(100 * SINGLE_WITHIN)))
    columns = ("internal", "external", "performance")
    header = ("technique", *(f"{column}, {of}" for column in columns for of in ("the paper", *grids)))
    changes = {technique: [_changes(some, technique, None) for some in grids.values()] for technique in TABLE_2}
    rows = []
    for technique, theirs in TABLE_2.items():
        columns_of = zip(*changes[technique], strict=True)
        cells = [[published, *map(_shown, found)] for published, found in zip(theirs, columns_of, strict=True)]
        rows.append([technique, *(cell for some in cells for cell in some)])
    page.table(header, rows)
    page.text(
        "The same with the three other techniques as the paper proposes them (two freelists, first fit, full use):"
    )
    header = ("technique", *(f"{column}, {name}" for column in columns for name in grids))
    around = []
    for technique in TABLE_2:
        found = [_changes(some, technique, PROPOSED) for some in grids.values()]
        around.append([technique, *(_shown(one[at]) for at in range(len(columns)) for one in found)])
    page.table(header, around)
    page.text(_REASONS)
    _check(page, changes)


Changes = tuple[float, float, float]
"""Of internal and external memory and of performance: with a technique over without, less 1."""


def _changes(grids: Sequence[Grid], technique: str, base: Techniques | None) -> Changes:
    """The geometric means over all pairs and networks; `base` as in `Grid.pairs`."""
    logs = []
    for grid in grids:
        attribute, without, used = _contrasts(grid)[technique]
        around = base and base._replace(freelists=min(base.freelists, grid.levels("freelists")))
        pairs = grid.pairs(attribute, without, used, around)
        if len(pairs):
            logs.append([grid.change(column, pairs) for column in ("internal", "external", "accesses")])
    if not logs:
        return (float("nan"),) * 3
    internal, external, accesses = np.mean(logs, axis=0)
    return float(np.expm1(internal)), float(np.expm1(external)), float(np.expm1(-accesses))


def sign(change: float) -> str:
    """A change as the paper writes it: None, or one or two signs."""
    if abs(change) <= NONE_WITHIN:
        return "None"
    return ("+" if change > 0 else "-") * (1 if abs(change) <= SINGLE_WITHIN else 2)


def _shown(change: float) -> str:
    return "–" if np.isnan(change) else f"{sign(change)} ({100 * change:+.1f} %)"


_EFFECTS = {
    ("freelists", 0): "freelists reduce internal fragmentation",
    ("freelists", 1): "freelists increase external fragmentation",
    ("freelists", 2): "freelists improve performance",
    ("best fit", 0): "best fit has less internal fragmentation than first fit",
    ("best fit", 1): "best fit or first fit has no effect on external fragmentation",
    ("best fit", 2): "first fit performs better than best fit",
    ("split", 0): "splitting reduces internal fragmentation",
    ("split", 1): "splitting has no effect on external fragmentation",
    ("split", 2): "splitting costs performance",
    ("coalesce", 0): "coalescing has no effect on internal fragmentation",
    ("coalesce", 1): "coalescing reduces external fragmentation",
    ("coalesce", 2): "coalescing improves performance",
}


def _check(page: Page, changes: Mapping[str, Sequence[Changes]]) -> None:
    """A cell of the table holds where the geometric mean over the workloads has its direction."""
    for (technique, column), claim in _EFFECTS.items():
        theirs = TABLE_2[technique][column]
        found = [one[column] for one in changes[technique] if not np.isnan(one[column])]
        mean = float(np.expm1(np.mean(np.log1p(found)))) if found else float("nan")
        each = ", ".join(f"{100 * value:+.1f} %" for value in found)
        page.claim(claim, theirs, f"{_shown(mean)}: {each}", bool(found) and sign(mean)[0] == theirs[0])


# ---- figures ---------------------------------------------------------------------------------------------------------

_COLOURS = {"freelists": "#0072B2", "best fit": "#D55E00", "split": "#009E73", "coalesce": "#CC79A7"}
"""Of Okabe and Ito, who chose them to be told apart with every colour blindness; shapes differ as well."""
_SHAPES = {"freelists": "circle", "best fit": "square", "split": "triangle-up", "coalesce": "diamond"}


def _steps(grid: Grid) -> dict[str, tuple[str, list[int]]]:
    """The levels of each technique from none to full, those that form a scale."""
    fits = [FIRST, *(at for at, fit in enumerate(FITS) if "search_percent" in fit), BEST]
    coalescing = grid.levels("coalesce")
    return {
        "freelists": ("freelists", list(range(grid.levels("freelists") + 1))),
        "best fit": ("fit", fits),
        "split": ("split", list(range(grid.levels("split"), -1, -1))),
        "coalesce": ("coalesce", [coalescing, *range(3, -1, -1)]),
    }


def _paths(name: str, grids: Sequence[Grid]) -> Figure:
    import altair as alt

    from heapwright.report.figure import Figure, inline

    rows = [row for technique in TABLE_2 for row in _path(grids, technique)]
    colour = alt.Color("technique:N", scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())))
    shape = alt.Shape("technique:N", scale=alt.Scale(domain=list(_SHAPES), range=list(_SHAPES.values())))
    zero = alt.Scale(zero=False, nice=True)
    base = inline(rows).encode(
        x=alt.X("accesses:Q", title="accesses a call, geometric mean", scale=zero),
        y=alt.Y("memory:Q", title="memory beyond what is requested, %, geometric mean", scale=zero),
        color=colour,
    )
    lines = base.mark_line(strokeWidth=2).encode(order="step:Q")
    points = base.mark_point(size=55, filled=True, opacity=1).encode(
        shape=shape, size=alt.condition("datum.step == datum.last", alt.value(170), alt.value(45))
    )
    title = f"{name}: from none of a technique to its full use"
    note = "Each path is the mean over all levels of the other three techniques; the large mark is full use."
    return Figure(f"techniques-{name}", title, note, alt.layer(lines, points).properties(height=360), 620)


def _path(grids: Sequence[Grid], technique: str) -> list[dict[str, Any]]:
    """A row for each step; networks with fewer levels than the first are left out of those that they lack."""
    attribute, steps = _steps(grids[0])[technique]
    rows = []
    for step, level in enumerate(steps):
        logs = [log for grid in grids for log in grid.level_means(attribute, level)]
        memory, accesses = np.exp(np.mean(logs, axis=0))
        point = {"memory": 100 * (float(memory) - 1), "accesses": float(accesses)}
        rows.append({"technique": technique, "step": step, "last": len(steps) - 1, **point})
    return rows

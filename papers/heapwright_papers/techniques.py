"""Tables 1 and 2: which technique the allocators use, and what each of the four does to memory and speed.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance", sections 3 to 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

import heapwright as hw
from heapwright import FREE, MALLOC, Recipe, Trace, zoo
from heapwright_papers import mixes
from heapwright_papers.answers import NO_PACKETS
from heapwright_papers.case_study import MIX, REAL, SYSTEMS, stand_ins, system
from heapwright_papers.declared import constants, fill, page_of
from heapwright_papers.measuring import Calls, probe, replayed, served_after, spread
from heapwright_papers.page import ALIGN, Page
from heapwright_papers.traffic import packet_tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from heapwright import Trace

FIRST, BEST = hw.default_space.FITS.index({"fit": "first"}), hw.default_space.FITS.index({"fit": "best"})
LAST = -1
"""The last level of a technique, of any kind."""
THINNED = {"freelists": (0, 1, 2, 3), "fit": (0, 2, FIRST, 5, 7, BEST), "split": (0, 3, 6, 9), "coalesce": (0, 3, 6, 9)}
"""Levels that stand for all ten: none, full, and some between."""

Extras = Mapping[str, int]
"""Levels of the other techniques that pairs must have; what it has of the technique itself does not matter."""
ANY: Extras = {}
PROPOSED: Extras = {"freelists": 2, "fit": FIRST, "split": 0, "coalesce": 0}
"""The levels of the allocator that the paper proposes."""
UNSPLIT: Extras = {"split": LAST}
COLUMNS = ("internal", "external", "accesses", "memory")


@dataclass(frozen=True)
class Grid:
    """One trace under every recipe of the grid: for each its levels, and float64[recipes] columns.

    `internal`, `external` and `memory` are over the bytes requested, at the peak; `accesses` are a call.
    """

    rows: Mapping[hw.default_space.Techniques, int]
    internal: NDArray[np.float64]
    external: NDArray[np.float64]
    memory: NDArray[np.float64]
    accesses: NDArray[np.float64]
    served: NDArray[np.bool_]

    @classmethod
    def of(cls, traces: Sequence[Trace], thinned: bool = False) -> list[Grid]:
        """Replay the grid that is made for all traces together, or what `THINNED` leaves of it, on each of them."""
        every = hw.default_space.technique_grid(traces, ALIGN)
        chosen = {levels: recipe.canonical() for levels, recipe in every.items() if not thinned or _stays(levels)}
        recipes = {recipe.hash: recipe for recipe in chosen.values()}
        at = {hash: row for row, hash in enumerate(recipes)}
        rows = {levels: at[recipe.hash] for levels, recipe in chosen.items()}
        return [cls._on(trace, rows, spread(partial(replayed, trace), recipes.values())) for trace in traces]

    @classmethod
    def _on(
        cls, trace: Trace, rows: Mapping[hw.default_space.Techniques, int], result: Sequence[Mapping[str, Any]]
    ) -> Grid:
        keys = ("internal_bytes", "external_bytes", "footprint_bytes", "accesses", "failed")
        columns = (np.array([float(metrics[key] or 0) for metrics in result]) for key in keys)
        internal, external, memory, accesses, failed = columns
        peak = trace.peak_live_bytes
        return cls(rows, 1 + internal / peak, 1 + external / peak, memory / peak, accesses / len(trace), failed == 0)

    @property
    def recipes(self) -> int:
        """How many different recipes were replayed."""
        return len(self.served)

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        """The row of each combination of levels, -1 where there is none."""
        levels = np.array(list(self.rows))
        table = np.full(levels.max(axis=0) + 1, -1, np.int64)
        table[tuple(levels.T)] = list(self.rows.values())
        return table

    def last(self, technique: str) -> int:
        """The highest level of a technique."""
        return int(self._table.shape[hw.default_space.Techniques._fields.index(technique)]) - 1

    def pairs(self, technique: str, without: int, used: int, beside: Extras = ANY) -> NDArray[np.int64]:
        """int64[pairs, 2]: rows that differ in one technique alone, without and with it; the others as in `beside`."""
        kept = {
            name: self.last(name) if level == LAST else min(level, self.last(name)) for name, level in beside.items()
        }
        sides = [
            self._table[
                tuple(
                    ({**kept, technique: level}).get(name, slice(None)) for name in hw.default_space.Techniques._fields
                )
            ]
            for level in (without, used)
        ]
        pairs = np.stack([np.ravel(side) for side in sides], axis=1)
        pairs = pairs[(pairs >= 0).all(axis=1)]
        return pairs[self.served[pairs].all(axis=1)]

    def change(self, column: str, pairs: NDArray[np.int64]) -> float:
        """The mean of log(with / without)."""
        values = getattr(self, column)[pairs]
        return float(np.log(values[:, 1] / values[:, 0]).mean())

    def level_means(self, technique: str, level: int) -> list[tuple[float, float]]:
        """Means of log(memory) and log(accesses) over the recipes with this level; empty where there is none."""
        rows = np.take(self._table, level, axis=hw.default_space.Techniques._fields.index(technique)).ravel()
        rows = rows[rows >= 0]
        rows = rows[self.served[rows]]
        if not len(rows):
            return []
        return [(float(np.log(self.memory[rows]).mean()), float(np.log(self.accesses[rows]).mean()))]


def _stays(levels: hw.default_space.Techniques) -> bool:
    return all(getattr(levels, technique) in kept for technique, kept in THINNED.items())


def contrast(grid: Grid, technique: str) -> tuple[str, int, int]:
    """An attribute of `Techniques`, its level without the technique, and that with it."""
    attribute, levels = steps(grid, technique)
    return attribute, levels[0], levels[: PROPOSED["freelists"] + 1][-1] if technique == "freelists" else levels[-1]


def steps(grid: Grid, technique: str) -> tuple[str, Sequence[int]]:
    """An attribute of `Techniques`, and its levels that lead from none of the technique to all of it."""
    fits = [FIRST, *(at for at, fit in enumerate(hw.default_space.FITS) if "search_percent" in fit), BEST]
    return {
        "freelists": ("freelists", range(grid.last("freelists") + 1)),
        "best fit": ("fit", fits),
        "split": ("split", range(grid.last("split"), -1, -1)),
        "coalesce": ("coalesce", [grid.last("coalesce"), *range(3, -1, -1)]),
    }[technique]


StudyDiff = Mapping[str, float]
"""Of what its keys name, with a technique over without, less 1; performance is the inverse of accesses."""


def changes(grids: Sequence[Grid], technique: str, beside: Extras = ANY) -> StudyDiff | None:
    """The geometric means over all pairs and grids; None where there is no pair."""
    pairs = [(grid, grid.pairs(*contrast(grid, technique), beside)) for grid in grids]
    logs = [[grid.change(column, some) for column in COLUMNS] for grid, some in pairs if len(some)]
    if not logs:
        return None
    internal, external, accesses, memory = np.mean(logs, axis=0)
    results = {"internal": internal, "external": external, "performance": -accesses, "memory": memory}
    return {name: float(np.expm1(value)) for name, value in (results | {"accesses": accesses}).items()}


def together(result: Sequence[StudyDiff | None], column: str) -> float | None:
    """The geometric mean of one column over several changes, as of the three applications."""
    values = [item[column] for item in result if item is not None]
    return float(np.expm1(mean(map(np.log1p, values)))) if values else None


NONE_WITHIN, SINGLE_WITHIN = 0.01, 0.10
"""A change of up to 1 % is "none", of up to 10 % one sign, of more two."""

Grids = Mapping[str, Sequence[Grid]]


def names(result: Mapping[str, Grids], traces: Mapping[str, Sequence[Trace]] | None) -> dict[str, Any]:
    """What the statements' expressions see; `traces` are those of real networks, where there are any."""
    grid = next(iter(next(iter(result.values())).values()))[0]
    known: Mapping[str, Any] = {REAL: NO_PACKETS} | dict(result)

    def over(where: str, technique: str, effect: str, beside: Extras = ANY, of: Sequence[str] = ()) -> float:
        grids = [some for name, some in known[where].items() if not of or name in of]
        return together([changes(some, technique, beside) for some in grids], effect) or 0.0

    def flat(where: str) -> list[Grid]:
        return [grid for some in known[where].values() for grid in some]

    def fewer(where: str) -> list[float]:
        pairs = [(item.accesses, item.pairs(*contrast(item, "freelists"))) for item in flat(where)]
        return [float((np.diff(accesses[at]).ravel() < 0).mean()) for accesses, at in pairs]

    def means(where: str, technique: str, column: str, beside: Extras) -> float:
        return (changes(flat(where), technique, beside) or {}).get(column, 0.0)

    return {
        **constants("techniques", globals()),
        **{
            item.__name__: item
            for item in (agrees, changes, shown, sign, together, cost, halves, wasted, whole, first_fit)
        },
        **{item.__name__: item for item in (fewer, means, over)},
        "points": lambda signs: signs.count("+") - signs.count("-"),
        "found": known,
        "summary": {name: system(name).summary(ALIGN) for name in SYSTEMS},
        "levels": [len({getattr(row, technique) for row in grid.rows}) for technique in next(iter(grid.rows))._fields],
        "recipes": grid.recipes,
        "parts": {name: _parts(name, some[0]) for name, some in traces.items()} if traces else NO_PACKETS,
    }


def _parts(name: str, trace: Trace) -> list[int]:
    """Bytes requested, used, lost inside blocks and between them, by the allocator proposed for a workload."""
    metrics = replayed(trace, zoo(f"{name}-proposed"))
    keys = ("requested_peak_bytes", "allocated_peak_bytes", "internal_bytes", "external_bytes")
    return [int(metrics[key] or 0) for key in keys]


# ---- Table 2 ---------------------------------------------------------------------------------------------------------


def sign(change: float) -> str:
    """A change as the paper writes it: None, or one or two signs."""
    if abs(change) <= NONE_WITHIN:
        return "None"
    return ("+" if change > 0 else "-") * (1 if abs(change) <= SINGLE_WITHIN else 2)


def shown(change: float | None) -> str:
    """A sign and the change behind it, or a dash."""
    return "–" if change is None else f"{sign(change)} ({100 * change:+.1f} %)"


def agrees(theirs: str, change: float) -> bool:
    """Whether a change has the paper's sign; one of theirs may be two of ours."""
    ours = sign(change)
    return ours == theirs or (len(theirs) == 1 and ours == 2 * theirs)


# ---- probes ----------------------------------------------------------------------------------------------------------

LARGE, HALF, _PIN = 200, 96, 16
"""Bytes of a free block, of two requests that it can serve together, and of what keeps it from its neighbours."""

HOLE: Calls = [(MALLOC, 0, LARGE), (MALLOC, 1, _PIN), (FREE, 0, 0)]
_PAIR: Calls = [(MALLOC, 0, HALF), (MALLOC, 1, HALF), (MALLOC, 2, _PIN), (FREE, 0, 0)]
BOTH: Calls = [*_PAIR, (FREE, 1, 0)]


def wasted(split: str) -> int:
    """Bytes lost in a large free block that serves half of it; parts are listed at the last growth of the footprint."""
    return probe(first_fit(split=split), [*HOLE, (MALLOC, 2, HALF), (MALLOC, 3, 2 * LARGE)], "internal_bytes")


def halves(split: str) -> int:
    """How many requests of half its size a free block serves."""
    return served_after(first_fit(split=split), HOLE, [(MALLOC, 2, HALF), (MALLOC, 3, HALF)])


def whole(coalesce: str) -> int:
    """How many requests of their size together two free neighbours serve."""
    return served_after(first_fit(coalesce=coalesce), BOTH, [(MALLOC, 3, 2 * HALF)])


def cost(coalesce: str) -> int:
    """Accesses of a free whose neighbour is free."""
    recipe = first_fit(coalesce=coalesce)
    return probe(recipe, BOTH) - probe(recipe, _PAIR)


def first_fit(**changes: Any) -> Recipe:
    """One list of blocks of any size, split and merged but for what is changed."""
    general = hw.pools.General(**{"fit": "first", "split": "always", "coalesce": "immediate", **changes})
    return Recipe(pools=(general,), align=ALIGN)


# ---- the page --------------------------------------------------------------------------------------------------------


PACKETS, NETWORKS, FORMS = 1_500, 3, 3
LEAST_PACKETS_LOOKED_AT = 50_000
WORKLOADS = ("drr", "easyport", "url")
DOMINANT = {"drr": (40, 1500), "easyport": (52, 1500), "url": (40, 1500)}
"""Bytes of the two most frequent IP packets of the paper's mix, by application."""


def page(packets: Path | None, progress: Callable[[str], None]) -> Page:
    """Tables 1 and 2, with the curves behind them.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`, or where no table holds enough IP packets.
    """
    tables = stand_ins(packet_tables(packets), LEAST_PACKETS_LOOKED_AT, NETWORKS)
    made = page_of("techniques")
    made.traffic(tables)
    real = {name: [hw.workload(name, table, count=PACKETS) for table in tables.values()] for name in WORKLOADS}
    traces = {**({REAL: real} if tables else {}), MIX: _mix(made)}
    grids: dict[str, dict[str, list[Grid]]] = {on: {} for on in traces}
    for on, of in traces.items():
        for name, some in of.items():
            progress(f"techniques: {name}, {on}")
            grids[on][name] = Grid.of(some, thinned=on == MIX)
    seen = names(grids, traces.get(REAL))
    on, first = next(iter(grids.items()))
    more = {
        "packets": PACKETS,
        "networks": list(tables),
        "forms": [mix.name for mix in mixes.mixes((40, 1500), FORMS)],
        "seeds": len(mixes.SEEDS),
        "grids": grids,
        "replays": {on: sum(grid.recipes for some in of.values() for grid in some) for on, of in grids.items()},
        "paths": {name: {item: _path(first[name], item) for item in seen["TABLE_2"]} for name in WORKLOADS},
        "shown_on": on,
    }
    fill(made, {**seen, **more})
    made.judge(seen)
    return made


def _mix(made: Page) -> dict[str, list[Trace]]:
    traces = {}
    for name in WORKLOADS:
        forms = mixes.mixes(DOMINANT[name], FORMS)
        drawn = {(mix.name, seed): mix.packets(PACKETS, seed) for seed in mixes.SEEDS for mix in forms}
        traces[name] = [hw.workload(name, table, rate=mixes.RATE) for table in drawn.values()]
        if DOMINANT[name] == DOMINANT["drr"]:
            made.traffic({f"{form}, seed {seed}": table for (form, seed), table in drawn.items()})
    return traces


def _path(grids: Sequence[Grid], technique: str) -> list[dict[str, Any]]:
    """A row for each level of a technique from none to full; grids are left out of the levels that they lack."""
    attribute, levels = steps(grids[0], technique)
    known = [[log for grid in grids for log in grid.level_means(attribute, level)] for level in levels]
    means = [np.exp(np.mean(of, axis=0)) for of in known if of]
    return [
        {
            "technique": technique,
            "step": step,
            "last": len(means) - 1,
            "memory": 100 * (float(memory) - 1),
            "accesses": float(accesses),
        }
        for step, (memory, accesses) in enumerate(means)
    ]

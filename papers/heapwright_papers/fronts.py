"""The future work of Mamagkakis et al. 2006: time, fragmentation and energy weighed at once.

Their section 2 calls fragmentation and performance "complementary objective functions" to the footprint and energy of
their earlier papers, and explores them apart.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright import pareto
from heapwright_papers import measuring
from heapwright_papers.answers import rank_correlation
from heapwright_papers.measuring import cell
from heapwright_papers.page import ALIGN, Page

if TYPE_CHECKING:
    from heapwright import Recipe, Study, Trace, figure

AXES = {"time": "accesses", "fragmentation": "fragmentation", "energy": "energy_nJ"}
"""The three costs, and the metrics that stand for them: accesses for time, which no machine changes."""
MEASURED = 48
"""Members of the front, evenly along its time, whose instructions are counted."""

_INTRODUCTION = """\
## Time, fragmentation and energy at once (the paper's future work)

The same {recipes:,} allocators under the same traffic, judged by three costs together: time (accesses), fragmentation
without headers, and energy (of these accesses in an SRAM of the footprint's size). Optimal in each two of the costs:
{pairs}. In all three at once {three:,} are: of those {beyond} are on no front of two costs."""


@dataclass(frozen=True)
class Cloud:
    """All allocators that served every request: their ids, names in the zoo or "", and float64 columns by metric."""

    ids: Sequence[str]
    names: Sequence[str]
    columns: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, study: Study) -> Cloud:
        """Those of a study of one trace."""
        combined = study.combined
        served = np.flatnonzero(combined.columns["failed"] == 0)
        keys = {*AXES.values(), "footprint_bytes"}
        return cls(
            [combined.ids[at] for at in served],
            [combined.zoo_names[at] or "" for at in served],
            {key: combined.columns[key][served].astype(np.float64) for key in keys},
        )

    def front(self, costs: Sequence[str]) -> NDArray[np.intp]:
        """Rows that no other beats in all of these of AXES, by rising time."""
        values = np.column_stack([self.columns[AXES[cost]] for cost in costs])
        rows = np.flatnonzero(pareto.front(values, ["min" for _ in costs]))
        return rows[np.argsort(self.columns["accesses"][rows], kind="stable")]


def add_fronts(page: Page, study: Study, trace: Trace, named: Mapping[str, str]) -> dict[str, Any]:
    """The section and its figure; returns whether fragmentation and performance go their own ways, as correlations.

    `named` are those of the zoo that the paper has, with its names for them.
    """
    found = Cloud.of(study)
    pairs = {pair: set(found.front(pair).tolist()) for pair in combinations(AXES, 2)}
    three = found.front((*AXES,))
    beyond = set(three.tolist()) - set().union(*pairs.values())
    told = ", ".join(f"{' and '.join(pair)} {len(rows)}" for pair, rows in pairs.items())
    page.text(
        _INTRODUCTION.format(
            recipes=len(found.ids), pairs=told, three=len(three), beyond=f"{len(beyond):,}" if beyond else "none"
        )
    )
    page.figure(_draw(found, three, trace, named))
    some = three[np.unique(np.linspace(0, len(three) - 1, min(MEASURED, len(three))).round().astype(int))]
    chosen = {
        "least fragmentation": _least(found, three, "fragmentation"),
        "fewest accesses": _least(found, three, "time"),
        "least energy": _least(found, three, "energy"),
        "nearest to all three": _nearest(found, three),
    }
    chosen |= {of: found.names.index(name) for name, of in named.items() if name in found.names}
    rows = list(dict.fromkeys([*chosen.values(), *map(int, some)]))
    recipes = {row: study.recipe(found.ids[row]) for row in rows}
    instructions = _instructions(recipes, trace, found)
    page.table(
        ("what", "recipe", "fragmentation, %", "accesses a call", "instructions a call", "energy, µJ", "footprint, B"),
        [_row(what, row, recipes[row], found, instructions[row], len(trace)) for what, row in chosen.items()],
        words=2,
    )
    return _directions(found, instructions)


def _instructions(recipes: Mapping[int, Recipe], trace: Trace, found: Cloud) -> dict[int, float | None]:
    """Of all calls; None where nothing can count them."""

    def count(row: int) -> float | None:
        known = measuring.instructions(recipes[row], [trace], [float(found.columns["accesses"][row])])
        return known[0].total if known and known[0] else None

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return dict(zip(recipes, threads.map(count, recipes), strict=True))


def _least(found: Cloud, rows: NDArray[np.intp], cost: str) -> int:
    return int(min(rows, key=lambda row: found.columns[AXES[cost]][row]))


def _nearest(found: Cloud, rows: NDArray[np.intp]) -> int:
    """The member whose three costs have the least product: memory used over requested, accesses, and energy."""
    wasted, accesses, energy = (found.columns[key][rows] for key in ("fragmentation", "accesses", "energy_nJ"))
    product: NDArray[np.float64] = (1 + wasted) * accesses * energy
    return int(rows[product.argmin()])


def _row(what: str, row: int, recipe: Recipe, found: Cloud, instructions: float | None, calls: int) -> list[object]:
    columns = found.columns
    return [
        what,
        found.names[row] or recipe.summary(ALIGN),
        f"{100 * columns['fragmentation'][row]:.1f}",
        f"{columns['accesses'][row] / calls:.1f}",
        cell(None if instructions is None else instructions / calls, 0),
        f"{columns['energy_nJ'][row] / 1e3:,.1f}",
        f"{columns['footprint_bytes'][row]:,.0f}",
    ]


# ---- whether they go the same way ------------------------------------------------------------------------------------


def _directions(found: Cloud, instructions: Mapping[int, float | None]) -> dict[str, Any]:
    """Rank correlations: of fragmentation and footprint over all, of instructions and accesses over those measured."""
    correlations = [rank_correlation(found.columns["fragmentation"], found.columns["footprint_bytes"])]
    known = {row: count for row, count in instructions.items() if count is not None}
    if len(known) > 2:
        accesses = found.columns["accesses"][list(known)]
        correlations.append(rank_correlation(np.array([*known.values()], float), accesses))
    return {"correlations": correlations, "measured": len(known), "allocators": len(found.ids)}


# ---- figure ----------------------------------------------------------------------------------------------------------


def _draw(found: Cloud, three: NDArray[np.intp], trace: Trace, named: Mapping[str, str]) -> figure.Figure:
    import altair as alt

    from heapwright import figure

    def point(row: int) -> dict[str, Any]:
        return {
            "wasted": 100 * float(found.columns["fragmentation"][row]),
            "accesses": float(found.columns["accesses"][row]) / len(trace),
            "energy": float(found.columns["energy_nJ"][row]) / len(trace),
        }

    rows = [point(int(row)) for row in three]
    theirs = [point(found.names.index(name)) | {"name": of} for name, of in named.items() if name in found.names]
    ticks = [step * 10**power for power in range(-2, 4) for step in (1, 2, 5)]
    axes = {
        "x": alt.X(
            "wasted:Q",
            title="fragmentation, % (log)",
            scale=alt.Scale(type="log", nice=False, padding=60),
            axis=alt.Axis(values=ticks, labelExpr="format(datum.value, '~g')"),
        ),
        "y": alt.Y(
            "accesses:Q",
            title="accesses a call (log)",
            scale=alt.Scale(type="log", nice=False, padding=14),
            axis=alt.Axis(values=ticks, labelExpr="format(datum.value, '~g')"),
        ),
    }
    legend = alt.Legend(title="energy of a call on the front, nJ", orient="top", gradientLength=240, format=".2f")
    drawn = (
        figure.inline(rows)
        .mark_circle(size=90, opacity=1)
        .encode(**axes, color=alt.Color("energy:Q", scale=alt.Scale(scheme="viridis"), legend=legend))
    )
    own = figure.inline(theirs)
    layers = [
        drawn,
        own.mark_point(shape="diamond", filled=True, size=90, color=figure.VERMILLION, opacity=1).encode(**axes),
        own.mark_text(dx=9, align="left", baseline="middle", fontSize=11, color=figure.INK).encode(
            **axes, text="name:N"
        ),
    ]
    title = f"{len(three)} of {len(found.ids):,} allocators that none beats in all three costs"
    note = "Circles are the front, the darker the less energy; diamonds are the paper's allocators."
    return figure.Figure("easyport-fronts", title, note, alt.layer(*layers).properties(height=340), 600)

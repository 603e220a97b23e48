"""Packet buffers of Easyport: Table 4 and Figure 2, the cloud of all allocators explored and its front.

Figure 2 is drawn in our own space, and judged there and in the paper's, on all three applications.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance", sections 5 and 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import heapwright as hw
from heapwright import HeapwrightError, Space, Study, labels, pareto
from heapwright_papers import case_study, drr, measuring, url
from heapwright_papers.answers import rank_correlation
from heapwright_papers.case_page import CaseRun, short_mix
from heapwright_papers.case_study import MIX, PROPOSED, REAL, SYSTEMS, case, fragmentation
from heapwright_papers.declared import Metrics, constants, metrics
from heapwright_papers.held_out import explored
from heapwright_papers.measuring import spread
from heapwright_papers.own_space import TECHNIQUES, OwnSpace
from heapwright_papers.page import ALIGN
from heapwright_papers.readings import Joint
from heapwright_papers.traffic import has_ip

if TYPE_CHECKING:
    from heapwright import PacketTable, Recipe, Study, Trace
    from heapwright_papers.page import Page

AXES = {"time": "accesses", "fragmentation": "fragmentation", "energy": "energy_nJ"}
"""The three costs, and the metrics that stand for them: accesses for time, which no machine changes."""
MEASURED = 48
"""Members of the front, evenly along its time, whose instructions are counted."""


@dataclass(frozen=True)
class Cloud:
    """All allocators that served every request: their ids, names in the zoo or "", and float64 columns by metric."""

    ids: Sequence[str]
    names: Sequence[str]
    columns: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, study: Study) -> Cloud:
        """The results of a study of one trace."""
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

    def point(self, row: int, trace: Trace) -> Metrics:
        """What it is and costs on the trace."""
        at, peak = {key: float(column[row]) for key, column in self.columns.items()}, trace.peak_live_bytes
        return metrics("easyport", "point", at, id=self.ids[row], name=self.names[row], calls=len(trace), peak=peak)


def fronts(study: Study, result: Cloud, trace: Trace) -> dict[str, Any]:
    """What the expressions see of the fronts of two and of three costs, the paper's future work.

    Its section 2 calls fragmentation and performance "complementary objective functions" to the footprint and energy of
    the authors' earlier papers, and explores them apart.

    Whether fragmentation and performance are independent is shown in rank correlations: of fragmentation and footprint
    over all, and of instructions and accesses over those `measured`.
    """
    pairs = {" and ".join(pair): result.front(pair).tolist() for pair in combinations(AXES, 2)}
    three = result.front((*AXES,))
    some = three[np.unique(np.linspace(0, len(three) - 1, min(MEASURED, len(three))).round().astype(int))]
    of_paper = {of: result.names.index(name) for name, of in _NAMED.items() if name in result.names}
    wasted, accesses, energy = (result.columns[key] for key in ("fragmentation", "accesses", "energy_nJ"))
    by = {"least fragmentation": wasted, "fewest accesses": accesses, "least energy": energy}
    by["nearest to all three"] = (1 + wasted) * accesses * energy
    chosen = {what: int(three[np.argmin(cost[three])]) for what, cost in by.items()} | of_paper
    recipes = {row: study.recipe(result.ids[row]) for row in dict.fromkeys([*chosen.values(), *map(int, some)])}
    known = _instructions(recipes, trace, result)
    correlations = [rank_correlation(wasted, result.columns["footprint_bytes"])]
    if len(known) > 2:
        counts = np.array([*known.values()], float)
        correlations.append(rank_correlation(counts, accesses[list(known)]))
    return {
        "pairs": pairs,
        "three": [result.point(int(row), trace) for row in three],
        "beyond": len(set(three.tolist()).difference(*pairs.values())),
        "of_paper": [result.point(row, trace) | {"name": of} for of, row in of_paper.items()],
        "told": {
            what: result.point(row, trace)
            | {
                "recipe": result.names[row] or recipes[row].summary(ALIGN),
                "instructions": known[row] / len(trace) if row in known else None,
            }
            for what, row in chosen.items()
        },
        "correlations": correlations,
        "measured": len(known),
        "allocators": len(result.ids),
    }


def _instructions(recipes: Mapping[int, Recipe], trace: Trace, result: Cloud) -> dict[int, float]:
    """Of all calls, of those that could be counted."""

    def count(row: int) -> float | None:
        known = measuring.instructions(recipes[row], [trace], [float(result.columns["accesses"][row])])
        return known[0].total if known and known[0] else None

    counts = zip(recipes, spread(count, recipes), strict=True)
    return {row: known for row, known in counts if known is not None}


# ---- the page --------------------------------------------------------------------------------------------------------


CASE = case("easyport")
CLOUD: Mapping[str, Any] = {"copies": 0}
"""How the space is explored for Figure 2: all of it."""
_WASTEFUL = "Windows CE, ce-neither"
_NAMED = {**{zoo: name for name, zoo in SYSTEMS.items()}, CASE.proposed: PROPOSED}


def page(packets: Path | None, progress: Callable[[str], None], joint: Joint | None = None) -> Page:
    """Table 4, Figure 2, their claims, and the best of the full space on networks held out: see `CaseRun`.

    Raises HeapwrightError where no table has both of the paper's frames.
    """
    of = CaseRun(CASE, progress, packets, joint, stand_ins)
    of.try_heaps()
    trial = of.trials[0]
    wasteful = max(trial.names, key=lambda name: trial.column(_WASTEFUL, fragmentation, name))
    seen = _explore(replace(trial.of(wasteful)[0].trace, name=wasteful), progress)
    shares = {name: sum(_shares(table)) for name, table in of.chosen.items()}
    own = own_spaces(of.tables, progress)
    known = {"own": own, "TECHNIQUES": TECHNIQUES, "OWN": OWN, "OURS": OURS}
    known["packets"] = {item.name: item.grid_packets for item in (CASE, drr.CASE, url.CASE)}
    return of.filled({**seen, **known, "dominant_share": shares}, own[CASE.name, MIX])


OWN, OURS = "the paper's own space", "our own space"


def own_spaces(tables: Mapping[str, PacketTable], progress: Callable[[str], None]) -> dict[tuple[str, str], OwnSpace]:
    """The paper's own space on every trace of its three applications, by application and kind of traffic."""
    results = {}
    for of in (CASE, drr.CASE, url.CASE):
        chosen = stand_ins(tables) if of is CASE else case_study.stand_ins(tables, of.packets, of.traces)
        real = {name: hw.workload(of.name, table, count=of.grid_packets) for name, table in chosen.items()}
        for on, traces in ((REAL, real), (MIX, short_mix(of, of.grid_packets))):
            if traces:
                progress(f"easyport: the paper's own space, {of.name}, {on}")
                results[of.name, on] = OwnSpace.of(of.proposed, traces)
    return results


def stand_ins(tables: Mapping[str, PacketTable]) -> dict[str, PacketTable]:
    """The tables in whose first packets the rarer of the paper's two frames is most frequent; none of none."""
    shares = {name: min(_shares(table)) for name, table in tables.items() if has_ip(table)}
    chosen = sorted((name for name in shares if shares[name] > 0), key=lambda name: -shares[name])[: CASE.traces]
    if tables and not chosen:
        sizes = " and of ".join(f"{size} bytes" for size in constants("easyport")["MODES"])
        raise HeapwrightError(f"no packet table has frames of {sizes} among its first {CASE.packets:,}")
    return {name: tables[name] for name in chosen}


def _shares(table: PacketTable) -> list[float]:
    sizes = constants("easyport")["MODES"]
    return [float((table.frame_len[: CASE.packets] == size).mean()) if len(table) else 0.0 for size in sizes]


# ---- Figure 2 --------------------------------------------------------------------------------------------------------


def _explore(trace: Trace, progress: Callable[[str], None]) -> dict[str, Any]:
    """Try every recipe on one network; what the expressions see of it."""
    space = Space.default([trace], ALIGN, move_zoo=False)
    progress(f"easyport: {len(space):,} recipes on {trace.name}")
    with explored([trace], space, **CLOUD) as study:
        result = Cloud.of(study)
        points = _points(result, trace)
        (standing,) = (item for item in study.zoo_standings() if item.candidate.zoo_name == CASE.proposed)
        progress("easyport: time, fragmentation and energy")
        return {
            "wasteful": trace,
            "recipes": study.ranked,
            "points": points,
            "front": _front(study, points),
            "standing": standing,
            **_placed([point for point in points if point["kind"] != "cloud"], points),
            **fronts(study, result, trace),
        }


def _points(result: Cloud, trace: Trace) -> list[Metrics]:
    """What every recipe costs that served all requests and hands out pointers, and whether it is on the front."""
    points = [result.point(row, trace) for row in range(len(result.ids))]
    costs = np.array([[point.overhead, point.accesses] for point in points])
    for at in np.flatnonzero(pareto.front(costs, ("min", "min"))):
        points[at]["kind"] = "front"
    return points


def _placed(shown: Sequence[Mapping[str, Any]], points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Names of the paper's allocators where there is room for them, the proposed one's first; and what axes span."""
    width, height, padding = 556, 440, 16
    spans = {
        key: (min(item[key] for item in points), max(item[key] for item in points)) for key in ("overhead", "accesses")
    }

    def pixels(value: float, key: str, length: int) -> float:
        low, high = map(math.log, spans[key])
        return padding + (math.log(value) - low) * (length - 2 * padding) / ((high - low) or 1)

    def marker(point: Mapping[str, Any]) -> labels.Marker:
        up = pixels(point["accesses"], "accesses", height)
        return labels.Marker(pixels(point["overhead"], "overhead", width), height - up)

    named = sorted((item for item in shown if item["name"] in _NAMED), key=lambda item: item["name"] != CASE.proposed)
    names = [_NAMED[point["name"]] for point in named]
    places = labels.place(list(map(marker, named)), names, list(map(marker, shown)), width, height)
    rows = [
        {"text": name, "proposed": name == PROPOSED, **{axis: point[axis] for axis in spans}, **label._asdict()}
        for point, name, label in zip(named, names, places, strict=True)
        if label
    ]
    return {"labels": rows, "spans": spans}


def _front(study: Study, points: Sequence[Metrics]) -> list[Metrics]:
    """The members of the front, smallest first."""
    results = []
    for point in sorted((point for point in points if point.kind == "front"), key=lambda point: point.overhead):
        item, recipe = study.candidate(point.id), study.recipe(point.id)
        info = {"label": item.label, "recipe": recipe, "summary": recipe.summary(ALIGN)}
        results.append(metrics("easyport", "member", item.metrics, **info))
    return results

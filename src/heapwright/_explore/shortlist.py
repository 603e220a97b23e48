"""Shortlist: recipes that an exploration on pieces of long traces leaves for the whole traces.

The exploration on pieces ranks the recipes, tests them on futures of the pieces, and stress-tests them. Only the
shortlist is then replayed on the whole traces, whose metrics the study has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from heapwright._explore.evaluation import SearchCandidate
from heapwright._explore.stress_test import recommended
from heapwright._explore.successive_halving import distances
from heapwright._replay.metrics import LONG_RUN_METRICS, SHIPPING_METRICS, Value
from heapwright._studies import pareto
from heapwright._studies.recommendations import DEPLOYED, UNTUNED, WELL_KNOWN

if TYPE_CHECKING:
    from heapwright._explore.options import Options
    from heapwright._studies.analysis import Analysis
    from heapwright._traces.trace import Trace

Rows = list[tuple[str, str, Mapping[str, Value]]]
"""Metrics of recipes, each with the recipe's id and the trace's name."""

FEWEST = 6
"""Least recipes of a shortlist, however long the traces are."""


@dataclass(frozen=True)
class Shortlist:
    """Recipes for the whole traces, and their results on the pieces.

    Attributes:
        parts: the pieces of each trace, or the trace itself if it is short.
        calls: calls of the pieces and of the whole trace, by the trace's name; of long traces alone.
        candidates: the recipes, the most important first.
        long_run: metrics of `LONG_RUN_METRICS` on futures of the pieces.
        stress: metrics of `SHIPPING_METRICS`, of the stress test.
        tried: number of recipes that were replayed on the pieces.
        evaluations: number of these replays.
    """

    parts: Sequence[Trace]
    calls: Mapping[str, tuple[int, int]]
    candidates: Sequence[SearchCandidate]
    long_run: Rows
    stress: Rows
    tried: int
    evaluations: int

    @classmethod
    def of(
        cls, study: Analysis, traces: Sequence[Trace], parts: Sequence[Trace], options: Options, evaluations: int
    ) -> Shortlist:
        """Choose from the study of the pieces, as many recipes as `Options.whole_calls` lets replay."""
        most = max(options.whole_calls // sum(map(len, traces)), FEWEST)
        ids = [id for id in _in_order(study) if study.combined.row(id) is not None][:most]
        recipes = {
            recipe.hash: (recipe, name, ranked) for recipe, name, ranked in study.recipes() if recipe.hash in ids
        }
        metrics = study.per_trace(ids, [*LONG_RUN_METRICS, *SHIPPING_METRICS])
        rows = [(id, name, item) for id, each in metrics.items() for name, item in each.items()]
        return cls(
            parts,
            {
                part.name: (len(part), len(trace))
                for trace, part in zip(traces, parts, strict=True)
                if part is not trace
            },
            [SearchCandidate(id, *recipes[id]) for id in ids],
            [row for row in rows if row[2]["long_run_calls"] is not None],
            [row for row in rows if row[2]["endured_calls"] is not None],
            study.ranked,
            evaluations,
        )

    @property
    def by_id(self) -> dict[str, SearchCandidate]:
        """The recipes by id."""
        return {item.id: item for item in self.candidates}

    def long_run_with(self, whole: Mapping[str, Mapping[str, Mapping[str, Value]]]) -> Rows:
        """``long_run`` with a need of at least the footprint on the whole trace, by recipe id and trace name."""
        results: Rows = []
        for id, name, metrics in self.long_run:
            footprint, need = whole[id][name]["footprint_bytes"], metrics["long_run_bytes"]
            if need is not None and footprint is not None:
                need = max(need, footprint)
            results.append((id, name, {**metrics, "long_run_bytes": need}))
        return results


def _in_order(study: Analysis) -> list[str]:
    """Ids: recommendations, the current allocator, the front, well-known allocators, then what is near the front."""
    if not len(study.combined.front_rows(study.objectives)):
        return list(study.combined.ids)
    by_name = {name: recipe.hash for recipe, name, ranked in study.recipes() if name and ranked}
    named = [by_name[name] for name in (*WELL_KNOWN, *UNTUNED, *DEPLOYED) if name in by_name]
    current = by_name.get(study.current or "")
    return list(
        dict.fromkeys(
            [
                *recommended(study),
                *([current] if current else []),
                *(member.id for member in study.front()),
                *named[: len(WELL_KNOWN)],
                *_nearest(study),
                *named,
            ]
        )
    )


def _nearest(study: Analysis) -> list[str]:
    """Ids of the recipes that may be on the front, nearest to it first."""
    results, keys = study.combined, study.objectives
    rows = np.flatnonzero(results.eligible(keys))
    if not len(rows):
        return []
    points = pareto.ratios_to_best(results.points(keys)[rows], results.directions_of(keys))
    return [results.ids[rows[at]] for at in np.argsort(distances(points, keys), kind="stable")]

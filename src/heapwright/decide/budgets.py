"""What to ship within bounds on memory and on the dearest call: a study's picks, for bounds worth telling apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heapwright.decide.results import Floats
from heapwright.decide.study import Study
from heapwright.replay.metrics import WORST_CALLS

MEMORY_STOPS, WORST_STOPS = 20, 8
"""Bounds of each kind that are told at most."""


@dataclass(frozen=True)
class Budgets:
    """Picks within bounds.

    Attributes:
        memory: bounds on `footprint_bytes`, rising.
        worst: bounds on all of `WORST_CALLS`, loads and stores, rising.
        picks: ids of the balanced picks, by ``worst`` and ``memory``, either followed by no bound; None where no
            recipe stays within.
    """

    memory: list[int]
    worst: list[int]
    picks: list[list[str | None]]

    @property
    def ids(self) -> set[str]:
        """All recipes picked."""
        return {id for row in self.picks for id in row if id is not None}


def budgets(study: Study) -> Budgets:
    """The balanced picks of a study within bounds: what `Study.pick` gives with these conditions.

    The bounds are what recipes on the fronts of memory with the first objectives, or with the dearest call, need.
    """
    columns = study.combined.columns
    kinds = [key for key in WORST_CALLS.values() if not np.isnan(columns[key]).all()]  # older studies lack one
    dearest = np.max([columns[key] for key in kinds], axis=0)
    fronts = [study.objectives, *(("footprint_bytes", key) for key in kinds)]
    rows = np.concatenate([study.combined.front_rows(keys) for keys in fronts])
    memory = _stops(columns["footprint_bytes"][rows], MEMORY_STOPS)
    worst = _stops(dearest[rows], WORST_STOPS)
    eligible = study.combined.eligible(study.objectives)
    picks: list[list[str | None]] = []
    for most in (*worst, None):
        conditions = [f"{key} <= {most}" for key in kinds] if most is not None else []
        picks.append([])
        for bytes in (*memory, None):
            where = [*conditions, f"footprint_bytes <= {bytes}"] if bytes is not None else conditions
            some = bool((eligible & study.within(where)).any())
            picks[-1].append(study.pick("balanced", where=where).id if some else None)
    return Budgets(memory, worst, picks)


def _stops(values: Floats, most: int) -> list[int]:
    """So many of the values at most, evenly from their ranks, the smallest among them and the largest not: none is
    beyond it.
    """
    found = np.unique(values)[:-1]
    if len(found) > most:
        found = found[np.linspace(0, len(found) - 1, most).round().astype(int)]
    return [int(value) for value in found]

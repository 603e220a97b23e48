"""Recommendations within bounds on memory and on the worst-case call, for the bounds at which they change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heapwright._replay.metrics import WORST_CALLS
from heapwright._studies.analysis import Analysis
from heapwright._studies.recommendations import MEMORY, RESERVE
from heapwright._studies.results import Floats
from heapwright._support.errors import HeapwrightError

MEMORY_STOPS, WORST_STOPS = 20, 8
"""Most bounds of each kind."""


@dataclass(frozen=True)
class Budgets:
    """Picks within bounds.

    Attributes:
        memory: bounds on the reserve (`Analysis.reserves`), bytes, rising.
        worst: bounds on all of `worst_calls`, loads and stores, rising.
        picks: ids of the balanced recommendations, by ``worst`` and ``memory``, each followed by no bound; None if no
            recipe that may ship meets both.
    """

    memory: list[int]
    worst: list[int]
    picks: list[list[str | None]]

    @property
    def ids(self) -> set[str]:
        """All recipes picked."""
        return {id for row in self.picks for id in row if id is not None}


def budgets(study: Analysis) -> Budgets:
    """The balanced recommendations of a study within bounds: the results of `Analysis.pick` with these conditions.

    The bounds are values of recipes on the study's front and on the front of memory with the worst-case calls, among
    all recipes and among those that may ship.
    """
    columns, kinds = study.combined.columns, worst_calls(study)
    longest = np.max([columns[key] for key in kinds], axis=0)
    memory_key = next((key for key in study.objectives if key in MEMORY), "footprint_bytes")
    fronts = [study.objectives, *((memory_key, key) for key in kinds)]
    may_ship = np.isin(np.arange(len(study.combined.ids)), study.may_ship("balanced"))
    rows = np.concatenate([study.combined.front_rows(keys, among) for keys in fronts for among in (None, may_ship)])
    memory = _stops(study.reserves[rows], MEMORY_STOPS)
    worst = _stops(longest[rows], WORST_STOPS)
    picks: list[list[str | None]] = []
    for most in (*worst, None):
        conditions = [f"{key} <= {most}" for key in kinds] if most is not None else []
        picks.append([])
        for bytes in (*memory, None):
            where = [*conditions, f"{RESERVE} <= {bytes}"] if bytes is not None else conditions
            picks[-1].append(_pick(study, where))
    return Budgets(memory, worst, picks)


def worst_calls(study: Analysis) -> list[str]:
    """The metrics of the worst-case calls, on the future if the study has them."""
    columns = study.combined.columns

    def measured(key: str) -> bool:  # older studies lack some
        return key in columns and not bool(np.isnan(columns[key]).all())

    keys = [key if measured(key := f"long_run_{call}_max") else here for call, here in WORST_CALLS.items()]
    return [key for key in keys if measured(key)]


def _pick(study: Analysis, where: list[str]) -> str | None:
    try:
        return study.pick("balanced", where=where).id
    except HeapwrightError:  # no recipe that may ship is within the bounds
        return None


def _stops(values: Floats, most: int) -> list[int]:
    """At most `most` of the values, evenly spaced by rank, from the smallest; the largest bounds nothing."""
    result = np.unique(values[~np.isnan(values)])[:-1]
    if len(result) > most:
        result = result[np.linspace(0, len(result) - 1, most).round().astype(int)]
    return [int(value) for value in result]

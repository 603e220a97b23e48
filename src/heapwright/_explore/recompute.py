"""Recomputation of a study's metrics from its traces and recipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

from heapwright._measure.metrics import replay_for
from heapwright._recipes.recipe import Recipe
from heapwright._replay.metrics import LONG_RUN_METRICS, SHIPPING_METRICS, TARGET_METRICS, Value
from heapwright._studies.originals import copies_of, original
from heapwright._studies.records import TraceInfo
from heapwright._studies.study_file import StudyFile
from heapwright._studies.tables import SINCE_5, Role
from heapwright._support.errors import HeapwrightError
from heapwright._traces.copies import each_copy
from heapwright._traces.trace import Trace

_TIMED = ("ns_per_event",)

_OF_CANDIDATES = {*SHIPPING_METRICS, *LONG_RUN_METRICS}
"""Metrics that no replay of a recording measures."""


@dataclass(frozen=True)
class Recomputed:
    """Metrics of a recipe on a trace as they are stored, and as they are computed now.

    ``heapwright`` and ``machine`` made the stored ones, the machine if they hold a time. ``differing``: keys whose
    values are not equal, without times, metrics of futures and stress tests, and measurements on a target.
    """

    id: str
    trace: str
    role: Role
    heapwright: str
    machine: str | None
    stored: Mapping[str, Value]
    metrics: Mapping[str, Value]
    differing: tuple[str, ...]


def recompute(path: Path, id: str, names: Sequence[str] = (), given: Sequence[Path] = ()) -> Iterator[Recomputed]:
    """Replay a recipe of the study at `path` on every trace on which it was evaluated, or on those named.

    Copies are drawn as they were. `given`: where traces are now that have moved, by their file names. Raises
    HeapwrightError if there is no such recipe or result, or a trace differs from the study's.
    """
    with StudyFile.open(path) as study:
        recipe = study.recipe(id)
        rows = study.rows(recipe.hash)
        if unknown := set(names) - {row["trace"] for row in rows}:
            known = ", ".join(row["trace"] for row in rows)
            raise HeapwrightError(f"{path}:{id}: not tried on {', '.join(sorted(unknown))}; it was on {known}")
        roles: tuple[Role, ...] = ("explored", "held out", "copy")
        infos = {info.name: (info, role) for role in roles for info in study.traces(role)}
        for row in rows:
            if not names or row["trace"] in names:
                yield _recomputed(study, recipe, row, *infos[row["trace"]], given)


def _recomputed(
    study: StudyFile, recipe: Recipe, row: Mapping[str, Any], info: TraceInfo, role: Role, given: Sequence[Path]
) -> Recomputed:
    """One row of the study and the same metrics now."""
    is_copy = role == "copy"
    trace = _copy(study, info, given) if is_copy else original(study, info, given, repair=True)
    replay = replay_for(() if is_copy else study.objectives, study.energy_table)
    metrics = replay(trace, recipe, None).metrics
    measured = {key: value for key, value in metrics.items() if key not in _OF_CANDIDATES}
    stored = {key: row[key] for key in measured}
    differing = tuple(key for key in measured if not _equal(key, stored[key], measured[key]))
    return Recomputed(recipe.hash, info.name, role, row["heapwright"], row["machine"], stored, measured, differing)


def _copy(study: StudyFile, info: TraceInfo, given: Sequence[Path]) -> Trace:
    """Draw a copy as it was drawn."""
    for of in study.traces():
        siblings = copies_of(study, of.name)
        if info in siblings:
            for copy in each_copy(original(study, of, given, repair=True), len(siblings), seed=info.seed or 0):
                if copy.name == info.name and TraceInfo.of(copy).digest == info.digest:
                    return copy
    raise HeapwrightError(
        f"{study.path}: {info.name} is drawn otherwise by this version; explore again for copies of it"
    )


def _equal(key: str, stored: Value, measured: Value) -> bool:
    if stored is None and key in SINCE_5:  # the study is older
        return True
    if key in _TIMED or measured is None:
        return key in (*_TIMED, *TARGET_METRICS) or stored is None
    return stored is not None and isclose(stored, measured, rel_tol=1e-9)

"""The numbers of a study, made again from its traces and recipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path

from heapwright._measure.metrics import replay_for
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
    """The metrics of a recipe on a trace as they are stored, and as they come out now.

    ``heapwright`` and ``machine`` made the stored ones, the machine where they hold a time. ``differing`` are the keys
    of those that are not equal; times are left out, futures, the stress test, and what was measured on a target
    afterwards.
    """

    id: str
    trace: str
    role: Role
    heapwright: str
    machine: str | None
    stored: Mapping[str, Value]
    metrics: Mapping[str, Value]
    differing: tuple[str, ...]


def again(path: Path, id: str, names: Sequence[str] = (), given: Sequence[Path] = ()) -> Iterator[Recomputed]:
    """Replay a recipe of the study at `path` on every trace that it was tried on, or on those of some names.

    Copies are drawn as they were. `given`: where traces lie now that have moved, by the names of their files. Raises
    HeapwrightError where there is no such recipe or result, or a trace is not the one that the study was made on.
    """
    with StudyFile.open(path) as study:
        recipe, energies = study.recipe(id), study.energy_table
        rows = study.rows(recipe.hash)
        if unknown := set(names) - {row["trace"] for row in rows}:
            known = ", ".join(row["trace"] for row in rows)
            raise HeapwrightError(f"{path}:{id}: not tried on {', '.join(sorted(unknown))}; it was on {known}")
        infos: dict[str, tuple[TraceInfo, Role]] = {}
        for role in ("explored", "held out", "copy"):
            infos |= {info.name: (info, role) for info in study.traces(role)}
        for row in rows:
            name = row["trace"]
            if names and name not in names:
                continue
            info, role = infos[name]
            trace = _copy(study, info, given) if role == "copy" else original(study, info, given, repair=True)
            replay = replay_for(() if role == "copy" else study.objectives, energies)
            metrics = replay(trace, recipe, None).metrics
            measured = {key: value for key, value in metrics.items() if key not in _OF_CANDIDATES}
            stored = {key: row[key] for key in measured}
            differing = tuple(key for key in measured if not _equal(key, stored[key], measured[key]))
            yield Recomputed(recipe.hash, name, role, row["heapwright"], row["machine"], stored, measured, differing)


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

"""Measurement of a study's front, recommendations and reference allocators on a target, stored in the study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from heapwright._measure.boards.compilers import LEVELS
from heapwright._measure.boards.image import BoardHeap
from heapwright._measure.boards.measure import Session
from heapwright._measure.boards.objectives import metrics_of
from heapwright._recipes.recipe import Recipe
from heapwright._replay.metrics import Objectives
from heapwright._studies.analysis import Analysis
from heapwright._studies.originals import originals
from heapwright._studies.recommendations import PICKS
from heapwright._studies.records import Measured
from heapwright._support.subprocesses import processors
from heapwright._traces.trace import Trace


def measure_front(
    study_path: Path | str,
    trace_paths: Sequence[Path] = (),
    *,
    beside: Sequence[BoardHeap] = (),
    objectives: Objectives | None = None,
    repair: bool = False,
    progress: Callable[[str], None] | None = None,
    **session: Any,
) -> list[dict[str, Any]]:
    """Measure the recommendations, the front and the ranked reference allocators without failed requests.

    Args:
        study_path: the study; measurements are added to it.
        trace_paths: present paths of the study's traces; by default their paths when it was explored.
        `beside`: other heaps to measure; the report shows them, and the study does not rank them.
        objectives: objectives of the front; None for those of the study.
        repair: read the traces as they were read for the exploration.
        progress: called with a line before each heap.
        session: as for `Session`.

    Returns the results of `measure` for each heap and trace, each heap by its name as a reference allocator or its id.

    Raises HeapwrightError as `measure` and `Analysis.open` do, and if a trace is not the one that was explored.
    """
    chosen = Session(**session)
    with Analysis.open(study_path) as study:
        standings = [standing.candidate for standing in study.zoo_standings() if standing.ranked]
        front = study.front(objectives)
        picks = [study.pick(how, objectives) for how in PICKS] if front else []
        members = {item.id: item for item in [*picks, *front, *standings] if not item.metrics["failed"]}
        recipes = {id: study.recipe(id) for id in members}
        traces = originals(study, trace_paths, repair=repair)
    heaps: dict[str, BoardHeap | Recipe] = {**{heap.name: heap for heap in beside}, **recipes}
    labels = {id: member.label for id, member in members.items()}
    measured = _measured(chosen, heaps, labels, traces, progress)
    with Analysis.open(study_path, write=True) as study:
        study.add_measured(chosen.setting, measured)
    return [dict(item.detail) for item in measured]


def _measured(
    session: Session,
    heaps: Mapping[str, BoardHeap | Recipe],
    labels: Mapping[str, str],
    traces: Sequence[Trace],
    progress: Callable[[str], None] | None,
) -> list[Measured]:
    """Measurements of each allocator on each trace."""
    measured = []
    with ThreadPoolExecutor(processors()) as pool:  # compilers and emulators are processes, which run in parallel
        waiting = {id: pool.submit(session.measure, heap, traces, LEVELS[:1]) for id, heap in heaps.items()}
        try:
            for index, (id, result) in enumerate(waiting.items(), 1):
                label = labels.get(id, id)
                if progress:
                    progress(f"{index} of {len(heaps)}: {label}")
                for item in result.result():
                    measured.append(Measured(id, item["trace"], metrics_of(item), {**item, "heap": label}))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return measured

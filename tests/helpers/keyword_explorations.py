"""Explorations in tests: the options are keywords."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from heapwright._explore import search
from heapwright._explore.options import Options
from heapwright._explore.runner import Progress
from heapwright._explore.search import Exploration
from heapwright._explore.space import AnySpace
from heapwright._recipes.recipe import Recipe
from heapwright._replay.metrics import DEFAULT_OBJECTIVES
from heapwright._traces.trace import Trace


def explore(
    traces: Sequence[Trace],
    space: AnySpace,
    objectives: str | Sequence[str] = DEFAULT_OBJECTIVES,
    study_path: Path | str = "study.duckdb",
    *,
    held_out: Sequence[Trace] = (),
    earlier: Sequence[Recipe] = (),
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Exploration:
    """Explore as `heapwright._explore.search.explore` does."""
    how = Options(objectives, **options)
    return search.explore(traces, space, study_path, how, held_out=held_out, earlier=earlier, progress=progress)

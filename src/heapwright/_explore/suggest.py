"""An answer at once: what other traces taught, tried on this one, and the pick of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright._explore.options import Options
from heapwright._explore.portfolio import HeldOutScore, Told, taught, taught_space
from heapwright._explore.runner import Progress
from heapwright._explore.search import explore
from heapwright._explore.space import DEFAULT_ALIGN
from heapwright._studies.analysis import Analysis
from heapwright._studies.decision import Decision, decide

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

FUTURE = 200_000
"""Calls of the future: two fifths of what `explore` takes, for an answer in seconds."""


@dataclass(frozen=True)
class Suggested:
    """The decision on what other traces taught, of how many recipes, and how far such answers were elsewhere."""

    decision: Decision
    recipes: int
    kept_out: HeldOutScore


def suggest(
    traces: Sequence[Trace],
    study_path: Path,
    align: int = DEFAULT_ALIGN,
    *,
    told: Sequence[Told] | None = None,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Suggested:
    """Try the list that other traces taught, and the zoo, on traces, and decide.

    ``study_path``: the file to write; ``told``: another list than the one that ships. Arguments and errors else as for
    `explore`. Candidates are replayed on a shorter future than there.
    """
    space = taught_space(traces, align, told)
    options = Options(complete=True, future=FUTURE, jobs=jobs)
    explore(traces, space, study_path, options, progress=progress)
    with Analysis.open(study_path) as study:
        return Suggested(decide(study), study.ranked, taught().kept_out)

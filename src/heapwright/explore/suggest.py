"""An answer at once: what other traces taught, tried on this one, and the pick of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright.decide.decision import Decision, decide
from heapwright.decide.study import Study
from heapwright.explore.endurance import try_picks
from heapwright.explore.options import Options
from heapwright.explore.runner import Progress, Runner
from heapwright.explore.search import explore
from heapwright.explore.space import DEFAULT_ALIGN
from heapwright.explore.taught import KeptOut, Told, taught, taught_space
from heapwright.explore.trial import Candidate
from heapwright.explore.workers import Interrupt, Threads
from heapwright.files.tools import processors

if TYPE_CHECKING:
    from heapwright.traces.trace import Trace

COPIES = 2
"""Copies of each trace that what is near the front is tried on: one of the load as recorded, one of more."""


@dataclass(frozen=True)
class Suggested:
    """The decision on what other traces taught, of how many recipes, and how far such answers were elsewhere."""

    decision: Decision
    recipes: int
    kept_out: KeptOut


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
    `explore`. The pick is tried on copies and for years; of the others it is not known whether they last.
    """
    space = taught_space(traces, align, told)
    options = Options(complete=True, copies=COPIES, endurance=False, jobs=jobs)
    explore(traces, space, study_path, options, progress=progress)
    candidates = {
        one.hash: Candidate(one.hash, one, named.name if (named := space.zoo.get(one.hash)) else None)
        for one in space.recipes()
    }
    with Interrupt() as interrupt, Study.open(study_path, write=True) as study:
        try_picks(Runner(study, Threads(jobs or processors()), interrupt, progress), candidates, traces, "balanced")
        return Suggested(decide(study), study.ranked, taught().kept_out)

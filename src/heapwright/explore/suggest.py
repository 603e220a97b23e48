"""An answer at once: what other traces taught, tried on this one, and the pick of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright.decide.decision import Decision, decide
from heapwright.decide.picks import BLIND, RIVALS, Pick
from heapwright.decide.study import Study
from heapwright.explore.budget import Shares
from heapwright.explore.elsewhere import Elsewhere
from heapwright.explore.endurance import MOST_PICKED, try_endurance, try_picks
from heapwright.explore.options import Options
from heapwright.explore.runner import Progress, Runner
from heapwright.explore.search import explore, shortlist_of
from heapwright.explore.space import DEFAULT_ALIGN
from heapwright.explore.taught import KeptOut, Told, taught, taught_space
from heapwright.explore.trial import Candidate
from heapwright.explore.workers import Interrupt, Threads
from heapwright.files.tools import processors
from heapwright.measure.metrics import replay_for
from heapwright.replay.endurance import MIDDLE

if TYPE_CHECKING:
    from heapwright.traces.trace import Trace

COPIES = 2
"""Copies of each trace: one of the load as recorded, one of more."""

FIRST = 8
"""So many recipes, the first in the order of picks, are tried on copies; all, where none of these holds there."""

HOW: Pick = "balanced"
"""What is told."""


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
    `explore`. The pick and what would come next are tried on copies. Whether the pick lasts is tried for as long as
    `MIDDLE` says; of the others it is not known.
    """
    space = taught_space(traces, align, told)
    options = Options(complete=True, copies=0, endurance=False, jobs=jobs)
    explore(traces, space, study_path, options, progress=progress)
    candidates = {
        one.hash: Candidate(one.hash, one, named.name if (named := space.zoo.get(one.hash)) else None)
        for one in space.recipes()
    }
    with Interrupt() as interrupt, Study.open(study_path, write=True) as study:
        runner = Runner(study, Threads(jobs or processors()), interrupt, progress)
        near = shortlist_of(study, candidates)
        order = _try_first(runner, candidates, near, traces)
        elsewhere = Elsewhere(runner, replay_for((), options.energies), Shares())
        for first in (order[:FIRST], near):
            on_copies = [candidates[id] for id in dict.fromkeys([*first, *_beside(study, order)])]
            elsewhere.on_copies(on_copies, traces, COPIES, options.seed)
            try_picks(runner, candidates, traces, HOW, MIDDLE)
            if study.pick(HOW).id in first:
                break
        return Suggested(decide(study), study.ranked, taught().kept_out)


def _try_first(
    runner: Runner, candidates: Mapping[str, Candidate], near: Sequence[str], traces: Sequence[Trace]
) -> list[str]:
    """Try whether those that would be picked last, each alone, until one does; those that may, it first."""
    study = runner.study
    for _ in range(MOST_PICKED):
        robustness = study.robustness()
        ids = [id for id in near if robustness.why_not(id) is None and robustness.doubt(id, HOW) is None]
        rows = [row for id in ids if (row := study.combined.row(id)) is not None]
        if not rows:
            return []
        ordered = [study.combined.ids[row] for row in robustness.ordered(HOW, rows)]
        if robustness.lasts(ordered[0]):
            break
        try_endurance(runner, [candidates[ordered[0]]], traces, MIDDLE)
    return ordered


def _beside(study: Study, ordered: Sequence[str]) -> list[str]:
    """Ids of the least in each objective, by which others are measured, and of the zoo's that stand beside a pick."""
    results = study.combined
    rows = [row for id in ordered if (row := results.row(id)) is not None]
    least = [min(rows, key=lambda row: (float(results.columns[key][row]), row)) for key in study.objectives if rows]
    known = [id for id, name in zip(results.ids, results.zoo_names, strict=True) if name in {*RIVALS, *BLIND}]
    return [*(results.ids[row] for row in least), *known]

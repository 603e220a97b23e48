"""Recommendation in seconds: the portfolio evaluated on a trace, and the best of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright._explore.options import Options
from heapwright._explore.portfolio import HeldOutScore, Template, portfolio_space, shipped_portfolio
from heapwright._explore.runner import Progress
from heapwright._explore.search import explore
from heapwright._explore.space import align_for
from heapwright._studies.analysis import Analysis
from heapwright._studies.decision import Decision, decide

if TYPE_CHECKING:
    from heapwright._explore.space import TargetPlatform
    from heapwright._traces.trace import Trace

FUTURE = 200_000
"""Calls of the future: two fifths of what `explore` takes, for an answer in seconds."""

WHOLE_CALLS = 30_000_000
"""Calls of the replays on whole long traces: a fifth of what `explore` takes."""


@dataclass(frozen=True)
class Suggested:
    """Decision among the portfolio's recipes, their number, and the portfolio's score on held-out traces.

    ``caveat``: how long traces were replayed by pieces, in words; None if all were replayed whole.
    """

    decision: Decision
    recipes: int
    kept_out: HeldOutScore
    caveat: str | None = None


def suggest(
    traces: Sequence[Trace],
    study_path: Path,
    align: int | None = None,
    *,
    templates: Sequence[Template] | None = None,
    platform: TargetPlatform | None = None,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Suggested:
    """Evaluate the portfolio and the reference allocators on traces, and decide.

    ``study_path``: the file to write; ``templates``: in place of the portfolio that ships; ``platform``: the one for
    which every recipe is as it is generated. Other arguments and errors as for `explore`. Candidates are replayed on a
    shorter future than there.
    """
    space = portfolio_space(traces, align_for(platform, align), templates, platform)
    options = Options(complete=True, future=FUTURE, jobs=jobs, by_pieces=True, whole_calls=WHOLE_CALLS)
    done = explore(traces, space, study_path, options, progress=progress)
    with Analysis.open(study_path) as study:
        return Suggested(decide(study), done.recipes, shipped_portfolio().kept_out, study.pieces)

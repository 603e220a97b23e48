"""The paper's own design space: whether its proposed allocator is balanced among the uses of its four techniques."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import heapwright as hw
from heapwright import Space, Study, zoo
from heapwright_papers.case_study import MIX
from heapwright_papers.held_out import Costs, costs, geometric_means, ratios_of
from heapwright_papers.measuring import replayed
from heapwright_papers.page import ALIGN, Page
from heapwright_papers.verdicts import Cause, fails, judge

if TYPE_CHECKING:
    from heapwright import Trace

RECIPES = 1_000


def check_grid(page: Page, proposed: str, traces: Mapping[str, Trace]) -> None:
    """Answer, on the paper's mix, whether the proposed allocator is the most balanced of those the paper explored.

    It is, if no use of the techniques takes both less memory and fewer accesses, as geometric means over the traces.
    """
    named = [replace(trace, name=name) for name, trace in traces.items()]
    space = Space([hw.families.technique_grid(named, ALIGN).values()], align=ALIGN, include_zoo=False)
    base = {trace.name: costs(replayed(trace, zoo(proposed))) for trace in named}
    with TemporaryDirectory(prefix="heapwright-papers-") as folder:
        path = Path(folder) / "study.duckdb"
        random: dict[str, Any] = {"strategy": "random", "limit": RECIPES}
        hw.explore(named, path, space=space, copies=0, endurance=False, complete=True, **random)
        with Study.open(path) as study:
            means = _means(study, base)
            both = sorted((mean[0] * mean[1], id) for id, mean in means.items() if max(mean) < 1)
            best = both and f"{study.recipe(both[0][1]).summary(ALIGN)}, {_ratios(means[both[0][1]])}"
    memory, accesses = (sum(mean[at] < 1 for mean in means.values()) for at in (0, 1))
    here = (
        f"of {len(means):,} uses of its four techniques, drawn at random from {len(space):,}, {memory:,} take less "
        f"memory, {accesses:,} fewer accesses, {len(both):,} both"
    )
    why = fails(Cause.CHOICE, f"the paper does not tell its ten levels of each; of ours the best is {best}")
    page.verdict(f"{page.name}-balanced", here, judge(not both, why), MIX)


def _means(study: Study, base: Mapping[str, Costs | None]) -> dict[str, Costs]:
    """By id, of all recipes that serve every request on every trace."""
    found: dict[str, Costs] = {}
    for id, metrics in study.per_trace(study.combined.ids).items():
        pairs = [ratios_of(costs(metrics[name]), base[name]) for name in base]
        mean = geometric_means([pair for pair in pairs if pair]) if all(pairs) else None
        found |= {id: mean} if mean else {}
    return found


def _ratios(mean: Costs) -> str:
    return f"with {100 * mean[0]:.0f} % of its memory and {100 * mean[1]:.0f} % of its accesses"

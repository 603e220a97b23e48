"""How sure the answer that a page of a study begins with is: what an arena of each size serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from heapwright.decide.picks import RIVALS
from heapwright.decide.results import Candidate
from heapwright.decide.study import Need, Study
from heapwright.report.figure import BLUE, CLOUD, LEGEND_COLUMNS, SI, VERMILLION, Figure, inline

_COLOURS = (BLUE, VERMILLION, CLOUD)
_DASHES = [[1, 0], [7, 3], [2, 2]]
"""In grey the colours are alike."""


def served_by_arena(study: Study, pick: Candidate) -> Figure | None:
    """How many of the traces and copies an arena of each size serves, for the pick and what most would take.

    None where nothing was tried but what was explored on, or nothing was served.
    """
    if not study.elsewhere:
        return None
    names = {name: id for id, name in zip(study.combined.ids, study.combined.zoo_names, strict=True) if name in RIVALS}
    rivals = {name: names[name] for name in RIVALS if name in names and names[name] != pick.id}
    shown = {f"{pick.label} (pick)": pick.id, **rivals}
    needs = {label: study.needs(id) for label, id in shown.items()}
    sizes = [need.bytes for found in needs.values() for need in found if need.bytes is not None]
    if not sizes:
        return None
    rows = [row for label, found in needs.items() for row in _steps(label, found, max(sizes))]
    colours = alt.Scale(domain=list(shown), range=list(_COLOURS[: len(shown)]))
    chart = (
        inline(rows)
        .mark_line(interpolate="step-after", strokeWidth=2.5, clip=True)
        .encode(
            x=alt.X("arena:Q", title="arena, bytes", axis=alt.Axis(labelExpr=SI), scale=alt.Scale(zero=False)),
            y=alt.Y("share:Q", title="traces served whole", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("heap:N", scale=colours, legend=alt.Legend(columns=LEGEND_COLUMNS)),
            strokeDash=alt.StrokeDash("heap:N", scale=alt.Scale(domain=list(shown), range=_DASHES[: len(shown)])),
        )
        .properties(height=240)
    )
    count = len(needs[f"{pick.label} (pick)"])
    note = (
        f"Each step is one of {count} traces that an arena of this size serves whole: those explored on, perturbed "
        "copies of them, and those held out. Further left is less memory."
    )
    return Figure("arena", "What an arena serves", note, chart, 760, _told(needs))


def _told(needs: Mapping[str, Sequence[Need]]) -> str:
    told = []
    for label, found in needs.items():
        served = [need.bytes for need in found if need.bytes is not None]
        rest = "" if len(served) == len(found) else f", and refuses requests on {len(found) - len(served)}"
        told.append(f"{label} {max(served):,} bytes{rest}" if served else f"{label} none")
    return f"What serves all that is served: {'; '.join(told)}."


def _steps(label: str, needs: Sequence[Need], largest: int) -> list[dict[str, object]]:
    served = sorted(need.bytes for need in needs if need.bytes is not None)
    points = [(size, (at + 1) / len(needs)) for at, size in enumerate(served)]
    start = [(served[0], 0.0)] if served else []
    end = [(round(largest * 1.05), points[-1][1])] if points else []
    return [{"heap": label, "arena": size, "share": share} for size, share in [*start, *points, *end]]

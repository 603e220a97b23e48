"""What a page of a study says first: how much memory to reserve, for which heap, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from heapwright.explore.results import Candidate
from heapwright.explore.search import RIVALS
from heapwright.explore.study import Need, Study
from heapwright.report.figure import BLUE, CLOUD, SI, VERMILLION, Figure, inline, quantity

_COLOURS = (BLUE, VERMILLION, CLOUD)


def answer(study: Study, pick: Candidate) -> str:
    """The answer in words: the arena that served the heap on every trace of the study, and which these are."""
    needs = study.needs(pick.id)
    served_by = [need.bytes for need in needs if need.bytes is not None]
    if not served_by:
        return f"No arena serves {pick.label} whole: it refuses requests on every trace."
    refused = len(needs) - len(served_by)
    held_out = [need for need in needs if need.role == "held out"]
    copies = sum(need.role == "copy" for need in needs)
    apart = [f"{copies} perturbed copies"] * bool(copies) + [_counted(len(held_out), "trace held out")] * bool(held_out)
    served = f"served the recording{' and ' if len(apart) == 1 else ', ' if apart else ' alone'}{' and '.join(apart)}"
    told = f"Reserve {quantity(max(served_by))} for {pick.label}: that {served}."
    if refused:
        told = f"{told} On {refused} of them it refused requests."
    here = max(need.bytes or 0 for need in needs if need.role == "explored")
    return f"{told} The recording itself needs {quantity(here)}." if apart else told


def _counted(count: int, what: str) -> str:
    noun, _, rest = what.partition(" ")
    return f"{count} {noun}{'s' if count > 1 else ''} {rest}"


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
            color=alt.Color("heap:N", scale=colours),
        )
        .properties(height=240)
    )
    count = len(needs[f"{pick.label} (pick)"])
    note = (
        f"Each step is one of {count} traces that an arena of this size serves whole: those explored on, perturbed "
        "copies of them, and those held out. Further left is less memory."
    )
    return Figure("arena", "What an arena serves", note, chart, 760)


def _steps(label: str, needs: Sequence[Need], largest: int) -> list[dict[str, object]]:
    served = sorted(need.bytes for need in needs if need.bytes is not None)
    points = [(size, (at + 1) / len(needs)) for at, size in enumerate(served)]
    start = [(served[0], 0.0)] if served else []
    end = [(round(largest * 1.05), points[-1][1])] if points else []
    return [{"heap": label, "arena": size, "share": share} for size, share in [*start, *points, *end]]

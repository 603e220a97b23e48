"""Evidence for the answer at the top of a study's page: the traces that an arena of each size serves, and the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from heapwright._report.figure import BLUE, CLOUD, GREEN, LEGEND_COLUMNS, SI, SOFT, VERMILLION, Figure, inline
from heapwright._studies.analysis import Analysis, MemoryNeed, reserve_for_more
from heapwright._studies.decision import Decision
from heapwright._studies.recommendations import WELL_KNOWN
from heapwright._studies.results import Candidate
from heapwright._traces.copies import Load

_COLOURS = (BLUE, GREEN, VERMILLION, CLOUD, SOFT)
_DASHES = [[1, 0], [10, 3], [6, 3], [2, 2], [1, 3]]
"""Dashes, as the colours look the same in grey."""


def reserve_by_load(decision: Decision) -> Figure | None:
    """The bytes to reserve against the load, for the pick, the reader's allocator and well-known ones.

    None where the pick was not tried under more load, or nothing was served there.
    """
    known = {f"{decision.pick.label} (pick)": (decision.reserve_bytes, decision.more_bytes)}
    for other in decision.others:
        if other.why != "step":
            known[other.heap.label] = other.reserve_bytes, reserve_for_more(other.needs)
    ends = {label: (least, most) for label, (least, most) in known.items() if least is not None and most is not None}
    if f"{decision.pick.label} (pick)" not in ends:
        return None
    times = Load().times
    rows = [
        {"heap": label, "load": load, "bytes": size}
        for label, sizes in ends.items()
        for load, size in zip((1, times), sizes, strict=True)
    ]
    shown = list(ends)
    chart = (
        inline(rows)
        .mark_line(strokeWidth=2.5, point=alt.OverlayMarkDef(size=40, filled=True))
        .encode(
            x=alt.X("load:Q", title="times the recorded load", axis=alt.Axis(values=[*range(1, times + 1)])),
            y=alt.Y("bytes:Q", title="bytes to reserve", axis=alt.Axis(labelExpr=SI), scale=alt.Scale(zero=True)),
            color=alt.Color(
                "heap:N",
                scale=alt.Scale(domain=shown, range=list(_COLOURS[: len(shown)])),
                legend=alt.Legend(columns=LEGEND_COLUMNS),
            ),
            strokeDash=alt.StrokeDash("heap:N", scale=alt.Scale(domain=shown, range=_DASHES[: len(shown)])),
        )
        .properties(height=260)
    )
    note = (
        f"Measured at the points, on what was recorded and on copies at {times} times the load; straight between them."
    )
    text = "; ".join(f"{label} {least:,} to {most:,} bytes" for label, (least, most) in ends.items())
    return Figure("reserve", "What more load needs", note, chart, 400, f"{text}.")


def served_by_arena(study: Analysis, pick: Candidate) -> Figure | None:
    """How many of the traces and copies an arena of each size serves, for the pick and what most would take.

    None where nothing was tried but what was explored on, or nothing was served.
    """
    if not study.elsewhere:
        return None
    pairs = zip(study.combined.ids, study.combined.zoo_names, strict=True)
    names = {name: id for id, name in pairs if name in WELL_KNOWN}
    well_known = {name: names[name] for name in WELL_KNOWN if name in names and names[name] != pick.id}
    shown = {f"{pick.label} (pick)": pick.id, **well_known}
    needs = {label: study.needs(id) for label, id in shown.items()}
    sizes = [need.bytes for result in needs.values() for need in result if need.bytes is not None]
    if not sizes:
        return None
    rows = [row for label, result in needs.items() for row in _steps(label, result, max(sizes))]
    colours = alt.Scale(domain=list(shown), range=list(_COLOURS[: len(shown)]))
    chart = (
        inline(rows)
        .mark_line(interpolate="step-after", strokeWidth=2.5, clip=True)
        .encode(
            x=alt.X("arena:Q", title="arena, bytes", axis=alt.Axis(labelExpr=SI), scale=alt.Scale(zero=False)),
            y=alt.Y("share:Q", title="completed traces", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
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
    return Figure("arena", "What an arena serves", note, chart, 760, _in_words(needs))


def _in_words(needs: Mapping[str, Sequence[MemoryNeed]]) -> str:
    info = []
    for label, result in needs.items():
        served = [need.bytes for need in result if need.bytes is not None]
        rest = "" if len(served) == len(result) else f", and refuses requests on {len(result) - len(served)}"
        info.append(f"{label} {max(served):,} bytes{rest}" if served else f"{label} none")
    return f"What serves all that is served: {'; '.join(info)}."


def _steps(label: str, needs: Sequence[MemoryNeed], largest: int) -> list[dict[str, object]]:
    served = sorted(need.bytes for need in needs if need.bytes is not None)
    points = [(size, (at + 1) / len(needs)) for at, size in enumerate(served)]
    start = [(served[0], 0.0)] if served else []
    end = [(round(largest * 1.05), points[-1][1])] if points else []
    return [{"heap": label, "arena": size, "share": share} for size, share in [*start, *points, *end]]

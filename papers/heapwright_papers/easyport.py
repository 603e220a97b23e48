"""Packet buffers of Easyport: Table 4 and Figure 2, the cloud of all allocators explored and its front.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance", sections 5 and 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import heapwright as hw
from heapwright import HeapwrightError, Space, Study, labels, pareto
from heapwright_papers.case_page import CaseRun
from heapwright_papers.case_study import PROPOSED, SYSTEMS, case, fragmentation
from heapwright_papers.declared import constants
from heapwright_papers.fronts import fronts
from heapwright_papers.held_out import explored
from heapwright_papers.page import ALIGN
from heapwright_papers.readings import Joint
from heapwright_papers.traffic import has_ip

if TYPE_CHECKING:
    from heapwright import PacketTable, Trace
    from heapwright_papers.page import Page

CASE = case("easyport")
CLOUD: Mapping[str, Any] = {"copies": 0}
"""How the space is explored for Figure 2: all of it."""
_WASTEFUL = "Windows CE, ce-neither"
_NAMED = {**{zoo: name for name, zoo in SYSTEMS.items()}, CASE.proposed: PROPOSED}


def page(packets: Path | None, progress: Callable[[str], None], joint: Joint | None = None) -> Page:
    """Table 4, Figure 2, their claims, and the best of the full space on networks held out.

    `joint` is how the paper is read, by default as `readings.leading` has it.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`, or where no table has both of the paper's
    frames.
    """
    of = CaseRun(CASE, progress, packets, joint)
    of.choose(stand_ins(of.tables) if of.tables else {})
    of.try_heaps({})
    trial = of.trials[0]
    wasteful = max(trial.names, key=lambda name: trial.column(_WASTEFUL, fragmentation, name))
    seen = _explore(replace(trial.of(wasteful)[0].trace, name=wasteful), progress)
    shares = {name: sum(_shares(table)) for name, table in of.chosen.items()}
    return of.filled({}, {**constants("easyport"), **seen, "dominant_share": shares})


def stand_ins(tables: Mapping[str, PacketTable]) -> dict[str, PacketTable]:
    """The tables in whose first packets the rarer of the paper's two frames is most frequent."""
    shares = {name: min(_shares(table)) for name, table in tables.items() if has_ip(table)}
    chosen = sorted((name for name in shares if shares[name] > 0), key=lambda name: -shares[name])[: CASE.traces]
    if not chosen:
        sizes = " and of ".join(f"{size} bytes" for size in constants("easyport")["MODES"])
        raise HeapwrightError(f"no packet table has frames of {sizes} among its first {CASE.packets:,}")
    return {name: tables[name] for name in chosen}


def _shares(table: PacketTable) -> list[float]:
    sizes = constants("easyport")["MODES"]
    return [float((table.frame_len[: CASE.packets] == size).mean()) if len(table) else 0.0 for size in sizes]


# ---- Figure 2 --------------------------------------------------------------------------------------------------------


def _explore(trace: Trace, progress: Callable[[str], None]) -> dict[str, Any]:
    """Try every recipe on one network; what the expressions see of it."""
    space = Space.default([trace], ALIGN, move_zoo=False)
    progress(f"easyport: {len(space):,} recipes on {trace.name}")
    with explored([trace], space, **CLOUD) as study:
        points = _points(study, trace)
        (standing,) = (one for one in study.zoo_standings() if one.candidate.zoo_name == CASE.proposed)
        progress("easyport: time, fragmentation and energy")
        return {
            "wasteful": trace,
            "recipes": study.ranked,
            "points": points,
            "front": _front(study, points),
            "standing": standing,
            **_placed([point for point in points if point["kind"] != "cloud"], points),
            **fronts(study, trace, _NAMED),
        }


def _points(study: Study, trace: Trace) -> list[dict[str, Any]]:
    """A point for every recipe that served all requests and hands out pointers; `id` is the recipe's."""
    combined = study.combined
    columns = [combined.columns[key].tolist() for key in ("failed", "footprint_bytes", "accesses")]
    points = [
        {
            "id": id,
            "kind": "zoo" if name else "cloud",
            "name": name or "",
            "overhead": 100 * (memory / trace.peak_live_bytes - 1),
            "accesses": accesses / len(trace),
        }
        for id, name, failed, memory, accesses in zip(combined.ids, combined.zoo_names, *columns, strict=True)
        if not failed
    ]
    costs = np.array([[point["overhead"], point["accesses"]] for point in points])
    for at in np.flatnonzero(pareto.front(costs, ("min", "min"))):
        points[at]["kind"] = "front"
    return points


def _placed(shown: Sequence[Mapping[str, Any]], points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Names of the paper's allocators where there is room for them, the proposed one's first; and what axes span."""
    width, height, padding = 556, 440, 16
    spans = {
        key: (min(one[key] for one in points), max(one[key] for one in points)) for key in ("overhead", "accesses")
    }

    def pixels(value: float, key: str, length: int) -> float:
        low, high = map(math.log, spans[key])
        return padding + (math.log(value) - low) * (length - 2 * padding) / ((high - low) or 1)

    def marker(point: Mapping[str, Any]) -> labels.Marker:
        up = pixels(point["accesses"], "accesses", height)
        return labels.Marker(pixels(point["overhead"], "overhead", width), height - up)

    named = sorted((one for one in shown if one["name"] in _NAMED), key=lambda one: one["name"] != CASE.proposed)
    names = [_NAMED[point["name"]] for point in named]
    places = labels.place(list(map(marker, named)), names, list(map(marker, shown)), width, height)
    rows = [
        {
            "overhead": point["overhead"],
            "accesses": point["accesses"],
            "text": name,
            "proposed": name == PROPOSED,
            "dx": label.dx,
            "dy": label.dy,
            "align": label.align,
        }
        for point, name, label in zip(named, names, places, strict=True)
        if label
    ]
    return {"labels": rows, "spans": spans}


@dataclass(frozen=True)
class Member:
    """What is told of a member of the front, and asked: its freelists, general pools, and whether it has classes."""

    label: str
    footprint: int
    accesses: int
    summary: str
    lists: int
    generals: Sequence[hw.pools.General]
    classes: bool


def _front(study: Study, points: Sequence[Mapping[str, Any]]) -> list[Member]:
    found = []
    front = sorted((point for point in points if point["kind"] == "front"), key=lambda point: point["overhead"])
    for point in front:
        one, recipe = study.candidate(point["id"]), study.recipe(point["id"])
        found.append(
            Member(
                one.label,
                int(one.metrics["footprint_bytes"] or 0),
                int(one.metrics["accesses"] or 0),
                recipe.summary(ALIGN),
                sum(len(pool.sizes or ()) for pool in recipe.pools if isinstance(pool, hw.pools.Quick)),
                [pool for pool in recipe.pools if isinstance(pool, hw.pools.General)],
                any(isinstance(pool, hw.pools.Fixed) for pool in recipe.pools),
            )
        )
    return found

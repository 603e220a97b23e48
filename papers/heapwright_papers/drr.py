"""Deficit round robin: Table 3, Figures 3 and 4, and the characteristics of section 5.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import heapwright as hw
from heapwright import FREE, births_and_deaths, sample_events, size_table, zoo
from heapwright_papers.answers import NO_PACKETS, percent
from heapwright_papers.case_page import CaseRun
from heapwright_papers.case_study import MIX, PROPOSED, REAL, case, try_all
from heapwright_papers.declared import constants
from heapwright_papers.readings import Joint, with_general
from heapwright_papers.traffic import has_ip

if TYPE_CHECKING:
    from heapwright import PacketTable, Recipe, Trace
    from heapwright_papers.page import Page

CROSSED_PACKETS = 10_000
"""Of each network, under which all uses of the techniques are crossed: without coalescing lists grow long."""
EXTRA = 16
"""Bytes that a packet is stored with in addition to its data, as `heapwright workload drr` has them."""
POINTS = 500
"""Of a curve over time."""

CASE = case("drr")
LISTS, WINDOW, BEST_FIT = (constants("drr")[name] for name in ("LISTS", "WINDOW", "BEST_FIT"))
_OF_NETWORKS = ("neighbours", "together", "wired", "wireless", "tables", "returned", "uneven", "flows")


def page(packets: Path | None, progress: Callable[[str], None], joint: Joint | None = None) -> Page:
    """Table 3, Figures 3 and 4, the claims of sections 5 and 6, and the best of the full space: see `CaseRun`."""
    of = CaseRun(CASE, progress, packets, joint)
    frames = {name: table for name, table in of.tables.items() if not has_ip(table)}
    of.page.traffic(frames)
    of.try_heaps(**{BEST_FIT: with_general(CASE.read(of.read)[PROPOSED], fit="best")})
    progress("drr: the four techniques")
    return of.filled({**_names(of, frames), **_crossed(of)})


def _names(of: CaseRun, frames: Mapping[str, PacketTable]) -> dict[str, Any]:
    """What the expressions see of the traffic; `frames` are networks that show frames of 802.11 alone."""
    traces = {trial.on: {name: trial.of(name)[0].trace for name in trial.names} for trial in of.trials}
    wired = traces.get(REAL, {})
    wireless = {name: of.workload(table, count=CASE.packets, size="frame") for name, table in frames.items()}
    near = {name: hw.profile(trace)["locality"][-1] for name, trace in {**wired, **wireless}.items()}
    near = {name: row for name, row in near.items() if row["share"] is not None}
    sizes = {name: _sizes(table) for name, table in of.chosen.items()}

    def together(of: Mapping[str, Trace]) -> str:
        rows = [near[name] for name in of if name in near]
        share, chance = (mean(row[key] for row in rows) if rows else 0.0 for key in ("share", "by_chance"))
        return f"{percent(share)} (by chance {percent(chance)})" if rows else "none"

    def each(function: Callable[[Trace], float]) -> dict[str, Any]:
        results = {on: {name: function(trace) for name, trace in of.items()} for on, of in traces.items()}
        return {REAL: NO_PACKETS} | results

    known: dict[str, Any] = {
        "live_over_time": _live_over_time,
        "neighbours": near,
        "together": together,
        "wired": wired,
        "wireless": wireless,
        "fast": each(_freed_fast),
        "blocks": each(_most_in_main_pool),
        "full": each(lambda trace: float((trace.live_bytes > trace.peak_live_bytes / 2).mean())),
        "tables": {name: size_table(results) for name, results in sizes.items()},
        "returned": {name: float(1 - np.isin(results, LISTS).mean()) for name, results in sizes.items()},
        "uneven": [_uneven(results) for results in sizes.values()],
        "flows": [_of_flows(wired[name], table.flow[: CASE.packets]) for name, table in of.chosen.items()],
    }
    return known if wired else known | dict.fromkeys(_OF_NETWORKS, NO_PACKETS)


def _live_over_time(trace: Trace) -> list[tuple[float, int]]:
    """Seconds, and the requested bytes that are live then."""
    at = sample_events(trace.live_bytes, POINTS)
    return list(zip((trace.ts_us[at] / 1e6).round(3).tolist(), trace.live_bytes[at].tolist(), strict=True))


def _uneven(result: NDArray[np.int64]) -> float:
    """How far the other sizes are from an even spread between the two, as Kolmogorov's distance."""
    rest = np.sort(result[(result > LISTS[0]) & (result < LISTS[1])])
    even = (rest - LISTS[0]) / (LISTS[1] - LISTS[0])
    return float(np.abs(even - np.arange(1, len(rest) + 1) / len(rest)).max()) if len(rest) else 1.0


def _of_flows(trace: Trace, flow: NDArray[np.uint32]) -> tuple[float, float]:
    """How many packets that come one after the other die together: of those of one flow, and of two."""
    objects = births_and_deaths(trace)
    packet = trace.id[objects.birth].astype(np.int64)
    stored = packet < len(flow)
    packet, death = packet[stored], objects.death[stored]
    order = np.searchsorted(np.sort(death), death)
    near = np.abs(np.diff(order)) <= WINDOW
    same = flow[packet[1:]] == flow[packet[:-1]]
    return float(near[same].mean()), float(near[~same].mean())


def _freed_fast(trace: Trace) -> float:
    objects = births_and_deaths(trace)
    return float((objects.death - objects.birth <= WINDOW).mean())


def _most_in_main_pool(trace: Trace) -> int:
    number, count = trace.objects()
    size = np.zeros(count, np.int64)
    taken = trace.op != FREE
    size[number[taken]] = trace.size[taken]
    other = ~np.isin(size[number], LISTS)
    return int(np.cumsum(np.where(other, np.where(taken, 1, -1), 0)).max())


def _sizes(table: PacketTable) -> NDArray[np.int64]:
    """Bytes that each packet is stored in: its data, which a queue lists in order of arrival, and EXTRA."""
    queue = hw.workload("queue", table, count=CASE.packets, size="payload", limit=CASE.packets)
    sizes: NDArray[np.int64] = queue.size[queue.op == hw.MALLOC].astype(np.int64)
    return sizes + EXTRA


def _crossed(of: CaseRun) -> dict[str, Any]:
    """All uses of splitting, of two freelists, of fits and of coalescing, each heap named by them."""
    uses = product(("always", "never"), (True, False), ("first", "best"), ("immediate", "never"))
    heaps = {" ".join(map(str, use)): _design(*use) for use in uses}
    real = {name: of.workload(table, count=CROSSED_PACKETS) for name, table in of.chosen.items()}
    results = {
        on: try_all(on, {(name, 0): trace for name, trace in traces.items()}, heaps) if traces else NO_PACKETS
        for on, traces in ((REAL, real), (MIX, of.short_mix(CROSSED_PACKETS)))
    }
    return {"crossed": results, "crossed_names": list(heaps)}


def _design(split: str, lists: bool, fit: str, coalesce: str) -> Recipe:
    recipe = with_general(zoo(CASE.proposed), split=split, fit=fit, coalesce=coalesce)
    return recipe if lists else recipe.model_copy(update={"pools": recipe.pools[-1:]})

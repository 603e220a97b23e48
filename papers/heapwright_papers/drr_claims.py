"""What statements of Mamagkakis et al. 2006 about traffic and techniques see of deficit round robin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import heapwright as hw
from heapwright import FREE, births_and_deaths, sample_events, size_table
from heapwright_papers.answers import NO_PACKETS, percent
from heapwright_papers.case_study import REAL, Trial, try_all
from heapwright_papers.declared import constants
from heapwright_papers.readings import with_general

if TYPE_CHECKING:
    from heapwright import Recipe, Trace

Sizes = Mapping[str, NDArray[np.int64]]
LISTS, WINDOW, BEST_FIT = (constants("drr")[name] for name in ("LISTS", "WINDOW", "BEST_FIT"))
POINTS = 500
"""Of a curve over time."""


def names(
    trials: Sequence[Trial], sizes: Sizes, wireless: Mapping[str, Trace], flows: Mapping[str, NDArray[np.uint32]]
) -> dict[str, Any]:
    """What the statements' expressions see beside the trials.

    Args:
        trials: on real networks, where there are any, and on the mix.
        sizes: bytes of the packets of real networks, without the nodes of queues.
        wireless: traces of 802.11 frames.
        flows: the flow of each packet, by real network.
    """
    traces = {trial.on: {name: trial.of(name)[0].trace for name in trial.names} for trial in trials}
    wired = traces.get(REAL, {})
    near = {name: hw.profile(trace)["locality"][-1] for name, trace in {**wired, **wireless}.items()}
    near = {name: row for name, row in near.items() if row["share"] is not None}

    def together(of: Mapping[str, Trace]) -> str:
        rows = [near[name] for name in of if name in near]
        share, chance = (mean(row[key] for row in rows) if rows else 0.0 for key in ("share", "by_chance"))
        return f"{percent(share)} (by chance {percent(chance)})" if rows else "none"

    def each(function: Callable[[Trace], float]) -> dict[str, Any]:
        found = {on: {name: function(trace) for name, trace in of.items()} for on, of in traces.items()}
        return {REAL: NO_PACKETS} | found

    known: dict[str, Any] = {
        **constants("drr"),
        "live_over_time": _live_over_time,
        "neighbours": near,
        "together": together,
        "wired": wired,
        "wireless": wireless,
        "fast": each(_freed_fast),
        "blocks": each(_most_in_main_pool),
        "full": each(lambda trace: float((trace.live_bytes > trace.peak_live_bytes / 2).mean())),
        "tables": {name: size_table(found) for name, found in sizes.items()},
        "returned": {name: float(1 - np.isin(found, LISTS).mean()) for name, found in sizes.items()},
        "uneven": [_uneven(found) for found in sizes.values()],
        "flows": [_of_flows(wired[name], flow) for name, flow in flows.items()],
    }
    return known if wired else known | dict.fromkeys(_OF_NETWORKS, NO_PACKETS)


_OF_NETWORKS = ("neighbours", "together", "wired", "wireless", "tables", "returned", "uneven", "flows")


def _live_over_time(trace: Trace) -> list[tuple[float, int]]:
    """Seconds, and the requested bytes that are live then."""
    at = sample_events(trace.live_bytes, POINTS)
    return list(zip((trace.ts_us[at] / 1e6).round(3).tolist(), trace.live_bytes[at].tolist(), strict=True))


def _uneven(found: NDArray[np.int64]) -> float:
    """How far the other sizes are from an even spread between the two, as Kolmogorov's distance."""
    rest = np.sort(found[(found > LISTS[0]) & (found < LISTS[1])])
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


def crossed(on: str, traces: Mapping[str, Trace], proposed: Recipe) -> Trial:
    """All uses of splitting, of two freelists, of fits and of coalescing, each heap named by them."""
    uses = product(("always", "never"), (True, False), ("first", "best"), ("immediate", "never"))
    heaps = {" ".join(map(str, use)): _design(proposed, *use) for use in uses}
    return try_all(on, {(name, 0): trace for name, trace in traces.items()}, heaps)


def _design(proposed: Recipe, split: str, lists: bool, fit: str, coalesce: str) -> Recipe:
    recipe = with_general(proposed, split=split, fit=fit, coalesce=coalesce)
    if lists:
        return recipe
    return recipe.model_copy(
        update={"pools": tuple(pool for pool in recipe.pools if not isinstance(pool, hw.pools.Quick))}
    )

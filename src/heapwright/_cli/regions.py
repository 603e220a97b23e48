"""Several regions of memory: placements of a heap, the heap that explore chooses for them, memories of a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from heapwright._cli.output import print_json, print_sentences

if TYPE_CHECKING:
    from heapwright._api import Placement, RegionPick
    from heapwright._studies.analysis import Analysis
    from heapwright._traces.trace import Trace

SHOWN_PLACEMENTS = 8
"""Placements in regions that are printed."""
MOST_HEAPS = 16
"""Heaps of a study that are placed in regions, after its recommendations."""


def fit_regions(traces: Sequence[Trace], heaps: Sequence[str], regions: tuple[int, ...], as_json: bool) -> None:
    """Print every order of some regions for one trace on one heap, the best first."""
    from heapwright import _api as api

    if len(traces) != 1 or len(heaps) != 1:
        raise click.UsageError("--regions takes one trace and one heap")
    placements = api.fit_regions(traces[0], heaps[0], regions)
    if as_json:
        print_json([_data(placement) for placement in placements])
        return
    from heapwright._cli.tables import print_table

    names = [f"{size:,}" for size in regions]
    rows = [
        [
            " then ".join(names[at] for at in placement.order),
            "any" if placement.limit is None else f"up to {placement.limit:,}",
            f"{placement.failed:,}",
            *(f"{used:,}" for used in placement.used_bytes),
        ]
        for placement in placements[:SHOWN_PLACEMENTS]
    ]
    headings = ["regions, in order", "requests of the first", "failed", *(f"used of {name}" for name in names)]
    left = ("regions, in order", "requests of the first")
    print_table(f"Placement in regions in bytes, {traces[0].name} on {heaps[0]}", headings, [rows], left=left)
    best = placements[0]
    if best.failed:
        print_sentences([f"No order serves the trace: at best {best.failed:,} requests fail."])
    else:
        print_sentences([f"Best: {_contents(traces[0], best, regions)}."])
        serving = {placement.order for placement in placements if not placement.failed}
        _print_failing(sorted({placement.order for placement in placements} - serving), names)


def fit_memories(trace: Trace, heap: str, as_json: bool) -> None:
    """Print what each memory of a recipe in several takes on a trace."""
    from heapwright import _api as api

    uses = api.fit_memories(trace, heap)
    if as_json:
        print_json([use._asdict() for use in uses])
        return
    from heapwright._cli.tables import print_table

    rows = [
        [use.memory, *(f"{number:,}" for number in (use.bytes, use.used_bytes, use.recommended_bytes))] for use in uses
    ]
    print_table(
        f"Memories in bytes, {trace.name} on {heap}",
        ["memory", "size", "used", "recommended"],
        [rows],
        left=("memory",),
    )
    failed = f"{uses[0].failed:,} requests fail in all memories" if uses[0].failed else "All requests are served"
    then = f"{uses[0].failed_then:,} fail" if uses[0].failed_then else "the trace completes"
    print_sentences([f"{failed}. The recommended sizes are 20 % more than was used; with them {then}."])


class PickInRegions(NamedTuple):
    """The heap that explore chose for regions of memory, and the file of its recipe; None if none serves."""

    pick: RegionPick
    regions: tuple[int, ...]
    traces: tuple[Trace, ...]
    path: Path | None


def place_pick(
    study: Analysis, traces: Sequence[Trace], regions: tuple[int, ...], future: tuple[int, int]
) -> PickInRegions | None:
    """Choose a heap of a study for regions, its recommendations first, and write its recipe next to the study.

    `future` are the calls of the futures that it has to serve, 0 for none, and their seed.
    """
    from heapwright import _api as api
    from heapwright._support.writing import write_text

    long_run, seed = future
    futures = [api.resample(trace, long_run, seed=seed) for trace in traces] if long_run else []
    pick = api.place_in_regions(list(traces), _heaps(study), regions, futures=futures)
    if pick is None:
        return None
    path = None
    if pick.serves:
        path = Path(study.path).with_suffix(".regions.toml")
        write_text(path, pick.recipe.to_toml())
    return PickInRegions(pick, regions, tuple(traces), path)


def print_pick(placed: PickInRegions) -> None:
    """Print the heap, the order of the regions, what each holds, and the command that writes it as C."""
    pick, best = placed.pick, placed.pick.placement
    names = [f"{size:,}" for size in placed.regions]
    order = ", then ".join(names[at] for at in best.order)
    limit = "" if best.limit is None else f"; the first takes requests up to {best.limit:,} bytes"
    click.echo()
    if not pick.serves:
        when = "on the recordings" if pick.failed else "in the future"
        failed = pick.failed or pick.failed_future
        text = (
            f"Regions: none of {pick.tried} heaps serves all. {pick.heap} comes nearest, in this order: {order}{limit}"
        )
        print_sentences([f"{text}: {failed:,} requests fail {when}."])
        return
    print_sentences(
        [f"Regions: {pick.heap}, in this order: {order}{limit}. {_contents(placed.traces[0], best, placed.regions)}."]
    )
    for name, fewest in pick.passed_over[:1]:
        print_sentences([f"{name} comes first, but at best {fewest:,} requests fail there."])
    _print_failing(pick.orders_that_fail, names)
    print_sentences([f"heapwright generate {placed.path} -o heap writes it, with one memory for each region."])


def _print_failing(orders: Sequence[tuple[int, ...]], names: Sequence[str]) -> None:
    """Print the orders of the regions in which requests fail for any limit of the first."""
    for order in orders:
        print_sentences([f"In the order {', then '.join(names[at] for at in order)} requests fail."])


def pick_data(placed: PickInRegions) -> dict[str, Any]:
    """The JSON of a heap for regions."""
    pick = placed.pick
    return {
        "heap": pick.heap,
        "serves": pick.serves,
        "failed": pick.failed,
        "failed_future": pick.failed_future,
        "file": None if placed.path is None else str(placed.path),
        **_data(pick.placement),
    }


def _heaps(study: Analysis) -> dict[str, Any]:
    """The recipes of a study by their labels: its recommendations, its front, and well-known heaps."""
    from heapwright._studies.recommendations import WELL_KNOWN

    picks = sorted(study.picks().items(), key=lambda item: "balanced" not in item[1])
    ids = [*(id for id, _ in picks), *(candidate.id for candidate in study.front()[:MOST_HEAPS])]
    ids += [item.candidate.id for item in study.zoo_standings() if item.candidate.label in WELL_KNOWN]
    return {study.candidate(id).label: study.recipe(id) for id in dict.fromkeys(ids)}


def _data(placement: Placement) -> dict[str, Any]:
    keys = ("order", "limit", "failed", "used_bytes", "accesses")
    return {key: getattr(placement, key) for key in keys} | {"recipe": placement.recipe.to_dict()}


def _contents(trace: Trace, placement: Placement, regions: Sequence[int]) -> str:
    from heapwright import _api as api

    parts = [
        f"{regions[content.region]:,} holds {content.objects:,} objects"
        + (f" of {content.smallest:,} to {content.largest:,} B" if content.objects else "")
        for content in api.region_contents(trace, placement)
    ]
    return "; ".join(parts)

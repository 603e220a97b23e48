"""What a page says of a trace: its memory requests, and the results of heaps on it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heapwright._heaps.names import resolve_recipe
from heapwright._recipes.recipe import Recipe
from heapwright._report import held_plots, plots
from heapwright._report.animation import animation
from heapwright._report.detail import SAMPLES, Share, fewer, holders, look, packed, packed_holders, share_of
from heapwright._report.figure import counted, quantity
from heapwright._report.page import Content, Fact, HeapSection, Holding, TraceSection
from heapwright._support.names import LONGEST, shortened
from heapwright._support.version import __version__
from heapwright._traces.failures import failures_of
from heapwright._traces.leaks import find_leaks, leak_sentence
from heapwright._traces.live_bound import FALLING_BEHIND, LiveBound
from heapwright._traces.profile import profile
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE

DEFAULT_HEAP = "victim-bins"
"""The heap that a trace's page draws where none is named: the best single allocator of the zoo."""


@dataclass(frozen=True)
class NamedHeap:
    """A recipe and what the page calls it."""

    name: str
    recipe: Recipe


def trace_content(trace: Trace, heaps: Sequence[str]) -> Content:
    """The page of a trace, with the heaps named (as on the command line), `DEFAULT_HEAP` where there is none."""
    described = profile(trace)
    named = [NamedHeap(heap, resolve_recipe(heap)) for heap in heaps or [DEFAULT_HEAP]]
    seconds = "" if trace.seconds is None else f" in {trace.seconds:,.3g} s"
    threads = "one thread" if described["threads"] == 1 else counted(described["threads"], "thread")
    locality = described["locality"][1]
    return Content(
        title=trace.name,
        lead=f"{counted(len(trace), 'call')} of {threads}{seconds}: its memory profile, and "
        f"{' and '.join(heap.name for heap in named)} on it." + _order_of_death(described["free_order"]),
        facts=[
            Fact("Peak of live requests", quantity(trace.peak_live_bytes), counted(trace.peak_live_objects, "object")),
            Fact(
                "Distinct sizes", f"{described['distinct_sizes']:,}", f"{described['sizes_for_90_percent']:,} make 90 %"
            ),
            Fact("Never freed", *_never_freed(described["never_freed"])),
            Fact("Neighbours die together", percent(locality["share"]), f"by chance {percent(locality['by_chance'])}"),
        ],
        traces=[section(trace, described, named, everything=True)],
        origin=[
            f"Heapwright {__version__}. On the axes 1 MB is 1,000,000 bytes; calls are counted from 0.",
            "Neighbours are consecutive allocations that are both live; "
            f"they die together when at most {locality['within_frees']} frees lie between.",
        ],
    )


def _never_freed(never: Mapping[str, Any]) -> tuple[str, str]:
    return counted(
        never["objects"], "object"
    ), f"{plots.small_share(never['share'])} of all, {quantity(never['bytes'])}"


def _order_of_death(order: Mapping[str, float | None]) -> str:
    score = order["score"]
    if score is None:
        return ""
    if score > 0.9:
        return " Mostly the newest objects are freed first (LIFO)."
    if score < 0.1:
        return " Mostly the oldest objects are freed first (FIFO)."
    return ""


def section(
    trace: Trace, described: Mapping[str, Any], heaps: Sequence[NamedHeap], everything: bool, traces: int = 1
) -> TraceSection:
    """The figures of one trace of several and of each heap on it; `everything` adds the holders of the live bytes, and
    lifetimes."""
    stem = slug(trace.name)
    figures = [plots.top_sizes(described, f"sizes-{stem}"), plots.size_histogram(described, f"histogram-{stem}")]
    holding = None
    if everything:
        peak = described["requested_peak_event"]
        info = holders(trace, peak)
        described = {**described, "live_by": fewer(info, peak, len(described["live_by"]["event"]))}
        holding = Holding(f"live-{stem}", packed_holders(info, held_plots.group_colours(info)))
        figures += [held_plots.live_by(described, f"live-{stem}"), plots.lifetimes(described, f"lifetimes-{stem}")]
        figures += [held_plots.at_peak(described, f"peak-{stem}")]
    fullest, count = described["requested_peak_event"], traces * len(heaps)
    animations = [
        animation(trace, heap.recipe, heap.name, f"animation-{stem}-{slug(heap.name)}", fullest, count)
        for heap in heaps
    ]
    alive = float(np.mean(described["live"]["objects"]))
    return TraceSection(
        trace.name,
        figures,
        _heaps(trace, heaps, stem, [item.data["arena"] for item in animations], share_of(alive, count)),
        animations=animations,
        holding=holding,
        caveats=[*trace.repairs, *trace.caveats, *facts_in_words(trace)],
        traffic=_traffic(trace),
    )


def _traffic(trace: Trace) -> list[str]:
    """What packets a workload made the trace of, and what bounds its queue; [] if none did."""
    bound = LiveBound.of(trace)
    known = [trace.metadata["traffic"]] if "traffic" in trace.metadata else []
    if bound is not None:
        return [*known, f"The queue holds at most {bound}, {quantity(bound.payload_bytes)}."]
    waiting = trace.peak_live_bytes / max(int(trace.size[trace.op != FREE].sum(dtype=np.int64)), 1)
    if known and waiting >= FALLING_BEHIND:
        return [*known, f"The link is too slow or the queue too long: {waiting:.1%} of all bytes wait at once."]
    return known


def facts_in_words(trace: Trace) -> list[str]:
    """What leaks in a trace, and which requests failed while it was recorded, without full stops."""
    leaks, failures = find_leaks(trace), failures_of(trace)
    return ([leak_sentence(leaks, trace.name).rstrip(".")] if leaks else []) + ([str(failures)] if failures else [])


def _heaps(
    trace: Trace, heaps: Sequence[NamedHeap], stem: str, arenas: Sequence[int], share: Share
) -> list[HeapSection]:
    from heapwright._replay.pictures import timeline

    timelines = [timeline(trace, heap.recipe, points=SAMPLES * share.moments) for heap in heaps]
    extent = max(int(samples["footprint"].max()) for samples in timelines)
    results = []
    for heap, samples, arena in zip(heaps, timelines, arenas, strict=True):
        detail = look(trace, heap.recipe, arena, extent, share.moments)
        name = f"{stem}-{slug(heap.name)}"
        results.append(
            HeapSection(
                plots.timeline(samples, heap.name, len(trace), extent, f"timeline-{name}"),
                plots.heap_map(detail.still, heap.name, len(trace), extent, f"heap-map-{name}"),
                packed(detail, samples, extent, share.characters),
                heap.recipe.hash,
            )
        )
    return results


def slug(text: str) -> str:
    """A name as part of a file's name and of an anchor in the page; two of them fit into one."""
    return shortened(re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed", LONGEST // 3)


def percent(share: float | None) -> str:
    """A share in words."""
    return "no case" if share is None else f"{share:.0%}"

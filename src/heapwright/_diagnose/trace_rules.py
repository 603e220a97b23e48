"""What every call of a heap shows: the rules and thresholds of docs/diagnose.md for logs and traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from heapwright._diagnose import trials
from heapwright._diagnose.call_lines import CallLog, HeapCall
from heapwright._diagnose.model import INCONCLUSIVE, Confidence, Cure, Finding, Picture, number
from heapwright._diagnose.offers import offer
from heapwright._heaps.heaps import RecipeHeap
from heapwright._traces.failures import Failures, failures_of
from heapwright._traces.leaks import Leak, find_leaks, hours_in_words
from heapwright._traces.size_uses import SizeUse, size_uses, without

if TYPE_CHECKING:
    from heapwright._heaps.heaps import Heap
    from heapwright._traces.size_uses import SizeUse
    from heapwright._traces.trace import Trace

LEAST_CALLS = 200
"""Fewer calls show no steady state: neither a leak nor that nothing is wrong."""

HOLES = 0.10
LEAST_HOLES = 256
"""A trace fragments a heap that needs that share more than its objects and headers take, and that many bytes more."""
SHORT_HOLES = 0.25
SHORT_LEAST_HOLES = 1024
"""The same of a trace of fewer than `LEAST_CALLS` calls."""

HIGH = 0.75
RARE = 0.05
"""A burst: live bytes are above that share of their peak in that share of the calls, or fewer, ..."""
LOW = 0.5
"""... and below that share of it in half of them."""

SPARE = 16_384
"""Bytes to spare in the example of how long a leak takes, if the size of the heap is not known."""

LEAST_SECONDS = 60
"""Rates of a shorter trace are per second, those of a longer one per hour."""

DRAWN = 400


@dataclass(frozen=True)
class Context:
    """What is known in addition to the calls.

    Attributes:
        heaps: the allocator in use, if it is known, and others to try.
        arena: bytes of the heap in use; None if it is not known.
        source: what the trace is, as `240 calls`.
        losses: what the log has lost, in words.
    """

    heaps: tuple[Heap, ...]
    arena: int | None
    losses: tuple[str, ...] = ()


def judge_log(log: CallLog, name: str, context: Context) -> Finding:
    """A finding for the calls of one memory, with the requests that failed."""
    trace = log.trace(name)
    if trace is None:
        return _failures_only(log)
    if log.failed and not context.losses:
        served = log.trace(name, serve=True)
        assert served is not None
        return _refused(log, trace, served, context)
    return judge_trace(trace, context, log.memory)


def judge_trace(trace: Trace, context: Context, memory: str = "") -> Finding:
    """A finding for a trace."""
    if context.losses:
        return _lost(trace, context, memory)
    heap, assumed = trials.usual_heap(trace, context.heaps)
    if leaks := find_leaks(trace):
        return _leak(trace, leaks, heap, context, memory)
    need = heap.fit(trace)
    if failures := failures_of(trace):
        return _failed(trace, failures, heap, assumed, need, context, memory)
    if finding := _fragments(trace, heap, assumed, need, context, memory):
        return finding
    if len(trace) < LEAST_CALLS:
        return _few(trace, memory)
    return _burst(trace, memory) or _nothing(trace, heap, assumed, need, context, memory)


# --- too little, or too much lost -------------------------------------------------------------------------------------


def _facts(trace: Trace) -> tuple[tuple[str, str], ...]:
    births, frees = int((trace.op <= 1).sum()), int((trace.op == 3).sum())
    rows = [
        ("allocations", number(births)),
        ("frees", number(frees)),
        ("peak, live bytes", number(trace.peak_live_bytes)),
        ("peak, live objects", number(trace.peak_live_objects)),
        ("live at the end, B", number(int(trace.live_bytes[-1]))),
    ]
    if trace.seconds:
        rows.append(("time", f"{trace.seconds:,.3g} s"))
    return tuple(rows)


def _calls_in_words(trace: Trace) -> str:
    births, frees = int((trace.op <= 1).sum()), int((trace.op == 3).sum())
    end = int(trace.live_bytes[-1])
    calls = (
        f"{number(births)} allocation{'s' if births != 1 else ''} and {number(frees)} free{'s' if frees != 1 else ''}"
    )
    return f"{calls}, peak {number(trace.peak_live_bytes)} B, {number(end)} B alive at the end"


def _lost(trace: Trace, context: Context, memory: str) -> Finding:
    return _named(
        Finding(
            memory,
            "not enough data",
            "sure",
            f"{'; '.join(context.losses)}, so the {_calls_in_words(trace)} that are left are no trace of the heap",
            ("", "left in the log"),
            _facts(trace),
            record_next="the same with a larger buffer, or sent out while it is recorded, until nothing is lost",
            picture=_live(trace),
        )
    )


def _few(trace: Trace, memory: str) -> Finding:
    return _named(
        Finding(
            memory,
            "not enough data",
            INCONCLUSIVE,
            f"{_calls_in_words(trace)}: too few calls to show a leak, fragmentation or a steady state",
            ("", "in the log"),
            _facts(trace),
            record_next="every heap call from start on, until the trouble shows or the load has come and gone twice",
            picture=_live(trace),
        )
    )


def _failures_only(log: CallLog) -> Finding:
    sizes = [call.size for call in log.failed]
    if not sizes:
        return _named(
            Finding(
                log.memory,
                "not enough data",
                INCONCLUSIVE,
                f"{number(len(log.calls))} frees, and none of what they free is allocated in the log",
                record_next="every heap call from start on",
            )
        )
    return _named(
        Finding(
            log.memory,
            "not enough data",
            INCONCLUSIVE,
            f"{number(len(sizes))} requests of up to {number(max(sizes))} B failed, and no call that succeeded is in "
            "the log",
            record_next="every heap call from start on",
        )
    )


# --- leak -------------------------------------------------------------------------------------------------------------


def _leak(trace: Trace, leaks: Sequence[Leak], heap: Heap, context: Context, memory: str) -> Finding:
    leak = leaks[0]
    by = f" from {leak.site}" if leak.site else ""
    of = f" of {number(leak.size)} B" if leak.size else ""
    others = (
        f", and {len(leaks) - 1} more size{'s' if len(leaks) > 2 else ''} or sites with them" if len(leaks) > 1 else ""
    )
    need = heap.fit(trace)
    return _named(
        Finding(
            memory,
            "leak",
            "likely" if leak.confidence == "likely" else INCONCLUSIVE,
            f"{number(leak.objects)} objects{of}{by} ({number(leak.bytes)} B) are never freed, {_rate(trace, leak)}"
            f"{others}: {_used_up(leak, context.arena, need)}",
            ("size, B", "call site", "never freed", "bytes", "calls per object"),
            tuple(_leak_row(item) for item in leaks[:10]),
            cures=(_free_it(trace, leak, heap, need),),
            record_next="" if leak.site else "the same with call sites, to see who allocates them",
            picture=_live(trace, leak),
        )
    )


def _leak_row(leak: Leak) -> tuple[str, ...]:
    return (
        number(leak.size) if leak.size else "several",
        leak.site or "-",
        number(leak.objects),
        number(leak.bytes),
        number(1 / leak.objects_per_call),
    )


def _rate(trace: Trace, leak: Leak) -> str:
    """How often an object leaks, and how many bytes in a time, if times are known."""
    rate = f"one in {number(1 / leak.objects_per_call)} calls"
    if leak.bytes_per_hour is None:
        return rate
    if (trace.seconds or 0) < LEAST_SECONDS:
        return f"{rate}, {number(leak.bytes_per_hour / 3600)} B a second"
    return f"{rate}, {number(leak.bytes_per_hour)} B an hour"


def _used_up(leak: Leak, arena: int | None, need: int | None) -> str:
    """When what the heap has to spare is used up, in words; `need` is the smallest heap of the trace."""
    spare, whose = SPARE, "16 KB to spare are"
    if arena is not None and need is not None:
        spare, whose = max(arena - need, 0), f"what {number(arena)} B leave to spare is"
    hours = leak.hours_until(spare)
    time = f", {hours_in_words(hours)}" if hours is not None else ""
    return f"{whose} used up after {number(leak.calls_until(spare))} calls{time}"


def _free_it(trace: Trace, leak: Leak, heap: Heap, need: int | None) -> Cure:
    """The cure of a leak, with the bytes that it saves if they can be tried."""
    if not leak.size:
        return Cure(f"free what {leak.site}")
    by = f" from {leak.site}" if leak.site else ""
    text = f"free what allocates {number(leak.size)} B{by}"
    rest = without(trace, leak.size) if need is not None else None
    return Cure(text, need, heap.fit(rest)) if rest is not None else Cure(text)


# --- requests that failed ---------------------------------------------------------------------------------------------


def _failed(
    trace: Trace,
    failures: Failures,
    heap: Heap,
    assumed: str,
    need: int | None,
    context: Context,
    memory: str,
) -> Finding:
    """Requests of a trace that failed when it was recorded: they are in it as if they had been served."""
    size = max(failures.sizes, default=0)
    requests = f"{number(failures.count)} request{'s' if failures.count > 1 else ''} of up to {number(size)} B"
    on = f"on {heap.label}" + (f" ({assumed})" if assumed else "")
    needs = f"{number(need)} B {on}" if need is not None else f"more than {heap.label} can serve"
    arena = failures.arena_bytes if context.arena is None else context.arena
    free = None if arena is None else arena - failures.live_bytes
    fits = free is not None and free >= size
    room = f", {number(max(free, 0))} B of the heap free" if free is not None else ""
    whole = (Cure(f"a heap of {number(need)} B {on}", None, need, "heapwright fit"),) if need is not None else ()
    cures = _cures(trace, heap, need, context, arena)
    return _named(
        Finding(
            memory,
            "fragmentation" if fits else "too small",
            "likely",
            f"{requests} failed, the first with {number(failures.live_bytes)} B live{room}: with all served "
            f"{number(failures.peak_bytes)} B are live at once, which takes {needs}",
            ("", "in the trace"),
            (*_facts(trace), ("requests that failed", number(failures.count)), ("life of these", failures.life)),
            cures if fits else (*whole, *cures),
            "" if arena is not None else "the size of the heap: it shows whether a hole was missing",
            _live(trace),
        )
    )


def _cures(trace: Trace, heap: Heap, need: int | None, context: Context, arena: int | None) -> tuple[Cure, ...]:
    """What saves memory on a trace with requests that failed, first the one change of the program that is enough."""
    if need is None:
        return ()
    change = offer(trace, heap, need, arena)
    tried = trials.cures_of(trace, heap, need, context.heaps[1:])
    return (*([] if change is None else [change]), *tried)


@dataclass(frozen=True)
class _Room:
    """What the addresses of a log show when a request fails: live bytes, free ones between live objects, the largest.

    `reused` is whether addresses are given out again: if none ever is, they are not those of a heap, and show no holes.
    """

    live: int
    free: int
    largest: int
    reused: bool

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """The numbers in words; none if the addresses show no holes."""
        if not self.reused:
            return ()
        return (
            ("free between live objects then, B", number(self.free)),
            ("largest hole then, B", number(self.largest)),
        )


def _room_at_failure(log: CallLog, largest: int) -> _Room:
    """The room at the last failure of a request of `largest` bytes."""
    live: dict[int, int] = {}
    freed: set[int] = set()
    low, high = 1 << 63, 0
    at_failure: tuple[dict[int, int], int, int] = {}, 0, 0
    reused = 0
    for call in log.calls:
        if call.failed:
            if call.size == largest:
                at_failure = dict(live), low, high
            continue
        if call.op == "free":
            freed.add(call.address)
            live.pop(call.address, None)
            continue
        live.pop(call.old, None)
        live[call.address] = call.size
        reused += call.address in freed
        low, high = min(low, call.address), max(high, call.address + call.size)
    return _room(*at_failure, reused=bool(reused) or not freed)


def _room(live: dict[int, int], low: int, high: int, *, reused: bool) -> _Room:
    end, free, largest = low, 0, 0
    for address, size in sorted(live.items()):
        hole = max(address - end, 0)
        free, largest, end = free + hole, max(largest, hole), max(end, address + size)
    last = max(high - end, 0)
    return _Room(sum(live.values()), free + last, max(largest, last), reused)


def _refused(log: CallLog, trace: Trace, served: Trace, context: Context) -> Finding:
    """Finding of a log in which requests failed; `served` is its trace with all of them served."""
    failed: list[HeapCall] = log.failed
    size = max(call.size for call in failed)
    one_size = len({call.size for call in failed}) == 1
    heap, assumed = trials.usual_heap(trace, context.heaps)
    requests = (
        f"{number(len(failed))} request{'s' if len(failed) > 1 else ''} of {'' if one_size else 'up to '}"
        f"{number(size)} B failed"
    )
    if leaks := find_leaks(served):
        finding = _leak(served, leaks, heap, context, log.memory)
        return _named(replace(finding, sentence=f"{requests}; {finding.sentence[0].lower()}{finding.sentence[1:]}"))
    room = _room_at_failure(log, size)
    need = heap.fit(served)
    on = f"on {heap.label}" + (f" ({assumed})" if assumed else "")
    needs = f"{number(need)} B {on}" if need is not None else f"more than {heap.label} can serve"
    takes = f"with all served {number(served.peak_live_bytes)} B are live at once, which takes {needs}"
    cures = _cures(served, heap, need, context, context.arena)
    whole = Cure(f"a heap of {number(need)} B {on}", None, need, "heapwright fit") if need is not None else None
    finding = (
        _no_room(room, size, requests, takes)
        if room.reused and room.free >= size
        else Finding(
            log.memory,
            "too small",
            "likely",
            f"{requests} with {number(room.live)} B live{' and no hole that large' if room.reused else ''}: {takes}",
            cures=(whole,) if whole else (),
        )
    )
    rows = (
        *_facts(trace),
        ("requests that failed", number(len(failed))),
        ("live when one failed, B", number(room.live)),
        *room.rows,
        ("peak with them served, live bytes", number(served.peak_live_bytes)),
    )
    return _named(
        replace(
            finding,
            memory=log.memory,
            heads=("", "in the log"),
            rows=rows,
            cures=(*finding.cures, *cures),
            picture=_live(served),
        )
    )


def _no_room(room: _Room, size: int, requests: str, takes: str) -> Finding:
    """Finding of requests of up to `size` bytes that failed although these are free between live objects."""
    if room.largest < size:
        return Finding(
            "",
            "fragmentation",
            "likely",
            f"{requests} although {number(room.free)} B were free between live objects: the largest hole had "
            f"{number(room.largest)} B; {takes}",
        )
    return Finding(
        "",
        "wrong memory",
        INCONCLUSIVE,
        f"{requests} although a hole of {number(room.largest)} B lay between live objects: it asked for another memory "
        f"or alignment, or not all calls are in the log; {takes}",
        record_next="every heap call of every memory, with the memory's name",
    )


# --- fragmentation ----------------------------------------------------------------------------------------------------


def _fragments(
    trace: Trace, heap: Heap, assumed: str, need: int | None, context: Context, memory: str
) -> Finding | None:
    if need is None:
        return None
    metrics = heap.replay(trace)
    align = heap.recipe.align if isinstance(heap, RecipeHeap) else 8
    objects = trace.lower_bound(align) + int(metrics.get("header_bytes") or 0)
    holes = need - objects
    is_short = len(trace) < LEAST_CALLS
    share, least = (SHORT_HOLES, SHORT_LEAST_HOLES) if is_short else (HOLES, LEAST_HOLES)
    if holes < max(share * objects, least):
        return None
    cures = trials.cures_of(trace, heap, need, context.heaps[1:])
    on = f"{heap.label} ({assumed})" if assumed else heap.label
    cure = _cure_in_words(cures)
    grown = trials.growing(trace)
    pinned = _strings(trace, int(grown.sum())) if grown.any() else _pin(trace, heap, need)
    confidence: Confidence = "likely" if assumed or is_short else "sure"
    return _named(
        Finding(
            memory,
            "fragmentation",
            confidence,
            f"the trace needs {number(need)} B on {on} for {number(trace.peak_live_bytes)} live bytes, {number(holes)} "
            "B of "
            f"it in holes"
            f"{pinned}{cure}",
            ("", "in the trace"),
            (
                *_facts(trace),
                (f"smallest heap, {heap.label}, B", number(need)),
                ("objects, rounded, with headers, B", number(objects)),
                ("holes, B", number(holes)),
            ),
            tuple(cures),
            picture=_live(trace),
        )
    )


def _cure_in_words(cures: Sequence[Cure]) -> str:
    """The best cure, and the best that keeps the allocator, if that is another one."""
    if not cures:
        return "; no step that was tried takes less"
    kept = next((cure for cure in cures if "in place of" not in cure.text), None)
    shown = [cures[0]] + ([kept] if kept is not None and kept is not cures[0] else [])
    return "; " + ", ".join(f"{cure.text} takes {number(cure.after or 0)} B" for cure in shown)


def _strings(trace: Trace, grown: int) -> str:
    share = float((trace.op == 2).mean())
    objects = "an object that grows" if grown == 1 else f"{number(grown)} objects that grow"
    return f", left behind by {objects} by a few bytes at a time ({share:.0%} of all calls are reallocs)"


def _pin(trace: Trace, heap: Heap, need: int) -> str:
    """The object that pins most, if leaving it out saves more than leaving out any other."""
    if not isinstance(heap, RecipeHeap) or heap.recipe.memory:
        return ""
    from heapwright._replay.peak_blockers import cap
    from heapwright._replay.snapshots import frames, last_growth, regions

    recipe = heap.recipe
    grown = last_growth(trace, recipe, need)
    if grown is None:
        return ""
    (frame,) = frames(trace, recipe, need, [grown])
    blocker = cap(trace, recipe, frame, regions(recipe, need), need)
    if blocker is None or blocker.gain <= blocker.chance:
        return ""
    place = f"above a hole of {number(blocker.hole)} B" if blocker.hole else "below a hole"
    return f"; an object of {number(blocker.requested)} B from call {number(blocker.birth)} pins {place}"


# --- bursts, and nothing wrong ----------------------------------------------------------------------------------------


def _burst(trace: Trace, memory: str) -> Finding | None:
    live, peak = trace.live_bytes, trace.peak_live_bytes
    high, middle = float((live > HIGH * peak).mean()), float(np.median(live))
    if high > RARE or middle > LOW * peak:
        return None
    at = int(live.argmax())
    return _named(
        Finding(
            memory,
            "burst",
            "likely",
            f"{number(peak)} B are live at once only around call {number(at)}, in {high:.1%} of all calls; half of the "
            "time it is "
            f"{number(middle)} B or less",
            ("", "in the trace"),
            (*_facts(trace), ("live bytes, median", number(middle))),
            (Cure("limit what happens at once at that point; or keep the peak as the reserve"),),
            picture=_live(trace),
        )
    )


def _nothing(trace: Trace, heap: Heap, assumed: str, need: int | None, context: Context, memory: str) -> Finding:
    uses = size_uses(trace)
    on = f"{heap.label} ({assumed})" if assumed else heap.label
    needs = f"; {on} serves it in {number(need)} B" if need is not None else f"; {on} cannot serve it"
    pool = ""
    if uses and uses[0].bytes >= LOW * trace.peak_live_bytes:
        pool = f", at most {number(uses[0].most)} objects of {number(uses[0].size)} B at once"
    cures = tuple(trials.cures_of(trace, heap, need, context.heaps[1:])) if need is not None else ()
    if pool and need is not None:
        cures = (*cures, *_exact_pool(trace, uses[0], need))
    rows = tuple((f"{number(item.size)} B, at once at most", number(item.most)) for item in uses[:5] if item.bytes)
    return _named(
        Finding(
            memory,
            "nothing wrong",
            "likely",
            f"{number(len(trace))} calls with a peak of {number(trace.peak_live_bytes)} B{pool}: no leak, and few "
            f"holes{needs}",
            ("", "in the trace"),
            (*_facts(trace), *rows),
            cures,
            picture=_live(trace),
        )
    )


def _exact_pool(trace: Trace, use: SizeUse, need: int) -> tuple[Cure, ...]:
    """A pool of blocks of the one size that nearly all objects have."""
    if use.bytes < trace.peak_live_bytes:
        return ()
    blocks = use.most * ((use.size + 7) // 8 * 8)
    return (Cure(f"a pool of {number(use.most)} blocks of {number(use.size)} B in place of the heap", need, blocks),)


# --- pictures ---------------------------------------------------------------------------------------------------------


def _live(trace: Trace, leak: Leak | None = None) -> Picture:
    """Live bytes over the calls, and those of the leak."""
    stretch = max(1, -(-len(trace) // DRAWN))
    starts = np.arange(0, len(trace), stretch)
    timed = trace.seconds is not None and bool((trace.ts_us >= 0).all())
    x = trace.ts_us[starts] / 1e6 if timed else starts.astype(float)
    rows = [
        {"line": "live bytes", "x": float(at), "y": int(value)}
        for at, value in zip(x, np.maximum.reduceat(trace.live_bytes, starts), strict=True)
    ]
    if leak is not None and leak.size:
        mine = without(trace, leak.size)
        if mine is not None:
            number_of, count = trace.objects()
            sizes = np.zeros(count, np.int64)
            sizes[number_of[trace.op <= 1]] = trace.size[trace.op <= 1]
            of_leak = sizes[number_of] == leak.size
            change = np.where(trace.op == 3, -1, trace.op <= 1) * of_leak * leak.size
            rows += [
                {"line": f"objects of {number(leak.size)} B", "x": float(at), "y": int(value)}
                for at, value in zip(x, np.maximum.reduceat(np.cumsum(change), starts), strict=True)
            ]
    return Picture(f"Live bytes, {trace.name}", "seconds" if timed else "call", "bytes", rows)


def _named(finding: Finding) -> Finding:
    """The finding with the name of its memory before the sentence."""
    text = f"{finding.memory}: {finding.sentence}" if finding.memory else finding.sentence
    return replace(finding, sentence=text[0].upper() + text[1:])

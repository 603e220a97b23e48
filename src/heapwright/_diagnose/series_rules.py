"""What readings over time show: the rules and thresholds of docs/diagnose.md for telemetry and counters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heapwright._diagnose.model import CANNOT_TELL, Confidence, Cure, Finding, Kind, number
from heapwright._diagnose.readings import HEAP, Failure, Readings
from heapwright._diagnose.series import Column, Series
from heapwright._diagnose.series_picture import picture_of
from heapwright._diagnose.wording import Quantity

WINDOWS = 8
LEAST_WINDOWS = 5
"""Fewer readings cannot show that memory falls again and again: five in a row fall by chance in one of 120."""

LEAST_FALL = 512
LEAST_FALL_SHARE = 0.005
"""A leak takes at least that many bytes, and that share of the free memory, in what is shown."""

LEAST_SLOPE = 0.5
"""The second half of a leak falls at least that share as fast as the first: what levels off is a cache that fills."""

SMALL_BLOCK = 0.5
"""Free memory is fragmented if the largest block is below that share of it, ..."""
FALLEN_BLOCK = 0.75
"""... has fallen to that share of what it was, ..."""
FLAT = 0.8
"""... and free memory has not fallen below that share of what it was."""
ONE_READING_BLOCK = 0.25
"""One reading shows no change: then the largest block must be below this share of the free memory."""

LEAST_STEPS = 3
EQUAL_STEPS = 2.0
"""A leak may also fall by steps: that many at least, none more than that many times another, and without a rise."""
LEAST_TREND = 8
TREND = -3.0
"""... or by a trend, of that many standard deviations of Mann and Kendall's statistic; ..."""
MOST_PAIRED = 500
"""Longer series are averaged to that many values, because the statistic compares all pairs."""
SURE_FALL = 0.05
"""... it is likely to be a leak only if it takes that share, and the last quarter lies below the first one."""

FULL = 0.05
"""A heap is full if that share of it is free."""
NEARLY_FULL = 0.10
EMPTY = 0.5
"""A memory lies idle if that share of it is free."""
IDLE = 100_000
"""Bytes that must be free in a memory of which no size is known, and ten times as many as in the full one."""

TINY = 0.01
"""A request below that share of what is free fails in another memory rather than for want of a hole."""

DIP = 0.5
"""A burst takes free memory below that share of its median, ..."""
RECOVERED = 0.9
"""... it comes back to that share, ..."""
SHORT = 0.2
"""... and no more than that share of the readings is low."""

STEADY_READINGS = 8
STEADY = 0.95
"""Nothing is wrong if the median of free memory keeps that share, or falls by less than it fluctuates."""
UNRETURNED = 0.25
"""glibc keeps that share of what it took from the system, or more, free in itself: it is worth a look."""


def judge(readings: Readings) -> list[Finding]:
    """A finding for each memory, the most severe first."""
    series = [
        Series.of(name, items, readings.units.get(name, "B")) for name, items in readings.memories.items() if items
    ]
    findings = [_judge(item, _failures_of(item, readings.failures, series)) for item in series]
    if exhausted := _wrong_memory(series, readings.failures):
        findings = [exhausted, *(item for item in findings if item.memory != exhausted.memory)]
    if not series and readings.failures:
        findings = [_failures_alone(readings.failures)]
    return sorted(findings, key=lambda item: item.rank)


def _failures_of(series: Series, failures: Sequence[Failure], others: Sequence[Series]) -> list[int]:
    """Sizes of the requests that failed in a memory; of those that name none, in the only one, or in the heap."""
    alone = len([item for item in others if item.unit == "B" and not item.memory.startswith("region ")]) == 1
    return [
        item.size
        for item in failures
        if item.size and (item.memory == series.memory or (not item.memory and (alone or series.memory == HEAP)))
    ]


def _judge(series: Series, failed: Sequence[int]) -> Finding:
    rules = (_leak, _failed, _fragmentation, _too_small, _unreturned, _burst)
    for rule in (_fragmentation,) if series.memory.startswith("region ") else rules:
        if finding := rule(series, failed):
            return finding
    return _steady(series) or _not_enough(series)


# --- leak -------------------------------------------------------------------------------------------------------------


def _leak(series: Series, _: Sequence[int]) -> Finding | None:
    level, name = series.known("free"), "free memory"
    sign = 1.0
    if not len(level):
        level, name, sign = series.known("used"), "used memory", -1.0
    confidence, start = _falls(sign * level, LEAST_FALL if series.unit == "B" else 1)
    if confidence is None:
        return None
    last = float(level[-1])
    lost = sign * float(level[start] - level[-1])
    rate, hours = _rate(series, lost, start)
    out = ""
    if sign > 0:
        steps = last / lost
        readings = round(max(1, steps * (len(level) - 1 - start)))
        more = f"{number(readings)} more reading{'s' if readings > 1 else ''}"
        out = f", so it is used up in {_time(steps * hours)}" if hours else f", so it is used up after {more}"
    change = "falls" if sign > 0 else "rises"
    way = f"from {number(level[start])} to {number(last)} {series.unit}"
    sentence = f"{_of(series)}{name} {change} steadily, {way}, {rate}{out}"
    if confidence == CANNOT_TELL:
        sentence += "; so little may also be a cache that fills"
    if sign > 0 and (block := series.last("largest")) is not None and last and block < ONE_READING_BLOCK * last:
        sentence += f"; the largest free block is down to {number(block)} {series.unit} as well"
    find = Cure("find who allocates: record every call for a few minutes, with call sites", command="heapwright hooks")
    return _finding(
        series,
        "leak",
        confidence,
        sentence,
        cures=(find,),
        record_next="every heap call with its call site while memory falls: `heapwright diagnose` names size and site",
    )


def _falls(level: Column, least: float) -> tuple[Confidence | None, int]:
    """Whether a level falls steadily, how certain that is, and from which reading on.

    Three rules: its highest values in windows of the last two thirds fall from each to the next; it falls by equal
    steps, and never rises; or it has a trend down, which alone is not certain.
    """
    start = len(level) // 3
    tops = _tops(level)
    if len(tops) >= LEAST_WINDOWS and (np.diff(tops) < 0).all():
        fall, half = float(tops[0] - tops[-1]), len(tops) // 2
        before, after = float(tops[0] - tops[half]), float(tops[half] - tops[-1])
        enough = fall >= max(least, LEAST_FALL_SHARE * abs(float(tops[0])))
        if enough and after >= LEAST_SLOPE * before and level[start] > level[-1]:
            return "likely", start
    changes = np.diff(level)
    steps = -changes[changes != 0]
    if len(steps) >= LEAST_STEPS and (steps > 0).all() and steps.max() <= EQUAL_STEPS * steps.min():
        fall = float(level[0] - level[-1])
        enough = fall >= max(least, LEAST_FALL_SHARE * abs(float(level[0])))
        return ("likely" if enough else CANNOT_TELL), 0
    later = level[start:]
    if len(later) < LEAST_TREND or _trend(later) > TREND:
        return None, 0
    quarters = np.array([part.max() for part in np.array_split(later, 4)])
    if (np.diff(quarters) <= 0).all() and later[0] > later[-1] and quarters[0] > quarters[-1]:
        fall = float(quarters[0] - quarters[-1])
        apart = quarters[-1] < np.array_split(later, 4)[0].min()
        return ("likely" if apart and fall >= SURE_FALL * abs(float(quarters[0])) else CANNOT_TELL), start
    return None, 0


def _trend(level: Column) -> float:
    """Mann and Kendall's statistic of a trend: below -3 by chance in one of 700 series without one."""
    if len(level) > MOST_PAIRED:
        level = np.array([part.mean() for part in np.array_split(level, MOST_PAIRED)])
    count = len(level)
    pairs = np.sign(level[None, :] - level[:, None])[np.triu_indices(count, 1)].sum()
    spread = np.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return float((pairs - np.sign(pairs)) / spread) if spread else 0.0


def _tops(level: Column) -> Column:
    """The highest level in each of up to `WINDOWS` windows of the last two thirds, which start-up no longer changes."""
    later = level[len(level) // 3 :]
    windows = min(WINDOWS, len(later))
    return np.array([part.max() for part in np.array_split(later, windows)]) if windows else later


def _rate(series: Series, lost: float, start: int) -> tuple[str, float | None]:
    """The rate in words since a reading, and the hours since then."""
    readings = len(series) - 1 - start
    if series.hours:
        known = series.seconds[~np.isnan(series.seconds)]
        whole = len(known) == len(series)
        hours = float(known[-1] - known[start]) / 3600 if whole else series.hours * readings / max(len(series) - 1, 1)
        if hours > 0:
            return f"{number(lost / hours)} {series.unit} an hour", hours
    return f"{number(lost / max(readings, 1))} {series.unit} a reading", None


# --- requests that failed ---------------------------------------------------------------------------------------------


def _failed(series: Series, failed: Sequence[int]) -> Finding | None:
    """Finding of a request that failed, from what was free then."""
    if not failed:
        return None
    size, free, block = max(failed), series.last("free"), series.last("largest")
    requests = f"{number(len(failed))} request{'s' if len(failed) > 1 else ''} of up to {number(size)} B failed"
    if free is not None and series.size and _is_full(series) and size <= free:
        return _finding(
            series,
            "too small",
            "likely",
            f"{_of(series)}{requests} with {number(free)} of {number(series.size)} B free: the heap is full",
            cures=(Cure("a larger heap, fewer objects at once, or buffers in another memory"),),
            record_next="free memory from start on, to distinguish a heap that is too small from a leak",
        )
    if free is not None and size > free:
        return _finding(
            series,
            "too small",
            "likely",
            f"{_of(series)}{requests} while {number(free)} B were free: that heap lacks at least "
            f"{number(size - free)} B",
            cures=(Cure(f"a heap at least {number(size - free)} B larger, or fewer objects at once"),),
            record_next="every heap call under the worst load: `heapwright fit` then says how large the heap must be",
        )
    if free is not None and block is not None and block < size <= free:
        return _finding(
            series,
            "fragmentation",
            "sure" if series.memory.startswith("region ") else "likely",
            f"{_of(series)}{requests} although {number(free)} B were free: the largest free block was "
            f"{number(block)} B",
            cures=_cures_of_fragmentation(size),
            record_next=_CALLS_NEXT,
        )
    if block is not None and size <= block:
        return _finding(
            series,
            "wrong memory",
            CANNOT_TELL,
            f"{_of(series)}{requests} although a block of {number(block)} B was free: it asked for another memory or "
            "alignment, or memory ran out between the readings",
            record_next="free memory and largest block of every memory (internal, DMA, PSRAM) in the failed-allocation "
            "hook, with the capabilities of the request",
        )
    if free is None:
        return None
    if size < TINY * free:
        return _finding(
            series,
            "wrong memory",
            CANNOT_TELL,
            f"{_of(series)}{requests} although {number(free)} B were free: so small a request fails in another memory "
            "(internal or DMA-capable RAM), or the heap is in small pieces",
            record_next="free memory and largest block of every memory (internal, DMA, PSRAM) when a request fails",
        )
    return _finding(
        series,
        "fragmentation",
        CANNOT_TELL,
        f"{_of(series)}{requests} although {number(free)} B were free; the largest free block is not recorded",
        record_next="the largest free block with free memory, as heap_caps_get_largest_free_block returns it",
    )


def _failures_alone(failures: Sequence[Failure]) -> Finding:
    sizes = [item.size for item in failures if item.size]
    of = f" of up to {number(max(sizes))} B" if sizes else ""
    return Finding(
        "",
        "not enough data",
        CANNOT_TELL,
        f"{number(len(failures))} request{'s' if len(failures) > 1 else ''}{of} failed, and no line has how much "
        "memory was free then",
        record_next="free memory, its minimum and the largest free block, once a minute and when a request fails",
    )


# --- fragmentation ----------------------------------------------------------------------------------------------------

_CALLS_NEXT = "every heap call until a request fails: replayed, it shows what pins the holes, and what cures it"


def _cures_of_fragmentation(size: float) -> tuple[Cure, ...]:
    return (
        Cure(f"allocate what takes {number(size)} B or more once, at start, and keep it; or give it a static buffer"),
        Cure("a place of its own for each large size: a fixed pool in front of the heap", command="heapwright explore"),
        Cure("another allocator: record the calls, and have it chosen by replay", command="heapwright fit"),
    )


def _fragmentation(series: Series, _: Sequence[int]) -> Finding | None:
    free, block = _together(series)
    if not len(free) or not free[-1] or series.unit != "B":
        return None
    third = max(1, len(block) // 3)
    once, now, was = float(block[:third].max()), float(block[-third:].max()), float(free[len(free) // 3])
    if len(block) >= 3 and now <= SMALL_BLOCK * free[-1] and now <= FALLEN_BLOCK * once and free[-1] >= FLAT * was:
        last = float(block[-1])
        return _finding(
            series,
            "fragmentation",
            "sure" if series.memory.startswith("region ") else "likely",
            f"{_of(series)}the largest free block falls from {number(block.max())} to {number(last)} B while free "
            "memory "
            f"stays near {number(free[-1])} B: a request above {number(last)} B fails although {number(free[-1])} "
            "B are "
            "free",
            cures=_cures_of_fragmentation(last),
            record_next=_CALLS_NEXT,
        )
    if now > ONE_READING_BLOCK * free[-1] or _is_full(series) or now == 0:
        return None
    region = series.memory.startswith("region ")
    why = "" if region else "; if several regions count as free, that alone can explain it"
    return _finding(
        series,
        "fragmentation",
        "sure" if region else CANNOT_TELL,
        f"{_of(series)}the largest free block has {number(now)} of {number(free[-1])} free B: a request above "
        f"{number(now)} B fails{why}",
        cures=_cures_of_fragmentation(now),
        record_next="the same once a minute from start on: a block that falls while free memory stays is fragmentation",
    )


def _together(series: Series) -> tuple[Column, Column]:
    """Free memory and largest block of the readings that have the two; at the end the last known of each."""
    free, block = series.columns.get("free"), series.columns.get("largest")
    if free is None or block is None:
        return np.empty(0), np.empty(0)
    both = ~np.isnan(free) & ~np.isnan(block)
    if both.any():
        return free[both], block[both]
    last_free, last_block = series.last("free"), series.last("largest")
    if last_free is None or last_block is None:
        return np.empty(0), np.empty(0)
    return np.array([last_free]), np.array([last_block])


def _unreturned(series: Series, _: Sequence[int]) -> Finding | None:
    """What glibc's malloc holds and does not use."""
    if not series.memory.startswith(("Arena", "all arenas")):
        return None
    system, used = series.last("total"), series.last("used")
    if not system or used is None or used > (1 - UNRETURNED) * system:
        return None
    return _finding(
        series,
        "fragmentation",
        CANNOT_TELL,
        f"{_of(series)}{number(system - used)} B, {(system - used) / system:.0%} of what malloc took from the "
        "system, are "
        "free inside it and were not given back: fragmentation, or memory kept for later",
        cures=(
            Cure("call malloc_trim(0) once: what it gives back was kept for later, what stays is fragmentation"),
            Cure("fewer arenas: MALLOC_ARENA_MAX=2"),
        ),
        record_next="every heap call: `heapwright record PROGRAM`, and diagnose the trace",
    )


# --- size, bursts -----------------------------------------------------------------------------------------------------


def _is_full(series: Series) -> bool:
    free, size = series.last("free"), series.size
    return free is not None and bool(size) and free <= FULL * (size or 0)


def _too_small(series: Series, _: Sequence[int]) -> Finding | None:
    size, peak, errors = series.size, series.last("peak"), series.last("failed")
    if size is None or series.memory.startswith(("Arena", "all arenas", "Mbed TLS")):
        return None
    if errors and peak is not None and peak >= (1 - FULL) * size:
        used = series.last("used")
        stays = f", and {number(used)} are used now" if used is not None else ""
        more = "elements" if series.unit != "B" else "bytes"
        return _finding(
            series,
            "too small",
            "likely",
            f"{_of(series)}{number(errors)} requests failed, and at its peak all {number(peak)} of {number(size)} "
            f"{more} were used{stays}",
            cures=(Cure(f"more {more} for this pool; if use stays at the peak when traffic ends, look for a leak"),),
            record_next="the same counters once a minute, and after the load has ended",
        )
    if errors and peak is not None and series.unit == "B" and not series.known("largest").size:
        return _finding(
            series,
            "fragmentation",
            CANNOT_TELL,
            f"{_of(series)}{number(errors)} request{'s' if errors > 1 else ''} failed although at most "
            f"{number(peak)} of {number(size)} B "
            "were used "
            "at once: they were large, or free memory lies in holes",
            cures=_cures_of_fragmentation(size - peak),
            record_next="the size of each request that fails, and the largest free block then",
        )
    free = series.known("free")
    middle = float(np.median(free)) if len(free) else None
    if middle is None or series.unit != "B" or middle > NEARLY_FULL * size:
        return None
    least = series.least
    return _finding(
        series,
        "too small",
        "likely" if len(free) > 1 else CANNOT_TELL,
        f"{_of(series)}{number(middle)} of {number(size)} B are free, {middle / size:.0%}"
        + (f", and {number(least)} B at least" if least is not None and least < middle else "")
        + ": the heap is too small for this load"
        + ("" if len(free) > 1 else ", or something leaks: one reading does not show which"),
        cures=(Cure("a larger heap, fewer objects at once, or buffers in another memory"),),
        record_next="free memory from start on, to distinguish a heap that is too small from a leak",
    )


def _burst(series: Series, _: Sequence[int]) -> Finding | None:
    free, least = series.known("free"), series.least
    if not len(free) or least is None or series.unit != "B":
        return None
    later = free[len(free) // 3 :] if len(free) > 2 else free
    middle, last = float(np.median(later)), float(free[-1])
    low = float((later < DIP * middle).mean())
    if least >= DIP * middle or low > SHORT or last < RECOVERED * middle:
        return None
    seen = "readings show it" if free.min() < DIP * middle else "it fell between the readings"
    return _finding(
        series,
        "burst",
        "likely",
        f"{_of(series)}free memory fell to {number(least)} B for a short time and is back at {number(last)} B ({seen})",
        cures=(
            Cure(
                f"keep a reserve: what the burst takes, {number(middle - least)} B here, must stay free; or limit what "
                "happens at once"
            ),
        ),
        record_next="every heap call during the burst: `heapwright fit` then says what reserve it needs",
    )


# --- several memories -------------------------------------------------------------------------------------------------


def _wrong_memory(series: Sequence[Series], failures: Sequence[Failure]) -> Finding | None:
    """One memory that is exhausted while another is free."""
    apart = [
        item
        for item in series
        if item.unit == "B"
        and item.last("free") is not None
        and not item.memory.startswith(("region ", "Arena", "lwIP"))
    ]
    for item in apart:
        free = item.last("free") or 0.0
        failed = _failures_of(item, failures, series)
        fails = any(size > (item.last("largest") or free) for size in failed)
        if not (fails or _is_full(item)):
            continue
        for other in apart:
            idle, size = other.last("free") or 0.0, other.size
            largest = other.last("largest") or idle
            enough = idle >= EMPTY * size if size else idle >= max(IDLE, 10 * free)
            if other is item or not enough or largest <= max(failed, default=0):
                continue
            what = f"requests of up to {number(max(failed))} B fail in" if fails else "it is"
            return _finding(
                item,
                "wrong memory",
                "likely",
                f"{item.memory} is exhausted, {number(free)} B free"
                + (f", and {what} it" if fails else "")
                + f", while {number(idle)} B are free in {other.memory}",
                cures=(
                    Cure(
                        f"move large buffers that need not be in {item.memory} to {other.memory} "
                        "(heap_caps_malloc, CONFIG_SPIRAM_MALLOC_ALWAYSINTERNAL, a section of the linker script)"
                    ),
                ),
                record_next="every heap call with its memory: `heapwright diagnose` then says which objects to move",
            )
    return None


# --- nothing wrong, or too little -------------------------------------------------------------------------------------


def _steady(series: Series) -> Finding | None:
    free = series.known("free")
    if len(free) < STEADY_READINGS or series.unit != "B":
        return None
    later = free[len(free) // 3 :]
    half = len(later) // 2
    before, after = float(np.median(later[:half])), float(np.median(later[half:]))
    low, high = np.percentile(later, (25, 75))
    if after < before - max((1 - STEADY) * before, (high - low) / 2):
        return None
    _, block = _together(series)
    missing = "" if len(block) else "; the largest free block is not recorded, so this cannot exclude fragmentation"
    blocks = f", and the largest free block is {number(block[-1])} B" if len(block) else ""
    time = f" over {_time(series.hours)}" if series.hours else ""
    return _finding(
        series,
        "nothing wrong",
        "likely",
        f"{_of(series)}free memory stays near {number(after)} B in {number(len(free))} readings{time}{blocks}{missing}",
        record_next="" if len(block) else "the largest free block with free memory",
    )


def _not_enough(series: Series) -> Finding:
    names: tuple[Quantity, ...] = ("free", "used", "largest", "minimum", "peak", "total")
    known = {name: series.last(name) for name in names}
    told = ", ".join(f"{name} {number(value)}" for name, value in known.items() if value is not None)
    count = max((len(series.known(name)) for name in names[:-1]), default=0)
    if count < LEAST_WINDOWS:
        why = f"{count} reading{'s' if count != 1 else ''} ({told} {series.unit}) cannot show a change"
    else:
        why = f"{count} readings ({told} {series.unit}) show neither a steady fall nor a steady state"
    missing = [name for name in ("free memory", "its minimum", "the largest free block") if not _has(series, name)]
    again = "the same once a minute over several hours, from start on"
    return _finding(
        series,
        "not enough data",
        CANNOT_TELL,
        f"{_of(series)}{why}",
        record_next=f"{again}, with {' and '.join(missing)}" if missing else again,
    )


def _has(series: Series, name: str) -> bool:
    columns = {"free memory": "free", "its minimum": "minimum", "the largest free block": "largest"}
    return columns[name] in series.columns


# --- in words ---------------------------------------------------------------------------------------------------------


def _finding(
    series: Series,
    kind: Kind,
    confidence: Confidence,
    sentence: str,
    *,
    cures: tuple[Cure, ...] = (),
    record_next: str = "",
) -> Finding:
    heads = ("", "first", "last", "lowest", "highest")
    names: dict[Quantity, str] = {
        "free": "free",
        "largest": "largest free block",
        "minimum": "minimum-ever free",
        "used": "used",
        "peak": "most ever used",
        "total": "size",
        "failed": "failed requests",
    }
    rows = []
    for name, text in names.items():
        column = series.known(name)
        if len(column):
            unit = "" if name == "failed" else f", {series.unit}"
            shown = (column[0], column[-1], column.min(), column.max())
            rows.append((f"{text}{unit}", *(number(value) for value in shown)))
    return Finding(
        "" if series.memory == HEAP else series.memory,
        kind,
        confidence,
        sentence[0].upper() + sentence[1:],
        heads,
        tuple(rows),
        cures,
        record_next,
        picture_of(series),
    )


def _of(series: Series) -> str:
    return "" if series.memory == HEAP else f"{series.memory}: "


def _time(hours: float) -> str:
    if hours < 2:
        return f"{hours * 60:,.0f} min"
    return f"{hours:,.3g} h" if hours < 72 else f"{hours / 24:,.0f} days"


def _many(count: float) -> str:
    return number(max(1, count))

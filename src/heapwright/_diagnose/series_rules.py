"""What readings over time show: the rules and thresholds of docs/diagnose.md for telemetry and counters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heapwright._diagnose.memory_rules import wrong_memory
from heapwright._diagnose.model import INCONCLUSIVE, Confidence, Cure, Finding, number
from heapwright._diagnose.readings import Failure, Readings, SeriesReading
from heapwright._diagnose.series import GROWN, Column, Series
from heapwright._diagnose.series_failures import TLS_BUFFER, failed_in, failed_requests, failures_alone, unknown_size
from heapwright._diagnose.series_words import (
    CALLS_NEXT,
    FULL,
    cures_of_fragmentation,
    finding_of,
    is_full,
    prefix,
    time_in_words,
)
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

NEARLY_FULL = 0.10

DIP = 0.5
"""A burst takes free memory below that share of its median, ..."""
RECOVERED = 0.9
"""... it comes back to that share, ..."""
SHORT = 0.2
"""... and no more than that share of the readings is low."""

STEADY_READINGS = 8
STEADY = 0.95
"""Nothing is wrong if the median of free memory keeps that share, or falls by less than it fluctuates."""
AT_START = 20
"""Readings of a program that starts again and again: without a time they are its allocations at the start."""
FEWEST_BYTES = 512
"""Numbers of a memory with a total that are all smaller count elements."""
_ARENAS = ("Arena", "all arenas")
GROWTH = 1.25
"""malloc has grown for holes if it took that many times as much from the system as at first."""
UNRETURNED = 0.25
"""glibc keeps that share of what it took from the system, or more, free in itself: it is worth a look."""


def judge(readings: Readings) -> list[Finding]:
    """A finding for each memory, the most severe first."""
    series = [
        Series.of(name, items, readings.units.get(name, _unit_of(items)), readings.starts)
        for name, items in readings.memories.items()
        if items
    ]
    findings = [_judge(item, failed_in(item, readings.failures, series)) for item in series]
    if len(series) == 1:
        findings = [_with_unknown(findings[0], series[0], readings.failures)]
    if small := _small_tls_buffer(series, readings.failures):
        return [small, *(item for item in findings if item.memory != small.memory)]
    findings = _without_what_malloc_keeps(findings)
    if exhausted := wrong_memory(series, readings.failures):
        findings = [exhausted, *(item for item in findings if item.memory != exhausted.memory)]
    if not series and readings.failures:
        findings = [failures_alone(readings.failures)]
    return sorted(findings, key=lambda item: item.rank)


def _with_unknown(finding: Finding, series: Series, failures: Sequence[Failure]) -> Finding:
    """The finding of the only memory, or that of requests of unknown size that failed in it."""
    unknown = unknown_size(series, failures) if finding.kind in ("not enough data", "nothing wrong", "burst") else None
    is_seen = finding.kind == "burst" and (unknown is None or unknown.kind != "too small" or _shows(series))
    return finding if unknown is None or is_seen else unknown


def _without_what_malloc_keeps(findings: list[Finding]) -> list[Finding]:
    """The findings; without leaks of a process of which malloc keeps free memory, which the system counts as used."""
    if not any(item.kind == "fragmentation" and item.memory.startswith(_ARENAS) for item in findings):
        return findings
    return [item for item in findings if item.kind != "leak" or item.memory.startswith(_ARENAS)]


def _unit_of(readings: Sequence[SeriesReading]) -> str:
    """What the numbers of a memory count: elements if there is a total, and all are small."""
    numbers = [value for reading in readings for name, value in reading.values.items() if name != "failed"]
    has_total = any(reading.values.get("total") for reading in readings)
    return "elements" if has_total and max(numbers) < FEWEST_BYTES else "B"


def _judge(series: Series, failed: Sequence[Failure]) -> Finding:
    rules = (_leak, failed_requests, _grown_for_holes, _fragmentation, _too_small, _unreturned, _burst)
    for rule in (_fragmentation,) if series.memory.startswith("region ") else rules:
        if finding := rule(series, failed):
            few = len(series) < (LEAST_TREND if series.hours or not series.restarts else AT_START)
            if finding.kind == "leak" and few and (full := failed_requests(series, failed)):
                return full  # a program that starts takes memory step by step, too
            may_be_burst = (
                rule is failed_requests and finding.kind != "fragmentation" and not _fails_when_low(series, failed)
            )
            if may_be_burst and (burst := _burst(series, failed)):
                return burst  # it failed while little was free, which the last reading no longer shows
            return finding
    return _steady(series) or _not_enough(series)


# --- leak -------------------------------------------------------------------------------------------------------------


def _leak(series: Series, _: Sequence[Failure]) -> Finding | None:
    level, name = series.known("free"), "free memory"
    sign = 1.0
    if not len(level) or series.grows:
        level, name, sign = series.known("used"), "used memory", -1.0
    confidence, start = _falls(sign * level, LEAST_FALL if series.unit == "B" else 1)
    if confidence is None:
        return None
    last = float(level[-1])
    lost = sign * float(level[start] - level[-1])
    rate, hours = _rate(series, lost, len(level) - 1 - start, start)
    out = ""
    if sign > 0:
        steps = last / lost
        readings = round(max(1, steps * (len(level) - 1 - start)))
        more = f"{number(readings)} more reading{'s' if readings > 1 else ''}"
        out = f", so it is used up in {time_in_words(steps * hours)}" if hours else f", so it is used up after {more}"
    change = "falls" if sign > 0 else "rises"
    way = f"from {number(level[start])} to {number(last)} {series.unit}"
    sentence = f"{prefix(series)}{name} {change} steadily, {way}, {rate}{out}"
    if confidence == INCONCLUSIVE:
        sentence += "; so little may also be a cache that fills"
    if sign > 0 and (block := series.last("largest")) is not None and last and block < ONE_READING_BLOCK * last:
        sentence += f"; the largest free block is down to {number(block)} {series.unit} as well"
    find = Cure("find who allocates: record every call for a few minutes, with call sites", command="heapwright hooks")
    return finding_of(
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
    if _falls_by_windows(_tops(level), least) and level[start] > level[-1]:
        return "likely", start
    steps = _equal_steps(level)
    if len(steps):
        return ("likely" if _is_enough(float(level[0] - level[-1]), level[0], least) else INCONCLUSIVE), 0
    confidence = _falls_by_trend(level[start:])
    return confidence, start if confidence else 0


def _is_enough(fall: float, first: float, least: float) -> bool:
    """Whether a level has fallen far enough for a leak."""
    return fall >= max(least, LEAST_FALL_SHARE * abs(float(first)))


def _falls_by_windows(tops: Column, least: float) -> bool:
    """Whether the highest values of windows fall from each to the next, and do not level off."""
    if len(tops) < LEAST_WINDOWS or not (np.diff(tops) < 0).all():
        return False
    half = len(tops) // 2
    before, after = float(tops[0] - tops[half]), float(tops[half] - tops[-1])
    return after >= LEAST_SLOPE * before and _is_enough(float(tops[0] - tops[-1]), tops[0], least)


def _equal_steps(level: Column) -> Column:
    """The steps by which a level falls; none if it also rises, or they are too few or too unequal."""
    changes = np.diff(level)
    steps: Column = -changes[changes != 0]
    if len(steps) < LEAST_STEPS or not (steps > 0).all() or steps.max() > EQUAL_STEPS * steps.min():
        return np.empty(0)
    return steps


def _falls_by_trend(later: Column) -> Confidence | None:
    """How certain a trend down is a leak, by the highest values of four quarters; None if there is no such trend."""
    if len(later) < LEAST_TREND or _trend(later) > TREND:
        return None
    parts = np.array_split(later, 4)
    quarters = np.array([part.max() for part in parts])
    if (np.diff(quarters) > 0).any() or later[0] <= later[-1] or quarters[0] <= quarters[-1]:
        return None
    fall = float(quarters[0] - quarters[-1])
    apart = quarters[-1] < parts[0].min()
    return "likely" if apart and fall >= SURE_FALL * abs(float(quarters[0])) else INCONCLUSIVE


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


def _rate(series: Series, lost: float, readings: int, start: int) -> tuple[str, float | None]:
    """The rate in words over the last readings, from that at `start` on, and their hours."""
    if series.hours:
        known = series.seconds[~np.isnan(series.seconds)]
        whole = len(known) == len(series)
        hours = float(known[-1] - known[start]) / 3600 if whole else series.hours * readings / max(len(series) - 1, 1)
        if hours > 0:
            return f"{number(lost / hours)} {series.unit} an hour", hours
    rate = lost / max(readings, 1)
    return f"{number(rate) if rate >= 10 else f'{rate:.2g}'} {series.unit} a reading", None


# --- fragmentation ----------------------------------------------------------------------------------------------------


def _fragmentation(series: Series, _: Sequence[Failure]) -> Finding | None:
    free, block = _together(series)
    if not len(free) or not free[-1] or series.unit != "B":
        return None
    third = max(1, len(block) // 3)
    once, now, was = float(block[:third].max()), float(block[-third:].max()), float(free[len(free) // 3])
    if len(block) >= 3 and now <= SMALL_BLOCK * free[-1] and now <= FALLEN_BLOCK * once and free[-1] >= FLAT * was:
        last = float(block[-1])
        return finding_of(
            series,
            "fragmentation",
            "sure" if series.memory.startswith("region ") else "likely",
            f"{prefix(series)}the largest free block falls from {number(block.max())} to {number(last)} B while free "
            "memory "
            f"stays near {number(free[-1])} B: a request above {number(last)} B fails although {number(free[-1])} "
            "B are "
            "free",
            cures=cures_of_fragmentation(last),
            record_next=CALLS_NEXT,
        )
    if now > ONE_READING_BLOCK * free[-1] or is_full(series) or now == 0:
        return None
    region = series.memory.startswith("region ")
    why = "" if region else "; if several regions count as free, that alone can explain it"
    return finding_of(
        series,
        "fragmentation",
        "sure" if region else INCONCLUSIVE,
        f"{prefix(series)}the largest free block has {number(now)} of {number(free[-1])} free B: a request above "
        f"{number(now)} B fails{why}",
        cures=cures_of_fragmentation(now),
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


def _grown_for_holes(series: Series, _: Sequence[Failure]) -> Finding | None:
    """What malloc took from the system grows, and what is in use does not."""
    if not {"total", "used"} <= series.columns.keys():
        return None
    both = ~np.isnan(series.columns["total"]) & ~np.isnan(series.columns["used"])
    total, used = series.columns["total"][both], series.columns["used"][both]
    if len(total) < LEAST_WINDOWS or total[-1] < GROWTH * total[0]:
        return None
    third = len(used) // 3
    now, was = float(np.median(used[-third:])), float(np.median(used[:third]))
    if now > GROWN * was or used[-1] > (1 - UNRETURNED) * total[-1]:
        return None
    return finding_of(
        series,
        "fragmentation",
        "likely",
        f"{prefix(series)}what malloc took from the system grows from {number(total[0])} to {number(total[-1])} B "
        f"while what is in use stays near {number(now)} B: holes between live objects keep whole pages",
        cures=(Cure("an allocator that keeps objects of one size together, or a pool for long-lived objects"),),
        record_next="every heap call: `heapwright record PROGRAM`, and diagnose the trace",
    )


def _small_tls_buffer(series: Sequence[Series], failures: Sequence[Failure]) -> Finding | None:
    """A static buffer of Mbed TLS in which no connection of the usual size fits."""
    buffer = next((item for item in series if item.memory == "Mbed TLS buffer"), None)
    if buffer is None or not failures:
        return None
    if not buffer.size:
        return _full_tls_buffer(buffer)
    if buffer.size >= 2 * TLS_BUFFER:
        return None
    return finding_of(
        buffer,
        "too small",
        "likely",
        f"{prefix(buffer)}requests fail in its {number(buffer.size)} B: a connection takes two buffers of "
        f"{number(TLS_BUFFER)} B by default, {number(2 * TLS_BUFFER)} B, and more for its keys",
        cures=(
            Cure("a larger buffer for memory_buffer_alloc_init"),
            Cure("smaller records: MBEDTLS_SSL_IN_CONTENT_LEN, MBEDTLS_SSL_OUT_CONTENT_LEN or max_fragment_length"),
        ),
        record_next="the peak of the status lines once a connection succeeds",
    )


def _full_tls_buffer(buffer: Series) -> Finding | None:
    """A static buffer of unknown size whose use falls back after each connection that failed."""
    peak, used = buffer.last("peak"), buffer.known("used")
    if peak is None or len(used) < LEAST_STEPS or used.max() > DIP * peak or used[-1] > GROWN * used[0]:
        return None
    return finding_of(
        buffer,
        "too small",
        INCONCLUSIVE,
        f"{prefix(buffer)}requests fail with up to {number(peak)} B in use, and use falls back to {number(used[-1])} B "
        "each time: the buffer is too small for one connection, or its free memory lies in holes",
        cures=(Cure("a larger buffer for memory_buffer_alloc_init (CONFIG_MBEDTLS_HEAP_SIZE)"),),
        record_next="the size of the buffer, and the size of each request that fails",
    )


def _unreturned(series: Series, _: Sequence[Failure]) -> Finding | None:
    """What glibc's malloc holds and does not use."""
    if not series.memory.startswith(_ARENAS):
        return None
    system, used = series.last("total"), series.last("used")
    if not system or used is None or used > (1 - UNRETURNED) * system:
        return None
    return finding_of(
        series,
        "fragmentation",
        INCONCLUSIVE,
        f"{prefix(series)}{number(system - used)} B, {(system - used) / system:.0%} of what malloc took from the "
        "system, are "
        "free inside it and were not given back: fragmentation, or memory kept for later",
        cures=(
            Cure("call malloc_trim(0) once: what it gives back was kept for later, what stays is fragmentation"),
            Cure("fewer arenas: MALLOC_ARENA_MAX=2"),
        ),
        record_next="every heap call: `heapwright record PROGRAM`, and diagnose the trace",
    )


# --- size, bursts -----------------------------------------------------------------------------------------------------


def _too_small(series: Series, _: Sequence[Failure]) -> Finding | None:
    if series.size is None or series.memory.startswith(("Arena", "all arenas", "Mbed TLS")):
        return None
    return _errors(series, series.size) or _nearly_full(series, series.size)


def _errors(series: Series, size: float) -> Finding | None:
    """Finding of a memory that counts the requests that failed in it, from its peak."""
    peak, errors = series.last("peak"), series.last("failed")
    if not errors or peak is None:
        return None
    if peak >= (1 - FULL) * size:
        used = series.last("used")
        stays = f", and {number(used)} are used now" if used is not None else ""
        more = "elements" if series.unit != "B" else "bytes"
        return finding_of(
            series,
            "too small",
            "likely",
            f"{prefix(series)}{number(errors)} requests failed, and at its peak all {number(peak)} of {number(size)} "
            f"{more} were used{stays}",
            cures=(Cure(f"more {more} for this pool; if use stays at the peak when traffic ends, look for a leak"),),
            record_next="the same counters once a minute, and after the load has ended",
        )
    if series.unit != "B" or series.known("largest").size:
        return None
    return finding_of(
        series,
        "fragmentation",
        INCONCLUSIVE,
        f"{prefix(series)}{number(errors)} request{'s' if errors > 1 else ''} failed although at most {number(peak)} "
        f"of {number(size)} B were used at once: they were large, or free memory lies in holes",
        cures=cures_of_fragmentation(size - peak),
        record_next="the size of each request that fails, and the largest free block then",
    )


def _nearly_full(series: Series, size: float) -> Finding | None:
    """Finding of a heap that has little free."""
    free, least = series.known("free"), series.least
    if not len(free) or series.unit != "B" or series.grows:
        return None
    middle = float(np.median(free))
    if middle > NEARLY_FULL * size:
        return None
    lowest = f", and {number(least)} B at least" if least is not None and least < middle else ""
    once = "" if len(free) > 1 else ", or something leaks: one reading does not show which"
    return finding_of(
        series,
        "too small",
        "likely" if len(free) > 1 else INCONCLUSIVE,
        f"{prefix(series)}{number(middle)} of {number(size)} B are free, {middle / size:.0%}{lowest}: the heap is too "
        f"small for this load{once}",
        cures=(Cure("a larger heap, fewer objects at once, or buffers in another memory"),),
        record_next="free memory from start on, to distinguish a heap that is too small from a leak",
    )


def _burst(series: Series, _: Sequence[Failure]) -> Finding | None:
    free, least = series.known("free"), series.least
    if not len(free) or least is None or series.grows:
        return None
    later = free[len(free) // 3 :] if len(free) > 2 else free
    middle, last = float(np.median(later)), float(free[-1])
    low = _low_share(series, free < DIP * middle)
    if least >= DIP * middle or low > SHORT or last < RECOVERED * middle:
        return None
    seen = "readings show it" if _shows(series) else "it fell between the readings"
    return finding_of(
        series,
        "burst",
        "likely",
        f"{prefix(series)}free memory fell to {number(least)} {series.unit} for a short time and is back at "
        f"{number(last)} {series.unit} ({seen})",
        cures=(
            Cure(
                f"keep a reserve: what the burst takes, {number(middle - least)} {series.unit} here, must stay free; "
                "or limit what happens at once"
            ),
        ),
        record_next="every heap call during the burst: `heapwright fit` then says what reserve it needs",
    )


def _fails_when_low(series: Series, failed: Sequence[Failure]) -> bool:
    """Whether a request fails whenever free memory is low, as if one load takes more than there is."""
    free = series.known("free")
    if not len(free):
        return False
    low = int((free < DIP * float(np.median(free))).sum())
    return len(failed) >= LEAST_STEPS and 2 * sum(item.free is not None for item in failed) > low


def _shows(series: Series) -> bool:
    """Whether a reading, rather than the minimum alone, shows that free memory fell."""
    free = series.known("free")
    return float(free.min()) < DIP * float(np.median(free[len(free) // 3 :]))


def _low_share(series: Series, low: NDArray[np.bool_]) -> float:
    """Share of the last readings that are low, or of their time if that is less: events print more lines in a burst."""
    share = float(low.mean())
    seconds = series.seconds[-len(low) :]
    if len(series.seconds) != len(series.columns["free"]) or np.isnan(seconds).any() or seconds[-1] <= seconds[0]:
        return share
    time = float(np.diff(seconds)[low[:-1]].sum())
    return min(share, time / float(seconds[-1] - seconds[0])) if time > 0 else share


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
    time = f" over {time_in_words(series.hours)}" if series.hours else ""
    return finding_of(
        series,
        "nothing wrong",
        "likely",
        f"{prefix(series)}free memory stays near {number(after)} B in {number(len(free))} readings{time}{blocks}"
        f"{missing}",
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
    return finding_of(
        series,
        "not enough data",
        INCONCLUSIVE,
        f"{prefix(series)}{why}",
        record_next=f"{again}, with {' and '.join(missing)}" if missing else again,
    )


def _has(series: Series, name: str) -> bool:
    columns = {"free memory": "free", "its minimum": "minimum", "the largest free block": "largest"}
    return columns[name] in series.columns

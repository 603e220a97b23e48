"""What becomes of the statements about pools of partitions and of buffers; the numbers are those of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from heapwright import zoo
from heapwright_papers import pools_runs as runs
from heapwright_papers.page import Page, percent
from heapwright_papers.pools_runs import (
    FIXED,
    INDEXED,
    LARGEST,
    LOADS,
    SEGMENTS,
    SERIES,
    SMALLEST,
    TOTALS,
    VARIABLE,
    Results,
)
from heapwright_papers.verdicts import HOLDS, SHOWN, Cause, Verdict, fails, judge

SAMPLING = 0.002
"""Shares closer than this are taken for equal: what a million requests leave to chance."""
TOLERANCE = 0.1
UNEXPLAINED = fails(Cause.UNEXPLAINED, "the numbers beside it say otherwise")


def answer(page: Page, found: Mapping[str, Results], sized: Results) -> None:
    """Answer every statement of the page."""
    for figure in range(5, 10):
        page.verdict(f"pools-figure-{figure}", "the same axes and series", SHOWN)
    _memory(page)
    _load(page, found["load"])
    _maximum(page, found["load"])
    _smallest(page, found["smallest"])
    _largest(page, found["largest"])
    _variation(page, found)
    _partition_sizes(page, sized)
    _overheads(page)
    _list(page, found["load"])
    _list_overhead(page)


def _near(ours: float, theirs: float) -> bool:
    return abs(ours / theirs - 1) <= TOLERANCE


def _monotone(values: Sequence[float], sign: int) -> bool:
    return all(sign * (later - earlier) > -SAMPLING for earlier, later in pairwise(values))


def _trend(page: Page, statement: str, values: Sequence[float], sign: int, otherwise: Verdict = UNEXPLAINED) -> None:
    told = f"{percent(values[0], 1)} to {percent(values[-1], 1)}"
    page.verdict(f"pools-{statement}", told, judge(_monotone(values, sign), otherwise))


def _memory(page: Page) -> None:
    variable, fixed = zoo("variable-pool"), zoo("fixed-pool")
    usable = runs.usable_bytes(fixed), runs.usable_bytes(variable)
    page.verdict(
        "pools-usable", f"{usable[0]:,} and {usable[1]:,} bytes", judge(usable == (557_056, 524_288), UNEXPLAINED)
    )
    memory = runs.memory_bytes(variable), runs.memory_bytes(fixed)
    page.verdict(
        "pools-equal-memory",
        f"{memory[0]:,} and {memory[1]:,} bytes, with descriptors of 32 bytes",
        judge(abs(memory[0] - memory[1]) < 0.01 * memory[0], fails(Cause.CHOICE, "descriptors have 32 bytes")),
    )


# ---- experiment 1 ----------------------------------------------------------------------------------------------------


def _load(page: Page, found: Results) -> None:
    for series in SERIES:
        gains = _gains(found, series)
        least = min(gains)
        page.verdict(
            f"pools-load-{series.replace(' ', '-')}",
            f"by {100 * least:.1f} to {100 * max(gains):.1f} points",
            judge(least > 0, fails(Cause.UNEXPLAINED, f"{-100 * least:.1f} points worse at one load")),
        )
    at = LOADS.index(0.003)
    variable, fixed = found.of(VARIABLE, "admission"), found.of(FIXED, "admission")
    page.verdict("pools-variable-100", percent(variable[at], 1), judge(_near(variable[at], 1.0), UNEXPLAINED))
    page.verdict("pools-fixed-80", percent(fixed[at], 1), judge(_near(fixed[at], 0.8), UNEXPLAINED))
    faster, slower = ((values[at] - values[0]) / (LOADS[at] - LOADS[0]) / 1000 for values in (variable, fixed))
    page.verdict(
        "pools-slope",
        f"{faster:.2f} and {slower:.2f} for 0.001 time units",
        judge(faster > slower, UNEXPLAINED),
    )
    full = [next((x for x, share in zip(LOADS, of, strict=True) if share > 0.995), None) for of in (variable, fixed)]
    told = [f"at {x:g}" if x else f"not up to {LOADS[-1]:g}" for x in full]
    page.verdict(
        "pools-earlier",
        f"variable {told[0]}, fixed {told[1]}",
        judge(full[0] is not None and (full[1] is None or full[0] < full[1]), UNEXPLAINED),
    )
    gains = [ours / theirs - 1 for ours, theirs in zip(variable, fixed, strict=True)]
    page.verdict(
        "pools-high-load",
        f"it admits {percent(gains[0])} more bytes at {LOADS[0]:g}, {percent(max(gains))} at most, "
        f"{percent(gains[-1])} at {LOADS[-1]:g}",
        judge(gains[0] > gains[-1], UNEXPLAINED),
    )


def _gains(found: Results, series: str) -> list[float]:
    return [ours - theirs for ours, theirs in zip(found.of(VARIABLE, series), found.of(FIXED, series), strict=True)]


def _maximum(page: Page, found: Results) -> None:
    """Utility of either pool has its maximum inside the range, or beyond it."""
    beyond = max((step * 1e-5 for step in range(100, 1000)), key=_exact_utility)
    for pool in (VARIABLE, FIXED):
        told, inside = [], True
        for series in ("utility", "pool utilisation"):
            values = found.of(pool, series)
            best = values.index(max(values))
            told.append(f"{series} {values[best]:.3f} at {LOADS[best]:g}, {values[-1]:.3f} at {LOADS[-1]:g}")
            inside &= values[best] > max(values[0], values[-1]) + SAMPLING
        why = (
            "a combined utility is not defined; admission x utilisation of the fixed pool is at its maximum at "
            f"{beyond:.4f} by Erlang's formula, and its utilisation falls from the start"
        )
        page.verdict("pools-maximum", "; ".join(told), judge(inside, fails(Cause.CHOICE, why)), on=pool)


def _exact_utility(interarrival: float) -> float:
    """What Erlang's formula gives for the fixed pool, up to a factor: admitted share, squared, times the load."""
    return runs.exact_admission(interarrival) ** 2 / interarrival


# ---- experiments 2 and 3 ---------------------------------------------------------------------------------------------


def _smallest(page: Page, found: Results) -> None:
    small = found.of(FIXED, "admission")
    spread = max(small) - min(small)
    page.verdict(
        "pools-smallest-fixed-admission",
        f"{percent(min(small), 1)} to {percent(max(small), 1)}",
        judge(spread < 0.02, UNEXPLAINED),
    )
    _trend(page, "smallest-fixed-utilisation", found.of(FIXED, "utilisation"), 1)
    _trend(page, "smallest-variable-utilisation", found.of(VARIABLE, "utilisation"), 1)
    _trend(page, "smallest-variable-admission", found.of(VARIABLE, "admission"), -1)
    for series in ("admission", "utilisation"):
        gains = _gains(found, series)
        better = [size for size, gain in zip(SMALLEST, gains, strict=True) if gain < 0]
        page.verdict(
            f"pools-crossover-{series}",
            f"at {', '.join(map(str, better))} bytes, by {-100 * gains[-1]:.1f} points" if better else "nowhere",
            judge(bool(better) and better == [s for s in SMALLEST if s >= better[0]] and gains[0] > 0, UNEXPLAINED),
        )


def _largest(page: Page, found: Results) -> None:
    variable, fixed = found.of(VARIABLE, "admission"), found.of(FIXED, "admission")
    page.verdict(
        "pools-largest-affects",
        f"admission {percent(variable[0], 1)} to {percent(variable[-1], 1)}",
        judge(max(variable) - min(variable) > 0.02, UNEXPLAINED),
    )
    for series in ("admission", "utilisation"):
        gains = _gains(found, series)
        page.verdict(
            f"pools-largest-{series}",
            f"by {100 * min(gains):.1f} to {100 * max(gains):.1f} points",
            judge(min(gains) > 0, UNEXPLAINED),
        )
    page.verdict(
        "pools-constant-54",
        f"{percent(min(fixed), 1)} to {percent(max(fixed), 1)}",
        judge(all(_near(share, 0.54) for share in fixed), UNEXPLAINED),
    )
    full = [
        (size, used)
        for size, admitted, used in zip(LARGEST, variable, found.of(VARIABLE, "utilisation"), strict=True)
        if admitted > 0.995
    ]
    page.verdict(
        "pools-full-admission",
        ", ".join(f"{percent(used, 1)} at {size} bytes" for size, used in full) or "it admits less everywhere",
        judge(bool(full) and all(0.9 * 0.5 <= used <= 1.1 * 0.6 for _, used in full), UNEXPLAINED),
    )


def _variation(page: Page, found: Mapping[str, Results]) -> None:
    gains = _gains(found["smallest"], "admission")
    page.verdict(
        "pools-variation",
        f"sizes of {SMALLEST[0]} to 2000 bytes: {100 * gains[0]:.1f} points more admission than the fixed pool's; of "
        f"{SMALLEST[-1]} to 2000: {-100 * gains[-1]:.1f} less",
        judge(gains[0] > 0 > gains[-1], UNEXPLAINED),
    )


# ---- experiments 4 and 5 ---------------------------------------------------------------------------------------------


def _partition_sizes(page: Page, sized: Results) -> None:
    _trend(page, "partition-admission", sized.of(runs.SAME_MEMORY, "admission"), -1)
    used = sized.of(runs.SAME_MEMORY, "utilisation")
    page.verdict(
        "pools-partition-utilisation",
        f"{percent(used[-1], 1)} at 4096 bytes to {percent(used[1], 1)} at 512",
        judge(_monotone(used[1:], -1), UNEXPLAINED),
    )
    page.verdict(
        "pools-partition-drop",
        f"{percent(used[0], 2)} at 256 bytes, {percent(used[1], 2)} at 512",
        judge(used[0] < used[1], UNEXPLAINED),
    )
    _trend(page, "many-admission", sized.of(runs.SAME_COUNT, "admission"), 1)
    memory = [runs.memory_bytes(runs.partitions(size, runs.MANY)) for size in runs.PARTITIONS]
    page.verdict(
        "pools-many-memory", f"{memory[0]:,} to {memory[-1]:,} bytes", judge(memory == sorted(memory), UNEXPLAINED)
    )
    used, pool = (sized.of(runs.SAME_COUNT, series) for series in ("utilisation", "pool utilisation"))
    why = (
        f"descriptors of 32 bytes weigh most at 256 bytes; without them it falls throughout, {percent(pool[0], 1)}, "
        f"{percent(pool[1], 1)} ... {percent(pool[-1], 1)}"
    )
    page.verdict(
        "pools-many-utilisation",
        f"{percent(used[0], 1)} at 256 bytes, {percent(used[1], 1)} at 512, down to {percent(used[-1], 1)} at 4096",
        judge(_monotone(used, -1), fails(Cause.CHOICE, why)),
    )


def _overheads(page: Page) -> None:
    found = runs.overheads()
    variable = {(one.total, one.size): one.share for one in found if one.pool == VARIABLE}
    falls, told = True, []
    for total in TOTALS:
        shares = [variable[total, size] for size in SEGMENTS]
        falls &= shares == sorted(shares, reverse=True)
        told.append(
            f"{total // 1024} KB: {percent(shares[0], 1)} at {SEGMENTS[0]} bytes to {percent(shares[-1], 1)} at "
            f"{SEGMENTS[-1]}"
        )
    page.verdict("pools-overhead-smaller", "; ".join(told), judge(falls, UNEXPLAINED))
    ratios = [one.share / variable[one.total, one.size] for one in found if one.pool != VARIABLE]
    page.verdict(
        "pools-overhead-fixed",
        f"at most {percent(max(ratios))} of the variable pool's",
        judge(max(ratios) < 1, UNEXPLAINED),
    )


def _list(page: Page, found: Results) -> None:
    linked, listed = (sum(point.accesses for point in found.points[pool]) / len(LOADS) for pool in (VARIABLE, INDEXED))
    page.verdict(
        "pools-list",
        f"{runs.LISTS} lists by length {listed:.1f} accesses a call, the linked list {linked:.1f}; admission "
        f"{100 * min(_better(found)):.1f} to {100 * max(_better(found)):.1f} points better",
        HOLDS if listed < linked else UNEXPLAINED,
    )


def _list_overhead(page: Page) -> None:
    linked, listed = (runs.memory_bytes(runs.pools()[pool]) for pool in (VARIABLE, INDEXED))
    why = f"heads of {runs.LISTS} lists and their bitmap take {listed - linked} bytes; descriptors stay as they are"
    page.verdict(
        "pools-list-overhead",
        f"{listed:,} bytes in place of {linked:,}",
        judge(listed < linked, fails(Cause.CHOICE, why)),
    )


def _better(found: Results) -> list[float]:
    pairs = zip(found.of(INDEXED, "admission"), found.of(VARIABLE, "admission"), strict=True)
    return [ours - theirs for ours, theirs in pairs]

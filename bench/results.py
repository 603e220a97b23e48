"""What the measurements say: ratios over sets of traces, and the project's aims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import geometric_mean
from typing import Any

from contenders import EMPTY, FOLDED_AND_RUN_TIME, with_lists
from threads import CACHED, LOCKED, THREADED

from heapwright import RECOMMENDED

SETS = ("synthetic", "real", "all")

REFERENCES = ("dlmalloc", "o1heap", "freertos-heap4", "tlsf, original", "tlsf", "glibc", "mimalloc")
"""What times are compared with, where they are there."""


@dataclass(frozen=True)
class Measured:
    """One trace: its smallest arenas, and CPU nanoseconds a call by heap; a heap that cannot serve it is not there.

    Attributes:
        ns: the payload untouched.
        ns_written: the payload written once.
        ns_folded, ns_run_time: FOLDED_AND_RUN_TIME by the direct driver, as generated code and with the policy read at
            run time; empty on long traces.
        ns_threads: by heap and number of threads on it.
    """

    trace: str
    set: str
    events: int
    peak_live_bytes: int
    arena_bytes: dict[str, int | None]
    ns: dict[str, float]
    ns_written: dict[str, float]
    ns_folded: dict[str, float]
    ns_run_time: dict[str, float]
    ns_threads: dict[str, float]


@dataclass(frozen=True)
class Aim:
    """A number to reach, and what was measured; None where it could not be."""

    aim: str
    limit: float
    unit: str
    measured: float | None
    met: bool | None
    remark: str = ""


Ratio = Callable[[Measured], float | None]
BySet = dict[str, float | None]


def time_ratio(name: str, other: str, written: bool = False, loop: bool = True) -> Ratio:
    """How many times as long one heap takes as another, on one trace; without `loop` less what an empty heap takes."""

    def ratio(item: Measured) -> float | None:
        times = item.ns_written if written else item.ns
        if name not in times or other not in times:
            return None
        base = 0.0 if loop else times[EMPTY]
        above, below = times[name] - base, times[other] - base
        return above / below if above > 0 and below > 0 else None

    return ratio


def arena_ratio(name: str, other: str | None = None) -> Ratio:
    """Smallest arena over another heap's, or over the peak of live bytes, on one trace; None where one has none."""

    def ratio(item: Measured) -> float | None:
        arena, base = item.arena_bytes.get(name), item.arena_bytes.get(other) if other else item.peak_live_bytes
        return arena / base if arena and base else None

    return ratio


def by_set(measured: Sequence[Measured], ratio: Ratio) -> BySet:
    """Geometric mean of a ratio over the traces of each set; None for a set without traces."""
    return {name: _mean(ratio(item) for item in measured if name in (item.set, "all")) for name in SETS}


def sets_of(measured: Sequence[Measured]) -> list[str]:
    """The sets that have traces, and all where that says more."""
    results = [key for key in SETS if any(item.set == key for item in measured)]
    return [*results, "all"] if len(results) > 1 else results


def _mean(ratios: Iterable[float | None]) -> float | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return geometric_mean(known) if known else None


def folded_over_run_time(measured: Sequence[Measured]) -> dict[str, BySet]:
    """Time of the folded build over that of the build with the policy at run time, and the mean over the recipes."""
    ratios = {name: partial(_folded_ratio, name) for name in FOLDED_AND_RUN_TIME}

    def over_all(item: Measured) -> float | None:
        return _mean(ratio(item) for ratio in ratios.values())

    return {name: by_set(measured, ratio) for name, ratio in (ratios | {"all four": over_all}).items()}


def _folded_ratio(name: str, item: Measured) -> float | None:
    return item.ns_folded[name] / item.ns_run_time[name] if name in item.ns_folded else None


def cached_over_lock(item: Measured) -> float | None:
    """CPU time of a call with two threads, caches over the lock alone, on one trace."""
    times = item.ns_threads
    return times[CACHED] / times[LOCKED] if CACHED in times and LOCKED in times else None


def ratios(measured: Sequence[Measured]) -> dict[str, dict[str, Any]]:
    """Geometric means by set: time over REFERENCES (payload untouched; written; without the loop), arenas, folding."""
    names = [name for name in measured[0].ns if name != EMPTY]
    arenas = list(measured[0].arena_bytes)

    def times(**how: bool) -> dict[str, dict[str, BySet]]:
        there = [other for other in REFERENCES if other in names]
        return {name: {other: by_set(measured, time_ratio(name, other, **how)) for other in there} for name in names}

    return {
        "time": times(),
        "time_written": times(written=True),
        "time_without_loop": times(loop=False),
        "arena_over_live": {name: by_set(measured, arena_ratio(name)) for name in arenas},
        "arena_over_dlmalloc": {name: by_set(measured, arena_ratio(name, "dlmalloc")) for name in arenas},
        "folded_over_run_time": folded_over_run_time(measured),
        "cached_over_lock": by_set(measured, cached_over_lock),
    }


def aims(measured: Sequence[Measured], code_bytes: int | None) -> list[Aim]:
    """The project's targets and the measured values: times are geometric means, payload untouched."""

    def time(name: str, other: str, of: str = "all") -> float | None:
        return by_set(measured, time_ratio(name, other))[of]

    lists = with_lists("exact-bins")
    folded = folded_over_run_time(measured)["all four"]["all"]
    arenas = by_set(measured, arena_ratio(RECOMMENDED, "dlmalloc"))["all"]
    return [
        _at_most("time, victim-bins / dlmalloc, real", 0.95, "x", time("victim-bins", "dlmalloc", "real")),
        _at_most("time, victim-bins / dlmalloc, synthetic", 0.60, "x", time("victim-bins", "dlmalloc", "synthetic")),
        _at_most("time, half-fit / o1heap", 1.00, "x", time("half-fit", "o1heap")),
        _at_most("time, victim-bins / glibc", 0.65, "x", time("victim-bins", "glibc")),
        _at_most("time, victim-bins / tlsf", 0.55, "x", time("victim-bins", "tlsf")),
        _arena_aim(measured),
        _at_most(f"time, {lists} / glibc", 0.60, "x", time(lists, "glibc")),
        _at_most("time, folded / run-time policy", 0.90, "x", folded, ", ".join(FOLDED_AND_RUN_TIME)),
        _at_most("code, drr-proposed, malloc + free", 750, "B", code_bytes, "thumbv7m -Os, arm-none-eabi-gcc"),
        _at_most(f"time, {RECOMMENDED} / dlmalloc", 0.65, "x", time(RECOMMENDED, "dlmalloc")),
        _at_most(f"time, {RECOMMENDED} / tlsf, original", 0.42, "x", time(RECOMMENDED, "tlsf, original")),
        _at_most(f"time, {RECOMMENDED} / o1heap", 0.60, "x", time(RECOMMENDED, "o1heap")),
        _at_most(f"time, {RECOMMENDED} / freertos-heap4", 0.20, "x", time(RECOMMENDED, "freertos-heap4")),
        _at_most(f"smallest arena, {RECOMMENDED} / dlmalloc", 1.01, "x", arenas),
        _at_most(f"time, two threads, {THREADED}, cached / lock", 0.50, "x", by_set(measured, cached_over_lock)["all"]),
    ]


def _at_most(aim: str, limit: float, unit: str, measured: float | None, remark: str = "") -> Aim:
    return Aim(aim, limit, unit, measured, None if measured is None else measured <= limit, remark)


def _arena_aim(measured: Sequence[Measured]) -> Aim:
    """The smallest arena of victim-bins is below that of tlsf on every trace; measured is the largest ratio."""
    ratios = {item.trace: _arena_over_tlsf(item) for item in measured}
    known = {trace: ratio for trace, ratio in ratios.items() if ratio is not None}
    aim = "smallest arena, victim-bins / tlsf, every trace below"
    if not known:
        return Aim(aim, 1, "x", None, None)
    worst = max(known, key=lambda trace: known[trace])
    above = sum(ratio >= 1 for ratio in known.values())
    remark = f"largest on {worst}; not below on {above} of {len(known)} traces"
    return Aim(aim, 1, "x", known[worst], above == 0, remark)


def _arena_over_tlsf(item: Measured) -> float | None:
    victim, tlsf = item.arena_bytes.get("victim-bins"), item.arena_bytes.get("tlsf")
    return victim / tlsf if victim and tlsf else None

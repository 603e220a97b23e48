"""What the measurements say: ratios over sets of traces, and the project's aims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from contenders import FOLDED_AND_RUN_TIME, RUN_TIME, with_lists

SETS = ("synthetic", "real", "all")

REFERENCES = ("glibc", "tlsf")
"""What times are compared with."""


@dataclass(frozen=True)
class Measured:
    """One trace: its smallest arenas, and the CPU nanoseconds a call with the payload untouched and touched."""

    trace: str
    set: str
    events: int
    peak_live_bytes: int
    arena_bytes: dict[str, int | None]
    ns: dict[str, float]
    ns_touched: dict[str, float]


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


def time_ratio(name: str, other: str, touched: bool = False) -> Ratio:
    """How many times as long one heap takes as another, on one trace."""

    def ratio(one: Measured) -> float | None:
        times = one.ns_touched if touched else one.ns
        return times[name] / times[other] if name in times and other in times else None

    return ratio


def arena_ratio(name: str) -> Ratio:
    """Smallest arena over the peak of live bytes, on one trace; None for a library, or where no arena serves."""

    def ratio(one: Measured) -> float | None:
        arena = one.arena_bytes.get(name)
        return arena / one.peak_live_bytes if arena else None

    return ratio


def by_set(measured: Sequence[Measured], ratio: Ratio) -> BySet:
    """Geometric mean of a ratio over the traces of each set; None for a set without traces."""
    return {name: _mean(ratio(one) for one in measured if name in (one.set, "all")) for name in SETS}


def _mean(ratios: Iterable[float | None]) -> float | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return geometric_mean(known) if known else None


def folded_over_run_time(measured: Sequence[Measured]) -> dict[str, BySet]:
    """Time of the folded build over that of the build with the policy at run time, and the mean over the recipes."""
    ratios = {name: time_ratio(name, name + RUN_TIME) for name in FOLDED_AND_RUN_TIME}

    def over_all(one: Measured) -> float | None:
        return _mean(ratio(one) for ratio in ratios.values())

    return {name: by_set(measured, ratio) for name, ratio in (ratios | {"all four": over_all}).items()}


def ratios(measured: Sequence[Measured]) -> dict[str, dict[str, Any]]:
    """Geometric means by set: time against glibc and tlsf (payload untouched, touched), arenas, folded policies."""
    names = [name for name in measured[0].ns if not name.endswith(RUN_TIME)]

    def times(touched: bool) -> dict[str, dict[str, BySet]]:
        return {
            name: {other: by_set(measured, time_ratio(name, other, touched)) for other in REFERENCES} for name in names
        }

    return {
        "time": times(touched=False),
        "time_touched": times(touched=True),
        "arena_over_live": {name: by_set(measured, arena_ratio(name)) for name in names},
        "folded_over_run_time": folded_over_run_time(measured),
    }


def aims(measured: Sequence[Measured], code_bytes: int | None) -> list[Aim]:
    """The project's aims beside what was measured: times are geometric means over all traces, payload untouched."""

    def time(name: str, other: str) -> float | None:
        return by_set(measured, time_ratio(name, other))["all"]

    lists = with_lists("exact-bins")
    folded = folded_over_run_time(measured)["all four"]["all"]
    return [
        _at_most("time, victim-bins / glibc", 0.65, "x", time("victim-bins", "glibc")),
        _at_most("time, victim-bins / tlsf", 0.55, "x", time("victim-bins", "tlsf")),
        _arena_aim(measured),
        _at_most(f"time, {lists} / glibc", 0.60, "x", time(lists, "glibc")),
        _at_most("time, folded / run-time policy", 0.90, "x", folded, ", ".join(FOLDED_AND_RUN_TIME)),
        _at_most("code, drr-proposed, malloc + free", 750, "B", code_bytes, "thumbv7m -Os, arm-none-eabi-gcc"),
    ]


def _at_most(aim: str, limit: float, unit: str, measured: float | None, remark: str = "") -> Aim:
    return Aim(aim, limit, unit, measured, None if measured is None else measured <= limit, remark)


def _arena_aim(measured: Sequence[Measured]) -> Aim:
    """The smallest arena of victim-bins is below that of tlsf on every trace; measured is the largest ratio."""
    ratios = {one.trace: _arena_over_tlsf(one) for one in measured}
    known = {trace: ratio for trace, ratio in ratios.items() if ratio is not None}
    aim = "smallest arena, victim-bins / tlsf, every trace below"
    if not known:
        return Aim(aim, 1, "x", None, None)
    worst = max(known, key=lambda trace: known[trace])
    above = sum(ratio >= 1 for ratio in known.values())
    remark = f"largest on {worst}; not below on {above} of {len(known)} traces"
    return Aim(aim, 1, "x", known[worst], above == 0, remark)


def _arena_over_tlsf(one: Measured) -> float | None:
    victim, tlsf = one.arena_bytes.get("victim-bins"), one.arena_bytes.get("tlsf")
    return victim / tlsf if victim and tlsf else None

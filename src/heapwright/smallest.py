"""The search for the smallest arena, for whatever can say whether an arena of some size serves a trace."""

from __future__ import annotations

from collections.abc import Callable

FINER = 16
"""Each step that holds the first success is searched again in so many smaller ones."""


def smallest_arena(
    serves: Callable[[int], bool], low: int, guess: int, unit: int, enough: int | None = None, steps: int = 0
) -> int:
    """A multiple of `unit` that serves although its lower neighbour does not, near `guess` or below it.

    Args:
        serves: whether an arena of so many bytes serves the whole trace.
        low: no arena smaller than this does.
        guess: bytes that probably do.
        unit: step in bytes.
        enough: an arena that is known to do, None where `serves` holds from some size on.
        steps: 0 where any arena larger than one that serves does so, too: a good guess then takes two probes, another
            one bisection. Otherwise the search goes up from `low`, each step 1 / `steps` of the size, and again in
            finer steps where it first succeeds; success on less than a step can be missed. O(`steps`) probes a
            doubling.
    """
    high = -(-max(guess, low) // unit) * unit
    failed = low // unit * unit - unit
    step = unit
    while not serves(high):
        if not steps:
            failed = high
        high, step = high + step, 2 * step
        if enough is not None and high >= enough:
            high = -(-enough // unit) * unit
            break
    return _first(serves, failed, high, unit, steps) if steps else _bisected(serves, failed, high, unit)


def _bisected(serves: Callable[[int], bool], failed: int, high: int, unit: int) -> int:
    probe = high - unit
    while high - failed > unit:
        if serves(probe):
            high = probe
        else:
            failed = probe
        probe = (failed + high) // 2 // unit * unit
        if probe <= failed:
            break
    return high


def _first(serves: Callable[[int], bool], failed: int, high: int, unit: int, steps: int) -> int:
    """The first success going up from `failed`, in ever finer steps; `high` is known to serve."""
    finest = False
    part = steps
    while not finest:
        step = max((failed + unit) // part // unit, 1) * unit
        finest = step == unit
        size = failed + unit if finest else failed + step
        while size < high and not serves(size):
            failed, size = size, size + max(step, size // part // unit * unit)
        high = min(size, high)
        part *= FINER
    return high

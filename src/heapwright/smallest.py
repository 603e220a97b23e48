"""The search for the smallest arena, for whatever can say whether an arena of some size serves a trace."""

from __future__ import annotations

from collections.abc import Callable


def smallest_arena(serves: Callable[[int], bool], low: int, guess: int, unit: int, enough: int | None = None) -> int:
    """A multiple of `unit` that serves although its lower neighbour does not, near `guess` or below it.

    Args:
        serves: whether an arena of so many bytes serves the whole trace.
        low: no arena smaller than this does.
        guess: bytes that probably do.
        unit: step in bytes.
        enough: an arena that is known to do, None where `serves` holds from some size on.

    A good guess takes two probes. Otherwise the sizes between the last that failed and the first that did are
    bisected. Whether a smaller arena would do after all is not known: the property is not monotone in general.
    """
    high = -(-max(guess, low) // unit) * unit
    failed = low // unit * unit - unit
    step = unit
    while not serves(high):
        failed, high, step = high, high + step, 2 * step
        if enough is not None and high >= enough:
            high = -(-enough // unit) * unit
            break
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

"""What pages report in addition to a replay: counts and code bytes on a Cortex-M3.

Each is None where this machine lacks the tools, and a page then has a dash: `cell`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import heapwright as hw
from heapwright import HeapwrightError, __version__

if TYPE_CHECKING:
    from heapwright import Recipe, Session, Trace

_T = TypeVar("_T")
_R = TypeVar("_R")
CPU = "Cortex-M3"
NO_TOOLS = "no cross compiler or emulator on this machine"
"""Why a statement about instructions or code is not tested."""


def cell(value: float | None, digits: int = 0) -> str:
    """A number for a table, or a dash where there is none."""
    return "–" if value is None else f"{value:,.{digits}f}"


def replayed(trace: Trace, recipe: Recipe, arena: int | None = None, fit: bool = False) -> Mapping[str, Any]:
    """Every metric of a recipe on a trace, by its key; see `heapwright.replay`."""
    return hw.replay(trace, recipe, arena=arena, fit=fit).metrics


def spread(of: Callable[..., _R], *over: Iterable[Any]) -> list[_R]:
    """What a function makes of each, at once on all processors: a replay is outside of Python."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(of, *over))


def each(of: Callable[[_T], _R], named: Mapping[str, _T]) -> dict[str, _R]:
    """The same by name."""
    return dict(zip(named, spread(of, named.values()), strict=True))


Calls: TypeAlias = "Sequence[tuple[int, int, int]]"
"""Of each its kind, object and size."""


def probe(recipe: Recipe, calls: Calls, metric: str = "accesses", arena: int | None = None) -> int:
    """A metric of a recipe on a few calls."""
    op, id, size = zip(*calls, strict=True)
    return int(replayed(hw.Trace.from_columns(op=op, id=id, size=size), recipe, arena=arena)[metric] or 0)


def served_after(recipe: Recipe, before: Calls, then: Calls) -> int:
    """How many of the later calls an arena serves that the earlier ones filled."""
    arena = probe(recipe, before, "footprint_bytes")
    return len(then) - probe(recipe, [*before, *then], "failed", arena)


def session() -> Session | None:
    """The setting for measuring on a Cortex-M3; None where no compiler or emulator for it is installed."""
    from heapwright import Session

    try:
        return Session()
    except HeapwrightError:
        return None


def versions() -> str:
    """Heapwright and what its instructions are counted with, each with its version."""
    setting = session()
    tools = f"instructions of {setting.setting}, {setting.emulator}" if setting else "no cross compiler or emulator"
    return f"Heapwright {__version__}; {tools}"


def on_target(recipe: Recipe, *traces: Trace, arena: int | None = None) -> list[dict[str, Any]] | None:
    """What `heapwright measure` reports on each trace, with code sizes at -Os alone; None where nothing can measure."""
    setting = session()
    return None if setting is None else replace(setting, arena=arena).measure(recipe, traces, ("Os",))


MOST_ACCESSES = 20_000_000
"""A heap that makes more of them is followed for this many; its instructions are estimated by all its accesses."""


class Instructions(NamedTuple):
    """Of all calls of a trace; where a heap was followed for a part, by its instructions an access there."""

    total: float
    exact: bool


def instructions(
    recipe: Recipe, traces: Sequence[Trace], accesses: Sequence[float]
) -> list[Instructions | None] | None:
    """Instructions on each trace, on which the heap makes these accesses; None where a request is refused.

    None for all where nothing can measure.
    """
    setting = session()
    if setting is None:
        return None
    parts = [
        trace if known <= MOST_ACCESSES else hw.cut(trace, first=int(len(trace) * MOST_ACCESSES / known), close=False)
        for trace, known in zip(traces, accesses, strict=True)
    ]
    counted = setting.instructions(recipe, parts)
    return [_whole(recipe, *row) for row in zip(counted, parts, traces, accesses, strict=True)]


def _whole(recipe: Recipe, counted: int | None, part: Trace, trace: Trace, accesses: float) -> Instructions | None:
    if counted is None or part is trace:
        return None if counted is None else Instructions(counted, exact=True)
    return Instructions(counted * accesses / float(replayed(part, recipe)["accesses"] or 1), exact=False)


def code_sizes(
    recipe: Recipe, levels: Sequence[str], entries: tuple[str, ...] = ("malloc", "free")
) -> dict[str, Any] | None:
    """What `hw.Session.sizes` reports of these calls at each level of optimisation; None without a compiler."""
    setting = session()
    return None if setting is None else setting.sizes(recipe, entries, levels)


def code_bytes(sizes: Mapping[str, Any] | None, level: str) -> int | None:
    """Bytes of code and constants at a level of optimisation, of `code_sizes`; None without a compiler."""
    return None if sizes is None else int(sizes[level].text + sizes[level].data)

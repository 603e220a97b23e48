"""What the statements about the four techniques see: changes in the grids as signs, and probes of a few calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

import heapwright as hw
from heapwright import FREE, MALLOC, Recipe, Trace, zoo
from heapwright_papers import techniques_grid
from heapwright_papers.answers import NO_PACKETS
from heapwright_papers.case_study import MIX, REAL, SYSTEMS, system
from heapwright_papers.declared import constants
from heapwright_papers.measuring import replayed
from heapwright_papers.page import ALIGN
from heapwright_papers.techniques_grid import (
    ANY,
    PROPOSED,
    UNSPLIT,
    Beside,
    Grid,
    changes,
    contrast,
    together,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

NONE_WITHIN, SINGLE_WITHIN = 0.01, 0.10
"""A change of up to 1 % is "none", of up to 10 % one sign, of more two."""

Grids = Mapping[str, Sequence[Grid]]


def names(found: Mapping[str, Grids], traces: Mapping[str, Sequence[Trace]] | None) -> dict[str, Any]:
    """What the statements' expressions see; `traces` are those of real networks, where there are any."""
    grid = next(iter(next(iter(found.values())).values()))[0]
    known: Mapping[str, Any] = {REAL: NO_PACKETS} | dict(found)

    def over(where: str, technique: str, effect: str, beside: Beside = ANY, of: Sequence[str] = ()) -> float:
        grids = {name: some for name, some in known[where].items() if not of or name in of}
        return _all(grids, technique, effect, beside) or 0.0

    def by_draw(where: str, technique: str, effect: str) -> list[float]:
        grids = known[where]
        count = len(next(iter(grids.values())))
        single = [_all({name: [some[at]] for name, some in grids.items()}, technique, effect) for at in range(count)]
        return [one for one in single if one is not None]

    def by_workload(where: str, technique: str, effect: str) -> list[tuple[str, float]]:
        of = [(name, changes(some, technique)) for name, some in known[where].items()]
        return [(name, one[effect]) for name, one in of if one is not None]

    def around(where: str, technique: str, effect: str) -> dict[str, float]:
        every = {words: _all(known[where], technique, effect, beside) for words, beside in _CONTEXTS.items()}
        return {words: value for words, value in every.items() if value is not None}

    def fewer(where: str) -> list[float]:
        every = [grid for some in known[where].values() for grid in some]
        return [float((np.diff(one.accesses[_pairs(one, "freelists")]).ravel() < 0).mean()) for one in every]

    def means(where: str, technique: str, column: str, beside: Beside) -> float:
        return _means([grid for some in known[where].values() for grid in some], technique, column, beside)

    return {
        **constants("techniques"),
        **{name: value for name, value in vars(techniques_grid).items() if name.isupper()},
        "NONE_WITHIN": NONE_WITHIN,
        "SINGLE_WITHIN": SINGLE_WITHIN,
        "LARGE": LARGE,
        "HALF": HALF,
        "MIX": MIX,
        "REAL": REAL,
        "changes": changes,
        "together": together,
        "sign": sign,
        "points": lambda signs: signs.count("+") - signs.count("-"),
        "shown": shown,
        "agrees": agrees,
        "found": known,
        "over": over,
        "around": around,
        "by_draw": by_draw,
        "by_workload": by_workload,
        "fewer": fewer,
        "means": means,
        "wasted": _wasted,
        "halves": _halves,
        "whole": _whole,
        "cost": _cost,
        "summary": {name: system(name).summary(ALIGN) for name in SYSTEMS},
        "levels": [len({getattr(one, technique) for one in grid.rows}) for technique in next(iter(grid.rows))._fields],
        "recipes": grid.recipes,
        "parts": {name: _parts(name, some[0]) for name, some in traces.items()} if traces else NO_PACKETS,
    }


def _parts(name: str, trace: Trace) -> list[int]:
    """Bytes requested, used, lost inside blocks and between them, by the allocator proposed for a workload."""
    metrics = replayed(trace, zoo(f"{name}-proposed"))
    keys = ("requested_peak_bytes", "allocated_peak_bytes", "internal_bytes", "external_bytes")
    return [int(metrics[key] or 0) for key in keys]


# ---- Table 2 ---------------------------------------------------------------------------------------------------------


def sign(change: float) -> str:
    """A change as the paper writes it: None, or one or two signs."""
    if abs(change) <= NONE_WITHIN:
        return "None"
    return ("+" if change > 0 else "-") * (1 if abs(change) <= SINGLE_WITHIN else 2)


def shown(change: float | None) -> str:
    """A sign and the change behind it, or a dash."""
    return "–" if change is None else f"{sign(change)} ({100 * change:+.1f} %)"


def agrees(theirs: str, change: float) -> bool:
    """Whether a change has the paper's sign; one of theirs may be two of ours."""
    ours = sign(change)
    return ours == theirs or (len(theirs) == 1 and ours == 2 * theirs)


def _all(grids: Grids, technique: str, effect: str, beside: Beside = ANY) -> float | None:
    return together([changes(some, technique, beside) for some in grids.values()], effect)


_CONTEXTS = {"around the proposed allocator": PROPOSED, "without splitting": UNSPLIT}


def _pairs(grid: Grid, technique: str, beside: Beside = ANY) -> Any:
    return grid.pairs(*contrast(grid, technique), beside)


def _means(grids: Iterable[Grid], technique: str, column: str, beside: Beside) -> float:
    """With a technique over without, less 1: the geometric mean over all grids."""
    found = [(grid, _pairs(grid, technique, beside)) for grid in grids]
    logs = [grid.change(column, pairs) for grid, pairs in found if len(pairs)]
    return float(np.expm1(mean(logs))) if logs else 0.0


# ---- probes ----------------------------------------------------------------------------------------------------------

LARGE, HALF, _PIN = 200, 96, 16
"""Bytes of a free block, of two requests that it can serve together, and of what keeps it from its neighbours."""

Calls = Sequence[tuple[int, int, int]]

_HOLE: Calls = [(MALLOC, 0, LARGE), (MALLOC, 1, _PIN), (FREE, 0, 0)]
_PAIR: Calls = [(MALLOC, 0, HALF), (MALLOC, 1, HALF), (MALLOC, 2, _PIN), (FREE, 0, 0)]
_BOTH: Calls = [*_PAIR, (FREE, 1, 0)]


def _wasted(split: str) -> int:
    """Bytes lost in a large free block that serves half of it; parts are told where the footprint grows last."""
    taken = _trace([*_HOLE, (MALLOC, 2, HALF), (MALLOC, 3, 2 * LARGE)])
    return int(replayed(taken, _first_fit(split=split))["internal_bytes"] or 0)


def _halves(split: str) -> int:
    """How many requests of half its size a free block serves."""
    return _served(_HOLE, [(MALLOC, 2, HALF), (MALLOC, 3, HALF)], _first_fit(split=split))


def _whole(coalesce: str) -> int:
    """How many requests of their size together two free neighbours serve."""
    return _served(_BOTH, [(MALLOC, 3, 2 * HALF)], _first_fit(coalesce=coalesce))


def _cost(coalesce: str) -> int:
    """Accesses of a free whose neighbour is free."""
    recipe = _first_fit(coalesce=coalesce)
    return _accesses(_BOTH, recipe) - _accesses(_PAIR, recipe)


def _first_fit(**changes: Any) -> Recipe:
    return Recipe(
        pools=(hw.pools.General(**{"fit": "first", "split": "always", "coalesce": "immediate", **changes}),),
        align=ALIGN,
    )


def _trace(calls: Calls) -> Trace:
    op, id_, size = zip(*calls, strict=True)
    return Trace.from_columns(op=op, id=id_, size=size)


def _accesses(calls: Calls, recipe: Recipe) -> int:
    return int(replayed(_trace(calls), recipe)["accesses"] or 0)


def _served(before: Calls, then: Calls, recipe: Recipe) -> int:
    """How many of the later calls an arena serves that the earlier ones filled."""
    arena = int(replayed(_trace(before), recipe)["footprint_bytes"] or 0)
    return len(then) - int(replayed(_trace([*before, *then]), recipe, arena=arena)["failed"] or 0)

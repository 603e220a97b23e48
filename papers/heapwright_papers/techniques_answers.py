"""What becomes of each statement about the four techniques, from the grids and from probes of a few calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from heapwright import Recipe, Trace, zoo
from heapwright.recipes.pools import General
from heapwright.traces.validation import FREE, MALLOC
from heapwright_papers.case_study import MIX, SYSTEMS, system
from heapwright_papers.measuring import replayed
from heapwright_papers.page import ALIGN, Page, percent
from heapwright_papers.techniques_grid import (
    ANY,
    BEST,
    FIRST,
    LAST,
    PROPOSED,
    UNSPLIT,
    Beside,
    Grid,
    changes,
    contrast,
    together,
)
from heapwright_papers.verdicts import HOLDS, SHOWN, Cause, Verdict, fails, judge, within_noise

if TYPE_CHECKING:
    from collections.abc import Iterable

NONE_WITHIN, SINGLE_WITHIN = 0.01, 0.10
"""A change of up to 1 % is "none", of up to 10 % one sign, of more two."""

TABLE_1 = {
    "Windows CE": "one heap of singly linked blocks, LIFO; first fit; merged on every allocation or free",
    "Windows XP": "127 freelists of 8-byte steps to 1024 bytes, larger blocks in a doubly linked FIFO list; first fit; "
    "full splitting and coalescing",
    "Linux": "Lea 2.7.2: up to 128 freelists; best fit; splitting and coalescing from 0 % for small blocks to "
    "100 % for large ones",
    "Enea OSE": "8 freelists and no main heap; best fit; neither splitting nor coalescing",
    "uClinux": "powers of two to 4 KB, whole pages above; two freelists; neither splitting nor coalescing",
}

TABLE_2 = {
    "freelists": {"internal": "--", "external": "+", "performance": "++"},
    "best fit": {"internal": "--", "external": "None", "performance": "--"},
    "split": {"internal": "--", "external": "None", "performance": "--"},
    "coalesce": {"internal": "None", "external": "--", "performance": "+"},
}
"""What a technique does when it is used; the other four rows of the paper's table, without it, are the opposite."""

_KNOWN = {
    ("split", "external"): "where nothing is merged, what was split stays apart",
    (
        "coalesce",
        "internal",
    ): "where nothing is split, merged blocks are handed out whole, and headers and tags make the smallest blocks grow",
}
"""What moves the parts of the footprint where the whole grid counts."""

Grids = Mapping[str, Sequence[Grid]]


def answer(page: Page, found: Mapping[str, Grids], traces: Mapping[str, Sequence[Trace]]) -> None:
    """A verdict on every statement of the page that a run decides; `traces` are those of real networks."""
    for name in SYSTEMS:
        id_ = f"techniques-table-1-{name.lower().replace(' ', '-')}"
        page.verdict(id_, system(name).summary(ALIGN), SHOWN)
    _probes(page)
    _levels(page, next(iter(found.values())))
    _sum(page, traces)
    for on, grids in found.items():
        for technique, signs in TABLE_2.items():
            for effect in signs:
                id_ = f"techniques-table-2-{technique.replace(' ', '-')}-{effect}"
                page.verdict(id_, *_cell(on, grids, technique, effect), on)
        _freelists(page, on, grids)
        _searches(page, on, grids)


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


def _cell(on: str, grids: Grids, technique: str, effect: str) -> tuple[str, Verdict]:
    theirs = TABLE_2[technique][effect]
    usual = _all(grids, technique, effect) or 0.0
    of = [(name, changes(some, technique)) for name, some in grids.items()]
    each = ", ".join(f"{name} {100 * one[effect]:+.1f}" for name, one in of if one is not None)
    here = f"{shown(usual)}; {each} %"
    if agrees(theirs, usual):
        return here, HOLDS
    traces = len(next(iter(grids.values())))
    single = [_all({name: [some[at]] for name, some in grids.items()}, technique, effect) for at in range(traces)]
    values = [one for one in single if one is not None]
    if on == MIX and any(agrees(theirs, one) for one in values):
        return here, within_noise(f"{traces} draws: {100 * min(values):+.1f} to {100 * max(values):+.1f} %")
    return here, _why(grids, technique, effect, usual)


def _why(grids: Grids, technique: str, effect: str, usual: float) -> Verdict:
    """Where the paper leaves open what decides the sign, that with its numbers."""
    theirs = TABLE_2[technique][effect]
    if (technique, effect) in _KNOWN:
        part, whole = (_all(grids, technique, of, PROPOSED) or 0.0 for of in (effect, "memory"))
        return fails(
            Cause.CHOICE,
            f"the paper does not say what is used beside it: {_KNOWN[technique, effect]}; around the proposed "
            f"allocator it is {100 * part:+.1f} %, and {100 * whole:+.1f} % of memory as a whole",
        )
    around = {words: _all(grids, technique, effect, beside) for words, beside in _CONTEXTS.items()}
    told = ", ".join(f"{words} {100 * value:+.1f} %" for words, value in around.items() if value is not None)
    if any(value is not None and agrees(theirs, value) for value in around.values()):
        return fails(Cause.CHOICE, f"the paper does not say what is used beside it: {told}")
    if sign(usual)[0] == theirs[0]:
        return fails(
            Cause.CHOICE,
            f"the direction is the paper's, which gives no numbers for its signs; two are more than "
            f"{percent(SINGLE_WITHIN)} here, and it is {told}",
        )
    return fails(Cause.UNEXPLAINED, f"so it is beside other techniques, too: {told}")


_CONTEXTS = {"around the proposed allocator": PROPOSED, "without splitting": UNSPLIT}


# ---- other statements about effects ------------------------------------------------------------------------------


def _freelists(page: Page, on: str, grids: Grids) -> None:
    faster = [np.diff(grid.accesses[_pairs(grid, "freelists")]).ravel() < 0 for some in grids.values() for grid in some]
    share = mean(float(one.mean()) for one in faster)
    here = f"two lists take fewer accesses than none in {percent(share)} of the pairs"
    page.verdict("techniques-freelists-performance", here, judge(share > 0.5, _not_so()), on)
    around = {effect: _all(grids, "freelists", effect, PROPOSED) or 0.0 for effect in TABLE_2["freelists"]}
    unsplit = _all(grids, "freelists", "internal", UNSPLIT) or 0.0
    wanted: dict[str, Callable[[float], bool]] = {
        "internal": lambda change: change < -SINGLE_WITHIN,
        "external": lambda change: change <= SINGLE_WITHIN,
        "performance": lambda change: change > NONE_WITHIN,
    }
    cut = fails(
        Cause.CHOICE,
        "where every block is split to the request nothing is left inside it to save; where none is split, of which "
        f"the paper does not speak here, two lists change it by {100 * unsplit:+.1f} %",
    )
    whole = _all(grids, "freelists", "memory", PROPOSED) or 0.0
    much = fails(
        Cause.CHOICE,
        f"the paper has no number for it, up to {percent(SINGLE_WITHIN)} is “not much” here; memory as a whole changes "
        f"by {100 * whole:+.1f} %",
    )
    for effect, met in wanted.items():
        here = f"{100 * around[effect]:+.1f} %, two lists against none around the proposed allocator"
        otherwise = {"internal": cut, "external": much}.get(effect, _not_so())
        page.verdict(f"techniques-two-lists-{effect}", here, judge(met(around[effect]), otherwise), on)


def _searches(page: Page, on: str, grids: Grids) -> None:
    every = [grid for some in grids.values() for grid in some]
    shorter = {
        words: _means(every, "coalesce", "accesses", {"fit": fit, "freelists": 0})
        for words, fit in (("first", FIRST), ("best", BEST))
    }
    here = ", ".join(f"{words} fit {100 * value:+.1f} % accesses" for words, value in shorter.items())
    met = all(value < -SINGLE_WITHIN for value in shorter.values())
    page.verdict("techniques-coalesce-traversal", f"without freelists: {here}", judge(met, _not_so()), on)
    costs = {effect: _all(grids, "split", effect) or 0.0 for effect in ("internal", "performance")}
    here = f"splitting: internal {100 * costs['internal']:+.1f} %, performance {100 * costs['performance']:+.1f} %"
    met = all(value < -NONE_WITHIN for value in costs.values())
    page.verdict("techniques-contradicting", here, judge(met, _not_so()), on)
    slower = _means(every, "split", "accesses", {"fit": BEST})
    here = f"accesses of best fit with full splitting over none: {100 * slower:+.1f} %"
    page.verdict("techniques-interdependent", here, judge(slower > NONE_WITHIN, _not_so()), on)
    proposed = {"freelists": 0, "split": 0, "coalesce": 0}
    faster = 1 / (1 + _means(every, "best fit", "accesses", proposed))
    here = f"first fit takes {percent(faster)} of the accesses of best fit, both with full splitting and coalescing"
    apart = 1 / (1 + _means(every, "best fit", "accesses", {**proposed, "coalesce": LAST}))
    short = fails(
        Cause.TRAFFIC,
        "full coalescing leaves few free blocks to search here, where the paper has “a huge number”; without "
        f"coalescing first fit takes {percent(apart)}",
    )
    page.verdict("techniques-first-fit-performance", here, judge(faster <= 0.5, short), on)
    inside = -_means(every, "best fit", "internal", proposed)
    here = f"{100 * inside:+.1f} % against best fit, both with full splitting and coalescing"
    page.verdict("techniques-first-fit-internal", here, judge(inside <= NONE_WITHIN, _not_so()), on)


def _pairs(grid: Grid, technique: str, beside: Beside = ANY) -> Any:
    return grid.pairs(*contrast(grid, technique), beside)


def _means(grids: Iterable[Grid], technique: str, column: str, beside: Beside) -> float:
    """With a technique over without, less 1: the geometric mean over all grids."""
    found = [(grid, _pairs(grid, technique, beside)) for grid in grids]
    logs = [grid.change(column, pairs) for grid, pairs in found if len(pairs)]
    return float(np.expm1(mean(logs))) if logs else 0.0


def _not_so() -> Verdict:
    return fails(Cause.UNEXPLAINED, "the number beside it")


def _levels(page: Page, grids: Grids) -> None:
    grid = next(iter(grids.values()))[0]
    levels = [len({getattr(one, technique) for one in grid.rows}) for technique in next(iter(grid.rows))._fields]
    here = f"{' x '.join(map(str, levels))} levels, {grid.recipes:,} different allocators"
    page.verdict("techniques-levels", here, judge(levels == [10] * len(levels), _not_so()))


def _sum(page: Page, traces: Mapping[str, Sequence[Trace]]) -> None:
    told, ratios = [], []
    for name, some in traces.items():
        metrics = replayed(some[0], zoo(f"{name}-proposed"))
        asked, used, inside, between = (
            int(metrics[key] or 0)
            for key in ("requested_peak_bytes", "allocated_peak_bytes", "internal_bytes", "external_bytes")
        )
        told.append(f"{name} {asked:,} + {inside:,} + {between:,} against {used:,}")
        ratios.append((asked + inside + between) / used)
    here = f"the proposed allocators on the first network: {'; '.join(told)} B"
    page.verdict("techniques-sum", here, judge(all(abs(ratio - 1) < SINGLE_WITHIN for ratio in ratios), _not_so()))


# ---- probes ----------------------------------------------------------------------------------------------------------

_LARGE, _HALF, _PIN = 200, 96, 16
"""Bytes of a free block, of two requests that it can serve together, and of what keeps it from its neighbours."""

Calls = Sequence[tuple[int, int, int]]


def _probes(page: Page) -> None:
    """A few calls show what one split and one merge do."""
    hole: Calls = [(MALLOC, 0, _LARGE), (MALLOC, 1, _PIN), (FREE, 0, 0)]
    halves: Calls = [(MALLOC, 2, _HALF), (MALLOC, 3, _HALF)]
    whole, cut = (_first_fit(split=split) for split in ("never", "always"))
    taken = _trace(
        [*hole, (MALLOC, 2, _HALF), (MALLOC, 3, 2 * _LARGE)]
    )  # parts are told where the footprint grows last
    wasted = [int(replayed(taken, one)["internal_bytes"] or 0) for one in (whole, cut)]
    here = f"{wasted[1]} B of a free block of {_LARGE} that serves {_HALF}; without splitting {wasted[0]}"
    page.verdict("techniques-split-exact", here, judge(wasted[1] == 0 < wasted[0], _not_so()))
    served = [_served(hole, halves, one) for one in (whole, cut)]
    here = f"one free block serves {served[1]} requests of half its size where a split is allowed, {served[0]} without"
    page.verdict("techniques-split-blocks", here, judge(served == [1, 2], _not_so()))
    pair: Calls = [(MALLOC, 0, _HALF), (MALLOC, 1, _HALF), (MALLOC, 2, _PIN), (FREE, 0, 0)]
    both: Calls = [*pair, (FREE, 1, 0)]
    apart, merged = (_first_fit(coalesce=coalesce) for coalesce in ("never", "immediate"))
    served = [_served(both, [(MALLOC, 3, 2 * _HALF)], one) for one in (apart, merged)]
    here = f"two free neighbours serve {served[1]} request of their size together with coalescing, {served[0]} without"
    page.verdict("techniques-coalesce-blocks", here, judge(served == [0, 1], _not_so()))
    costs = [_accesses(both, one) - _accesses(pair, one) for one in (apart, merged)]
    here = f"{costs[1]} accesses of a free that merges, {costs[0]} of one without coalescing"
    page.verdict("techniques-coalesce-cost", here, judge(costs[1] > costs[0], _not_so()))


def _first_fit(**changes: Any) -> Recipe:
    return Recipe(
        pools=(General(**{"fit": "first", "split": "always", "coalesce": "immediate", **changes}),), align=ALIGN
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

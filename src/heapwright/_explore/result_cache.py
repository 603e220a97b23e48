"""Cache of replay results, shared by recipes whose differences have no effect on a trace.

Two thresholds of a pool are only ever compared with sizes: the least remainder to split off, and the smallest block to
merge. A replay reports the range of each threshold within which every comparison has the same result
(`heapwright._replay.engine.Margins`). A recipe that differs only in thresholds within these ranges has the same metrics
without a replay.
"""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from heapwright._native import ffi
from heapwright._recipes.policy import Structure, structure_of, used_bytes, used_bytes_of
from heapwright._recipes.pools import kind_of
from heapwright._replay.arena_sizes import depends_on_arena
from heapwright._replay.engine import GivenUpError, Margins, ReplayProgress, Watch
from heapwright._traces.validation import FREE

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._replay.metrics import Value
    from heapwright._replay.replay import Replayed
    from heapwright._traces.trace import Trace

KEPT = 1 << 18
"""Most results that are kept, over all traces: some 0.5 kB each."""


class EquivalenceKey(NamedTuple):
    """Policy in parts: a key for all of it but its thresholds, and the thresholds in bytes.

    ``small`` is the largest request that the last remainder serves; None if there is no last remainder, or if this
    threshold is part of the key.
    """

    rest: bytes
    split: int
    merge: int
    small: int | None


@lru_cache(maxsize=64)
def form_of(recipe: Recipe) -> EquivalenceKey | None:
    """The form of a recipe with thresholds in one pool; None for others, and if placement depends on the arena size."""
    result = None if recipe.memory else _apart(structure_of(recipe))
    if result is None:
        return None
    at, outside, least = result
    recipe = recipe.canonical()
    laid_out = ffi.new("struct hw_pool *", least)
    recipe.pools[at].set_thresholds(laid_out, recipe.geometry)
    split, merge, small = kind_of(laid_out).take_thresholds(laid_out, recipe.checks != "none")
    return EquivalenceKey(outside + _digest(ffi.buffer(laid_out, used_bytes_of(laid_out))), split, merge, small)


@lru_cache(maxsize=4096)
def _apart(structure: Structure) -> tuple[int, bytes, Any] | None:
    """The pool with thresholds, a key for the policy without that pool, and the pool in C with the least thresholds.

    None as in `form_of`.
    """
    if depends_on_arena(structure.recipe) or structure.recipe.threads == "cached":
        return None
    struct = structure.struct()
    having = [at for at in range(struct.pool_count) if kind_of(struct.pools[at]).has_thresholds]
    if len(having) != 1:
        return None
    least = ffi.new("struct hw_pool *", struct.pools[having[0]])
    struct.pools[having[0]] = ffi.new("struct hw_pool *")[0]
    return having[0], _digest(used_bytes(struct)), least[0]


def _digest(packed: Any) -> bytes:
    return blake2b(packed, digest_size=16).digest()


_Key = tuple[bytes, int | None]
"""Key of policies that are the same but for thresholds."""


class _Kept(NamedTuple):
    """Progress of a pruned replay, or the pickled metrics of a finished one, and the thresholds for which it holds."""

    margins: Margins
    found: ReplayProgress | bytes
    refused: bool = False

    def holds(self, form: EquivalenceKey) -> bool:
        """Whether a form's thresholds lie within the margins of the replay."""
        return self.margins.hold(form.split, form.merge)


class ResultCache:
    """Results of replays of one trace, for recipes that behave the same there. Threads may share it."""

    def __init__(self, trace: Trace, most: int) -> None:
        """Begin empty, and keep at most ``most`` results."""
        requested = np.unique(np.maximum(trace.size[trace.op != FREE], 1))
        self._asked: list[int] | None = None if trace.align.any() else [int(size) for size in requested]
        self._left = most
        self._keys: tuple[str, ...] = ()
        self._kept: dict[_Key, list[_Kept]] = {}

    def metrics(self, recipe: Recipe, watch: Watch | None, replay: Callable[[], Replayed]) -> dict[str, Value]:
        """The metrics of a recipe: cached ones of a recipe that behaved the same, or else those of ``replay``.

        The progress of a pruned recipe that behaved the same is passed to ``watch``, which may prune this one too.
        """
        form = form_of(recipe)
        if form is None:
            return replay().metrics
        kept = self._kept.setdefault(self._key(form), [])
        if (known := self._finished(kept, form)) is not None:
            return known
        given_up: ReplayProgress | None = None
        for item in kept:
            if (
                isinstance(item.found, ReplayProgress)
                and item.holds(form)
                and (not given_up or item.found.calls > given_up.calls)
            ):
                given_up, margins, refused = item.found, item.margins, item.refused
        if given_up and watch and not watch(given_up):
            raise GivenUpError(given_up, margins, refused)
        try:
            replayed = replay()
        except GivenUpError as error:
            self._keep(kept, error.margins, error.so_far, error.refused)
            raise
        self._take(kept, replayed)
        return replayed.metrics

    def metrics_of_each(
        self, recipes: Sequence[Recipe], replay_each: Callable[[Sequence[Recipe]], Sequence[Replayed]]
    ) -> list[dict[str, Value]]:
        """`metrics` of each; recipes replayed together differ in more than thresholds, so none has another's result."""
        forms = [form_of(recipe) for recipe in recipes]
        results: dict[int, dict[str, Value]] = {}
        waiting = list(range(len(recipes)))
        while waiting:
            requested, later, begun = list[int](), list[int](), set[_Key]()
            for at in waiting:
                form = forms[at]
                key = form and self._key(form)
                if form and key:
                    if (known := self._finished(self._kept.get(key, ()), form)) is not None:
                        results[at] = known
                        continue
                    if key in begun:
                        later.append(at)
                        continue
                    begun.add(key)
                requested.append(at)
            for at, replayed in zip(requested, replay_each([recipes[at] for at in requested]), strict=True):
                results[at] = replayed.metrics
                if form := forms[at]:
                    self._take(self._kept.setdefault(self._key(form), []), replayed)
            waiting = later
        return [results[at] for at in range(len(recipes))]

    def _key(self, form: EquivalenceKey) -> _Key:
        return form.rest, self._smallest_alike(form.small)

    def _finished(self, kept: Sequence[_Kept], form: EquivalenceKey) -> dict[str, Value] | None:
        """The cached metrics of a recipe that behaved the same to the end, if there is one."""
        for item in kept:
            if not isinstance(item.found, ReplayProgress) and item.holds(form):
                return dict(zip(self._keys, pickle.loads(item.found), strict=True))
        return None

    def _take(self, kept: list[_Kept], replayed: Replayed) -> None:
        if replayed.margins:
            self._keys = tuple(replayed.metrics)
            self._keep(kept, replayed.margins, pickle.dumps(tuple(replayed.metrics.values())))

    def _smallest_alike(self, small: int | None) -> int | None:
        """The smallest threshold that separates the requests of the trace as this one does."""
        if small is None or self._asked is None:
            return small
        below = bisect_right(self._asked, small)
        return self._asked[below - 1] if below else 0

    def _keep(self, kept: list[_Kept], margins: Margins, result: ReplayProgress | bytes, refused: bool = False) -> None:
        if self._left > 0:
            self._left -= 1
            kept.append(_Kept(margins, result, refused))

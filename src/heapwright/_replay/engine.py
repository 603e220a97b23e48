"""Replay engine: one run of a trace on a fresh heap of a recipe, in the native code.

It drives the C core with the recipe's policy at run time and counts every metadata access. The arena is address space,
of which only touched pages cost memory. Its default size is the recipe's reach, so that one replay also gives the
smallest arena. The native calls release the GIL: threads replay in parallel.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._recipes.geometry import round_up
from heapwright._recipes.pools import kind_of
from heapwright._support.errors import HeapwrightError
from heapwright._traces.calls import Calls

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

DEFAULT_ARENA = 1 << 31
"""Default bytes of the arena: the largest reach of any recipe."""


class CorruptHeapError(RuntimeError):
    """A replay with checks found a broken payload or invariant: a defect of the core, never of the input."""


@dataclass(frozen=True)
class ReplayProgress:
    """Progress of a replay after a number of calls: the bytes of arena that it needs at least, and its costs.

    None of the values ever falls. The keys are those of `heapwright._replay.metrics`.
    """

    calls: int
    footprint_bytes: int
    accesses: int
    reads: int
    writes: int
    moved_bytes: int
    accesses_malloc_max: int
    accesses_realloc_max: int
    accesses_free_max: int


GROWING = tuple(key.name for key in fields(ReplayProgress) if key.name != "calls")
"""Metrics that never fall in a replay."""


class Margins(NamedTuple):
    """Margins of a replay: the ranges of a pool's thresholds within which the replay stays the same.

    A split threshold may lie above ``split_over`` and up to ``split_up_to`` bytes; the same for the merge threshold.
    """

    split_over: int
    split_up_to: int
    merge_over: int
    merge_up_to: int

    def hold(self, split: int, merge: int) -> bool:
        """Whether these thresholds lie within the margins."""
        return self.split_over < split <= self.split_up_to and self.merge_over < merge <= self.merge_up_to


def margins_of(result: Any) -> Margins:
    """Margins from the metrics of the engine (`struct hw_metrics *`)."""
    info = result.margins
    return Margins(int(info.split_over), int(info.split_up_to), int(info.merge_over), int(info.merge_up_to))


Watch = Callable[[ReplayProgress], bool]
"""Whether a replay should continue."""

STRETCH = 512
"""Calls between two checks of thresholds, and between two entries of remaining accesses."""


class PruningThresholds(NamedTuple):
    """Thresholds at which a replay can be pruned: once it reaches all values of some corner.

    ``corners`` are int64[n, len(GROWING)]; ``to_come`` are the remaining accesses after each `STRETCH` calls, uint64,
    which count as made.
    """

    corners: NDArray[np.int64]
    to_come: NDArray[np.uint64] | None

    def are_reached(self, so_far: ReplayProgress) -> bool:
        """Whether a replay has reached all values of some corner."""
        info = np.array([getattr(so_far, key) for key in GROWING])
        if self.to_come is not None:
            info[_ACCESSES] += int(self.to_come[so_far.calls // STRETCH])
        return bool((info >= self.corners).all(axis=1).any())


_ACCESSES = GROWING.index("accesses")


class LevelWatch(ABC):
    """Watch with thresholds below which it need not be called; the engine checks these at no cost."""

    @abstractmethod
    def __call__(self, so_far: ReplayProgress) -> bool:
        """Whether a replay should continue."""

    @abstractmethod
    def levels(self) -> PruningThresholds | None:
        """Thresholds at this moment; None if the watch has to be called in any case."""


class GivenUpError(Exception):
    """A replay was pruned by its watch.

    ``so_far`` is its progress, ``margins`` are the margins of the calls that it made, and ``refused`` is whether one of
    them failed.
    """

    def __init__(self, so_far: ReplayProgress, margins: Margins, refused: bool = False) -> None:
        super().__init__(f"pruned after {so_far.calls:,} calls")
        self.so_far, self.margins, self.refused = so_far, margins, refused


WATCHED_CALLS = 4096
"""Most calls of a watch in a replay, and the fewest calls of the replay between two of them."""

_WATCHED_TIMES = 64


def so_far(counts: Any, calls: int, footprint: int) -> ReplayProgress:
    """Progress from the engine's counts after a number of calls, at this footprint in bytes."""
    return ReplayProgress(
        calls=calls,
        footprint_bytes=footprint,
        accesses=int(counts.reads + counts.writes),
        reads=int(counts.reads),
        writes=int(counts.writes),
        moved_bytes=int(counts.moved),
        accesses_malloc_max=int(counts.malloc_max),
        accesses_realloc_max=int(counts.realloc_max),
        accesses_free_max=int(counts.free_max),
    )


_SELDOM = 4
"""Factor by which a watch with thresholds is called less often; it is called at all, as they may have changed."""


class _Watcher:
    """Caller of a replay's watch, which keeps the last progress.

    If a reached corner does not end the replay, the watch is called in any case.
    """

    def __init__(self, struct: Any, watch: Watch, calls: int) -> None:
        self._struct, self._watch = struct, watch
        self.so_far: ReplayProgress | None = None
        self.error: BaseException | None = None
        self._levels: PruningThresholds | None = None
        self._often = max(WATCHED_CALLS, calls // _WATCHED_TIMES)
        self.asked = ffi.new("struct hw_watch *", {"every": self._often, "go_on": lib.hw_go_on})
        if isinstance(watch, LevelWatch):
            self._take(watch.levels())

    def go_on(self, told: Any) -> bool:
        self.so_far = so_far(told, int(told.calls), arena_holding(self._struct, int(told.used)))
        try:
            goes_on = self._watch(self.so_far)
            if goes_on and isinstance(self._watch, LevelWatch):
                self._take(self._watch.levels())
        except BaseException as error:  # raised again once the engine has returned
            self.error = error
            return False
        return goes_on

    def _take(self, levels: PruningThresholds | None) -> None:
        """Have the engine check thresholds, or call the watch in any case."""
        if levels and self.so_far and levels.are_reached(self.so_far):
            levels = None
        self.asked.corners = 0 if levels is None else len(levels.corners)
        self.asked.latest = self._often * (1 if levels is None else _SELDOM)
        if levels is None or levels is self._levels:
            return
        corners = levels.corners.astype(np.uint64)
        corners[:, 0] = _used_reaching(self._struct, levels.corners[:, 0])
        self._levels, self._corners = levels, corners  # the engine only knows where these are
        self.asked.every = min(STRETCH, self._often)
        self.asked.levels = ffi.cast("uint64_t *", corners.ctypes.data)
        if levels.to_come is not None:
            self.asked.to_come = ffi.cast("uint64_t *", levels.to_come.ctypes.data)
            self.asked.stretch = STRETCH


@ffi.def_extern(name="hw_go_on", error=0)
def _go_on(watcher: Any, so_far: Any) -> int:
    requested: _Watcher = ffi.from_handle(watcher)
    return int(requested.go_on(so_far))


class _Arena(threading.local):
    """Address space of a thread, kept for the next replay: its pages are already mapped."""

    memory: Any = None
    size = front = 0
    is_clean = False  # all its bytes are 0

    def reserve(self, size: int, front: int) -> Any:
        if self.size < size or self.front < front:
            self.memory = None
            memory = lib.hw_reserve(front, size)
            if memory == ffi.NULL:
                raise HeapwrightError(
                    f"cannot reserve {size:,} bytes of address space; give a smaller arena", parameter="arena"
                )
            self.memory = ffi.gc(memory, lambda pointer: lib.hw_unreserve(pointer, front, size))
            self.size, self.front, self.is_clean = size, front, True
        return self.memory


_unchecked, _checked = _Arena(), _Arena()


def _arena_of(struct: Any) -> _Arena:
    """Arena of heaps with checks, which read payloads and must not find data of other heaps there."""
    return _checked if struct.checks else _unchecked


def memory_of(struct: Any, calls: Calls, size: int, others: Sequence[Any] = ()) -> Any:
    """Start of a replay's arena of `size` bytes; in front of it is room for the references of objects that move.

    ``others`` are replayed in the same memory without another call; all have checks, or none has.
    """
    arena = _arena_of(struct)
    memory = arena.reserve(size, max(int(lib.hw_front_bytes(item, calls.struct)) for item in (struct, *others)))
    if struct.checks and not arena.is_clean:  # a cached block's mark may stand in a payload
        lib.hw_forget(memory, arena.size)
    arena.is_clean = False
    return memory


def note_wiped(struct: Any, wiped: int) -> None:
    """Note whether a replay in the memory of `memory_of` left all of it 0."""
    _arena_of(struct).is_clean = bool(wiped)


@contextmanager
def lent_memory(struct: Any, calls: Calls, size: int) -> Iterator[Any]:
    """Memory as of `memory_of` for a replay during which this thread may begin others, which get another memory."""
    memory = memory_of(struct, calls, size)
    arena = _arena_of(struct)
    lent = arena.memory, arena.size, arena.front
    arena.memory, arena.size, arena.front = None, 0, 0
    try:
        yield memory
    finally:
        arena.memory, arena.size, arena.front = lent
        arena.is_clean = False


def arena_bytes_of(struct: Any, arena: int | None) -> int:
    """Bytes of the arena in use: the given size, and at most the reach of the policy."""
    return int(min(arena if arena is not None else DEFAULT_ARENA, struct.reach))


def arena_holding(struct: Any, used: int) -> int:
    """Bytes of the least arena of which a heap can use ``used``; a heap that grows down begins at an aligned end."""
    unit = struct.align if struct.grows_down else 1
    return int(round_up(used + struct.end_header, unit) - struct.end_header + struct.end_mark)


def _used_reaching(struct: Any, arenas: NDArray[np.int64]) -> NDArray[np.int64]:
    """The least used bytes for which `arena_holding` returns these sizes, int64[n]."""
    unit, header = struct.align if struct.grows_down else 1, struct.end_header
    least: NDArray[np.int64] = -(-(arenas + header - struct.end_mark) // unit) * unit - unit + 1 - header
    return np.maximum(least, 0)


def least_arena(struct: Any) -> int:
    """Least bytes of an arena in which the heap can begin: control data and regions."""
    return arena_holding(struct, int(struct.fixed_end))


def explain(code: int, recipe: Recipe, struct: Any, arena: int) -> None:
    """Raise HeapwrightError if the engine's return code is that of a replay that could not begin."""
    if code == lib.HW_NO_MEMORY:
        raise HeapwrightError("out of memory while replaying; replay fewer traces at a time")
    if code == lib.HW_NO_ROOM:
        raise HeapwrightError(
            f"{recipe.name or recipe.hash}: control data and regions need {least_arena(struct):,} bytes, "
            f"the arena has {arena:,}; give it a larger one",
            parameter="arena",
        )


def run(
    trace: Trace,
    recipe: Recipe,
    struct: Any,
    arena: int | None,
    check: int = lib.HW_CHECK_NOTHING,
    watch: Watch | None = None,
) -> tuple[Any, int]:
    """Replay once: the engine's counts (`struct hw_metrics *`), and bytes of the arena. Raises as `replay` does."""
    calls = trace.calls_at(recipe.sites)
    size = arena_bytes_of(struct, arena)
    result = ffi.new("struct hw_metrics *")
    memory = memory_of(struct, calls, size)
    watcher = _Watcher(struct, watch, len(trace)) if watch else None
    handle = ffi.new_handle(watcher)
    options = ffi.new("struct hw_options *", (check, ffi.NULL, ffi.NULL))
    if watcher:
        watcher.asked.watcher = handle
        options.watch = watcher.asked
    code = lib.hw_replay(struct, calls.struct, memory, size, options, result)
    note_wiped(struct, result.wiped)
    if watcher and watcher.error:
        raise watcher.error
    explain(code, recipe, struct, size)
    if result.broken:
        what = "payload" if result.broken == lib.HW_BROKEN_PAYLOAD else f"invariant {result.broken}"
        raise CorruptHeapError(f"{trace.name}: {what} broken after call {result.broken_call} of {recipe.to_toml()}")
    if watcher and watcher.so_far and result.abandoned_call < len(trace):
        raise GivenUpError(watcher.so_far, margins_of(result), bool(result.failed))
    return result, size


def run_each(
    trace: Trace, recipes: Sequence[Recipe], structs: Sequence[Any], arena: int | None
) -> tuple[Any, list[int]]:
    """Replay once with each recipe, unwatched: the engine's counts (`struct hw_metrics[n]`), and bytes of the arenas.

    Adjacent recipes with the same calls and the same demands on memory are replayed in one native call. Raises as
    `replay` does.
    """
    result, code, start = ffi.new("struct hw_metrics[]", len(recipes)), ffi.new("int *"), 0
    sizes = [arena_bytes_of(struct, arena) for struct in structs]
    each = zip(recipes, structs, sizes, strict=True)
    for (sites, _), alike in groupby(each, lambda item: (item[0].sites, item[1].checks > 0)):
        group = [*alike]
        calls, policies, size = trace.calls_at(sites), [struct for _, struct, _ in group], max(own for *_, own in group)
        memory = memory_of(policies[0], calls, size, policies[1:])
        count = len(group)
        done = lib.hw_replay_each(policies, count, calls.struct, memory, size, result + start, code)
        note_wiped(policies[0], done == count and result[start + count - 1].wiped)
        if done < count:
            explain(code[0], *group[done])
        start += count
    return result, sizes


def control_bytes(struct: Any) -> int:
    """Everything below the shared part that no block can cover: control data and gaps for alignment."""
    pools = (struct.pools[index] for index in range(struct.pool_count))
    return int(struct.fixed_end) - sum(kind_of(pool).own_bytes(pool) for pool in pools)

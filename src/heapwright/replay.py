"""Replays: trace x recipe -> metrics, and the pictures of a heap over time.

A replay drives the C core with the recipe's policy at run time and counts every metadata access. The arena is address
space of which only what is touched costs memory; its default size is what the recipe's links reach, so that one replay
also tells the smallest arena. The native calls release the GIL: threads replay in parallel.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright.errors import HeapwrightError
from heapwright.metrics import METRICS, TARGET_METRICS, Value, with_energy
from heapwright.policy import policy
from heapwright.recipes import General
from heapwright.smallest import smallest_arena

if TYPE_CHECKING:
    from heapwright.recipes import Recipe
    from heapwright.traces import Trace

DEFAULT_ARENA = 1 << 31
"""Bytes of the arena where none is asked for: the most that any recipe reaches."""

CHECK_PAYLOAD, CHECK_INVARIANTS = 1, 2

HEAP_MAP_STATES = ("header", "payload in use", "free", "cached", "control data", "untouched")
"""What the numbers in the `state` of a heap map's blocks mean."""

BLOCK_TYPE = np.dtype([("column", "u4"), ("offset", "u4"), ("size", "u4"), ("state", "u4")])


class CorruptHeapError(RuntimeError):
    """A replay with checks found a broken payload or invariant: a defect of the core, never of the input."""


# ---- what the native engine works on -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Calls:
    """A trace as the engine wants it, and the arrays that keep its pointers alive."""

    struct: Any
    arrays: tuple[NDArray[Any], ...]


_calls: weakref.WeakKeyDictionary[Trace, _Calls] = weakref.WeakKeyDictionary()
_calls_lock = threading.Lock()
_bounds: weakref.WeakKeyDictionary[Trace, dict[int, int]] = weakref.WeakKeyDictionary()


def _calls_of(trace: Trace) -> _Calls:
    with _calls_lock:
        found = _calls.get(trace)
        if found is None:
            found = _calls[trace] = _prepare(trace)
        return found


def _prepare(trace: Trace) -> _Calls:
    """Number the objects densely and hand out pointers. O(calls)."""
    object_, objects = trace.objects()
    object_ = np.ascontiguousarray(object_, np.uint32)
    op = np.ascontiguousarray(trace.op, np.uint8)
    size = np.ascontiguousarray(trace.size, np.uint32)
    align = np.ascontiguousarray(trace.align, np.uint32)
    ts_us = np.ascontiguousarray(trace.ts_us, np.int64)
    slot = np.empty(len(trace), np.uint32)
    scratch = np.empty(2 * max(objects, 1), np.uint32)
    slots = lib.hw_assign_slots(
        _pointer("uint8_t", op), _pointer("uint32_t", object_), len(trace), objects, _pointer("uint32_t", scratch),
        _pointer("uint32_t", slot),
    )  # fmt: skip
    struct = ffi.new("struct hw_calls *")
    struct.count, struct.slots = len(trace), slots
    struct.op, struct.slot, struct.size = (
        _pointer("uint8_t", op),
        _pointer("uint32_t", slot),
        _pointer("uint32_t", size),
    )
    struct.align = _pointer("uint32_t", align) if align.any() else ffi.NULL
    has_times = len(ts_us) > 0 and bool((ts_us >= 0).all()) and ts_us[-1] > ts_us[0]
    struct.ts_us = _pointer("int64_t", ts_us) if has_times else ffi.NULL
    return _Calls(struct, (op, slot, size, align, ts_us))


def call_records(trace: Trace) -> tuple[int, NDArray[np.uint32]]:
    """The trace as flat records, for programs that replay it without Python.

    Returns the number of slots and uint32[calls, 3]: operation << 30 | slot, size, alignment (0 is the heap's own).
    """
    calls = _calls_of(trace)
    op, slot, size, align, _ = calls.arrays
    return int(calls.struct.slots), np.column_stack([op.astype(np.uint32) << np.uint32(30) | slot, size, align])


def _pointer(type_: str, array: NDArray[Any]) -> Any:
    return ffi.cast(f"{type_} *", ffi.from_buffer(array))


def policy_struct(recipe: Recipe) -> Any:
    """The recipe's policy as a C struct (`struct hw_policy *`)."""
    return ffi.new("struct hw_policy *", policy(recipe))


class _Arena(threading.local):
    """One stretch of address space a thread, kept for the next replay: its pages are already there."""

    memory: Any = None
    size = front = 0

    def reserve(self, size: int, front: int) -> Any:
        if self.size < size or self.front < front:
            self.memory = None
            memory = lib.hw_reserve(front, size)
            if memory == ffi.NULL:
                raise HeapwrightError(f"cannot reserve {size:,} bytes of address space; ask for a smaller --arena")
            self.memory = ffi.gc(memory, lambda pointer: lib.hw_unreserve(pointer, front, size))
            self.size, self.front = size, front
        return self.memory


_arena = _Arena()


def _memory(struct: Any, calls: _Calls, size: int) -> Any:
    """Where a replay's arena of `size` bytes begins; in front of it is room for the references of objects that move."""
    return _arena.reserve(size, int(lib.hw_front_bytes(struct, calls.struct)))


def _arena_bytes(struct: Any, arena: int | None) -> int:
    return int(min(arena if arena is not None else DEFAULT_ARENA, struct.reach))


def _explain(code: int, recipe: Recipe, struct: Any, arena: int) -> None:
    if code == -1:
        raise HeapwrightError("out of memory while replaying; replay fewer traces at a time")
    if code == -2:
        raise HeapwrightError(
            f"{recipe.name or recipe.hash}: control data and regions need {struct.fixed_end:,} bytes, "
            f"the arena has {arena:,}; give it a larger --arena"
        )


# ---- metrics -------------------------------------------------------------------------------------------------------


def replay(
    trace: Trace,
    recipe: Recipe,
    *,
    arena: int | None = None,
    check_payload: bool = False,
    check_invariants: bool = False,
    time: bool = False,
    fit: bool = False,
    better: Sequence[tuple[int, int]] = (),
) -> dict[str, Value]:
    """Run the trace on a fresh heap of the recipe and return every metric of `heapwright.metrics.METRICS`.

    Args:
        trace: the calls.
        recipe: the allocator.
        arena: bytes of the arena, None for as much as the recipe reaches.
        check_payload: fill every object with a pattern and verify it before it is freed, moved, or resized.
        check_invariants: run the core's checker after every call (slow), and check payloads.
        time: also measure `ns_per_event` on this host with the recipe's generated code.
        fit: also find `smallest_arena_bytes`.
        better: (footprint_bytes, accesses) of other recipes on this trace, footprints rising and accesses falling. A
            replay that comes to need as much memory as one of them and more accesses is given up, because both only
            ever grow: every metric is then None.

    Refused requests are counted in `failed`. Deterministic but for `ns_per_event`. Raises HeapwrightError where the
    arena cannot hold the heap's control data, CorruptHeapError where a check fails.
    """
    struct = policy_struct(recipe)
    check = CHECK_INVARIANTS if check_invariants else CHECK_PAYLOAD if check_payload else 0
    found, arena_bytes = _run(trace, recipe, struct, arena, check, better)
    if found.abandoned_call < len(trace):
        return dict.fromkeys(METRICS)
    metrics = _metrics(trace, recipe, struct, found, arena_bytes if arena is not None else None)
    if fit:
        metrics["smallest_arena_bytes"] = _fit(trace, recipe, struct, found, None)
    if time:
        from heapwright.host_timing import ns_per_event

        metrics["ns_per_event"] = ns_per_event(trace, recipe)
    return metrics


def _run(
    trace: Trace,
    recipe: Recipe,
    struct: Any,
    arena: int | None,
    check: int = 0,
    better: Sequence[tuple[int, int]] = (),
) -> tuple[Any, int]:
    calls = _calls_of(trace)
    size = _arena_bytes(struct, arena)
    found = ffi.new("struct hw_metrics *")
    control = _control_bytes(struct) if better else 0
    bounds = ffi.new("struct hw_bound[]", [(max(footprint - control, 0), accesses) for footprint, accesses in better])
    memory = _memory(struct, calls, size)
    code = lib.hw_replay(struct, calls.struct, memory, size, check, bounds, len(better), ffi.NULL, found)
    _explain(code, recipe, struct, size)
    if found.broken:
        what = "payload" if found.broken == -1 else f"invariant {found.broken}"
        raise CorruptHeapError(f"{trace.name}: {what} broken after call {found.broken_call} of {recipe.to_toml()}")
    return found, size


def _control_bytes(struct: Any) -> int:
    """Everything below the shared part that no block can cover: control data and gaps for alignment."""
    regions = 0
    for index in range(struct.pool_count):
        pool = struct.pools[index]
        regions += pool.general.region + pool.buddy.region
        if pool.partition.partition and not pool.partition.grow:
            regions += pool.partition.most * (pool.partition.partition + pool.partition.descriptor)
        if pool.fixed.count and not pool.fixed.grow:
            align, header = pool.fixed.align, pool.fixed.header
            strides = [-(-(pool.fixed.sizes[i] + header) // align) * align for i in range(pool.fixed.count)]
            regions += sum(stride * pool.fixed.counts[i] for i, stride in enumerate(strides))
    return int(struct.fixed_end) - regions


def _metrics(trace: Trace, recipe: Recipe, struct: Any, found: Any, arena: int | None) -> dict[str, Value]:
    control = _control_bytes(struct)
    footprint = control + found.covered
    allocated = found.covered - found.peak_headers
    requested = found.requested_peak

    def ratio(value: float, whole: float) -> float | None:
        return value / whole if whole else None

    return with_energy(
        {
            "requested_peak_bytes": requested,
            "allocated_peak_bytes": allocated,
            "fragmentation": allocated / requested - 1 if requested else None,
            "fragmentation_with_headers": found.covered / requested - 1 if requested else None,
            "footprint_bytes": footprint,
            "internal_bytes": found.peak_capacity - found.peak_requested,
            "external_bytes": allocated - found.peak_capacity,
            "header_bytes": found.peak_headers,
            "accesses": found.reads + found.writes,
            "reads": found.reads,
            "writes": found.writes,
            "accesses_malloc_max": found.malloc_max,
            "accesses_malloc_p999": found.malloc_p999,
            "accesses_free_max": found.free_max,
            "accesses_free_p999": found.free_p999,
            "energy_nJ": None,
            "moved_bytes": found.moved,
            "failed": found.failed,
            "admitted_fraction": ratio(found.admitted_bytes, found.requested_bytes),
            "utilisation": ratio(found.mean_requested, footprint if arena is None else arena),
            "pool_utilisation": ratio(
                found.mean_requested, allocated if arena is None else arena - control - found.peak_headers
            ),
            "smallest_arena_bytes": None,
            "lower_bound_bytes": lower_bound(trace, recipe.align),
            "ns_per_event": None,
            **dict.fromkeys(TARGET_METRICS),
        }
    )


def handles_outside_bytes(trace: Trace, recipe: Recipe) -> int:
    """Bytes of the handles that a compacting heap's callers keep outside the arena when most objects are alive.

    They belong to the program and are no part of the footprint, or of any other metric. On a 32-bit target a handle has
    the recipe's `handle_bytes`: a pointer where blocks have headers, else 12 bytes or more. 0 for all other recipes.
    """
    from heapwright.recipes import Compact

    pool = recipe.canonical().pools[0]
    if isinstance(pool, Compact) and pool.handles == "caller":
        return trace.peak_live_objects * pool.handle_bytes
    return 0


def lower_bound(trace: Trace, align: int) -> int:
    """Largest sum of live requested bytes, each rounded up to `align`: no allocator needs less.

    O(calls) once for a trace and alignment.
    """
    bounds = _bounds.setdefault(trace, {})
    if align not in bounds:
        bounds[align] = _lower_bound(trace, align)
    return bounds[align]


def _lower_bound(trace: Trace, align: int) -> int:
    object_, objects = trace.objects()
    rounded = (np.maximum(trace.size.astype(np.int64), 1) + align - 1) // align * align
    rounded[trace.op == 3] = 0
    order = np.argsort(object_, kind="stable")
    before = np.zeros(len(trace), np.int64)
    same = object_[order][1:] == object_[order][:-1]
    before[order[1:][same]] = rounded[order[:-1][same]]
    return int(np.cumsum(rounded - before).max(initial=0)) if objects else 0


# ---- the smallest arena --------------------------------------------------------------------------------------------


def fit(trace: Trace, recipe: Recipe, *, step: int | None = None) -> int | None:
    """Smallest arena in bytes that serves the whole trace, control data counted; None where none does.

    `step` rounds it up to a multiple; None is one alignment unit. A heap that takes fresh memory from its top last
    needs exactly its high-water mark, which two replays prove. Where all memory is one free block from the start, what
    goes where depends on the arena, and a larger one may fail where a smaller one does: the search then goes up from
    the lower bound in steps of 1 / `fit_steps(trace)` of the size, and again in finer ones.
    """
    struct = policy_struct(recipe)
    found, _ = _run(trace, recipe, struct, None)
    return _fit(trace, recipe, struct, found, step)


def fit_steps(trace: Trace) -> int:
    """How fine the search for the smallest arena goes where the size of the arena decides what goes where."""
    return 512 if len(trace) <= 20_000 else 128


def _fit(trace: Trace, recipe: Recipe, struct: Any, found: Any, step: int | None) -> int | None:
    if found.failed:
        return None
    unit = step or recipe.align
    calls = _calls_of(trace)

    def serves(size: int) -> bool:
        if size < struct.fixed_end:
            return False
        code = lib.hw_serves(struct, calls.struct, _memory(struct, calls, size), size)
        _explain(min(code, 0), recipe, struct, size)
        return bool(code)

    exact = int(struct.fixed_end + found.shared)
    low = max(int(struct.fixed_end), lower_bound(trace, recipe.align))
    depends = any(isinstance(pool, General) and pool.top == "list" and not pool.region for pool in recipe.pools)
    enough = smallest_arena(serves, low, exact, unit, steps=fit_steps(trace) if depends else 0)
    return exact if step is None and enough - unit < exact < enough and serves(exact) else enough


# ---- pictures ------------------------------------------------------------------------------------------------------


def timeline(trace: Trace, recipe: Recipe, points: int = 1000) -> dict[str, NDArray[np.int64]]:
    """Bytes over time, thinned to about `points` calls so that peaks survive.

    Returns int64 arrays of one length: `event` (index of the call), `ts_us` (-1 where unknown), `requested` (live
    requested bytes), `allocated` (live blocks with their headers), `footprint` (control data and all bytes that
    blocks have covered so far), each after that call.
    """
    struct = policy_struct(recipe)
    calls = _calls_of(trace)
    size = _arena_bytes(struct, None)
    rows = np.empty((len(trace), 3), np.uint32)
    found = ffi.new("struct hw_metrics *")
    code = lib.hw_replay(
        struct,
        calls.struct,
        _memory(struct, calls, size),
        size,
        0,
        ffi.NULL,
        0,
        _pointer("uint32_t", rows) if len(trace) else ffi.NULL,
        found,
    )
    _explain(code, recipe, struct, size)
    event = _thinned(rows[:, 0], points)
    picked = rows[event].astype(np.int64)
    return {
        "event": event,
        "ts_us": trace.ts_us[event].astype(np.int64),
        "requested": picked[:, 0],
        "allocated": picked[:, 1],
        "footprint": picked[:, 2] + _control_bytes(struct),
    }


def _thinned(values: NDArray[np.uint32], points: int) -> NDArray[np.int64]:
    """Indices of the smallest and the largest value in each of points / 2 stretches, ascending."""
    count = len(values)
    if count <= points:
        return np.arange(count, dtype=np.int64)
    edges = np.linspace(0, count, points // 2 + 1).astype(np.int64)
    picked = {0, count - 1}
    for start, end in pairwise(edges):
        stretch = values[start:end]
        picked |= {int(start + stretch.argmin()), int(start + stretch.argmax())}
    return np.array(sorted(picked), np.int64)


def heap_map(trace: Trace, recipe: Recipe, columns: int = 300) -> dict[str, Any]:
    """What every byte of the smallest arena is, after each of about `columns` calls.

    Returns `event` (int64, the calls), `footprint` (bytes described), and `blocks`, a structured array with the fields
    `column` (index into `event`), `offset`, `size` (bytes) and `state` (index into HEAP_MAP_STATES): runs that cover
    [0, footprint) in every column, in order. Raises HeapwrightError as `replay` does.
    """
    struct = policy_struct(recipe)
    calls = _calls_of(trace)
    found, _ = _run(trace, recipe, struct, None)
    size = min(int(struct.fixed_end + found.shared), _arena_bytes(struct, None))
    event = np.unique(np.linspace(0, max(len(trace) - 1, 0), columns).astype(np.uint64))
    room = 1 << 16
    while True:
        runs = np.empty(room, BLOCK_TYPE)
        count = lib.hw_heap_map(
            struct, calls.struct, _memory(struct, calls, size), size, _pointer("uint64_t", event), len(event),
            ffi.cast("struct hw_run *", ffi.from_buffer(runs)), room,
        )  # fmt: skip
        if count < 0:
            _explain(int(count), recipe, struct, size)
        if count <= room:
            return {"event": event.astype(np.int64), "footprint": size, "blocks": runs[:count].copy()}
        room = int(count)


def metadata(trace: Trace, recipe: Recipe, arena: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The arena's bytes after the trace, and which of them are metadata; both end behind the last such byte.

    Whoever runs the same recipe in the same arena, on whatever machine, has the same bytes there.
    """
    struct = policy_struct(recipe)
    size = _arena_bytes(struct, arena)
    calls = _calls_of(trace)
    memory = _memory(struct, calls, size)
    marks = np.zeros(size, np.uint8)
    end = lib.hw_metadata(struct, calls.struct, memory, size, ffi.cast("unsigned char *", ffi.from_buffer(marks)))
    if end < 0:
        _explain(int(end), recipe, struct, size)
    content = np.frombuffer(ffi.buffer(memory, int(end)), np.uint8).copy()
    return content, marks[: int(end)].astype(bool)

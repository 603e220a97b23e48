"""What a trace's columns must be: the rules of ``docs/traces.md``, their messages and their repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import lib
from heapwright._support.errors import HeapwrightError
from heapwright._traces.calls import is_orderly

MALLOC, CALLOC, REALLOC, FREE = lib.HW_OP_MALLOC, lib.HW_OP_CALLOC, lib.HW_OP_REALLOC, lib.HW_OP_FREE

OP_NAMES = ("malloc", "calloc", "realloc", "free")

MAX_SIZE = 1 << 31
"""Largest request a trace may hold, in bytes."""

REQUIRED = {"ts_us": np.int64, "tid": np.uint16, "op": np.uint8, "id": np.uint32, "size": np.uint32}

OPTIONAL = {"align": np.uint32, "low": np.uint8, "failed": np.uint8}
"""Columns of numbers that a file may lack: then they are 0."""

LABEL_TYPES = {"phase": np.uint16, "site": np.uint32}

_HINT = "repairing drops such calls"
_RAISED = "raised: went backwards"

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class _Fault:
    """Rows with one kind of fault: what to say of the first, what to say of all when they are dropped."""

    rows: NDArray[np.intp]
    says: Callable[[int], str]
    words: str


def check_shapes(columns: Columns, where: str) -> None:
    """Raise HeapwrightError, which `where` leads, unless all columns hold integers, one a row."""
    rows = len(columns["op"])
    for key, values in columns.items():
        if values.shape != (rows,):
            raise HeapwrightError(f"{where}: column {key} has shape {values.shape}; must be ({rows},) as op has")
        if values.size and values.dtype.kind not in "iu":
            raise HeapwrightError(f"{where}: column {key} is {values.dtype}; must be integers")


def check_labels(columns: Columns, names: dict[str, tuple[str, ...]], where: str) -> None:
    """Raise HeapwrightError unless phases and sites point into their names."""
    for key, dtype in LABEL_TYPES.items():
        known, limit = len(names[key]), int(np.iinfo(dtype).max) + 1
        if known > limit:
            raise HeapwrightError(f"{where}: {known} names in column {key}; at most {limit}")
        if key in columns and columns[key].size and not 0 <= columns[key].min() <= columns[key].max() < known:
            raise HeapwrightError(f"{where}: column {key} points outside its names; must be 0 to {known - 1}")


@dataclass(frozen=True)
class PrecedingCalls:
    """State after the preceding calls, for the validation of the next ones.

    Attributes:
        rows: number of preceding calls.
        id: of each live object.
        allocated_at: the row that allocated it.
        latest_us: the latest known time, -1 for none.
    """

    rows: int
    id: NDArray[np.integer[Any]]
    allocated_at: NDArray[np.integer[Any]]
    latest_us: int


_NOTHING = PrecedingCalls(0, np.empty(0, np.uint32), np.empty(0, np.int64), -1)


def filled(values: NDArray[Any], instead: float) -> NDArray[Any]:
    """An array without a mask: `instead` stands for what was masked."""
    # what is plain does without numpy.ma, which takes long to import
    return values if type(values) is np.ndarray else np.ma.filled(values, instead)


def _mask(values: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Which values are masked; None where none is."""
    return None if type(values) is np.ndarray or not np.ma.is_masked(values) else np.ma.getmaskarray(values)


def validated(
    columns: Columns, where: str, repair: bool, before: PrecedingCalls = _NOTHING
) -> tuple[Columns, dict[str, int]]:
    """Check every rule of ``docs/traces.md``; return columns of the declared types, and how often what was repaired."""
    repairs: dict[str, int] = {}
    for faults_of in (_row_faults, _state_faults):
        faults = [fault for fault in faults_of(columns, before) if len(fault.rows)]
        if faults and not repair:
            first = min(faults, key=lambda fault: int(fault.rows[0]))
            row = int(first.rows[0])
            raise HeapwrightError(f"{where}: row {before.rows + row}: {first.says(row)}; {_HINT}", parameter="repair")
        if faults:
            columns = _without(columns, faults, repairs)
        if faults_of is _row_faults:
            columns = _typed(columns)
    columns["ts_us"] = _ordered_times(columns["ts_us"], where, repair, repairs, before)
    return columns, repairs


def in_words(repairs: Mapping[str, int]) -> tuple[str, ...]:
    """What was repaired, with how often."""

    def told(count: int, words: str) -> str:
        item, more, does = ("time", "times", "") if words == _RAISED else ("call", "calls", "dropped: ")
        return f"{count} {item if count == 1 else more} {does}{words}"

    return tuple(told(count, words) for words, count in repairs.items())


def _without(columns: Columns, faults: list[_Fault], repairs: dict[str, int]) -> Columns:
    keep = np.ones(len(columns["op"]), bool)
    for fault in faults:
        fresh = int(np.count_nonzero(keep[fault.rows]))
        keep[fault.rows] = False
        if fresh:
            repairs[fault.words] = fresh
    return {key: values[keep] for key, values in columns.items()}


def _typed(columns: Columns) -> Columns:
    types = {**REQUIRED, **OPTIONAL, **LABEL_TYPES}
    rows = len(columns["op"])
    result: Columns = {}
    for key, dtype in types.items():
        values = columns.get(key)
        if values is None:
            result[key] = np.zeros(rows, dtype)
            continue
        plain = filled(values, 0)
        if key == "size" and plain.size and not 0 <= plain.min() <= plain.max() <= MAX_SIZE:
            # A free's size is free to be anything, so it must not wrap around on the way to 32 bits.
            plain = np.clip(plain, 0, MAX_SIZE)
        result[key] = np.ascontiguousarray(plain, dtype).view()
    return result


def _row_faults(columns: Columns, _: PrecedingCalls) -> Iterator[_Fault]:
    """Faults a row has by itself."""
    for key in REQUIRED:
        mask = _mask(columns[key])
        if mask is not None:
            yield _Fault(np.flatnonzero(mask), lambda row, key=key: f"no {key}", f"no {key}")  # type: ignore[misc]
    op, size = filled(columns["op"], 0), filled(columns["size"], 0)
    not_free = op != FREE
    yield _outside(columns, "op", FREE, f"must be 0 to {FREE} ({', '.join(OP_NAMES)})", "unknown op")
    yield _outside(columns, "tid", 0xFFFF, "must be 0 to 65535", "tid outside 0 to 65535")
    yield _outside(columns, "id", 0xFFFFFFFF, "must be 0 to 4294967295", "id outside 0 to 4294967295")
    limit = f"must be 0 to {MAX_SIZE} bytes"
    bad_size = ((size < 0) | (size > MAX_SIZE)) & not_free
    yield _Fault(np.flatnonzero(bad_size), lambda row: f"size {size[row]}; {limit}", "size above 2^31")
    if "align" in columns:
        align = filled(columns["align"], 0)
        bad_align = (align < 0) | (align > MAX_SIZE) | ((align & (align - align.dtype.type(1))) != 0)
        says = "must be 0 (the default) or a power of two"
        yield _Fault(np.flatnonzero(bad_align), lambda row: f"align {align[row]}; {says}", "align not a power of two")
    if "low" in columns:
        yield _outside(columns, "low", 1, "must be 0, or 1 for low priority", "low priority that is none")
    if "failed" in columns:
        yield _outside(columns, "failed", 2, "must be 0, or 1 or 2 for a failed request", "failed that is not 0 to 2")
        allocates = (op == MALLOC) | (op == CALLOC)
        rows = np.flatnonzero((filled(columns["failed"], 0) > 0) & ~allocates)
        failed = columns["failed"]
        yield _Fault(
            rows, lambda row: f"failed {failed[row]}; only a malloc or calloc fails", "failed of a realloc or free"
        )
    ts = filled(columns["ts_us"], 0)
    bad_time = (ts < -1) | (ts > np.iinfo(np.int64).max)
    yield _Fault(np.flatnonzero(bad_time), lambda row: f"ts_us {ts[row]}; must be 0 or more, or -1", "time below -1")


def _outside(columns: Columns, key: str, high: int, valid: str, words: str) -> _Fault:
    values = filled(columns[key], 0)
    rows = np.flatnonzero((values < 0) | (values > high))
    return _Fault(rows, lambda row: f"{key} {values[row]}; {valid}", words)


def order_by_id(ids: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Row numbers ordered by id, then row; sorting one 64-bit key is several times faster than a stable argsort."""
    key = ids.astype(np.uint64)
    key <<= np.uint64(32)
    key |= np.arange(len(ids), dtype=np.uint64)
    key.sort()
    key &= np.uint64(0xFFFFFFFF)
    return key.view(np.int64).astype(np.intp, copy=False)


def _state_faults(columns: Columns, before: PrecedingCalls) -> Iterator[_Fault]:
    """Faults against the life of an object: allocated, any reallocs, freed, allocated again.

    A faulty call is as if it had not happened. An allocation leaves its id live whether or not it was faulty, a free
    leaves it dead and a realloc changes nothing, so the state before a call follows from the last allocation or
    free of its id alone: dropping the faulty calls cannot make others faulty, and one pass suffices.
    """
    led = len(before.id)
    all_ids, all_ops = columns["id"], columns["op"]
    if led:  # an allocation for each live object
        all_ids = np.concatenate([before.id.astype(all_ids.dtype), all_ids])
        all_ops = np.concatenate([np.full(led, MALLOC, all_ops.dtype), all_ops])
    if is_orderly(all_ops, all_ids):
        return
    order = order_by_id(all_ids)
    ids, op = all_ids[order], all_ops[order]
    place = np.arange(len(order))
    first = np.ones(len(order), bool)
    first[1:] = ids[1:] != ids[:-1]
    last = np.maximum.accumulate(np.where((op != REALLOC) | first, place, 0))
    previous = np.empty_like(last)
    previous[:1] = 0
    previous[1:] = last[:-1]
    # A realloc first of its id stands for "never allocated": it settles nothing, and neither does another id's call.
    known = ~first & (op[previous] != REALLOC)
    live = known & (op[previous] <= CALLOC)
    if not np.any(live == (op <= CALLOC)):
        return
    settled = np.empty_like(order)
    settled[order] = order[previous]

    def settled_in(row: int) -> int:
        at = int(settled[led + row])
        return int(before.allocated_at[at]) if at < led else before.rows + at - led

    def fault(bad: NDArray[np.bool_], says: str, words: str) -> _Fault:
        rows = np.sort(order[bad]) - led
        return _Fault(rows, lambda row: says.format(id=columns["id"][row], before=settled_in(row)), words)

    dead, unknown = known & ~live, ~known
    free, realloc = op == FREE, op == REALLOC
    never = "which is not live" if before.rows else "never allocated"  # who died among the calls before is not kept
    yield fault((op <= CALLOC) & live, "id {id} is still live (allocated in row {before})", "id reused while live")
    yield fault(free & dead, "double free of id {id} (freed in row {before})", "double free")
    yield fault(free & unknown, f"free of id {{id}}, {never}", "free of nothing")
    yield fault(realloc & dead, "realloc of id {id}, freed in row {before}", "realloc of a freed object")
    yield fault(realloc & unknown, f"realloc of id {{id}}, {never}", "realloc of nothing")


def _ordered_times(
    ts_us: NDArray[np.int64], where: str, repair: bool, repairs: dict[str, int], before: PrecedingCalls
) -> NDArray[np.int64]:
    """Check that known times never decrease; a repair raises them, for the order of rows is what counts."""
    if not len(ts_us) or ((ts_us[1:] >= ts_us[:-1]).all() and ts_us[0] >= before.latest_us):
        return ts_us
    latest = np.maximum(np.maximum.accumulate(ts_us), before.latest_us)
    backwards = np.flatnonzero((ts_us < latest) & (ts_us >= 0))
    if not len(backwards):
        return ts_us
    if not repair:
        row = int(backwards[0])
        raise HeapwrightError(
            f"{where}: row {before.rows + row}: ts_us {ts_us[row]} after {latest[row]}; times must not decrease, "
            "repairing raises such times",
            parameter="repair",
        )
    repairs[_RAISED] = len(backwards)
    return np.where(ts_us >= 0, latest, ts_us)

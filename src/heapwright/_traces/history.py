"""History of a recording: calls on addresses become calls on objects, a window at a time.

A call either gives an address to an object (malloc, calloc, the end of a realloc) or takes it away (free, the begin of
a realloc), so in the order of address, then row, the two alternate; if they do not, a call is missing. Objects live at
the end of one window are prepended to the rows of the next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright._native import lib
from heapwright._traces.engine_history import EngineHistory, column_of
from heapwright._traces.validation import CALLOC, FREE, MALLOC, MAX_SIZE, REALLOC, Columns

RECORD = np.dtype(
    [
        ("time_ns", "u8"),
        ("pointer", "u8"),
        ("size", "u8"),
        ("thread", "u4"),
        ("align_log2", "u1"),
        ("kind", "u1"),
        ("site", "u8"),
    ]
)
"""A record of the recorder, with its kinds (``recorder/raw_format.h``)."""

_EMPTY, _MALLOC, _CALLOC, _FREE = lib.RAW_EMPTY, lib.RAW_MALLOC, lib.RAW_CALLOC, lib.RAW_FREE
_BEGIN, _END = lib.RAW_REALLOC_BEGIN, lib.RAW_REALLOC_END
_FAILED, _FREED = lib.RAW_REALLOC_FAILED, lib.RAW_REALLOC_FREED
_OPS = {_EMPTY: FREE, _MALLOC: MALLOC, _CALLOC: CALLOC, _FREE: FREE, _FREED: FREE}
_OF_KIND = np.array([_OPS.get(kind, REALLOC) for kind in range(_FREED + 1)], np.uint8)

_SOME = 1 << 14
"""Records for which the engine is left where it cannot go on."""

Rows = NDArray[np.intp]

_NOTES = {
    "unknown": "frees of blocks allocated before the recording, left out",
    "adopted": "blocks allocated before the recording, counted from their realloc",
    "unseen": "frees that the recorder did not see, inserted where the address is allocated again",
    "huge": "calls for more than 2^31 bytes, left out",
}


def allocations(kind: NDArray[np.uint8]) -> int:
    """How many records of these kinds make an object or move one; failed requests are among them."""
    return int(np.count_nonzero((kind == _MALLOC) | (kind == _CALLOC) | (kind == _END) | (kind == _FAILED)))


class _FailedRecords(NamedTuple):
    """Records of requests that failed, and how many others came before each in its window."""

    before: Rows
    records: NDArray[Any]


class History:
    """What one process did with its heap.

    Args:
        begun_ns: when time 0 is; the first call if None.
        sites: give each call's site, too: uint64, the address it returns to.
        alone: the process inherits nothing and forks none that does, and no one reads `changes`: then the engine makes
            the calls as far as it can.

    Attributes:
        changes: for the calls given last, by how many bytes and objects each changed what is live; int64 (calls, 2).
        calls: calls so far.
        threads: threads that made them.
        peak_bytes: largest sum of live requested bytes.
        peak_objects: largest number of live objects.
        failed: requests that failed; the peaks are without them.
    """

    def __init__(self, begun_ns: int | None = None, sites: bool = False, alone: bool = False) -> None:
        self._sites = sites
        self.changes = np.zeros((0, 2), np.int64)
        self.calls = 0
        self.threads = 0
        self.peak_bytes = 0
        self.peak_objects = 0
        self.failed = 0
        self._bytes = 0
        self._objects = 0
        self._born = 0
        self._counts = dict.fromkeys(_NOTES, 0)
        self._thread_numbers = np.zeros(0, np.int64)
        self._begun = begun_ns
        self._latest = begun_ns or 0
        # Of the rows carried over: who is live, after the objects in the middle of a realloc and the begins of these.
        self._carried = np.zeros(0, RECORD)
        self._carried_objects = np.zeros(0, np.int64)
        self._moving = 0
        self._alone = alone and not sites
        self._engine: EngineHistory | None = None
        self._thread = 0

    @property
    def notes(self) -> list[str]:
        """What was left out or put in, in words."""
        return [f"{words}: {self._counts[key]}" for key, words in _NOTES.items() if self._counts[key]]

    def live(self) -> NDArray[Any]:
        """The live objects as records of their allocation, in the order of birth."""
        live = self._carried[self._moving :]
        live = live[np.argsort(self._carried_objects[self._moving :])]
        live["kind"] = _MALLOC
        return live

    def feed(self, records: NDArray[Any]) -> Columns:
        """Give the columns of the calls that some records are, which follow those fed before; none may be empty."""
        columns: list[Columns] = []
        at = 0
        # The free of a realloc to nothing stands where that began, which may be some calls ago.
        in_engine = self._alone and not np.any(records["kind"] == _FREED)
        if not in_engine:
            self._leave_engine()
        while in_engine and at < len(records):
            if self._engine is None and not self._moving:
                sizes = self._carried["size"]
                self._engine = EngineHistory(self._carried["pointer"], sizes, self._carried_objects)
            if self._engine is not None:
                some, made = self._feed_engine(self._engine, records[at:])
                columns.append(some)
                at += made
            if at < len(records):
                columns.append(self._feed(records[at : at + _SOME]))
                at += _SOME
        if not columns:
            return self._feed(records)
        return (
            columns[0]
            if len(columns) == 1
            else {key: np.concatenate([part[key] for part in columns]) for key in columns[0]}
        )

    def _feed_engine(self, engine: EngineHistory, records: NDArray[Any]) -> tuple[Columns, int]:
        """The columns of the calls that the engine makes, and how many records these are; then it is left."""
        state = engine.state
        state.bytes, state.objects, state.next_number = self._bytes, self._objects, self._born
        state.peak_bytes, state.peak_objects = self.peak_bytes, self.peak_objects
        state.unknown_frees = state.unseen_frees = 0
        pieces, made = engine.feed(records)
        self._bytes, self._objects, self._born = state.bytes, state.objects, state.next_number
        self.peak_bytes, self.peak_objects = state.peak_bytes, state.peak_objects
        self._counts["unknown"] += state.unknown_frees
        self._counts["unseen"] += state.unseen_frees
        threads, self._thread = column_of(pieces, "thread", self._thread)
        columns: Columns = {key: np.concatenate([piece[key] for piece in pieces]) for key in ("op", "id", "size")}
        now = np.concatenate([piece["now_ns"] for piece in pieces])
        self.calls += len(now)
        columns["ts_us"] = self._microseconds(now)
        columns["tid"] = (self._numbered(threads) % 65536).astype(np.uint16)
        columns["align"] = column_of(pieces, "align", 0)[0]
        columns["failed"] = np.zeros(len(now), np.uint8)
        if made < len(records):
            self._leave_engine()
        return columns, made

    def _leave_engine(self) -> None:
        if self._engine is not None:
            self._carried, self._carried_objects, self._moving = self._engine.carried(RECORD)
            self._engine = None

    def _feed(self, records: NDArray[Any]) -> Columns:
        carried = len(self._carried)
        records, failures = self._without_failures(records)
        rows = np.concatenate([self._carried, records])
        kind, begin = rows["kind"].copy(), _begin_of(rows)
        huge = (rows["size"] > MAX_SIZE) & ((kind == _MALLOC) | (kind == _CALLOC) | (kind == _END))
        kind[huge] = _FAILED
        self._counts["huge"] += int(np.count_nonzero(huge))
        # realloc(p, 0) released the block while it ran, so its free stands where it began.
        kind[begin[np.flatnonzero((kind == _FREED) & (begin >= 0))]] = _FREE

        giver, held, last = _givers(rows["pointer"], kind)
        object_ = _objects(kind, begin, giver)
        real = np.zeros(len(rows), bool)
        real[:carried] = self._carried_objects >= 0
        real[carried:] = _gives(kind[carried:])
        for row in np.flatnonzero((kind == _END) & ~real[object_]):  # of a block whose allocation was left out
            if not real[object_[row]]:
                object_[row:][object_[row:] == object_[row]] = row
        takes = (kind == _FREE) & (giver >= 0)
        takes[takes] = real[object_[takes]]
        held = held[real[object_[held[:, 1]]]]
        emitted = _gives(kind) | takes
        emitted[:carried] &= kind[:carried] == _FREE
        at = np.flatnonzero(emitted)
        op = _OF_KIND[kind[at]]
        adopted = (op == REALLOC) & (object_[at] == at)
        op[adopted] = MALLOC
        self._counts["unknown"] += int(np.count_nonzero((kind == _FREE) & ~takes))
        self._counts["adopted"] += int(np.count_nonzero(adopted))
        self._counts["unseen"] += len(held)
        at, op, roots = _with_unseen_frees(at, op, object_, held)

        names = np.full(len(rows), -1)
        names[:carried] = self._carried_objects
        births = at[op <= CALLOC]
        names[births] = self._born + np.arange(len(births))
        self._born += len(births)
        size = np.where(op == FREE, 0, rows["size"][at]).astype(np.int64)
        now = self._account(op, roots, size, np.where(np.arange(len(rows)) < carried, rows["size"], 0))
        self._carry(rows, kind, last, object_, names, now)
        columns = self._columns(rows, at, op, names[roots], size)
        return self._with_failures(columns, np.searchsorted(at, carried + failures.before), failures.records)

    def _without_failures(self, records: NDArray[Any]) -> tuple[NDArray[Any], _FailedRecords]:
        """Take out the mallocs and callocs that failed; a realloc that failed stays, and is among them."""
        kind, size = records["kind"], records["size"]
        allocates = ((kind == _MALLOC) | (kind == _CALLOC)) & (records["pointer"] == 0)
        failing = (allocates | (kind == _FAILED)) & (size <= MAX_SIZE) & (size > 0)
        self._counts["huge"] += int(np.count_nonzero(allocates & (size > MAX_SIZE)))
        at = np.flatnonzero(failing)
        before = at - np.concatenate([[0], np.cumsum(allocates)])[at]
        return records[~allocates], _FailedRecords(before, records[at])

    def _with_failures(self, columns: Columns, places: Rows, records: NDArray[Any]) -> Columns:
        """Insert each failed request as a malloc, marked, and a free at once."""
        self.failed += len(records)
        self.calls += 2 * len(records)
        if not len(records):
            return columns
        twice, is_free = np.repeat(records, 2), np.tile([False, True], len(records))
        align = np.where(twice["align_log2"] > 0, np.uint32(1) << twice["align_log2"].astype(np.uint32), 0)
        time = np.concatenate([columns["ts_us"], [self._latest_us()]])[np.minimum(places, len(columns["ts_us"]))]
        inserted = {
            "ts_us": np.repeat(time, 2),
            "tid": (self._numbered(twice["thread"]) % 65536).astype(np.uint16),
            "op": np.where(is_free, FREE, np.where(twice["kind"] == _CALLOC, CALLOC, MALLOC)).astype(np.uint8),
            "id": np.repeat(self._born + np.arange(len(records)), 2).astype(np.uint32),
            "size": np.where(is_free, 0, twice["size"]).astype(np.uint32),
            "align": np.where(is_free, 0, align).astype(np.uint32),
            "failed": (~is_free).astype(np.uint8),
            "site": twice["site"],
        }
        self._born += len(records)
        at = np.repeat(places, 2)
        self.changes = np.insert(self.changes, at, 0, axis=0)
        return {key: np.insert(values, at, inserted[key]) for key, values in columns.items()}

    def _latest_us(self) -> int:
        return (self._latest - (self._begun or 0)) // 1000

    def _account(self, op: NDArray[np.uint8], roots: Rows, size: NDArray[np.int64], now: NDArray[Any]) -> NDArray[Any]:
        """Follow what is live; `now` is each object's size before the calls, and after them what is returned."""
        self.changes = np.zeros((len(op), 2), np.int64)
        if not len(op):
            return now
        order = np.argsort(roots, kind="stable")
        same = roots[order][1:] == roots[order][:-1]
        before = now[roots[order]].astype(np.int64)
        before[1:][same] = size[order][:-1][same]
        change = np.empty(len(op), np.int64)
        change[order] = size[order] - before
        bytes_ = self._bytes + np.cumsum(change)
        self.changes[:, 0] = change
        self.changes[:, 1] = (op <= CALLOC).astype(np.int64) - (op == FREE)
        objects = self._objects + np.cumsum(self.changes[:, 1])
        self._bytes, self._objects = int(bytes_[-1]), int(objects[-1])
        self.peak_bytes = max(self.peak_bytes, int(bytes_.max()))
        self.peak_objects = max(self.peak_objects, int(objects.max()))
        self.calls += len(op)
        after: NDArray[Any] = now.copy()
        after[roots] = size
        return after

    def _carry(
        self, rows: NDArray[Any], kind: NDArray[np.uint8], last: Rows, object_: Rows, names: Rows, now: NDArray[Any]
    ) -> None:
        """Keep the objects that are live, and those in the middle of a realloc with the record of its begin."""
        of = np.flatnonzero(rows["kind"] >= _BEGIN)
        of = of[np.argsort(rows["thread"][of], kind="stable")]
        of = of[np.append(rows["thread"][of][1:] != rows["thread"][of][:-1], np.ones(min(1, len(of)), bool))]
        begins = of[kind[of] == _BEGIN]
        moving = np.repeat(begins, 2)
        live = last[(kind[last] != _FREE) & (kind[last] != _BEGIN)]
        live = live[names[object_[live]] >= 0]
        kept = np.concatenate([moving, live])
        carried = rows[kept]
        objects = names[object_[kept]]
        carried["kind"] = _MALLOC
        carried["size"] = now[object_[kept]]
        begun = slice(1, len(moving), 2)
        carried["kind"][begun] = _BEGIN
        carried["size"][begun] = rows["size"][begins]
        objects[begun] = -1
        # The begin of a realloc has no object if the allocation of its block was not recorded.
        known = (objects >= 0) | (carried["kind"] == _BEGIN)
        self._carried, self._carried_objects = carried[known], objects[known]
        self._moving = int(np.count_nonzero(known[: len(moving)]))

    def _columns(
        self, rows: NDArray[Any], at: Rows, op: NDArray[np.uint8], objects: Rows, size: NDArray[np.int64]
    ) -> Columns:
        times = self._microseconds(rows["time_ns"][at].astype(np.int64))
        align = np.where(op == FREE, 0, rows["align_log2"][at]).astype(np.uint32)
        sites = {"site": rows["site"][at]} if self._sites else {}
        return sites | {
            "ts_us": times,
            "tid": (self._numbered(rows["thread"][at]) % 65536).astype(np.uint16),
            "op": op,
            "id": objects.astype(np.uint32),
            "size": size.astype(np.uint32),
            "align": np.where(align > 0, np.uint32(1) << align, np.uint32(0)),
            "failed": np.zeros(len(at), np.uint8),
        }

    def _microseconds(self, now_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times since the first; they never decrease."""
        times = np.maximum(np.maximum.accumulate(now_ns), self._latest)
        if len(times):
            self._begun = int(times[0]) if self._begun is None else self._begun
            self._latest = int(times[-1])
        return (times - (self._begun or 0)) // 1000

    def _numbered(self, threads: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Number the threads from 0 as they come."""
        present, first = np.unique(threads, return_index=True)
        if len(present) and present[-1] >= len(self._thread_numbers):
            more = int(present[-1]) + 1 - len(self._thread_numbers)
            self._thread_numbers = np.append(self._thread_numbers, np.full(more, -1))
        fresh = present[np.argsort(first)]
        fresh = fresh[self._thread_numbers[fresh] < 0]
        self._thread_numbers[fresh] = self.threads + np.arange(len(fresh))
        self.threads += len(fresh)
        numbers: NDArray[np.int64] = self._thread_numbers[threads]
        return numbers


def _gives(kind: NDArray[np.uint8]) -> NDArray[np.bool_]:
    gives: NDArray[np.bool_] = (kind == _MALLOC) | (kind == _CALLOC) | (kind == _END)
    return gives


def _begin_of(records: NDArray[Any]) -> Rows:
    """Row where the realloc began, for every row that completes one; -1 elsewhere."""
    begin = np.full(len(records), -1)
    rows = np.flatnonzero(records["kind"] >= _BEGIN)
    rows = rows[np.argsort(records["thread"][rows], kind="stable")]
    here, previous = rows[1:], rows[:-1]
    pairs = (records["kind"][here] > _BEGIN) & (records["kind"][previous] == _BEGIN)
    pairs &= records["thread"][here] == records["thread"][previous]
    begin[here[pairs]] = previous[pairs]
    return begin


def _givers(pointer: NDArray[np.uint64], kind: NDArray[np.uint8]) -> tuple[Rows, Rows, Rows]:
    """For every row that takes an address away, the row that gave it (-1: none was seen).

    Returns:
        Those rows; pairs (n, 2) of a row that gives an address still held and the row that holds it; and the last
        row of every address.
    """
    takes = (kind == _FREE) | (kind == _BEGIN)
    rows = np.flatnonzero(takes | _gives(kind) | (kind == _FAILED))
    rows = rows[np.argsort(pointer[rows], kind="stable")]
    here, previous = rows[1:], rows[:-1]
    same = pointer[here] == pointer[previous]
    held = same & ~takes[previous]
    giver = np.full(len(kind), -1)
    taken = held & takes[here]
    giver[here[taken]] = previous[taken]
    again = held & ~takes[here]
    last = rows[np.append(~same, np.ones(min(1, len(rows)), bool))]
    return giver, np.stack([here[again], previous[again]], axis=1), last


def _objects(kind: NDArray[np.uint8], begin: Rows, giver: Rows) -> Rows:
    """For each row, the row that allocated its object."""
    object_ = np.arange(len(kind))
    moved = np.flatnonzero(((kind == _END) | (kind == _FAILED)) & (begin >= 0))
    moved = moved[giver[begin[moved]] >= 0]
    object_[moved] = giver[begin[moved]]
    takes = np.flatnonzero(((kind == _FREE) | (kind == _BEGIN)) & (giver >= 0))
    object_[takes] = giver[takes]
    while np.any(object_[object_] != object_):
        object_ = object_[object_]
    return object_


def _with_unseen_frees(
    rows: Rows, op: NDArray[np.uint8], object_: Rows, unseen: Rows
) -> tuple[Rows, NDArray[np.uint8], Rows]:
    """Put a free before each row that gives out an address still held; with the row of each one's object."""
    at = np.searchsorted(rows, unseen[:, 0])
    order = np.argsort(at, kind="stable")
    at, unseen = at[order], unseen[order]
    return (
        np.insert(rows, at, unseen[:, 0]),
        np.insert(op, at, FREE),
        np.insert(object_[rows], at, object_[unseen[:, 1]]),
    )

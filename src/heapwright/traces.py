"""Traces: the heap calls a program made, as numpy columns, read from and written to Parquet.

The format is described in ``docs/traces.md``. One row is one call, rows are in the order the calls happened, and an
object is named by ``id`` from its malloc or calloc to its free; afterwards the id may name another object.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from heapwright import parquet
from heapwright.errors import HeapwrightError

MALLOC, CALLOC, REALLOC, FREE = range(4)
OP_NAMES = ("malloc", "calloc", "realloc", "free")
FORMAT_VERSION = "1"
MAX_SIZE = 1 << 31
"""Largest request a trace may hold, in bytes."""

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_REQUIRED = {"ts_us": np.int64, "tid": np.uint16, "op": np.uint8, "id": np.uint32, "size": np.uint32}
_LABELS = ("phase", "site")
_LABEL_TYPES = {"phase": np.uint16, "site": np.uint32}
_HINT = "--repair drops such calls"

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Trace:
    """The calls of one program, valid by construction; make one with `read` or `from_columns`.

    Every array has one entry a call and is read-only.

    Attributes:
        name: file stem, or the name given; what reports and studies call the trace.
        path: the file it was read from, or None.
        ts_us: int64, microseconds since the first call, never decreasing; -1 where unknown.
        tid: uint16, thread, numbered from 0.
        op: uint8, 0 malloc, 1 calloc, 2 realloc (same id, new size), 3 free.
        id: uint32, the object.
        size: uint32, bytes requested; without meaning for a free.
        align: uint32, alignment asked for in bytes, a power of two; 0 is the allocator's default.
        phase: uint16, index into `phases`; all 0 where the file names none.
        site: uint32, index into `sites`; all 0 where the file names none.
        phases: names of the phases; ``("",)`` where the file names none.
        sites: names of the call sites; ``("",)`` where the file names none.
        metadata: the file's key-value metadata, text to text.
        repairs: what reading dropped or changed, in words; empty where nothing.
    """

    name: str
    path: Path | None
    ts_us: NDArray[np.int64]
    tid: NDArray[np.uint16]
    op: NDArray[np.uint8]
    id: NDArray[np.uint32]
    size: NDArray[np.uint32]
    align: NDArray[np.uint32]
    phase: NDArray[np.uint16]
    site: NDArray[np.uint32]
    phases: tuple[str, ...]
    sites: tuple[str, ...]
    metadata: dict[str, str] = field(default_factory=dict)
    repairs: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.op)

    @classmethod
    def read(cls, path: str | os.PathLike[str], repair: bool = False) -> Trace:
        """Read and validate a Parquet trace.

        Args:
            path: the file.
            repair: drop the calls that make the trace invalid (times that go backwards are raised instead) and say
                so in `repairs`, rather than raise.

        Raises:
            HeapwrightError: the file is missing, not Parquet, truncated or lacks a column; or, without `repair`, a
                row is invalid (the message names the first such row, counted from 0).
        """
        path = Path(path)
        columns, names, metadata = _read_parquet(path)
        return cls._checked(columns, names, name=path.stem, path=path, metadata=metadata, repair=repair)

    @classmethod
    def from_columns(
        cls,
        *,
        op: ArrayLike,
        id: ArrayLike,
        size: ArrayLike,
        ts_us: ArrayLike | None = None,
        tid: ArrayLike | None = None,
        align: ArrayLike | None = None,
        phase: ArrayLike | None = None,
        phases: Sequence[str] = ("",),
        site: ArrayLike | None = None,
        sites: Sequence[str] = ("",),
        name: str = "trace",
        metadata: Mapping[str, str] | None = None,
        repair: bool = False,
    ) -> Trace:
        """Make a trace of columns of equal length (any integer type) and validate it.

        Columns left out mean: no times, one thread, default alignment, one unnamed phase and site.

        Raises:
            HeapwrightError: as for `read`, with `name` in place of the file.
        """
        given = {"ts_us": ts_us, "tid": tid, "op": op, "id": id, "size": size}
        given |= {"align": align, "phase": phase, "site": site}
        columns: Columns = {key: np.ma.asanyarray(values) for key, values in given.items() if values is not None}
        columns.setdefault("ts_us", np.full(len(columns["op"]), -1, np.int64))
        columns.setdefault("tid", np.zeros(len(columns["op"]), np.uint16))
        _check_shapes(columns, name)
        names = {"phase": tuple(phases), "site": tuple(sites)}
        return cls._checked(columns, names, name=name, path=None, metadata=dict(metadata or {}), repair=repair)

    @classmethod
    def _checked(
        cls,
        columns: Columns,
        names: dict[str, tuple[str, ...]],
        *,
        name: str,
        path: Path | None,
        metadata: dict[str, str],
        repair: bool,
    ) -> Trace:
        where = str(path or name)
        version = metadata.setdefault("format_version", FORMAT_VERSION)
        if version != FORMAT_VERSION:
            raise HeapwrightError(f"{where}: trace format version {version}; this Heapwright reads {FORMAT_VERSION}")
        _check_labels(columns, names, where)
        columns, repairs = _validated(columns, where, repair)
        if not len(columns["op"]):
            raise HeapwrightError(f"{where}: no calls; a trace has at least one row")
        for values in columns.values():
            values.flags.writeable = False
        return cls(
            name=name,
            path=path,
            phases=names["phase"],
            sites=names["site"],
            metadata=metadata,
            repairs=repairs,
            **columns,
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as Parquet (zstd), all of it or nothing: a file already there is replaced only at the end.

        Raises:
            HeapwrightError: the folder is missing or cannot be written, or the disk is full.
        """
        path = Path(path)
        rows: Columns = {key: getattr(self, key) for key in _REQUIRED}
        if self.align.any():
            rows["align"] = self.align
        for key, names, index in (("phase", self.phases, self.phase), ("site", self.sites, self.site)):
            if names != ("",):
                rows[key] = np.array(names, dtype=object)[index]
        parquet.write(path, rows, self.metadata)

    def objects(self) -> tuple[NDArray[np.uint32], int]:
        """Number the objects (lifetimes: malloc or calloc to free) from 0 in order of birth.

        Returns:
            The object's number for every call (uint32, one a row), and how many objects there are. An id that is
            used again after its free gets another number.
        """
        return self._objects

    @cached_property
    def _objects(self) -> tuple[NDArray[np.uint32], int]:
        born = self.op <= CALLOC
        number = np.cumsum(born, dtype=np.uint32) - np.uint32(1)
        order = self._by_object
        lifetime = np.cumsum(born[order]) - 1
        result = np.empty(len(self), np.uint32)
        result[order] = number[order][born[order]][lifetime]
        result.flags.writeable = False
        return result, int(np.count_nonzero(born))

    @cached_property
    def _by_object(self) -> NDArray[np.intp]:
        return _order_by_id(self.id)

    @cached_property
    def live_bytes(self) -> NDArray[np.int64]:
        """int64, one a call: requested bytes of all live objects after the call."""
        order = self._by_object
        size = np.where(self.op == FREE, 0, self.size).astype(np.int64)[order]
        before = np.zeros_like(size)
        before[1:] = size[:-1]
        before[self.op[order] <= CALLOC] = 0
        change = np.empty_like(size)
        change[order] = size - before
        live = np.cumsum(change)
        live.flags.writeable = False
        return live

    @cached_property
    def live_objects(self) -> NDArray[np.int64]:
        """int64, one a call: live objects after the call."""
        change = (self.op <= CALLOC).astype(np.int64) - (self.op == FREE)
        live = np.cumsum(change)
        live.flags.writeable = False
        return live

    @cached_property
    def peak_live_bytes(self) -> int:
        """Largest sum of live requested bytes: the metric ``requested_peak_bytes``."""
        return int(self.live_bytes.max())

    @cached_property
    def peak_live_objects(self) -> int:
        """Largest number of objects live at once."""
        return int(self.live_objects.max())

    @cached_property
    def seconds(self) -> float | None:
        """Seconds from the first to the last known time, or None where no time is known."""
        known = self.ts_us[self.ts_us >= 0]
        return float(known[-1] - known[0]) / 1e6 if len(known) else None


# Reading and writing Parquet


def _read_parquet(path: Path) -> tuple[Columns, dict[str, tuple[str, ...]], dict[str, str]]:
    """Read every column Heapwright knows; labels become indices into their names."""
    if not path.is_file():
        raise HeapwrightError(f"{path}: {'is not a file' if path.exists() else 'no such file'}")
    with duckdb.connect() as database:
        source = parquet.source(path)
        try:
            described = database.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
            _check_types({str(row[0]): str(row[1]) for row in described}, path)
            present = [key for key in (*_REQUIRED, "align") if any(row[0] == key for row in described)]
            labels = [key for key in _LABELS if any(row[0] == key for row in described)]
            names = dict.fromkeys(_LABELS, ("",)) | {key: _label_names(database, path, key) for key in labels}
            codes = [f"enum_code(coalesce({key}::VARCHAR, '')::{key}_names) AS {key}" for key in labels]
            columns = database.execute(f"SELECT {', '.join(present + codes)} FROM {source}").fetchnumpy()
            metadata = parquet.metadata(database, path)
        except duckdb.Error as error:
            reason = str(error).splitlines()[0].removeprefix("Invalid Input Error: ")
            raise HeapwrightError(f"{path}: not a whole Parquet file ({reason}); record or import it again") from error
    return columns, names, metadata


def _label_names(database: Any, path: Path, key: str) -> tuple[str, ...]:
    """Names of one label column in order of first appearance; leaves an enum type of them in the database."""
    query = f"SELECT coalesce({key}::VARCHAR, '') AS name, min(file_row_number) AS first"
    rows = parquet.source(path, ", file_row_number = true")
    found = database.execute(f"{query} FROM {rows} GROUP BY name ORDER BY first").fetchall()
    names = tuple(str(row[0]) for row in found) or ("",)
    database.execute(f"CREATE TYPE {key}_names AS ENUM ({', '.join(map(parquet.quoted, names))})")
    return names


def _check_types(types: dict[str, str], path: Path) -> None:
    missing = [key for key in _REQUIRED if key not in types]
    if missing and "frame_len" in types:
        raise HeapwrightError(f"{path}: a packet table, not a trace; `heapwright workload` turns it into one")
    if missing:
        needs = ", ".join(_REQUIRED)
        raise HeapwrightError(f"{path}: no column {', '.join(missing)}; a trace has {needs}")
    for key, dtype in {**_REQUIRED, "align": np.uint32}.items():
        if key in types and types[key] not in _INTEGERS:
            raise HeapwrightError(f"{path}: column {key} is {types[key]}; must be {np.dtype(dtype).name}")


# Validation


@dataclass(frozen=True)
class _Fault:
    """Rows with one kind of fault: what to say of the first, what to say of all when they are dropped."""

    rows: NDArray[np.intp]
    says: Callable[[int], str]
    words: str


def _check_shapes(columns: Columns, where: str) -> None:
    rows = len(columns["op"])
    for key, values in columns.items():
        if values.shape != (rows,):
            raise HeapwrightError(f"{where}: column {key} has shape {values.shape}; must be ({rows},) as op has")
        if values.size and values.dtype.kind not in "iu":
            raise HeapwrightError(f"{where}: column {key} is {values.dtype}; must be integers")


def _check_labels(columns: Columns, names: dict[str, tuple[str, ...]], where: str) -> None:
    for key, dtype in _LABEL_TYPES.items():
        known, limit = len(names[key]), int(np.iinfo(dtype).max) + 1
        if known > limit:
            raise HeapwrightError(f"{where}: {known} names in column {key}; at most {limit}")
        if key in columns and columns[key].size and not 0 <= columns[key].min() <= columns[key].max() < known:
            raise HeapwrightError(f"{where}: column {key} points outside its names; must be 0 to {known - 1}")


def _validated(columns: Columns, where: str, repair: bool) -> tuple[Columns, tuple[str, ...]]:
    """Check every rule of ``docs/traces.md``; return columns of the declared types and what was repaired."""
    repairs: list[str] = []
    for faults_of in (_row_faults, _state_faults):
        faults = [fault for fault in faults_of(columns) if len(fault.rows)]
        if faults and not repair:
            first = min(faults, key=lambda fault: int(fault.rows[0]))
            row = int(first.rows[0])
            raise HeapwrightError(f"{where}: row {row}: {first.says(row)}; {_HINT}")
        if faults:
            columns = _without(columns, faults, repairs)
        if faults_of is _row_faults:
            columns = _typed(columns)
    columns["ts_us"] = _ordered_times(columns["ts_us"], where, repair, repairs)
    return columns, tuple(repairs)


def _without(columns: Columns, faults: list[_Fault], repairs: list[str]) -> Columns:
    keep = np.ones(len(columns["op"]), bool)
    for fault in faults:
        fresh = int(np.count_nonzero(keep[fault.rows]))
        keep[fault.rows] = False
        if fresh:
            repairs.append(f"{fresh} {'call' if fresh == 1 else 'calls'} dropped: {fault.words}")
    return {key: values[keep] for key, values in columns.items()}


def _typed(columns: Columns) -> Columns:
    types = {**_REQUIRED, "align": np.uint32, **_LABEL_TYPES}
    rows = len(columns["op"])
    result: Columns = {}
    for key, dtype in types.items():
        values = columns.get(key)
        if values is None:
            result[key] = np.zeros(rows, dtype)
            continue
        plain = np.ma.filled(values, 0)
        if key == "size":
            # A free's size is free to be anything, so it must not wrap around on the way to 32 bits.
            plain = np.clip(plain, 0, MAX_SIZE)
        result[key] = np.ascontiguousarray(plain, dtype).view()
    return result


def _row_faults(columns: Columns) -> Iterator[_Fault]:
    """Faults a row has by itself."""
    for key in _REQUIRED:
        mask = np.ma.getmaskarray(columns[key]) if np.ma.is_masked(columns[key]) else None
        if mask is not None:
            yield _Fault(np.flatnonzero(mask), lambda row, key=key: f"no {key}", f"no {key}")  # type: ignore[misc]
    op, size = np.ma.filled(columns["op"], 0), np.ma.filled(columns["size"], 0)
    not_free = op != FREE
    yield _outside(columns, "op", FREE, f"must be 0 to {FREE} ({', '.join(OP_NAMES)})", "unknown op")
    yield _outside(columns, "tid", 0xFFFF, "must be 0 to 65535", "tid outside 0 to 65535")
    yield _outside(columns, "id", 0xFFFFFFFF, "must be 0 to 4294967295", "id outside 0 to 4294967295")
    limit = f"must be 0 to {MAX_SIZE} bytes"
    bad_size = ((size < 0) | (size > MAX_SIZE)) & not_free
    yield _Fault(np.flatnonzero(bad_size), lambda row: f"size {size[row]}; {limit}", "size above 2^31")
    if "align" in columns:
        align = np.ma.filled(columns["align"], 0)
        bad_align = (align < 0) | (align > MAX_SIZE) | ((align & (align - align.dtype.type(1))) != 0)
        says = "must be 0 (the default) or a power of two"
        yield _Fault(np.flatnonzero(bad_align), lambda row: f"align {align[row]}; {says}", "align not a power of two")
    ts = np.ma.filled(columns["ts_us"], 0)
    bad_time = (ts < -1) | (ts > np.iinfo(np.int64).max)
    yield _Fault(np.flatnonzero(bad_time), lambda row: f"ts_us {ts[row]}; must be 0 or more, or -1", "time below -1")


def _outside(columns: Columns, key: str, high: int, valid: str, words: str) -> _Fault:
    values = np.ma.filled(columns[key], 0)
    rows = np.flatnonzero((values < 0) | (values > high))
    return _Fault(rows, lambda row: f"{key} {values[row]}; {valid}", words)


def _order_by_id(ids: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Row numbers ordered by id, then row; sorting one 64-bit key is several times faster than a stable argsort."""
    key = ids.astype(np.uint64)
    key <<= np.uint64(32)
    key |= np.arange(len(ids), dtype=np.uint64)
    key.sort()
    key &= np.uint64(0xFFFFFFFF)
    return key.view(np.int64).astype(np.intp, copy=False)


def _state_faults(columns: Columns) -> Iterator[_Fault]:
    """Faults against the life of an object: allocated, any reallocs, freed, allocated again.

    A faulty call is as if it had not happened. An allocation leaves its id live whether or not it was faulty, a free
    leaves it dead and a realloc changes nothing, so the state before a call follows from the last allocation or
    free of its id alone: dropping the faulty calls cannot make others faulty, and one pass suffices.
    """
    if _lives_once(columns["id"], columns["op"]):
        return
    order = _order_by_id(columns["id"])
    ids, op = columns["id"][order], columns["op"][order]
    place = np.arange(len(order))
    first = np.ones(len(order), bool)
    first[1:] = ids[1:] != ids[:-1]
    last = np.maximum.accumulate(np.where((op != REALLOC) | first, place, 0))
    before = np.empty_like(last)
    before[:1] = 0
    before[1:] = last[:-1]
    # A realloc first of its id stands for "never allocated": it settles nothing, and neither does another id's call.
    known = ~first & (op[before] != REALLOC)
    live = known & (op[before] <= CALLOC)
    if not np.any(live == (op <= CALLOC)):
        return
    settled = np.empty_like(order)
    settled[order] = order[before]

    def fault(bad: NDArray[np.bool_], says: str, words: str) -> _Fault:
        rows = np.sort(order[bad])
        return _Fault(rows, lambda row: says.format(id=columns["id"][row], before=settled[row]), words)

    dead, unknown = known & ~live, ~known
    free, realloc = op == FREE, op == REALLOC
    yield fault((op <= CALLOC) & live, "id {id} is still live (allocated in row {before})", "id reused while live")
    yield fault(free & dead, "double free of id {id} (freed in row {before})", "double free")
    yield fault(free & unknown, "free of id {id}, never allocated", "free of nothing")
    yield fault(realloc & dead, "realloc of id {id}, freed in row {before}", "realloc of a freed object")
    yield fault(realloc & unknown, "realloc of id {id}, never allocated", "realloc of nothing")


def _lives_once(ids: NDArray[np.uint32], op: NDArray[np.uint8]) -> bool:
    """Whether every id, from 0 with few gaps, is allocated once and then freed at most once: no need to sort then."""
    if not len(ids) or int(ids.max()) >= 2 * len(ids) or (op == REALLOC).any():
        return False
    born, freed = np.flatnonzero(op <= CALLOC), np.flatnonzero(op == FREE)
    birth = np.full(int(ids.max()) + 1, len(ids), np.int64)
    birth[ids[born]] = born
    once = np.count_nonzero(birth < len(ids)) == len(born)
    dead = np.zeros(len(birth), np.bool_)
    dead[ids[freed]] = True
    return bool(once and np.count_nonzero(dead) == len(freed) and (birth[ids[freed]] < freed).all())


def _ordered_times(ts_us: NDArray[np.int64], where: str, repair: bool, repairs: list[str]) -> NDArray[np.int64]:
    """Check that known times never decrease; a repair raises them, for the order of rows is what counts."""
    latest = np.maximum.accumulate(ts_us)
    backwards = np.flatnonzero((ts_us < latest) & (ts_us >= 0))
    if not len(backwards):
        return ts_us
    if not repair:
        row = int(backwards[0])
        raise HeapwrightError(
            f"{where}: row {row}: ts_us {ts_us[row]} after {latest[row]}; times must not decrease, "
            "--repair raises such times"
        )
    repairs.append(f"{len(backwards)} {'time' if len(backwards) == 1 else 'times'} raised: went backwards")
    return np.where(ts_us >= 0, latest, ts_us)

"""Traces: the heap calls a program made, as numpy columns, read from and written to Parquet.

The format is described in ``docs/traces.md``. One row is one call, rows are in the order the calls happened, and an
object is named by ``id`` from its malloc or calloc to its free; afterwards the id may name another object.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heapwright._support import parquet
from heapwright._support.errors import HeapwrightError
from heapwright._traces.calls import Calls, number_objects
from heapwright._traces.tables import reading
from heapwright._traces.validation import (
    CALLOC,
    FREE,
    OPTIONAL,
    REQUIRED,
    Columns,
    check_labels,
    check_shapes,
    in_words,
    validated,
)

FORMAT_VERSION = "1"


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
        low: uint8, 1 where the request has low priority; a heap with a `reserve` may refuse it for that.
        failed: uint8, 1 on a malloc or calloc that failed when it was recorded. Its object is in the trace as if it had
            been served; `heapwright._traces.failures` says for how long it lives. 2 if the request was a realloc,
            and its object lives as long as the one that should have been resized.
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
    low: NDArray[np.uint8]
    failed: NDArray[np.uint8]
    phase: NDArray[np.uint16]
    site: NDArray[np.uint32]
    phases: tuple[str, ...]
    sites: tuple[str, ...]
    metadata: dict[str, str] = field(default_factory=dict)
    repairs: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.op)

    def __getstate__(self) -> dict[str, Any]:
        """What it was made of: what was derived may be of this process alone."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for values in state.values():
            if isinstance(values, np.ndarray):
                values.flags.writeable = False
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"<Trace {self.name}: {len(self):,} calls, peak {self.peak_live_bytes:,} B live>"

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
        with reading(path) as table:
            columns = table.whole()
        return cls._checked(columns, table.names, name=path.stem, path=path, metadata=table.metadata, repair=repair)

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
        low: ArrayLike | None = None,
        failed: ArrayLike | None = None,
        phase: ArrayLike | None = None,
        phases: Sequence[str] = ("",),
        site: ArrayLike | None = None,
        sites: Sequence[str] = ("",),
        name: str = "trace",
        metadata: Mapping[str, str] | None = None,
        repair: bool = False,
    ) -> Trace:
        """Make a trace of columns of equal length (any integer type) and validate it.

        Columns left out mean: no times, one thread, default alignment, no low priority, no failed request, one unnamed
        phase and site.

        Raises:
            HeapwrightError: as for `read`, with `name` in place of the file.
        """
        given = {"ts_us": ts_us, "tid": tid, "op": op, "id": id, "size": size}
        given |= {"align": align, "low": low, "failed": failed, "phase": phase, "site": site}
        columns: Columns = {key: np.asanyarray(values) for key, values in given.items() if values is not None}
        columns.setdefault("ts_us", np.full(len(columns["op"]), -1, np.int64))
        columns.setdefault("tid", np.zeros(len(columns["op"]), np.uint16))
        check_shapes(columns, name)
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
        check_version(metadata, where)
        check_labels(columns, names, where)
        columns, repairs = validated(columns, where, repair)
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
            repairs=in_words(repairs),
            **columns,
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as Parquet (zstd), all of it or nothing: a file already there is replaced only at the end.

        Raises:
            HeapwrightError: the folder is missing or cannot be written, or the disk is full.
        """
        path = Path(path)
        rows: Columns = {key: getattr(self, key) for key in REQUIRED}
        rows |= {key: values for key in OPTIONAL if (values := getattr(self, key)).any()}
        for key, names, index in (("phase", self.phases, self.phase), ("site", self.sites, self.site)):
            if names != ("",):
                rows[key] = np.array(names, dtype=object)[index]
        parquet.write(path, rows, self.metadata)

    def select(self, rows: NDArray[np.intp], *, notes: Mapping[str, str] | None = None, **columns: ArrayLike) -> Trace:
        """The calls at some rows, in the order of these, as a trace of the same name.

        Args:
            rows: row numbers; a row may come more than once.
            notes: metadata in addition to that of this trace.
            columns: columns that replace those of the rows, one entry a row.

        Raises HeapwrightError as `from_columns`.
        """
        keys = ("ts_us", "tid", "op", "size", "align", "low", "failed", "phase", "site")
        values: dict[str, Any] = {key: getattr(self, key)[rows] for key in keys}
        values["id"] = self.objects()[0][rows]
        return Trace.from_columns(
            **{**values, **columns},
            phases=self.phases,
            sites=self.sites,
            name=self.name,
            metadata={**self.metadata, **(notes or {})},
        )

    def objects(self) -> tuple[NDArray[np.uint32], int]:
        """Number the objects (lifetimes: malloc or calloc to free) from 0 in order of birth.

        Returns:
            The object's number for every call (uint32, one a row), and how many objects there are. An id that is
            used again after its free gets another number.
        """
        return self._objects

    @cached_property
    def _objects(self) -> tuple[NDArray[np.uint32], int]:
        result, count = number_objects(self.op, self.id)
        result.flags.writeable = False
        return result, count

    @cached_property
    def calls(self) -> Calls:
        """The trace as the native engine takes it, made once. O(calls)."""
        return Calls.of(self.op, self.id, self.size, self.align, self.ts_us, self.tid, self.low)

    def calls_at(self, classes: Sequence[Sequence[str]]) -> Calls:
        """The calls with the class of each one's call site, from 1; 0 if no class has the site. O(calls) once.

        Args:
            classes: names of the sites of each class, in which ``*`` stands for any letters; a site of several classes
                belongs to the first. Without classes the result is `calls`.

        All calls of a trace without site names are of class 0. Raises HeapwrightError if the trace names sites, but
        none of these.
        """
        key = tuple(map(tuple, classes))
        if not key or self.sites == ("",):
            return self.calls
        from heapwright._traces.patterns import matching

        if key not in self._calls_at:
            of_site = np.zeros(len(self.sites), np.uint8)
            for number, patterns in reversed(list(enumerate(key, 1))):
                for pattern in patterns:
                    of_site[matching(pattern, self.sites)] = number
            if not of_site.any():
                raise HeapwrightError(
                    f"{self.name}: names none of the call sites that the recipe gives pools to, as {key[0][0]}; take "
                    "one that was made for this program, or one without"
                )
            self._calls_at[key] = self.calls.at_sites(of_site[self.site])
        return self._calls_at[key]

    @cached_property
    def _calls_at(self) -> dict[tuple[tuple[str, ...], ...], Calls]:
        return {}

    @cached_property
    def live_bytes(self) -> NDArray[np.int64]:
        """int64, one a call: requested bytes of all live objects after the call."""
        live = np.empty(len(self), np.int64)
        self.calls.largest_live_sum(after=live)
        live.flags.writeable = False
        return live

    @cached_property
    def live_objects(self) -> NDArray[np.int64]:
        """int64, one a call: live objects after the call."""
        change = (self.op <= CALLOC).astype(np.int8) - (self.op == FREE)
        live = np.cumsum(change, dtype=np.int64)
        live.flags.writeable = False
        return live

    @cached_property
    def peak_live_bytes(self) -> int:
        """Largest sum of live requested bytes: the metric ``requested_peak_bytes``."""
        return self.calls.largest_live_sum()

    @cached_property
    def peak_live_objects(self) -> int:
        """Largest number of objects live at once."""
        return self.calls.slots

    @property
    def caveats(self) -> tuple[str, ...]:
        """Limits of the trace, in words: of the log that it was imported from, or that it is an estimate."""
        return tuple(self.metadata.get("caveats", "").splitlines())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the choice of a heap: the caveats, and for a trace with 8-byte pointers the alignment to choose."""
        caveats = tuple(f"{self.name}: {caveat}" for caveat in self.caveats)
        if self.metadata.get("pointer_bytes") != "8":
            return caveats
        return (
            *caveats,
            f"{self.name}: recorded with 8-byte pointers; choose alignment 16 to replace malloc there, and 8 for a "
            "32-bit target",
        )

    def lower_bound(self, align: int) -> int:
        """Largest sum of live requested bytes, each rounded up to `align`: no allocator needs less.

        O(calls) once for an alignment.
        """
        if align not in self._lower_bounds:
            self._lower_bounds[align] = self.calls.largest_live_sum(align=align)
        return self._lower_bounds[align]

    @cached_property
    def _lower_bounds(self) -> dict[int, int]:
        return {}

    def largest_live_sum(self, bytes_: NDArray[np.int64], *, both: bool = False) -> int:
        """Largest sum of the live objects' bytes, if each request sets its object to `bytes_` (frees are ignored).

        `both` counts an object twice while realloc changes it: as it was and as it will be. O(calls).
        """
        return self.calls.largest_live_sum(np.ascontiguousarray(bytes_, np.int64), both=both)

    @cached_property
    def seconds(self) -> float | None:
        """Seconds from the first to the last known time, or None if no time is known."""
        known = self.ts_us[self.ts_us >= 0]
        return float(known[-1] - known[0]) / 1e6 if len(known) else None


def check_version(metadata: dict[str, str], where: str) -> None:
    """Raise HeapwrightError, with `where` as its prefix, for another version of traces; set a missing version."""
    version = metadata.setdefault("format_version", FORMAT_VERSION)
    if version != FORMAT_VERSION:
        raise HeapwrightError(f"{where}: trace format version {version}; this Heapwright reads {FORMAT_VERSION}")

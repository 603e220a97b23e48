"""Importers of the logs of heap calls that other tools write: one module for each format."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._support.names import shortened
from heapwright._traces.failures import ARENA, Failures, failures_of, with_life
from heapwright._traces.logs import (
    board,
    bpftrace,
    bytehound,
    call_table,
    esp_idf,
    heaptrack,
    kmem,
    ltrace,
    lttng,
    malloclab,
    mtrace,
    nuttx,
    perf,
    rmm,
    sysview,
    text,
    tracealyzer,
    valgrind,
)
from heapwright._traces.logs.arena import within_arena
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.pattern import format_of_patterns, no_pattern_error, propose
from heapwright._traces.logs.source import Source
from heapwright._traces.tables import room_beside
from heapwright._traces.trace import FORMAT_VERSION, Trace
from heapwright._traces.validation import FREE, REALLOC

_ALL = (
    text,
    board,
    valgrind,
    mtrace,
    heaptrack,
    malloclab,
    rmm,
    kmem,
    lttng,
    perf,
    bpftrace,
    esp_idf,
    nuttx,
    sysview,
    tracealyzer,
    ltrace,
    bytehound,
    call_table,
)

FORMATS: dict[str, Format] = {module.FORMAT.name: module.FORMAT for module in _ALL}
"""In the order in which a file is compared with them: formats with a more specific signature first."""

_START = 1 << 16

_SUMS = "sums calls up, and a trace needs each; record the program, or log its calls"

_REFUSED = {
    "DHAT": (rb'\s*\{\s*"dhatFileVersion"', _SUMS),
    "massif": (rb"desc: .*\ncmd: .*\ntime_unit: ", _SUMS),
    "heaptrack_print": (rb'reading file "[^\n]*" - please wait', f"{_SUMS}; import the file that it reads"),
    "jemalloc's heap profile": (rb"heap_v2/", _SUMS),
    "gperftools' heap profile": (rb"heap profile: ", _SUMS),
    "pprof's profile": (rb"\n\x04\x08[\x01-\x7f]\x10[\x01-\x7f][\n\x12]", _SUMS),
    "memray's report": (rb'(?:\xf0\x9f\x93\x8f )?Total allocations:|\s*\{\s*"total_num_allocations"', _SUMS),
    "memray's file": (rb"memray", "is read by the same version of memray alone; record the program"),
    "MALT": (rb'\s*\{\s*"run"\s*:', _SUMS),
    "Valgrind's report": (
        rb"==\d+== (?:Memcheck|Massif|DHAT|Helgrind|DRD)[^\0]*\n==\d+== (?:HEAP SUMMARY|Using Valgrind)",
        "holds no calls; run Valgrind with --trace-malloc=yes",
    ),
    "Tracealyzer's snapshot": (
        rb"\x01\x02\x03\x04\x71\x72\x73\x74\xf1\xf2\xf3\xf4",
        "keeps the last events alone, without addresses; record in streaming mode",
    ),
}
"""Files that are not logs of single calls: how they begin, and why they are rejected. Formats are tried first."""


@dataclass(frozen=True)
class Imported:
    """A trace that was written from a log.

    Attributes:
        path: the Parquet trace.
        format: one of FORMATS.
        calls: number of its calls.
        requested_peak_bytes: largest sum of live requested bytes.
        live_objects_peak: largest number of live objects.
        caveats: limits of what the log records.
        repairs: what was left out or inserted.
        failures: requests that failed; the numbers above count them as allocated.
        others: of a log of several heaps, the traces of the other heaps, written next to the first.
    """

    path: Path
    format: str
    calls: int
    requested_peak_bytes: int
    live_objects_peak: int
    caveats: tuple[str, ...]
    repairs: tuple[str, ...]
    failures: Failures | None = None
    others: tuple[Imported, ...] = ()


def import_log(
    path: str | os.PathLike[str],
    format_name: str | None = None,
    arena: int | None = None,
    repair: bool = False,
    elf: str | os.PathLike[str] | None = None,
    failed_life: int | None = None,
    heap: str | None = None,
    patterns: Sequence[str] = (),
) -> Trace:
    """Read a log of heap calls into memory.

    The trace's `repairs` list what was left out or inserted, its metadata in "caveats" the limits of what the log
    records, one a line. Addresses become objects while the log is read, in O(1) a call.

    Args:
        path: the log; it may be compressed by gzip, xz or zstd.
        format_name: one of FORMATS, None to find it by the file's first bytes.
        arena: bytes that the heap had when the log was written; None for what the log says, if it does.
        repair: if more bytes than that are live at once, insert frees instead of rejecting the log.
        elf: the program of a board, which names the call sites of its log.
        failed_life: lifetime in calls of the object of a failed request; None for the lifetimes of its size
            (`heapwright._traces.failures`).
        heap: of a log of several heaps or memories, the one to read; None for the one with the most calls.
        patterns: how the lines of a log in its own wording read (`heapwright._traces.logs.pattern`), instead of
            `format_name`.

    Raises:
        HeapwrightError: the format is not known, or holds sums instead of single calls; the log has no call; more bytes
            are live at once than its arena holds; `elf` is not a program, or the format does not use one.
    """
    format_ = format_of(Path(path), format_name, patterns)
    read = Reading(Source(Path(path), elf=elf_of(elf, format_), heap=heap), format_)
    known = {ARENA: str(arena)} if arena and read.history.failed else {}
    trace = with_life(read.history.trace(read.name, read.metadata | known), failed_life, read.history.failed_resizes)
    return read.within_arena(replace(trace, repairs=(*read.repairs, *trace.repairs)), arena, repair)


def convert_log(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    format_name: str | None = None,
    arena: int | None = None,
    repair: bool = False,
    elf: str | os.PathLike[str] | None = None,
    failed_life: int | None = None,
    heap: str | None = None,
    patterns: Sequence[str] = (),
) -> Imported:
    """Write the trace of a log of heap calls as Parquet, in memory that does not grow with its calls.

    This takes about 150 MB and some 150 bytes for each live object; a log that is repaired is read into memory whole.
    Arguments and errors are those of `import_log`; also HeapwrightError if `output` cannot be written.
    """
    output = Path(output)
    format_ = format_of(Path(path), format_name, patterns)
    with room_beside(output) as folder:
        read = Reading(Source(Path(path), folder, elf_of(elf, format_), heap), format_)
        others = read.heaps[1:] if heap is None else ()
        if not read.outgrows(arena) and not read.history.failed and not others:
            return read.write(output)
        if others:
            name = None if patterns else format_.name
            rest = [
                convert_log(path, _beside(output, other), name, arena, repair, elf, failed_life, other, patterns)
                for other in others
            ]
            first = convert_log(path, output, name, arena, repair, elf, failed_life, read.heaps[0], patterns)
            return replace(first, others=tuple(rest))
    if read.outgrows(arena) and not repair:
        raise read.too_much(arena)
    # The lifetimes of failed requests are estimated from all others: such a log is read whole.
    name = None if patterns else format_.name
    trace = import_log(path, name, arena, repair, elf, failed_life=failed_life, heap=heap, patterns=patterns)
    return rewritten(trace, output, read)


def _beside(output: Path, heap: str) -> Path:
    """The file for the trace of another heap of the same log."""
    name = re.sub(r"[^\w.-]+", "_", heap) or "other"
    return output.with_name(shortened(f"{output.stem}.{name}", ending=output.suffix))


def rewritten(trace: Trace, output: Path, read: Reading) -> Imported:
    """Write a trace in the place of the one that was read, and say what it is."""
    trace = replace(trace, metadata={"format_version": FORMAT_VERSION} | trace.metadata)
    trace.write(output)
    live = np.where(trace.op == FREE, -1, trace.op != REALLOC).cumsum()
    peaks = trace.peak_live_bytes, int(live.max())
    return Imported(output, read.format.name, len(trace), *peaks, read.caveats, trace.repairs, failures_of(trace))


class Reading:
    """A log that was read: its history, caveats and repairs."""

    def __init__(self, source: Source, format_: Format) -> None:
        """Read the log. Raises HeapwrightError if it has no call."""
        self._path = source.path
        self.format = format_
        self.history: LogHistory = format_.read(source)
        if not len(self.history):
            raise HeapwrightError(
                f"{source.path}: no call in its format ({self.format.name}); docs/logs.md lists what writes one, "
                "and the lines that any program can print",
                parameter="format",
            )
        self.name = source.path.name.partition(".")[0] or source.path.name
        self.heaps = source.heaps
        counted = any("lost" in caveat for caveat in self.history.caveats)  # by the reader, with what to do
        losses = [str(source.losses)] if source.losses.lines and not counted else []
        self.caveats = (*losses, *self.format.loses, *self.history.caveats)
        caveats = {"caveats": "\n".join(self.caveats)} if self.caveats else {}
        arena = self.history.arena or self.history.peak_bytes * 5 // 4
        names = [name for most, name in self.format.allocators if arena <= most]
        allocator = {"allocator": names[0]} if names else {}
        stated = {ARENA: str(self.history.arena)} if self.history.arena and self.history.failed else {}
        self.metadata = {"recorder": self.format.name} | allocator | caveats | stated
        cut = [f"the log is cut, and what is sound was read: {source.cut}"] if source.cut else []
        self.repairs = (*cut, *self.history.notes)

    def write(self, output: Path) -> Imported:
        """Write the trace as Parquet. Raises HeapwrightError if it cannot be written."""
        self.history.write(output, {"format_version": FORMAT_VERSION} | self.metadata)
        return Imported(
            path=output,
            format=self.format.name,
            calls=len(self.history),
            requested_peak_bytes=self.history.peak_bytes,
            live_objects_peak=self.history.peak_objects,
            caveats=self.caveats,
            repairs=self.repairs,
        )

    def outgrows(self, arena: int | None) -> bool:
        """Whether more bytes are live at once than `arena` holds; None is the arena that the log reports."""
        arena = arena or self.history.arena
        return arena > 0 and self.history.peak_bytes > arena

    def too_much(self, arena: int | None) -> HeapwrightError:
        """The error for a log that outgrows its arena, with what to do."""
        return HeapwrightError(
            f"{self._path}: {self.history.peak_bytes:,} bytes live at once, and its arena has "
            f"{arena or self.history.arena:,}: frees are missing in the log; record again with less lost, or repair it",
            parameter="repair",
        )

    def within_arena(self, trace: Trace, arena: int | None, repair: bool) -> Trace:
        """The trace, with the frees inserted that it needs to fit into the arena; raises HeapwrightError."""
        if not self.outgrows(arena):
            return trace
        repaired, frees = within_arena(trace, arena or self.history.arena) if repair else (trace, 0)
        if not repair:
            raise self.too_much(arena)
        if repaired.peak_live_bytes > (arena or self.history.arena):
            raise HeapwrightError(
                f"{self._path}: {repaired.peak_live_bytes:,} bytes of objects that the log frees are live at once, and "
                f"its arena has {arena or self.history.arena:,}; give the size of its heap",
                parameter="arena",
            )
        lower = trace.peak_live_bytes - repaired.peak_live_bytes
        message = f"frees inserted to fit the arena: {frees}; they lower the peak by {lower:,} B"
        return replace(repaired, repairs=(*trace.repairs, message))


def format_of(path: Path, format_name: str | None, patterns: Sequence[str] = ()) -> Format:
    """The format of that name, of some patterns, or of the log at `path`; raises HeapwrightError if there is none."""
    if patterns:
        if format_name is not None:
            raise ParameterError("patterns describe a format of their own; leave the format out", parameter="format")
        return format_of_patterns(patterns)
    if format_name is not None and format_name not in FORMATS:
        raise ParameterError(f"{format_name!r} is no format of logs; valid: {', '.join(FORMATS)}", parameter="format")
    result = FORMATS[format_name] if format_name else log_format(path)
    if result is None:
        if proposed := proposed_patterns(path):
            raise no_pattern_error(path, proposed)
        raise HeapwrightError(f"{path}: no log of heap calls; formats: {', '.join(FORMATS)}", parameter="format")
    return result


def proposed_patterns(path: Path) -> list[str]:
    """Patterns for a log in unknown wording; empty if its lines hold no calls."""
    start = Source(path).start(_START)
    return [] if b"\0" in start else propose(start.decode(errors="replace").splitlines())


def elf_of(elf: str | os.PathLike[str] | None, format_: Format = board.FORMAT) -> Path | None:
    """The program that names the call sites of a log of that format; raises HeapwrightError for any other file."""
    if elf is None:
        return None
    if format_ is not board.FORMAT:
        raise ParameterError(
            f"a {format_.name} log has no addresses to look up; leave the program out", parameter="elf"
        )
    path = Path(elf)
    if not path.is_file() or path.read_bytes()[:4] != b"\x7fELF":
        what = "not an ELF file" if path.is_file() else "no such file"
        raise HeapwrightError(f"{elf}: {what}; give the program as it was linked, with its symbols", parameter="elf")
    return path


def log_format(path: str | os.PathLike[str]) -> Format | None:
    """The format of a log, by its first bytes; None if it is none of FORMATS.

    Raises HeapwrightError for formats that hold no single calls.
    """
    path = Path(path)
    start = Source(path).start(_START)
    result = next((item for item in FORMATS.values() if item.matches(start)), None)
    for name, (pattern, reason) in _REFUSED.items():
        if result is None and re.match(pattern, start):
            raise HeapwrightError(f"{path}: {name} {reason}")
    return result

"""From the raw files that the recorder leaves (``recorder/raw_format.h``) to traces, in bounded memory."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import lib
from heapwright.errors import HeapwrightError
from heapwright.files import parquet
from heapwright.files.names import shortened
from heapwright.files.version import __version__
from heapwright.traces.history import RECORD, Columns, History, allocations
from heapwright.traces.trace import FORMAT_VERSION

_MAGIC = b"HWRAW02"
_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("pointer_bytes", "u4"),
        ("record_bytes", "u4"),
        ("pid", "u4"),
        ("stopped", "i4"),
        ("started_ns", "u8"),
        ("inherited", "u8"),
        ("end", "u8"),
        ("growing_ns", "u8"),
        ("processor_ns", "u8"),
        ("forked_from", "S48"),
        ("called", "S256"),
        ("title", "S256"),
        ("program", "S512"),
    ]
)
_WINDOW = 1 << 18
_PART = 1 << 20


@dataclass(frozen=True)
class Recorded:
    """One process image and the trace made of it.

    Attributes:
        path: the Parquet trace.
        pid: process id; two images of one process (exec) share it.
        program: path of the executable.
        name: what it was called as, with its role: the title that a server gives itself, or ``child``.
        events: calls in the trace.
        threads: threads that made them.
        requested_peak_bytes: largest sum of live requested bytes.
        live_objects_peak: largest number of live objects.
        inherited: blocks of the process that forked this one, with which the trace begins.
        processor_seconds: processor time of the process, as far as it could tell before it ended.
        recording_ns: processor time spent recording, in all threads.
        notes: what was left out or ended early, in words.
    """

    path: Path
    pid: int
    program: str
    name: str
    events: int
    inherited: int
    threads: int
    requested_peak_bytes: int
    live_objects_peak: int
    recording_ns: float
    processor_seconds: float
    notes: tuple[str, ...]


def convert(folder: Path, output: Path, *, consume: bool) -> list[Recorded]:
    """Write the traces of the raw files in a folder, the one with most calls as `output`; give them in this order.

    `consume` removes each raw file as soon as it is not needed any more: on a full disk that makes the room.
    """
    images = sorted(_images(folder), key=lambda image: (-image.allocations, image.path.name))
    names = _names(images)
    paths = {
        image.path: output.with_name(shortened(output.stem, ending=f".{name}{output.suffix}"))
        for image, name in zip(images, names, strict=True)
    }
    if images:
        paths[images[0].path] = output
    inherited: dict[Path, NDArray[Any]] = {}
    results: dict[Path, Recorded] = {}
    for image in sorted(images, key=lambda image: int(image.header["started_ns"])):
        children = [child for child in images if child.forked_from == image.path.name]
        results[image.path] = _convert(image, paths[image.path], children, inherited)
        if consume:
            image.path.unlink()
    return [results[image.path] for image in images]


@dataclass(frozen=True)
class _Image:
    path: Path
    header: Any
    allocations: int

    @property
    def pid(self) -> int:
        return int(self.header["pid"])

    @property
    def places(self) -> int:
        """Records that the file has room for."""
        return _places(self.path, self.header)

    @property
    def forked_from(self) -> str:
        return _text(self.header["forked_from"])

    @property
    def program(self) -> str:
        """What it was called as: the name of a link tells more than that of the file behind it."""
        called = Path(_text(self.header["called"]).partition(" ")[0].rstrip(":")).name.lstrip("-")
        return called or Path(_text(self.header["program"])).name or "program"

    @property
    def name(self) -> str:
        """The program and its role."""
        title = _text(self.header["title"])
        if title != _text(self.header["called"]) or ": " in title:
            words = re.findall(r"[A-Za-z0-9_.+][A-Za-z0-9_.+-]*", title)
            role = [word for word in words[:6] if word != self.program]
            if role:
                return "-".join([self.program, *role])
        return f"{self.program}-child" if self.forked_from else self.program


def _text(value: bytes) -> str:
    return os.fsdecode(bytes(value).partition(b"\0")[0]).strip()


def _places(path: Path, header: Any) -> int:
    end = min(int(header["end"]), path.stat().st_size)
    return max(0, end - lib.RAW_RECORDS_AT) // RECORD.itemsize


def _images(folder: Path) -> Iterator[_Image]:
    """Give the process images that allocated anything."""
    for path in folder.glob("*.raw"):
        headers = np.fromfile(path, _HEADER, count=1)
        if not len(headers) or headers[0]["magic"] != _MAGIC or headers[0]["record_bytes"] != RECORD.itemsize:
            continue
        places = _places(path, headers[0])
        given = sum(allocations(window["kind"]) for window in _windows(path, places))
        if given:
            yield _Image(path, headers[0], given)


def _windows(path: Path, stop: int, start: int = 0) -> Iterator[NDArray[Any]]:
    """Give the records at the places from start to stop, the empty ones left out."""
    with path.open("rb") as file:
        file.seek(lib.RAW_RECORDS_AT + start * RECORD.itemsize)
        for at in range(start, stop, _WINDOW):
            records = np.fromfile(file, RECORD, count=min(_WINDOW, stop - at))
            yield records[records["kind"] != lib.RAW_EMPTY]


def _names(images: list[_Image]) -> list[str]:
    """Names that tell the images apart: further ones of the same are numbered from 2."""
    counts: dict[str, int] = {}
    names = []
    for image in images:
        count = counts[image.name] = counts.get(image.name, 0) + 1
        names.append(image.name if count == 1 else f"{image.name}-{count}")
    return names


def _convert(image: _Image, path: Path, children: list[_Image], inherited: dict[Path, NDArray[Any]]) -> Recorded:
    """Write the trace of one image; leave in `inherited` what its children begin with."""
    history, sample = History(), _Sample()
    with tempfile.TemporaryDirectory(prefix=".heapwright-", suffix=".parts", dir=path.parent) as folder:
        table = _Table(Path(folder))
        first = inherited.pop(image.path, np.zeros(0, RECORD))
        if len(first):
            first["time_ns"], first["thread"], first["cost_ns"] = image.header["started_ns"], 0, 0
            table.add(history.feed(first))
        at = 0
        for child in sorted(children, key=lambda child: int(child.header["inherited"])):
            fork = min(int(child.header["inherited"]), image.places)
            _feed(history, sample, table, image, at, fork)
            inherited[child.path] = history.live()
            at = fork
        _feed(history, sample, table, image, at, image.places)
        recording_ns = sample.mean_ns * sample.records + float(image.header["growing_ns"])
        metadata = {
            "format_version": FORMAT_VERSION,
            "program": image.program,
            "pointer_bytes": str(int(image.header["pointer_bytes"])),
            "recorder": f"heapwright {__version__}",
            "recording_ns_per_call": f"{recording_ns / max(1, history.calls - len(first)):.1f}",
        }
        if len(first):
            metadata["inherited"] = str(len(first))
        table.write(path, metadata)
    stopped = int(image.header["stopped"])
    ended = [f"recording ended early: {os.strerror(stopped)}"] if stopped else []
    begun = f"begins with {len(first):,} blocks ({int(first['size'].sum()):,} B) inherited at the fork"
    return Recorded(
        path=path,
        pid=image.pid,
        program=_text(image.header["program"]),
        name=image.name,
        events=history.calls,
        inherited=len(first),
        threads=history.threads,
        requested_peak_bytes=history.peak_bytes,
        live_objects_peak=history.peak_objects,
        recording_ns=recording_ns,
        processor_seconds=int(image.header["processor_ns"]) / 1e9,
        notes=(*([begun] if len(first) else []), *history.notes, *ended),
    )


def _feed(history: History, sample: _Sample, table: _Table, image: _Image, start: int, stop: int) -> None:
    for records in _windows(image.path, stop, start):
        sample.add(records)
        table.add(history.feed(records))


class _Sample:
    """The records whose cost was measured."""

    def __init__(self) -> None:
        self.records = 0
        self._costs: list[NDArray[np.uint16]] = []

    def add(self, records: NDArray[Any]) -> None:
        self.records += len(records)
        self._costs.append(records["cost_ns"][records["cost_ns"] > 0])

    @property
    def mean_ns(self) -> float:
        """Mean cost; the slowest 1 % count as the 99th percentile, for an interrupt may fall on them."""
        costs = np.concatenate([np.zeros(0, np.uint16), *self._costs])
        return float(np.minimum(costs, np.percentile(costs, 99)).mean()) if len(costs) else 0.0


class _Table:
    """A trace that is written as it comes: in memory while it is small, else in parts on the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: list[Columns] = []
        self._held_rows = 0
        self._parts: list[Path] = []
        self._aligned = False

    def add(self, columns: Columns) -> None:
        if not len(columns["op"]):
            return
        self._held.append(columns)
        self._held_rows += len(columns["op"])
        self._aligned = self._aligned or bool(columns["align"].any())
        if self._held_rows >= _PART:
            part = self._folder / f"{len(self._parts)}.parquet"
            parquet.write(part, self._taken(), {})
            self._parts.append(part)

    def write(self, path: Path, metadata: dict[str, str]) -> None:
        if not self._parts and not self._held:
            raise HeapwrightError(f"{path}: no calls; a trace has at least one row")
        if not self._parts:
            rows = self._taken()
            if not self._aligned:
                del rows["align"]
            parquet.write(path, rows, metadata)
            return
        if self._held:
            part = self._folder / f"{len(self._parts)}.parquet"
            parquet.write(part, self._taken(), {})
            self._parts.append(part)
        parquet.join(self._parts, path, metadata, without=() if self._aligned else ("align",))

    def _taken(self) -> Columns:
        taken = {key: np.concatenate([columns[key] for columns in self._held]) for key in self._held[0]}
        self._held, self._held_rows = [], 0
        return taken

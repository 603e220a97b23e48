"""From the raw files that the recorder leaves (``recorder/raw_format.h``) to traces, in bounded memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heapwright._native import lib
from heapwright._support.errors import HeapwrightError
from heapwright._support.names import shortened
from heapwright._support.version import __version__
from heapwright._traces.failures import failures_of, with_life
from heapwright._traces.history import RECORD, History
from heapwright._traces.interleave import Stream, together
from heapwright._traces.raw import RawFile, Window
from heapwright._traces.sites import Module, Sites
from heapwright._traces.tables import writing_to
from heapwright._traces.trace import FORMAT_VERSION, Trace
from heapwright._traces.validation import Columns


@dataclass(frozen=True)
class Recorded:
    """One process image, or several in one, and the trace made of it.

    Attributes:
        path: the Parquet trace.
        pid: process id; two images of one process (exec) share it.
        program: path of the executable.
        name: the name it was called by, with its role: the title that a server gives itself, or ``child``.
        events: calls in the trace.
        threads: threads that made them.
        requested_peak_bytes: largest sum of live requested bytes.
        live_objects_peak: largest number of live objects.
        inherited: blocks of the process that forked this one, with which the trace begins.
        processor_seconds: processor time of the process, as last recorded before its end.
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


Follow = Literal["each", "one"]
"""A trace for each process image, or one of them all."""


def convert(folder: Path, output: Path, *, consume: bool, follow: Follow = "each") -> list[Recorded]:
    """Write the traces of the raw files in a folder, the one with most calls as `output`; give them in this order.

    `consume` removes each raw file as soon as it is not needed any more: on a full disk that makes the room.
    """
    images = sorted(_images(folder), key=lambda image: (-image.raw.allocations, image.path.name))
    if follow == "one" and images:
        result = _convert_tree(sorted(images, key=lambda image: image.raw.number("started_ns")), output)
        for image in images if consume else []:
            image.path.unlink()
        return [result]
    paths = _paths(images, output)
    inherited: dict[Path, NDArray[Any]] = {}
    results: dict[Path, Recorded] = {}
    for image in sorted(images, key=lambda image: image.raw.number("started_ns")):
        children = [child for child in images if child.forked_from == image.path.name]
        results[image.path] = _convert(image, paths[image.path], children, inherited)
        if consume:
            image.path.unlink()
    return [results[image.path] for image in images]


MANY = 10
"""More traces than this, next to the largest, get a folder of their own: a shell that starts a program runs many."""


def _paths(images: list[_Image], output: Path) -> dict[Path, Path]:
    """Where the trace of each raw file goes."""
    names = _names(images)
    if len(images) > MANY + 1:
        folder = output.with_name(shortened(output.stem, ending=".processes"))
        folder.mkdir(exist_ok=True)
        others = [folder / shortened(name, ending=output.suffix) for name in names]
    else:
        others = [output.with_name(shortened(output.stem, ending=f".{name}{output.suffix}")) for name in names]
    return {image.path: path for image, path in zip(images, [output, *others[1:]], strict=False)}


@dataclass(frozen=True)
class _Image:
    raw: RawFile

    @cached_property
    def modules(self) -> list[Module]:
        """What made calls, where sites were recorded."""
        return self.raw.modules()

    @property
    def path(self) -> Path:
        return self.raw.path

    @property
    def pid(self) -> int:
        return self.raw.number("pid")

    @property
    def processor_seconds(self) -> float:
        return self.raw.number("processor_ns") / 1e9

    @property
    def forked_from(self) -> str:
        return self.raw.text("forked_from")

    @property
    def program(self) -> str:
        """The name it was called by: the name of a link is more specific than that of its target."""
        called = Path(self.raw.text("called").partition(" ")[0].rstrip(":")).name.lstrip("-")
        return called or Path(self.raw.text("program")).name or "program"

    @property
    def name(self) -> str:
        """The program and its role."""
        title = self.raw.text("title")
        if title != self.raw.text("called") or ": " in title:
            words = re.findall(r"[A-Za-z0-9_.+][A-Za-z0-9_.+-]*", title)
            role = [word for word in words[:6] if word != self.program]
            if role:
                return "-".join([self.program, *role])
        return f"{self.program}-child" if self.forked_from else self.program


def _images(folder: Path) -> Iterator[_Image]:
    """Give the process images that allocated anything."""
    for path in (*folder.glob("*.raw"), *folder.glob("*/*.raw")):
        raw = RawFile.open(path)
        if raw is not None and raw.allocations:
            yield _Image(raw)


def _names(images: list[_Image]) -> list[str]:
    """Unique names of the images: repeated names are numbered from 2."""
    counts: dict[str, int] = {}
    names = []
    for image in images:
        count = counts[image.name] = counts.get(image.name, 0) + 1
        names.append(image.name if count == 1 else f"{image.name}-{count}")
    return names


def _convert(image: _Image, path: Path, children: list[_Image], inherited: dict[Path, NDArray[Any]]) -> Recorded:
    """Write the trace of one image; leave in `inherited` what its children begin with."""
    first = inherited.pop(image.path, np.zeros(0, RECORD))
    history = History(sites=bool(image.modules), alone=not children and not len(first))
    sample, named = _Sample(), _Named(image)
    with writing_to(path) as table:
        if len(first):
            first["time_ns"], first["thread"] = image.raw.number("started_ns"), 0
            table.add(named(history.feed(first)))
        for records in _up_to_forks(image, children, history, inherited, sample):
            table.add(named(history.feed(records)))
        recording_ns = sample.mean_ns * sample.records + image.raw.number("growing_ns")
        metadata = _metadata(image, recording_ns, history.calls - len(first))
        if len(first):
            metadata["inherited"] = str(len(first))
        table.write(path, metadata)
    failures = _with_lives(path, history.failed)
    begun = f"begins with {len(first):,} blocks ({int(first['size'].sum()):,} B) inherited at the fork"
    return Recorded(
        path=path,
        pid=image.pid,
        program=image.raw.text("program"),
        name=image.name,
        events=history.calls,
        inherited=len(first),
        threads=history.threads,
        requested_peak_bytes=history.peak_bytes,
        live_objects_peak=history.peak_objects,
        recording_ns=recording_ns,
        processor_seconds=image.processor_seconds,
        notes=(*([begun] if len(first) else []), *failures, *history.notes, *_ended(image)),
    )


def _with_lives(path: Path, failed: int) -> list[str]:
    """Let the objects of failed requests in the trace at `path` live as long as served ones; what to say of them."""
    if not failed:
        return []
    trace = with_life(Trace.read(path))
    trace.write(path)
    return [str(failures_of(trace))]


def _metadata(image: _Image, recording_ns: float, calls: int) -> dict[str, str]:
    return {
        "format_version": FORMAT_VERSION,
        "program": image.program,
        "pointer_bytes": str(image.raw.number("pointer_bytes")),
        "recorder": f"heapwright {__version__}",
        "recording_ns_per_call": f"{recording_ns / max(1, calls):.1f}",
    }


def _ended(image: _Image) -> list[str]:
    """Say why the recording ended before the program did."""
    stopped = image.raw.number("stopped")
    ended = [f"recording ended early: {os.strerror(stopped)}"] if stopped else []
    if image.raw.ended:
        ended.append(f"recording ended at the limit of {image.raw.number('limit'):,} calls")
    return ended


class _Named:
    """Puts names in the place of sites' addresses."""

    def __init__(self, image: _Image) -> None:
        self._sites = Sites(image.modules)

    def __call__(self, columns: Columns) -> Columns:
        return columns | {"site": self._sites.names(columns["site"])} if "site" in columns else columns


class _Process:
    """A process image as a part of one trace.

    Its objects and threads are numbered from numbers of its own. What it inherits lives on in the process that forked
    it, so its frees of that are left out; what it holds at its end is freed then.
    """

    def __init__(self, image: _Image, begun_ns: int, first_object: int, first_thread: int, sites: bool) -> None:
        self.image = image
        self.history = History(begun_ns, sites)
        self._named = _Named(image)
        self.sample = _Sample()
        self._begun_ns = begun_ns
        self._first = first_object, first_thread

    @property
    def recording_ns(self) -> float:
        return self.sample.mean_ns * self.sample.records + self.image.raw.number("growing_ns")

    def stream(self) -> Stream:
        started = self.image.raw.number("started_ns")
        return (started - self._begun_ns) // 1000, self._columns(started)

    def _columns(self, latest: int) -> Iterator[Columns]:
        for window in self.image.raw.windows():
            self.sample.add(window)
            yield self._numbered(window.records)
            latest = max(latest, int(window.records["time_ns"].max(initial=0)))
        rest = self.history.live()
        noted = self.image.raw.number("started_ns") + self.image.raw.number("noted_ns")
        rest["kind"], rest["thread"], rest["time_ns"] = lib.RAW_FREE, 0, max(latest, noted)
        yield self._numbered(rest)

    def _numbered(self, records: NDArray[Any]) -> Columns:
        columns = self._named(self.history.feed(records))
        columns["id"] = columns["id"] + np.uint32(self._first[0])
        columns["tid"] = ((columns["tid"].astype(np.int64) + self._first[1]) % 65536).astype(np.uint16)
        return columns | {"bytes": self.history.changes[:, 0], "objects": self.history.changes[:, 1]}


def _convert_tree(images: list[_Image], path: Path) -> Recorded:
    """Write one trace of all images, the first of which started the others."""
    begun_ns = images[0].raw.number("started_ns")
    objects = np.cumsum([0, *(image.raw.allocations for image in images)]).tolist()
    threads = np.cumsum([0, *(image.raw.threads for image in images)]).tolist()
    if objects[-1] >= 1 << 32:
        raise HeapwrightError(f"{path}: a trace has at most 2^32 objects, and this one has more; write one a process")
    sites = any(image.modules for image in images)
    processes = [
        _Process(image, begun_ns, first_object, first_thread, sites)
        for image, first_object, first_thread in zip(images, objects[:-1], threads[:-1], strict=True)
    ]
    live, peak = np.zeros(2, np.int64), np.zeros(2, np.int64)
    with writing_to(path) as table:
        for columns in together([process.stream() for process in processes]):
            after = live + np.cumsum(np.stack([columns.pop("bytes"), columns.pop("objects")], axis=1), axis=0)
            live, peak = after[-1], np.maximum(peak, after.max(axis=0))
            table.add(columns)
        calls = sum(process.history.calls for process in processes)
        recording_ns = sum(process.recording_ns for process in processes)
        table.write(path, _metadata(images[0], recording_ns, calls) | {"processes": str(len(images))})
    failures = _with_lives(path, sum(process.history.failed for process in processes))
    notes = [
        f"{name}: {note}"
        for name, process in zip(_names(images), processes, strict=True)
        for note in (*process.history.notes, *_ended(process.image))
    ]
    used: dict[int, float] = {}
    for image in images:
        used[image.pid] = max(used.get(image.pid, 0.0), image.processor_seconds)
    return Recorded(
        path=path,
        pid=images[0].pid,
        program=images[0].raw.text("program"),
        name=images[0].name,
        events=calls,
        inherited=0,
        threads=sum(process.history.threads for process in processes),
        requested_peak_bytes=int(peak[0]),
        live_objects_peak=int(peak[1]),
        recording_ns=recording_ns,
        processor_seconds=sum(used.values()),
        notes=(f"one trace of {len(images)} process images", *failures, *notes),
    )


def _up_to_forks(
    image: _Image, children: list[_Image], history: History, inherited: dict[Path, NDArray[Any]], sample: _Sample
) -> Iterator[NDArray[Any]]:
    """Give the records of an image in windows that end where a child was forked; leave there what it begins with."""
    waiting = sorted(children, key=lambda child: child.raw.number("forked_ticks"))
    for window in image.raw.windows():
        sample.add(window)
        at = 0
        while waiting and len(window.ticks) and waiting[0].raw.number("forked_ticks") < window.ticks[-1]:
            child = waiting.pop(0)
            fork = int(np.searchsorted(window.ticks, np.uint64(child.raw.number("forked_ticks")), side="right"))
            yield window.records[at:fork]
            inherited[child.path] = history.live()
            at = fork
        yield window.records[at:]
    for child in waiting:
        inherited[child.path] = history.live()


class _Sample:
    """The records whose cost was measured."""

    def __init__(self) -> None:
        self.records = 0
        self._costs: list[NDArray[np.uint64]] = []

    def add(self, window: Window) -> None:
        self.records += len(window.records)
        self._costs.append(window.costs)

    @property
    def mean_ns(self) -> float:
        """Mean cost; the slowest 1 % count as the 99th percentile, for an interrupt may fall on them."""
        costs = np.concatenate([np.zeros(0, np.uint64), *self._costs])
        return float(np.minimum(costs, np.percentile(costs, 99)).mean()) if len(costs) else 0.0

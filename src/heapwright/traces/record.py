"""Record the heap calls of an unmodified Linux program: run it with the recorder preloaded, then write Parquet traces.

The recorder (``recorder/recorder.c``) leaves one raw file a process image, laid out as ``recorder/raw_format.h`` says.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
from heapwright.traces.trace import Trace
from heapwright.traces.validation import CALLOC, FREE, MALLOC, REALLOC

_MAGIC = b"HWRAW01"
_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("pointer_bytes", "u4"),
        ("record_bytes", "u4"),
        ("pid", "u4"),
        ("parent", "u4"),
        ("stopped", "i4"),
        ("reserved", "u4"),
        ("growing_ns", "u8"),
        ("program", "S512"),
    ]
)
_RECORD = np.dtype(
    [
        ("time_ns", "u8"),
        ("pointer", "u8"),
        ("size", "u8"),
        ("thread", "u4"),
        ("cost_ns", "u2"),
        ("align_log2", "u1"),
        ("kind", "u1"),
    ]
)
_EMPTY, _MALLOC, _CALLOC, _FREE = lib.RAW_EMPTY, lib.RAW_MALLOC, lib.RAW_CALLOC, lib.RAW_FREE
_BEGIN, _END = lib.RAW_REALLOC_BEGIN, lib.RAW_REALLOC_END
_FAILED, _FREED = lib.RAW_REALLOC_FAILED, lib.RAW_REALLOC_FREED
_OPS = {_EMPTY: FREE, _MALLOC: MALLOC, _CALLOC: CALLOC, _FREE: FREE, _FREED: FREE}
_OF_KIND = np.array([_OPS.get(kind, REALLOC) for kind in range(_FREED + 1)], np.uint8)


@dataclass(frozen=True)
class Recorded:
    """One process image and the trace made of it.

    Attributes:
        path: the Parquet trace.
        pid: process id; two images of one process (exec) share it.
        program: path of the executable.
        events: calls in the trace.
        threads: threads that made them.
        requested_peak_bytes: largest sum of live requested bytes.
        live_objects_peak: largest number of live objects.
        recording_ns: time spent recording, in all threads.
        notes: what was left out or ended early, in words.
    """

    path: Path
    pid: int
    program: str
    events: int
    threads: int
    requested_peak_bytes: int
    live_objects_peak: int
    recording_ns: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Cost:
    """What recording took, from the recorder's own measurement of one record in 61.

    It covers the time spent inside the recorder, not what its use of the caches costs the program elsewhere.

    Attributes:
        events: calls recorded, over all processes.
        ns_per_event: nanoseconds of recording a call.
        recording_seconds: their sum.
        run_seconds: wall time of the run.
        processor_seconds: processor time of the program and the children it waited for.
        share: recording_seconds / processor_seconds, at most 1.
    """

    events: int
    ns_per_event: float
    recording_seconds: float
    run_seconds: float
    processor_seconds: float
    share: float


@dataclass(frozen=True)
class Recording:
    """What one run left: its traces (largest first), the program's exit status (negative: the signal) and the cost."""

    files: list[Recorded]
    exit_status: int
    cost: Cost


def record(
    command: Sequence[str],
    output: str | os.PathLike[str] | None = None,
    *,
    stdout: int | None = None,
    tell: Callable[[str], None] = lambda message: None,
) -> Recording:
    """Run a command, record every process it becomes or starts, and write one trace a process image.

    The image with most calls gets the name `output`, the others that name with ``.PID`` before its suffix (and
    ``-N`` after the PID for further images of one process). Images that allocated nothing are left out. Processes
    that outlive the command are waited for, after a Ctrl-C for a second at most. Ctrl-C goes to the program; what was
    recorded until then is kept.

    Args:
        command: the program, found as a shell finds it, and its arguments.
        output: name of the trace; PROGRAM.parquet in the current folder if None.
        stdout: file descriptor for the program's standard output; None is this process's own.
        tell: called with one line about the progress.

    Raises:
        HeapwrightError: no such command, an output folder that cannot be written, or no call was recorded (the
            message says why where it can be known).
    """
    if not command:
        raise HeapwrightError("record: no command; give one after --")
    output = Path(output) if output is not None else Path(Path(command[0]).name + ".parquet")
    with _raw_folder(output) as folder:
        status, run_seconds, processor_seconds = _run(command, folder, stdout, tell)
        images = sorted(_images(folder), key=lambda image: (-image.allocations, image.path.name))
        if not images:
            raise HeapwrightError(f"{command[0]}: no heap call was recorded: {_why_nothing(command[0], folder)}")
        files = [_convert(image, output, first=image is images[0]) for image in images]
    events = sum(file.events for file in files)
    seconds = sum(file.recording_ns for file in files) / 1e9
    share = min(1.0, seconds / processor_seconds) if processor_seconds > 0 else 1.0
    cost = Cost(events, seconds * 1e9 / events, seconds, run_seconds, processor_seconds, share)
    return Recording(files, status, cost)


# Running the program


@contextlib.contextmanager
def _raw_folder(output: Path) -> Iterator[Path]:
    """Make a folder for raw files beside the output: room there is what the trace needs anyway, memory is not."""
    parquet.check_writable(output)
    folder = Path(tempfile.mkdtemp(prefix=".heapwright-", suffix=".recording", dir=output.parent)).absolute()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _recorder(folder: Path) -> Path:
    """Find the preload library; LD_PRELOAD splits at blanks and colons, so such a path gets a link without them."""
    native = importlib.util.find_spec("heapwright._native")
    library = Path(native.origin).with_name("recorder.so").absolute() if native and native.origin else None
    if library is None or not library.is_file():
        raise HeapwrightError("recorder.so: not built; `pip install .` builds it on Linux")
    if not any(c in str(library) for c in " :"):
        return library
    link = folder / "recorder.so"
    if any(c in str(link) for c in " :"):
        raise HeapwrightError(
            f"{library}: LD_PRELOAD takes no path with a blank or colon; choose another folder", parameter="output"
        )
    link.symlink_to(library)
    return link


def _run(
    command: Sequence[str], folder: Path, stdout: int | None, tell: Callable[[str], None]
) -> tuple[int, float, float]:
    """Run to the end; return exit status, wall seconds, processor seconds."""
    preload = [str(_recorder(folder)), os.environ.get("LD_PRELOAD", "")]
    environment = os.environ | {"LD_PRELOAD": ":".join(filter(None, preload)), "HEAPWRIGHT_RECORD_DIR": str(folder)}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with _Signals() as signals:
        try:
            process = subprocess.Popen(command, env=environment, stdout=stdout)
        except OSError as error:
            reason = "command not found" if isinstance(error, FileNotFoundError) else error.strerror
            raise HeapwrightError(f"{command[0]}: {reason}; give a program in PATH or its path") from error
        signals.pass_on_to(process)
        status = process.wait()
        _wait_for_others(folder, signals, tell)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return status, time.monotonic() - began, used


class _Signals:
    """Signals meant for the program, while it runs: Ctrl-C must not end the recording before it is written."""

    _PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.stop_waiting = False
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        # A handler, not SIG_IGN: the program would inherit the latter and be deaf to Ctrl-C.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in self._PASSED_ON}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def pass_on_to(self, process: subprocess.Popen[bytes]) -> None:
        """Name the program; it may have been running, and signals coming, for a while before Popen returned."""
        self._process = process
        while self._early:
            process.send_signal(self._early.pop())

    def _handle(self, number: int, frame: object) -> None:
        self.stop_waiting = True
        if number == signal.SIGINT and _in_foreground():
            return  # the terminal has sent it to the program as well; twice would cut its clean-up short
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)


def _in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)


def _wait_for_others(folder: Path, signals: _Signals, tell: Callable[[str], None]) -> None:
    """Wait for processes that outlive the command, as in ``sh -c 'a & b'``."""
    told: list[int] = []
    pause, grace_ends = 0.01, time.monotonic() + 1.0
    # Twice, because a process in the middle of an exec shows neither environment nor memory.
    while running := _still_recording(folder) or _still_recording(folder, after=0.01):
        if signals.stop_waiting and time.monotonic() > grace_ends:
            return
        if running != told and pause >= 0.2:
            tell(f"waiting for processes it started ({', '.join(map(str, running))}); Ctrl-C ends the recording")
            told = running
        time.sleep(pause)
        pause = min(0.2, pause * 2)


def _still_recording(folder: Path, after: float = 0.0) -> list[int]:
    """After some seconds, find the processes that record into a folder.

    It is in their environment or, for those that overwrite that, mapped.
    """
    time.sleep(after)
    mark, running = os.fsencode(folder), []
    for process in Path("/proc").glob("[0-9]*"):
        for file in ("environ", "maps"):
            with contextlib.suppress(OSError):
                if mark in (process / file).read_bytes():
                    running.append(int(process.name))
                    break
    return sorted(running)


LEAST_FREE = 1 << 20
"""Bytes below which a disk is taken for full: the recorder takes its file's room in pieces."""


def _why_nothing(program: str, folder: Path) -> str:
    """Say why a program ran without the recorder, as far as its file and the disk tell."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    if shutil.disk_usage(folder).free < LEAST_FREE:
        return f"the disk that holds {folder.parent} is full; name a file on another one"
    found = shutil.which(program)
    if found is None:
        return "it could not be read"
    mode = os.stat(found).st_mode
    if mode & (stat.S_ISUID | stat.S_ISGID):
        return "it is setuid or setgid, for which Linux ignores LD_PRELOAD; run it as its owner from a plain copy"
    with contextlib.suppress(OSError, ELFError), open(found, "rb") as file:
        executable = ELFFile(file)
        if executable.elfclass != (64 if sys.maxsize > 1 << 32 else 32):
            return "it was built for another word size than the recorder"
        if not any(executable.iter_segments("PT_INTERP")):
            return "it is statically linked; link it dynamically (no -static)"
    return "it made no call, or calls an allocator linked into it; link it with the C library's malloc"


# From raw files to traces


@dataclass(frozen=True)
class _Image:
    path: Path
    header: Any
    allocations: int

    @property
    def pid(self) -> int:
        return int(self.header["pid"])

    @property
    def name_part(self) -> str:
        pid, image = self.path.stem.split(".")
        return pid if image == "0" else f"{pid}-{image}"


def _images(folder: Path) -> Iterator[_Image]:
    """Give the process images that allocated anything."""
    for path in folder.glob("*.raw"):
        if path.stat().st_size <= lib.RAW_RECORDS_AT:
            continue
        header = np.fromfile(path, _HEADER, count=1)[0]
        if header["magic"] != _MAGIC or header["record_bytes"] != _RECORD.itemsize:
            continue
        kind = np.memmap(path, _RECORD, mode="r", offset=lib.RAW_RECORDS_AT)["kind"]
        allocations = int(np.count_nonzero((kind == _MALLOC) | (kind == _CALLOC) | (kind == _END)))
        if allocations:
            yield _Image(path, header, allocations)


def _convert(image: _Image, output: Path, *, first: bool) -> Recorded:
    """Write the trace of one image."""
    records = np.fromfile(image.path, _RECORD, offset=lib.RAW_RECORDS_AT)
    records = records[records["kind"] != _EMPTY]
    # The records are in memory and the trace is much smaller than they are: on a full disk this makes the room.
    image.path.unlink()
    program = os.fsdecode(bytes(image.header["program"]))
    recording_ns = _record_ns(records) * len(records) + float(image.header["growing_ns"])
    columns, notes = _history(records)
    calls = len(columns["op"])
    beside = shortened(output.stem, ending=f".{image.name_part}{output.suffix}")
    path = output if first else output.with_name(beside)
    trace = Trace.from_columns(
        **columns,
        name=path.stem,
        metadata={
            "program": Path(program).name,
            "pointer_bytes": str(int(image.header["pointer_bytes"])),
            "recorder": f"heapwright {__version__}",
            "recording_ns_per_call": f"{recording_ns / calls:.1f}",
        },
        repair=True,
    )
    trace.write(path)
    stopped = int(image.header["stopped"])
    ended = [f"recording ended early: {os.strerror(stopped)}"] if stopped else []
    return Recorded(
        path=path,
        pid=image.pid,
        program=program,
        events=len(trace),
        threads=int(trace.tid.max()) + 1,
        requested_peak_bytes=trace.peak_live_bytes,
        live_objects_peak=trace.peak_live_objects,
        recording_ns=recording_ns,
        notes=(*notes, *trace.repairs, *ended),
    )


def _record_ns(records: NDArray[Any]) -> float:
    """Mean time to write a record; the slowest 1 % count as the 99th percentile, since a thread may lose its core."""
    sample = records["cost_ns"][records["cost_ns"] > 0]
    return float(np.minimum(sample, np.percentile(sample, 99)).mean()) if len(sample) else 0.0


def _history(records: NDArray[Any]) -> tuple[dict[str, Any], list[str]]:
    """Turn calls on addresses into calls on objects.

    A call either gives an address to an object (malloc, calloc, the end of a realloc) or takes it away (free, the
    begin of a realloc), so in the order of address, then row, the two alternate; where they do not, a call is
    missing.

    Args:
        records: the raw records in order, none empty.

    Returns:
        The columns of a trace, and notes on what was left out.
    """
    kind, begin = records["kind"].copy(), _begin_of(records)
    freed = np.flatnonzero((kind == _FREED) & (begin >= 0))
    # realloc(p, 0) released the block while it ran, so its free stands where it began.
    kind[begin[freed]] = _FREE
    giver, unseen = _givers(records["pointer"], kind)
    object_ = np.arange(len(kind))
    moved = np.flatnonzero(((kind == _END) | (kind == _FAILED)) & (begin >= 0))
    moved = moved[giver[begin[moved]] >= 0]
    object_[moved] = giver[begin[moved]]
    takes = np.flatnonzero((kind == _FREE) & (giver >= 0))
    object_[takes] = giver[takes]
    while np.any(object_[object_] != object_):
        object_ = object_[object_]

    emitted = (kind == _MALLOC) | (kind == _CALLOC) | (kind == _END)
    emitted[takes] = True
    rows = np.flatnonzero(emitted)
    op = _OF_KIND[kind[rows]]
    adopted = (op == REALLOC) & (object_[rows] == rows)
    op[adopted] = MALLOC
    rows, op, object_rows = _with_unseen_frees(rows, op, object_, unseen)

    times = np.maximum.accumulate(records["time_ns"][rows])
    size = np.where(op == FREE, 0, records["size"][rows])
    align = np.where(op == FREE, 0, records["align_log2"][rows]).astype(np.uint64)
    columns = {
        "ts_us": ((times - times[0]) // 1000).astype(np.int64),
        "tid": _ranks(records["thread"][rows]) % 65536,
        "op": op,
        "id": _ranks(object_rows),
        "size": size,
        "align": np.where(align > 0, np.uint64(1) << align, np.uint64(0)),
    }
    counts = {
        "frees of blocks allocated before the recording, left out": int(np.sum((kind == _FREE) & (giver < 0))),
        "blocks allocated before the recording, counted from their realloc": int(np.sum(adopted)),
        "frees the recorder did not see, put where the address was given out again": len(unseen),
    }
    return columns, [f"{words}: {count}" for words, count in counts.items() if count]


def _ranks(values: NDArray[Any]) -> NDArray[np.intp]:
    """Number the distinct values from 0 in their own order; linear in their largest, which is at most the rows."""
    present = np.zeros(int(values.max()) + 1, bool)
    present[values] = True
    numbers: NDArray[np.intp] = (np.cumsum(present) - 1)[values]
    return numbers


def _begin_of(records: NDArray[Any]) -> NDArray[np.intp]:
    """Row where the realloc began, for every row that completes one; -1 elsewhere."""
    begin = np.full(len(records), -1)
    rows = np.flatnonzero(records["kind"] >= _BEGIN)
    rows = rows[np.argsort(records["thread"][rows], kind="stable")]
    here, previous = rows[1:], rows[:-1]
    pairs = (records["kind"][here] > _BEGIN) & (records["kind"][previous] == _BEGIN)
    pairs &= records["thread"][here] == records["thread"][previous]
    begin[here[pairs]] = previous[pairs]
    return begin


def _givers(pointer: NDArray[np.uint64], kind: NDArray[np.uint8]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For every row that takes an address away, the row that gave it (-1: none was seen).

    Returns:
        Those rows, and pairs (n, 2) of a row that gives an address still held and the row that holds it.
    """
    takes = (kind == _FREE) | (kind == _BEGIN)
    rows = np.flatnonzero(takes | (kind == _MALLOC) | (kind == _CALLOC) | (kind == _END) | (kind == _FAILED))
    rows = rows[np.argsort(pointer[rows], kind="stable")]
    here, previous = rows[1:], rows[:-1]
    held = (pointer[here] == pointer[previous]) & ~takes[previous]
    giver = np.full(len(kind), -1)
    taken = held & takes[here]
    giver[here[taken]] = previous[taken]
    again = held & ~takes[here]
    return giver, np.stack([here[again], previous[again]], axis=1)


def _with_unseen_frees(
    rows: NDArray[np.intp], op: NDArray[np.uint8], object_: NDArray[np.intp], unseen: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.uint8], NDArray[np.intp]]:
    """Put a free before each row that gives out an address still held."""
    at = np.searchsorted(rows, unseen[:, 0])
    order = np.argsort(at, kind="stable")
    at, unseen = at[order], unseen[order]
    return (
        np.insert(rows, at, unseen[:, 0]),
        np.insert(op, at, FREE),
        np.insert(object_[rows], at, object_[unseen[:, 1]]),
    )

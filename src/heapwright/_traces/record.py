"""Record the heap calls of an unmodified Linux program: run it with the recorder preloaded, then write Parquet traces.

The recorder (``recorder/recorder.c``) leaves one raw file a process image, of which `heapwright._traces.recorded` makes
the traces.
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

from heapwright._support import parquet
from heapwright._support.errors import HeapwrightError
from heapwright._support.remote import writable
from heapwright._traces.recorded import Follow, Recorded, convert


@dataclass(frozen=True)
class Cost:
    """What recording took in processor time, from the recorder's own measurement of a sample of its records.

    It covers the time spent inside the recorder, not what its use of the caches costs the program elsewhere.

    Attributes:
        events: calls recorded, over all processes.
        ns_per_event: nanoseconds of recording a call.
        recording_seconds: their sum.
        run_seconds: wall time of the run.
        processor_seconds: processor time of all processes recorded.
        share: recording_seconds / processor_seconds.
    """

    events: int
    ns_per_event: float
    recording_seconds: float
    run_seconds: float
    processor_seconds: float
    share: float


@dataclass(frozen=True)
class Recording:
    """Result of a run: its traces (largest first), the program's exit status (negative: the signal) and the cost."""

    files: list[Recorded]
    exit_status: int
    cost: Cost


def record(
    command: Sequence[str],
    output: str | os.PathLike[str] | None = None,
    *,
    limit: int | None = None,
    follow: Follow = "each",
    sites: bool = False,
    stdout: int | None = None,
    report: Callable[[str], None] = lambda message: None,
) -> Recording:
    """Run a command, record every process it becomes or starts, and write one trace a process image.

    The image with most calls gets the name `output`, the others that name with what they were called, ``child`` or
    the title they gave themselves, and a number where that is not enough, before its suffix; more than ten others lie
    in a folder of that name, with ``.processes``. Images that allocated nothing are left out; a forked one begins with
    what it inherited. Processes that outlive the command are waited for, after a Ctrl-C for a second at most. Ctrl-C
    goes to the program; what was recorded until then is kept.

    Args:
        command: the program, found as a shell finds it, and its arguments.
        output: name of the trace; PROGRAM.parquet in the current folder if None.
        limit: calls after which the recording of a process ends, while the program goes on; none if None.
        follow: "each" process image has a trace of its own, or "one" trace holds the calls of all in the order of their
            times: threads of processes are kept apart, what a process inherits at a fork lives on in the one that
            forked it, and what it holds at its end is freed then.
        sites: record where each call was made, too: the function, and the line where the program has debug information.
        stdout: file descriptor for the program's standard output; None is this process's own.
        report: receives lines about the progress.

    Raises:
        HeapwrightError: no such command, an output folder that cannot be written, or no call was recorded (the
            message says why where it can be known).
    """
    if not command:
        raise HeapwrightError("record: no command; give one after --")
    output = Path(output) if output is not None else Path(Path(command[0]).name + ".parquet")
    with _raw_folder(output) as folder:
        status, run_seconds, processor_seconds = _run(command, folder, limit, sites, stdout, report)
        files = convert(folder, output, consume=True, follow=follow)
        if not files:
            raise HeapwrightError(f"{command[0]}: no heap call was recorded: {_why_nothing(command[0], folder)}")
    return Recording(files, status, _cost(files, run_seconds, processor_seconds))


def _cost(files: list[Recorded], run_seconds: float, waited_for_seconds: float) -> Cost:
    """The cost of recording; daemons are not waited for, but record their processor time themselves."""
    events = sum(file.events - file.inherited for file in files)
    seconds = sum(file.recording_ns for file in files) / 1e9
    by_process: dict[int, float] = {}
    for file in files:
        by_process[file.pid] = max(by_process.get(file.pid, 0.0), file.processor_seconds)
    processor_seconds = max(waited_for_seconds, sum(by_process.values()))
    return Cost(events, seconds * 1e9 / events, seconds, run_seconds, processor_seconds, seconds / processor_seconds)


# Running the program


@contextlib.contextmanager
def _raw_folder(output: Path) -> Iterator[Path]:
    """Make a folder for raw files next to the output: the trace needs room on that disk anyway.

    Servers that drop their privileges, then fork or exec, create files in it. So it is writable for all users, but lies
    in a folder that only its owner can list, under a name that only recorded processes know.
    """
    parquet.check_writable(output)
    private = Path(tempfile.mkdtemp(prefix=".heapwright-", suffix=".recording", dir=writable(output).parent)).absolute()
    try:
        private.chmod(0o711)
        folder = Path(tempfile.mkdtemp(dir=private))
        folder.chmod(0o1733)
        yield folder
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _recorder(folder: Path, name: str) -> Path:
    """Find the preload library; LD_PRELOAD splits at blanks and colons, so such a path gets a link without them."""
    native = importlib.util.find_spec("heapwright._native")
    library = Path(native.origin).with_name(name).absolute() if native and native.origin else None
    if library is None or not library.is_file():
        raise HeapwrightError(f"{name}: not built; `pip install .` builds it on Linux")
    if not any(c in str(library) for c in " :"):
        return library
    link = folder / name
    if any(c in str(link) for c in " :"):
        raise HeapwrightError(
            f"{library}: LD_PRELOAD takes no path with a blank or colon; choose another folder", parameter="output"
        )
    link.symlink_to(library)
    return link


def _run(
    command: Sequence[str],
    folder: Path,
    limit: int | None,
    sites: bool,
    stdout: int | None,
    report: Callable[[str], None],
) -> tuple[int, float, float]:
    """Run to the end; return exit status, wall seconds, processor seconds."""
    preload = [
        str(_recorder(folder, "recorder_sites.so" if sites else "recorder.so")),
        os.environ.get("LD_PRELOAD", ""),
    ]
    environment = os.environ | {"LD_PRELOAD": ":".join(filter(None, preload)), "HEAPWRIGHT_RECORD_DIR": str(folder)}
    if limit is not None:
        environment["HEAPWRIGHT_RECORD_LIMIT"] = str(limit)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with _Signals() as signals:
        try:
            process = subprocess.Popen(command, env=environment, stdout=stdout)
        except OSError as error:
            reason = "command not found" if isinstance(error, FileNotFoundError) else error.strerror
            raise HeapwrightError(f"{command[0]}: {reason}; give a program in PATH or its path") from error
        signals.pass_on_to(process)
        status = process.wait()
        _wait_for_others(folder, signals, report)
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


def _wait_for_others(folder: Path, signals: _Signals, report: Callable[[str], None]) -> None:
    """Wait for processes that outlive the command, as in ``sh -c 'a & b'``."""
    info: list[int] = []
    pause, grace_ends = 0.01, time.monotonic() + 1.0
    # Twice, because a process in the middle of an exec shows neither environment nor memory.
    while running := _still_recording(folder) or _still_recording(folder, after=0.01):
        if signals.stop_waiting and time.monotonic() > grace_ends:
            return
        if running != info and pause >= 0.2:
            report(f"waiting for processes it started ({', '.join(map(str, running))}); Ctrl-C ends the recording")
            info = running
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
"""Free bytes below which a disk counts as full: the recorder extends its file in pieces."""


def _why_nothing(program: str, folder: Path) -> str:
    """The reason why a program ran without the recorder, derived from its file and the disk."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    if shutil.disk_usage(folder).free < LEAST_FREE:
        return f"the disk that holds {folder.parent.parent} is full; name a file on another one"
    result = shutil.which(program)
    if result is None:
        return "it could not be read"
    mode = os.stat(result).st_mode
    if mode & (stat.S_ISUID | stat.S_ISGID):
        return "it is setuid or setgid, for which Linux ignores LD_PRELOAD; run it as its owner from a plain copy"
    with contextlib.suppress(OSError, ELFError), open(result, "rb") as file:
        executable = ELFFile(file)
        if executable.elfclass != (64 if sys.maxsize > 1 << 32 else 32):
            return "it was built for another word size than the recorder"
        if not any(executable.iter_segments("PT_INTERP")):
            return "it is statically linked; link it dynamically (no -static), or the recorder into it"
    return "it made no call, or calls an allocator linked into it; link it with the C library's malloc"

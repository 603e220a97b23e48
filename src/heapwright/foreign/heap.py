"""Foreign heaps: somebody else's allocator, built as its adapter says and run on traces in a process of its own.

`foreign_driver.c` is that process. It replays a trace once with every object filled and checked, or several times for
time; whatever the heap does to it (crash, hang, exit) ends there and becomes a `ForeignHeapError` with the reason.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from heapwright.errors import HeapwrightError
from heapwright.foreign.adapter import BYTES, Adapter, WordSize
from heapwright.foreign.source import calls, interface
from heapwright.host.timing import Bench, Program, find_compiler
from heapwright.replay.metrics import METRICS, Value
from heapwright.replay.safe import SafeArena, search
from heapwright.replay.smallest import fit_steps, smallest_arena
from heapwright.traces.validation import FREE, OP_NAMES

if TYPE_CHECKING:
    from heapwright.recipes.recipe import Recipe
    from heapwright.traces.trace import Trace

FLAGS = ("-std=gnu11", "-O2", "-w", "-fno-pie", "-no-pie", "-fno-builtin-malloc", "-fno-builtin-calloc")
"""Without the last two the compiler may turn a heap's own calloc into a call of itself."""

DRIVER = Path(__file__).with_name("driver.c")
LEAST_AMPLE = 1 << 16
COMPILED_STEPS = 32
"""Fineness of the search for the smallest arena of a heap that is compiled anew for each size, see `smallest_arena`."""
SAFE_TRIES, COMPILED_SAFE_TRIES = 64, 16
SECONDS, SECONDS_A_CALL = 60.0, 1e-4
"""How long a replay may take by default: so much, and so much more for each call."""

_RESULT = struct.Struct("=8Q2d")
_UNKNOWN = 2**64 - 1
_STARTING, _INITIALISING, _REPLAYING, _DONE = range(4)
_FAULTS = {
    1: "corrupted an object (found in {call})",
    2: "returned a pointer that is not aligned to {align} bytes in {call}",
    3: "returned memory outside its arena in {call}",
    4: "wrote behind the end of its arena",
    5: "refused an arena of {bytes:,} bytes",
}
_REFUSED_ARENA = 5


class ForeignHeapError(HeapwrightError):
    """A foreign heap crashed, hung, or broke its promise on a trace: costs its own row of a table, nothing else."""


class _RefusedArenaError(ForeignHeapError):
    """The heap cannot start in so small an arena."""


@dataclass(frozen=True)
class Run:
    """What one replay of a foreign heap found; bytes, and requests for `failed`."""

    arena: int | None
    failed: int
    requested_bytes: int
    admitted_bytes: int
    requested_peak: int
    footprint: int | None
    mean_requested: float


@dataclass(eq=False)
class ForeignHeap:
    """An allocator that its adapter knows how to build and to call.

    Attributes:
        adapter: how.
        root: folder that the adapter's paths are relative to.
        label: what messages call it.
        sources: the C files, in the order in which they are compiled as one.
        library: path or soname of a shared object; empty where there are sources, or for the C library.
        word_size: 32 or 64, bits of a pointer.
        front: a recipe that is asked first; what it refuses goes to the allocator.
    """

    adapter: Adapter
    root: Path
    label: str
    sources: tuple[Path, ...] = ()
    library: str = ""
    word_size: WordSize = 32
    front: Recipe | None = None
    _programs: dict[int | None, Path] = field(default_factory=dict, init=False, repr=False)

    @property
    def align(self) -> int:
        """Bytes that every address is a multiple of, as the adapter promises."""
        own = self.adapter.align or self.word_size // 8
        return own if self.front is None else min(own, self.front.align)

    @property
    def unit(self) -> int:
        """Bytes that sizes of arenas are multiples of."""
        return self.adapter.unit or self.align

    @property
    def has_arena(self) -> bool:
        """Whether the heap lives in an arena, rather than on memory that it gets from the system."""
        return self.adapter.style == "arena"

    # ---- building --------------------------------------------------------------------------------------------------

    @cached_property
    def _folder(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="heapwright-foreign-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    @cached_property
    def _compiler(self) -> list[str]:
        compiler = [find_compiler("a foreign heap"), f"-m{self.word_size}"]
        probe = self._folder / "probe.c"
        probe.write_text("int main(void) { return 0; }\n")
        done = _quiet([*compiler, str(probe), "-o", str(self._folder / "probe")])
        if done.returncode:
            raise HeapwrightError(
                f"{self.label}: {compiler[0]} cannot build {self.word_size}-bit programs here; "
                + ("install gcc-multilib, or build for 64 bits" if self.word_size == 32 else "try 32"),
                parameter="word_size",
            )
        return compiler

    @cached_property
    def _driver(self) -> Path:
        """The compiled driver, which knows what calls there are but not what they do."""
        adapter = self.adapter if self.front is None else self.adapter.model_copy(update={"calloc": ""})
        (self._folder / "foreign_heap.h").write_text(interface(adapter, self.align))
        driver = self._folder / "driver.o"
        self._compile(["-c", str(DRIVER), f"-I{self._folder}", "-o", str(driver)])
        return driver

    def program(self, arena: int | None = None) -> Path:
        """The program for arenas of so many bytes, which only matters where the heap is compiled for its size."""
        key = arena if self.adapter.is_sized else None
        if key not in self._programs:
            self._programs[key] = self._build(key)
        return self._programs[key]

    def _build(self, arena: int | None) -> Path:
        adapter, folder = self.adapter, self._folder
        for name, text in adapter.headers.items():
            path = folder / "headers" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        heap = folder / "heap.c"
        heap.write_text(calls(adapter, self.sources, self.front))
        program = folder / f"heap-{arena or 'any'}"
        values = {name: str(value).replace(BYTES, str(arena)) for name, value in adapter.defines.items()}
        command = [
            *adapter.flags,
            *(f"-D{name}={value}" for name, value in values.items()),
            f"-I{folder / 'headers'}",
            *(f"-I{self.root / include}" for include in ("", *adapter.include_dirs)),
            *(f"-I{source.parent}" for source in self.sources),
            str(heap),
            *self._front_sources(),
            str(self._driver),
            *self._library_arguments(),
        ]
        self._compile([*command, "-o", str(program)])
        return program

    def _front_sources(self) -> list[str]:
        """The generated code of the recipe in front, if there is one."""
        if self.front is None:
            return []
        from heapwright.generate import generate

        generate(self.front, self._folder / "headers", "front")
        return [str(self._folder / "headers" / "front_heap.c")]

    def _library_arguments(self) -> list[str]:
        if not self.library:
            return []
        if "/" in self.library:
            path = Path(self.library)
            return [str(path), f"-Wl,-rpath,{path.parent}"]
        found = _quiet([*self._compiler, f"-print-file-name={self.library}"]).stdout.strip()
        if "/" not in found:
            package = self.adapter.package
            raise HeapwrightError(
                f"{self.label}: {self.library} is not installed for {self.word_size}-bit programs"
                + (f"; install Debian's {package}" if package else "")
            )
        return [f"-l:{self.library}"]

    def _compile(self, arguments: Sequence[str]) -> None:
        command = [*self._compiler, *FLAGS, *arguments]
        done = _quiet(command)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
            problem = (lines or done.stderr.splitlines() or [f"exit code {done.returncode}"])[0].strip()
            raise HeapwrightError(f"{self.label}: cannot be built: {problem[:300]}")

    # ---- running ---------------------------------------------------------------------------------------------------

    def run(
        self,
        trace: Trace,
        arena: int | None,
        addresses: Path | None = None,
        mode: Literal["replay", "serves"] = "replay",
    ) -> Run:
        """Replay once, checked, in an arena of so many bytes; "serves" ends at the first refusal.

        Raises ForeignHeapError.
        """
        program = self.program(arena)
        result = self._folder / "result"
        result.write_bytes(bytes(_RESULT.size))
        command = [str(program), str(_calls_file(trace)), mode, str(arena or 0), str(result)]
        command += [str(addresses)] if addresses else []
        ended = self._finish(command, trace)
        fields = _RESULT.unpack(result.read_bytes())
        stage, at, fault = fields[:3]
        if fault:
            what = _FAULTS[fault].format(call=_describe(trace, at), align=self.align, bytes=arena or 0)
            raise (_RefusedArenaError if fault == _REFUSED_ARENA else ForeignHeapError)(f"{self.label}: {what}")
        if stage != _DONE:
            where = {_STARTING: "before the first call", _INITIALISING: "while it was initialised"}
            raise ForeignHeapError(
                f"{self.label}: {ended[0]} {where.get(stage, f'in {_describe(trace, at)}')}{ended[1]}"
            )
        failed, requested, admitted, peak, footprint = fields[3:8]
        weighted, weight = fields[8:]
        mean = weighted / weight if weight else 0.0
        known = None if footprint == _UNKNOWN else -(-footprint // self.unit) * self.unit
        return Run(arena, failed, requested, admitted, peak, known, mean)

    def _finish(self, command: Sequence[str], trace: Trace) -> tuple[str, str]:
        """Run the driver to its end: how it ended in words, and what it said last."""
        limit = self._time_limit(trace)
        with (self._folder / "said").open("w+b") as said:
            try:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    timeout=limit,
                    check=False,
                )
                how = _ending(done.returncode)
            except subprocess.TimeoutExpired:
                how = f"gave no answer within {limit:.3g} s,"
            said.seek(0)
            words = said.read(2000).decode(errors="replace").strip().splitlines()
        return how, f": {words[-1].strip()[:200]}" if words else ""

    def _time_limit(self, trace: Trace) -> float:
        return self.adapter.time_limit or SECONDS + SECONDS_A_CALL * len(trace)

    def ample_run(self, trace: Trace) -> Run:
        """Replay in an arena that is large enough to refuse nothing, if one up to the adapter's limit is.

        Starts with four times what any allocator needs. Raises ForeignHeapError.
        """
        if not self.has_arena:
            return self.run(trace, None)
        most = self.adapter.max_arena // self.unit * self.unit
        least = max(LEAST_AMPLE, self.adapter.min_arena, 4 * trace.lower_bound(self.align))
        bytes_ = min(1 << (least - 1).bit_length(), most)
        found = self.run(trace, bytes_)
        while found.failed and bytes_ < most:
            bytes_ = min(4 * bytes_, most)
            larger = self.run(trace, bytes_)
            if larger.failed >= found.failed:
                break
            found = larger
        return found

    def smallest_arena(self, trace: Trace, ample: Run, step: int | None = None) -> int | None:
        """Smallest arena in bytes that serves the whole trace, found as for a recipe; None where none does.

        `ample` is the run of `ample_run`; `step` rounds up to a multiple. Which arenas are too small may show in a
        refused request, a refused arena or a crash: all count as not served.
        """
        if not self.has_arena or ample.failed or ample.arena is None:
            return None

        low = max(trace.lower_bound(self.align), self.adapter.min_arena)
        steps = COMPILED_STEPS if self.adapter.array else fit_steps(trace)
        return smallest_arena(self._serves(trace), low, ample.footprint or low, step or self.unit, ample.arena, steps)

    def _serves(self, trace: Trace) -> Callable[[int], bool]:
        def serves(size: int) -> bool:
            try:
                return not self.run(trace, size, mode="serves").failed
            except ForeignHeapError:
                return False

        return serves

    # ---- what a caller asks for ------------------------------------------------------------------------------------

    def replay(self, trace: Trace, *, arena: int | None = None, fit: bool = False) -> dict[str, Value]:
        """Run the trace and return every metric of `heapwright.replay.metrics.METRICS`, None where unknown.

        Args:
            trace: the calls.
            arena: bytes of the arena, None for ample; without effect for a heap that gets its memory from the system.
            fit: also find `smallest_arena_bytes`, where the heap has an arena.

        Every object is filled, and checked before it is freed or resized, and at the end. Raises ForeignHeapError where
        the heap fails, HeapwrightError where it cannot be built.
        """
        bounded = arena is not None and self.has_arena
        run = self.run(trace, arena) if bounded else self.ample_run(trace)
        metrics = _metrics(trace, self, run, arena if bounded else None)
        if fit:
            metrics["smallest_arena_bytes"] = self.smallest_arena(trace, self.ample_run(trace) if bounded else run)
        return metrics

    def fit(self, trace: Trace, *, step: int | None = None) -> int | None:
        """Smallest arena in bytes that serves the whole trace; None where none does, or the heap has no arena.

        Raises ForeignHeapError where the heap fails even in an ample arena, HeapwrightError where it cannot be built.
        """
        return self.smallest_arena(trace, self.ample_run(trace), step)

    def safe_arena(self, trace: Trace, *, step: int | None = None) -> SafeArena | None:
        """The least arena such that it and every larger one tried serve the whole trace; None as for `fit`.

        Each arena is a run of a process, or even a compile, so `SAFE_TRIES` or `COMPILED_SAFE_TRIES` are tried.
        """
        ample = self.ample_run(trace)
        smallest = self.smallest_arena(trace, ample, step)
        if smallest is None:
            return None
        tries = COMPILED_SAFE_TRIES if self.adapter.is_sized else SAFE_TRIES
        return search(self._serves(trace), smallest, step or self.unit, self.adapter.max_arena, tries)

    @property
    def reach_bytes(self) -> int | None:
        """None: nobody knows how far somebody else's headers and links reach."""
        return None

    def timed_program(self, bench: Bench, trace: Trace, arena: int | None = None) -> Program:
        """The program that `bench` times, in an arena of so many bytes; None is ample.

        Replays once before, so that a heap which fails does so here. Raises ForeignHeapError.
        """
        run = self.run(trace, arena) if arena is not None and self.has_arena else self.ample_run(trace)
        return Program(self.program(run.arena), (str(run.arena or 0),), time_limit=self._time_limit(trace))


# ---- addresses and metrics -----------------------------------------------------------------------------------------


def addresses(trace: Trace, heap: ForeignHeap, arena: int) -> NDArray[np.int64]:
    """Where each call's object lies: its payload's offset from the start of the arena; -1 where there is none.

    Returns int64, one a call: frees and refused requests have none. Raises as `replay` does.
    """
    path = heap._folder / "addresses"
    np.full(len(trace), -1, np.int64).tofile(path)
    heap.run(trace, arena, path)
    return np.fromfile(path, np.int64)


def _metrics(trace: Trace, heap: ForeignHeap, run: Run, arena: int | None) -> dict[str, Value]:
    space = arena if arena is not None else run.footprint
    known: dict[str, Value] = {
        "requested_peak_bytes": run.requested_peak,
        "footprint_bytes": run.footprint,
        "failed": run.failed,
        "admitted_fraction": run.admitted_bytes / run.requested_bytes if run.requested_bytes else None,
        "utilisation": run.mean_requested / space if space else None,
        "lower_bound_bytes": trace.lower_bound(heap.align),
    }
    return {key: known.get(key) for key in METRICS}


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended the process (exit code {code})"
    try:
        return f"crashed ({signal.Signals(-code).name})"
    except ValueError:
        return f"crashed (signal {-code})"


def _describe(trace: Trace, index: int) -> str:
    """A call for a person, as in "call 17 (malloc of 24 bytes)"; calls are counted from 0."""
    op = int(trace.op[index])
    return f"call {index} ({OP_NAMES[op]}" + ("" if op == FREE else f" of {int(trace.size[index]):,} bytes") + ")"


def _quiet(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


# ---- the trace's file ----------------------------------------------------------------------------------------------

_files: weakref.WeakKeyDictionary[Trace, Path] = weakref.WeakKeyDictionary()


def _calls_file(trace: Trace) -> Path:
    """The calls as the driver reads them, each with its weight: microseconds until the next, or 1 without times."""
    if trace not in _files:
        handle, name = tempfile.mkstemp(prefix="heapwright-", suffix=".calls")
        path = _files[trace] = Path(name)
        weakref.finalize(trace, path.unlink, missing_ok=True)
        slots, records = trace.calls.slots, trace.calls.records()
        with os.fdopen(handle, "wb") as file:
            np.array([len(trace), slots], np.uint32).tofile(file)
            records.tofile(file)
            _weights(trace).tofile(file)
    return _files[trace]


def _weights(trace: Trace) -> NDArray[np.int64]:
    times = trace.ts_us
    if not ((times >= 0).all() and times[-1] > times[0]):
        return np.ones(len(trace), np.int64)
    return np.append(np.diff(times), 0).astype(np.int64)


# ---- the C that is written for an adapter --------------------------------------------------------------------------

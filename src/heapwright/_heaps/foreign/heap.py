"""Foreign heaps: third-party allocators, built as their adapters say and run on traces in a process of their own.

`driver.c` is that process. It replays a trace once with every object filled and checked, or several times for
time; any misbehaviour of the heap (crash, hang, exit) ends there and becomes a `ForeignHeapError` with the reason.
"""

from __future__ import annotations

import math
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from heapwright._heaps.foreign.adapter import Adapter, WordSize
from heapwright._heaps.foreign.build import DRIVER, build, library_arguments
from heapwright._heaps.foreign.source import BEHIND, BEHIND_TEXT, FRONT, defines, heap_source
from heapwright._measure.host.calls import STDIN, calls_file
from heapwright._measure.host.timing import Bench, TimedProgram
from heapwright._recipes.geometry import round_up
from heapwright._recipes.kinds.bounds import WorstCase
from heapwright._recipes.policy import policy_struct
from heapwright._replay.arena_sizes import fit_steps, smallest_arena
from heapwright._replay.metrics import METRICS, Value
from heapwright._replay.monotone_minimum import SafeArena, search
from heapwright._replay.reach import UNKNOWN, Reach
from heapwright._support.errors import ForeignHeapError
from heapwright._support.subprocesses import run_tool
from heapwright._support.temporary import folder_for
from heapwright._traces.validation import FREE, OP_NAMES

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

LEAST_AMPLE = 1 << 16
COMPILED_STEPS = 32
"""Fineness of the search for the smallest arena of a heap that is compiled for each size, see `smallest_arena`."""
SAFE_TRIES, COMPILED_SAFE_TRIES = 64, 16
ENOUGH_TRIES = ENOUGH_STEPS = 16
"""The same for a copy of a trace, and how finely an arena is looked for above one that does not serve it."""
SECONDS, SECONDS_A_CALL = 60.0, 1e-4
"""Default time limit of a replay, in seconds: a fixed part, and a part for each call."""
PATIENCE = 20
"""An arena also counts as too small if the replay takes this many times as long as in an ample one, and a second."""

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


class _RefusedArenaError(ForeignHeapError):
    """The heap cannot start in so small an arena."""


@dataclass(frozen=True)
class ForeignRun:
    """What one replay of a foreign heap found; bytes, requests for `failed`, and what it took."""

    arena: int | None
    failed: int
    requested_bytes: int
    admitted_bytes: int
    requested_peak: int
    footprint: int | None
    mean_requested: float
    seconds: float


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
        front: a recipe that gets each request first; what it refuses goes to the allocator. Arenas are for both.
    """

    adapter: Adapter
    root: Path
    label: str
    sources: tuple[Path, ...] = ()
    library: str = ""
    word_size: WordSize = 32
    front: Recipe | None = None
    _programs: dict[tuple[str, ...], Path] = field(default_factory=dict, init=False, repr=False)
    _ample: WeakKeyDictionary[Trace, ForeignRun] = field(default_factory=WeakKeyDictionary, init=False, repr=False)
    _served: WeakKeyDictionary[Trace, dict[int, bool]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    @property
    def align(self) -> int:
        """Bytes that every address is a multiple of, as the adapter promises."""
        own = self.adapter.align or self.word_size // 8
        return own if self.front is None else min(own, self.front.align)

    @property
    def unit(self) -> int:
        """Bytes that sizes of arenas are multiples of."""
        return self.adapter.unit or self.align

    @cached_property
    def front_bytes(self) -> int:
        """Bytes of an arena that the recipe in front takes: its control data and regions, up to a whole unit."""
        return 0 if self.front is None else round_up(int(policy_struct(self.front).fixed_end), self.unit)

    @property
    def _max_arena(self) -> int:
        return self.front_bytes + self.adapter.max_arena

    @property
    def has_arena(self) -> bool:
        """Whether the heap lives in an arena, rather than on memory that it gets from the system."""
        return self.adapter.style == "arena"

    # ---- building --------------------------------------------------------------------------------------------------

    @cached_property
    def _folder(self) -> Path:
        return folder_for(self, "foreign")

    def program(self, arena: int | None = None) -> Path:
        """The program for arenas of this many bytes, which only matters if the adapter's macros depend on it.

        Raises ForeignHeapError where it cannot be built.
        """
        return self._program(arena, DRIVER)

    def attack_program(self, arena: int | None = None) -> Path:
        """The program (`program`) around the driver that injects faults, `assure/attack/on_host.c`."""
        from heapwright._assure.attack.on_host import DRIVER as ATTACK

        return self._program(arena, ATTACK)

    def _program(self, arena: int | None, driver: Path) -> Path:
        behind = self.behind_front(arena)
        macros = tuple(f"-D{name}={value}" for name, value in defines(self.adapter, behind).items())
        key = (str(driver), *macros)
        if key not in self._programs:
            try:
                self._programs[key] = self._build(macros, driver)
            except ForeignHeapError as error:
                raise ForeignHeapError(f"{self.label}: {error}", parameter=error.parameter) from None
        return self._programs[key]

    def behind_front(self, arena: int | None) -> int | None:
        """What the recipe in front leaves of an arena. Raises ForeignHeapError where that is nothing."""
        if arena is None or arena > self.front_bytes:
            return arena and arena - self.front_bytes
        raise _RefusedArenaError(
            f"{self.label}: the recipe in front needs {self.front_bytes:,} bytes of the arena of {arena:,}, and the "
            "heap behind it the rest"
        )

    def _build(self, macros: Sequence[str], driver: Path) -> Path:
        folder, headers = self._folder, self._folder / "headers"
        for name, text in self.adapter.headers.items():
            path = headers / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        heap = folder / "heap.c"
        heap.write_text(heap_source(self.adapter, self.sources, self.front is not None, self.align))
        arguments = [
            *self.adapter.flags,
            *macros,
            f"-I{headers}",
            *(f"-I{self.root / include}" for include in ("", *self.adapter.include_dirs)),
            *(f"-I{source.parent}" for source in self.sources),
            str(heap),
            *self._front_arguments(headers),
            *(library_arguments(self.library, self.adapter, self.word_size) if self.library else ()),
        ]
        program = folder / f"heap-{len(self._programs)}"
        build(program, arguments, self.word_size, driver)
        return program

    def _front_arguments(self, headers: Path) -> list[str]:
        """The generated code of the recipe in front, if there is one; its alignment is the trace's affair."""
        if self.front is None:
            return []
        from heapwright._generate.emit import align_unchecked, generate

        generate(self.front, headers, FRONT, behind="malloc")
        (headers / BEHIND).write_text(BEHIND_TEXT)
        sources = [str(headers / f"{FRONT}_{part}.c") for part in ("heap", "behind")]
        return [f"-D{align_unchecked(FRONT)}", f'-DFRONT_HOOKS="{BEHIND}"', "-pthread", *sources]

    # ---- running ---------------------------------------------------------------------------------------------------

    def run(self, trace: Trace, arena: int | None, addresses: Path | None = None) -> ForeignRun:
        """Replay once, checked, in an arena of this many bytes. Raises ForeignHeapError."""
        return self._run(trace, arena, "replay", *([str(addresses)] if addresses else []))

    def _run(self, trace: Trace, arena: int | None, mode: str, *more: str) -> ForeignRun:
        """Run the driver, see there, and read what it found."""
        program = self.program(arena)
        result = self._folder / "result"
        result.write_bytes(bytes(_RESULT.size))
        start = time.perf_counter()
        behind = self.behind_front(arena) or 0
        ended = self._finish([str(program), STDIN, mode, str(behind), str(result), *more], trace)
        seconds = time.perf_counter() - start
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
        known = None if footprint == _UNKNOWN else round_up(footprint, self.unit) + self.front_bytes
        return ForeignRun(arena, failed, requested, admitted, peak, known, mean, seconds)

    def _finish(self, command: Sequence[str], trace: Trace) -> tuple[str, str]:
        """Run the driver to its end: how it ended in words, and what it said last."""
        limit = self._time_limit(trace)
        with (self._folder / "said").open("w+b") as said:
            try:
                done = run_tool(command, timeout=limit, stdin=calls_file(trace), stdout=subprocess.DEVNULL, stderr=said)
                how = _ending(done.returncode)
            except subprocess.TimeoutExpired:
                how = f"gave no answer within {limit:.3g} s,"
            said.seek(0)
            words = said.read(2000).decode(errors="replace").strip().splitlines()
        return how, f": {words[-1].strip()[:200]}" if words else ""

    def _time_limit(self, trace: Trace) -> float:
        return self.adapter.time_limit or SECONDS + SECONDS_A_CALL * len(trace)

    def ample_run(self, trace: Trace) -> ForeignRun:
        """Replay in an arena that is large enough to refuse nothing, if one up to the adapter's limit is.

        Starts with four times what any allocator needs. It is done once a trace. Raises ForeignHeapError.
        """
        if trace not in self._ample:
            self._ample[trace] = self._find_ample(trace) if self.has_arena else self.run(trace, None)
        return self._ample[trace]

    def _find_ample(self, trace: Trace) -> ForeignRun:
        most = self._max_arena // self.unit * self.unit
        least = self.front_bytes + max(LEAST_AMPLE, self.adapter.min_arena, 4 * trace.lower_bound(self.align))
        bytes_ = min(1 << (least - 1).bit_length(), most)
        result = self.run(trace, bytes_)
        while result.failed and bytes_ < most:
            bytes_ = min(4 * bytes_, most)
            larger = self.run(trace, bytes_)
            if larger.failed >= result.failed:
                break
            result = larger
        return result

    def _server(self, trace: Trace) -> Callable[[int], bool]:
        """A function that returns whether an arena of a size serves the trace; it tries each once, for a limited time.

        That one does not may show in a refused request, a refused arena, a crash, or in that it does not compile.
        """
        seconds = 1 + math.ceil(PATIENCE * self.ample_run(trace).seconds)
        result = self._served.setdefault(trace, {})

        def serves(arena: int) -> bool:
            if arena not in result:
                try:
                    result[arena] = not self._run(trace, arena, "serves", str(seconds)).failed
                except ForeignHeapError:
                    result[arena] = False
            return result[arena]

        return serves

    # ---- what a caller asks for ------------------------------------------------------------------------------------

    def replay(self, trace: Trace, *, arena: int | None = None, fit: bool = False) -> dict[str, Value]:
        """Run the trace and return every metric of `heapwright._replay.metrics.METRICS`, None where unknown.

        Args:
            trace: the calls.
            arena: bytes of the arena, None for ample; without effect for a heap that gets its memory from the system.
            fit: also find `smallest_arena_bytes`, where the heap has an arena.

        Every object is filled, and checked before it is freed or resized, and at the end. Raises ForeignHeapError where
        the heap cannot be built, or fails.
        """
        bounded = arena is not None and self.has_arena
        run = self.run(trace, arena) if bounded else self.ample_run(trace)
        metrics = _metrics(trace, self, run, arena if bounded else None)
        if fit:
            metrics["smallest_arena_bytes"] = self.fit(trace)
        return metrics

    def fit(self, trace: Trace, *, step: int | None = None) -> int | None:
        """Smallest arena in bytes that serves the whole trace; None where none does, or the heap has no arena.

        It is found as for a recipe; `step` rounds up to a multiple. Raises ForeignHeapError where the heap cannot be
        built, or fails even in an ample arena.
        """
        ample = self.ample_run(trace)
        if ample.failed or ample.arena is None:
            return None
        low = max(trace.lower_bound(self.align), self.front_bytes + self.adapter.min_arena)
        steps = COMPILED_STEPS if self.adapter.is_sized else fit_steps(trace)
        guess = ample.footprint or low
        return smallest_arena(self._server(trace), low, guess, step or self.unit, ample.arena, steps)

    def safe_arena(self, trace: Trace, *, step: int | None = None) -> SafeArena | None:
        """The least arena such that it and every larger one tried serve the whole trace; None as for `fit`.

        Each arena is a run of a process, or even a compile, so `SAFE_TRIES` or `COMPILED_SAFE_TRIES` are tried.
        """
        smallest = self.fit(trace, step=step)
        if smallest is None:
            return None
        tries = COMPILED_SAFE_TRIES if self.adapter.is_sized else SAFE_TRIES
        return search(self._server(trace), smallest, step or self.unit, self._max_arena, tries)

    def enough_arena(self, trace: Trace, *, step: int | None = None) -> int | None:
        """An arena from which on every one tried serves the whole trace, found in few runs; None where none does.

        The least from the footprint in an ample arena on such that `ENOUGH_TRIES` larger ones serve, too. For a heap
        without an arena what it took of the system, and the recipe in front of it.
        """
        ample = self.ample_run(trace)
        if ample.failed or ample.arena is None:
            return None if ample.failed else ample.footprint
        serves, unit = self._server(trace), step or self.unit
        low = max(ample.footprint or 0, trace.lower_bound(self.align), self.front_bytes + self.adapter.min_arena)
        served = smallest_arena(serves, low, low, unit, ample.arena, ENOUGH_STEPS)
        return search(serves, served, unit, self._max_arena, ENOUGH_TRIES).bytes

    def worst_case(self, trace: Trace) -> WorstCase | None:
        """None: a third-party heap publishes no rules from which a bound follows."""
        return None

    @property
    def reach(self) -> Reach:
        """Unknown: a third-party heap does not publish how far its headers and links reach."""
        return UNKNOWN

    def timed_program(self, bench: Bench, trace: Trace, arena: int | None = None) -> TimedProgram:
        """The program that `bench` times, in an arena of that many bytes; None is ample.

        Replays once before, so that a heap which fails does so here. Raises ForeignHeapError.
        """
        run = self.run(trace, arena) if arena is not None and self.has_arena else self.ample_run(trace)
        behind = str(self.behind_front(run.arena) or 0)
        return TimedProgram(self.program(run.arena), (behind,), time_limit=self._time_limit(trace))


# ---- addresses and metrics -----------------------------------------------------------------------------------------


def addresses(trace: Trace, heap: ForeignHeap, arena: int | None = None) -> NDArray[np.int64]:
    """Where each call's object lies: its payload's offset from the start of the arena; -1 where there is none.

    Returns int64, one a call: frees and refused requests have none, nor have objects in a recipe in front. For a heap
    without an arena the addresses themselves. Raises as `replay` does.
    """
    path = heap._folder / "addresses"
    np.full(len(trace), -1, np.int64).tofile(path)
    heap.run(trace, arena, path)
    return np.fromfile(path, np.int64)


def _metrics(trace: Trace, heap: ForeignHeap, run: ForeignRun, arena: int | None) -> dict[str, Value]:
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

"""Host time of an allocator on a trace: the specialised code, compiled and run, in CPU time.

Heaps that are to be compared are compiled first and then run in turn, a few passes each, round after round, so that
what disturbs the machine disturbs them all; what counts is the median of a heap's passes.
"""

from __future__ import annotations

import hashlib
import os
import platform
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heapwright._measure.host.calls import STDIN, calls_file
from heapwright._support.errors import ForeignHeapError, HeapwrightError
from heapwright._support.subprocesses import find_compiler, run_tool
from heapwright._support.temporary import temporary_folder

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

ROUNDS, PASSES = 5, 3
"""Rounds over all heaps, and passes of a heap in each round."""

TICKS = "-DTICKS"
"""Compiles a driver that counts each call's ticks, on x86 alone (`has_ticks`)."""

TICK_PASSES = 9

FLAGS = ("-std=c11", "-O2", "-w")
DRIVER = Path(__file__).with_name("driver.c")


@dataclass(frozen=True)
class TimedProgram:
    """A compiled driver: its command up to the calls, what follows the number of passes, and its environment.

    `time_limit` is in seconds for all passes of a round together; None is none.
    """

    path: Path
    arguments: tuple[str, ...] = ()
    preload: str | None = None
    time_limit: float | None = None


def has_ticks() -> bool:
    """Whether this machine has the time-stamp counter that `Bench.ticks` reads: whether it is an x86."""
    return platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")


class ProgramError(HeapwrightError):
    """A compiled driver failed; `program` is its name among those that were measured."""

    def __init__(self, program: str, problem: str) -> None:
        super().__init__(f"{program}: {problem}")
        self.program = program


class Bench:
    """A folder of compiled drivers; use it in a `with` statement."""

    def __init__(self, compiler: str | None = None, flags: Sequence[str] | None = None) -> None:
        self.compiler = compiler or find_compiler("host time")
        self.flags = tuple(FLAGS if flags is None else flags)

    def __enter__(self) -> Bench:
        self._folder = temporary_folder("timing")
        self.folder = self._folder.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._folder.__exit__(*exception)

    def generated(self, recipe: Recipe, *defines: str) -> TimedProgram:
        """The driver around the recipe's generated code, compiled as a separate file, as firmware would."""
        from heapwright._generate.emit import align_unchecked, generate
        from heapwright._recipes.policy import policy, require_no_sites

        require_no_sites(recipe)
        folder = self.folder / f"generated-{recipe.hash}"
        if not folder.exists():
            generate(recipe, folder, "timed")
        arena = min(int(policy(recipe)["reach"]), 1 << 31)
        words = recipe.pools[0].reference_words
        drive = f"-DDRIVE_HANDLES={words}" if words else "-DDRIVE_GENERATED"
        arguments = [drive, *defines, f"-D{align_unchecked('timed')}", f"-I{folder}"]
        program = self._compile(folder / "driver", arguments, folder / "timed_heap.c")
        return TimedProgram(program, (str(arena),))

    def with_policy(self, recipe: Recipe, *defines: str) -> TimedProgram:
        """The driver around the core as it is, which reads the recipe's policy at run time."""
        from heapwright._generate.core import core_directory
        from heapwright._recipes.policy import policy_struct, require_no_sites, whole_bytes

        require_no_sites(recipe)
        struct = policy_struct(recipe)
        path = self.folder / f"policy-{recipe.hash}.bin"
        path.write_bytes(whole_bytes(struct))
        program = self._compile(self.folder / "policy-driver", ["-DDRIVE_POLICY", *defines, f"-I{core_directory()}"])
        return TimedProgram(program, (str(min(int(struct.reach), 1 << 31)), str(path)))

    def library(self, preload: str | None = None, *defines: str) -> TimedProgram:
        """The driver around the C library's heap, or the shared object preloaded in its place."""
        return TimedProgram(self._compile(self.folder / "library-driver", list(defines)), (), preload)

    def _compile(self, program: Path, arguments: list[str], *sources: Path) -> Path:
        variant = hashlib.sha256(repr((arguments, self.flags)).encode()).hexdigest()[:8]
        program = program.with_name(f"{program.name}-{variant}")
        if not program.exists():
            command = [
                self.compiler,
                *self.flags,
                "-pthread",
                *arguments,
                str(DRIVER),
                *map(str, sources),
                "-o",
                str(program),
            ]
            done = run_tool(command, self.folder, text=True)
            if done.returncode:
                raise HeapwrightError(f"{self.compiler} cannot compile the timing driver: {done.stderr.strip()[:500]}")
        return program

    def measure(
        self, programs: Mapping[str, TimedProgram], trace: Trace, rounds: int = ROUNDS, passes: int = PASSES
    ) -> dict[str, float]:
        """Median nanoseconds of CPU time a call, by program, over interleaved rounds. Raises ProgramError."""
        times: dict[str, list[int]] = {name: [] for name in programs}
        for _ in range(rounds):
            for name, program in programs.items():
                times[name] += [int(line) for line in self._output(name, program, trace, passes).split()]
        return {name: statistics.median(result) / max(len(trace), 1) for name, result in times.items()}

    def ticks(
        self, programs: Mapping[str, TimedProgram], trace: Trace, passes: int = TICK_PASSES
    ) -> dict[str, NDArray[np.float64]]:
        """Ticks of the processor's time-stamp counter in each call: float64[calls] by program, the median over passes.

        The programs are compiled with TICKS among their defines. What counting takes is taken off. Raises ProgramError.
        """
        results = {}
        for name, program in programs.items():
            counted = np.frombuffer(self._output(name, program, trace, passes), np.uint32)
            results[name] = np.median(counted.reshape(passes, len(trace)), axis=0)
        return results

    def _output(self, name: str, program: TimedProgram, trace: Trace, passes: int) -> bytes:
        environment = {**os.environ, "LD_PRELOAD": program.preload} if program.preload else None
        command = [str(program.path), STDIN, str(passes), *program.arguments]
        try:
            done = run_tool(command, timeout=program.time_limit, env=environment, stdin=calls_file(trace))
        except subprocess.TimeoutExpired:
            raise ProgramError(name, f"gave no answer within {program.time_limit:.3g} s, while it was timed") from None
        if done.returncode:
            problem = done.stderr.decode(errors="replace").strip()[:500] or f"exit code {done.returncode}"
            raise ProgramError(name, f"failed while it was timed: {problem}")
        output: bytes = done.stdout
        return output


class TimedHeap(Protocol):
    """A heap that can be timed."""

    def timed_program(self, bench: Bench, trace: Trace, arena: int | None = None) -> TimedProgram:
        """The program for an arena of that many bytes; None is ample."""


def time_heaps(
    trace: Trace, heaps: Mapping[str, TimedHeap], arena: int | None = None
) -> dict[str, float | ForeignHeapError | ProgramError]:
    """CPU nanoseconds a call of every heap on this host, measured in turn, the median of repeated passes.

    A heap that fails has the error in its place.
    """
    failed: dict[str, ForeignHeapError | ProgramError] = {}
    programs: dict[str, TimedProgram] = {}
    with Bench() as bench:
        for name, heap in heaps.items():
            try:
                programs[name] = heap.timed_program(bench, trace, arena)
            except ForeignHeapError as error:
                failed[name] = error
        while True:
            try:
                return {**bench.measure(programs, trace), **failed}
            except ProgramError as error:
                failed[error.program] = error
                del programs[error.program]


def ns_per_event(trace: Trace, recipe: Recipe) -> float:
    """CPU nanoseconds a call of the recipe's generated code on this host, the median of repeated passes."""
    with Bench() as bench:
        return bench.measure({"heap": bench.generated(recipe)}, trace)["heap"]

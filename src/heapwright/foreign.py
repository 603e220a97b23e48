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
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from heapwright.adapters import ARGUMENTS, BYTES, Adapter, WordSize, call, is_name
from heapwright.errors import HeapwrightError
from heapwright.host_timing import Bench, Program, find_compiler
from heapwright.metrics import METRICS, Value
from heapwright.replay import call_records, fit_steps, lower_bound
from heapwright.smallest import smallest_arena
from heapwright.traces import FREE, OP_NAMES

if TYPE_CHECKING:
    from heapwright.recipes import Recipe
    from heapwright.traces import Trace

FLAGS = ("-std=gnu11", "-O2", "-w", "-fno-pie", "-no-pie", "-fno-builtin-malloc", "-fno-builtin-calloc")
"""Without the last two the compiler may turn a heap's own calloc into a call of itself."""

DRIVER = Path(__file__).with_name("foreign_driver.c")
LEAST_AMPLE = 1 << 16
COMPILED_STEPS = 32
"""Fineness of the search for the smallest arena of a heap that is compiled anew for each size, see `smallest_arena`."""
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
                + ("install gcc-multilib, or ask for --word-size 64" if self.word_size == 32 else "try --word-size 32")
            )
        return compiler

    @cached_property
    def _driver(self) -> Path:
        """The compiled driver, which knows what calls there are but not what they do."""
        adapter = self.adapter if self.front is None else self.adapter.model_copy(update={"calloc": ""})
        (self._folder / "foreign_heap.h").write_text(_interface(adapter, self.align))
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
        heap.write_text(_calls(adapter, self.sources, self.front))
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
        least = max(LEAST_AMPLE, self.adapter.min_arena, 4 * lower_bound(trace, self.align))
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

        def serves(size: int) -> bool:
            try:
                return not self.run(trace, size, mode="serves").failed
            except ForeignHeapError:
                return False

        low = max(lower_bound(trace, self.align), self.adapter.min_arena)
        steps = COMPILED_STEPS if self.adapter.array else fit_steps(trace)
        return smallest_arena(serves, low, ample.footprint or low, step or self.unit, ample.arena, steps)

    def timed_program(self, trace: Trace, arena: int | None = None) -> Program:
        """The program for `heapwright.host_timing`, in an arena of so many bytes; None is ample.

        Replays once before, so that a heap which fails does so here. Raises ForeignHeapError.
        """
        run = self.run(trace, arena) if arena is not None and self.has_arena else self.ample_run(trace)
        return Program(self.program(run.arena), (str(run.arena or 0),), time_limit=self._time_limit(trace))


# ---- what a caller asks for ----------------------------------------------------------------------------------------


def replay(
    trace: Trace, heap: ForeignHeap, *, arena: int | None = None, time: bool = False, fit: bool = False
) -> dict[str, Value]:
    """Run the trace on a foreign heap and return every metric of `heapwright.metrics.METRICS`, None where unknown.

    Args:
        trace: the calls.
        heap: the allocator.
        arena: bytes of the arena, None for ample; without effect for a heap that gets its memory from the system.
        time: also measure `ns_per_event`, in the same arena.
        fit: also find `smallest_arena_bytes`, where the heap has an arena.

    Every object is filled, and checked before it is freed or resized, and at the end. Raises ForeignHeapError where
    the heap fails, HeapwrightError where it cannot be built.
    """
    bounded = arena is not None and heap.has_arena
    run = heap.run(trace, arena) if bounded else heap.ample_run(trace)
    metrics = _metrics(trace, heap, run, arena if bounded else None)
    if fit:
        metrics["smallest_arena_bytes"] = heap.smallest_arena(trace, heap.ample_run(trace) if bounded else run)
    if time:
        with Bench() as bench:
            metrics["ns_per_event"] = bench.measure({"heap": heap.timed_program(trace, run.arena)}, trace)["heap"]
    return metrics


def fit(trace: Trace, heap: ForeignHeap, *, step: int | None = None) -> int | None:
    """Smallest arena in bytes that serves the whole trace; None where none does, or the heap has no arena.

    Raises ForeignHeapError where the heap fails even in an ample arena, HeapwrightError where it cannot be built.
    """
    return heap.smallest_arena(trace, heap.ample_run(trace), step)


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
        "lower_bound_bytes": lower_bound(trace, heap.align),
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
        slots, records = call_records(trace)
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

_PARAMETERS = {
    "malloc": "size_t size",
    "free": "void *pointer",
    "realloc": "void *pointer, size_t size",
    "calloc": "size_t size",
    "aligned_alloc": "size_t align, size_t size",
    "usable_size": "void *pointer",
    "pointer": "void *slot",
}
_LIBRARY_PARAMETERS = {"init": "void *, size_t", "calloc": "size_t, size_t"}


_HANDLES = """
#include <sys/mman.h>
typedef union handle_slot {{ {handle} handle; union handle_slot *next; }} handle_slot;
static handle_slot *handles, *given_back;
static size_t handles_taken;
static {handle} *take_handle(void)
{{
    if (handles == NULL) {{
        handles = mmap(NULL, sizeof(handle_slot) << 20, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }}
    handle_slot *taken = given_back;
    if (taken != NULL) {{
        given_back = taken->next;
    }} else if (handles_taken >> 20 == 0) {{
        taken = &handles[handles_taken++];
    }}
    return &taken->handle;
}}
static void give_back({handle} *handle)
{{
    handle_slot *slot = (handle_slot *)handle;
    slot->next = given_back;
    given_back = slot;
}}
"""
"""Room for the handles of 2^20 objects, outside the arena: they are the program's memory."""

_THROUGH_HANDLES = {
    "malloc": "{type} *handle = take_handle(); if (handle && ({call})) return handle; "
    "if (handle) give_back(handle); return NULL;",
    "free": "{type} *handle = pointer; {call}; give_back(handle);",
    "realloc": "{type} *handle = pointer; return ({call}) ? pointer : NULL;",
    "pointer": "{type} *handle = slot; return {call};",
}

_IN_FRONT = """
#include <stdint.h>
#include <string.h>
#include "front_heap.h"
static unsigned char front_arena[{bytes}] __attribute__((aligned(FRONT_ARENA_ALIGNMENT)));
static struct front_heap *front;
void *foreign_malloc(size_t size);
static int is_in_front(const void *pointer)
{{
    return (uintptr_t)pointer - (uintptr_t)front_arena < sizeof front_arena;
}}
static void *resize_in_front(void *pointer, size_t size)
{{
    void *found = front_realloc(front, pointer, size);
    if (found == NULL && (found = foreign_malloc(size)) != NULL) {{
        const size_t had = front_usable_size(front, pointer);
        memcpy(found, pointer, had < size ? had : size);
        front_free(front, pointer);
    }}
    return found;
}}"""

_FRONT_FIRST = {
    "malloc": "void *found = front_malloc(front, size); return found ? found : {call};",
    "free": "if (is_in_front(pointer)) {{ front_free(front, pointer); }} else {{ {call}; }}",
    "realloc": "return is_in_front(pointer) ? resize_in_front(pointer, size) : {call};",
    "aligned_alloc": "void *found = front_aligned_alloc(front, align, size); return found ? found : {call};",
    "usable_size": "return is_in_front(pointer) ? front_usable_size(front, pointer) : {call};",
}


def _interface(adapter: Adapter, align: int) -> str:
    """`foreign_heap.h`: the calls that the driver may make."""
    lines = [
        "#include <stddef.h>",
        f"#define FOREIGN_ALIGN {align}u",
        f"#define FOREIGN_POISON {0 if adapter.zeroed else 0xA4}",
        "int foreign_init(void *memory, size_t bytes);",
    ]
    for key, parameters in _PARAMETERS.items():
        if call(adapter, key):
            lines += [f"{ARGUMENTS[key][0]} foreign_{key}({parameters});", f"#define FOREIGN_HAS_{key.upper()}"]
    lines.append(f"#define FOREIGN_MOVES {int(bool(adapter.handle))}")
    if not adapter.calloc:
        lines.append("#define foreign_calloc(size) foreign_malloc(size)")
    if adapter.array:
        lines += ["unsigned char *foreign_array(void);", "#define FOREIGN_ARRAY foreign_array()"]
    else:
        lines.append("#define FOREIGN_ARRAY ((unsigned char *)0)")
    return "\n".join(lines) + "\n"


def _calls(adapter: Adapter, sources: Sequence[Path], front: Recipe | None) -> str:
    """`heap.c`: the allocator as one translation unit, so that the calls see its macros and static functions."""
    parts = ["#include <stddef.h>", adapter.prologue, *(f'#include "{source}"' for source in sources), adapter.epilogue]
    if not sources:
        parts += _declarations(adapter)
    init = f"{call(adapter, 'init')};" if adapter.init else ""
    bodies = dict.fromkeys(_PARAMETERS, "return {call};") | {"free": "{call};"}
    if front is not None:
        parts.append(_IN_FRONT.format(bytes=_front_bytes(front)))
        init += " front = front_init(front_arena, sizeof front_arena);"
        bodies = _FRONT_FIRST
    if adapter.handle:
        parts.append(_HANDLES.format(handle=adapter.handle))
        bodies = {key: body.replace("{type}", adapter.handle) for key, body in _THROUGH_HANDLES.items()}
    parts += [
        "static void *foreign_heap;",
        "#define heap foreign_heap",
        f"int foreign_init(void *memory, size_t bytes) {{ heap = memory; {init} return !bytes || heap; }}",
    ]
    for key, body in bodies.items():
        text = call(adapter, key)
        if text:
            parts.append(f"{ARGUMENTS[key][0]} foreign_{key}({_PARAMETERS[key]}) {{ {body.format(call=text)} }}")
    if adapter.array:
        parts.append(f"unsigned char *foreign_array(void) {{ return (unsigned char *)({adapter.array}); }}")
    return "\n".join(part for part in parts if part) + "\n"


def _front_bytes(front: Recipe) -> int:
    """What a recipe of bounded pools needs: control data and regions."""
    from heapwright.replay import policy_struct

    return int(policy_struct(front).fixed_end)


def _declarations(adapter: Adapter) -> list[str]:
    """Prototypes of a library's functions, which come without a header."""
    named = [key for key in ARGUMENTS if is_name(getattr(adapter, key))]
    return [
        f"extern {ARGUMENTS[key][0]} {getattr(adapter, key)}({_LIBRARY_PARAMETERS.get(key, _PARAMETERS.get(key))});"
        for key in named
    ]

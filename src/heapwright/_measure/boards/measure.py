"""Measures heaps on a processor: trace x heap x processor -> instructions, accesses, stack, cycles, code bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from heapwright._measure.boards import qemu_backend, unicorn_backend
from heapwright._measure.boards.compilers import LEVELS, find_compiler
from heapwright._measure.boards.cpus import Cpu, cpu
from heapwright._measure.boards.feed import BoardRun, Input
from heapwright._measure.boards.image import BoardHeap, Image, Size, Workshop
from heapwright._measure.boards.kernel import PLATFORM, Kernel, KernelWorkshop
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._traces.validation import CALLOC, FREE, REALLOC

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._replay.metrics import Value
    from heapwright._traces.trace import Trace

BACKENDS = ("unicorn", "qemu")
"""In the order of preference: the first counts memory accesses, too."""

DEFAULT_CPU = "cortex-m3"

KINDS = ("malloc", "calloc", "aligned", "realloc", "free")
"""Kinds of calls; a trace has the first and the last of them at least in this table, be it with a count of 0."""

_ROUND = 1 << 16


def measure(
    heap: BoardHeap | Recipe,
    trace: Trace,
    *,
    cpu_name: str = DEFAULT_CPU,
    backend: str | None = None,
    compiler: str | None = None,
    level: str = LEVELS[0],
    arena: int | None = None,
) -> dict[str, Any]:
    """Replay a trace on a heap on an emulated processor and count what its calls do.

    Args:
        heap: a recipe, the heap of a C library for the target, or a C file that defines heap_init, heap_malloc and
            heap_free (docs/target.md).
        trace: the calls.
        cpu_name: a key of `cpus.CPUS`.
        backend: "unicorn" or "qemu"; None for the first that is installed.
        compiler: "gcc" or "zig"; None for the first that is installed.
        level: optimisation of the heap that runs, one of LEVELS.
        arena: bytes of the arena; None for 4 MB less 64 KiB, or more where the trace needs it, within the
            recipe's reach.

    Returns what docs/target.md describes under "Output"; what cannot be counted is None.

    Raises HeapwrightError where a tool is missing (with what to install) or fails, the heap cannot be built, or the
    arena cannot hold its control data.
    """
    session = Session(cpu_name, backend, compiler, level, arena)
    return session.measure(heap, [trace], LEVELS)[0]


@dataclass(frozen=True)
class Session:
    """Everything that is the same for the heaps and traces that are to be compared; arguments as for `measure`.

    `kernel`: in which the heap is called, on QEMU alone; heaps then are its own or have its glue among their files.
    """

    cpu_name: str = DEFAULT_CPU
    backend: str | None = None
    compiler: str | None = None
    level: str = LEVELS[0]
    arena: int | None = None
    kernel: Kernel | None = None

    def __post_init__(self) -> None:
        """Raise HeapwrightError at once where a tool is missing, or a kernel cannot be run."""
        find_compiler(self.cpu, self.compiler)
        if self.kernel is not None:
            self.kernel.port(self.cpu)
            if self.backend not in (None, "qemu"):
                raise ParameterError(
                    f"{self.backend}: takes no exceptions, by which a kernel starts its tasks; use qemu",
                    parameter="backend",
                )
        find_backend(self.cpu, self._backend)

    @property
    def _backend(self) -> str | None:
        return self.backend if self.kernel is None else "qemu"

    @property
    def cpu(self) -> Cpu:
        """The processor."""
        return cpu(self.cpu_name)

    @property
    def setting(self) -> str:
        """What numbers must share to be compared: processor, compiler, optimisation."""
        return f"{self.cpu_name}, {self.compiler_version} -{self.level}"

    @property
    def emulator(self) -> str:
        """The emulator and its version; every one counts the same instructions."""
        return _version(find_backend(self.cpu, self._backend), self.cpu)

    @property
    def compiler_version(self) -> str:
        """The cross compiler, with its version."""
        return find_compiler(self.cpu, self.compiler).version

    def sizes(self, heap: BoardHeap | Recipe, entries: Sequence[str], levels: Sequence[str]) -> dict[str, Size]:
        """What a firmware links for these calls at each level of optimisation; bytes of `text`, `data` and `bss`.

        `entries` are of "malloc", "free", "realloc" and "calloc". Raises HeapwrightError as `measure`.
        """
        resolved = heap if isinstance(heap, BoardHeap) else BoardHeap.of_recipe(heap)
        with Workshop(resolved, find_compiler(self.cpu, self.compiler)) as workshop:
            return {level: workshop.size_of(tuple(entries), level) for level in levels}

    def measure(
        self, heap: BoardHeap | Recipe, traces: Sequence[Trace], sizes_at: Sequence[str]
    ) -> list[dict[str, Any]]:
        """`measure` on several traces with one image; code sizes at these levels, the first of them unnested."""
        resolved = heap if isinstance(heap, BoardHeap) else BoardHeap.of_recipe(heap)
        with self._workshop(resolved) as workshop:
            code: dict[str, Any] = {**workshop.code_bytes(sizes_at[0])}
            code |= {other: workshop.code_bytes(other) for other in sizes_at[1:]}
            return [self._measure(workshop, code, trace) for trace in traces]

    def _workshop(self, heap: BoardHeap) -> Workshop:
        compiler = find_compiler(self.cpu, self.compiler)
        return KernelWorkshop(heap, compiler, kernel=self.kernel) if self.kernel else Workshop(heap, compiler)

    def instructions(self, heap: BoardHeap | Recipe, traces: Sequence[Trace]) -> list[int | None]:
        """Instructions of all calls of each trace, None where one was refused; nothing else is counted, which is fast.

        Raises HeapwrightError as `measure`.
        """
        resolved = heap if isinstance(heap, BoardHeap) else BoardHeap.of_recipe(heap)
        with Workshop(resolved, find_compiler(self.cpu, self.compiler)) as workshop:
            image = workshop.image(self.level)
            return [self._instructions(resolved, image, trace) for trace in traces]

    def _instructions(self, heap: BoardHeap, image: Image, trace: Trace) -> int | None:
        arena = self.arena or _arena_bytes(heap, trace, self.cpu)
        given = Input.of(trace, self.cpu, arena, reference_bytes=heap.reference_bytes)
        run = _run(find_backend(self.cpu, self._backend), image, given, heap, memory=False)
        counted = run.counts["instructions"]
        return None if counted is None or run.refused.any() else int(counted.sum())

    def _measure(self, workshop: Workshop, code: dict[str, Any], trace: Trace) -> dict[str, Any]:
        """The result of `measure`."""
        heap = workshop.heap
        backend = find_backend(self.cpu, self._backend)
        arena = self.arena or _arena_bytes(heap, trace, self.cpu)
        host = _Host.of(heap, trace, arena) if self.kernel is None or _as_on_the_host(trace) else None
        used = len(host.content) if host else 0
        given = Input.of(trace, self.cpu, arena, used, reference_bytes=heap.reference_bytes)
        image = workshop.image(self.level, given.layout)
        run = _run(backend, image, given, heap)
        cleared = None
        callocs = heap.file is None or self.kernel is not None or "heap_calloc" in image.symbols
        if (trace.op == CALLOC).any() and callocs and not heap.moving:
            cleared = _run(backend, image, Input.of(trace, self.cpu, arena, used, callocs=True), heap)
        return {
            "heap": heap.name,
            "trace": trace.name,
            "cpu": self.cpu.name,
            "runs_on": self.cpu.runs_on,
            "note": self.cpu.note,
            "compiler": image.compiler.version,
            "backend": self.emulator,
            "level": self.level,
            "platform": PLATFORM if self.kernel else None,
            "lock": self.kernel and self.kernel.lock,
            "config": str(self.kernel.config) if self.kernel and self.kernel.config else None,
            "arena_bytes": arena,
            "footprint_bytes": _footprint(heap, host, run, code),
            "failed": int(run.refused.sum()),
            "code_bytes": code,
            "calls": calls_by_kind(run, trace, cleared),
            "phases": _by_phase(run, trace, cleared),
            "prediction": host and host.beside(run),
        }


def _as_on_the_host(trace: Trace) -> bool:
    """Whether a kernel without realloc and aligned requests gets the same requests as the heap alone."""
    return not ((trace.op == REALLOC).any() or (trace.align > 1).any())


@dataclass(frozen=True)
class _Host:
    """The replay on the host: the arena's bytes, which of them are metadata, and the metrics."""

    content: NDArray[np.uint8]
    marks: NDArray[np.bool_]
    metrics: dict[str, Value]

    @classmethod
    def of(cls, heap: BoardHeap, trace: Trace, arena: int) -> _Host | None:
        if heap.recipe is None:
            return None
        from heapwright._replay.pictures import metadata
        from heapwright._replay.replay import replay

        content, marks = metadata(trace, heap.recipe, arena)
        return cls(content, marks, replay(trace, heap.recipe, arena=arena))

    def beside(self, run: BoardRun) -> dict[str, Any]:
        """Prediction against measurement: the same metadata, and how many accesses became loads and stores."""
        loads, stores = run.counts["arena_loads"], run.counts["arena_stores"]
        accesses = int(self.metrics["accesses"] or 0)
        measured = None if loads is None or stores is None else int(loads.sum() + stores.sum())
        return {
            "metadata_bytes": int(self.marks.sum()),
            "metadata_equal": bool(np.array_equal(self.content[self.marks], run.arena[self.marks])),
            "counted_reads": self.metrics["reads"],
            "counted_writes": self.metrics["writes"],
            "measured_loads": None if loads is None else int(loads.sum()),
            "measured_stores": None if stores is None else int(stores.sum()),
            "ratio": measured / accesses if measured is not None and accesses else None,
        }


# ---- emulators -----------------------------------------------------------------------------------------------------


def find_backend(target: Cpu, name: str | None = None) -> str:
    """The emulator of this name, or the first installed. Raises HeapwrightError, with what to install."""
    installed = {"unicorn": unicorn_backend.available(target), "qemu": qemu_backend.available(target)}
    for item in BACKENDS if name is None else (name,):
        if installed.get(item):
            return item
    pip = "pip install 'heapwright[target]'"
    debian = f"apt-get install --no-install-recommends {qemu_backend.PACKAGES[target.family]}"
    if name == "unicorn" and target.unicorn_model:
        raise HeapwrightError(f"unicorn is missing; {pip}")
    if name == "qemu":
        raise HeapwrightError(f"{target.qemu[0]} is missing; {debian}")
    if not target.unicorn_model:
        raise HeapwrightError(f"{target.name} is emulated by qemu alone; {debian}", parameter="backend")
    raise HeapwrightError(f"no emulator for {target.name}; {pip} (unicorn), or {debian} (qemu)")


def _version(backend: str, target: Cpu) -> str:
    return unicorn_backend.version() if backend == "unicorn" else qemu_backend.version(target.qemu[0])


def _run(backend: str, image: Image, given: Input, heap: BoardHeap, *, memory: bool = True) -> BoardRun:
    """Replay on the emulator; `memory` says whether loads, stores and stack are counted, where that can be."""
    unicorn = backend == "unicorn"
    run = unicorn_backend.run(image, given, memory=memory) if unicorn else qemu_backend.run(image, given)
    if not run.started:
        raise HeapwrightError(
            f"{heap.name}: an arena of {given.layout.arena_bytes:,} bytes cannot hold its control data"
        )
    return run


# ---- arenas --------------------------------------------------------------------------------------------------------


def _arena_bytes(heap: BoardHeap, trace: Trace, target: Cpu) -> int:
    """The fast memory behind the driver's data, or what the trace needs, within a recipe's reach."""
    from heapwright._replay.replay import replay

    room = target.memory.arena_bytes
    if heap.recipe is None:
        return max(room, _rounded(2 * trace.lower_bound(8)))
    from heapwright._recipes.policy import policy

    needed = int(replay(trace, heap.recipe)["footprint_bytes"] or 0)
    return min(max(room, _rounded(needed)), int(policy(heap.recipe)["reach"]))


def _rounded(needed: int) -> int:
    return (needed // _ROUND + 2) * _ROUND


def _footprint(heap: BoardHeap, host: _Host | None, run: BoardRun, code: dict[str, Any]) -> int | None:
    """Bytes of memory the heap took: the replay's for a recipe, sbrk's peak and static data for a C library."""
    if host is not None:
        return int(host.metrics["footprint_bytes"] or 0)
    return run.taken + code["data"] + code["bss"] if heap.library else None


# ---- statistics ----------------------------------------------------------------------------------------------------


def calls_by_kind(
    run: BoardRun, trace: Trace, cleared: BoardRun | None = None, among: NDArray[np.bool_] | None = None
) -> dict[str, dict[str, Any]]:
    """Statistics of the performed calls by kind.

    Args:
        run: the replay in which a calloc is the malloc that it starts with, and counts as one.
        trace: what was replayed.
        cleared: the same replay with real callocs, whose counts are reported as callocs; None for none.
        among: one for each performed call; only those that it marks.
    """
    op, align = trace.op[run.performed], trace.align[run.performed]
    requested = among if among is not None else np.ones(len(op), bool)
    aligned = (align > 1) & (op <= CALLOC)
    chosen = {
        "malloc": (op <= CALLOC) & ~aligned,
        "calloc": (op == CALLOC) & ~aligned & (cleared is not None),
        "aligned": aligned,
        "realloc": op == REALLOC,
        "free": op == FREE,
    }
    results = {}
    for kind in KINDS:
        calls = np.flatnonzero(chosen[kind] & requested)
        if len(calls) or kind in ("malloc", "free"):
            results[kind] = _statistics(cleared if kind == "calloc" and cleared else run, calls)
    return results


def _statistics(run: BoardRun, chosen: NDArray[np.intp]) -> dict[str, Any]:
    """Counts of the chosen calls: indices into the performed ones."""
    results: dict[str, Any] = {"count": len(chosen), "refused": int(run.refused[chosen].sum())}
    counts = {key: None if column is None or not len(chosen) else column[chosen] for key, column in run.counts.items()}
    instructions = counts["instructions"]
    results |= _distribution("instructions", instructions)
    results["instructions_max_call"] = (
        None if instructions is None else int(run.performed[chosen[instructions.argmax()]])
    )
    for key, parts in (("accesses", ("loads", "stores")), ("arena_accesses", ("arena_loads", "arena_stores"))):
        results |= _distribution(key, _sum(counts, parts), ("mean", "max"))
        for part in parts:
            results |= _distribution(part, counts[part], ("mean",))
    results |= _distribution("stack_bytes", counts["stack_bytes"], ("max",))
    results["cycles"] = _cycles(counts)
    results["instructions_histogram"] = _histogram(instructions)
    return results


def _sum(counts: dict[str, Any], parts: tuple[str, ...]) -> NDArray[np.int64] | None:
    columns = [counts[part] for part in parts]
    return None if any(column is None for column in columns) else np.sum(columns, axis=0)


_ALL = ("mean", "median", "p99", "p999", "max")
_QUANTILES = {"median": 0.5, "p99": 0.99, "p999": 0.999}


def _distribution(key: str, values: NDArray[np.int64] | None, which: tuple[str, ...] = _ALL) -> dict[str, Any]:
    """Mean, maximum, and the quantiles of the calls; None if nothing was counted."""
    if values is None:
        return {f"{key}_{item}": None for item in which}
    results: dict[str, Any] = {"mean": float(values.mean()), "max": int(values.max())}
    for name, share in _QUANTILES.items():
        if name in which:
            results[name] = int(np.quantile(values, share, method="inverted_cdf"))
    return {f"{key}_{item}": results[item] for item in which}


def _cycles(counts: dict[str, Any]) -> dict[str, dict[str, float]] | None:
    """Mean and worst-case call, each as an interval; None if the core's timing is not known."""
    if counts["cycles_minimum"] is None:
        return None
    ends: tuple[Literal["minimum", "nominal", "maximum"], ...] = ("minimum", "nominal", "maximum")
    return {
        "mean": {end: float(counts[f"cycles_{end}"].mean()) for end in ends},
        "max": {end: int(counts[f"cycles_{end}"].max()) for end in ends},
    }


def _histogram(values: NDArray[np.int64] | None) -> list[list[int]] | None:
    """[instructions, calls] for each number of instructions that occurred, rising."""
    if values is None:
        return None
    numbers, calls = np.unique(values, return_counts=True)
    return [[int(number), int(count)] for number, count in zip(numbers, calls, strict=True)]


def _by_phase(run: BoardRun, trace: Trace, cleared: BoardRun | None) -> dict[str, dict[str, Any]] | None:
    """The statistics of each phase; None where the trace names none."""
    if len(trace.phases) < 2 and not trace.phases[0]:
        return None
    phase = trace.phase[run.performed]
    results = {}
    for index, name in enumerate(trace.phases):
        kinds = calls_by_kind(run, trace, cleared, phase == index)
        for kind in kinds.values():
            del kind["instructions_histogram"]
        results[name] = kinds
    return results

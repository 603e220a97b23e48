"""What ships: C, its proofs, attacks, measurements; and reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from heapwright._api.arguments import (
    AnyHeap,
    AnyTrace,
    Member,
    PathLike,
    check_generated,
    label_of,
    listed,
    one_line_errors,
    recipe_of,
    trace_of,
)
from heapwright._replay.metrics import Objectives
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._support.remote import local

if TYPE_CHECKING:
    from heapwright._api.explorations import Study
    from heapwright._assure.proof.prove import Proof
    from heapwright._heaps.foreign.adapter import WordSize
    from heapwright._measure.boards.image import BoardHeap
    from heapwright._measure.boards.kernel import Kernel
    from heapwright._platforms.catalogue import Platform
    from heapwright._recipes.recipe import Recipe
    from heapwright._studies.analysis import Analysis
    from heapwright._studies.as_shipped import ShippingOptions
    from heapwright._traces.trace import Trace

_Found = TypeVar("_Found")


@overload
def platforms(name: str) -> Platform: ...
@overload
def platforms(name: None = ...) -> list[Platform]: ...
def platforms(name: str | None = None) -> Platform | list[Platform]:
    """Return the platforms of `generate`, or the one of that name. Raises HeapwrightError for an unknown one."""
    from heapwright._platforms import catalogue

    return catalogue.platform(name) if name else list(catalogue.platforms().values())


@one_line_errors
def hooks(platform: str, output: PathLike, *, prefix: str = "app") -> list[Path]:
    """Write what records the calls of the heap that a platform or a program has now, for `import_log`.

    Args:
        platform: one of `platforms()` that has `hooks`, which are C; or "bpftrace" or "perf", which are scripts that
            record any program on Linux.
        output: the folder; what to do with the files stands in its PREFIX_trace_README.md.
        prefix: what every name in the files begins with.

    Raises HeapwrightError for a platform that has none.
    """
    from heapwright._platforms.files import write_hooks

    return write_hooks(platform, Path(output), prefix)


@one_line_errors
def generate(
    heap: AnyHeap,
    output: PathLike,
    *,
    prefix: str = "app",
    platform: str | None = None,
    watched: bool = False,
    package: bool = False,
    behind: str | None = None,
    inline: bool = False,
    field: bool = False,
    evidence: AnyTrace | Sequence[AnyTrace] = (),
    held_out: AnyTrace | Sequence[AnyTrace] = (),
    cpu: str = "cortex-m3",
    prove_calls: int | None = None,
    memp: AnyTrace | Sequence[AnyTrace] = (),
    repair: bool = False,
    progress: Callable[[str], None] = lambda step: None,
    notes: Callable[[str], None] = lambda note: None,
) -> list[Path]:
    """Write a heap as C11 for firmware: PREFIX_heap.c, which includes PREFIX_heap_checks.h, PREFIX_heap.h and a test.

    All are freestanding. With a platform of `platforms()` also the files that bind it there, with a page on what to do
    and a test. A recipe that aligns objects to less than the platform needs is generated at the platform's alignment.

    Args:
        heap: a recipe, or its name.
        output: the folder.
        prefix: what every name in the C begins with.
        platform: None is that for which the heap's study was made, if any; "none" is the heap alone.
        watched: also write PREFIX_heap_watched.c, to be compiled in place of PREFIX_heap.c where AddressSanitizer or
            Valgrind are to see what is handed out.
        package: also write what makes the folder a library of CMake and PlatformIO, a component of ESP-IDF and a module
            of Zephyr: CMakeLists.txt, library.json, idf_component.yml, zephyr/module.yml.
        behind: the malloc of another allocator, as "malloc" or "mi_malloc", which by PREFIX_behind.c gets what the
            recipe's pools, all with bounds, do not take or have no room for. Neither for a platform nor with evidence.
        inline: also write PREFIX_heap_inline.h, whose macros choose the lists of constant sizes when they are compiled.
            Not for a platform.
        field: set the recipe's `counters` to "classes", so that PREFIX_field() has the most blocks of each size.
        evidence: traces that the heap has to serve. PREFIX_heap_evidence.md then documents it: the arena to
            reserve, the worst-case calls on the target, which misuse it detects, what was proved, and by which tools.
        held_out: other recordings that the reserve has to serve.
        cpu: the processor that instructions are counted on.
        prove_calls: as `calls` of `prove`; None proves nothing.
        memp: for "lwip": traces of its heap and pools, which PREFIX_lwip_pools.h then sizes.
        repair: drop the invalid calls of traces that are read.
        progress: called with each step towards the evidence.
        notes: called with a sentence if an alignment is raised, or a study holds a part of its space.

    Returns the files. Raises HeapwrightError for a heap that is no recipe, a prefix that is no C identifier, an unknown
    platform, and for a recipe that does not suit it or `behind`. The page says which tools were missing.
    """
    from heapwright._generate.emit import Banner, Extras
    from heapwright._generate.emit import generate as write
    from heapwright._measure.boards.levels import cost_of_checks
    from heapwright._platforms.files import generate_for, raised
    from heapwright._recipes.policy import require_one_memory
    from heapwright._support.writing import write_text

    traces, others = ([trace_of(item, repair) for item in listed(given)] for given in (evidence, held_out))
    with _to_ship(heap) as result:
        recipe = result.recipe.model_copy(update={"counters": "classes"}) if field else result.recipe
        into = _into(platform, result, behind, inline, notes)
        check_generated(behind, into, inline, bool(traces), bool(memp))
        if traces:
            require_one_memory(recipe)
        if into is None:
            about, extras = Banner(*result.shipped(recipe, traces), cost_of_checks(recipe)), Extras(package, inline)
            files = write(recipe, Path(output), prefix, about, watched, behind, extras)
        else:
            given = into.adapted(recipe)
            about = Banner(*result.shipped(given, traces), cost_of_checks(given))
            files = generate_for(into, recipe, Path(output), prefix, about, watched, package)
            if notice := raised(into, recipe):
                notes(f"{recipe.name or recipe.hash}: {notice[0].lower()}{notice[1:]}")
            recipe = into.aligned(recipe)
            if pooled := [trace_of(item, repair) for item in listed(memp)]:
                from heapwright._heaps.system_sizes import write_lwip_header

                files.append(write_lwip_header(recipe, pooled, Path(output), prefix))
        if result.study is not None and result.study.caveat:
            notes(result.study.caveat)
    if traces:
        files.append(Path(output) / f"{prefix}_heap_evidence.md")
        write_text(files[-1], _evidence(recipe, files[:-1], traces, others, cpu, prove_calls, progress))
    return files


def _into(
    platform: str | None, heap: ShippingOptions, behind: str | None, inline: bool, notes: Callable[[str], None]
) -> Platform | None:
    """The platform to generate a heap for: the one asked for, or the one of its study."""
    name = platform
    if platform is None and heap.study is not None and heap.study.platform and behind is None and not inline:
        name = heap.study.platform
        notes(f"written for {name}, for which it was explored; platform none leaves that out")
    return None if name in (None, "none") else platforms(name)


@contextmanager
def _to_ship(heap: AnyHeap) -> Iterator[ShippingOptions]:
    """The heap, its name resolved once, with the study that it comes from open."""
    from heapwright._heaps.names import parse
    from heapwright._studies.as_shipped import Shipped, ShippingOptions

    name = parse(os.fspath(heap)) if isinstance(heap, str | os.PathLike) else None
    if name is not None and name.kind == "study":
        path, id = Path(name.first), name.second
    elif not isinstance(heap, Member):
        yield ShippingOptions(recipe_of(heap))
        return
    elif heap.study is not None and local(heap.study).is_file():
        path, id = heap.study, heap.id
    else:
        yield ShippingOptions(heap.recipe, known=Shipped(heap.tuned_for, heap.metrics))
        return
    from heapwright._studies.analysis import Analysis

    with Analysis.open(path) as study:
        yield ShippingOptions.of(study, id)


def _evidence(
    recipe: Recipe,
    files: Sequence[Path],
    traces: Sequence[Trace],
    held_out: Sequence[Trace],
    cpu: str,
    prove_calls: int | None,
    progress: Callable[[str], None],
) -> str:
    """The page of evidence."""
    from heapwright._api.heaps import fit, replay
    from heapwright._report.evidence import Evidence

    progress("the arena to reserve")
    arenas = fit(list(traces), recipe, held_out=list(held_out))
    replays = replay(list(traces), recipe)
    assert isinstance(arenas, list) and isinstance(replays, list)
    progress(f"instructions on {cpu}")
    measured = _or_why(lambda: [measure(recipe, trace, cpu=cpu) for trace in traces])
    progress("faults")
    attacked = _or_why(lambda: attack(recipe, checks=[recipe.checks])[0])
    proof = None
    if prove_calls is not None:
        proof = _or_why(lambda: prove(recipe, calls=prove_calls, progress=lambda name: progress(f"proof of {name}")))
    metrics = {item.trace: item.metrics for item in replays}
    return Evidence(
        recipe, files, traces, held_out, [vars(arena) for arena in arenas], metrics, measured, attacked, proof
    ).page()


def _or_why(find: Callable[[], _Found]) -> _Found | str:
    """What is found, or why it cannot be."""
    try:
        return find()
    except HeapwrightError as error:
        return str(error)


@one_line_errors
def prove(
    heap: AnyHeap,
    *,
    calls: int = 3,
    arena: int | None = None,
    largest: int = 32,
    method: Literal["cbmc", "enumeration"] | None = None,
    unbounded: bool = False,
    junit: PathLike | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> Proof:
    """Prove what holds after any few calls of the heap that is generated; see `heapwright._assure.proof.prove.prove`.

    `arena` and `largest` are bytes: of the arena (None: the heap's own data and 96 more) and of the largest request.
    `method` is "cbmc", "enumeration", which needs a C compiler with AddressSanitizer, or None: the latter for bins and
    buddies. `unbounded` proves the contracts of one fixed pool instead, for any number of calls, by Frama-C. `junit` is
    a file to write for build servers. `progress` is called with the name of each harness.

    Raises HeapwrightError without the tool, with how to get it, and for a heap that is no recipe or moves its objects.
    """
    from heapwright._assure.proof.prove import prove as run
    from heapwright._assure.proof.prove import prove_unbounded

    recipe, label = recipe_of(heap), label_of(heap)
    if unbounded:
        progress("unbounded")
        proof = prove_unbounded(recipe, label)
    else:
        proof = run(recipe, label, calls=calls, arena=arena, largest=largest, method=method, progress=progress)
    if junit is not None:
        from heapwright._report.gate_files import junit_of_proof
        from heapwright._support.writing import write_text

        write_text(Path(junit), junit_of_proof(proof))
    return proof


@one_line_errors
def attack(
    heap: AnyHeap,
    trace: AnyTrace | None = None,
    *,
    checks: Sequence[str] | None = None,
    runs: int | None = None,
    seed: int = 0,
    repair: bool = False,
    beside: Sequence[str] = (),
    word_size: WordSize | None = None,
    output: str | os.PathLike[str] | None = None,
    cpu: str | None = None,
    compiler: str | None = None,
    exploits: bool = False,
) -> list[dict[str, Any]]:
    """Commit eleven faults on a heap, each many times in processes of their own, and count which it notices, and when.

    Args:
        heap: a recipe, or its name.
        trace: the calls around the fault, at most the first 20,000; None for a random program of 1,500 calls.
        checks: levels of checks to try; None for all. The recipe's own does not matter.
        runs: of each fault at each level; None for 200, or for 400 trials of each technique with `exploits`.
        seed: of the faults, and of the random program; the same seed gives the same counts.
        repair: drop the invalid calls of a trace that is read.
        `beside`: heaps to compare it with: names of recipes, and foreign heaps as `replay` takes them.
        word_size: bits of a pointer, 32 or 64, in foreign heaps built here; None is what their adapter says.
        output: a picture to draw, a file that ends in .svg or .html; None for none.
        cpu: the emulated processor that runs it, as of `measure`; None for this machine.
        compiler: for that processor, "gcc" or "zig"; None for the first that is installed.
        exploits: try twelve published exploitation techniques instead, with pointers of `word_size` bits, or of 32 and
            of 64 as far as the compiler builds such programs.

    Returns a dictionary for each level: `heap`, `checks`, `cpu` and `faults`, for each fault by its name `runs` and
    what came of them, `at_once`, `later`, `harmless`, `silent` and `crashed` (docs/hardening.md). A foreign
    heap has one, whose `checks` is None, and `signals`, by name how many runs each ended.

    Raises HeapwrightError for a heap whose objects move, a level that is none, a foreign heap on an emulated processor,
    or a missing C compiler or emulator.
    """
    from heapwright._assure.attack.attack import attack as commit
    from heapwright._assure.attack.faults import RUNS
    from heapwright._heaps.foreign.attack import attack as commit_on_foreign
    from heapwright._heaps.heaps import RecipeHeap, resolve

    if exploits:
        return _exploit(heap, checks, runs, seed, word_size, (trace, *beside, output, cpu, compiler))
    if output is not None:
        from heapwright._report.drawing import check_suffix

        check_suffix(Path(output))
    read = None if trace is None else trace_of(trace, repair)
    others = [resolve(name, word_size) for name in beside]
    foreign = [other.label for other in others if not isinstance(other, RecipeHeap)]
    if cpu is not None and foreign:
        raise ParameterError(f"{foreign[0]}: a foreign heap is attacked on this machine alone", parameter="beside")
    results: list[dict[str, Any]] = []
    for item in [RecipeHeap(recipe_of(heap)), *others]:
        if isinstance(item, RecipeHeap):
            results += commit(
                item.recipe, read, checks=checks, runs=runs or RUNS, seed=seed, cpu=cpu, compiler=compiler
            )
        else:
            results.append(commit_on_foreign(item, read, runs=runs or RUNS, seed=seed))
    if output is not None:
        from heapwright._report.attack_picture import write_picture

        write_picture(results, Path(output))
    return results


def _exploit(
    heap: AnyHeap,
    checks: Sequence[str] | None,
    trials: int | None,
    seed: int,
    word_size: WordSize | None,
    unused: tuple[object, ...],
) -> list[dict[str, Any]]:
    """What `attack` does with `exploits`; nothing of `unused` may be set."""
    from heapwright._assure.attack.exploits import TRIALS, exploit

    if any(item is not None for item in unused):
        raise ParameterError(
            "exploits are tried on one heap on this machine: without a trace, other heaps, a picture or a processor",
            parameter="exploits",
        )
    widths = None if word_size is None else (word_size,)
    return exploit(recipe_of(heap), checks=checks, widths=widths, trials=trials or TRIALS, seed=seed)


@one_line_errors
def measure(
    heap: AnyHeap | BoardHeap,
    trace: AnyTrace,
    *,
    cpu: str = "cortex-m3",
    backend: str | None = None,
    compiler: str | None = None,
    level: str = "Os",
    arena: int | None = None,
    platform: str | None = None,
    kernel: PathLike | None = None,
    config: PathLike | None = None,
    lock: str = "scheduler",
    repair: bool = False,
) -> dict[str, Any]:
    """Replay a trace on a heap on an emulated processor: instructions, accesses and stack of its calls, code bytes.

    Args:
        heap: a recipe; or lib:newlib-nano, lib:newlib, lib:picolibc, or a C file that defines heap_init, heap_malloc
            and heap_free (docs/target.md).
        trace: the calls.
        cpu: the processor; docs/target.md lists them.
        backend: "unicorn" or "qemu"; None for the first that is installed.
        compiler: "gcc" or "zig"; None for the first that is installed.
        level: optimisation of the heap that runs: "Os" or "O2".
        arena: bytes of the arena; None for 4 MB less 64 KiB, or more where the trace needs it.
        platform: "freertos" calls the heap in that kernel, through the platform's glue, lock included; the heap is a
            recipe, or the kernel's own: lib:freertos-heap2, lib:freertos-heap4. None for the heap alone.
        kernel: the folder of the kernel's sources; None for what the environment variable FREERTOS_KERNEL_PATH says.
        config: the application's FreeRTOSConfig.h, whose asserts and trace macros then are in what is counted.
        lock: of a call in the kernel: "scheduler" suspends that, "critical" is a critical section.
        repair: drop the invalid calls of a trace that is read.

    Returns what docs/target.md describes under "Output". Raises HeapwrightError if a tool or the kernel is
    missing (with what to install) or fails, or the heap cannot be built.
    """
    session: dict[str, Any] = {"backend": backend, "compiler": compiler, "level": level, "arena": arena}
    session |= {"platform": platform, "kernel": kernel, "config": config, "lock": lock}
    return measure_each(heap, [trace], cpu=cpu, repair=repair, **session)[0]


@one_line_errors
def measure_each(
    heap: AnyHeap | BoardHeap,
    traces: Sequence[AnyTrace],
    *,
    cpu: str,
    platform: str | None = None,
    kernel: PathLike | None = None,
    config: PathLike | None = None,
    lock: str = "scheduler",
    repair: bool = False,
    **session: Any,
) -> list[dict[str, Any]]:
    """The measurements of a heap on each of the traces; it is built once."""
    from heapwright._heaps.heaps import resolve_on_target
    from heapwright._measure.boards.compilers import LEVELS
    from heapwright._measure.boards.image import BoardHeap
    from heapwright._measure.boards.kernel import Kernel
    from heapwright._measure.boards.measure import Session

    around = None if platform is None else Kernel.of(platform, kernel, lock, config)
    if around is not None:
        result = _in_kernel(heap, around)
    elif isinstance(heap, BoardHeap):
        result = heap
    elif isinstance(heap, str | os.PathLike):
        result = resolve_on_target(os.fspath(heap))
    else:
        result = BoardHeap.of_recipe(recipe_of(heap))
    read = [trace_of(trace, repair) for trace in traces]
    return Session(cpu_name=cpu, kernel=around, **session).measure(result, read, LEVELS)


def _in_kernel(heap: AnyHeap | BoardHeap, kernel: Kernel) -> BoardHeap:
    """The kernel's own heap of that name, or a recipe with the platform's glue."""
    from heapwright._heaps.heaps import resolve_on_target
    from heapwright._measure.boards.image import BoardHeap
    from heapwright._measure.boards.kernel import PLATFORM
    from heapwright._platforms.catalogue import platform
    from heapwright._platforms.files import firmware_files

    if isinstance(heap, str) and (own := kernel.own_heap(heap)):
        return own
    if isinstance(heap, str | os.PathLike):
        heap = resolve_on_target(os.fspath(heap))
    given = heap.recipe if isinstance(heap, BoardHeap) else recipe_of(heap)
    name = heap.name if isinstance(heap, BoardHeap) else label_of(heap)
    if given is None:
        raise HeapwrightError(f"{name}: goes into no kernel; a recipe does, and lib:freertos-heap4")
    into = platform(PLATFORM)
    recipe = into.adapted(given)
    return BoardHeap(name, recipe=recipe, files=firmware_files(into, recipe, "target"))


@one_line_errors
def measure_front(
    study: Study | PathLike,
    traces: AnyTrace | Sequence[AnyTrace] = (),
    *,
    beside: Sequence[str] = (),
    objectives: Objectives | None = None,
    cpu: str = "cortex-m3",
    backend: str | None = None,
    compiler: str | None = None,
    level: str = "Os",
    arena: int | None = None,
    repair: bool = False,
    progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Measure a study's picks, its front and the zoo on an emulated processor; the results are kept in the study.

    `traces` are paths of the study's traces where they have moved; `beside` names other heaps; the rest is as of
    `measure`. Returns what `measure` does, for each heap and trace. Raises HeapwrightError as `measure` does.
    """
    from heapwright._heaps.heaps import resolve_on_target
    from heapwright._studies.analysis import Analysis
    from heapwright._studies.measured_front import measure_front as run

    path = study.path if isinstance(study, Analysis) else Path(study)
    return run(
        path,
        [Path(trace) for trace in listed(traces)],
        beside=[resolve_on_target(name) for name in beside],
        objectives=objectives,
        repair=repair,
        progress=progress,
        cpu_name=cpu,
        backend=backend,
        compiler=compiler,
        level=level,
        arena=arena,
    )


@one_line_errors
def report(
    source: Analysis | AnyTrace,
    output: PathLike,
    *,
    heaps: str | Sequence[str] = (),
    against: str | None = None,
    plots: PathLike | None = None,
    baseline: Analysis | PathLike | None = None,
    moved: Sequence[PathLike] = (),
    repair: bool = False,
) -> list[Path]:
    """Write one HTML page that shows a study or a trace.

    Args:
        source: the study or trace: a path, or the object (which must have come from a file).
        output: the page.
        heaps: names of the heaps that are drawn over time; for a study ids of it, too.
        against: the heap of a study that the reader has today, by id or zoo name. It is drawn next to the pick.
        plots: a folder for every plot as PNG and SVG; None writes none.
        baseline: an older study, whose differences the page then lists; `moved` as of `compare_studies`.
        repair: drop the invalid calls of a trace, and say so on the page.

    Returns the files written, the page first. Raises HeapwrightError for input or output that cannot be used.
    """
    from heapwright._report import write_report
    from heapwright._studies.analysis import Analysis
    from heapwright._support.kinds import kind_of
    from heapwright._traces.trace import Trace

    path = source.path if isinstance(source, Analysis | Trace) else source
    if path is None:
        raise HeapwrightError("report: the trace came from no file; write it first")
    changes = None
    if baseline is not None:
        from heapwright._api.explorations import compare_studies

        if kind_of(Path(path)) != "study":
            raise ParameterError(f"{path}: no study; only a study is compared with another", parameter="baseline")
        changes = compare_studies(baseline, path, moved=moved)
    named = listed(heaps) if isinstance(heaps, str) else heaps
    return write_report(path, output, named, plots, against, changes, repair)


@one_line_errors
def pull_request(
    study: Analysis | PathLike,
    output: PathLike | None = None,
    *,
    baseline: Analysis | PathLike | None = None,
    moved: Sequence[PathLike] = (),
) -> tuple[str, list[Path]]:
    """Summarise a study, and what changed since another, as Markdown of at most 40 lines.

    Args:
        study: it.
        output: the file to write, with a picture of the same name in .svg in its folder; None writes none.
        baseline, moved: as for `report`.

    Returns the text and the files written. Raises HeapwrightError for input or output that cannot be used.
    """
    from heapwright._report.pull_request import pull_request as write
    from heapwright._studies.analysis import Analysis

    paths = [item.path if isinstance(item, Analysis) else Path(item) for item in (study, baseline) if item is not None]
    with ExitStack() as stack:
        new, *old = [stack.enter_context(Analysis.open(path)) for path in paths]
        target = None if output is None else Path(output)
        return write(new, target, old[0] if old else None, moved=[Path(path) for path in moved])


@one_line_errors
def reproduce(
    what: str,
    output: PathLike,
    *,
    packets: PathLike | None = None,
    reading: str | None = None,
    readings: bool = False,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Run the experiments of the source papers and compare: `reproduce` of the distribution heapwright-papers.

    `what` is a paper's page or "all", `packets` a folder of packet tables, without which statements about real
    networks are not tested, `output` the folder to write to, `reading` another reading of one of the paper's sentences;
    with `readings` it also returns which statements hold under each. Raises HeapwrightError for an unknown page or
    reading, a folder without packet tables, or without that distribution.
    """
    from importlib.metadata import entry_points

    try:
        (entry,) = set(entry_points(group="heapwright.papers", name="reproduce"))
        run = entry.load()
    except (ValueError, ModuleNotFoundError):  # not installed, or its folder is gone
        raise HeapwrightError("the source papers are not installed; pip install 'heapwright[papers]'") from None
    result: dict[str, Any] = run(
        what,
        None if packets is None else Path(packets),
        Path(output),
        progress or (lambda line: None),
        reading,
        readings,
    )
    return result

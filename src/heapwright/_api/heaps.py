"""Heaps on traces: metrics, arenas, stress tests, adversarial search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from heapwright._api.arguments import (
    AnyHeap,
    AnyTrace,
    PathLike,
    energies_of,
    label_of,
    listed,
    number,
    one_line_errors,
    recipe_of,
    requested_heaps,
    trace_of,
)
from heapwright._api.sizes import check_fit_numbers
from heapwright._replay.metrics import ON_RECORDING, Value
from heapwright._support import notebook
from heapwright._support.errors import HeapwrightError, ParameterError

if TYPE_CHECKING:
    from heapwright._assure.stress_test import StressTestResult
    from heapwright._heaps.foreign.adapter import WordSize
    from heapwright._heaps.foreign.heap import ForeignHeap
    from heapwright._heaps.heaps import Arenas, RecipeHeap
    from heapwright._heaps.regions import MemoryUse, Placement, RegionContents, RegionPick
    from heapwright._platforms.size_options import OptionLines
    from heapwright._recipes.recipe import Recipe
    from heapwright._replay.energy import EnergyTable
    from heapwright._traces.failures import Failures
    from heapwright._traces.leaks import Leak
    from heapwright._traces.trace import Trace


@overload
def zoo(name: str) -> Recipe: ...
@overload
def zoo(name: None = ...) -> list[Recipe]: ...
def zoo(name: str | None = None) -> Recipe | list[Recipe]:
    """Return the named allocator, or all of them by name. Raises HeapwrightError where none has the name."""
    from heapwright._recipes.zoo import catalogue

    return catalogue.recipes() if name is None else catalogue.load(name)


def schema(of: Literal["recipe", "space"] = "recipe") -> dict[str, Any]:
    """Return the JSON Schema of a recipe file, or of a SPACE.toml, for editors and checks."""
    from heapwright._explore import space_file
    from heapwright._recipes import recipe

    return recipe.json_schema() if of == "recipe" else space_file.json_schema()


def zoo_text(name: str) -> str:
    """Return the zoo's TOML file of that name, with its prose and comments. Raises as `zoo` does."""
    from heapwright._recipes.zoo import catalogue

    return catalogue.text(name)


@one_line_errors
def read_recipe(path: PathLike) -> Recipe:
    """Read and validate a RECIPE.toml. Raises HeapwrightError naming file, pool and key, and what would be valid."""
    from heapwright._recipes.recipe import Recipe

    return Recipe.load(Path(path))


@one_line_errors
def find_heap(name: str, word_size: WordSize | None = None) -> RecipeHeap | ForeignHeap:
    """Find the heap of a name as the command line takes it; functions that take a heap take the result, too.

    `word_size` is the bits of a pointer, 32 or 64, in foreign heaps built here; None is what their adapter says. Raises
    HeapwrightError where nothing has that name, or what has it cannot be used.
    """
    from heapwright._heaps.heaps import resolve

    return resolve(name, word_size)


def is_heap(name: str) -> bool:
    """Whether a name is that of a heap, which may be looked for where another thing was expected."""
    from heapwright._heaps.names import is_heap as names_a_heap

    return names_a_heap(name)


@dataclass(frozen=True)
class Replay:
    """What a heap did on a trace.

    Attributes:
        trace: its name.
        heap: its name, or the recipe's name or id.
        metrics: every metric by its key; units in docs/metrics.md, None where unknown or not asked for.
        error: why a foreign heap has no metrics; None for every other.
        memories: the metrics of each memory of a recipe in several, by its name; empty for every other heap.
        failed_low: how many of the refused requests have low priority; None for foreign heaps and several memories, and
            if the trace has no priorities.
    """

    trace: str
    heap: str
    metrics: Mapping[str, Value]
    error: str | None = None
    memories: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    failed_low: int | None = None

    def __repr__(self) -> str:
        if self.error:
            return f"<Replay of {self.trace} on {self.heap}: {self.error}>"
        shown = ", ".join(f"{key} {number(self.metrics[key])}" for key in (*ON_RECORDING.values(), "failed"))
        return f"<Replay of {self.trace} on {self.heap}: {shown}>"


@overload
def replay(
    traces: AnyTrace,
    heaps: AnyHeap,
    *,
    arena: int | None = ...,
    time: bool = ...,
    fit: bool = ...,
    energy_table: EnergyTable | PathLike | None = ...,
    word_size: WordSize | None = ...,
    repair: bool = ...,
) -> Replay: ...
@overload
def replay(
    traces: AnyTrace | Sequence[AnyTrace],
    heaps: AnyHeap | Sequence[AnyHeap],
    *,
    arena: int | None = ...,
    time: bool = ...,
    fit: bool = ...,
    energy_table: EnergyTable | PathLike | None = ...,
    word_size: WordSize | None = ...,
    repair: bool = ...,
) -> Replay | list[Replay]: ...
@one_line_errors
def replay(
    traces: AnyTrace | Sequence[AnyTrace],
    heaps: AnyHeap | Sequence[AnyHeap],
    *,
    arena: int | None = None,
    time: bool = False,
    fit: bool = False,
    energy_table: EnergyTable | PathLike | None = None,
    word_size: WordSize | None = None,
    repair: bool = False,
) -> Replay | list[Replay]:
    """Run traces on heaps. O(calls) and what the heaps' searches take.

    Args:
        traces, heaps: one of each, or lists of them.
        arena: bytes of the arena; None is ample. Requests that a heap refuses are counted (`failed`).
        time: measure `ns_per_event` on this host, too; all heaps of a trace in turn.
        fit: find `smallest_arena_bytes`, too.
        energy_table: energy of an access by the size of the SRAM (docs/metrics.md), in place of the 90 nm table.
        word_size: bits of a pointer, 32 or 64, in foreign heaps built here; None is what their adapter says.
        repair: drop the invalid calls of traces that are read.

    Returns one `Replay`, or a list of them, trace by trace, where a list was given. In a list a foreign heap that
    fails has its reason in `error`; alone it raises.

    Raises HeapwrightError for input that cannot be used, or an arena that cannot hold a heap's control data.
    """
    from heapwright._heaps.heaps import replay_each

    requested, table, result = requested_heaps(heaps, word_size), energies_of(energy_table), []
    for trace in (trace_of(item, repair) for item in listed(traces)):
        outcomes = replay_each(trace, requested.heaps, arena=arena, time=time, fit=fit, energy=table)
        for label, key in requested.each:
            outcome = outcomes[key]
            result.append(
                Replay(trace.name, label, outcome.metrics, outcome.error, outcome.memories, outcome.failed_low)
            )
    return _alone(result, traces, heaps)


@dataclass(frozen=True)
class Fit:
    """The arena that a heap needs for a trace.

    Attributes:
        trace, heap: their names.
        smallest_arena_bytes: the smallest arena that serves the whole trace, control data counted; None where none
            does, or the heap lives in no arena.
        safe_arena_bytes: the least arena such that it and every larger one serve it.
        safe_proved: whether that is proved; else `safe_tried` larger arenas were tried, and all served.
        reserve_bytes: the arena to reserve: a fifth more than the trace and the held-out traces need, and enough for
            the share in question of `copies` perturbed copies, whose load-dependent part is `growth` times as large;
            None if too many of these are refused in any arena, or the heap reaches no further.
        growth: as asked for.
        fixed_bytes, varying_bytes: permanent requested bytes of the trace, and the rest of its peak.
        copies: how many copies were tried.
        refused: the copies and held-out traces of which the heap refuses some request in any arena.
        failed: requests of the trace that it refuses however large its arena is; 0 where an arena serves it, or where
            that is not known.
        worst_case_bytes: enough for any program whose live blocks and largest block are no larger than the trace's;
            None where no theorem says so. `worst_case_by` names the theorem.
        reach_bytes: the largest arena that the heap can use; None where nothing is known to bound it.
        reach_request_bytes: the largest request up to which an empty heap serves all; None if not known.
        reach_objects: how many objects can be allocated at most; None if not known.
        error: why a foreign heap has no arena; None for every other.
        leaks: what grows in a straight line in the trace, so that no arena serves it for long
            (`heapwright._traces.leaks`).
        failures: the requests that failed while it was recorded, and the life that their objects have in it; None if
            none failed (`heapwright._traces.failures`).
        options: the reserve as lines for the system that the heap goes into, each for a file; empty if none is known.
    """

    trace: str
    heap: str
    smallest_arena_bytes: int | None
    safe_arena_bytes: int | None
    safe_tried: int | None
    safe_proved: bool | None
    reserve_bytes: int | None
    growth: float
    fixed_bytes: int
    varying_bytes: int
    copies: int
    refused: tuple[str, ...]
    failed: int
    worst_case_bytes: int | None
    worst_case_by: str | None
    reach_bytes: int | None
    reach_request_bytes: int | None
    reach_objects: int | None
    error: str | None = None
    leaks: tuple[Leak, ...] = ()
    failures: Failures | None = None
    options: tuple[OptionLines, ...] = ()

    def _repr_html_(self) -> str:
        keys = ("smallest_arena_bytes", "safe_arena_bytes", "reserve_bytes", "worst_case_bytes", "reach_bytes")
        info = {key.replace("_", " "): notebook.number(getattr(self, key)) for key in keys}
        info |= {"refused": ", ".join(self.refused) or "-"} | ({"error": self.error} if self.error else {})
        return notebook.pairs(f"{self.heap} on {self.trace}", info)

    @classmethod
    def of(cls, trace: Trace, heap: str, result: Arenas, copies: int, growth: float) -> Fit:
        """Name what `heapwright._heaps.heaps.fit_each` found for an allocator, without what the trace alone shows."""
        from heapwright._traces.load import load_of

        size, tried, proved = result.safe or (None, None, None)
        worst, theorem = result.worst or (None, None)
        load = load_of(trace)
        return cls(
            trace=trace.name,
            heap=heap,
            smallest_arena_bytes=result.smallest,
            safe_arena_bytes=size,
            safe_tried=tried,
            safe_proved=proved,
            reserve_bytes=result.reserve,
            growth=growth,
            fixed_bytes=load.fixed_bytes,
            varying_bytes=load.varying_bytes,
            copies=copies,
            refused=result.refused,
            failed=result.failed,
            worst_case_bytes=worst,
            worst_case_by=theorem,
            reach_bytes=result.reach.arena_bytes,
            reach_request_bytes=result.reach.request_bytes,
            reach_objects=result.reach.objects,
            error=result.error,
        )

    def __repr__(self) -> str:
        arenas = f"smallest {number(self.smallest_arena_bytes)}, safe {number(self.safe_arena_bytes)}"
        arenas += f", reserve {number(self.reserve_bytes)} bytes"
        arenas += f"; leaks {sum(leak.bytes_per_call for leak in self.leaks):,.3g} bytes a call" if self.leaks else ""
        return f"<Fit of {self.heap} on {self.trace}: {self.error or arenas}>"


@overload
def fit(
    traces: AnyTrace,
    heaps: AnyHeap,
    *,
    step: int | None = ...,
    copies: int | None = ...,
    held_out: AnyTrace | Sequence[AnyTrace] = ...,
    share: float = ...,
    growth: float = ...,
    live: int | None = ...,
    failed_life: int | None = ...,
    seed: int = ...,
    word_size: WordSize | None = ...,
    platform: str | None = ...,
    repair: bool = ...,
) -> Fit: ...
@overload
def fit(
    traces: AnyTrace | Sequence[AnyTrace],
    heaps: AnyHeap | Sequence[AnyHeap],
    *,
    step: int | None = ...,
    copies: int | None = ...,
    held_out: AnyTrace | Sequence[AnyTrace] = ...,
    share: float = ...,
    growth: float = ...,
    live: int | None = ...,
    failed_life: int | None = ...,
    seed: int = ...,
    word_size: WordSize | None = ...,
    platform: str | None = ...,
    repair: bool = ...,
) -> Fit | list[Fit]: ...
@one_line_errors
def fit(
    traces: AnyTrace | Sequence[AnyTrace],
    heaps: AnyHeap | Sequence[AnyHeap],
    *,
    step: int | None = None,
    copies: int | None = None,
    held_out: AnyTrace | Sequence[AnyTrace] = (),
    share: float = 1.0,
    growth: float = 1.0,
    live: int | None = None,
    failed_life: int | None = None,
    seed: int = 0,
    word_size: WordSize | None = None,
    platform: str | None = None,
    repair: bool = False,
) -> Fit | list[Fit]:
    """Find the smallest arena for a whole trace, the monotone minimum, and the arena to reserve.

    Args:
        traces, heaps: one of each, or lists of them.
        step: bytes; the arena is a multiple of it. None is one alignment unit.
        copies: perturbed copies of each trace that the reserved arena must serve, as `heapwright.copies` makes them at
            the recorded load; None for none: docs/robustness.md has what they are worth.
        held_out: other recordings, all of which it must serve.
        share: of the copies, above 0 and at most 1, that it must serve.
        growth: how many times as much there is of what depends on the load, above 0; what is permanent stays.
        live: in place of `growth` the most requested bytes that are expected to be live at once, as a counter of a
            device or a free-heap reading shows them: what depends on the load grows until that is the live peak.
        failed_life: calls that the object of a request lives that failed in the recording; None for the life that the
            trace gives it.
        seed: another seed, other copies.
        word_size: bits of a pointer, 32 or 64, in foreign heaps built here; None is what their adapter says.
        platform: the system whose options `Fit.options` are in, as "freertos", "lwip" or "lvgl"; if it has a port,
            recipes are as `generate` writes them there, but for the system's own heap. "auto" for the options of the
            trace's log or the heap, if only one system has it. None for no options.
        repair: drop the invalid calls of traces that are read.

    Returns one `Fit`, or a list of them, trace by trace, where a list was given. In a list a foreign heap that fails
    has its reason in `error`; alone it raises. Raises HeapwrightError for input that cannot be used.
    """
    from heapwright._heaps.heaps import fit_each
    from heapwright._traces.copies import AT_LOAD
    from heapwright._traces.copies import copies as make_copies
    from heapwright._traces.failures import failures_of
    from heapwright._traces.leaks import find_leaks
    from heapwright._traces.load import load_of

    check_fit_numbers(copies, step, share, growth, live)

    def scaled(trace: Trace) -> float:
        load = load_of(trace)
        return load.factor(growth) if live is None else live / max(load.peak_bytes, 1)

    if platform is not None:
        from heapwright._heaps.system_sizes import Sizing, as_generated, sizes_in_options, system_of

        system = system_of(platform)
    requested, others, result = (
        requested_heaps(heaps, word_size),
        [trace_of(item, repair) for item in listed(held_out)],
        [],
    )
    if platform is not None:
        requested = requested._replace(heaps={key: as_generated(it, system) for key, it in requested.heaps.items()})
    for trace in _read(traces, repair, failed_life):
        made = make_copies(trace, copies, kinds=AT_LOAD, seed=seed) if copies else []
        grown = growth if live is None else load_of(trace).growth_for(live)
        fitted = fit_each(trace, requested.heaps, step=step, copies=made, held_out=others, share=share, scaled=scaled)
        leaks, failures = find_leaks(trace), failures_of(trace) or None
        for label, key in requested.each:
            of_heap = replace(Fit.of(trace, label, fitted[key], len(made), grown), leaks=leaks, failures=failures)
            if platform is not None and of_heap.reserve_bytes is not None:
                sizing = Sizing(trace, others, requested.heaps[key], of_heap.reserve_bytes, scaled)
                of_heap = replace(of_heap, options=sizes_in_options(system, sizing))
            result.append(of_heap)
    return _alone(result, traces, heaps)


def _read(traces: AnyTrace | Sequence[AnyTrace], repair: bool, failed_life: int | None) -> Iterator[Trace]:
    """The traces, one after the other, with another life of failed requests if there is one."""
    from heapwright._traces.failures import with_life

    for item in listed(traces):
        trace = trace_of(item, repair)
        yield trace if failed_life is None else with_life(trace, failed_life)


@one_line_errors
def stress(
    traces: AnyTrace | Sequence[AnyTrace],
    heaps: AnyHeap | Sequence[AnyHeap],
    *,
    calls: int = 10_000_000,
    seed: int = 0,
    output: PathLike | None = None,
    repair: bool = False,
) -> list[StressTestResult]:
    """Try whether heaps last: nine loops of a trace's sizes at constant live bytes, and the trace again and again.

    Args:
        traces, heaps: one of each, or lists of them; heaps are recipes.
        calls: most calls of a loop, at least 10,000; one whose footprint is flat for a decade ends after a tenth.
        seed: of the draws.
        output: a picture to draw, a file that ends in .svg or .html; None for none.
        repair: drop the invalid calls of traces that are read.

    Returns a `StressTestResult` for each, trace by trace. Ten million calls of each loop take some seconds a heap.
    Raises HeapwrightError for input that cannot be used, such as a foreign heap or several memories.
    """
    from heapwright._assure.stress_test import effort_of, stress_result
    from heapwright._heaps.heaps import RecipeHeap

    effort = effort_of(calls)
    if output is not None:
        from heapwright._report.drawing import check_suffix

        check_suffix(Path(output))
    requested = requested_heaps(heaps)
    recipes: dict[str, Recipe] = {}
    for label, key in requested.each:
        heap = requested.heaps[key]
        if not isinstance(heap, RecipeHeap) or heap.recipe.memory:
            raise ParameterError(f"{label}: the stress test takes recipes in one memory", parameter="heaps")
        recipes[key] = heap.recipe
    results = []
    for trace in (trace_of(item, repair) for item in listed(traces)):
        tried = {key: stress_result(trace, key, recipe, effort, seed) for key, recipe in recipes.items()}
        results += [replace(tried[key], heap=label) for label, key in requested.each]
    if output is not None:
        from heapwright._report.stress_picture import write_picture

        write_picture(results, Path(output))
    return results


@one_line_errors
def fit_regions(trace: AnyTrace, heap: AnyHeap, regions: Sequence[int]) -> list[Placement]:
    """Place a trace's objects in several memory regions, with the same allocator in each.

    Args:
        trace: one trace.
        heap: a recipe in one memory.
        regions: bytes of each region, 2 to 4 of them.

    Returns every order tried, as `heapwright._heaps.regions.placements`, the best first. Raises HeapwrightError for
    input that cannot be used.
    """
    from heapwright._heaps.regions import placements

    return placements(trace_of(trace), recipe_of(heap), regions)


@one_line_errors
def place_in_regions(
    traces: AnyTrace | Sequence[AnyTrace],
    heaps: AnyHeap | Sequence[AnyHeap] | Mapping[str, Recipe],
    regions: Sequence[int],
    *,
    futures: Sequence[AnyTrace] = (),
) -> RegionPick | None:
    """Choose among heaps the first that serves traces, and their futures, in several memory regions.

    Args:
        traces: recordings; the first decides the order of the regions.
        heaps: recipes in one memory, the preferred first, or a dictionary of them by name.
        regions: bytes of each region, 2 to 4 of them.
        futures: longer traces that it must serve, too, as of `resample`.

    Returns the heap, or the one that fails the fewest requests; None if none can be placed.
    """
    from heapwright._heaps.regions import pick_for_regions

    named = heaps if isinstance(heaps, Mapping) else {label_of(heap): recipe_of(heap) for heap in listed(heaps)}
    read = [trace_of(trace) for trace in listed(traces)]
    return pick_for_regions(read, named, regions, [trace_of(trace) for trace in futures])


@one_line_errors
def fit_memories(trace: AnyTrace, heap: AnyHeap) -> list[MemoryUse]:
    """The bytes that each memory of a recipe in several takes on a trace. Raises HeapwrightError for other heaps."""
    from heapwright._heaps.regions import memory_uses

    return memory_uses(trace_of(trace), recipe_of(heap))


@one_line_errors
def region_contents(trace: AnyTrace, placement: Placement) -> list[RegionContents]:
    """Which objects a placement puts in which region, in the order in which regions are tried."""
    from heapwright._heaps.regions import contents

    return contents(trace_of(trace), placement)


@dataclass(frozen=True)
class Worst:
    """The calls that cost a heap most of what a search tried.

    Attributes:
        trace: the calls, a `Trace` to replay or write; the original's where nothing cost more.
        heap: its name.
        objective: the metric that was to be as large as possible.
        value, original_value: the metric on these calls, and on the original trace.
        worst_case_bytes: the arena that no such program can exceed; None where no theorem says so.
        worst_steps: the accesses that no malloc or free of any program exceeds; None where nothing bounds them.
        unbounded: then the reason; else "".
    """

    trace: Trace
    heap: str
    objective: str
    value: int
    original_value: int
    worst_case_bytes: int | None
    worst_steps: int | None
    unbounded: str

    def __repr__(self) -> str:
        values = f"{self.objective} {number(self.value)}, {number(self.original_value)} on the trace itself"
        return f"<Adversarial search on {self.heap}: {values}, worst case {number(self.worst_case_bytes)} bytes>"


@one_line_errors
def find_worst(
    trace: AnyTrace,
    heap: AnyHeap,
    objective: str = "footprint_bytes",
    *,
    tries: int = 200,
    seed: int = 0,
    repair: bool = False,
) -> Worst:
    """Search for the calls, with the sizes and no more live bytes than a trace has, that cost a recipe most.

    Args:
        trace: whose sizes, live bytes and number of calls bound the search.
        heap: a recipe; foreign heaps are not searched.
        objective: "footprint_bytes", "accesses" (of the worst-case malloc or free), "accesses_malloc_max" or
            "accesses_free_max".
        tries: replays.
        seed: another seed, another search.
        repair: drop the invalid calls of a trace that is read.

    See `heapwright._replay.adversarial_search.find_worst`. Raises HeapwrightError for a foreign heap.
    """
    from heapwright._recipes.worst_steps import worst_steps
    from heapwright._replay.adversarial_search import find_worst as search
    from heapwright._replay.worst_case import worst_case

    original, recipe = trace_of(trace, repair), recipe_of(heap)
    result = search(original, recipe, objective, tries=tries, seed=seed)
    bound, steps = worst_case(original, recipe), worst_steps(recipe)
    return Worst(
        result.trace,
        label_of(heap),
        objective,
        result.value,
        result.original,
        bound.bytes if bound else None,
        steps.most,
        steps.reason,
    )


_Row = TypeVar("_Row", Replay, Fit)


def _alone(result: list[_Row], traces: object, heaps: object) -> _Row | list[_Row]:
    """The list, or its one item where no list was given."""
    if isinstance(traces, list | tuple) or isinstance(heaps, list | tuple):
        return result
    (item,) = result
    if item.error:
        raise HeapwrightError(item.error)
    return item

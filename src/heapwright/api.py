"""The Python API: what every command does, in one call each; `heapwright` hands these names on.

A trace is a path or a `Trace`, packets a path or a `PacketTable`. A heap is a name as on the command line (a zoo NAME,
RECIPE.toml, STUDY:ID, lib:NAME, ...), a path, a `Recipe`, or a member of a study (`study["ID"]`, `study.pick()`).
What cannot be used raises `HeapwrightError` with one line that says what, where, and what would be valid.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, TypeAlias, TypeVar, overload

from heapwright.decide.by_load import AtLoad
from heapwright.decide.by_load import picks_by_load as _picks_by_load
from heapwright.decide.picks import Pick
from heapwright.decide.results import Candidate
from heapwright.decide.study import Study as _Study
from heapwright.errors import HeapwrightError, ParameterError, did_you_mean
from heapwright.explore.options import COPIES, DEFAULT_OBJECTIVES, Options, Strategy
from heapwright.explore.runner import Progress
from heapwright.explore.search import Exploration
from heapwright.explore.search import explore as _explore
from heapwright.files.kinds import kind_of
from heapwright.heaps.heaps import (
    Arenas,
    Heap,
    RecipeHeap,
    find,
    fit_each,
    parse,
    replay_each,
    resolve_on_target,
    resolve_recipe,
)
from heapwright.heaps.heaps import (
    is_heap as names_a_heap,
)
from heapwright.heaps.heaps import (
    picked_up as picked_up,
)
from heapwright.measure.boards.image import Heap as TargetHeap
from heapwright.recipes.recipe import Recipe as Recipe
from heapwright.recipes.worst_steps import worst_steps as worst_steps
from heapwright.recipes.zoo import catalogue
from heapwright.recipes.zoo.catalogue import RECOMMENDED as RECOMMENDED
from heapwright.recipes.zoo.facts import facts as facts
from heapwright.replay.energy import EnergyTable
from heapwright.replay.metrics import Value
from heapwright.replay.worst_case import worst_case
from heapwright.replay.worst_found import find_worst as _find_worst
from heapwright.traces.copies import Kind as CopyKind
from heapwright.traces.copies import affordable
from heapwright.traces.copies import copies as _copies
from heapwright.traces.cut import cut as _cut
from heapwright.traces.merge import merge as _merge
from heapwright.traces.record import Recording
from heapwright.traces.record import record as _record
from heapwright.traces.recorded import Follow, Recorded
from heapwright.traces.scale import POINTER_SHARE
from heapwright.traces.scale import scale as _scale
from heapwright.traces.streams import Stream, Written
from heapwright.traces.trace import Trace as Trace
from heapwright.traffic.packets import PacketTable as PacketTable

if TYPE_CHECKING:
    import altair
    import pyarrow

    from heapwright.assure.endurance import Endured
    from heapwright.assure.proof.prove import Proof
    from heapwright.decide.shipping import ToShip
    from heapwright.explore.space import Space, WideSpace
    from heapwright.heaps.foreign.adapter import WordSize
    from heapwright.platforms.catalogue import Platform
    from heapwright.studies.verify import Again
    from heapwright.traces.export import Exported
    from heapwright.traces.logs import Imported

PathLike: TypeAlias = "str | os.PathLike[str]"
AnyTrace: TypeAlias = "Trace | PathLike"
AnyHeap: TypeAlias = "PathLike | Recipe | Heap | Member"

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Found = TypeVar("_Found")


def _one_line(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make the operating system's errors the one line that the command line prints."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise HeapwrightError(f"{where}{error.strerror or error}") from error

    return call


# ---- traces --------------------------------------------------------------------------------------------------------


@_one_line
def read_trace(path: PathLike, *, repair: bool = False) -> Trace:
    """Read and validate a trace; `repair` drops its invalid calls and says so in `Trace.repairs`. See `Trace.read`."""
    return Trace.read(path, repair=repair)


@_one_line
def record(
    command: Sequence[str],
    output: PathLike | None = None,
    *,
    limit: int | None = None,
    follow: Follow = "each",
    sites: bool = False,
) -> Recording:
    """Run a program and write every heap call it makes as a Parquet trace; Linux only.

    Args:
        command: the program and its arguments.
        output: the trace; PROGRAM.parquet in the current folder if None. Processes that the program starts get traces
            of their own beside it.
        limit: calls after which the recording of a process ends, while the program goes on; none if None.
        follow: "each" process has a trace, or there is "one" of them all, in the order of their calls' times.
        sites: record where each call was made, too.

    Returns the traces written (`files`, the largest first), `exit_status`, and what recording cost.

    Raises HeapwrightError where there is no such program, nothing was recorded, or the output cannot be written.
    """
    return _record(command, output, limit=limit, follow=follow, sites=sites)


@_one_line
def profile(source: AnyTrace | PacketTable, *, repair: bool = False) -> dict[str, Any]:
    """Characterise what a trace or a packet table asks of memory: plain Python values, ready for JSON.

    See `heapwright.traces.profile.profile` and `heapwright.traffic.profile.profile_packets` for the keys, their units
    and shapes. Raises HeapwrightError where the file is neither.
    """
    from heapwright.traces.profile import profile as of_trace
    from heapwright.traffic.profile import profile_file, profile_packets

    if isinstance(source, Trace):
        return of_trace(source)
    if isinstance(source, PacketTable):
        return profile_packets(source, source.metadata.get("name", "packets"))
    return profile_file(Path(source), repair)


@_one_line
def import_packets(
    path: PathLike, *, format: str | None = None, count: int | None = None, seed: int = 0
) -> PacketTable:
    """Read a file of packets (pcap, pcapng, TSH, CSV, or a profile to draw from); see `heapwright.traffic`.

    `count` and `seed` are for a profile: how many to draw, and which draw. `PacketTable.write` stores it.
    Raises HeapwrightError where the format is not known or the file holds nothing of it.
    """
    from heapwright.traffic import import_packets as of_file

    return of_file(path, format, count, seed)


@_one_line
def import_log(path: PathLike, *, format: str | None = None) -> Trace:
    """Read a log of heap calls that another tool wrote, such as Valgrind or heaptrack; see `heapwright.traces.logs`.

    The trace's `repairs` say what was left out, its `notes` what the log cannot tell. `Trace.write` stores it. Raises
    HeapwrightError where the format is not known, single calls are gone from it, or it has none.
    """
    from heapwright.traces.logs import import_log as of_file

    return of_file(path, format)


@_one_line
def convert_log(path: PathLike, output: PathLike, *, format: str | None = None) -> Imported:
    """Write the trace of a log of heap calls, as `import_log` reads it, in memory that does not grow with its calls.

    Returns what `heapwright.traces.logs.Imported` tells. Raises HeapwrightError as `import_log`, and where `output`
    cannot be written.
    """
    from heapwright.traces.logs import convert_log as of_file

    return of_file(path, output, format)


@_one_line
def import_recording(folder: PathLike, output: PathLike, *, follow: Follow = "each") -> list[Recorded]:
    """Write the traces of what the recorder left in a folder, as `record` would have; the folder is left as it is.

    That is what a killed `record` leaves (``.heapwright-*.recording``), or the folder that HEAPWRIGHT_RECORD_DIR named
    for a program that was started with the recorder preloaded; `follow` is that of `record`. Raises HeapwrightError
    where it holds no recording.
    """
    from heapwright.traces.recorded import convert

    files = convert(Path(folder), Path(output), consume=False, follow=follow)
    if not files:
        raise HeapwrightError(f"{folder}: holds no recording; give the folder that a killed `record` left")
    return files


@_one_line
def is_log(path: PathLike) -> bool:
    """Whether a file begins as a log of heap calls does. Raises HeapwrightError for logs that sum calls up."""
    from heapwright.traces.logs import log_format

    return log_format(path) is not None


@overload
def workload(
    name: str, packets: PacketTable | PathLike | None = None, *, load: Sequence[float], **options: Any
) -> list[Trace]: ...


@overload
def workload(
    name: str, packets: PacketTable | PathLike | None = None, *, load: float | None = None, **options: Any
) -> Trace: ...


@_one_line
def workload(
    name: str,
    packets: PacketTable | PathLike | None = None,
    *,
    load: float | Sequence[float] | None = None,
    **options: Any,
) -> Trace | list[Trace]:
    """Make the trace of what a network application asks of its heap.

    Args:
        name: "drr", "easyport", "url" or "queue", which need `packets`; "modem" or "poisson", which need none.
        packets: the traffic.
        load: share of time that the link of a workload of packets is busy; several give a trace each, in a list. None
            is the workload's own.
        options: as of the function of that name in `heapwright.traffic.workloads`; docs/workloads.md has them, with
            units. For packets also `longest_gap`, see `PacketTable.closing_gaps`.

    Raises HeapwrightError for an unknown name or option, or packets that it cannot use.
    """
    from heapwright.traffic.workloads.loads import at_loads

    if load is None:
        return _workload(name, packets, options)()
    make = _workload(name, packets, options, "load")
    return make(load=load) if isinstance(load, (int, float)) else at_loads(make, load)


@_one_line
def load_peaks(name: str, packets: PacketTable | PathLike, *, load: float, **options: Any) -> dict[float, int]:
    """How steep a workload's peak is: the largest live bytes at a tenth less load, at this load and at a tenth more.

    The arguments are those of `workload`, which raises the same.
    """
    from heapwright.traffic.workloads.loads import peaks_around

    return peaks_around(_workload(name, packets, options, "load"), load)


def _workload(
    name: str, packets: PacketTable | PathLike | None, options: Mapping[str, Any], *more: str
) -> Callable[..., Trace]:
    """The function of that name with its packets and options, which takes `more`."""
    from heapwright.traffic.workloads import NAMES, function

    if name not in NAMES:
        raise HeapwrightError(f"{name}: no such workload; {did_you_mean(name, NAMES)}")
    make = function(name)
    parameters = inspect.signature(make).parameters
    options = dict(options)
    longest_gap = options.pop("longest_gap", None) if "packets" in parameters else None
    if unknown := next((option for option in (*options, *more) if option not in parameters), None):
        known = [option for option in parameters if option != "packets"]
        raise HeapwrightError(f"{name}: no option {unknown}; {did_you_mean(unknown, known)}")
    if "packets" not in parameters:
        return functools.partial(make, **options)
    if packets is None:
        raise HeapwrightError(f"{name}: needs packets; give a packet table, which import_packets makes of a capture")
    table = packets if isinstance(packets, PacketTable) else PacketTable.read(packets)
    if longest_gap is not None:
        table = table.closing_gaps(longest_gap)
    return functools.partial(make, table, **options)


@_one_line
def copies(
    trace: AnyTrace,
    count: int = 8,
    *,
    kinds: Sequence[str | CopyKind] | None = None,
    seed: int = 0,
    repair: bool = False,
) -> list[Trace]:
    """Make perturbed copies of a trace: what the same program might have asked on another day.

    Args:
        trace: the original.
        count: copies in all, the kinds in turn.
        kinds: "sizes+blocks" and "load", which are what None means, "sizes", "lifetimes", "streams", "blocks", or
            instances of the classes of `heapwright.traces.copies` with parameters of your own.
        seed: another seed, other copies.
        repair: drop the invalid calls of a trace that is read.

    See `heapwright.traces.copies.copies` for their names and metadata, docs/robustness.md for what they are worth.
    """
    return _copies(_trace(trace, repair), count, kinds=kinds, seed=seed)


@overload
def cut(
    trace: AnyTrace,
    output: None = None,
    *,
    first: int | timedelta | None = None,
    last: int | timedelta | None = None,
    start: int | timedelta | None = None,
    stop: int | timedelta | None = None,
    threads: int | Sequence[int] = (),
    phases: str | Sequence[str] = (),
    sites: str | Sequence[str] = (),
    live: bool = False,
    close: bool = True,
    repair: bool = False,
) -> Trace: ...
@overload
def cut(
    trace: AnyTrace,
    output: PathLike,
    *,
    first: int | timedelta | None = None,
    last: int | timedelta | None = None,
    start: int | timedelta | None = None,
    stop: int | timedelta | None = None,
    threads: int | Sequence[int] = (),
    phases: str | Sequence[str] = (),
    sites: str | Sequence[str] = (),
    live: bool = False,
    close: bool = True,
    repair: bool = False,
) -> Written: ...
@_one_line
def cut(
    trace: AnyTrace,
    output: PathLike | None = None,
    *,
    first: int | timedelta | None = None,
    last: int | timedelta | None = None,
    start: int | timedelta | None = None,
    stop: int | timedelta | None = None,
    threads: int | Sequence[int] = (),
    phases: str | Sequence[str] = (),
    sites: str | Sequence[str] = (),
    live: bool = False,
    close: bool = True,
    repair: bool = False,
) -> Trace | Written:
    """Return a part of a trace: a stretch of calls or time, or what some threads, phases or sites allocate.

    See `heapwright.traces.cut.cut`. With `output` the part is written there in bounded memory, whatever its length, and
    `Written` tells of it.
    """
    part = _cut(
        Stream.of(trace, repair),
        first=first,
        last=last,
        start=start,
        stop=stop,
        threads=_listed(threads),
        phases=_listed(phases),
        sites=_listed(sites),
        live=live,
        close=close,
    )
    return part.trace() if output is None else part.write(output)


@overload
def merge(traces: Sequence[AnyTrace], output: None = None, *, repair: bool = False) -> Trace: ...
@overload
def merge(traces: Sequence[AnyTrace], output: PathLike, *, repair: bool = False) -> Written: ...
@_one_line
def merge(traces: Sequence[AnyTrace], output: PathLike | None = None, *, repair: bool = False) -> Trace | Written:
    """Make one trace of several, their calls in the order of time; see `heapwright.traces.merge.merge`.

    `output` as in `cut`.
    """
    merged = _merge([Stream.of(trace, repair) for trace in traces])
    return merged.trace() if output is None else merged.write(output)


@overload
def scale(
    trace: AnyTrace,
    output: None = None,
    *,
    pointer_bytes: int = 4,
    recorded_pointer_bytes: int | None = None,
    pointer_share: float = POINTER_SHARE,
    repair: bool = False,
) -> Trace: ...
@overload
def scale(
    trace: AnyTrace,
    output: PathLike,
    *,
    pointer_bytes: int = 4,
    recorded_pointer_bytes: int | None = None,
    pointer_share: float = POINTER_SHARE,
    repair: bool = False,
) -> Written: ...
@_one_line
def scale(
    trace: AnyTrace,
    output: PathLike | None = None,
    *,
    pointer_bytes: int = 4,
    recorded_pointer_bytes: int | None = None,
    pointer_share: float = POINTER_SHARE,
    repair: bool = False,
) -> Trace | Written:
    """Estimate what a trace would be with pointers of 4 or 8 bytes; see `heapwright.traces.scale.scale`.

    `output` as in `cut`.
    """
    estimate = _scale(
        Stream.of(trace, repair),
        pointer_bytes,
        recorded_pointer_bytes=recorded_pointer_bytes,
        pointer_share=pointer_share,
    )
    return estimate.trace() if output is None else estimate.write(output)


@_one_line
def diff(before: AnyTrace, after: AnyTrace, *, repair: bool = False) -> dict[str, Any]:
    """Compare what two builds of a program ask of memory: plain values, ready for JSON.

    See `heapwright.traces.diff.diff` for the keys. Memory is bounded, whatever the length of the traces.
    """
    from heapwright.traces.diff import diff as of_streams

    return of_streams(Stream.of(before, repair), Stream.of(after, repair))


@_one_line
def export_trace(trace: AnyTrace, output: PathLike, *, format: str, repair: bool = False) -> Exported:
    """Write a trace for other tools: "minimalloc" (CSV), "malloclab" (.rep) or "c" (an array).

    See `heapwright.traces.export.export` for what each holds. Memory is bounded, whatever the length of the trace.
    Raises HeapwrightError for another format.
    """
    from heapwright.traces.export import export

    return export(Stream.of(trace, repair), Path(output), format)


@_one_line
def trace_facts(trace: AnyTrace, *, repair: bool = False) -> dict[str, Any]:
    """What is in a trace: calls, threads, peaks, phases, sites, metadata, in bounded memory, ready for JSON.

    Returns `trace` (its name), `events`, `seconds` (None without times), `threads`, `requested_peak_bytes`,
    `live_objects_peak`, `phases`, `sites`, `metadata` and `repairs` (what reading dropped or changed, in words).
    """
    stream = Stream.of(trace, repair)
    totals = stream.totals()
    return {
        "trace": stream.name,
        "events": totals.events,
        "seconds": totals.seconds,
        "threads": totals.threads,
        "requested_peak_bytes": totals.peak_bytes,
        "live_objects_peak": totals.peak_objects,
        "phases": [name for name in stream.phases if name],
        "sites": [name for name in stream.sites if name],
        "metadata": stream.metadata,
        "repairs": list(stream.repairs),
    }


# ---- heaps ---------------------------------------------------------------------------------------------------------


@overload
def zoo(name: str) -> Recipe: ...
@overload
def zoo(name: None = None) -> list[Recipe]: ...
def zoo(name: str | None = None) -> Recipe | list[Recipe]:
    """Return the named allocator, or all of them by name. Raises HeapwrightError where none has the name."""
    return catalogue.recipes() if name is None else catalogue.load(name)


def zoo_text(name: str) -> str:
    """Return the zoo's TOML file of that name, with its prose and comments. Raises as `zoo` does."""
    return catalogue.text(name)


@_one_line
def read_recipe(path: PathLike) -> Recipe:
    """Read and validate a RECIPE.toml. Raises HeapwrightError naming file, pool and key, and what would be valid."""
    return Recipe.load(Path(path))


def is_heap(name: str) -> bool:
    """Whether a name is that of a heap, which may be looked for where another thing was expected."""
    return names_a_heap(name)


def _heap(heap: AnyHeap, word_size: WordSize | None) -> Heap:
    if isinstance(heap, str | os.PathLike):
        return find(os.fspath(heap), word_size)
    if isinstance(heap, Recipe):
        return RecipeHeap(heap)
    return RecipeHeap(heap.recipe) if isinstance(heap, Member) else heap


def _recipe(heap: AnyHeap) -> Recipe:
    if isinstance(heap, str | os.PathLike):
        return resolve_recipe(os.fspath(heap))
    if isinstance(heap, Recipe):
        return heap
    if isinstance(heap, Member | RecipeHeap):
        return heap.recipe
    raise HeapwrightError(f"{_label(heap)}: no recipe but a foreign heap; replay and fit take those, this does not")


def _label(heap: AnyHeap) -> str:
    if isinstance(heap, str | os.PathLike):
        return os.fspath(heap)
    return heap.name or heap.hash if isinstance(heap, Recipe) else heap.label


def _trace(trace: AnyTrace, repair: bool = False) -> Trace:
    return trace if isinstance(trace, Trace) else Trace.read(trace, repair=repair)


def _listed(given: Any) -> list[Any]:
    """The items of a list or tuple, or the one thing given."""
    return list(given) if isinstance(given, list | tuple) else [given]


class _Asked(NamedTuple):
    """Heaps that were asked for: the label and key of each, in order, and every heap once by its key.

    The key is the label, and where several heaps have one, another for each.
    """

    each: list[tuple[str, str]]
    heaps: dict[str, Heap]


def _asked(heaps: AnyHeap | Sequence[AnyHeap], word_size: WordSize | None = None) -> _Asked:
    asked = _Asked([], {})
    for given in _listed(heaps):
        label, heap = _label(given), _heap(given, word_size)
        keys = chain([label], (f"{label} ({number})" for number in count(2)))
        key = next(key for key in keys if asked.heaps.get(key, heap) == heap)
        asked.heaps[key] = heap
        asked.each.append((label, key))
    return asked


@dataclass(frozen=True)
class Replay:
    """What a heap did on a trace.

    Attributes:
        trace: its name.
        heap: its name, or the recipe's name or id.
        metrics: every metric by its key; units in docs/metrics.md, None where unknown or not asked for.
        error: why a foreign heap has no metrics; None for every other.
        memories: the metrics of each memory of a recipe in several, by its name; empty for every other heap.
    """

    trace: str
    heap: str
    metrics: Mapping[str, Value]
    error: str | None = None
    memories: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)

    def __repr__(self) -> str:
        if self.error:
            return f"<Replay of {self.trace} on {self.heap}: {self.error}>"
        shown = ", ".join(f"{key} {_number(self.metrics[key])}" for key in (*DEFAULT_OBJECTIVES, "failed"))
        return f"<Replay of {self.trace} on {self.heap}: {shown}>"


@overload
def replay(
    traces: AnyTrace,
    heaps: AnyHeap,
    *,
    arena: int | None = None,
    time: bool = False,
    fit: bool = False,
    energy_table: EnergyTable | PathLike | None = None,
    word_size: WordSize | None = None,
    repair: bool = False,
) -> Replay: ...
@overload
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
) -> Replay | list[Replay]: ...
@_one_line
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
    asked, table, found = _asked(heaps, word_size), _energy_table(energy_table), []
    for trace in (_trace(one, repair) for one in _listed(traces)):
        outcomes = replay_each(trace, asked.heaps, arena=arena, time=time, fit=fit, energy=table)
        for label, key in asked.each:
            outcome = outcomes[key]
            found.append(Replay(trace.name, label, outcome.metrics, outcome.error, outcome.memories))
    return _alone(found, traces, heaps)


def _energy_table(table: EnergyTable | PathLike | None) -> EnergyTable | None:
    return table if table is None or isinstance(table, EnergyTable) else EnergyTable.read(Path(table))


@dataclass(frozen=True)
class Fit:
    """The arena that a heap needs for a trace.

    Attributes:
        trace, heap: their names.
        smallest_arena_bytes: the smallest arena that serves the whole trace, control data counted; None where none
            does, or the heap lives in no arena.
        safe_arena_bytes: the least arena such that it and every larger one serve it.
        safe_proved: whether that is proved; else `safe_tried` larger arenas were tried, and all served.
        reserve_bytes: the arena to reserve: enough for the trace, the held-out traces and the asked share of `copies`
            perturbed copies of it; None where there were none of both, or too many are refused in any arena.
        copies: how many copies were tried.
        refused: the copies and held-out traces of which the heap refuses some request in any arena.
        worst_case_bytes: enough for any program whose live blocks and largest block are no larger than the trace's;
            None where no theorem says so. `worst_case_by` names the theorem.
        reach_bytes: the largest arena that the heap can use; None where nothing is known to bound it.
        reach_request_bytes: the largest request up to which an empty heap serves all; None likewise.
        reach_objects: how many objects can be alive at most; None likewise.
        error: why a foreign heap has no arena; None for every other.
    """

    trace: str
    heap: str
    smallest_arena_bytes: int | None
    safe_arena_bytes: int | None
    safe_tried: int | None
    safe_proved: bool | None
    reserve_bytes: int | None
    copies: int
    refused: tuple[str, ...]
    worst_case_bytes: int | None
    worst_case_by: str | None
    reach_bytes: int | None
    reach_request_bytes: int | None
    reach_objects: int | None
    error: str | None = None

    @classmethod
    def of(cls, trace: str, heap: str, found: Arenas, copies: int) -> Fit:
        """Name what `heapwright.heaps.heaps.fit_each` found."""
        size, tried, proved = found.safe or (None, None, None)
        worst, theorem = found.worst or (None, None)
        return cls(
            trace=trace,
            heap=heap,
            smallest_arena_bytes=found.smallest,
            safe_arena_bytes=size,
            safe_tried=tried,
            safe_proved=proved,
            reserve_bytes=found.reserve,
            copies=copies,
            refused=found.refused,
            worst_case_bytes=worst,
            worst_case_by=theorem,
            reach_bytes=found.reach.arena_bytes,
            reach_request_bytes=found.reach.request_bytes,
            reach_objects=found.reach.objects,
            error=found.error,
        )

    def __repr__(self) -> str:
        arenas = f"smallest {_number(self.smallest_arena_bytes)}, safe {_number(self.safe_arena_bytes)}"
        arenas += f", reserve {_number(self.reserve_bytes)} bytes"
        return f"<Fit of {self.heap} on {self.trace}: {self.error or arenas}>"


@overload
def fit(
    traces: AnyTrace,
    heaps: AnyHeap,
    *,
    step: int | None = None,
    copies: int | None = None,
    held_out: AnyTrace | Sequence[AnyTrace] = (),
    share: float = 1.0,
    seed: int = 0,
    word_size: WordSize | None = None,
    repair: bool = False,
) -> Fit: ...
@overload
def fit(
    traces: AnyTrace | Sequence[AnyTrace],
    heaps: AnyHeap | Sequence[AnyHeap],
    *,
    step: int | None = None,
    copies: int | None = None,
    held_out: AnyTrace | Sequence[AnyTrace] = (),
    share: float = 1.0,
    seed: int = 0,
    word_size: WordSize | None = None,
    repair: bool = False,
) -> Fit | list[Fit]: ...
@_one_line
def fit(
    traces: AnyTrace | Sequence[AnyTrace],
    heaps: AnyHeap | Sequence[AnyHeap],
    *,
    step: int | None = None,
    copies: int | None = None,
    held_out: AnyTrace | Sequence[AnyTrace] = (),
    share: float = 1.0,
    seed: int = 0,
    word_size: WordSize | None = None,
    repair: bool = False,
) -> Fit | list[Fit]:
    """Find the smallest and the safe arena for a whole trace, and the one to reserve.

    Args:
        traces, heaps: one of each, or lists of them.
        step: bytes; the arena is a multiple of it. None is one alignment unit.
        copies: perturbed copies of each trace that the reserved arena must serve, as `heapwright.copies` makes them;
            None for 8, fewer of long traces, 0 for none.
        held_out: other recordings, all of which it must serve.
        share: of the copies, above 0 and at most 1, that it must serve.
        seed: another seed, other copies.
        word_size: bits of a pointer, 32 or 64, in foreign heaps built here; None is what their adapter says.
        repair: drop the invalid calls of traces that are read.

    Returns one `Fit`, or a list of them, trace by trace, where a list was given. In a list a foreign heap that fails
    has its reason in `error`; alone it raises. Raises HeapwrightError for input that cannot be used.
    """
    if copies is not None and copies < 0:
        raise ParameterError(f"{copies}; must be 0 or more", parameter="copies")
    if not 0 < share <= 1:
        raise ParameterError(f"{share}; must be above 0 and at most 1", parameter="share")
    asked, others, found = _asked(heaps, word_size), [_trace(one, repair) for one in _listed(held_out)], []
    for trace in (_trace(one, repair) for one in _listed(traces)):
        many = affordable(trace) if copies is None else copies
        made = _copies(trace, many, seed=seed) if many else []
        fitted = fit_each(trace, asked.heaps, step=step, copies=made, held_out=others, share=share)
        found += [Fit.of(trace.name, label, fitted[key], many) for label, key in asked.each]
    return _alone(found, traces, heaps)


@_one_line
def endure(
    traces: AnyTrace | Sequence[AnyTrace],
    heaps: AnyHeap | Sequence[AnyHeap],
    *,
    calls: int = 10_000_000,
    seed: int = 0,
    output: PathLike | None = None,
    repair: bool = False,
) -> list[Endured]:
    """Try whether heaps last: nine loops of a trace's sizes at constant live bytes, and the trace again and again.

    Args:
        traces, heaps: one of each, or lists of them; heaps are recipes.
        calls: most calls of a loop, at least 10,000; one whose footprint is flat for a decade ends after a tenth.
        seed: of the draws.
        output: a picture to draw, a file that ends in .svg or .html; None for none.
        repair: drop the invalid calls of traces that are read.

    Returns an `Endured` for each, trace by trace. Ten million calls of each loop take some seconds a heap. Raises
    HeapwrightError for input that cannot be used, a foreign heap and several memories among it.
    """
    from heapwright.assure.endurance import effort_of
    from heapwright.assure.endurance import endure as try_one
    from heapwright.report.drawing import check_suffix
    from heapwright.report.endurance_picture import write_picture

    effort = effort_of(calls)
    if output is not None:
        check_suffix(Path(output))
    asked = _asked(heaps)
    recipes: dict[str, Recipe] = {}
    for label, key in asked.each:
        heap = asked.heaps[key]
        if not isinstance(heap, RecipeHeap) or heap.recipe.memory:
            raise ParameterError(f"{label}: endurance is tried on recipes in one memory", parameter="heaps")
        recipes[key] = heap.recipe
    found = []
    for trace in (_trace(one, repair) for one in _listed(traces)):
        tried = {key: try_one(trace, key, recipe, effort, seed) for key, recipe in recipes.items()}
        found += [replace(tried[key], heap=label) for label, key in asked.each]
    if output is not None:
        write_picture(found, Path(output))
    return found


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
        values = f"{self.objective} {_number(self.value)}, {_number(self.original_value)} on the trace itself"
        return f"<Worst found for {self.heap}: {values}, worst case {_number(self.worst_case_bytes)} bytes>"


@_one_line
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
        objective: "footprint_bytes", "accesses" (of the dearest malloc or free), "accesses_malloc_max" or
            "accesses_free_max".
        tries: replays.
        seed: another seed, another search.
        repair: drop the invalid calls of a trace that is read.

    See `heapwright.replay.worst_found.find_worst`. Raises HeapwrightError for a foreign heap.
    """
    original, recipe = _trace(trace, repair), _recipe(heap)
    found = _find_worst(original, recipe, objective, tries=tries, seed=seed)
    bound, steps = worst_case(original, recipe), worst_steps(recipe)
    return Worst(
        found.trace,
        _label(heap),
        objective,
        found.value,
        found.original,
        bound.bytes if bound else None,
        steps.most,
        steps.reason,
    )


_Row = TypeVar("_Row", Replay, Fit)


def _alone(found: list[_Row], traces: object, heaps: object) -> _Row | list[_Row]:
    """The list, or its one item where no list was given."""
    if isinstance(traces, list | tuple) or isinstance(heaps, list | tuple):
        return found
    (one,) = found
    if one.error:
        raise HeapwrightError(one.error)
    return one


def _number(value: Value) -> str:
    return "unknown" if value is None else f"{value:,}"


# ---- exploration ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Member(Candidate):
    """A recipe of a study with its metrics over all traces; it can stand wherever a heap is asked for.

    Attributes:
        id, zoo_name, metrics: as of a `Candidate`.
        recipe: the allocator.
        tuned_for: the study's traces and objectives, in words.
        study: the study's file.
    """

    recipe: Recipe
    tuned_for: str
    study: Path | None = None

    def __repr__(self) -> str:
        shown = ", ".join(f"{key} {_number(self.metrics[key])}" for key in DEFAULT_OBJECTIVES)
        return f"<{self.label}: {shown}; {self.recipe.summary()}>"


class Study(_Study):
    """The stored results of one exploration. It is read anew for each question: others may write to it meanwhile."""

    def __repr__(self) -> str:
        traces = ", ".join(trace.name for trace in self.traces())
        return f"<Study {self.path}: {self.tried} recipes on {traces}, {len(self.front())} on the front>"

    def __getitem__(self, id: str) -> Member:
        """The recipe of this id, of a prefix that only one has, or of a zoo name. Raises HeapwrightError."""
        return self._member(self.candidate(id))

    def front(  # type: ignore[override]
        self, objectives: str | Sequence[str] | None = None, where: str | Sequence[str] = ()
    ) -> list[Member]:
        """The Pareto-optimal recipes, best in the first objective first, of those that meet the conditions `where`."""
        return [self._member(candidate) for candidate in super().front(objectives, where)]

    def pick(
        self, how: Pick = "balanced", objectives: str | Sequence[str] | None = None, where: str | Sequence[str] = ()
    ) -> Member:
        """One recipe that holds on copies and on traces held out: "balanced", "smallest" or "fastest".

        docs/metrics.md has the rules. `where`: conditions such as "footprint_bytes <= 131072" that it has to meet.
        Raises HeapwrightError where no recipe does.
        """
        return self._member(super().pick(how, objectives, where))

    def to_arrow(self) -> pyarrow.Table:
        """Every recipe that was tried on all traces, a row each: id, name (the zoo's), front, ranked, metrics, recipe.

        Metrics are float64, null where unknown, over all traces; recipe is TOML. Needs pyarrow; raises
        HeapwrightError without it.
        """
        try:
            import pyarrow
        except ImportError:
            raise HeapwrightError("to_arrow: pyarrow is missing; install heapwright[arrow]") from None
        combined, front = self.combined, {member.id for member in super().front()}
        texts = self.recipe_texts()
        columns = {"id": combined.ids, "name": combined.zoo_names, "front": [id in front for id in combined.ids]}
        columns["ranked"] = combined.ranked
        columns |= {key: pyarrow.array(column, from_pandas=True) for key, column in combined.columns.items()}
        return pyarrow.table({**columns, "recipe": [texts[id] for id in combined.ids]})

    def export(self, output: PathLike) -> int:
        """Write a row for every recipe and trace to a file in .parquet or .csv; returns how many.

        docs/metrics.md has the columns, those of the view ``replays``. Raises HeapwrightError.
        """
        from heapwright.studies.export import export

        return export(self.path, Path(output))

    def again(self, id: str, traces: Sequence[str] = (), moved: Sequence[PathLike] = ()) -> list[Again]:
        """Make the metrics of a recipe again, on all traces that it was tried on or those named.

        Each has ``stored`` and ``metrics``, and in ``differing`` what is not equal. `moved`: where traces lie now.
        Raises HeapwrightError where there is no such recipe, or a trace is not the one that it was tried on.
        """
        from heapwright.studies.verify import again

        return list(again(self.path, id, traces, [Path(path) for path in moved]))

    def plot(self) -> altair.TopLevelMixin:
        """An Altair chart of every recipe by the first two objectives; a notebook shows it."""
        from heapwright.report.study_content import overview

        return overview(self).standalone()

    def _member(self, candidate: Candidate) -> Member:
        recipe = self.recipe(candidate.id)
        return Member(candidate.id, candidate.zoo_name, candidate.metrics, recipe, self.tuned_for, self.path)


@_one_line
def open_study(path: PathLike) -> Study:
    """Open a study for reading. Raises HeapwrightError where the file is missing, damaged, or no study."""
    study = Study.open(Path(path))
    study.close()  # what is asked of it opens it again, for that question
    return study


@_one_line
def merge_studies(studies: Sequence[PathLike], output: PathLike) -> Study:
    """Write one study that holds all results of several, of the same traces or of the same space.

    See `heapwright.studies.merge.merge`. Raises HeapwrightError where they contradict each other.
    """
    from heapwright.studies.merge import merge

    merge([Path(path) for path in studies], Path(output))
    return open_study(output)


@_one_line
def extend_study(
    study: PathLike,
    traces: AnyTrace | Sequence[AnyTrace],
    *,
    moved: Sequence[PathLike] = (),
    jobs: int | None = None,
    repair: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Study:
    """Try the recipes of a study on more traces, and rank by them, too; what it holds is not repeated.

    See `heapwright.explore.extend.extend`. `moved`: where traces of the study lie now. Raises HeapwrightError.
    """
    from heapwright.explore.extend import extend

    read = [_trace(one, repair) for one in _listed(traces)]
    extend(Path(study), read, given=[Path(path) for path in moved], jobs=jobs, progress=progress)
    return open_study(study)


@_one_line
def explore(
    traces: AnyTrace | Sequence[AnyTrace],
    output: PathLike,
    *,
    space: Space | WideSpace | PathLike | None = None,
    align: int | None = None,
    objectives: str | Sequence[str] = DEFAULT_OBJECTIVES,
    held_out: AnyTrace | Sequence[AnyTrace] = (),
    copies: int = COPIES,
    endurance: bool = True,
    jobs: int | None = None,
    dask: str | None = None,
    strategy: Strategy | None = None,
    limit: int | None = None,
    seed: int = 0,
    warm: PathLike | Sequence[PathLike] = (),
    complete: bool = False,
    tolerance: float | None = None,
    budget: float | None = None,
    energy_table: EnergyTable | PathLike | None = None,
    repair: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Study:
    """Try every recipe of a space, and the zoo, on traces; the metrics are kept as a study.

    All recipes have one alignment. The zoo's are tried at that one, too; those that have another of their own also
    stand beside the others as they are, called NAME@ALIGN, and are not ranked.

    The same call goes on where an earlier one stopped, and repeats nothing that is stored.

    Args:
        traces: one or several, with different names.
        output: the study file.
        space: a `Space`, a SPACE.toml, or None for the default space made for the traces.
        align: alignment of payloads in bytes; None is what the space says, or 8. `Trace.notes` says what suits a trace.
        objectives: metric keys, as "a,b" or a list.
        held_out: traces that the front, what lies near it and the zoo are tried on afterwards, never ranked by.
        copies: perturbed copies of each trace, drawn with `seed`, that the front and what lies near it are tried on.
        endurance: try whether the front and the picks last; what does not is no pick.
        jobs: threads, or workers of a local cluster; None is one for every processor.
        dask: the address of a Dask scheduler whose workers replay, or "local" for a cluster of processes on this
            machine; a script that asks for one runs under `if __name__ == "__main__":`.
        strategy, limit, seed: "exhaustive" takes the first `limit` recipes, "random" draws them. A SPACE.toml of more
            than 100,000 combinations is searched for `limit` recipes, default 5,000: by NSGA-II ("search"), or for
            comparison by "random" or "latin-hypercube".
        warm: earlier studies near whose fronts a search begins.
        complete: finish every recipe, however long it takes.
        tolerance: give recipes up that cannot come on a front which needs at most so much more than that of all
            recipes, as a share; 0 is the same front. By default every recipe is finished where that takes about a
            minute, else it is 0.01.
        budget: seconds; the best front that can be had in them. The same call with more goes on.
        energy_table, repair: as for `replay`.
        progress: called about ten times a second.

    Raises HeapwrightError as `heapwright.explore.search.explore` does.
    """
    options = Options(
        objectives=objectives,
        copies=copies,
        endurance=endurance,
        jobs=jobs,
        dask=dask,
        strategy=strategy,
        limit=limit,
        seed=seed,
        complete=complete,
        tolerance=tolerance,
        budget=budget,
        energy_table=_energy_table(energy_table),
    )
    read, apart = ([_trace(one, repair) for one in _listed(given)] for given in (traces, held_out))
    made = space_for(read, space, align)
    done = explore_with(options, read, made, output, held_out=apart, warm=_listed(warm), progress=progress)
    return open_study(done.study)


def space_for(
    traces: Sequence[Trace], space: Space | WideSpace | PathLike | None = None, align: int | None = None
) -> Space | WideSpace:
    """The space that `explore` tries on these traces; see there."""
    from heapwright.explore.space import Space, WideSpace

    if space is None:
        return Space.default(traces) if align is None else Space.default(traces, align)
    if not isinstance(space, Space | WideSpace):
        return Space.load(Path(space), traces, align)
    if align not in (None, space.align):
        raise HeapwrightError(f"{align}: the space has align {space.align}; give one of them", parameter="align")
    return space


def explore_with(
    options: Options,
    traces: Sequence[Trace],
    space: Space | WideSpace,
    output: PathLike,
    *,
    held_out: Sequence[Trace] = (),
    warm: Sequence[PathLike] = (),
    progress: Callable[[Progress], None] | None = None,
) -> Exploration:
    """Explore as `explore` does, with its options in one object, and tell what was done instead of the study."""
    from heapwright.explore.wide_search import fronts

    earlier = fronts([Path(path) for path in warm])
    return _explore(traces, space, Path(output), options, held_out=held_out, earlier=earlier, progress=progress)


@_one_line
def picks_by_load(study: Study, traces: AnyTrace | Sequence[AnyTrace], *, repair: bool = False) -> list[AtLoad]:
    """Return the pick for each trace alone, in order of the load that the traces were made at.

    `traces` are those that the study was explored on; those without a load are passed over, and there have to be two
    loads. See `heapwright.decide.by_load.picks_by_load`.
    """
    return _picks_by_load(study, [_trace(trace, repair) for trace in _listed(traces)])


def study_in(source: PathLike) -> Study | None:
    """The study that a path, or a heap named STUDY:ID, leads to; None where it leads elsewhere."""
    name = parse(os.fspath(source))
    if name.kind == "study":
        return open_study(name.first)
    path = Path(source)
    return open_study(path) if path.is_file() and kind_of(path) == "study" else None


# ---- what ships ----------------------------------------------------------------------------------------------------


@overload
def platforms(name: str) -> Platform: ...
@overload
def platforms(name: None = None) -> list[Platform]: ...
def platforms(name: str | None = None) -> Platform | list[Platform]:
    """Return the platforms that `generate` can write a heap for, or the one of that name.

    Raises HeapwrightError for an unknown one.
    """
    from heapwright.platforms import catalogue

    return catalogue.platform(name) if name else list(catalogue.platforms().values())


@_one_line
def hooks(platform: str, output: PathLike, *, prefix: str = "app") -> list[Path]:
    """Write what records the calls of the heap that a platform or a program has now, for `import_log`.

    Args:
        platform: one of `platforms()` that has `hooks`, which are C; or "bpftrace" or "perf", which are scripts that
            record any program on Linux.
        output: the folder; what to do with the files stands in its PREFIX_trace_README.md.
        prefix: what every name in the files begins with.

    Raises HeapwrightError for a platform that has none.
    """
    from heapwright.platforms.files import write_hooks

    return write_hooks(platform, Path(output), prefix)


@_one_line
def generate(
    heap: AnyHeap,
    output: PathLike,
    *,
    prefix: str = "app",
    platform: str | None = None,
    evidence: AnyTrace | Sequence[AnyTrace] = (),
    held_out: AnyTrace | Sequence[AnyTrace] = (),
    cpu: str = "cortex-m3",
    prove_calls: int | None = None,
    repair: bool = False,
    progress: Callable[[str], None] = lambda step: None,
    notes: Callable[[str], None] = lambda note: None,
) -> list[Path]:
    """Write a heap as C11 for firmware: PREFIX_heap.c, PREFIX_heap.h and a test, freestanding.

    With a platform of `platforms()` also the files that bind it there, with a page on what to do and a test. A recipe
    that aligns objects to less than the platform needs is generated at the platform's alignment.

    Args:
        heap: a recipe, or its name.
        output: the folder.
        prefix: what every name in the C begins with.
        platform: None for the heap alone.
        evidence: traces that the heap has to serve. PREFIX_heap_evidence.md then says what is known of it: the arena to
            reserve, the dearest calls on the target, what misuse it notices, what was proved, and by which tools.
        held_out: other recordings that the reserve has to serve.
        cpu: the processor that instructions are counted on.
        prove_calls: as `calls` of `prove`; None proves nothing.
        repair: drop the invalid calls of traces that are read.
        progress: told each step towards the evidence.
        notes: told, in a sentence, of an alignment that is raised, and of a study that holds a part of its space.

    Returns the files. Raises HeapwrightError for a heap that is no recipe, a prefix that is no C identifier, an unknown
    platform, and for a recipe that does not suit it. A tool that is missing costs the page that section, which says so.
    """
    from heapwright.files.writing import write_text
    from heapwright.generate import generate as write
    from heapwright.measure.boards.levels import cost_of_checks
    from heapwright.platforms.catalogue import platform as find_platform
    from heapwright.platforms.files import generate_for, raised, recipe_for
    from heapwright.recipes.policy import require_one_memory

    traces, others = ([_trace(one, repair) for one in _listed(given)] for given in (evidence, held_out))
    with _to_ship(heap) as found:
        recipe = found.recipe
        if traces:
            require_one_memory(recipe)
        if platform is None:
            files = write(recipe, Path(output), prefix, *found.shipped(recipe), cost_of_checks(recipe))
        else:
            into = find_platform(platform)
            given = recipe_for(into, recipe)
            files = generate_for(into, recipe, Path(output), prefix, *found.shipped(given), cost_of_checks(given))
            if notice := raised(into, recipe):
                notes(f"{recipe.name or recipe.hash}: {notice[0].lower()}{notice[1:]}")
            recipe = into.aligned(recipe)
        if found.study is not None and found.study.caveat:
            notes(found.study.caveat)
    if not traces:
        return files
    page = Path(output) / f"{prefix}_heap_evidence.md"
    write_text(page, _evidence(recipe, files, traces, others, cpu, prove_calls, progress))
    return [*files, page]


@contextmanager
def _to_ship(heap: AnyHeap) -> Iterator[ToShip]:
    """The heap, its name resolved once, with the study that it comes from open."""
    from heapwright.decide.shipping import Shipped, ToShip

    name = parse(os.fspath(heap)) if isinstance(heap, str | os.PathLike) else None
    if name is not None and name.kind == "study":
        with _Study.open(name.first) as study:
            yield ToShip.of(study, name.second)
    elif not isinstance(heap, Member):
        yield ToShip(_recipe(heap))
    elif heap.study is not None and heap.study.is_file():
        with _Study.open(heap.study) as study:
            yield ToShip.of(study, heap.id)
    else:
        yield ToShip(heap.recipe, known=Shipped(heap.tuned_for, heap.metrics))


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
    from heapwright.report.evidence import Evidence

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
    metrics = {one.trace: one.metrics for one in replays}
    return Evidence(
        recipe, files, traces, held_out, [vars(one) for one in arenas], metrics, measured, attacked, proof
    ).page()


def _or_why(find: Callable[[], _Found]) -> _Found | str:
    """What is found, or why it cannot be."""
    try:
        return find()
    except HeapwrightError as error:
        return str(error)


@_one_line
def prove(
    heap: AnyHeap,
    *,
    calls: int = 3,
    arena: int | None = None,
    largest: int = 32,
    method: Literal["cbmc", "enumeration"] | None = None,
    unbounded: bool = False,
    progress: Callable[[str], None] = lambda name: None,
) -> Proof:
    """Prove what holds after any few calls of the heap that is generated; see `heapwright.assure.proof.prove.prove`.

    `arena` and `largest` are bytes: of the arena (None: the heap's own data and 96 more) and of the largest request.
    `method` is "cbmc", "enumeration", which needs a C compiler with AddressSanitizer, or None: the latter for bins and
    buddies. `unbounded` proves the contracts of one fixed pool instead, for any number of calls, by Frama-C. `progress`
    is told the name of each harness. Raises HeapwrightError without the tool, with how
    to get it, and for a heap that is no recipe or moves its objects.
    """
    from heapwright.assure.proof.prove import prove as run

    return run(
        _recipe(heap),
        _label(heap),
        calls=calls,
        arena=arena,
        largest=largest,
        method=method,
        unbounded=unbounded,
        progress=progress,
    )


@_one_line
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
        beside: heaps to compare it with: names of recipes, and foreign heaps as `replay` takes them.
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
    from heapwright.assure.attack.attack import attack as commit
    from heapwright.assure.attack.faults import RUNS
    from heapwright.heaps.foreign.attack import attack as commit_on_foreign
    from heapwright.heaps.heaps import RecipeHeap, resolve
    from heapwright.report.attack_picture import write_picture
    from heapwright.report.drawing import check_suffix

    if exploits:
        return _exploit(heap, checks, runs, seed, word_size, (trace, *beside, output, cpu, compiler))
    if output is not None:
        check_suffix(Path(output))
    read = trace if trace is None or isinstance(trace, Trace) else read_trace(trace, repair=repair)
    others = [resolve(name, word_size) for name in beside]
    foreign = [other.label for other in others if not isinstance(other, RecipeHeap)]
    if cpu is not None and foreign:
        raise ParameterError(f"{foreign[0]}: a foreign heap is attacked on this machine alone", parameter="beside")
    found: list[dict[str, Any]] = []
    for one in [RecipeHeap(_recipe(heap)), *others]:
        if isinstance(one, RecipeHeap):
            found += commit(one.recipe, read, checks=checks, runs=runs or RUNS, seed=seed, cpu=cpu, compiler=compiler)
        else:
            found.append(commit_on_foreign(one, read, runs=runs or RUNS, seed=seed))
    if output is not None:
        write_picture(found, Path(output))
    return found


def _exploit(
    heap: AnyHeap,
    checks: Sequence[str] | None,
    trials: int | None,
    seed: int,
    word_size: WordSize | None,
    unused: tuple[object, ...],
) -> list[dict[str, Any]]:
    """What `attack` does with `exploits`; nothing of `unused` may be set."""
    from heapwright.assure.attack.exploits import TRIALS, exploit

    if any(one is not None for one in unused):
        raise ParameterError(
            "exploits are tried on one heap on this machine: without a trace, other heaps, a picture or a processor",
            parameter="exploits",
        )
    widths = None if word_size is None else (word_size,)
    return exploit(_recipe(heap), checks=checks, widths=widths, trials=trials or TRIALS, seed=seed)


@_one_line
def measure(
    heap: AnyHeap | TargetHeap,
    trace: AnyTrace,
    *,
    cpu: str = "cortex-m3",
    backend: str | None = None,
    compiler: str | None = None,
    level: str = "Os",
    arena: int | None = None,
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
        repair: drop the invalid calls of a trace that is read.

    Returns what docs/target.md describes under "What is told". Raises HeapwrightError where a tool is missing (with
    what to install) or fails, or the heap cannot be built.
    """
    session = {"backend": backend, "compiler": compiler, "level": level, "arena": arena}
    return measure_each(heap, [trace], cpu=cpu, repair=repair, **session)[0]


@_one_line
def measure_each(
    heap: AnyHeap | TargetHeap, traces: Sequence[AnyTrace], *, cpu: str, repair: bool = False, **session: Any
) -> list[dict[str, Any]]:
    """What `measure` tells of a heap on each of the traces; it is built once."""
    from heapwright.measure.boards.compilers import LEVELS
    from heapwright.measure.boards.measure import Session

    if isinstance(heap, TargetHeap):
        found = heap
    elif isinstance(heap, str | os.PathLike):
        found = resolve_on_target(os.fspath(heap))
    else:
        found = TargetHeap.of_recipe(_recipe(heap))
    read = [_trace(trace, repair) for trace in traces]
    return Session(cpu_name=cpu, **session).measure(found, read, LEVELS)


@_one_line
def measure_front(
    study: Study | PathLike,
    traces: AnyTrace | Sequence[AnyTrace] = (),
    *,
    beside: Sequence[str] = (),
    objectives: str | Sequence[str] | None = None,
    cpu: str = "cortex-m3",
    backend: str | None = None,
    compiler: str | None = None,
    level: str = "Os",
    arena: int | None = None,
    repair: bool = False,
    progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Measure the front of a study, and the zoo, on an emulated processor; the results are kept in the study.

    `traces` are paths of the study's traces where they have moved; `beside` names other heaps; the rest is as of
    `measure`. Returns what `measure` does, for each heap and trace. Raises HeapwrightError as `measure` does.
    """
    from heapwright.decide.measured_front import measure_front as run

    path = study.path if isinstance(study, _Study) else Path(study)
    return run(
        path,
        [Path(trace) for trace in _listed(traces)],
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


@_one_line
def report(
    source: _Study | AnyTrace,
    output: PathLike,
    *,
    heaps: str | Sequence[str] = (),
    against: str | None = None,
    plots: PathLike | None = None,
) -> list[Path]:
    """Write one HTML page that shows a study or a trace.

    Args:
        source: the study or trace: a path, or the object (which must have come from a file).
        output: the page.
        heaps: names of the heaps that are drawn over time; for a study ids of it, too.
        against: the heap of a study that the reader has today, by id or zoo name.
        plots: a folder for every plot as PNG and SVG; None writes none.

    Returns the files written, the page first. Raises HeapwrightError for input or output that cannot be used.
    """
    from heapwright.report import write_report

    path = source.path if isinstance(source, _Study | Trace) else source
    if path is None:
        raise HeapwrightError("report: the trace came from no file; write it first")
    return write_report(path, output, _listed(heaps) if isinstance(heaps, str) else heaps, plots, against)


@_one_line
def reproduce(
    what: str, output: PathLike, *, packets: PathLike | None = None, progress: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Run the experiments of the source papers, theirs beside ours; see `heapwright.papers.reproduce`.

    `what` is a paper's page or "all", `packets` a folder of packet tables, `output` the folder to write to. Raises
    HeapwrightError for an unknown page or a folder without packet tables.
    """
    from heapwright.papers import reproduce as run

    return run(what, None if packets is None else Path(packets), Path(output), progress or (lambda line: None))

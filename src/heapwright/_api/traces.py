"""Traces and packets: recorded, imported, made, cut, compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from heapwright._api.arguments import AnyTrace, PathLike, listed, one_line_errors, trace_of
from heapwright._support import notebook
from heapwright._support.errors import HeapwrightError
from heapwright._traces.streams import Stream
from heapwright._traces.trace import Trace

if TYPE_CHECKING:
    from heapwright._traces.copies import Kind as CopyKind
    from heapwright._traces.export import Exported
    from heapwright._traces.logs import Imported
    from heapwright._traces.record import Recording
    from heapwright._traces.recorded import Follow, Recorded
    from heapwright._traces.streams import Written
    from heapwright._traces.what_if import WhatIf
    from heapwright._traffic.packets import PacketTable


@one_line_errors
def read_trace(path: PathLike, *, repair: bool = False) -> Trace:
    """Read and validate a trace; `repair` drops its invalid calls and says so in `Trace.repairs`. See `Trace.read`."""
    return Trace.read(path, repair=repair)


@one_line_errors
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
        output: the trace; PROGRAM.parquet in the current folder if None. Processes that the program starts get their
            own traces in the same folder.
        limit: calls after which the recording of a process ends, while the program goes on; none if None.
        follow: "each" process has a trace, or there is "one" of them all, in the order of their calls' times.
        sites: record where each call was made, too.

    Returns the traces written (`files`, the largest first), `exit_status`, and what recording cost.

    Raises HeapwrightError where there is no such program, nothing was recorded, or the output cannot be written.
    """
    from heapwright._traces.record import record as run

    return run(command, output, limit=limit, follow=follow, sites=sites)


class Profile(dict[str, Any]):
    """Memory requests of a trace or a packet table, as plain values by their keys; a notebook shows the sizes."""

    def _repr_html_(self) -> str:
        counts = ("events", "requests", "packets", "threads", "seconds", "requested_peak_bytes", "live_objects_peak")
        info = {key.replace("_", " "): notebook.number(self[key]) for key in counts if key in self}
        rows = [[f"{item['size']:,}", f"{item['count']:,}", f"{item['share']:.1%}"] for item in self["sizes"][:20]]
        sizes = notebook.table(f"{self['distinct_sizes']:,} sizes", ("size, B", "count", "share"), rows)
        return notebook.pairs(str(self["name"]), info, sizes)


@one_line_errors
def profile(source: AnyTrace | PacketTable, *, repair: bool = False) -> Profile:
    """Characterise the memory requests of a trace or a packet table: plain Python values, ready for JSON.

    See `heapwright._traces.profile.profile` and `heapwright._traffic.profile.profile_packets` for the keys, their units
    and shapes. Raises HeapwrightError where the file is neither.
    """
    from heapwright._traces.profile import profile as of_trace
    from heapwright._traffic.packets import PacketTable
    from heapwright._traffic.profile import profile_file, profile_packets

    if isinstance(source, Trace):
        return Profile(of_trace(source))
    if isinstance(source, PacketTable):
        return Profile(profile_packets(source, source.metadata.get("name", "packets")))
    return Profile(profile_file(Path(source), repair))


@one_line_errors
def import_packets(
    path: PathLike, *, format: str | None = None, count: int | None = None, seed: int = 0
) -> PacketTable:
    """Read a file of packets (pcap, pcapng, TSH, CSV, or a profile to draw from); see `heapwright._traffic`.

    `count` and `seed` are for a profile: how many to draw, and which draw. `PacketTable.write` stores it.
    Raises HeapwrightError where the format is not known or the file holds nothing of it.
    """
    from heapwright._traffic import import_packets as of_file

    return of_file(path, format, count, seed)


@one_line_errors
def import_log(
    path: PathLike,
    *,
    format: str | None = None,
    arena: int | None = None,
    repair: bool = False,
    elf: PathLike | None = None,
    failed_life: int | None = None,
    heap: str | None = None,
    patterns: Sequence[str] = (),
) -> Trace:
    """Read a log of heap calls that another tool wrote, such as Valgrind or heaptrack; see `heapwright._traces.logs`.

    The trace's `repairs` list what was left out, its `notes` what the log does not record. `Trace.write` stores it.
    `arena` is how many bytes the heap had, if the log does not say; `repair` inserts missing frees if more bytes are
    allocated than fit; `elf` is the board's program, which names the sites of its log; `failed_life` is for how many
    calls the object of a failed request stays allocated, by default as served objects of its size; `heap` chooses one
    of several heaps in the log; `patterns` describe the lines of a log in its own wording (docs/logs.md). Raises
    HeapwrightError if the format is unknown, single calls are missing from the log, it has no calls, or more bytes are
    allocated than the arena holds.
    """
    from heapwright._traces.logs import import_log as of_file

    return of_file(path, format, arena, repair, elf, failed_life, heap, patterns)


@one_line_errors
def convert_log(
    path: PathLike,
    output: PathLike,
    *,
    format: str | None = None,
    arena: int | None = None,
    repair: bool = False,
    elf: PathLike | None = None,
    failed_life: int | None = None,
    heap: str | None = None,
    patterns: Sequence[str] = (),
) -> Imported:
    """Write the trace of a log of heap calls, as `import_log` reads it, in memory that does not grow with its calls.

    Returns a `heapwright._traces.logs.Imported`. Raises HeapwrightError as `import_log`, and if `output`
    cannot be written.
    """
    from heapwright._traces.logs import convert_log as of_file

    return of_file(path, output, format, arena, repair, elf, failed_life, heap, patterns)


def proposed_patterns(path: PathLike) -> list[str]:
    """Patterns that would read a log in unknown wording, for `patterns` of `import_log`; empty if it holds no calls."""
    from heapwright._traces.logs import proposed_patterns as of_file

    return of_file(Path(path)) if Path(path).is_file() else []


def no_pattern_error(path: PathLike, proposed: Sequence[str]) -> HeapwrightError:
    """What to say of a log in unknown wording: the patterns that would read it."""
    from heapwright._traces.logs.pattern import no_pattern_error as error

    return error(path, proposed)


@one_line_errors
def map_sizes(trace: AnyTrace, sizes: Mapping[int, int]) -> WhatIf:
    """A trace with requests of some sizes made with others; see `heapwright._traces.what_if.map_sizes`."""
    from heapwright._traces.what_if import map_sizes as of_trace

    return of_trace(trace_of(trace), sizes)


@one_line_errors
def with_static(trace: AnyTrace, size: int) -> WhatIf:
    """A trace with static buffers for the objects of a size; see `heapwright._traces.what_if.with_static`."""
    from heapwright._traces.what_if import with_static as of_trace

    return of_trace(trace_of(trace), size)


@one_line_errors
def with_connections(trace: AnyTrace, connections: int, size: int) -> WhatIf:
    """A trace with fewer connections at a time; see `heapwright._traces.what_if.with_connections`."""
    from heapwright._traces.what_if import with_connections as of_trace

    return of_trace(trace_of(trace), connections, size)


@one_line_errors
def with_failed_life(trace: AnyTrace, life: int) -> WhatIf:
    """A trace with another life of failed requests; see `heapwright._traces.what_if.with_failed_life`."""
    from heapwright._traces.what_if import with_failed_life as of_trace

    return of_trace(trace_of(trace), life)


@one_line_errors
def import_recording(folder: PathLike, output: PathLike, *, follow: Follow = "each") -> list[Recorded]:
    """Write the traces of what the recorder left in a folder, as `record` would have; the folder is left as it is.

    That is what a killed `record` leaves (``.heapwright-*.recording``), or the folder that HEAPWRIGHT_RECORD_DIR named
    for a program that was started with the recorder preloaded; `follow` is that of `record`. Raises HeapwrightError
    where it holds no recording.
    """
    from heapwright._traces.recorded import convert

    files = convert(Path(folder), Path(output), consume=False, follow=follow)
    if not files:
        raise HeapwrightError(f"{folder}: holds no recording; give the folder that a killed `record` left")
    return files


@one_line_errors
def is_trace(path: PathLike) -> bool:
    """Whether a file is a trace, as its columns show."""
    from heapwright._support.kinds import kind_of

    return kind_of(Path(path)) == "trace"


def is_log(path: PathLike) -> bool:
    """Whether a file begins as a log of heap calls does. Raises HeapwrightError for logs that sum calls up."""
    from heapwright._traces.logs import log_format

    return log_format(path) is not None


@overload
def workload(
    name: str, packets: PacketTable | PathLike | None = ..., *, load: Sequence[float], **options: Any
) -> list[Trace]: ...
@overload
def workload(
    name: str, packets: PacketTable | PathLike | None = ..., *, load: float | None = ..., **options: Any
) -> Trace: ...
@one_line_errors
def workload(
    name: str,
    packets: PacketTable | PathLike | None = None,
    *,
    load: float | Sequence[float] | None = None,
    **options: Any,
) -> Trace | list[Trace]:
    """Make the trace of a network application's memory requests.

    Args:
        name: "drr", "easyport", "priority", "url" or "queue", which need `packets`, or a Python file with a class Queue
            (docs/network.md); "modem" or "poisson", which need none.
        packets: the traffic.
        load: share of time that the link of a workload of packets is busy, or how many times as many requests a second
            "poisson" has; several give a trace each, in a list. None is the workload's own.
        options: as of the function of that name in `heapwright._traffic.workloads`; docs/workloads.md has them, with
            units. For packets also `longest_gap` and `mtu`, see `PacketTable.closing_gaps` and `segmented`.

    Raises HeapwrightError for an unknown name or option, or packets that it cannot use.
    """
    from heapwright._traffic.workloads.loads import at_loads
    from heapwright._traffic.workloads.made import maker

    if load is None:
        return maker(name, packets, options)()
    make = maker(name, packets, options, "load")
    return make(load=load) if isinstance(load, (int, float)) else at_loads(make, load)


@one_line_errors
def load_peaks(name: str, packets: PacketTable | PathLike | None, *, load: float, **options: Any) -> dict[float, int]:
    """How steep a workload's peak is: the largest live bytes at a tenth less load, at this load and at a tenth more.

    The arguments are those of `workload`, which raises the same.
    """
    from heapwright._traffic.workloads.loads import peaks_around
    from heapwright._traffic.workloads.made import maker

    return peaks_around(maker(name, packets, options, "load"), load)


@one_line_errors
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
            instances of the classes of `heapwright._traces.copies` with parameters of your own. None for a workload's
            trace: its packets in another order and at four times the load, through its queue.
        seed: another seed, other copies.
        repair: drop the invalid calls of a trace that is read.

    See `heapwright._traces.copies.copies` for their names and metadata, docs/robustness.md for what they are worth.
    """
    from heapwright._traces.copies import copies as make
    from heapwright._traffic.workloads.made import Made, each_copy

    read = trace_of(trace, repair)
    if kinds is None and count >= 1 and seed >= 0 and Made.of(read) is not None:
        return list(each_copy(read, count, seed=seed))
    return make(read, count, kinds=kinds, seed=seed)


@one_line_errors
def resample(
    trace: AnyTrace,
    calls: int = 1_000_000,
    *,
    seed: int = 0,
    swing: float | None = None,
    stalls: float | None = None,
    block: int | None = None,
    live: int | None = None,
    repair: bool = False,
) -> Trace:
    """Continue a recording with traffic like its own, for as many calls as one likes.

    Args:
        trace: the recording.
        calls: calls of the future, beyond those that are repeated of the recording.
        seed: another seed, another future.
        swing, stalls, block: how far the load swings, how much memory waits for stalled consumers, and calls of a block
            on average; None is what `heapwright._traces.futures.resample` takes, which says what each means.
        live: bytes of the live peak, to which the load is scaled; None is the load recorded.
            Without any of these a workload's trace continues with more packets through its queue.
        repair: drop the invalid calls of a trace that is read.
    """
    from heapwright._traces.futures import BLOCK
    from heapwright._traces.futures import resample as make
    from heapwright._traffic.workloads.made import future_of

    read = trace_of(trace, repair)
    if swing is stalls is block is live is None and calls >= 1 and seed >= 0:
        return future_of(read, calls, seed)
    block = BLOCK if block is None else block
    return make(read, calls, seed=seed, swing=swing, stalls=stalls, block=block, live=live)


@overload
def cut(
    trace: AnyTrace,
    output: None = ...,
    *,
    first: int | timedelta | None = ...,
    last: int | timedelta | None = ...,
    start: int | timedelta | None = ...,
    stop: int | timedelta | None = ...,
    threads: int | Sequence[int] = ...,
    phases: str | Sequence[str] = ...,
    sites: str | Sequence[str] = ...,
    live: bool = ...,
    close: bool = ...,
    repair: bool = ...,
) -> Trace: ...
@overload
def cut(
    trace: AnyTrace,
    output: PathLike,
    *,
    first: int | timedelta | None = ...,
    last: int | timedelta | None = ...,
    start: int | timedelta | None = ...,
    stop: int | timedelta | None = ...,
    threads: int | Sequence[int] = ...,
    phases: str | Sequence[str] = ...,
    sites: str | Sequence[str] = ...,
    live: bool = ...,
    close: bool = ...,
    repair: bool = ...,
) -> Written: ...
@one_line_errors
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

    See `heapwright._traces.cut.cut`. With `output` the part is written there in bounded memory at any length;
    `Written` describes it.
    """
    from heapwright._traces.cut import cut as of_stream

    part = of_stream(
        Stream.of(trace, repair),
        first=first,
        last=last,
        start=start,
        stop=stop,
        threads=listed(threads),
        phases=listed(phases),
        sites=listed(sites),
        live=live,
        close=close,
    )
    return part.trace() if output is None else part.write(output)


@one_line_errors
def repair_trace(trace: AnyTrace, output: PathLike) -> Written:
    """Write a trace without its invalid calls, in bounded memory; each kind of dropped call becomes a caveat of it."""
    from heapwright._traces.repair import repaired

    return repaired(Stream.of(trace, repair=True)).write(output)


@overload
def merge(traces: Sequence[AnyTrace], output: None = ..., *, repair: bool = ...) -> Trace: ...
@overload
def merge(traces: Sequence[AnyTrace], output: PathLike, *, repair: bool = ...) -> Written: ...
@one_line_errors
def merge(traces: Sequence[AnyTrace], output: PathLike | None = None, *, repair: bool = False) -> Trace | Written:
    """Make one trace of several, their calls in the order of time; see `heapwright._traces.merge.merge`.

    `output` as in `cut`.
    """
    from heapwright._traces.merge import merge as of_streams

    merged = of_streams([Stream.of(trace, repair) for trace in traces])
    return merged.trace() if output is None else merged.write(output)


@overload
def scale(
    trace: AnyTrace,
    output: None = ...,
    *,
    pointer_bytes: int = ...,
    recorded_pointer_bytes: int | None = ...,
    pointer_share: float | None = ...,
    peak_bytes: int | None = ...,
    buffers: bool | None = ...,
    repair: bool = ...,
) -> Trace: ...
@overload
def scale(
    trace: AnyTrace,
    output: PathLike,
    *,
    pointer_bytes: int = ...,
    recorded_pointer_bytes: int | None = ...,
    pointer_share: float | None = ...,
    peak_bytes: int | None = ...,
    buffers: bool | None = ...,
    repair: bool = ...,
) -> Written: ...
@one_line_errors
def scale(
    trace: AnyTrace,
    output: PathLike | None = None,
    *,
    pointer_bytes: int = 4,
    recorded_pointer_bytes: int | None = None,
    pointer_share: float | None = None,
    peak_bytes: int | None = None,
    buffers: bool | None = None,
    repair: bool = False,
) -> Trace | Written:
    """Estimate what a trace would be with pointers of 4 or 8 bytes; see `heapwright._traces.scale.scale`.

    `output` as in `cut`. `pointer_share`: None is `POINTER_SHARE`, or what gives the known `peak_bytes`, the most live
    bytes with the new width, as requested (`heapwright._traces.scale.fitted_share`). `buffers` as there; None: where
    no peak is known.
    """
    from heapwright._traces.scale import POINTER_SHARE, fitted_share
    from heapwright._traces.scale import scale as of_stream

    if peak_bytes is not None and pointer_share is not None:
        raise HeapwrightError("peak_bytes: the share of pointers is fitted to it; give one of them")
    read, width = Stream.of(trace, repair), recorded_pointer_bytes
    share = POINTER_SHARE if pointer_share is None else pointer_share
    buffers = peak_bytes is None if buffers is None else buffers
    if peak_bytes is not None:
        share = fitted_share(read, peak_bytes, pointer_bytes, recorded_pointer_bytes=width, buffers=buffers)
    estimate = of_stream(read, pointer_bytes, recorded_pointer_bytes=width, pointer_share=share, buffers=buffers)
    return estimate.trace() if output is None else estimate.write(output)


@one_line_errors
def diff(before: AnyTrace, after: AnyTrace, *, repair: bool = False) -> dict[str, Any]:
    """Compare the memory requests of two builds of a program: plain values, ready for JSON.

    See `heapwright._traces.diff.diff` for the keys. Memory is bounded at any length of the traces.
    """
    from heapwright._traces.diff import diff as of_streams

    return of_streams(Stream.of(before, repair), Stream.of(after, repair))


@one_line_errors
def export_trace(trace: AnyTrace, output: PathLike, *, format: str, repair: bool = False) -> Exported:
    """Write a trace for other tools: "minimalloc" (CSV), "malloclab" (.rep) or "c" (an array).

    See `heapwright._traces.export.export` for what each holds. Memory is bounded at any length of the trace.
    Raises HeapwrightError for another format.
    """
    from heapwright._traces.export import export

    return export(Stream.of(trace, repair), Path(output), format)


@one_line_errors
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

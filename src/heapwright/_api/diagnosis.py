"""What files of a heap in trouble show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright._api.arguments import AnyHeap, AnyTrace, PathLike, listed, one_line_errors, requested_heaps, trace_of
from heapwright._support.errors import HeapwrightError
from heapwright._support.kinds import is_study
from heapwright._traces.trace import Trace

if TYPE_CHECKING:
    from heapwright._diagnose.model import Cure
    from heapwright._diagnose.model import Diagnosis as Diagnosis
    from heapwright._diagnose.model import Finding as Finding
    from heapwright._heaps.heaps import Heap


@one_line_errors
def diagnose(
    files: AnyTrace | Sequence[AnyTrace],
    *,
    heap: AnyHeap | Sequence[AnyHeap] = (),
    arena: int | None = None,
    output: PathLike | None = None,
) -> Diagnosis:
    """Say what is wrong with a heap: a leak, fragmentation, too small, the wrong memory, a burst, or nothing.

    Args:
        files: one or several of: free memory and largest block over time (CSV, JSON lines, any lines), counters, lists
            of blocks with addresses, a log of heap calls in any wording, a trace, a study. What each is, is found out.
        heap: the allocator in use, on which traces are replayed; of several the others are tried as well. By default
            it is that of the log, else FreeRTOS's heap_4.
        arena: bytes of the heap in use, where they are known.
        output: a picture to draw, FILE.svg or FILE.html.

    Returns a `Diagnosis`: `kind`, `confidence`, `sentence`, and a finding for each memory with its numbers, the steps
    that cure it (with the bytes that each takes by replay, if there is a trace), and what to record next.
    docs/diagnose.md has the rules. Raises HeapwrightError if a file is nothing of that.
    """
    from heapwright._diagnose.diagnosis import diagnose as of_files

    heaps: list[Heap] = list(requested_heaps(heap).heaps.values())
    sources: list[Path | Trace] = []
    for item in listed(files):
        if isinstance(item, Trace):
            sources.append(item)
        elif is_study(Path(item)):
            paths, pick = _of_study(Path(item))
            sources += paths
            heaps = heaps or pick
        else:
            sources.append(Path(item))
    result = of_files(sources, heaps=heaps, arena=arena)
    if output is not None:
        from heapwright._report.diagnosis_picture import write_picture

        write_picture(result, Path(output))
    return result


def _of_study(path: Path) -> tuple[list[Path], list[Heap]]:
    """The traces that a study was made of, and the heap that it recommends, if it recommends one."""
    from heapwright._api.explorations import open_study

    study = open_study(path)
    paths = [Path(trace.path) for trace in study.traces() if trace.path and Path(trace.path).is_file()]
    if not paths:
        raise HeapwrightError(f"{path}: the traces of this study are not where they were; give them in its place")
    try:
        pick = study.pick()
    except HeapwrightError:
        return paths, []
    return paths, list(requested_heaps(pick).heaps.values())


@one_line_errors
def what_if_offer(trace: AnyTrace, heap: AnyHeap, need: int) -> Cure | None:
    """The one change of a program that makes its heap large enough, or much smaller; None if there is none.

    Args:
        trace: whose failed requests count as served.
        heap: the allocator in use, a recipe or foreign.
        need: bytes that it needs for the trace, as `fit` found.

    See `heapwright._diagnose.offers.offer`.
    """
    from heapwright._api.arguments import heap_of
    from heapwright._diagnose.offers import offer
    from heapwright._traces.failures import failures_of

    read = trace_of(trace)
    failures = failures_of(read) if read.failed.any() else None
    return offer(read, heap_of(heap, None), need, failures.arena_bytes if failures else None)

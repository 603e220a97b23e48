"""Several traces as one: their calls in the order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from heapwright._support.errors import HeapwrightError
from heapwright._traces.interleave import together
from heapwright._traces.live_objects import LiveObjects
from heapwright._traces.streams import COLUMNS, Stream
from heapwright._traces.validation import Columns

_MAX_THREADS = 1 << 16


def merge(traces: Sequence[Stream]) -> Stream:
    """Return one trace with the calls of several in the order of their times.

    Each trace begins at its time 0. Calls at the same time keep the order of the traces, and a call without a time
    follows its predecessor. Objects get new numbers in the order of allocation, and the threads of each trace get
    numbers of their own, behind those of the traces before it. Phases and sites of the same name are merged.

    Metadata with the same value in all traces stays; ``merge_of`` lists their names and ``merge_threads`` their
    threads, such as ``0-3``, one a line. Each line of ``caveats`` gets the name of its trace. O(calls).

    Raises HeapwrightError for fewer than two traces, pointers of different widths, more than 65,536 threads, or a trace
    without times; the latter when the windows are read.
    """
    if len(traces) < 2:
        raise HeapwrightError("merge: give two traces or more")
    _check_widths(traces)
    names = {key: _union([getattr(trace, key) for trace in traces]) for key in ("phases", "sites")}
    metadata = _metadata(traces)
    repairs: list[str] = []

    def windows() -> Iterator[Columns]:
        counts = [_threads(trace) for trace in traces]
        if sum(counts) > _MAX_THREADS:
            raise HeapwrightError(f"merge: {sum(counts):,} threads in all; a trace has at most {_MAX_THREADS:,}")
        begins = np.cumsum([0, *counts])
        ranges = (f"{low}-{high - 1}" for low, high in pairwise(begins.tolist()))
        metadata["merge_threads"] = "\n".join(ranges)
        sources = [
            _calls(at, trace, int(begins[at]), {key: _places(getattr(trace, key), names[key]) for key in names})
            for at, trace in enumerate(traces)
        ]
        yield from _merged(sources)
        repairs[:] = [repair for trace in traces for repair in trace.repairs]

    name = "+".join(trace.name for trace in traces)
    return Stream(name, windows, phases=names["phases"], sites=names["sites"], metadata=metadata, repairs=repairs)


def _check_widths(traces: Sequence[Stream]) -> None:
    known = [(trace, width) for trace in traces if (width := trace.metadata.get("pointer_bytes"))]
    for trace, width in known[1:]:
        first, others = known[0]
        if width != others:
            raise HeapwrightError(
                f"{trace.name}: recorded with {width}-byte pointers, {first.name} with {others}-byte ones; "
                "scale one of them first"
            )


def _metadata(traces: Sequence[Stream]) -> dict[str, str]:
    first, *others = (trace.metadata for trace in traces)
    common = {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
    for key in ("inherited", "recording_ns_per_call"):
        common.pop(key, None)
    common["merge_of"] = "\n".join(trace.name for trace in traces)
    if "caveats" not in common:
        info = [f"{item.name}: {caveat}" for item in traces for caveat in item.metadata.get("caveats", "").splitlines()]
        if info:
            common["caveats"] = "\n".join(info)
    return common


def _threads(trace: Stream) -> int:
    """The largest number of a thread, and one."""
    return 1 + max(int(window["tid"].max()) for window in trace.windows())


def _union(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for known in names for item in known))


def _places(names: Sequence[str], union: Sequence[str]) -> NDArray[np.uint32]:
    place = {name: at for at, name in enumerate(union)}
    return np.array([place[name] for name in names], np.uint32)


def _calls(at: int, trace: Stream, first_thread: int, labels: dict[str, NDArray[np.uint32]]) -> Iterator[Columns]:
    """The calls of one of the traces with a time each (`key`), their threads and names those of the merged trace."""
    latest = -1
    for window in trace.windows():
        if window["ts_us"].max() < 0 and latest < 0:
            raise HeapwrightError(f"{trace.name}: its calls have no times to merge them by")
        key = np.maximum(np.maximum.accumulate(window["ts_us"]), latest)
        latest = int(key[-1])
        yield window | {
            "key": key,
            "id": window["id"].astype(np.uint64) | np.uint64(at << 32),
            "tid": (window["tid"] + np.uint32(first_thread)).astype(np.uint16),
            "phase": labels["phases"][window["phase"]].astype(np.uint16),
            "site": labels["sites"][window["site"]],
        }


def _merged(sources: Sequence[Iterator[Columns]]) -> Iterator[Columns]:
    living = LiveObjects()
    for calls in together([(-1, source) for source in sources], "key"):
        window = {key: calls[key] for key in COLUMNS}
        yield window | {"id": living.advance({key: window[key] for key in ("op", "id")})["number"]}

"""The traces that are measured on, and how they are cut for time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from heapwright import FREE, MALLOC, REALLOC, Trace

ROOT = Path(__file__).resolve().parent.parent
PICKED_ON = ROOT / "examples" / "mosquitto_broker.parquet"
EXAMPLES = (PICKED_ON, ROOT / "examples" / "lighttpd_server.parquet")
DEFAULT_TRACES = ROOT.parent / "shared" / "data"

MOST_CALLS = 300_000
"""Longer traces are cut here, so that one trace does not take most of the time."""

COLUMNS = ("ts_us", "tid", "op", "id", "size", "align")

TARGET_TRACES = "m3_"
"""Begins the names of traces that were made for measuring on a target, not for host time."""


def read_traces(folder: Path | None) -> list[tuple[str, Trace]]:
    """(set, trace): the shipped examples, then the Parquet files in a folder and its subfolders heap and synthetic."""
    results = [("real", cut(Trace.read(path))) for path in EXAMPLES]
    if folder is None:
        return results
    for name, paths in (("synthetic", folder / "synthetic"), ("real", folder), ("real", folder / "heap")):
        results += [(name, cut(Trace.read(path))) for path in trace_files(paths)]
    return results


def trace_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.parquet")) if not path.name.startswith(TARGET_TRACES)]


def cut(trace: Trace, most: int = MOST_CALLS) -> Trace:
    """The first calls of a trace."""
    if len(trace) <= most:
        return trace
    columns = {key: getattr(trace, key)[:most] for key in COLUMNS}
    return Trace.from_columns(**columns, name=trace.name)


def without_realloc(trace: Trace) -> Trace:
    """The same with each realloc as a free and a malloc: not every allocator has one, and no two move as often."""
    twice = trace.op == REALLOC
    row = np.repeat(np.arange(len(trace)), np.where(twice, 2, 1))
    second = np.diff(row, prepend=-1) == 0
    columns = {key: getattr(trace, key)[row] for key in COLUMNS}
    columns["op"] = np.where(twice[row], np.where(second, MALLOC, FREE), columns["op"]).astype(trace.op.dtype)
    return Trace.from_columns(**columns, name=trace.name)

"""Holders of live bytes: over time and at the peak, by call site if a trace names any, else by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.calls import number_objects
from heapwright._traces.live_objects import LiveObjects
from heapwright._traces.streams import Stream
from heapwright._traces.validation import FREE, Columns, order_by_id

GROUPS = 7
"""Number of sites or size classes shown separately; the rest form one group."""
OTHERS = "others"

FRAME_SEPARATOR = ";"
"""Between the callers in the name of a site, the outermost first, as collapsed stacks have it."""

_CLASSES = 33
"""Size classes: 0, 1, 2-3, 4-7 and so on."""


def holders_of(trace: Stream, moments: NDArray[np.int64], peak_event: int) -> dict[str, Any]:
    """Return the holders of live bytes. An object counts for the site and the size of its latest request.

    Args:
        trace: the calls.
        moments: calls after which holders are sampled, counted from 0, ascending, up to the last call.
        peak_event: the call after which the live bytes are most.

    Returns plain Python values, ready for JSON:

    - `live_by`: `{"key", "groups", "event", "bytes"}`: key is "site" or "size"; groups are the `GROUPS` sites that hold
      most at the peak, or size classes (powers of two) that hold most on average, with `OTHERS` if there are more;
      event are the moments, bytes a list for each group, one number a moment;
    - `at_peak`: `[{"site", "size", "objects", "bytes"}, ...]`: the live objects at the peak, most bytes first; site
      is the empty name if none is known.

    O(calls), in memory for the live objects and for groups x moments.
    """
    by_site = trace.sites != ("",)
    alive = trace.alive_after(peak_event)
    if by_site:
        bytes_ = np.bincount(alive["site"], alive["size"], len(trace.sites))
        chosen = np.argsort(-bytes_, kind="stable")[:GROUPS]
        names = [trace.sites[at] for at in chosen]
        code = np.full(len(trace.sites), len(chosen))
        code[chosen] = np.arange(len(chosen))
        sums = _sums(trace, moments, "site", code, len(chosen) + 1)
    else:
        sums = _sums(trace, moments, "size", np.arange(_CLASSES), _CLASSES)
        chosen = np.sort(np.argsort(-sums.sum(axis=1), kind="stable")[:GROUPS])
        names = [_class_name(int(at)) for at in chosen]
        rest = np.delete(sums, chosen, axis=0).sum(axis=0)
        sums = np.vstack([sums[chosen], rest])
    series = [*zip([*names, OTHERS], sums.tolist(), strict=True)]
    groups = [(name or "(not named)", row) for name, row in series if any(row)] or series[:1]
    return {
        "live_by": {
            "key": "site" if by_site else "size",
            "groups": [name for name, _ in groups],
            "event": moments.tolist(),
            "bytes": [row for _, row in groups],
        },
        "at_peak": _at_peak(trace, alive),
    }


def short_names(sites: Sequence[str]) -> dict[str, str]:
    """Site -> its name without callers and folders, if that is unique."""
    short = {site: site.rpartition(FRAME_SEPARATOR)[2].rpartition("/")[2] or site for site in sites}
    results = list(short.values())
    return {site: name if results.count(name) == 1 else site for site, name in short.items()}


def size_class(size: int) -> str:
    """The name of the class that a size in bytes belongs to."""
    return _class_name(size.bit_length())


def _class_name(bits: int) -> str:
    low, high = (1 << bits) >> 1, 1 << bits
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if low >= scale:
            return f"{low // scale}-{high // scale} {unit}"
    return f"{low} B" if low <= 1 else f"{low}-{high - 1} B"


def _sums(
    trace: Stream, moments: NDArray[np.int64], key: str, code: NDArray[np.int64], groups: int
) -> NDArray[np.int64]:
    """Live bytes of each group after each moment: int64 of shape (groups, moments).

    `code` gives the group of a site, or of the class of a size.
    """
    change = np.zeros(len(moments) * groups)
    living = LiveObjects()
    for window in trace.windows():
        led, carried = living.prepend_live(window), len(living)
        now, before = np.arange(carried, len(led["op"])), _request_before(led)[carried:]
        group = code[led["site"]] if key == "site" else code[np.frexp(led["size"].astype(np.float64))[1]]
        moment = np.searchsorted(moments, now - carried + living.rows)
        asks, had = led["op"][now] != FREE, before >= 0
        for rows, at, sign in ((now[asks], moment[asks], 1), (before[had], moment[had], -1)):
            change += np.bincount(at * groups + group[rows], sign * led["size"][rows].astype(np.float64), len(change))
        living.advance(window)
    return np.asarray(change.reshape(len(moments), groups).cumsum(axis=0).T, np.int64)


def _request_before(calls: Columns) -> NDArray[np.intp]:
    """The latest request for each call's object before it; -1 for its allocation."""
    object_, _ = number_objects(calls["op"], calls["id"])
    order = order_by_id(object_)
    again = object_[order[1:]] == object_[order[:-1]]
    before = np.full(len(object_), -1)
    before[order[1:][again]] = order[:-1][again]
    return before


def _at_peak(trace: Stream, alive: Columns) -> list[dict[str, Any]]:
    key = alive["site"].astype(np.uint64) << np.uint64(32) | alive["size"]
    kinds, counts = np.unique(key, return_counts=True)
    rows = []
    for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        site, size = trace.sites[kind >> 32], kind & 0xFFFFFFFF
        rows.append({"site": site, "size": size, "objects": count, "bytes": size * count})
    return sorted(rows, key=lambda row: -row["bytes"])

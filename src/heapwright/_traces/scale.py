"""Scaling of a trace to pointers of another width: an estimate of its sizes.

The model, as ``docs/traces.md`` states it: a size that is not a multiple of the old width is text or bytes and stays;
a power of two from `BUFFER` bytes on is a buffer and stays; any other size is an array of words of the old width, a
share of which are pointers, or integers of that width, and shrink or grow with them. A site that requests a size that
is not a multiple allocates only bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._traces.streams import Stream
from heapwright._traces.validation import FREE, MAX_SIZE, Columns

POINTER_SHARE = 0.5
"""Share of a struct's words that are pointers or as wide as these. Between what fits Lua (0.8) and SQLite (0.35); see
docs/traces.md.
"""

STEPS = 64
"""Number of shares of pointers in the search for the best fit."""

BUFFER = 256
"""Bytes from which a power of two counts as a buffer."""


def scale(
    trace: Stream,
    pointer_bytes: int = 4,
    *,
    recorded_pointer_bytes: int | None = None,
    pointer_share: float = POINTER_SHARE,
    buffers: bool = True,
) -> Stream:
    """Return what the trace might be with pointers of 4 or 8 bytes, where it was recorded with the other width.

    Args:
        trace: the original.
        pointer_bytes: the new width.
        recorded_pointer_bytes: the old one; None is what the trace says.
        pointer_share: share of a struct's words that shrink or grow with pointers, 0 to 1. 0 and 1 bound what any
            share gives.
        buffers: powers of two from `BUFFER` bytes on are buffers and stay; False where a program's tables double, so
            that these are arrays of structs.

    Calls, objects, times, threads, phases and sites stay. The name is the trace's with ``~32-bit`` or ``~64-bit``; the
    metadata is the trace's with the new ``pointer_bytes``, and ``scale_of``, its name, ``scale_pointer_share``, and a
    line in ``caveats`` that says that sizes are an estimate. O(calls), and a pass over them before where sites are
    named.

    Raises HeapwrightError where the old width is not known, or is the new one already.
    """
    if pointer_bytes not in (4, 8):
        raise ParameterError(f"{pointer_bytes}; must be 4 or 8", parameter="pointer_bytes")
    if not 0 <= pointer_share <= 1:
        raise ParameterError(f"{pointer_share:g}; must be 0 to 1", parameter="pointer_share")
    known = trace.metadata.get("pointer_bytes", recorded_pointer_bytes)
    if known is None:
        message = f"{trace.name}: does not say how wide its pointers are; give their bytes"
        raise HeapwrightError(message, parameter="recorded_pointer_bytes")
    old = int(known)
    if old != recorded_pointer_bytes and recorded_pointer_bytes is not None:
        raise ParameterError(f"{trace.name} says {old}", parameter="recorded_pointer_bytes")
    if old not in (4, 8):
        raise ParameterError(f"{old}; must be 4 or 8", parameter="recorded_pointer_bytes")
    if old == pointer_bytes:
        raise HeapwrightError(f"{trace.name}: has {old}-byte pointers already", parameter="pointer_bytes")
    caveat = (
        f"sizes are an estimate: scaled from {old}-byte to {pointer_bytes}-byte pointers, "
        f"{pointer_share:.0%} of the words of structs taken for pointers"
    )
    caveats = [*trace.metadata.get("caveats", "").splitlines(), caveat]
    metadata = trace.metadata | {
        "pointer_bytes": str(pointer_bytes),
        "scale_of": trace.name,
        "scale_pointer_share": f"{pointer_share:g}",
        "caveats": "\n".join(caveats),
    }

    def windows() -> Iterator[Columns]:
        of_bytes = _sites_of_bytes(trace, old)
        for window in trace.windows():
            structs = _structs(window["size"], old, buffers) & ~of_bytes[window["site"]] & (window["op"] != FREE)
            size = window["size"].astype(np.int64)
            size[structs] = scaled(size[structs], old, pointer_bytes, pointer_share)
            yield window | {"size": np.minimum(size, MAX_SIZE).astype(np.uint32)}

    name = f"{trace.name}~{8 * pointer_bytes}-bit"
    return Stream(name, windows, phases=trace.phases, sites=trace.sites, metadata=metadata, repairs=trace.repairs)


def fitted_share(
    trace: Stream,
    peak_bytes: int,
    pointer_bytes: int = 4,
    *,
    recorded_pointer_bytes: int | None = None,
    buffers: bool = True,
) -> float:
    """The share of pointers with which the live peak of the scaled trace comes nearest to a measured one.

    Args:
        trace, pointer_bytes, recorded_pointer_bytes, buffers: as for `scale`.
        peak_bytes: the most bytes that were live at once with the new width, as requested.

    Returns a multiple of 1/`STEPS`, after a pass over the calls for each of 8 shares.

    Raises HeapwrightError as `scale` does, and if no share gives such a peak.
    """

    def peak(share: float) -> int:
        scaled = scale(
            trace,
            pointer_bytes,
            recorded_pointer_bytes=recorded_pointer_bytes,
            pointer_share=share,
            buffers=buffers,
        )
        return scaled.totals().peak_bytes

    ends = (peak(0.0), peak(1.0))
    if not min(ends) <= peak_bytes <= max(ends):
        tables = "; do its tables double? then powers of two are no buffers" if buffers else ""
        message = f"{peak_bytes}; any share of pointers gives {min(ends):,} to {max(ends):,} bytes{tables}"
        raise ParameterError(message, parameter="peak_bytes")
    falls = ends[0] > ends[1]
    low, high, of = 0, STEPS, {0: ends[0], STEPS: ends[1]}
    while high - low > 1:
        middle = (low + high) // 2
        of[middle] = peak(middle / STEPS)
        low, high = (middle, high) if (of[middle] >= peak_bytes) == falls else (low, middle)
    return min((low, high), key=lambda step: abs(of[step] - peak_bytes)) / STEPS


def scaled(size: NDArray[np.int64], old: int, new: int, pointer_share: float) -> NDArray[np.int64]:
    """Sizes of structs of words of the old width, of which a share is pointers, rounded up to whole words of 4 bytes or
    to the new width where pointers grow.
    """
    changed = size + size // old * pointer_share * (new - old)
    unit = max(4, new)
    return np.asarray(np.ceil(changed / unit) * unit, np.int64)


def _structs(size: NDArray[np.uint32], old: int, buffers: bool) -> NDArray[np.bool_]:
    is_buffer = buffers & (size >= BUFFER) & ((size & (size - np.uint32(1))) == 0)
    return np.asarray((size % old == 0) & ~is_buffer)


def _sites_of_bytes(trace: Stream, old: int) -> NDArray[np.bool_]:
    """Which sites ask for some size that is no multiple of the old width; none where the trace names no sites."""
    of_bytes = np.zeros(len(trace.sites), bool)
    if trace.sites == ("",):
        return of_bytes
    for window in trace.windows():
        odd = (window["size"] % old != 0) & (window["op"] != FREE)
        of_bytes[window["site"][odd]] = True
    unnamed = [at for at, name in enumerate(trace.sites) if not name]
    of_bytes[unnamed] = False
    return of_bytes

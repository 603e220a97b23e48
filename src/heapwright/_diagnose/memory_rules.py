"""What the readings of several memories show: one is exhausted while another is free."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from heapwright._diagnose.model import Cure, Finding, number
from heapwright._diagnose.readings import HEAP, Failure
from heapwright._diagnose.series import Series
from heapwright._diagnose.series_failures import failed_in
from heapwright._diagnose.series_words import finding_of, is_full

EMPTY = 0.5
"""A memory lies idle if that share of it is free."""
IDLE = 100_000
MORE_FREE = 10
"""Bytes that must be free in a memory of which no size is known, and how many times as many as in the full one; ..."""
SEVERAL = 4
"""... or it has a block for that many of the requests that failed in the full one."""
SUM = 0.02
"""The heap is the sum of other memories if its free memory is theirs but for that share."""
MOST_PARTS = 8
_SUMS = (HEAP, "Internal")


def wrong_memory(series: Sequence[Series], failures: Sequence[Failure]) -> Finding | None:
    """One memory that is exhausted while another is free."""
    apart = _apart(series)
    for item in apart:
        free = item.free
        failed = [failure.size or 0 for failure in failed_in(item, failures, series)]
        fails = any(size > (item.last("largest") or free) for size in failed)
        if not (fails or is_full(item)):
            continue
        idle = (other for other in apart if other is not item and _is_idle(other, free, max(failed, default=0)))
        if other := next(idle, None):
            return _exhausted(item, max(failed) if fails else None, other)
    return None


def _apart(series: Sequence[Series]) -> list[Series]:
    """The memories that are no part, and not the sum, of others."""
    apart = [item for item in series if _is_apart(item)]
    return [item for item in apart if item.memory not in _SUMS or not _is_sum(item, apart)]


def _is_sum(series: Series, others: Sequence[Series]) -> bool:
    """Whether free memory is that of two or more other memories together."""
    free = [item.free for item in others if item.memory not in _SUMS and item.free][:MOST_PARTS]
    sums = (sum(parts) for count in range(2, len(free) + 1) for parts in combinations(free, count))
    return any(abs(series.free - whole) <= SUM * whole for whole in sums)


def _is_apart(series: Series) -> bool:
    """Whether a series is a memory of its own, rather than a part of one, and its free bytes are known."""
    part = series.memory.startswith(("region ", "Arena", "lwIP"))
    return not part and series.unit == "B" and series.last("free") is not None


def _is_idle(series: Series, free: float, request: int) -> bool:
    """Whether a memory could serve a request that failed in a memory with `free` bytes free; 0 if none is known."""
    idle = series.free
    block = series.last("largest") or idle
    if request and block >= SEVERAL * request and idle >= MORE_FREE * free:
        return True
    enough = EMPTY * series.size if series.size else max(IDLE, MORE_FREE * free)
    return idle >= enough and block > request


def _exhausted(series: Series, failed: int | None, other: Series) -> Finding:
    """The finding of a memory that is exhausted, perhaps for a request that failed, while another is idle."""
    free, idle = series.free, other.free
    requests = f", and requests of up to {number(failed)} B fail in it" if failed is not None else ""
    return finding_of(
        series,
        "wrong memory",
        "likely",
        f"{series.memory} is exhausted, {number(free)} B free{requests}, while {number(idle)} B are free in "
        f"{other.memory}",
        cures=(
            Cure(
                f"move large buffers that need not be in {series.memory} to {other.memory} "
                "(heap_caps_malloc, CONFIG_SPIRAM_MALLOC_ALWAYSINTERNAL, a section of the linker script)"
            ),
        ),
        record_next="every heap call with its memory: `heapwright diagnose` then says which objects to move",
    )

"""What readings show of requests that failed: the rules of docs/diagnose.md for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heapwright._diagnose.model import INCONCLUSIVE, Cure, Finding, number
from heapwright._diagnose.readings import HEAP, Failure
from heapwright._diagnose.series import Series
from heapwright._diagnose.series_words import CALLS_NEXT, cures_of_fragmentation, finding_of, is_full, prefix

TLS_BUFFER = 16_717
"""Bytes of a record buffer of mbedTLS with its default of 16,384 B of content; a connection has two."""

EXHAUSTED = 0.05
"""A heap was used up if less than that share of what is free at the end was free at the lowest."""

TINY = 0.01
"""A request below that share of what is free fails in another memory rather than for want of a hole."""


def failed_in(series: Series, failures: Sequence[Failure], others: Sequence[Series]) -> list[Failure]:
    """The requests of known size that failed in a memory.

    A request without a memory's name failed in the only one that it can have been: the only memory, the heap, or the
    only one whose largest block is too small.
    """
    memories = [item for item in others if item.unit == "B" and not item.memory.startswith("region ")]
    alone = len(memories) == 1 or series.memory == HEAP

    def is_mine(failure: Failure, size: int) -> bool:
        if failure.memory:
            return failure.memory == series.memory
        unable = [item for item in memories if _cannot_serve(item, size)]
        return alone or (len(unable) == 1 and unable[0] is series)

    return [item for item in failures if item.size and is_mine(item, item.size)]


def _cannot_serve(series: Series, size: int) -> bool:
    """Whether a memory had no block of a size when it was last read."""
    block = series.last("largest")
    block = series.last("free") if block is None else block
    return block is not None and size > block and series.free > 0


@dataclass(frozen=True)
class _Refused:
    """Requests that failed in a memory, and its last counters; None of these if they are not known.

    Attributes:
        size: bytes of the largest request.
        words: the requests and the memory, in words.
        free, block: bytes that were free, and the largest free block.
    """

    series: Series
    size: int
    words: str
    free: float | None
    block: float | None

    @classmethod
    def of(cls, series: Series, failed: Sequence[Failure]) -> _Refused:
        """These requests, which have a size, and what was free at the largest."""
        largest = max(failed, key=lambda item: item.size or 0)
        size = largest.size or 0
        requests = f"{number(len(failed))} request{'s' if len(failed) > 1 else ''} of up to {number(size)} B failed"
        free = series.last("free") if largest.free is None else largest.free
        block = series.last("largest") if largest.block is None else largest.block
        if block is not None and free is not None and block > free:
            block = None  # it was read at another time
        return cls(series, size, prefix(series) + requests, free, block)

    def full(self) -> Finding | None:
        """The heap is full, or has less free than the request takes."""
        free, size = self.free, self.size
        if free is None:
            return None
        if size > free:
            lacking = number(size - free)
            return finding_of(
                self.series,
                "too small",
                "likely",
                f"{self.words} while {number(free)} B were free: that heap lacks at least {lacking} B",
                cures=(Cure(f"a heap at least {lacking} B larger, or fewer objects at once"),),
                record_next="every heap call under the worst load: `heapwright fit` then says how large the heap must "
                "be",
            )
        if not self.series.size or not is_full(self.series):
            return None
        return finding_of(
            self.series,
            "too small",
            "likely",
            f"{self.words} with {number(free)} of {number(self.series.size)} B free: the heap is full",
            cures=(Cure("a larger heap, fewer objects at once, or buffers in another memory"),),
            record_next="free memory from start on, to distinguish a heap that is too small from a leak",
        )

    def in_holes(self) -> Finding | None:
        """Enough is free, but no block is that large."""
        if self.free is None or self.block is None or not self.block < self.size <= self.free:
            return None
        return finding_of(
            self.series,
            "fragmentation",
            "sure" if self.series.memory.startswith("region ") else "likely",
            f"{self.words} although {number(self.free)} B were free: the largest free block was {number(self.block)} B",
            cures=cures_of_fragmentation(self.size),
            record_next=CALLS_NEXT,
        )

    def elsewhere(self) -> Finding | None:
        """A block of that size is free, or far more than that: the request was one of another memory."""
        if self.block is not None and self.size <= self.block:
            return finding_of(
                self.series,
                "wrong memory",
                INCONCLUSIVE,
                f"{self.words} although a block of {number(self.block)} B was free: it asked for another memory or "
                "alignment, or memory ran out between the readings",
                record_next="free memory and largest block of every memory (internal, DMA, PSRAM) in the "
                "failed-allocation hook, with the capabilities of the request",
            )
        if self.free is None or self.size >= TINY * self.free:
            return None
        return finding_of(
            self.series,
            "wrong memory",
            INCONCLUSIVE,
            f"{self.words} although {number(self.free)} B were free: so small a request fails in another memory "
            "(internal or DMA-capable RAM), or the heap is in small pieces",
            record_next="free memory and largest block of every memory (internal, DMA, PSRAM) when a request fails",
        )

    def unexplained(self) -> Finding | None:
        """Enough is free, and how large the blocks are is not known."""
        if self.free is None:
            return None
        return finding_of(
            self.series,
            "fragmentation",
            INCONCLUSIVE,
            f"{self.words} although {number(self.free)} B were free; the largest free block is not recorded",
            record_next="the largest free block with free memory, as heap_caps_get_largest_free_block returns it",
        )


def failed_requests(series: Series, failed: Sequence[Failure]) -> Finding | None:
    """Finding of a request that failed, from what was free then."""
    if not failed:
        return None
    request = _Refused.of(series, failed)
    return request.full() or request.in_holes() or request.elsewhere() or request.unexplained()


def unknown_size(series: Series, failures: Sequence[Failure]) -> Finding | None:
    """Finding of requests that failed in the only memory, of which no line has the size."""
    unknown = [item for item in failures if not item.size]
    free = series.last("free")
    if not unknown or free is None:
        return None
    words = f"{number(len(unknown))} request{'s' if len(unknown) > 1 else ''} failed"
    is_tls = any(item.is_tls for item in unknown)
    found = _used_up(series, words, free, several=len(unknown) > 1)
    if found is None and is_tls:
        found = _tls_in_holes(series, words, free)
    if found is not None:
        return found
    block = series.last("largest")
    blocks = f", in blocks of up to {number(block)} B" if block is not None else ""
    tls = f"; a connection of mbedTLS takes two buffers of {number(TLS_BUFFER)} B by default" if is_tls else ""
    return finding_of(
        series,
        "not enough data",
        INCONCLUSIVE,
        f"{words} of a size that no line has, and {number(free)} B are free{blocks}{tls}",
        record_next="the size of each request that fails, with free memory and the largest free block then",
    )


def _used_up(series: Series, words: str, free: float, several: bool) -> Finding | None:
    """The heap was used up for a short time, which several requests or no reading show."""
    least = series.least
    if least is None or least >= EXHAUSTED * free:
        return None
    if not several and float(series.known("free").min()) < least / EXHAUSTED:
        return None
    return finding_of(
        series,
        "too small",
        "likely",
        f"{words}, and {number(least)} B were free at the lowest, {number(free)} B at the end: what is needed at once "
        "takes all of the heap for a short time",
        cures=(Cure("a larger heap, fewer objects at once, or smaller buffers"),),
        record_next="every heap call while it fails: `heapwright fit` then says how large the heap must be",
    )


def _tls_in_holes(series: Series, words: str, free: float) -> Finding | None:
    """The largest block is smaller than a buffer of mbedTLS usually is."""
    block = series.last("largest")
    if block is None or not block < TLS_BUFFER <= free:
        return None
    return finding_of(
        series,
        "fragmentation",
        INCONCLUSIVE,
        f"{words} in mbedTLS, whose buffers have {number(TLS_BUFFER)} B by default, although {number(free)} B are "
        f"free: the largest free block has {number(block)} B",
        cures=cures_of_fragmentation(TLS_BUFFER),
        record_next="the size of each request that fails, and the largest free block then",
    )


def failures_alone(failures: Sequence[Failure]) -> Finding:
    """Finding of requests that failed, if there is no reading."""
    sizes = [item.size for item in failures if item.size]
    of = f" of up to {number(max(sizes))} B" if sizes else ""
    return Finding(
        "",
        "not enough data",
        INCONCLUSIVE,
        f"{number(len(failures))} request{'s' if len(failures) > 1 else ''}{of} failed, and no line has how much "
        "memory was free then",
        record_next="free memory, its minimum and the largest free block, once a minute and when a request fails",
    )

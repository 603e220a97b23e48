"""Record buffers of Mbed TLS in a trace, and the options that set their lengths.

A buffer is as long as the content of a record (`MBEDTLS_SSL_IN_CONTENT_LEN`, `MBEDTLS_SSL_OUT_CONTENT_LEN`) and what a
record has in addition: 13 bytes of header, and at most 16 of IV, 48 of MAC, 256 of padding and 32 of connection id
(library/ssl_misc.h). So a buffer for the longest content, 16,384 bytes, is known by its size, and one for less by
having the same addition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from heapwright._traces.size_uses import sizes_of_objects
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE

SYSTEMS = ("mbedtls", "esp-idf")
LONGEST = 16384
"""Bytes of a record's content at most."""
_LEAST_ADDED, _MOST_ADDED = 13 + 16, 13 + 16 + 48 + 256 + 32
_STEP, _SHORTEST = 256, 512
SHORTER = 4096
"""A length that peers which honour `max_fragment_length` accept (RFC 6066)."""


@dataclass(frozen=True)
class Smaller:
    """Shorter buffers: which options change, and the sizes that become others."""

    options: tuple[str, ...]
    sizes: dict[int, int]
    if_peer_agrees: bool

    def apply(self, trace: Trace) -> Trace:
        """The trace with these sizes in place of the recorded ones."""
        size = trace.size.astype(np.int64)
        for old, new in self.sizes.items():
            size[(trace.size == old) & (trace.op != FREE)] = new
        return trace.select(np.arange(len(trace)), size=size)

    def line(self, system: str, before: int, after: int) -> str:
        """The lines' comment: what the recommended heap is with them."""
        names = " and ".join(f"{_name(system, option)} {SHORTER}" for option in self.options)
        only = " (only if the peer keeps to it: max_fragment_length)" if self.if_peer_agrees else ""
        return _comment(system, f"with {names}{only}: recommended size {after:,} B in place of {before:,}")


@dataclass(frozen=True)
class Buffers:
    """The record buffers of a trace.

    Attributes:
        incoming, outgoing: content bytes of each; the same if both have one size.
        added: bytes of a buffer beyond its content.
        objects: how many were allocated, of both.
    """

    incoming: int
    outgoing: int
    added: int
    objects: int

    def summary(self) -> str:
        """What they are, in words."""
        sizes = sorted({self.incoming + self.added, self.outgoing + self.added}, reverse=True)
        text = " and ".join(f"{size:,}" for size in sizes)
        return f"for TLS: {self.objects:,} record buffers of {text} B, the content and {self.added} B"

    def lines(self, system: str) -> Iterator[str]:
        """The options that the recording had."""
        if system == "esp-idf":
            yield "CONFIG_MBEDTLS_ASYMMETRIC_CONTENT_LEN=y"
        for option, length in (("IN", self.incoming), ("OUT", self.outgoing)):
            name = _name(system, option)
            yield f"{name}={length}" if system == "esp-idf" else f"#define {name} {length}"
        if system == "esp-idf":
            yield _comment(system, "CONFIG_MBEDTLS_DYNAMIC_BUFFER=y frees them between records: record again with it")
        else:
            yield _comment(system, "MBEDTLS_SSL_VARIABLE_BUFFER_LENGTH resizes them after the handshake: record again")

    def smaller(self) -> Iterator[Smaller]:
        """Shorter buffers to try: that of what is sent alone, if it has a size of its own; then both."""
        short = SHORTER + self.added
        incoming, outgoing = self.incoming + self.added, self.outgoing + self.added
        if self.outgoing > SHORTER and outgoing != incoming:
            yield Smaller(("OUT",), {outgoing: short}, False)
        options = tuple(option for option, size in (("IN", incoming), ("OUT", outgoing)) if size > short)
        if "IN" in options:
            yield Smaller(options, {size: short for size in (incoming, outgoing) if size > short}, True)


def buffers_of(trace: Trace) -> Buffers | None:
    """The record buffers of a trace; None if no object has the size of one for the longest content."""
    size, resized = sizes_of_objects(trace)
    number_of, _ = trace.objects()
    births = trace.size[(trace.op <= CALLOC) & ~resized[number_of]]
    sizes, times = np.unique(births.astype(np.int64), return_counts=True)
    longest = [
        (int(count), int(item))
        for item, count in zip(sizes, times, strict=True)
        if _LEAST_ADDED <= item - LONGEST <= _MOST_ADDED
    ]
    if not longest:
        return None
    added = max(longest)[1] - LONGEST
    contents = [int(item) - added for item in sizes if _is_content(int(item) - added)]
    other = max((item for item in contents if item != LONGEST), default=LONGEST)
    lengths = {LONGEST + added, other + added}
    return Buffers(LONGEST, other, added, int(np.isin(size, list(lengths)).sum()))


def _is_content(length: int) -> bool:
    return _SHORTEST <= length <= LONGEST and length % _STEP == 0


def _name(system: str, option: str) -> str:
    prefix = "CONFIG_" if system == "esp-idf" else ""
    return f"{prefix}MBEDTLS_SSL_{option}_CONTENT_LEN"


def _comment(system: str, text: str) -> str:
    return f"# {text}" if system == "esp-idf" else f"/* {text} */"

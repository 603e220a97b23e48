"""Bound on the live objects of a trace that a queue of limited length keeps: N of each class at once, in any order.

A driver's ring of N descriptors holds N packets, if any number arrives and they leave in any order. The workloads of
`heapwright._traffic.workloads` know such bounds and store them in the metadata of their traces.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from heapwright._traces.validation import FREE

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

FALLING_BEHIND = 0.02
"""Share of all bytes that wait at once, from which on a link without a bound does not keep up with the packets."""

KEY = "live_bound"
"""Key of the metadata: a JSON list of [objects, least, most]."""


class ObjectClass(NamedTuple):
    """Objects of which at most this many are live at once, each of ``least`` to ``most`` bytes."""

    objects: int
    least: int
    most: int

    def __str__(self) -> str:
        size = f"{self.most:,}" if self.least == self.most else f"up to {self.most:,}"
        return f"{self.objects:,} of {size} bytes"


@dataclass(frozen=True)
class LiveBound:
    """Bound on the live objects of each class, the class of the largest objects first."""

    classes: tuple[ObjectClass, ...]

    @classmethod
    def of(cls, trace: Trace) -> LiveBound | None:
        """The bound in the metadata of a trace; None if it has none, or one that its own calls exceed."""
        text = trace.metadata.get(KEY)
        if text is None:
            return None
        try:
            bound = cls.parse(text)
        except (ValueError, TypeError):
            return None
        largest = int(trace.size[trace.op != FREE].max(initial=0))
        within = trace.peak_live_objects <= bound.objects and largest <= bound.largest
        return bound if within else None

    @classmethod
    def parse(cls, text: str) -> LiveBound:
        """Read the text of `text`. Raises ValueError or TypeError."""
        rows = [ObjectClass(*map(int, row)) for row in json.loads(text)]
        if not rows or any(not (row.objects > 0 and 0 <= row.least <= row.most) for row in rows):
            raise ValueError
        return cls.from_classes(rows)

    @classmethod
    def from_classes(cls, classes: Sequence[ObjectClass]) -> LiveBound:
        """The bound of these classes."""
        return cls(tuple(sorted(classes, key=lambda item: (-item.most, -item.objects))))

    @property
    def text(self) -> str:
        """The bound as the metadata has it."""
        return json.dumps([list(item) for item in self.classes])

    @property
    def objects(self) -> int:
        """Most live objects at once, of all classes."""
        return sum(item.objects for item in self.classes)

    @property
    def largest(self) -> int:
        """Bytes of the largest object."""
        return self.classes[0].most

    @property
    def payload_bytes(self) -> int:
        """Most live bytes at once, which no heap can do without."""
        return sum(item.objects * item.most for item in self.classes)

    def fixed_blocks(self, align: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Sizes and counts of fixed blocks that serve any order: a size for each class, a block for each object.

        Sizes are multiples of ``align`` of at least 4 bytes. A small object of one class may come to the blocks of
        another with smaller objects, which has a block for it, too.
        """
        sizes = sorted({max(-(-item.most // align), -(-4 // align)) * align for item in self.classes})
        counts = [0] * len(sizes)
        for item in self.classes:
            for at in range(bisect_left(sizes, item.least), bisect_left(sizes, item.most) + 1):
                counts[at] += item.objects
        return tuple(sizes), tuple(counts)

    def __str__(self) -> str:
        return " and ".join(map(str, self.classes))

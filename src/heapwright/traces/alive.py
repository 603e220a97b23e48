"""What lives at a time, told call by call, and what lived when it was most."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from heapwright.traces.validation import CALLOC, FREE, Columns


class Alive:
    """The objects that live, numbered densely: O(1) a call, O(sizes) where a peak is left.

    Attributes:
        calls: made so far.
        bytes, objects: live now; bytes are those requested.
        peak_bytes, peak_objects: the most of each so far.
        slots: numbers that were in use at once at most.
    """

    def __init__(self) -> None:
        self.calls = self.bytes = self.objects = 0
        self.peak_bytes = self.peak_objects = self.slots = 0
        self._slot: dict[int, int] = {}
        self._free: list[int] = []
        self._size: list[int] = []  # by slot
        self._sizes: Counter[int] = Counter()
        self._at_peak: Counter[int] | None = Counter()  # None: what lives now

    def take(self, columns: Columns) -> NDArray[np.uint32]:
        """Take the calls that follow; returns the number of each one's object, as in `struct hw_calls`."""
        slots = []
        for op, id_, size in zip(*(columns[key].tolist() for key in ("op", "id", "size")), strict=True):
            if op <= CALLOC:
                slot = self._born(id_)
            elif op == FREE:
                slot, size = self._slot.pop(id_), 0
                self._free.append(slot)
            else:
                slot = self._slot[id_]
            self._change(slot, size, dies=op == FREE, born=op <= CALLOC)
            slots.append(slot)
        self.calls += len(slots)
        return np.array(slots, np.uint32)

    def at_peak(self) -> list[tuple[int, int]]:
        """What lived when the bytes were most for the first time: sizes and numbers of objects, most bytes first."""
        counts = self._sizes if self._at_peak is None else self._at_peak
        return sorted(counts.items(), key=lambda one: (-one[0] * one[1], one[0]))

    def _born(self, id_: int) -> int:
        if not self._free:
            self._free.append(self.slots)
            self._size.append(0)
            self.slots += 1
        slot = self._slot[id_] = self._free.pop()
        return slot

    def _change(self, slot: int, size: int, *, dies: bool, born: bool) -> None:
        before = self._size[slot]
        if self._at_peak is None and self.bytes + size - before <= self.peak_bytes:
            self._at_peak = Counter(self._sizes)  # which stays until there is more
        if not born:
            self._sizes[before] -= 1
            if not self._sizes[before]:
                del self._sizes[before]
        if not dies:
            self._sizes[size] += 1
        self._size[slot] = size
        self.objects += born - dies
        self.bytes += size - before
        self.peak_objects = max(self.peak_objects, self.objects)
        if self.bytes > self.peak_bytes:
            self.peak_bytes, self._at_peak = self.bytes, None

"""Stream of live objects: their sum now and at its peak, updated call by call."""

from __future__ import annotations

from collections import Counter
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.validation import CALLOC, FREE, Columns

_POINTS = 1 << 11
"""Largest number of points of the curve; beyond it, neighbours are combined."""


class LiveObjectsStream:
    """The live objects, numbered densely: O(1) a call, O(sizes) when the sum falls below a new peak.

    Attributes:
        calls: number of calls so far.
        bytes, objects: live now; bytes as requested.
        peak_bytes, peak_objects: peaks of both so far.
        slots: most numbers in use at once.
    """

    def __init__(self) -> None:
        self.calls = self.bytes = self.objects = 0
        self.peak_bytes = self.peak_objects = self.slots = 0
        self._slot: dict[int, int] = {}
        self._free: list[int] = []
        self._size: list[int] = []  # by slot
        self._site: list[int] = []  # by slot, of the latest request
        self._sizes: Counter[int] = Counter()
        self._held: Counter[int] = Counter()  # bytes by site
        self._at_peak: tuple[Counter[int], Counter[int]] | None = (Counter(), Counter())  # None: the live objects now
        self._curve: list[int] = []
        self._each = 1  # calls for each point
        self._since = self._most = 0  # calls, and the most bytes, behind its last point

    def feed(self, columns: Columns) -> NDArray[np.uint32]:
        """Process the next calls; return the number of each one's object, as in `struct hw_calls`."""
        slots = []
        sites = columns["site"].tolist() if "site" in columns else repeat(0)
        calls = zip(*(columns[key].tolist() for key in ("op", "id", "size")), strict=True)
        for (op, id_, size), site in zip(calls, sites, strict=False):
            if op <= CALLOC:
                slot = self._new_slot(id_)
            elif op == FREE:
                slot, size = self._slot.pop(id_), 0
                self._free.append(slot)
            else:
                slot = self._slot[id_]
            self._change(slot, size, site, dies=op == FREE, born=op <= CALLOC)
            self._draw()
            slots.append(slot)
        self.calls += len(slots)
        return np.array(slots, np.uint32)

    def at_peak(self) -> list[tuple[int, int]]:
        """Sizes and numbers of objects at the first peak of bytes, most bytes first."""
        counts = self._sizes if self._at_peak is None else self._at_peak[0]
        return sorted(counts.items(), key=lambda item: (-item[0] * item[1], item[0]))

    def holders(self) -> list[tuple[int, int]]:
        """Sites and their bytes at that peak, most bytes first."""
        counts = self._held if self._at_peak is None else self._at_peak[1]
        rows = [(site, bytes_) for site, bytes_ in counts.items() if bytes_]
        return sorted(rows, key=lambda row: (-row[1], row[0]))

    def curve(self) -> list[int]:
        """Live bytes along the calls: the most in each of up to 2,048 equal stretches, and in a shorter last."""
        return [*self._curve, self._most] if self._since else list(self._curve)

    def _draw(self) -> None:
        self._most = max(self._most, self.bytes)
        self._since += 1
        if self._since == self._each:
            self._curve.append(self._most)
            self._since = self._most = 0
        if len(self._curve) == _POINTS:
            self._curve = [max(pair) for pair in zip(self._curve[::2], self._curve[1::2], strict=True)]
            self._each *= 2

    def _new_slot(self, id_: int) -> int:
        if not self._free:
            self._free.append(self.slots)
            self._size.append(0)
            self._site.append(0)
            self.slots += 1
        slot = self._slot[id_] = self._free.pop()
        return slot

    def _change(self, slot: int, size: int, site: int, *, dies: bool, born: bool) -> None:
        before = self._size[slot]
        if self._at_peak is None and self.bytes + size - before <= self.peak_bytes:
            self._at_peak = Counter(self._sizes), Counter(self._held)  # the snapshot stays until a higher peak
        if not born:
            self._sizes[before] -= 1
            if not self._sizes[before]:
                del self._sizes[before]
        if not dies:
            self._sizes[size] += 1
        self._held[self._site[slot]] -= before
        self._held[site] += size
        self._size[slot], self._site[slot] = size, site
        self.objects += born - dies
        self.bytes += size - before
        self.peak_objects = max(self.peak_objects, self.objects)
        if self.bytes > self.peak_bytes:
            self.peak_bytes, self._at_peak = self.bytes, None

"""Placeholder objects: they replace objects whose calls a log lacks."""

from __future__ import annotations

from bisect import bisect_left, insort


class Placeholders:
    """The live placeholders: each has a number and a size, as in `LiveBlocks`. O(log n) a call, the oldest O(1)."""

    def __init__(self) -> None:
        self._by_age: dict[int, None] = {}
        self._by_size: list[tuple[int, int]] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._by_age)

    def add(self, block: int) -> None:
        """Add a placeholder."""
        self._by_age[block] = None
        insort(self._by_size, (block & 0xFFFFFFFF, block))
        self.bytes += block & 0xFFFFFFFF

    def take_oldest(self) -> int:
        """Remove the oldest and return it; there must be one."""
        return self._take(next(iter(self._by_age)))

    def nearest(self, size: int) -> int:
        """The size of a placeholder that is nearest to `size`; 0 if there is none."""
        return self._nearest(size)[0] if self._by_size else 0

    def take_nearest(self, size: int) -> int:
        """Remove the placeholder whose size is nearest to `size` and return it; there must be one."""
        return self._take(self._nearest(size)[1])

    def _nearest(self, size: int) -> tuple[int, int]:
        at = bisect_left(self._by_size, (size, 0))
        return min(self._by_size[max(at - 1, 0) : at + 1], key=lambda item: abs(item[0] - size))

    def _take(self, block: int) -> int:
        del self._by_age[block]
        del self._by_size[bisect_left(self._by_size, (block & 0xFFFFFFFF, block))]
        self.bytes -= block & 0xFFFFFFFF
        return block

"""Objects of a trace that stand for those whose calls its log lacks."""

from __future__ import annotations

from bisect import bisect_left, insort


class Placeholders:
    """Which of them live: each has a number and a size, as in `LiveBlocks`. O(log n) a call, the oldest O(1)."""

    def __init__(self) -> None:
        self._by_age: dict[int, None] = {}
        self._by_size: list[tuple[int, int]] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._by_age)

    def add(self, known: int) -> None:
        """One more lives."""
        self._by_age[known] = None
        insort(self._by_size, (known & 0xFFFFFFFF, known))
        self.bytes += known & 0xFFFFFFFF

    def take_oldest(self) -> int:
        """Remove the oldest and return it; there has to be one."""
        return self._take(next(iter(self._by_age)))

    def nearest(self, size: int) -> int:
        """The size that is nearest to this one; 0 where there is none."""
        return self._nearest(size)[0] if self._by_size else 0

    def take_nearest(self, size: int) -> int:
        """Remove one whose size is nearest and return it; there has to be one."""
        return self._take(self._nearest(size)[1])

    def _nearest(self, size: int) -> tuple[int, int]:
        at = bisect_left(self._by_size, (size, 0))
        return min(self._by_size[max(at - 1, 0) : at + 1], key=lambda item: abs(item[0] - size))

    def _take(self, known: int) -> int:
        del self._by_age[known]
        del self._by_size[bisect_left(self._by_size, (known & 0xFFFFFFFF, known))]
        self.bytes -= known & 0xFFFFFFFF
        return known

"""Live blocks of a memory by their addresses; no two overlap."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heapwright._native import ffi, lib
from heapwright._traces.events import blocks_of, new_blocks

LEFT_OUT = int(lib.HW_LEFT_OUT)
"""In place of a block: the object at this address is too large for a trace."""

_ADDRESSES = 1 << 64


class LiveBlocks:
    """Live blocks by address: each has a number and a size, `number << 32 | size`, or is `LEFT_OUT`.

    Addresses are kept in short sorted lists (``native/log_blocks.c``). A call takes O(log n).

    Attributes:
        overlap: whether blocks may overlap: addresses are numbers or hashes, or lie in several memories.
        table: the blocks, for functions of the engine.
    """

    def __init__(self, overlap: bool) -> None:
        self.overlap = overlap
        self._strange: dict[int, int] = {}  # addresses that no memory has
        self._at = ffi.new("uint64_t *")
        self.table = new_blocks()

    def __len__(self) -> int:
        return int(lib.hw_blocks_count(self.table)) + len(self._strange)

    def __contains__(self, address: int) -> bool:
        if not 0 <= address < _ADDRESSES:
            return address in self._strange
        return bool(lib.hw_blocks_find(self.table, address, self._at))

    def take(self, address: int) -> int | None:
        """Remove the block that begins at `address` and return it; None if there is none."""
        if not 0 <= address < _ADDRESSES:
            return self._strange.pop(address, None)
        return int(self._at[0]) if lib.hw_blocks_take(self.table, address, self._at) else None

    def place(self, address: int, size: int) -> list[tuple[int, int]]:
        """Remove the blocks that overlap `size` bytes at `address`, and return them with their addresses.

        0 is any size. A block of no bytes occupies only its address.
        """
        if self.overlap or not 0 <= address < _ADDRESSES:
            block = self.take(address)
            return [] if block is None else [(address, block)]
        results: list[tuple[int, int]] = []
        while lib.hw_blocks_overlapped(self.table, address, size, self._at):
            other = int(self._at[0])
            results.append((other, self.take(other) or 0))
        return results

    def put(self, address: int, block: int) -> None:
        """Put a block where `place` has made room for it."""
        if not 0 <= address < _ADDRESSES:
            self._strange[address] = block
        elif lib.hw_blocks_put(self.table, address, block):
            raise MemoryError

    def newest_first(self) -> Iterator[tuple[int, int]]:
        """Addresses and blocks, newest first, without those left out. O(n log n)."""
        addresses, blocks, put = blocks_of(self.table)
        order = np.argsort(put)[::-1]
        pairs = zip(addresses[order].tolist(), blocks[order].tolist(), strict=True)
        return ((address, block) for address, block in pairs if block != LEFT_OUT)

    def take_all(self) -> list[int]:
        """Remove all blocks and return them, oldest first."""
        _, blocks, put = blocks_of(self.table)
        result = [*blocks[np.argsort(put)].tolist(), *self._strange.values()]
        self._strange = {}
        self.table = new_blocks()
        return result


def size_of(block: int) -> int:
    """The size of a block, 0 if it is left out."""
    return 0 if block == LEFT_OUT else block & 0xFFFFFFFF

"""A general pool as docs/recipes.md describes it, written for clarity: lists of blocks, no addresses to maintain.

It knows nothing of headers, tags, links or bitmaps. Where the core and this model grant different blocks, one of them
does not do what the documentation says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from heapwright._recipes.policy import policy
from heapwright._recipes.pools import General
from heapwright._recipes.recipe import Recipe


class Block:
    def __init__(self, at: int, size: int, free: bool = False) -> None:
        self.at, self.size, self.free = at, size, free


class ModelHeap:
    """One general pool without last remainder, in an arena without end; sizes include headers."""

    def __init__(self, recipe: Recipe) -> None:
        pool = recipe.canonical().pools[0]
        assert isinstance(pool, General)
        self.pool = pool
        self.numbers = policy(recipe)["pools"][0]["general"]
        self.blocks: list[Block] = []  # in order of address
        self.lists: dict[int, list[Block]] = {}  # free blocks, by the smallest size that their bin holds
        self.high = 0
        self.rover: Block | int | None = 0 if self.implicit else None
        self.freed_since_merge = False

    @property
    def implicit(self) -> bool:
        return self.pool.free_list == "implicit"

    @property
    def top(self) -> int:
        return self.blocks[-1].at + self.blocks[-1].size if self.blocks else 0

    # ---- requests

    def malloc(self, request: int) -> Block:
        size = self.block_size(request)
        block = self.find(size)
        if block is None and self.pool.coalesce == "deferred" and self.merge_all():
            block = self.find(size)
        return block or self.cut_from_top(size)

    def free(self, block: Block) -> None:
        block.free = True
        if self.pool.coalesce in ("immediate", "forward") and self.merges(block):
            self.merge_neighbours(block)
            return
        self.insert(block)
        self.freed_since_merge = True

    def realloc(self, block: Block, request: int) -> Block:
        size = self.block_size(request)
        behind = self.behind(block)
        most = block.size - self.numbers["overhead"]
        if self.pool.resize == "keep" and request <= most:
            return block
        if self.pool.resize == "keep-half" and most // 2 < request <= most:
            return block
        if self.pool.resize in ("keep", "keep-half", "move"):
            return self.move(block, request)
        if size <= block.size:
            self.trim(block, size)
        elif behind is None:
            block.size = size
            self.high = max(self.high, self.top)
            self.keep_rover_off(block)
        elif self.pool.coalesce != "never" and behind.free and block.size + behind.size >= size:
            self.absorb(block, behind)
            self.trim(block, size)
        else:
            return self.move(block, request)
        return block

    def move(self, block: Block, request: int) -> Block:
        moved = self.malloc(request)
        self.free(block)
        return moved

    def block_size(self, request: int) -> int:
        unit = self.pool.unit
        size = -(-(max(request, 1) + self.pool.header) // unit) * unit
        return max(size, self.pool.min_block)

    # ---- finding

    def find(self, size: int) -> Block | None:
        """A used block that does not raise the high-water mark."""
        result = self.search_bins(size) if self.pool.bins != "none" else self.search_all(size)
        if result:
            return self.take(result, size)
        return self.cut_from_top(size) if self.high - self.top >= size else None

    def cut_from_top(self, size: int) -> Block:
        self.blocks.append(Block(self.top, size))
        self.high = max(self.high, self.top)
        return self.blocks[-1]

    def search_all(self, size: int) -> Block | None:
        candidates = self.blocks if self.implicit else self.lists.setdefault(0, [])
        if self.pool.fit != "next":
            return self.choose(self.passed(candidates), size)
        return self.rove_blocks(size) if self.implicit else self.rove_list(candidates, size)

    def rove_blocks(self, size: int) -> Block | None:
        """Next fit over all blocks: from the block where the last search ended, then from the first one."""
        rover = self.rover
        assert isinstance(rover, int)
        result = self.choose(self.passed(self.blocks, first=lambda block: block.at >= rover), size)
        if result is None:
            result = self.choose(self.passed(self.blocks, last=lambda block: block.at >= rover), size)
        if result:
            self.rover = result.at
        return result

    def rove_list(self, candidates: list[Block], size: int) -> Block | None:
        """Next fit over a list: from what follows the predecessor of the block found last, then from the head."""
        rover = self.rover
        start = candidates.index(rover) + 1 if isinstance(rover, Block) else 0
        behind = set(map(id, candidates[start:]))
        result = self.choose(self.passed(candidates, first=lambda block: id(block) in behind), size)
        if result is None and rover is not None:
            start = candidates.index(rover) + 1 if rover in candidates else len(candidates)
            stop = candidates[start] if start < len(candidates) else None
            result = self.choose(self.passed(candidates, last=lambda block: block is stop), size)
        if result:
            index = candidates.index(result)
            self.rover = candidates[index - 1] if index else None
        return result

    def passed(
        self,
        candidates: list[Block],
        first: Callable[[Block], bool] = lambda block: True,
        last: Callable[[Block], bool] = lambda block: False,
    ) -> Iterator[Block]:
        """The free blocks that a search passes, from the first one on and up to the last one; lazy merging happens."""
        started, index = False, 0
        while index < len(candidates) and not last(candidates[index]):
            block = candidates[index]
            started = started or first(block)
            if started and block.free:
                if self.pool.coalesce == "lazy" and self.merges(block) and not self.merge_following(block):
                    return
                yield block
            index += 1

    def choose(self, candidates: Iterator[Block], size: int) -> Block | None:
        fit = self.pool.fit
        if fit in ("first", "next"):
            return next((block for block in candidates if block.size >= size), None)
        if fit == "exact":
            return next((block for block in candidates if block.size == size), None)
        return self.choose_best(candidates, size, -1 if fit == "worst" else 1)

    def choose_best(self, candidates: Iterator[Block], size: int, sign: int) -> Block | None:
        best = None
        everything = sum(map(len, self.lists.values()))
        budget = everything * self.pool.search_percent // 100 if self.pool.search_percent < 100 else None
        for seen, block in enumerate(candidates, start=1):
            if block.size >= size and (best is None or sign * block.size < sign * best.size):
                best = block
            if best is not None and ((best.size == size and sign > 0) or (budget is not None and seen >= budget)):
                break
        return best

    def bin_of(self, size: int) -> int:
        if self.pool.bins == "none" or size < (self.pool.linear_up_to or 0):
            return size if self.pool.bins != "none" else 0
        step = max(1, (1 << size.bit_length() - 1) // (self.pool.bins_per_octave or 1))
        return size // step * step

    def search_bins(self, size: int) -> Block | None:
        own = self.bin_of(size)
        filled = sorted(key for key, blocks in self.lists.items() if blocks)
        if self.pool.bins in ("two-level", "half-fit"):
            above = [key for key in filled if key >= size]
            return self.lists[above[0]][0] if above else None
        result = self.choose(self.passed(self.lists.get(own, [])), size)
        above = [key for key in filled if key > own]
        if result or self.pool.fit == "exact" or not above:
            return result
        return (
            self.choose(self.passed(self.lists[above[0]]), size) if self.pool.fit == "best" else self.lists[above[0]][0]
        )

    # ---- handing out

    def splits(self, rest: int) -> bool:
        return self.pool.split != "never" and rest >= self.numbers["split_least"]

    def take(self, block: Block, size: int) -> Block:
        rest = block.size - size
        if not self.splits(rest):
            self.remove(block)
            block.free = False
            return block
        moves = self.pool.bins != "none" or self.pool.order == "size"
        if moves:
            self.remove(block)
        tail = Block(block.at + block.size - (size if self.pool.split_from == "tail" else rest), 0)
        tail.size = block.at + block.size - tail.at
        block.size -= tail.size
        self.blocks.insert(self.blocks.index(block) + 1, tail)
        used, remaining = (tail, block) if self.pool.split_from == "tail" else (block, tail)
        used.free, remaining.free = False, True
        if moves:
            self.insert(remaining)
        elif remaining is tail and not self.implicit:
            self.replace(block, tail)
        return used

    def trim(self, block: Block, size: int) -> None:
        rest = block.size - size
        if self.splits(rest):
            block.size = size
            end = Block(block.at + size, rest)
            self.blocks.insert(self.blocks.index(block) + 1, end)
            self.free(end)

    # ---- merging

    def merges(self, block: Block) -> bool:
        return block.size >= self.pool.coalesce_from

    def behind(self, block: Block) -> Block | None:
        index = self.blocks.index(block) + 1
        return self.blocks[index] if index < len(self.blocks) else None

    def absorb(self, block: Block, behind: Block) -> None:
        self.remove(behind)
        self.blocks.remove(behind)
        block.size += behind.size
        self.keep_rover_off(block)

    def merge_following(self, block: Block) -> bool:
        """Merge with all free blocks behind; False where the block became part of the top."""
        behind = self.behind(block)
        while behind is not None and behind.free and self.merges(behind):
            self.absorb(block, behind)
            behind = self.behind(block)
        if behind is None:
            self.remove(block)
            self.lower_top(block)
        return behind is not None

    def merge_neighbours(self, block: Block) -> None:
        """Merge with the block behind and, for immediate merging, the one in front; give what ends the heap back."""
        behind = self.behind(block)
        if behind is not None and behind.free and self.merges(behind):
            self.absorb(block, behind)
        index = self.blocks.index(block)
        front = self.blocks[index - 1] if index else None
        stays = False
        if self.pool.coalesce == "immediate" and front is not None and front.free and self.merges(front):
            self.blocks.remove(block)
            front.size += block.size
            self.keep_rover_off(front)
            stays = self.is_passed_on_the_way()
            if not stays:
                self.remove(front)
            block = front
        if self.behind(block) is None:
            if stays:
                self.remove(block)
            self.lower_top(block)
        elif not stays:
            self.insert(block)

    def is_passed_on_the_way(self) -> bool:
        """Without tags, the way to a block's place in a list by address passes its neighbours: the front one stays."""
        pool = self.pool
        return pool.order == "address" and not pool.boundary_tags and pool.bins == "none" and not self.implicit

    def merge_all(self) -> bool:
        if not self.freed_since_merge:
            return False
        self.freed_since_merge = False
        self.lists.clear()
        self.rover = 0 if self.implicit else None
        for block in list(self.blocks):
            if block not in self.blocks or not block.free:
                continue
            behind = self.behind(block)
            while self.merges(block) and behind is not None and behind.free and self.merges(behind):
                self.blocks.remove(behind)
                block.size += behind.size
                behind = self.behind(block)
            if behind is None and self.merges(block):
                self.lower_top(block)
            else:
                self.insert(block)
        return True

    def lower_top(self, block: Block) -> None:
        self.blocks.remove(block)
        if isinstance(self.rover, int):
            self.rover = min(self.rover, self.top)

    def keep_rover_off(self, block: Block) -> None:
        """A walk cannot start inside a block."""
        if isinstance(self.rover, int) and block.at < self.rover < block.at + block.size:
            self.rover = block.at

    # ---- lists

    def insert(self, block: Block) -> None:
        if self.implicit:
            return
        blocks = self.lists.setdefault(self.bin_of(block.size), [])
        if self.pool.order == "lifo":
            index = 0
        elif self.pool.order == "fifo":
            index = len(blocks)
        elif self.pool.order == "address":
            index = sum(other.at < block.at for other in blocks)
        else:
            index = sum(other.size < block.size for other in blocks)
        blocks.insert(index, block)

    def list_of(self, block: Block) -> list[Block] | None:
        return next((blocks for blocks in self.lists.values() if block in blocks), None)

    def remove(self, block: Block) -> None:
        blocks = self.list_of(block)
        if blocks is None:
            return
        index = blocks.index(block)
        if self.rover is block:
            self.rover = blocks[index - 1] if index else None
        del blocks[index]

    def replace(self, block: Block, other: Block) -> None:
        blocks = self.list_of(block)
        assert blocks is not None
        blocks[blocks.index(block)] = other
        if self.rover is block:
            self.rover = other

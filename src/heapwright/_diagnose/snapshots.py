"""Snapshots: the blocks of a heap with their addresses, as ESP-IDF, NuttX or any program lists them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

LEAST_BLOCKS = 3
GAP = 64
"""Bytes between two blocks that headers and alignment explain."""
LEAST_IN_ORDER = 0.6
"""Share of the lines of a list whose block begins where the one before ends; calls in a log are in no such order."""

_ESP = re.compile(
    r"(?i)Block (?P<address>0x[0-9a-f]+) data,? size:? (?P<size>0x[0-9a-f]+|\d+)(?: bytes)?"
    r"(?:,? Free: (?P<free>Yes|No)|,? next block 0x[0-9a-f]+(?P<next> FREE)?)?"
)
_ESP_HEAP = re.compile(r"(?i)(?:data for heap:?|Heap start) (0x[0-9a-f]+)")
_NUTTX_HEAD = re.compile(r"Dump all (used|free) memory node info")
_NUTTX_ROW = re.compile(
    r"(?:.*\]|^)\s*(?:(?P<pid>\d+)\s+)?(?P<size>\d+)(?:\s+\d+)?\s+(?P<address>0x[0-9a-f]+)(?P<sites>(?:\s+0x[0-9a-f]+)*)\s*$"
)
_ANY = re.compile(
    r"(?i)^(?=.*\b(?P<state>used|free|in ?use|allocated|alloc|busy)\b)(?=.*?(?P<address>0x[0-9a-f]{4,16}))"
    r"(?=.*?(?:size|len|bytes)?\W{0,3}(?<![\w.])(?P<size>\d{1,9})(?:\s*(?:bytes|b))?(?![\w.]))"
)


@dataclass(frozen=True)
class Block:
    """A block: where it begins, its bytes, whether it is in use, and who made it (task, call sites; empty: unknown)."""

    address: int
    size: int
    used: bool
    owner: str = ""

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size


@dataclass
class Snapshot:
    """The blocks of one heap at one time, by address once it is complete; `memory` is empty if nothing names it."""

    memory: str
    blocks: list[Block] = field(default_factory=list)

    @property
    def used(self) -> list[Block]:
        """The blocks in use."""
        return [block for block in self.blocks if block.used]

    @property
    def lists_free(self) -> bool:
        """Whether free blocks are listed, too; else they are what lies between those in use."""
        return any(not block.used for block in self.blocks)

    def whole(self) -> list[Block]:
        """All blocks by address; if free ones are not listed, what lies between those in use counts as free."""
        blocks = sorted(self.blocks, key=lambda block: block.address)
        if self.lists_free:
            return blocks
        result: list[Block] = []
        for before, after in pairwise(blocks):
            result.append(before)
            if after.address - before.end > GAP:
                result.append(Block(before.end, after.address - before.end, used=False))
        return result + blocks[-1:]


def snapshots_in(lines: list[str]) -> list[Snapshot]:
    """The snapshots of a text, in its order; none if it lists no blocks."""
    found = _parts(_esp(lines)) or _nuttx(lines) or _any(lines)
    return [item for item in found if len(item.blocks) >= LEAST_BLOCKS]


def _parts(blocks: Iterator[tuple[str, Block]]) -> list[Snapshot]:
    """Blocks in the order of the text: another heap, or an address that falls, begins another snapshot."""
    result: list[Snapshot] = []
    for memory, block in blocks:
        current = result[-1] if result else None
        if current is None or current.memory != memory or block.address <= current.blocks[-1].address:
            result.append(Snapshot(memory))
        result[-1].blocks.append(block)
    return result


def _esp(lines: list[str]) -> Iterator[tuple[str, Block]]:
    memory = ""
    for line in lines:
        if match := _ESP_HEAP.search(line):
            memory = f"heap {match[1]}"
        elif match := _ESP.search(line):
            free = (match["free"] or "").lower() == "yes" or match["next"] is not None
            yield (
                memory,
                Block(
                    int(match["address"], 16),
                    int(match["size"], 16 if match["size"].lower().startswith("0x") else 10),
                    not free,
                ),
            )


def _nuttx(lines: list[str]) -> list[Snapshot]:
    """Lists of used and of free blocks; the second list of the same state begins another snapshot."""
    result: list[Snapshot] = []
    listed: set[str] = set()
    state = ""
    for line in lines:
        if match := _NUTTX_HEAD.search(line):
            state = match[1]
            if not result or state in listed:
                result.append(Snapshot(""))
                listed = set()
            listed.add(state)
        elif "Total Blks" in line:
            state = ""
        elif state and (match := _NUTTX_ROW.match(line)):
            owner = " ".join((match["sites"] or "").split()[:4]) or (f"task {match['pid']}" if match["pid"] else "")
            result[-1].blocks.append(Block(int(match["address"], 16), int(match["size"]), state == "used", owner))
    return result


def _any(lines: list[str]) -> list[Snapshot]:
    blocks = []
    for line in lines:
        if match := _ANY.match(line) if "0x" in line.lower() else None:
            text = line.replace(match["address"], " ")
            size = re.search(r"(?i)(?:size|len|bytes)\W{0,3}(\d+)|(\d+)\s*(?:bytes|b)\b", text)
            number = int((size[1] or size[2]) if size else match["size"])
            blocks.append(("", Block(int(match["address"], 16), number, match["state"].lower() != "free")))
    follows = sum(0 <= after.address - before.end <= GAP for (_, before), (_, after) in pairwise(blocks))
    if len(blocks) < LEAST_BLOCKS or follows < LEAST_IN_ORDER * (len(blocks) - 1):
        return []
    return _parts(iter(blocks))


def growth(first: Snapshot, last: Snapshot) -> list[tuple[int, str, int, int, int]]:
    """Groups of used blocks that grew from one snapshot to the other, that of most bytes first.

    Returns size, owner, how many there were, how many there are, and how many of the first are still there.
    """
    before, after = (Counter((block.size, block.owner) for block in item.used) for item in (first, last))
    stayed = {(block.address, block.size, block.owner) for block in first.used}
    still = Counter(
        (block.size, block.owner) for block in last.used if (block.address, block.size, block.owner) in stayed
    )
    grown = [(size, owner, before[size, owner], count, still[size, owner]) for (size, owner), count in after.items()]
    return sorted((item for item in grown if item[3] > item[2]), key=lambda item: -item[0] * (item[3] - item[2]))

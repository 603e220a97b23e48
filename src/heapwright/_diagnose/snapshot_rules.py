"""What one or two snapshots of a heap show: the rules and thresholds of docs/diagnose.md for lists of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from heapwright._diagnose.model import INCONCLUSIVE, Cure, Finding, Picture, number
from heapwright._diagnose.series_rules import NEARLY_FULL, SMALL_BLOCK
from heapwright._diagnose.series_words import FULL
from heapwright._diagnose.snapshots import GAP, Block, Snapshot, growth

LEAST_GROWN = 8
STAYED = 0.9
"""A group leaks only if that share of its blocks in the first snapshot is still there in the last."""

_TWO_NEXT = "a second snapshot later, under the same load: what grew is named"


class _Pin(NamedTuple):
    """Blocks in use between two holes, and the bytes free on both sides."""

    address: int
    size: int
    blocks: int
    free: int


def judge(snapshots: Sequence[Snapshot]) -> list[Finding]:
    """A finding for each heap, of its last snapshot, or of what grew since the first."""
    findings = []
    for memory in dict.fromkeys(item.memory for item in snapshots):
        mine = [item for item in snapshots if item.memory == memory]
        grown = _grown(memory, mine[0], mine[-1]) if len(mine) > 1 else None
        findings.append(grown or _one(memory, mine[-1], len(mine)))
    return sorted(findings, key=lambda item: item.rank)


def _grown(memory: str, first: Snapshot, last: Snapshot) -> Finding | None:
    groups = growth(first, last)
    leaks = [item for item in groups if item[3] - item[2] >= LEAST_GROWN and item[4] >= STAYED * item[2]]
    if not leaks:
        return None
    size, owner, before, after, _ = leaks[0]
    by = f" from {owner}" if owner else ""
    used = [sum(block.size for block in item.used) for item in (first, last)]
    rows = tuple(
        (number(item[0]), item[1], number(item[2]), number(item[3]), number(item[0] * (item[3] - item[2])))
        for item in groups[:10]
    )
    return _named(
        Finding(
            memory,
            "leak",
            "likely" if before else INCONCLUSIVE,
            f"{number(after - before)} more objects of {number(size)} B{by} are in use in the last snapshot than in "
            "the first "
            f"({number(before)} -> {number(after)}), and none of the first went; used memory grew from "
            f"{number(used[0])} to "
            f"{number(used[1])} B",
            ("size, B", "owner", "first", "last", "grown, B"),
            rows,
            (Cure(f"free what allocates {number(size)} B{by}"),),
            "" if owner else "the snapshots with call sites (backtraces), or a heap trace between them",
        ),
        last,
    )


@dataclass(frozen=True)
class _Use:
    """The blocks of one snapshot, and bytes in use and free."""

    item: Snapshot
    blocks: Sequence[Block]
    free_sizes: Sequence[int]
    used: int

    @classmethod
    def of(cls, item: Snapshot) -> _Use:
        """The use of a snapshot."""
        blocks = item.whole()
        free = sorted((block.size for block in blocks if not block.used), reverse=True)
        return cls(item, blocks, free, sum(block.size for block in blocks if block.used))

    @property
    def free(self) -> int:
        """Free bytes."""
        return sum(self.free_sizes)

    @property
    def largest(self) -> int:
        """Bytes of the largest free block; 0 if there is none."""
        return self.free_sizes[0] if self.free_sizes else 0

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """The numbers in words."""
        return (
            ("in use, B", number(self.used)),
            ("free, B", number(self.free)),
            ("largest free block, B", number(self.largest)),
            ("free blocks", number(len(self.free_sizes))),
            ("blocks in use", number(len(self.blocks) - len(self.free_sizes))),
        )


def _one(memory: str, item: Snapshot, count: int) -> Finding:
    """The finding of one snapshot, the last of `count`."""
    use = _Use.of(item)
    finding = _too_small(use) or _fragmented(use) or _without_fault(use, count)
    return _named(replace(finding, memory=memory, heads=("", "last"), rows=use.rows), item)


def _too_small(use: _Use) -> Finding | None:
    free, size = use.free, use.used + use.free
    if not use.item.lists_free or not size or free > NEARLY_FULL * size:
        return None
    return Finding(
        "",
        "too small",
        "likely" if free <= FULL * size else INCONCLUSIVE,
        f"{number(free)} of {number(size)} B are free, {free / size:.0%}: the heap is too small for what it holds, or "
        "something leaks",
        cures=(Cure("a larger heap, or fewer objects at once"),),
        record_next=_TWO_NEXT,
    )


def _fragmented(use: _Use) -> Finding | None:
    if not use.free or use.largest > SMALL_BLOCK * use.free or len(use.free_sizes) < 2:
        return None
    return Finding(
        "",
        "fragmentation",
        "sure" if use.item.lists_free and _is_one_piece(use.blocks) else "likely",
        f"{number(use.free)} B are free in {number(len(use.free_sizes))} blocks, the largest of "
        f"{number(use.largest)} B: a request above {number(use.largest)} B fails{_pinned(use.blocks)}",
        cures=(
            Cure("allocate long-lived objects before large short-lived ones, or give these static buffers"),
            Cure("a place of its own for each large size: a fixed pool in front of the heap"),
        ),
        record_next="every heap call until a request fails: replayed, it shows what pins the holes, and what cures it",
    )


def _without_fault(use: _Use, count: int) -> Finding:
    seen = "one snapshot" if count == 1 else f"{count} snapshots"
    grown = ": one snapshot shows no leak" if count == 1 else ", and no size that grew"
    blocks = f"block{'' if len(use.free_sizes) == 1 else 's'}"
    return Finding(
        "",
        "nothing wrong",
        INCONCLUSIVE,
        f"{seen} with {number(use.free)} B free in {number(len(use.free_sizes))} {blocks}, the largest of "
        f"{number(use.largest)} B{grown}",
        record_next=_TWO_NEXT,
    )


def _pinned(blocks: Sequence[Block]) -> str:
    """What keeps most free bytes apart, in words; empty if nothing does."""
    pin = _pin(blocks)
    if pin is None:
        return ""
    plural, verb = ("s", "keep") if pin.blocks > 1 else ("", "keeps")
    return (
        f"; {number(pin.blocks)} block{plural} of {number(pin.size)} B at {pin.address:#x} {verb} {number(pin.free)} "
        "free B apart"
    )


def _is_one_piece(blocks: Sequence[Block]) -> bool:
    """Whether the blocks leave no gap: then nothing is free but what is listed."""
    return all(
        0 <= after.address - before.end <= GAP
        for before, after in zip(blocks, blocks[1:], strict=False)  # noqa: RUF007
    )


def _pin(blocks: Sequence[Block]) -> _Pin | None:
    """The blocks in use between two holes that keep most free bytes apart, for each of their own bytes."""
    best: _Pin | None = None
    hole: Block | None = None
    between: list[Block] = []
    for block in blocks:
        if block.used:
            between.append(block)
            continue
        if hole is not None and between:
            pin = _Pin(between[0].address, sum(item.size for item in between), len(between), hole.size + block.size)
            if best is None or pin.free * best.size > best.free * pin.size:
                best = pin
        hole, between = block, []
    return best


def _named(finding: Finding, item: Snapshot) -> Finding:
    """The finding with the name of its heap before the sentence, and the picture of the snapshot."""
    memory = finding.memory
    text = f"{memory}: {finding.sentence}" if memory else finding.sentence
    rows = [{"state": "in use" if it.used else "free", "start": it.address, "end": it.end} for it in item.whole()]
    title = "The heap by address" + (f", {memory}" if memory else "")
    return replace(finding, sentence=text[0].upper() + text[1:], picture=Picture(title, "address", "", rows))

"""What one or two snapshots of a heap show: the rules and thresholds of docs/diagnose.md for lists of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from heapwright._diagnose.model import CANNOT_TELL, Confidence, Cure, Finding, Picture, number
from heapwright._diagnose.series_rules import FULL, NEARLY_FULL, SMALL_BLOCK
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
            "likely" if before else CANNOT_TELL,
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


def _one(memory: str, item: Snapshot, count: int) -> Finding:
    blocks = item.whole()
    free = [block for block in blocks if not block.used]
    sizes = sorted((block.size for block in free), reverse=True)
    used = sum(block.size for block in blocks if block.used)
    whole, largest, size = sum(sizes), (sizes or [0])[0], used + sum(sizes)
    rows = (
        ("in use, B", number(used)),
        ("free, B", number(whole)),
        ("largest free block, B", number(largest)),
        ("free blocks", number(len(free))),
        ("blocks in use", number(sum(block.used for block in blocks))),
    )
    pin = _pin(blocks)
    if item.lists_free and size and whole <= NEARLY_FULL * size:
        sure: Confidence = "likely" if whole <= FULL * size else CANNOT_TELL
        return _named(
            Finding(
                memory,
                "too small",
                sure,
                f"{number(whole)} of {number(size)} B are free, {whole / size:.0%}: the heap is too small for what it "
                "holds, "
                "or something leaks",
                ("", "last"),
                rows,
                (Cure("a larger heap, or fewer objects at once"),),
                _TWO_NEXT,
            ),
            item,
        )
    if whole and largest <= SMALL_BLOCK * whole and len(free) > 1:
        pinned = (
            f"; {number(pin.blocks)} block{'s' if pin.blocks > 1 else ''} of {number(pin.size)} B at {pin.address:#x} "
            f"keep{'' if pin.blocks > 1 else 's'} {number(pin.free)} free B apart"
            if pin
            else ""
        )
        return _named(
            Finding(
                memory,
                "fragmentation",
                "sure" if item.lists_free and _is_one_piece(blocks) else "likely",
                f"{number(whole)} B are free in {number(len(free))} blocks, the largest of {number(largest)} B: a "
                "request above "
                f"{number(largest)} B fails{pinned}",
                ("", "last"),
                rows,
                (
                    Cure("allocate long-lived objects before large short-lived ones, or give these static buffers"),
                    Cure("a place of its own for each large size: a fixed pool in front of the heap"),
                ),
                "every heap call until a request fails: replayed, it shows what pins the holes, and what cures it",
            ),
            item,
        )
    seen = "one snapshot" if count == 1 else f"{count} snapshots"
    return _named(
        Finding(
            memory,
            "nothing wrong",
            CANNOT_TELL,
            f"{seen} with {number(whole)} B free in {number(len(free))} block{'' if len(free) == 1 else 's'}, the "
            f"largest of {number(largest)} B"
            + (": one snapshot shows no leak" if count == 1 else ", and no size that grew"),
            ("", "last"),
            rows,
            (),
            _TWO_NEXT,
        ),
        item,
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

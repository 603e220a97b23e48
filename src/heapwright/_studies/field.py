"""What a device's block says of its heap: still fits, drifting, or too small, against what it was tailored to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heapwright._recipes.recipe import ALIGNMENTS, Recipe
from heapwright._replay.reserve import with_margin
from heapwright._replay.usage import FieldBlock, Usage, class_text, least_bytes

Kind = Literal["still fits", "drifting", "too small"]

DRIFT = 0.05
"""Share of the recorded peak: more than so much above it is drift, a quarter of the margin of a reserve; and a class of
blocks has grown if the blocks that it has more take as much."""

LEAST_LEFT = 0.02
"""Share of the arena: with less of it never used it is too small, unless the recording left as little."""


@dataclass(frozen=True)
class GrownClass:
    """A class of blocks of which a device has more than the recording.

    Attributes:
        sizes: of its blocks in bytes, header included, as text.
        blocks, recorded: most used blocks at a time, on the device and in the recording.
        more_bytes: bytes of the blocks that the device has more, each taken for the smallest of the class.
    """

    sizes: str
    blocks: int
    recorded: int
    more_bytes: int

    def __str__(self) -> str:
        return f"blocks of {self.sizes}: {self.blocks:,} at a time, {self.recorded:,} in the recording"


@dataclass(frozen=True)
class FieldVerdict:
    """What a block says.

    Attributes:
        kind: "still fits", "drifting" or "too small".
        arena_bytes: of the device's heap.
        peak_bytes: that it ever covered; `recorded_peak_bytes` in the recording, None if that is not known.
        used_peak_bytes, recorded_used_peak_bytes: most in used blocks; None if the heap has no counters.
        refused, largest_refused_bytes: failed requests, and the largest of them; None if the heap has no counters.
        needed_bytes: the arena to reserve for this load, as `fit` recommends it; if requests failed, a lower bound.
        boots: of the device; 0 if it does not count them.
        classes: those that have grown, the most bytes first; empty if the heap does not count them.
    """

    kind: Kind
    arena_bytes: int
    peak_bytes: int
    recorded_peak_bytes: int | None
    used_peak_bytes: int | None
    recorded_used_peak_bytes: int | None
    refused: int
    largest_refused_bytes: int | None
    needed_bytes: int
    boots: int
    classes: tuple[GrownClass, ...] = ()

    def sentence(self) -> str:
        """The verdict with its numbers."""
        return f"{self.kind}: {'; '.join(self._facts())}"

    def _facts(self) -> list[str]:
        facts = []
        if self.refused:
            largest = f", the largest of {self.largest_refused_bytes:,} bytes" if self.largest_refused_bytes else ""
            facts.append(f"{self.refused:,} request{'s' * (self.refused != 1)} failed{largest}")
        share = self.peak_bytes / self.arena_bytes
        facts.append(f"{self.peak_bytes:,} of {self.arena_bytes:,} bytes were used ({share:.1%})")
        if self.recorded_peak_bytes is not None:
            facts.append(_compared(self.peak_bytes, self.recorded_peak_bytes))
        if self.used_peak_bytes and self.recorded_used_peak_bytes:
            live = _compared(self.used_peak_bytes, self.recorded_used_peak_bytes)
            facts.append(f"live blocks took at most {self.used_peak_bytes:,}, {live}")
        if self.kind != "still fits":
            facts.append(f"this load needs {'at least ' if self.refused else ''}{self.needed_bytes:,} bytes")
        return facts


def _compared(value: int, recorded: int) -> str:
    more = f"{value / recorded - 1:+.1%}"
    if float(more[1:-1]) == 0:
        return f"as many as the recording's {recorded:,}"
    return f"{more[1:]} {'more' if more[0] == '+' else 'less'} than the recording's {recorded:,}"


def judge(block: FieldBlock, recorded: Usage | None) -> FieldVerdict:
    """The verdict on a block, against peaks of the recordings that its heap was tailored to; None if not known.

    It is too small if a request failed, or if less than `LEAST_LEFT` of the arena was never used and the peak is above
    the recorded one. It drifts if the peak, or the bytes in used blocks, are more than `DRIFT` above those recorded, or
    a class of blocks has grown; without a recording, if `fit` would recommend a larger arena.
    """
    usage = block.usage
    classes = _grown(usage, recorded) if recorded and block.counts == "classes" else ()
    counted = block.counts != "nothing"
    needed = with_margin(usage.arena if usage.refused else usage.peak)
    return FieldVerdict(
        kind=_kind(usage, recorded, bool(classes), needed),
        arena_bytes=usage.arena,
        peak_bytes=usage.peak,
        recorded_peak_bytes=recorded.peak if recorded else None,
        used_peak_bytes=usage.used_peak if counted else None,
        recorded_used_peak_bytes=recorded.used_peak if counted and recorded else None,
        refused=usage.refused,
        largest_refused_bytes=usage.largest_refused if counted else None,
        needed_bytes=needed,
        boots=block.boots,
        classes=classes,
    )


def _kind(usage: Usage, recorded: Usage | None, has_grown: bool, needed: int) -> Kind:
    is_above = recorded is None or usage.peak > recorded.peak
    if usage.refused or (is_above and usage.arena - usage.peak < LEAST_LEFT * usage.arena):
        return "too small"
    if recorded is None:
        return "drifting" if needed > usage.arena else "still fits"
    pairs = ((usage.peak, recorded.peak), (usage.used_peak, recorded.used_peak))
    grows = any(before and now > (1 + DRIFT) * before for now, before in pairs)
    return "drifting" if grows or has_grown else "still fits"


def _grown(usage: Usage, recorded: Usage) -> tuple[GrownClass, ...]:
    """The classes of which there are more blocks than recorded, so that those take a share `DRIFT` of the peak."""
    results = []
    for number, (blocks, before) in enumerate(zip(usage.blocks, recorded.blocks, strict=True)):
        more = (blocks - before) * least_bytes(number)
        if more > DRIFT * recorded.peak:
            results.append(GrownClass(class_text(number), blocks, before, more))
    return tuple(sorted(results, key=lambda item: -item.more_bytes))


def variant_of(recipe: Recipe, block: FieldBlock) -> Recipe | None:
    """The recipe as it was generated for the device that sent the block: with other counters, a lock, or a larger
    alignment, or the part of it in one of several memories; None if the block is not of this recipe."""
    for part in recipe.parts().values() if recipe.memory else (recipe,):
        for align in (part.align, *(align for align in ALIGNMENTS if align > part.align)):
            for threads in dict.fromkeys((part.threads, "lock")):
                for counters in (False, True, "classes"):
                    keys = {"align": align, "threads": threads, "counters": counters}
                    variant = part.model_copy(update=keys)
                    if variant.hash[: len(block.recipe)] == block.recipe:
                        return variant
    return None

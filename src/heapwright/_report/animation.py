"""Animation of a heap for the page: the blocks of the arena, call by call; and what caps the arena, in words."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageColor, ImageDraw

from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._replay.arena_sizes import footprint
from heapwright._replay.engine import run
from heapwright._replay.peak_blockers import LONG_SHARE, Relocation, cap, is_long
from heapwright._replay.snapshots import (
    PIECE_TYPE,
    SHOWN_STATES,
    Frame,
    Region,
    cell_shares,
    frames,
    holes,
    last_growth,
    regions,
)
from heapwright._traces.trace import Trace

FRAMES = 120
"""Moments that an animation shows, evenly spread over the calls, and the one of the high-water mark."""
MOST_BLOCKS = 10_000
"""Blocks that all animations of a page hold together, each once while it stays where it is. If there are more,
the smaller ones are drawn by their shares of a cell.
"""
CELLS, LEAST_CELLS = 1000, 100
"""Cells that all animations of a page have together, and each at least."""
MOST_HOLES = 8
"""Holes of a frame that are marked with their size: the largest."""
MOST_SITES, MOST_CHARACTERS = 100, 120
"""Call sites with a colour of their own, those with the most bytes in the animation; and characters of their names."""
NOT_WORTH_IT = 0.02
"""Savings below this share of the arena are not worth a line of code."""

KINDS = ("static", "long", "short", "cached", "free", "own", "unused")
"""What a block or cell is: an object by its lifetime, a block kept in a list, free memory, the heap's own data, and
what was never used.
"""
STATIC, LONG, SHORT, CACHED, FREE, OWN, UNUSED = range(len(KINDS))

STILL = {
    STATIC: "#1c2630",
    LONG: "#b5480a",
    SHORT: "#5aaee0",
    CACHED: "#c3dcc0",
    FREE: "#f6edcf",
    OWN: "#8f7b89",
    UNUSED: "#ffffff",
}
"""Colours of the still picture, as in animation.css in a light surrounding."""
STILL_WIDTH, STILL_ROW, STILL_ROWS = 1000, 12, 24


@dataclass(frozen=True)
class SnapshotPicture:
    """An animation as the page takes it.

    Attributes:
        name: its place in the page.
        title, note: what one sees, and how to read it.
        cap: what caps the arena, in a sentence or two.
        still: the frame at the high-water mark as an SVG that holds a PNG, for pages without scripts.
        data: what animation.js draws; see `_packed`.
    """

    name: str
    title: str
    note: str
    cap: str
    still: str
    data: dict[str, Any]


def animation(trace: Trace, recipe: Recipe, heap: str, name: str, fullest: int, animations: int = 1) -> SnapshotPicture:
    """The animation of a heap on a trace.

    `heap`: what to call the heap; `fullest`: the call to show first where the heap shares no memory; `animations`:
    how many the page has.
    """
    struct = policy_struct(recipe)
    result, ample = run(trace, recipe, struct, None)
    arena = footprint(trace, recipe, struct, result, ample)
    grown = last_growth(trace, recipe, arena)
    peak = fullest if grown is None else grown
    calls = np.unique(np.append(np.linspace(0, len(trace) - 1, FRAMES).astype(np.int64), peak))
    within = regions(recipe, arena)
    reel = _Reel(trace, recipe, arena, within, animations)
    full: Frame | None = None
    for frame in frames(trace, recipe, arena, calls.tolist()):
        reel.add(frame)
        full = frame if frame.call == peak else full
    assert full is not None
    elsewhere = None if result.failed else cap(trace, recipe, full, within, arena)
    info = holes(full.blocks, full.extent, within)
    return SnapshotPicture(
        name=name,
        title=f"{heap}: animation of the heap",
        note=reel.limits(),
        cap=_sentence(trace, full, info, elsewhere, arena, result.failed),
        still=_still(
            full, within, arena, len(trace), f"{heap} after call {peak:,}: {arena:,} bytes, {_holes_in_words(info)}."
        ),
        data=reel.packed(peak, elsewhere),
    )


# --- in words ---------------------------------------------------------------------------------------------------------


def _sentence(
    trace: Trace, frame: Frame, told: npt.NDArray[Any], result: Relocation | None, arena: int, refused: int
) -> str:
    """What caps the arena."""
    begin = f"The arena is fullest after call {frame.call:,}: {arena:,} bytes, {_holes_in_words(told)}."
    if refused:
        requests = "1 request" if refused == 1 else f"{refused:,} requests"
        return f"{begin} {requests} failed, so the effect of a larger arena is unknown."
    if result is None:
        return f"{begin} No long-lived object is next to a hole."
    where = f"above a hole of {result.hole:,} bytes" if result.hole else "below a hole"
    site = trace.sites[trace.site[result.birth]]
    until = "never freed" if result.death is None else f"calls {result.birth:,} to {result.death:,}"
    until = f"from call {result.birth:,} on, never freed" if result.death is None else until
    caps = (
        f"What caps it is object {trace.id[result.birth]} ({result.requested:,} bytes, {until}"
        f"{f', from {site}' if site else ''}), {where}."
    )
    whole = (
        f"without it the trace needs {result.arena:,} bytes, {result.arena + result.bytes:,} with its {result.bytes:,}"
    )
    if result.gain <= 0:
        others = f", and neither does that for {result.tried - 1} others next to holes" if result.tried > 1 else ""
        return f"{begin} {caps} To make it static, or give it a pool of its own, saves nothing{others}: {whole}."
    share = result.gain / arena
    verdict = ""
    if share < NOT_WORTH_IT:
        verdict = " Not worth it."
    elif result.gain <= result.chance:
        verdict = (
            f" Not worth it: that much comes by chance, as for one of {result.picked} objects picked evenly it "
            f"saves {result.chance:,}."
        )
    most = f", the most of {result.tried} tried next to holes" if result.tried > 1 else ""
    return (
        f"{begin} {caps} To make it static, or give it a pool of its own, saves {result.gain:,} bytes ({share:.1%})"
        f"{most}: {whole}.{verdict}"
    )


def _holes_in_words(told: npt.NDArray[Any]) -> str:
    if not len(told):
        return "no byte of them free"
    if len(told) == 1:
        return f"{told['size'][0]:,} of them free in one hole"
    return f"{told['size'].sum():,} of them free in {len(told):,} holes, the largest of {told['size'].max():,}"


def kinds_of(frame: Frame, calls: int) -> npt.NDArray[np.uint8]:
    """The kind of each block of a frame, as a number of `KINDS`, in a trace of `calls` calls."""
    blocks, extent = frame.blocks, frame.extent
    by_state = np.full(6, OWN, np.uint8)
    by_state[SHOWN_STATES] = SHORT, FREE, CACHED, UNUSED
    kind: npt.NDArray[np.uint8] = by_state[blocks["state"]]
    lives = blocks["birth"] >= 0
    kind[is_long(blocks, calls)] = LONG
    kind[lives & (blocks["death"] < 0)] = STATIC
    # Where memory is one free block from the start, most of it was never used.
    beyond = (blocks["offset"] >= extent.low) & (blocks["offset"] + blocks["size"] <= extent.high)
    kind[(kind == FREE) & beyond] = UNUSED
    return kind


# --- frames to data ---------------------------------------------------------------------------------------------------

_SPAN_TYPE = np.dtype(
    [
        ("first", "u4"),  # frame
        ("frames", "u4"),
        ("offset", "u4"),
        ("size", "u4"),
        ("requested", "u4"),
        ("kind", "u1"),
        ("birth", "i4"),
        ("death", "i4"),
    ]
)
_SAME = ("offset", "size", "requested", "kind", "birth")


class _Reel:
    """The frames of an animation as they come: blocks, each once while it stays where it is, and free memory."""

    def __init__(self, trace: Trace, recipe: Recipe, arena: int, within: Sequence[Region], animations: int) -> None:
        self.trace, self.recipe, self.arena, self.within = trace, recipe, arena, within
        self.most, self.cells = MOST_BLOCKS // animations, max(CELLS // animations, LEAST_CELLS)
        self.least = 0
        """Blocks smaller than this are drawn by their shares of a cell."""
        self._over: list[npt.NDArray[Any]] = []
        self._open = np.zeros(0, _SPAN_TYPE)
        self._count = 0
        self._cells: list[npt.NDArray[np.uint8]] = []
        self._frames: list[dict[str, Any]] = []

    def add(self, frame: Frame) -> None:
        """The next frame."""
        kind = kinds_of(frame, len(self.trace))
        self._cells.append(self._shares(frame, kind))
        info = holes(frame.blocks, frame.extent, self.within)
        largest = info[np.argsort(info["size"])[::-1][:MOST_HOLES]]
        lives = frame.blocks["birth"] >= 0
        self._frames.append(
            {
                "call": frame.call,
                "low": frame.extent.low,
                "high": frame.extent.high,
                "live": int(frame.blocks["requested"][lives].sum()),
                "objects": int(lives.sum()),
                "free": int(info["size"].sum()),
                "count": len(info),
                "largest": int(info["size"].max(initial=0)),
                "holes": [[int(hole["offset"]), int(hole["size"])] for hole in largest],
            }
        )
        self._follow(frame, kind)

    def _shares(self, frame: Frame, kind: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Ninths of each cell that each kind takes: uint8[kinds, cells]."""
        pieces = np.zeros(len(kind), PIECE_TYPE)
        pieces["offset"], pieces["size"], pieces["state"] = frame.blocks["offset"], frame.blocks["size"], kind
        shares = cell_shares(pieces, self.arena, self.cells, len(KINDS))
        ninths: npt.NDArray[np.uint8] = np.rint(shares.clip(0, 1) * 9).astype(np.uint8)
        return ninths

    def _follow(self, frame: Frame, kind: npt.NDArray[np.uint8]) -> None:
        """Blocks that lie where they lay go on, the others begin or end."""
        drawn = (kind != FREE) & ((frame.blocks["size"] >= self.least) | (kind == OWN))
        now = np.zeros(int(drawn.sum()), _SPAN_TYPE)
        for key in ("offset", "size", "requested", "birth", "death"):
            now[key] = frame.blocks[key][drawn]
        now["kind"], now["first"], now["frames"] = kind[drawn], len(self._frames) - 1, 1
        before = self._open
        at = np.searchsorted(before["offset"], now["offset"])
        at[at == len(before)] = 0
        same = np.full(len(now), bool(len(before)))
        if len(before):
            for key in _SAME:
                same &= before[key][at] == now[key]
        now["first"][same] = before["first"][at[same]]
        now["frames"][same] = before["frames"][at[same]] + 1
        ended = np.full(len(before), True)
        ended[at[same]] = False
        self._over.append(before[ended])
        self._open = now
        self._count += int(ended.sum())
        while self._count + len(now) > self.most and self.least < self.arena:
            self._leave_out_smaller(max(2 * self.least, 16))
            now = self._open

    def _leave_out_smaller(self, least: int) -> None:
        self.least = least
        over = np.concatenate(self._over)
        self._over = [over[(over["size"] >= least) | (over["kind"] == OWN)]]
        self._count = len(self._over[0])
        self._open = self._open[(self._open["size"] >= least) | (self._open["kind"] == OWN)]

    def limits(self) -> str:
        """How to read the animation, and what it leaves out."""
        step = len(self.trace) / max(len(self._frames) - 1, 1)
        long = max(round(LONG_SHARE * len(self.trace)), 1)
        lines = [
            f"{len(self._frames)} moments, one every {step:,.0f} calls." if step > 1.5 else "Every call.",
            f"Long: freed after {long:,} calls or more, a quarter of the trace; short: sooner; static: never.",
        ]
        lists = [at for at, pool in enumerate(self.recipe.pools, 1) if not pool.owns_blocks]
        if lists:
            kind = self.recipe.pools[lists[0] - 1].kind
            keeps = "has no addresses of its own: it keeps" if len(lists) == 1 else "have no addresses: they keep"
            lines.append(f"Pool {' and '.join(map(str, lists))} {keeps} blocks of the pools below in {kind} lists.")
        if self.least:
            lines.append(
                f"Blocks below {self.least:,} bytes are too many to be drawn one by one: stripes of "
                f"{self.arena / self.cells:,.0f} bytes show their shares."
            )
        return " ".join(lines)

    def packed(self, peak: int, result: Relocation | None) -> dict[str, Any]:
        """The animation as columns of small whole numbers, which pack well.

        `frames`: of each, call, how far the arena has been used (see `Extent`), live bytes and objects, free bytes and
        in how many holes, the largest and where the largest few lie. `blocks`: sorted by first frame, then offset;
        `first` and `offset` are the steps from one block to the next, `spare` is its size less what was requested,
        `birth` counts back from the call of the first frame, `life` is -1 where there is no death, `id` is less the
        call of birth, `site` an index into `sites`. `cells`: where `least` is above 0, see `_packed_cells`.
        """
        spans = np.concatenate([*self._over, self._open])
        spans = spans[np.lexsort((spans["offset"], spans["first"]))]
        calls = np.array([frame["call"] for frame in self._frames], np.int64)
        lives = spans["birth"] >= 0
        birth, death = spans["birth"].astype(np.int64), spans["death"].astype(np.int64)
        site, sites = self._sites(spans, lives)
        columns = {
            "first": np.diff(spans["first"].astype(np.int64), prepend=0),
            "frames": spans["frames"],
            "offset": np.diff(spans["offset"].astype(np.int64), prepend=0),
            "requested": spans["requested"],
            "spare": spans["size"].astype(np.int64) - spans["requested"],
            "kind": spans["kind"],
            "birth": np.where(lives, calls[spans["first"]] - birth, -1),
            "life": np.where(lives & (death >= 0), death - birth, -1),
            "id": np.where(lives, self.trace.id[birth].astype(np.int64) - birth, 0),
        }
        if sites:
            columns["site"] = site
        keys = ("call", "low", "high", "live", "objects", "free", "count", "largest", "holes")
        return {
            "trace": self.trace.name,
            "calls": len(self.trace),
            "arena": self.arena,
            "peak": int(np.searchsorted(calls, peak)),
            "cap": result and result.birth,
            "regions": [self._region(region) for region in self.within],
            "frames": {key: [frame[key] for frame in self._frames] for key in keys},
            "blocks": {key: column.tolist() for key, column in columns.items()},
            "sites": sites,
            "least": self.least,
            "cells": self._packed_cells() if self.least else None,
        }

    def _packed_cells(self) -> dict[str, list[str]]:
        """For each kind that is drawn, a string of digits a frame: ninths of each cell."""
        return {
            KINDS[kind]: [(cells[kind] + ord("0")).tobytes().decode("ascii") for cells in self._cells]
            for kind in range(len(KINDS))
            if kind != FREE and any(cells[kind].any() for cells in self._cells)
        }

    def _sites(self, spans: npt.NDArray[Any], lives: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[Any], list[str]]:
        """For each block the number of its site among the names that are returned, -1 for none; largest first."""
        site = np.full(len(spans), -1)
        if self.trace.sites == ("",):
            return site, []
        of = self.trace.site[spans["birth"][lives]]
        known, number = np.unique(of, return_inverse=True)
        bytes_ = np.bincount(number, spans["size"][lives].astype(np.float64) * spans["frames"][lives])
        order = np.argsort(-bytes_, kind="stable")
        place = np.empty(len(known), np.int64)
        place[order] = np.arange(len(known))
        site[lives] = place[number]
        site[site >= MOST_SITES] = -1
        return site, [self.trace.sites[known[at]][:MOST_CHARACTERS] or "unknown" for at in order[:MOST_SITES]]

    def _region(self, region: Region) -> dict[str, Any]:
        named = [self.recipe.pools[at] for at in region.pools]
        kinds = " and ".join(dict.fromkeys(pool.kind for pool in named))
        pools = "Pool" if len(region.pools) == 1 else "Pools"
        numbers = " and ".join(str(at + 1) for at in region.pools)
        return {"label": f"{pools} {numbers}: {kinds}", "start": region.start, "end": region.end}


# --- the still picture ------------------------------------------------------------------------------------------------


def _still(frame: Frame, within: Sequence[Region], arena: int, calls: int, words: str) -> str:
    """A frame as a picture in an SVG: each region in rows of bytes, one below the other; `words` say what is seen."""
    across = -(-arena // STILL_ROWS)
    rows = [-(-(region.end - region.start) // across) for region in within]
    picture = Image.new("P", (STILL_WIDTH, max(sum(rows) * STILL_ROW + 8 * len(rows), 1)), UNUSED)
    picture.putpalette([part for kind in range(len(KINDS)) for part in ImageColor.getrgb(STILL[kind])])
    draw = ImageDraw.Draw(picture)
    top = 0
    kind = kinds_of(frame, calls)
    for region, count in zip(within, rows, strict=True):
        inside = (frame.blocks["offset"] >= region.start) & (frame.blocks["offset"] < region.end)
        for block, what in zip(frame.blocks[inside], kind[inside], strict=True):
            if what != UNUSED:
                for x, row, wide in _segments(int(block["offset"]) - region.start, int(block["size"]), across):
                    y = top + row * STILL_ROW
                    draw.rectangle((x, y, x + max(wide - 2, 0), y + STILL_ROW - 3), fill=int(what))
        top += count * STILL_ROW + 8
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    url = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
    width, height = picture.size
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(words)}">'
        f'<image width="{width}" height="{height}" href="{url}"/></svg>'
    )


def _segments(offset: int, size: int, across: int) -> Iterator[tuple[int, int, int]]:
    """Where a block lies in rows of `across` bytes: of each row x and width in pixels, and its number between them."""
    at = offset
    while at < offset + size:
        row, start = divmod(at, across)
        end = min(offset + size, (row + 1) * across)
        x = start * STILL_WIDTH // across
        yield x, row, (start + end - at) * STILL_WIDTH // across - x
        at = end

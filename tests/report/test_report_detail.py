"""What the plots of a report show of a heap at many moments, against frames of the same replay."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image
from traces_random import plain_trace

from heapwright._heaps.names import resolve_recipe
from heapwright._recipes.recipe import Recipe
from heapwright._replay.pictures import timeline
from heapwright._replay.replay import replay
from heapwright._replay.snapshots import PIECE_TYPE, cell_shares, frames, holes, regions
from heapwright._report import detail, held_plots, raster
from heapwright._traces.trace import Trace

POOLS = [{"kind": "fixed", "sizes": [64], "counts": [20], "max_size": 64}, {"kind": "general"}]
HEAPS = {
    "upward": resolve_recipe("victim-bins"),
    "one free block": resolve_recipe("tlsf"),
    "regions": Recipe.from_dict({"align": 8, "pool": POOLS}),
}


def looked_at(trace: Trace, recipe: Recipe, extent: int, count: int = 40) -> tuple[int, detail.Detail]:
    arena = int(replay(trace, recipe)["footprint_bytes"] or 0)
    return arena, detail.look(trace, recipe, arena, extent or arena, count)


@pytest.mark.parametrize("heap", HEAPS)
def test_each_moment_is_that_of_a_frame(heap: str) -> None:
    trace, recipe = plain_trace(3, 900), HEAPS[heap]
    arena, result = looked_at(trace, recipe, 0)
    within = regions(recipe, arena)
    assert result.event[[0, -1]].tolist() == [0, len(trace) - 1] and len(result.event) == 40
    for at, frame in enumerate(frames(trace, recipe, arena, result.event.tolist())):
        output = holes(frame.blocks, frame.extent, within)["size"]
        assert (result.free[at], result.largest[at]) == (output.sum(), output.max(initial=0))
        if len(within) == 1:
            assert frame.extent.low <= result.reach[at] * (detail.ROWS - 1) / detail.ROWS or result.reach[at] == arena
        else:
            assert result.reach[at] == arena
        bare = np.zeros(len(frame.blocks), PIECE_TYPE)
        for key in ("offset", "size", "state"):
            bare[key] = frame.blocks[key]
        shares = cell_shares(bare, int(result.reach[at]), detail.ROWS)
        header, rest = result.shares[0, :, at] / 255, result.shares[1:, :, at] / 255
        # A frame's blocks do not distinguish headers: they are what the others lack.
        assert rest.sum(axis=0) + header == pytest.approx(shares.sum(axis=0).clip(0, 1), abs=0.02)
        assert (rest <= shares[1:] + 0.01).all()


def test_a_picture_that_stands_still_has_rows_of_one_size() -> None:
    trace, recipe = plain_trace(3, 900), HEAPS["upward"]
    arena, result = looked_at(trace, recipe, 100_000, 1000)
    assert result.still.shape == (len(raster.COLOURS), detail.ROWS, detail.COLUMNS)
    beyond = -(-arena * detail.ROWS // 100_000)
    assert not result.still[:, beyond:].any() and result.still[:, 0].any()


def test_packed_numbers_are_those_of_a_timeline_and_a_noisy_map_has_fewer_columns() -> None:
    trace, recipe = plain_trace(5, 900), HEAPS["upward"]
    arena, result = looked_at(trace, recipe, 0, 400)
    samples = timeline(trace, recipe, points=800)
    output = detail.packed(result, samples, arena, 1_000_000)
    assert np.cumsum(output["samples"]["call"]).tolist() == samples["event"].tolist()
    requested, spare = (np.cumsum(output["samples"][key]) for key in ("requested", "spare"))
    assert (requested + spare).tolist() == samples["allocated"].tolist()
    assert np.cumsum(output["looks"]["free"]).tolist() == result.free.tolist()
    assert output["samples"]["time"] is None
    assert (output["every"], width_of(output["picture"])) == (1, 400)
    half = detail.packed(result, samples, arena, len(output["picture"]) - 1)
    assert half["every"] in (2, 4) and width_of(half["picture"]) == 400 // half["every"]
    assert len(half["picture"]) < len(output["picture"])


def test_times_are_told_of_a_trace_that_has_them_from_its_beginning_on() -> None:
    trace, recipe = plain_trace(5, 900), HEAPS["upward"]
    arena, result = looked_at(trace, recipe, 0, 400)
    samples = timeline(trace, recipe, points=800)
    times = np.arange(len(samples["event"])) * 10
    output = detail.packed(result, {**samples, "ts_us": times}, arena, 1_000_000)["samples"]["time"]
    assert np.cumsum(output).tolist() == times.tolist() and output[0] == 0
    assert detail.packed(result, {**samples, "ts_us": 0 * times}, arena, 1_000_000)["samples"]["time"] is None


def width_of(url: str) -> int:
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).width


def test_holders_add_up_to_the_live_bytes_at_every_moment() -> None:
    trace = plain_trace(5, 900)
    peak = int(trace.live_bytes.argmax())
    output = detail.holders(trace, peak)
    colours = dict.fromkeys(output["groups"], "#123456")
    packed = detail.packed_holders(output, colours)
    event = np.cumsum(packed["event"])
    assert event.tolist() == list(range(len(trace)))
    assert np.cumsum(packed["bytes"], axis=1).sum(axis=0).tolist() == trace.live_bytes.tolist()
    few = detail.fewer(output, peak, 10)
    assert peak in few["event"] and len(few["event"]) <= 11
    assert np.sum(few["bytes"], axis=0).tolist() == trace.live_bytes[few["event"]].tolist()


def test_heaps_share_a_page_and_many_blocks_take_moments() -> None:
    assert detail.share_of(10, 1) == (detail.MOMENTS, detail.MOST_PICTURE)
    assert detail.share_of(10, 3) == (detail.MOMENTS // 3, detail.MOST_PICTURE // 3)
    assert detail.share_of(detail.MOST_BLOCKS / 1000, 1).moments == 1000
    assert detail.share_of(1e9, 50).moments == detail.LEAST_MOMENTS


def test_colours_that_stand_side_by_side_are_those_of_a_page_and_told_apart() -> None:
    for colours in (held_plots.SITE_COLOURS, held_plots.SIZE_COLOURS):
        assert all(re.fullmatch("#[0-9A-Fa-f]{6}", colour) for colour in colours)
        assert len({colour.lower() for colour in colours}) == len(colours) == 7

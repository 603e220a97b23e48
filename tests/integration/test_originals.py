"""Rows of the zoo beside the originals that they describe: every object of a trace lies where the original puts it.

The row's generated C and the original's sources are built for 32 bits and replay the same calls, in arenas that leave
both the same memory for blocks. `apart` is what the row's addresses are higher by, because its variables lie in the
arena; `more` is what its smallest arena has more than the original's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import originals
import pytest
from c_programs import ROOT
from platform_builds import fetched

import heapwright as hw
from heapwright.generate import generate
from heapwright.heaps import heaps
from heapwright.heaps.foreign.heap import ForeignHeap, addresses
from heapwright.recipes.recipe import Recipe
from heapwright.recipes.zoo import catalogue as zoo
from heapwright.replay.smallest import fit
from heapwright.traces.trace import Trace

ROW = """
style = "arena"
sources = ["row_heap.c"]
align = {align}
init = "heap = row_init(memory, bytes)"
malloc = "row_malloc(heap, size)"
free = "row_free(heap, pointer)"
realloc = "row_realloc(heap, pointer, size)"
defines = {{ ROW_HEAP_ALIGN_UNCHECKED = 1 }}
"""


class Original(NamedTuple):
    """An adapter, where its sources are, and what the row's addresses and smallest arena have more."""

    adapter: str
    sources: Callable[[], Path]
    apart: int
    more: int
    least: int = 0
    most: int = 1 << 30


def newlib(suite: str) -> Callable[[], Path]:
    return lambda: originals.debian("newlib", suite, "newlib/libc/stdlib")


def lwip() -> Path:
    return originals.debian("lwip", "bookworm", "src").parent


LWIP_LARGE = 64_000
"""MEM_SIZE from which on lwIP's indices take 4 bytes."""

ORIGINALS = {
    "freertos-heap2": Original("freertos-heap2", originals.freertos, 24, 16),
    "freertos-heap4": Original("freertos-heap4", originals.freertos, 24, 16),
    "half-fit": Original("o1heap", originals.o1heap, -16, 0),
    "lwip-mem": Original("lwip-mem", lwip, 20, 12, most=LWIP_LARGE),
    "lwip-mem-large": Original("lwip-mem", lwip, 20, 8, least=LWIP_LARGE),
    "newlib-nano": Original("newlib-nano", newlib("trixie"), 24, 24),
    "newlib-nano-2020": Original("newlib-nano", newlib("bookworm"), 24, 24),
}


def examples() -> list[Trace]:
    """The recordings that ship, and one that is cut to fit into 64,000 bytes."""
    broker = Trace.read(ROOT / "examples" / "mosquitto_broker.parquet")
    server = Trace.read(ROOT / "examples" / "lighttpd_server.parquet")
    return [broker, server, first_calls(broker, 1000)]


def first_calls(whole: Trace, count: int) -> Trace:
    columns = {key: getattr(whole, key)[:count] for key in ("op", "id", "size")}
    return Trace.from_columns(**columns, name=f"{whole.name}, {count} calls")


def row_heap(recipe: Recipe, folder: Path) -> ForeignHeap:
    generate(recipe, folder, "row")
    (folder / "row.toml").write_text(ROW.format(align=recipe.align))
    return built(str(folder / "row.toml"))


def built(name: str) -> ForeignHeap:
    heap = heaps.resolve(name, 32)
    assert isinstance(heap, ForeignHeap)
    return heap


def compare(name: str, traces: list[Trace], folder: Path) -> int:
    """How many traces the row and its original have been compared on, each in four arenas: one refuses."""
    original = ORIGINALS[name]
    recipe = zoo.load(name)
    theirs = built(f"{original.adapter}={fetched(original.sources)}")
    ours = row_heap(recipe, folder)
    compared = 0
    for trace in traces:
        smallest = fit(trace, recipe)
        if smallest is None or not original.least < smallest <= original.most:
            continue
        for arena in (smallest - 32, smallest, smallest * 5 // 4 // 16 * 16, 2 * smallest):
            if original.least < arena <= original.most:
                mine = addresses(trace, ours, arena)
                its = addresses(trace, theirs, arena - original.more)
                apart = mine - its
                assert ((mine >= 0) == (its >= 0)).all(), (name, trace.name, arena)
                assert (apart[mine >= 0] == original.apart).all(), (name, trace.name, arena)
        assert np.count_nonzero(its >= 0) > 100
        compared += 1
    return compared


@pytest.mark.parametrize("name", ORIGINALS)
def test_objects_of_the_examples_lie_where_the_original_puts_them(name: str, tmp_path: Path) -> None:
    assert compare(name, examples(), tmp_path) >= 1


@pytest.mark.parametrize("name", ORIGINALS)
def test_objects_of_real_traces_lie_where_the_original_puts_them(name: str, shared_data: Path, tmp_path: Path) -> None:
    traces = [
        Trace.read(shared_data / "heap" / f"{stem}.parquet") for stem in ("rec_lighttpd", "rec_tcpdump", "wee_find")
    ]
    assert compare(name, traces, tmp_path) >= 1


def test_the_original_of_half_fit_ends_the_program_at_a_wrong_free() -> None:
    ours, theirs = hw.attack("half-fit", checks=["neighbours"], runs=20, beside=[f"o1heap={fetched(originals.o1heap)}"])
    for heap in (ours, theirs):
        for fault in ("double_free", "foreign_free", "interior_free"):
            assert heap["faults"][fault]["at_once"] == 20, (heap["heap"], fault)
    assert theirs["checks"] is None
    assert set(theirs["signals"]) <= {"SIGABRT", "SIGSEGV"}
    assert theirs["signals"]["SIGABRT"] >= 60


def test_lea_needs_what_its_successor_needs() -> None:
    """dlmalloc 2.8, with trees in place of bins: no object lies where 2.7.2 puts it, but they need the same memory."""
    successor = built(f"dlmalloc={fetched(originals.dlmalloc)}")
    for trace in examples()[:2]:
        assert fit(trace, zoo.load("lea-2.7.2")) == pytest.approx(successor.fit(trace), rel=0.01)

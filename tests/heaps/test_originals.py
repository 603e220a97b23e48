"""Rows of the zoo against the originals that they describe: every object of a trace lies where the original puts it.

The row's generated C and the original's sources are built for 32 bits and replay the same calls, in arenas that leave
both the same memory for blocks. `apart` is what the row's addresses are higher by, because its variables lie in the
arena; `more` is what its smallest arena has more than the original's. Where no package carries the original, what
it did was recorded: original_addresses.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import originals
import pytest
from c_programs import ROOT
from foreign_builds import as_foreign, foreign
from original_addresses import ALIGNED, BY_FOOTPRINT, aligning, digest, examples, recorded, resizing, traces_for
from platform_builds import fetched
from run_length import by_turns
from tool_requirements import programs_of_32_bits

import heapwright as hw
from heapwright._heaps.foreign.adapter import Adapter, ready_made
from heapwright._heaps.foreign.heap import ForeignHeap, addresses
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._recipes.zoo.facts import facts
from heapwright._replay.arena_sizes import fit
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC


class Original(NamedTuple):
    """An adapter, where its sources are, and what the row's addresses and smallest arena have more."""

    adapter: str
    sources: Callable[[], Path]
    apart: int
    more: int
    least: int = 0
    most: int = 1 << 30
    moves: bool = False
    """Whether a realloc is reported as a malloc and a free."""
    refuses: bool = True
    """Whether arenas that refuse requests are compared, too."""
    unlike: tuple[str, ...] = ()
    """Traces on which it does what the row's page says that the row leaves out."""
    octave: int = 0
    """Bytes that the original's lists have less for each octave that its arena lies below that of `most`."""

    def lists(self, arena: int) -> int:
        """Bytes that the row's lists have more in an arena of the row."""
        more = self.octave * (self.most.bit_length() - arena.bit_length())
        return self.octave * (self.most.bit_length() - (arena - more).bit_length())


def newlib(suite: str) -> Callable[[], Path]:
    return lambda: originals.debian("newlib", suite, "newlib/libc/stdlib")


def lwip() -> Path:
    return originals.debian("lwip", "bookworm", "src").parent


ROWS = tempfile.TemporaryDirectory()
LEA = ROOT / "tests" / "c" / "lea-2.7.2.toml"
LWIP_LARGE = 64_000
"""MEM_SIZE from which on lwIP's indices take 4 bytes."""

ORIGINALS = {
    "espressif-tlsf": Original(
        "espressif-tlsf", originals.espressif_tlsf, 0, 0, least=1 << 14, most=(1 << 18) - 4, octave=68
    ),
    "espressif-tlsf-large": Original(
        "espressif-tlsf", originals.espressif_tlsf, 0, 0, least=1 << 18, most=(1 << 25) - 4, octave=132
    ),
    "freertos-heap2": Original("freertos-heap2", originals.freertos, 24, 16, moves=True),
    "freertos-heap4": Original("freertos-heap4", originals.freertos, 24, 16, moves=True),
    "half-fit": Original("o1heap", originals.o1heap, -16, 0, moves=True),
    "lea-2.7.2": Original(str(LEA), originals.lea, 840, 820, moves=True, refuses=False, unlike=("stunnel_b",)),
    "lwip-mem": Original("lwip-mem", lwip, 20, 12, most=LWIP_LARGE),
    "lwip-mem-large": Original("lwip-mem", lwip, 20, 8, least=LWIP_LARGE),
    "lvgl-tlsf": Original("lvgl-tlsf", originals.lvgl, 0, 0, most=(1 << 16) - 8, octave=132),
    "mbedtls-buffer": Original("mbedtls-buffer", originals.mbedtls, 12, 44, moves=True),
    "newlib-nano": Original("newlib-nano", newlib("trixie"), 24, 24),
    "newlib-nano-2020": Original("newlib-nano", newlib("bookworm"), 24, 24),
    "nuttx-mm": Original("nuttx-mm", originals.nuttx, 0, 0),
    "rt-thread-memheap": Original("rt-thread-memheap", originals.rt_thread, 24, 24),
    "rt-thread-small-mem": Original("rt-thread-small-mem", originals.rt_thread, 0, 0),
    "tlsf": Original("tlsf", originals.tlsf, 0, 0),
    "umm-malloc": Original("umm-malloc", originals.umm_malloc, 20, 16, most=262_136),
}


REAL = (
    *(f"heap/{stem}" for stem in ("rec_lighttpd", "rec_sqlite", "rec_tcpdump", "wee_ffmpeg", "wee_find")),
    *(f"pairs/{stem}" for stem in ("duk_b", "ngircd_b", "mujs_b", "privoxy_a", "snmpd_a", "stunnel_b")),
)
"""Traces of programs that resize blocks, large ones and small ones."""
LEAST = {"lwip-mem": 1, "espressif-tlsf": 6, "lvgl-tlsf": 1}
"""Traces of these that a row serves in an arena that it is for, if not three."""
RESIZED_BY = {"espressif-tlsf-large": 16, "lwip-mem-large": 16, "rt-thread-small-mem": 9}
"""What sizes are multiples of where they are resized: in large arenas, and above what a page leaves out."""


PUBLIC_TREES = (originals.espressif_tlsf, originals.lvgl, originals.nuttx, originals.rt_thread)
"""Of which no package carries the sources."""


def has(original: Original) -> bool:
    try:
        original.sources()
    except originals.MissingError:
        return False
    return True


def at_hand() -> list[str]:
    """Rows whose originals a package carries, or $HEAPWRIGHT_TREES has: CI lacks the others."""
    return [name for name, original in ORIGINALS.items() if original.sources not in PUBLIC_TREES or has(original)]


def moving(whole: Trace) -> Trace:
    """The trace with a malloc and a free in the place of each realloc."""
    calls: list[tuple[int, int, int]] = []
    now: dict[int, int] = {}
    for op, object_, size in zip(whole.op.tolist(), whole.id.tolist(), whole.size.tolist(), strict=True):
        old = now.get(object_, object_)
        if op == REALLOC:
            now[object_] = int(whole.id.max()) + 1 + len(calls)
            calls += [(MALLOC, now[object_], size), (FREE, old, 0)]
        else:
            calls.append((op, old, size))
    op, id_, size = np.array(calls).T
    return Trace.from_columns(op=op, id=id_, size=size, name=f"{whole.name}, moving")


built = cache(foreign)


@cache
def row_heap(recipe: Recipe) -> ForeignHeap:
    return as_foreign(recipe, Path(ROWS.name) / recipe.name)


def compare(name: str, traces: list[Trace]) -> int:
    """How many traces the row and its original were compared on, each in an arena that refuses and a larger one."""
    original = ORIGINALS[name]
    recipe = zoo.load(name)
    theirs = built(f"{original.adapter}={fetched(original.sources)}")
    ours = row_heap(recipe)
    compared = 0
    equal = [trace for trace in traces if trace.name not in original.unlike]
    for trace in map(moving, equal) if original.moves else equal:
        smallest = fit(trace, recipe)
        if smallest is None or not original.least < smallest <= original.most:
            continue
        serving = by_turns((smallest, smallest * 5 // 4 // 16 * 16, 2 * smallest), compared)
        aligns = bool(trace.align.any())
        serving += [original.most] * (aligns and original.octave > 0)
        for arena in (*[smallest - 32] * original.refuses, *serving):
            lists = original.lists(arena)
            if original.least < arena <= original.most and not (lists and aligns):
                mine = addresses(trace, ours, arena)
                its = addresses(trace, theirs, arena - original.more - lists)
                apart = mine - its
                assert ((mine >= 0) == (its >= 0)).all(), (name, trace.name, arena)
                assert (apart[mine >= 0] == original.apart + lists).all(), (name, trace.name, arena)
        assert np.count_nonzero(its >= 0) > 100
        compared += 1
    return compared


@pytest.mark.parametrize("name", at_hand())
def test_objects_of_the_examples_lie_where_the_original_puts_them(name: str) -> None:
    assert compare(name, list(examples().values())) >= 1


@pytest.mark.parametrize("name", at_hand())
def test_objects_of_real_traces_lie_where_the_original_puts_them(name: str, shared_data: Path) -> None:
    """ESP-IDF's on ten traces in all: six and four of these, and three and one of the examples."""
    assert compare(name, [Trace.read(shared_data / f"{stem}.parquet") for stem in REAL]) >= LEAST.get(name, 3)


@pytest.mark.parametrize("name", [name for name in at_hand() if not ORIGINALS[name].moves])
def test_objects_that_are_resized_lie_where_the_original_puts_them(name: str) -> None:
    """Without the original's way to shrink lwip-mem differs from the third realloc on."""
    assert compare(name, [resizing(RESIZED_BY.get(name, 1))]) == 1


@pytest.mark.parametrize("name", [name for name in at_hand() if name in ALIGNED])
def test_objects_of_aligned_calls_lie_where_the_original_puts_them(name: str) -> None:
    assert compare(name, list(map(aligning, [*examples().values(), resizing(1)]))) >= 1


@pytest.mark.parametrize("name", [name for name in at_hand() if name in ALIGNED])
def test_objects_of_real_traces_with_aligned_calls_lie_where_the_original_puts_them(
    name: str, shared_data: Path
) -> None:
    """With the traces of the test above, 16 for tlsf and nuttx-mm, 10 for espressif-tlsf, fewer for smaller arenas."""
    traces = [aligning(Trace.read(shared_data / f"{stem}.parquet")) for stem in REAL]
    assert compare(name, traces) >= {"lvgl-tlsf": 2, "espressif-tlsf-large": 5}.get(name, 6)


@pytest.mark.parametrize("name", sorted({line.heap for line in recorded() if line.digest}))
def test_objects_lie_where_an_original_was_recorded_to_put_them(name: str) -> None:
    lines = [line for line in recorded() if line.heap == name]
    assert len({line.trace for line in lines}) >= 2
    for line in lines:
        mine = addresses(traces_for(name)[line.trace], row_heap(zoo.load(name)), line.arena)
        assert digest(mine) == line.digest, line


@pytest.mark.parametrize("name", BY_FOOTPRINT)
def test_smallest_arenas_are_those_recorded_of_an_original(name: str) -> None:
    """They differ by the row's variables, which lie in its arena."""
    lines = [line for line in recorded() if line.heap == name]
    more = {"contiki-mmem": 20, "kingsley": 128}[name]
    assert len(lines) == 4
    for line in lines:
        assert fit(traces_for(name)[line.trace], zoo.load(name)) == line.original_arena + more, line


def test_the_zoo_says_of_each_row_what_is_tried_here() -> None:
    said = {name: facts(zoo.load(name)).verified for name in zoo.names()}
    by_address = {*ORIGINALS, *(line.heap for line in recorded() if line.digest)}
    assert {name for name, how in said.items() if how == "address"} == by_address
    assert {name for name, how in said.items() if how == "footprint"} == set(BY_FOOTPRINT)


def test_the_zoo_says_which_calls_are_tried_here() -> None:
    """A realloc where the original has one and it is not tried as a malloc and a free; which have no aligned calls."""
    for name, original in ORIGINALS.items():
        known, shipped = facts(zoo.load(name)), original.adapter != str(LEA)
        adapter = ready_made(original.adapter) if shipped else Adapter.load(original.adapter)
        resizes = not original.moves and adapter.realloc != ""
        calls = ("malloc", "free", *["realloc"] * resizes, *["aligned"] * (name in ALIGNED))
        assert known.verified_calls == calls, name
        lacks = shipped and adapter.aligned_alloc == ""
        assert str(known.verified_against).endswith("(no aligned calls)") == lacks, name


def test_pages_give_the_reason_where_aligned_calls_are_not_tried() -> None:
    """All rows verified by address but four: their originals cut an aligned block in ways that a recipe cannot say."""
    reasons = set()
    for recipe in zoo.recipes():
        known = facts(recipe)
        if known.verified == "address" and "aligned" not in known.verification:
            reasons.add(recipe.name)
            page = (ROOT / "docs" / "zoo" / f"{recipe.name}.md").read_text(encoding="utf-8")
            assert "ligned calls" in page.partition("## Our choice")[2] or recipe.name == "newlib-nano-2020"
    assert reasons == {"lea-2.7.2", "newlib-nano", "newlib-nano-2020", "zephyr-sys-heap"}


def test_the_original_of_half_fit_ends_the_program_at_a_wrong_free() -> None:
    programs_of_32_bits()
    ours, theirs = hw.attack("half-fit", checks=["neighbours"], runs=20, beside=[f"o1heap={fetched(originals.o1heap)}"])
    for heap in (ours, theirs):
        for fault in ("double_free", "foreign_free", "interior_free"):
            assert heap["faults"][fault]["at_once"] == 20, (heap["heap"], fault)
    assert theirs["checks"] is None
    assert set(theirs["signals"]) <= {"SIGABRT", "SIGSEGV"}
    assert theirs["signals"]["SIGABRT"] >= 60

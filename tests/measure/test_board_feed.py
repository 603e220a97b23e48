"""What goes into an image and where it lies: events, addresses, the driver's self-test, and what code takes."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from heapwright._measure.boards import image
from heapwright._measure.boards.cpus import CPUS, cpu
from heapwright._measure.boards.feed import (
    DATA_AT,
    FEED,
    REFUSED,
    SKIPPED,
    STUB_VALUE,
    STUBS,
    BoardRun,
    FeedLayout,
    Input,
    check_stubs,
    split_ticks,
)
from heapwright._measure.boards.kernel import Kernel
from heapwright._recipes.zoo import catalogue
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC

BLOCK = 65536
MEMORY = cpu("cortex-m3").memory


def test_an_arena_lies_in_the_fast_memory_behind_what_belongs_to_the_program() -> None:
    result = FeedLayout.of(MEMORY, count=100, slots=10, arena_bytes=5000, front=70_000)
    assert (result.arena, result.arena_bytes) == (MEMORY.fast + BLOCK + 2 * BLOCK, 5000)
    assert result.events == MEMORY.slow + DATA_AT
    assert result.ticks == result.events + 8 * 100
    assert result.objects == result.ticks + 4 * (100 + STUBS)
    assert result.end == MEMORY.slow + BLOCK


def test_an_arena_that_the_fast_memory_has_no_room_for_lies_behind_all_else() -> None:
    most = MEMORY.fast_bytes - BLOCK
    assert FeedLayout.of(MEMORY, 100, 10, most, 0).arena == MEMORY.fast + BLOCK
    assert FeedLayout.of(MEMORY, 100, 10, most - BLOCK, 1).arena == MEMORY.fast + 2 * BLOCK
    for arena, front, blocks in ((most + 1, 0, 0), (most - BLOCK + 1, 1, 1)):
        result = FeedLayout.of(MEMORY, 100, 10, arena, front)
        assert result.arena == MEMORY.slow + (1 + blocks) * BLOCK
        assert result.end == result.arena + arena


def test_events_tell_the_call_its_object_and_its_size() -> None:
    trace = Trace.from_columns(
        op=[MALLOC, CALLOC, MALLOC, REALLOC, FREE], id=[1, 2, 3, 1, 2], size=[24, 40, 64, 99, 0], align=[0, 0, 32, 0, 0]
    )
    output = Input.of(trace, cpu("cortex-m3"), 4096, 100, reference_bytes=4)
    kinds = (output.events[:, 0] >> 28).tolist()
    assert kinds == [MALLOC, MALLOC, 5 + 3, REALLOC, FREE], "an alignment of 2^n bytes is n + 3"
    assert (output.events[:, 0] & 0x0FFFFFFF).tolist() == [0, 1, 2, 0, 1]
    assert output.events[:4, 1].tolist() == [24, 40, 64, 99]
    assert (output.slots, output.arena_used, output.layout) == (3, 100, FeedLayout.of(MEMORY, 5, 3, 4096, 3 * 4))
    assert Input.of(trace, cpu("cortex-m3"), 4096, callocs=True).events[1, 0] >> 28 == CALLOC
    at = output.layout
    assert FEED.unpack(output.header()) == (5, at.events, at.ticks, at.objects, at.arena, 4096, 0, 0, 0, 0)


def test_an_alignment_beyond_a_page_is_refused() -> None:
    for align, fits in ((4096, True), (8192, False)):
        trace = Trace.from_columns(op=[MALLOC], id=[1], size=[8], align=[align], name="wide")
        if fits:
            assert Input.of(trace, cpu("cortex-m3"), 1 << 20).events[0, 0] >> 28 == 15
        else:
            with pytest.raises(HeapwrightError, match="wide: cannot be measured; alignments go up to 4096 bytes"):
                Input.of(trace, cpu("cortex-m3"), 1 << 20)


def test_flags_of_ticks_tell_what_was_performed_and_what_was_refused() -> None:
    performed, refused = split_ticks(np.array([5, SKIPPED, REFUSED | 7, SKIPPED | 3, 9], np.uint32))
    assert (performed.tolist(), refused.tolist()) == ([0, 2, 4], [False, True, False])


def test_an_emulator_that_counts_or_computes_wrongly_is_refused() -> None:
    none = np.empty(0, np.int64)
    target = cpu("cortex-m3")
    run = BoardRun(none, none.astype(bool), {}, target.stub_instructions, STUB_VALUE, True, 0, none.astype(np.uint8))
    check_stubs(run, target, "played 1.0", "install another")
    for wrong in (replace(run, stubs=(1, 10, 16)), replace(run, stub_value=0x5B)):
        with pytest.raises(
            HeapwrightError, match=r"played 1\.0: self-test failed \(stubs of \(1, 10, 15\) .* another$"
        ):
            check_stubs(wrong, target, "played 1.0", "install another")


class Section(dict[str, object]):
    """One of an ELF file, as pyelftools reads it."""

    def __init__(self, name: str, flags: int, size: int, kind: str = "SHT_PROGBITS") -> None:
        super().__init__(sh_flags=flags, sh_size=size, sh_type=kind)
        self.name = name


def test_code_and_data_are_what_the_target_keeps() -> None:
    write, alloc, execute = 1, 2, 4
    sections = [
        Section(".text", alloc | execute, 300),
        Section(".text.app_malloc", alloc | execute, 50),
        Section(".rodata", alloc, 20),
        Section(".data", alloc | write, 12),
        Section(".data.more", alloc | write, 4),
        Section(".bss", alloc | write, 64, "SHT_NOBITS"),
        Section(".bss.heap", alloc | write, 8, "SHT_NOBITS"),
        Section(".stack", alloc | write, 4096, "SHT_NOBITS"),
        Section(".debug_info", 0, 9999),
    ]
    result = image._size(SimpleNamespace(iter_sections=lambda: sections))
    assert result == image.Size(text=370, data=16, bss=72)
    assert image._size(SimpleNamespace(iter_sections=list)) == image.Size(0, 0, 0)


def test_a_call_takes_its_code_and_its_data() -> None:
    linked = SimpleNamespace(size_of=lambda entries, _: image.Size(100 * len(entries), 8, 64))
    alone = dict.fromkeys(("malloc", "free", "realloc"), 108)
    result = image.Workshop.code_bytes(linked)  # type: ignore[arg-type]
    assert result == {**alone, "total": 308, "text": 300, "data": 8, "bss": 64}


def test_a_recipe_is_called_by_its_name_or_its_hash() -> None:
    named = catalogue.load("tlsf")
    assert image.BoardHeap.of_recipe(named).name == "tlsf"
    nameless = named.model_copy(update={"name": ""})
    assert image.BoardHeap.of_recipe(nameless).name == nameless.hash


@pytest.mark.parametrize("name", CPUS)
def test_every_processor_has_room_for_a_trace_apart_from_code_and_arenas(name: str) -> None:
    result = cpu(name)
    memory = result.memory
    parts = sorted(
        [(memory.code, memory.code_bytes), (memory.fast, memory.fast_bytes), (memory.slow, memory.slow_bytes)]
    )
    assert all(at + size <= above for (at, size), (above, _) in pairwise(parts))
    assert (memory.arena, memory.arena_bytes) == (memory.fast + BLOCK, memory.fast_bytes - BLOCK)
    assert memory.code_bytes >= 1 << 19 and memory.fast_bytes == 4 << 20 and memory.slow_bytes >= 16 << 20
    assert result.name == name and cpu(result.runs_on).note is None
    assert (result.note is None) == (result.runs_on == name)


@pytest.mark.parametrize(
    ("name", "megahertz"),
    [
        *((f"cortex-{core}", 25) for core in ("m0plus", "m3", "m4", "m7")),
        ("cortex-m33", 20),
        ("cortex-m55", 32),
        ("rv32imac", 1000),
    ],
)
def test_ticks_are_of_the_clock_that_the_board_counts_by(name: str, megahertz: int) -> None:
    """QEMU is configured with how long an instruction takes: two to the power of the shift, in nanoseconds."""
    machine = cpu(name).qemu
    shift = re.fullmatch(r"shift=(\d),sleep=off", machine[machine.index("-icount") + 1])
    assert shift is not None
    assert cpu(name).ticks == pytest.approx(2 ** int(shift[1]) * megahertz / 1000)


def test_memories_of_a_board_begin_on_pages_and_lie_apart() -> None:
    for memory in {item.memory for item in CPUS.values()}:
        parts = [(memory.code, memory.code_bytes), (memory.fast, memory.fast_bytes), (memory.slow, memory.slow_bytes)]
        assert all(at % 4096 == size % 4096 == 0 for at, size in parts)
        assert all(at + size <= behind for (at, size), (behind, _) in pairwise(sorted(parts)))


def test_a_kernel_takes_the_lock_asked_for(tmp_path: Path) -> None:
    (tmp_path / "tasks.c").touch()
    locks = ["critical", "scheduler"]
    assert [Kernel.of("freertos", tmp_path, lock).lock for lock in locks] == locks

"""Generated heaps believe what they assert: heaps of every kind under a random load, with each condition looked at."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from c_programs import LEVEL, UNCHECKED, compile_c

import heapwright as hw

STOPS = "-DAPP_ASSERT(condition)=((condition) ? (void)0 : __builtin_trap())"
HEAPS = (
    "best-fit-fast-free",  # a list and boundary tags
    "binary-buddy",
    "contiki-ng-heapmem",
    "drr-proposed",  # quick lists in front
    "freertos-heap4",  # in order of addresses
    "fixed-pool",
    "kingsley",
    "lea-2.7.2",  # a queue ahead of bins
    "st-compact-memmgr",  # objects that move
    "symbian-rheap",
    "tlsf",
    "variable-pool",  # partitions
    "victim-bins",
)
LEAST = 15
"""Assertions that a heap of blocks of any size makes at least."""

TWICE = """\
#include "app_heap.h"

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[65536];

int main(void)
{
    struct app_heap *heap = app_init(arena, sizeof arena);
    void *first = app_malloc(heap, 100);
    (void)app_malloc(heap, 100);
    app_free(heap, first);
    app_free(heap, first);
    return 0;
}
"""


@pytest.mark.parametrize("name", HEAPS)
def test_what_a_heap_asserts_holds_under_a_random_load(name: str, tmp_path: Path) -> None:
    hw.generate(name, tmp_path)
    sources = [tmp_path / "app_heap.c", tmp_path / "app_heap_test.c"]
    program = compile_c(tmp_path / "asserted", *sources, flags=["-O0", f"-I{tmp_path}", UNCHECKED, STOPS])
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_block_freed_twice_ends_the_program_where_it_is_asked_for(tmp_path: Path) -> None:
    hw.generate("tlsf", tmp_path)
    (tmp_path / "twice.c").write_text(TWICE)
    sources = [tmp_path / "app_heap.c", tmp_path / "twice.c"]
    flags = [LEVEL, f"-I{tmp_path}", UNCHECKED]
    asserted = compile_c(tmp_path / "asserted", *sources, flags=[*flags, STOPS])
    assert subprocess.run([asserted]).returncode < 0


@pytest.mark.parametrize("name", ["freertos-heap4", "lea-2.7.2", "tlsf", "victim-bins"])
def test_a_heap_asserts_at_many_places(name: str, tmp_path: Path) -> None:
    hw.generate(name, tmp_path)
    assert (tmp_path / "app_heap.c").read_text().count(" APP_ASSERT(") >= LEAST

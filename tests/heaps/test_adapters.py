"""Adapters of other allocators: what a file says, what it may leave out, and which mistakes are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from case_tables import each

from heapwright._heaps.foreign import adapter as adapters
from heapwright._heaps.foreign.adapter import Adapter, call, is_adapter
from heapwright._heaps.foreign.source import defines
from heapwright._heaps.names import picked_up
from heapwright._support.errors import ForeignHeapError, HeapwrightError

LIBC, ARENA = 'style = "libc"\n', 'style = "arena"\ninit = "i"\n'
MOVING = 'handle = "h"\npointer = "p"\nrealloc = "r"\n'
CAPACITY = 'style = "arena"\narray = "a"\ndefines = { SIZE = "{capacity}" }\n'


@each(
    ("toml", "says"),
    [
        *((LIBC + own, 'are for style "arena"') for own in ('init = "i"', 'array = "a"')),
        *((LIBC + f'defines = {{ SIZE = "{{{size}}}" }}', 'for style "arena"') for size in ("bytes", "capacity")),
        *((ARENA + MOVING.replace(f'{key} = "{key[0]}"\n', ""), 'needs "handle"') for key in ("pointer", "realloc")),
        (ARENA + 'pointer = "p"\nrealloc = "r"', 'needs "handle"'),
        *(
            (ARENA + MOVING + f'{key} = "c"', '"handle" goes with')
            for key in ("calloc", "aligned_alloc", "usable_size")
        ),
        (LIBC + MOVING, '"handle" goes with'),
        (CAPACITY + "max_arena = 2147483648", '"max_arena" 2147483648 bounds an array with {capacity}; give less than'),
        (ARENA + '[headers]\n"/x.h" = ""', "'/x.h' is not the name of a header"),
        (LIBC + "unit = 3", '"unit": must be a power of two, not 3'),
        (LIBC + "align = -1", '"align": Input should be greater than or equal to 0'),
        (LIBC + "min_arena = 0", '"min_arena": Input should be greater than or equal to 1'),
        (LIBC + "word_size = 16", '"word_size": Input should be 32 or 64'),
        (LIBC + 'malock = "m"', 'unknown key "malock"; did you mean "malloc"'),
    ],
)
def test_a_contradiction_is_named(toml: str, says: str) -> None:
    with pytest.raises(ForeignHeapError, match=f"^mine.toml: .*{re.escape(says)}"):
        Adapter.parse(toml, "mine.toml")


def test_what_an_adapter_leaves_out_is_as_usual() -> None:
    mine = Adapter.parse(ARENA, "mine.toml")
    assert (mine.word_size, mine.align, mine.unit, mine.min_arena, mine.max_arena) == (32, 0, 0, 1, 1 << 28)
    assert not mine.zeroed and not mine.is_sized and not mine.has_capacity and mine.time_limit == 0
    assert Adapter.parse(ARENA + MOVING, "mine.toml").handle == "h"
    assert Adapter.parse(CAPACITY + "max_arena = 2147483647", "mine.toml").has_capacity


def test_a_name_is_called_with_what_the_driver_has_and_other_text_stays() -> None:
    some = Adapter.parse('style = "arena"\ninit = "start(memory)"\n', "mine.toml")
    assert [call(some, key) for key in ("init", "malloc", "free", "realloc")] == [
        "start(memory)",
        "malloc(size)",
        "free(pointer)",
        "",
    ]
    keys = ("realloc", "calloc", "aligned_alloc", "usable_size")
    named = Adapter.parse(ARENA + "".join(f'{key} = "{key[0]}"\n' for key in keys), "mine.toml")
    assert [call(named, key) for key in ("init", *keys)] == [
        "i(memory, bytes)",
        "r(pointer, size)",
        "c(1, size)",
        "a(align, size)",
        "u(pointer)",
    ]


def test_macros_follow_the_arena_where_they_say_so() -> None:
    own = 'SIZE = "{bytes}"\nLARGE = "{bytes > 65536}"\nFIXED = 3\nMOST = "({capacity})"\n'
    mine = Adapter.parse(f'style = "arena"\narray = "a"\n[defines]\n{own}', "mine.toml")
    assert defines(mine, 65536) == {"SIZE": "65536", "LARGE": "0", "FIXED": "3", "MOST": "(FOREIGN_CAPACITY)"}
    assert defines(mine, 65537)["LARGE"] == "1" and defines(mine, None)["LARGE"] == "0"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match=r"no\.toml: cannot read the adapter: No such file or directory$"):
        Adapter.load(tmp_path / "no.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(ForeignHeapError, match=r"bytes\.toml: not TOML"):
        Adapter.load(tmp_path / "bytes.toml")


def test_an_adapter_is_told_from_a_recipe_by_its_keys(tmp_path: Path) -> None:
    file = tmp_path / "some.toml"
    assert not is_adapter(file)
    for text, result in ((LIBC, True), ('extends = "tlsf"', True), ('name = "x"', False), ("style = ", False)):
        file.write_text(text)
        assert is_adapter(file) == result, text


def test_the_adapter_of_the_same_name_is_picked_up(tmp_path: Path) -> None:
    (tmp_path / "x.toml").touch()
    for name in ("x.c", "x.so", "x.so.2"):
        assert picked_up(str(tmp_path / name)) == [(tmp_path / "x.toml", tmp_path / name)]
        assert picked_up(f"tlsf+{tmp_path / name}") == [(tmp_path / "x.toml", tmp_path / name)]
    assert picked_up(str(tmp_path / "y.c")) == picked_up("tlsf") == []


def test_what_needs_no_sources_may_follow_lib() -> None:
    assert adapters.libraries() == ["glibc", "jemalloc", "mimalloc", "tcmalloc"]

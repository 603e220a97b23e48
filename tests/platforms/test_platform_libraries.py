"""Platforms that are a library's memory here: their pages' commands, their tests, and no second allocator."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from object_cache import built, built_line
from platform_builds import BOARDS, page_commands, run
from processes import finished
from run_length import brief, by_turns
from tool_requirements import needs

import heapwright as hw
from heapwright._recipes.recipe import Recipe

COUNTER = BOARDS.parent / "second_allocator.c"
ALIGN = {"cpp": 16}
"""What this machine needs where that is more than 8."""
NEEDED = {"cpp": "g++", "sqlite": "sqlite3.h", "lua": "lua5.4/lua.h"}
"""Debian: libsqlite3-dev, liblua5.4-dev, g++."""
FASTER = brief("-O0", "")
"""Behind the page's command: what it compiles is checked for how often it allocates, not how fast."""
LEAST_CALLS = 100_000
LIBRARY = 9
"""Calls of its own malloc that the C library makes for itself: a buffer of stdio, C++'s store for exceptions."""


def written(folder: Path, platform: str, recipe: Recipe | None = None) -> Path:
    """The platform's files, for the zoo's TLSF where no other heap is given."""
    heap = recipe or hw.zoo("tlsf").at_alignment(ALIGN.get(platform, 8))
    hw.generate(heap, folder, platform=platform)
    needs("cc", NEEDED[platform])
    return folder


def make(folder: Path, platform: str, more: str = "-Wall -Wextra") -> str:
    """The test, as the page says, and what the compiler said."""
    (command,) = page_commands(folder, "cc ", f"app_{platform}_test")
    return built_line(f"{command} {more} {FASTER}", folder)


def second_calls(folder: Path, platform: str) -> tuple[str, int]:
    """What the test prints, and how often it calls the C library's malloc."""
    assert built(["cc", "-Wall", "-Wextra", "-c", COUNTER], folder).returncode == 0
    assert make(folder, platform, f"-Wall -Wextra {COUNTER.stem}.o") == ""
    done = subprocess.run([f"./app_{platform}_test"], cwd=folder, capture_output=True, text=True, timeout=120)
    return done.stdout, int(done.stderr)


HEAPS = ("tlsf", "victim-bins")
THREADS = ("cached", "lock")


def with_each(choices: tuple[str, ...]) -> list[tuple[str, str]]:
    """A library with each of them in long runs, else each library with one."""
    return [(item, choice) for turn, item in enumerate(NEEDED) for choice in by_turns(choices, turn)]


@pytest.mark.parametrize(("platform", "heap"), with_each(HEAPS))
def test_a_library_allocates_from_the_heap_alone(platform: str, heap: str, tmp_path: Path) -> None:
    written(tmp_path, platform, hw.zoo(heap).at_alignment(ALIGN.get(platform, 8)))
    said, calls = second_calls(tmp_path, platform)
    assert said == f"app_{platform}: ok\n"
    assert calls <= LIBRARY


@pytest.mark.parametrize(("platform", "threads"), with_each(THREADS))
def test_a_recipe_may_have_a_lock_or_caches(platform: str, threads: str, tmp_path: Path) -> None:
    written(tmp_path, platform, hw.zoo("tlsf").at_alignment(16).model_copy(update={"threads": threads}))
    cached = "-DAPP_TEST_CACHED" if threads == "cached" else ""
    assert make(tmp_path, platform, f"-pthread -DAPP_TEST_THREADS=4 {cached}") == ""
    assert run([f"./app_{platform}_test"], tmp_path) == f"app_{platform}: ok\n"


@pytest.mark.parametrize(
    ("platform", "glue", "right", "wrong"),
    [
        ("sqlite", "app_sqlite.c", "return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);", "return SQLITE_OK;"),
        ("sqlite", "app_sqlite.c", "(int)app_usable_size(heap, pointer)", "64"),
        (
            "cpp",
            "app_cpp.cpp",
            "void operator delete(void *memory) noexcept\n{\n    app_free(app_new_heap(), memory);",
            "void operator delete(void *) noexcept\n{\n",
        ),
        ("cpp", "app_cpp.cpp", "static_cast<std::size_t>(alignment)", "std::size_t{1}"),
        ("cpp", "app_cpp.hpp", "app_aligned_alloc(heap_, alignment, bytes)", "app_malloc(heap_, bytes)"),
        ("lua", "app_lua.c", "app_free(heap, pointer);", ""),
        ("lua", "app_lua.c", "app_realloc(heap, pointer, size)", "app_malloc(heap, size)"),
    ],
)
def test_the_test_notices_wrong_glue(platform: str, glue: str, right: str, wrong: str, tmp_path: Path) -> None:
    file = written(tmp_path, platform) / glue
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong))
    make(tmp_path, platform, "-Wall -Wextra")
    assert finished([f"./app_{platform}_test"], tmp_path, 60).returncode != 0


def test_calls_of_the_c_librarys_malloc_are_counted(tmp_path: Path) -> None:
    glue = written(tmp_path, "lua") / "app_lua.c"
    text = glue.read_text().replace("app_realloc(heap, pointer, size)", "(heap ? realloc(pointer, size) : NULL)")
    glue.write_text("#include <stdlib.h>\n" + text.replace("app_free(heap, pointer)", "free(pointer)"))
    said, calls = second_calls(tmp_path, "lua")
    assert "FAILED" in said
    assert calls >= LEAST_CALLS


def test_cpp_does_without_exceptions(tmp_path: Path) -> None:
    written(tmp_path, "cpp")
    assert make(tmp_path, "cpp", "-O0 -fno-exceptions -fno-rtti -Wall -Wextra") == ""
    assert run(["./app_cpp_test"], tmp_path) == "app_cpp: ok\n"

"""Platforms that are a library's memory here: their pages' commands, their tests, and no second allocator."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from platform_builds import BOARDS, missing, page_commands, run

import heapwright as hw
from heapwright.recipes.recipe import Recipe

COUNTER = BOARDS.parent / "second_allocator.c"
LEAST_CALLS = 100_000
STDIO = 4
"""Calls of the C library's own malloc that stdio makes: buffers."""


def written(folder: Path, platform: str, recipe: Recipe | None = None) -> Path:
    """The platform's files, for the zoo's TLSF at the alignment that the platform needs."""
    heap = recipe or hw.zoo("tlsf").at_alignment(hw.platforms(platform).align)
    hw.generate(heap, folder, platform=platform)
    return folder


def built(folder: Path, platform: str, more: str = "") -> None:
    """The test, as the page says."""
    (command,) = page_commands(folder, "cc ", f"app_{platform}_test")
    done = subprocess.run(f"{command} {more}", shell=True, cwd=folder, capture_output=True, text=True, timeout=120)
    if "No such file" in done.stderr or "cannot find -l" in done.stderr:
        missing(f"{platform}: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, "")


def second_calls(folder: Path, platform: str) -> tuple[str, int]:
    """What the test prints, and how often it calls the C library's malloc."""
    built(folder, platform, f"-Wall -Wextra {COUNTER}")
    done = subprocess.run([f"./app_{platform}_test"], cwd=folder, capture_output=True, text=True, timeout=120)
    return done.stdout, int(done.stderr)


@pytest.mark.parametrize("heap", ["tlsf", "victim-bins"])
@pytest.mark.parametrize("platform", ["sqlite", "lua"])
def test_a_library_allocates_from_the_heap_alone(platform: str, heap: str, tmp_path: Path) -> None:
    written(tmp_path, platform, hw.zoo(heap).at_alignment(8))
    said, calls = second_calls(tmp_path, platform)
    assert said == f"app_{platform}: ok\n"
    assert calls <= STDIO


@pytest.mark.parametrize("threads", ["lock", "cached"])
@pytest.mark.parametrize("platform", ["sqlite", "lua"])
def test_a_recipe_may_have_a_lock_or_caches(platform: str, threads: str, tmp_path: Path) -> None:
    written(tmp_path, platform, hw.zoo("tlsf").at_alignment(8).model_copy(update={"threads": threads}))
    built(tmp_path, platform, "-pthread -DAPP_TEST_CACHED" if threads == "cached" else "-pthread")
    assert run([f"./app_{platform}_test"], tmp_path) == f"app_{platform}: ok\n"


@pytest.mark.parametrize(
    ("platform", "glue", "right", "wrong"),
    [
        ("sqlite", "app_sqlite.c", "return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);", "return SQLITE_OK;"),
        ("sqlite", "app_sqlite.c", "(int)app_usable_size(heap, pointer)", "64"),
        ("lua", "app_lua.c", "app_free(heap, pointer);", ""),
        ("lua", "app_lua.c", "app_realloc(heap, pointer, size)", "app_malloc(heap, size)"),
    ],
)
def test_the_test_notices_wrong_glue(platform: str, glue: str, right: str, wrong: str, tmp_path: Path) -> None:
    file = written(tmp_path, platform) / glue
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong))
    (command,) = page_commands(tmp_path, "cc ", f"app_{platform}_test")
    subprocess.run(f"{command} -w", shell=True, cwd=tmp_path, check=True, timeout=120)
    done = subprocess.run([f"./app_{platform}_test"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0


def test_calls_of_the_c_librarys_malloc_are_counted(tmp_path: Path) -> None:
    glue = written(tmp_path, "lua") / "app_lua.c"
    text = glue.read_text().replace("app_realloc(heap, pointer, size)", "(heap ? realloc(pointer, size) : NULL)")
    glue.write_text("#include <stdlib.h>\n" + text.replace("app_free(heap, pointer)", "free(pointer)"))
    said, calls = second_calls(tmp_path, "lua")
    assert "FAILED" in said
    assert calls >= LEAST_CALLS

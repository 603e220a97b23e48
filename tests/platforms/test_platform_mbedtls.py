"""The platform `mbedtls`: handshakes of a client and a server with the library itself, from Debian's sources."""

from __future__ import annotations

import subprocess
from pathlib import Path

import originals
import pytest
from c_programs import kept_once
from object_cache import built_line
from platform_builds import BOARDS, fetched, page_commands, run

import heapwright as hw

CONFIGURATION = """
#define MBEDTLS_PLATFORM_MEMORY
#ifdef MACROS
#include "app_mbedtls.h"
#define MBEDTLS_PLATFORM_CALLOC_MACRO app_mbedtls_calloc
#define MBEDTLS_PLATFORM_FREE_MACRO app_mbedtls_free
#endif
"""
LIBRARY = 9
"""Calls of its own malloc that the C library makes for itself: buffers of stdio, of which the entropy has one."""


@pytest.fixture(scope="module")
def sources() -> Path:
    """The library's folder."""
    return fetched(originals.mbedtls)


@pytest.fixture(scope="module")
def library(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its objects, made once in a run."""
    command = f"cc -O0 -w {flags(sources)} -c {sources}/library/*.c"
    with kept_once(tmp_path_factory.getbasetemp() / "mbedtls", command) as kept:
        if not kept.exists():
            begun = kept.with_suffix(".begun")
            begun.mkdir(exist_ok=True)
            (begun / "user.h").write_text(CONFIGURATION)
            run(["sh", "-c", command], begun, 600)
            begun.rename(kept)
        return f"{kept}/*.o"


def flags(sources: Path) -> str:
    """What the page calls $FLAGS."""
    return f"-I{sources}/include -I{sources}/library -I. '-DMBEDTLS_USER_CONFIG_FILE=<user.h>'"


def written(folder: Path, heap: str = "tlsf", threads: str = "none") -> Path:
    """The platform's files, and a configuration."""
    hw.generate(hw.zoo(heap).at_alignment(16).model_copy(update={"threads": threads}), folder, platform="mbedtls")
    (folder / "user.h").write_text(CONFIGURATION)
    return folder


def say(folder: Path, sources: Path, library: str, more: str = "") -> str:
    """What the test prints, built as the page says; after it, how often the C library's malloc was called."""
    (command,) = page_commands(folder, "cc ", "app_mbedtls_test")
    command = command.replace("$FLAGS", flags(sources)).replace("$LIBRARY", library)
    command += f" -Wall -Wextra {BOARDS.parent / 'second_allocator.c'} {more}"
    built_line(command, folder)
    done = subprocess.run(["./app_mbedtls_test"], cwd=folder, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


@pytest.mark.parametrize("heap", ["tlsf", "victim-bins"])
def test_a_handshake_allocates_from_the_heap_alone(heap: str, sources: Path, library: str, tmp_path: Path) -> None:
    said, calls = say(written(tmp_path, heap), sources, library).splitlines()
    assert said == "app_mbedtls: ok"
    assert int(calls) <= LIBRARY


@pytest.mark.parametrize("threads", ["lock", "cached"])
def test_a_recipe_may_have_a_lock_or_caches(threads: str, sources: Path, library: str, tmp_path: Path) -> None:
    cached = "-DAPP_TEST_CACHED" if threads == "cached" else ""
    assert "app_mbedtls: ok\n" in say(written(tmp_path, threads=threads), sources, library, f"-pthread {cached}")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("mbedtls_platform_set_calloc_free(app_mbedtls_calloc, app_mbedtls_free);", ""),
        ("app_free(heap, pointer);", ""),
    ],
)
def test_the_test_notices_wrong_glue(right: str, wrong: str, sources: Path, library: str, tmp_path: Path) -> None:
    glue = written(tmp_path) / "app_mbedtls.c"
    text = glue.read_text()
    assert right in text
    glue.write_text(text.replace(right, wrong))
    assert "FAILED" in say(tmp_path, sources, library)


def test_a_library_that_is_not_told_calls_the_c_librarys_malloc(sources: Path, library: str, tmp_path: Path) -> None:
    glue = written(tmp_path) / "app_mbedtls.c"
    glue.write_text(glue.read_text().replace("mbedtls_platform_set_calloc_free(", "(void)sizeof("))
    assert int(say(tmp_path, sources, library).splitlines()[-1]) > 10 * LIBRARY


def test_the_macros_bind_without_a_pointer(sources: Path, tmp_path: Path) -> None:
    written(tmp_path)
    files = f"app_mbedtls.c {sources}/library/asn1parse.c {sources}/library/platform.c"
    run(["sh", "-c", f"cc -O0 -Wall -Wextra -DMACROS {flags(sources)} -c {files}"], tmp_path)
    wanted = run(["nm", "-u", "asn1parse.o"], tmp_path)
    assert "app_mbedtls_calloc" in wanted
    assert "app_mbedtls_free" in wanted
    assert "set_calloc_free" not in run(["nm", "app_mbedtls.o", "platform.o"], tmp_path)

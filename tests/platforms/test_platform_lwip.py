"""The platform `lwip`: 10 MB by TCP between two interfaces of lwIP itself, from Debian's sources."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import originals
import pytest
from object_cache import built_line
from platform_builds import BOARDS, fetched, page_commands, run
from run_length import by_turns

import heapwright as hw

PORT = BOARDS / "lwip"
COUNTER = BOARDS.parent / "second_allocator.c"
BEFORE = {"trixie": "", "bookworm": "-DAPP_LWIP_BEFORE_2_2_1"}
STDIO = 4
"""Calls of the C library's malloc that stdio makes: buffers."""
LEAST_CALLS = 20_000


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """Makes lwIP's objects for a version and options: how they are named to the linker."""

    @cache
    def compiled(suite: str, options: str) -> str:
        folder = tmp_path_factory.mktemp("lwip")
        written(folder)
        for part in ("core", "core/ipv4"):
            built_line(f"cc -O0 -w {flags(suite)} {options} -I. -c {sources(suite)}/{part}/*.c", folder)
        return f"{folder}/*.o"

    return compiled


def sources(suite: str) -> Path:
    """The folder of lwIP's sources: 2.2.1, or 2.1.3."""
    return fetched(lambda: originals.lwip(suite))


def flags(suite: str) -> str:
    """What the page calls $FLAGS."""
    return f"-isystem {sources(suite)}/include -I{PORT} {BEFORE[suite]}"


def written(folder: Path, heap: str = "tlsf", align: int = 16) -> Path:
    """The platform's files."""
    hw.generate(hw.zoo(heap).at_alignment(align), folder, platform="lwip")
    return folder


def built(folder: Path, objects: Callable[[str, str], str], suite: str = "trixie", options: str = "") -> Path:
    """The test, as the page says."""
    (command,) = page_commands(folder, "cc ", "app_lwip_test")
    command = command.replace("$FLAGS", f"{flags(suite)} {options}")
    command = command.replace("$LWIP", f"{objects(suite, options)} {PORT}/system.c")
    built_line(f"{command} -Wall -Wextra {COUNTER}", folder)
    return folder / "app_lwip_test"


HEAPS = ("tlsf", "victim-bins")
"""Each with one version of lwIP, in long runs with both."""


@pytest.mark.parametrize(
    ("heap", "suite"), [(item, it) for turn, item in enumerate(HEAPS) for it in by_turns([*BEFORE], turn)]
)
def test_two_interfaces_move_ten_megabytes(
    heap: str, suite: str, objects: Callable[[str, str], str], tmp_path: Path
) -> None:
    test = built(written(tmp_path, heap), objects, suite)
    done = subprocess.run([test], capture_output=True, text=True, timeout=120)
    assert done.stdout == "app_lwip: ok\n"
    counted = re.fullmatch(r"(?:(\d+)\n)?(\d+) locks\n(?:(\d+)\n)?", done.stderr)
    assert counted
    assert int(counted[2]) >= LEAST_CALLS
    assert int(counted[1] or counted[3]) <= STDIO


def test_pools_may_be_left_to_lwip(objects: Callable[[str, str], str], tmp_path: Path) -> None:
    pools = "-DMEMP_MEM_MALLOC=0 -DPBUF_POOL_SIZE=64 -DMEMP_NUM_TCP_SEG=64"
    assert run([built(written(tmp_path), objects, options=pools)], tmp_path) == "app_lwip: ok\n"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("app_free(heap, pointer);", "(void)pointer;"),
        ("memory ? memset(memory, 0, count * size) : NULL", "memory"),
        ("app_malloc(heap, size)", "app_malloc(heap, size / 2)"),
    ],
)
def test_the_test_notices_wrong_glue(
    right: str, wrong: str, objects: Callable[[str, str], str], tmp_path: Path
) -> None:
    glue = written(tmp_path) / "app_lwip.c"
    text = glue.read_text()
    assert right in text
    glue.write_text(text.replace(right, wrong))
    assert subprocess.run([built(tmp_path, objects)], capture_output=True, timeout=120).returncode != 0


def test_a_port_that_aligns_to_more_does_not_compile(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="MEM_ALIGNMENT is more than the heap"):
        run(["sh", "-c", f"cc {flags('trixie')} -I. -c app_lwip.c"], written(tmp_path, align=4))

"""A heap that knows who holds how many bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from object_cache import built_line
from platform_builds import CORTEX_M3, page_commands, run
from tool_requirements import tool

import heapwright as hw

STRICT = "-Wall -Wextra -Wconversion -Wpedantic -Werror -fsanitize=address,undefined -pthread"
MUTANTS = [
    ("*tag_of(owners, pointer) = (unsigned char)owner;", ""),
    ("take(owners, owner, had);", "(void)had;"),
    ("app_malloc(owners->heap, size + 1u)", "app_malloc(owners->heap, size)"),
]


def built(folder: Path) -> str:
    """What the test prints, built as the page says, and with sanitizers."""
    (command,) = page_commands(folder, "cc ", "app_owners_test")
    built_line(f"{command} {STRICT}", folder)
    return run(["./app_owners_test"], folder)


@pytest.mark.parametrize("heap", ["tlsf", "drr-proposed", "kingsley", "binary-buddy"])
def test_what_is_counted_is_what_owners_hold(heap: str, tmp_path: Path) -> None:
    hw.generate(hw.zoo(heap).at_alignment(8), tmp_path, platform="owners")
    assert built(tmp_path) == "app_owners: ok\n"


@pytest.mark.parametrize(("right", "wrong"), MUTANTS)
def test_the_test_notices_wrong_glue(right: str, wrong: str, tmp_path: Path) -> None:
    hw.generate(hw.zoo("tlsf").at_alignment(8), tmp_path, platform="owners")
    glue = tmp_path / "app_owners.c"
    text = glue.read_text()
    assert right in text
    glue.write_text(text.replace(right, wrong))
    with pytest.raises(AssertionError):
        built(tmp_path)


def test_the_glue_compiles_for_a_cortex_m3(tmp_path: Path) -> None:
    hw.generate(hw.zoo("tlsf").at_alignment(8), tmp_path, platform="owners")
    flags = ["-std=c11", "-Os", "-ffreestanding", "-Wall", "-Wextra", "-Werror", "-c"]
    run([tool("arm-none-eabi-gcc"), *CORTEX_M3, *flags, "app_heap.c", "app_owners.c"], tmp_path)

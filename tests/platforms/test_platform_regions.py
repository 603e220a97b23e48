"""Several regions of memory behind one set of calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from object_cache import built_line
from platform_builds import CORTEX_M3, page_commands, run
from tool_requirements import tool

import heapwright as hw

STRICT = "-Wall -Wextra -Wconversion -Wpedantic -Werror -fsanitize=address,undefined -pthread"
MUTANTS = [
    ("(regions->region[i].kinds & kinds) == kinds", "(void)regions, (void)i, (void)kinds, 1"),
    ("!app_owns(regions->region[i].heap, pointer)", "((void)pointer, 0)"),
    ("copy(memory, pointer, had < size ? had : size);", "(void)had, (void)copy;"),
]


def built(folder: Path) -> str:
    """What the test prints, built as the page says, and with sanitizers."""
    (command,) = page_commands(folder, "cc ", "app_regions_test")
    built_line(f"{command} {STRICT}", folder)
    return run(["./app_regions_test"], folder)


@pytest.mark.parametrize("heap", ["tlsf", "drr-proposed", "kingsley", "binary-buddy", "sos"])
def test_objects_lie_where_they_were_asked_for(heap: str, tmp_path: Path) -> None:
    hw.generate(hw.zoo(heap).at_alignment(8), tmp_path, platform="regions")
    assert built(tmp_path) == "app_regions: ok\n"


@pytest.mark.parametrize(("right", "wrong"), MUTANTS)
def test_the_test_notices_wrong_glue(right: str, wrong: str, tmp_path: Path) -> None:
    hw.generate(hw.zoo("tlsf").at_alignment(8), tmp_path, platform="regions")
    glue = tmp_path / "app_regions.c"
    text = glue.read_text()
    assert right in text
    glue.write_text(text.replace(right, wrong))
    with pytest.raises(AssertionError):
        built(tmp_path)


def test_the_glue_compiles_for_a_cortex_m3(tmp_path: Path) -> None:
    hw.generate(hw.zoo("tlsf").at_alignment(8), tmp_path, platform="regions")
    flags = ["-std=c11", "-Os", "-ffreestanding", "-Wall", "-Wextra", "-Werror", "-c"]
    run([tool("arm-none-eabi-gcc"), *CORTEX_M3, *flags, "app_heap.c", "app_regions.c"], tmp_path)

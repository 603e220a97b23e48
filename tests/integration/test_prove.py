"""The model checker proves generated heaps, and finds the faults that are put into them."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from c_programs import absent
from click.testing import CliRunner

import heapwright as hw
from heapwright.cli import heapwright
from heapwright.generate.emit import generated_files
from heapwright.prove.prove import check_files, harness_text

FIRST_FIT = "first-fit-fast-free"
ARENA, LARGEST = 80, 24

# What the generated text says, and what a careless hand would have made of it.
FAULTS = {
    "size rounded down": ("APP_OVERHEAD + unit - 1u)", "APP_OVERHEAD)", "calls"),
    "remainder too small": ("if (rest >= APP_SPLIT_LEAST)", "if (rest + 4u >= APP_SPLIT_LEAST)", "calls"),
    "flag of the block before not set": (
        "app_load_word(h, next) | APP_PREV_USED",
        "app_load_word(h, next)",
        "calls",
    ),
    "capacity a word too large": ("return size - APP_OVERHEAD;", "return size;", "calls"),
    "end of memory ignored": ("if (app_load4(h, APP_LIMIT_AT) - top < more)", "if (0)", "calls"),
}


@pytest.fixture(autouse=True)
def cbmc() -> None:
    if shutil.which("cbmc") is None:
        absent("cbmc", ".ci/cbmc installs it")


def test_first_fit_is_proved() -> None:
    bounds = ["--calls", "2", "--arena", "64", "--largest", "12"]
    done = CliRunner().invoke(heapwright, ["prove", FIRST_FIT, *bounds, "--json"])
    (told,) = json.loads(done.stdout)
    assert list(told)[:4] == ["heap", "calls", "arena_bytes", "largest_request_bytes"]
    assert [one["name"] for one in told["harnesses"]] == ["calls", "calloc", "realloc", "aligned_alloc"]
    assert told["failed"] == 0, told
    assert told["properties"] > 100


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_told_as_calls(fault: str, tmp_path: Path) -> None:
    right, wrong, name = FAULTS[fault]
    recipe = hw.zoo(FIRST_FIT)
    files = generated_files(recipe)
    assert right in files["app_heap.c"]
    files["app_heap.c"] = files["app_heap.c"].replace(right, wrong)
    files["harness.c"] = harness_text(recipe, name, 3, ARENA, LARGEST)
    found = check_files(files, tmp_path, name, "", 5, time.monotonic())
    assert found.failures
    assert any("malloc" in call for calls in found.failures.values() for call in calls)

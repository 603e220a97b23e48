"""Importers and the generator, guided by coverage: imported or refused in one line; C that compiles and works.

The core has libFuzzer: test_core_fuzz.py.
"""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from coverage_fuzzer import Draws, Lines, campaign
from recipes_random import random_recipe
from run_length import EFFORT, LONG, brief, tell
from test_importers_fuzz import HANGS_AFTER_SECONDS, LOG_SEEDS, SEEDS, import_or_refuse, mutate, mutate_log, watched
from tool_requirements import tool

from heapwright._generate import generated_files
from heapwright._recipes.recipe import Recipe
from heapwright._support.errors import HeapwrightError
from heapwright._traces.logs import import_log

SECONDS = brief(0.6, 6 * EFFORT)
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-DAPP_HEAP_ALIGN_UNCHECKED")


def seeds_of(kinds: dict[str, list[bytes]]) -> list[bytes]:
    return [seed for seeds in kinds.values() for seed in seeds]


def test_packets(tmp_path: Path) -> None:
    def act(data: bytes) -> None:
        import_or_refuse(tmp_path / "file", data, None)

    lines = Lines("_traffic")
    tried, new = campaign("packets", lines, seeds_of(SEEDS), mutate, act, SECONDS)
    tell("packet files, guided by coverage", tried)
    assert tried > 40 and len(lines.seen) > 300
    assert new or not LONG, "a short run may find nothing new"


def test_logs(tmp_path: Path) -> None:
    def act(data: bytes) -> None:
        (tmp_path / "file").write_bytes(data)
        try:
            with watched(10 * HANGS_AFTER_SECONDS):  # counting lines takes time
                assert len(import_log(tmp_path / "file", None)) > 0
        except HeapwrightError as error:
            assert "\n" not in str(error)
            assert str(error).startswith(str(tmp_path))

    lines = Lines("_traces/logs")
    tried, _ = campaign("logs", lines, seeds_of(LOG_SEEDS), mutate_log, act, SECONDS)
    tell("logs, guided by coverage", tried)
    assert tried > 40 and len(lines.seen) > 600


def recipe_from(data: bytes) -> Recipe:
    return random_recipe(Draws(data))


@pytest.mark.needs("cc")
def test_the_generator(tmp_path: Path) -> None:
    made = 0

    def act(data: bytes) -> None:
        nonlocal made
        files = generated_files(recipe_from(data), "app")
        made += 1
        assert all("hw_" not in text.split("*/", 1)[1] for name, text in files.items() if name.endswith((".c", ".h")))

    draw = random.Random(0)
    lines = Lines("_generate")
    tried, new = campaign("recipes", lines, [draw.randbytes(200) for _ in range(brief(2, 4))], mutate, act, SECONDS)
    tell("recipes, guided by coverage", tried)
    assert made == tried and len(lines.seen) > 1000
    for number, data in enumerate(new[: brief(2, len(new))]):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, text in generated_files(recipe_from(data), "app").items():
            (folder / name).write_text(text)
        words = [tool("cc"), *STRICT, brief("-O0", "-O1"), "app_heap.c", "app_heap_test.c", "-o", "test"]
        for command in (words, ["./test"]):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, (data.hex(), done.stdout, done.stderr)


def test_draws_are_those_of_the_bytes() -> None:
    assert Draws(b"\0\1\2\3\4\5\6\7").getrandbits(16) == 1
    assert [Draws(b"\x80" + bytes(9)).getrandbits(1), Draws(bytes(10)).getrandbits(1)] == [1, 0]
    data = bytes(range(200))
    assert recipe_from(data).hash == recipe_from(data).hash
    assert len({recipe_from(data[:at] + b"\xff" + data[at + 1 :]).hash for at in range(0, 40, 4)}) >= 3

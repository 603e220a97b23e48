"""Generated heaps on an AVR, where int and size_t have 16 bits: no warning, and their tests pass in a simulator."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from c_programs import ROOT, STRICT, UNCHECKED
from object_cache import generated
from recipes_random import sample
from run_length import brief, some
from tool_requirements import needs

from heapwright._generate import generate
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo

AVR = ("avr-gcc", "-mmcu=atmega1284p", "-Os")
ARENA_BYTES = 9000
"""Of the 16 KiB that this AVR has; the rest is for the test's objects and the stack."""
ROUNDS = brief(600, 1500)

EVERY_KIND = [
    "binary-buddy",
    "contiki-mmem",
    "drr-proposed",
    "exact-bins",
    "half-fit",
    "kingsley",
    "sos-kernel",
    "st-compact-memmgr",
    "symbian-rheap",
    "victim-bins",
]


def compile_for_avr(*words: str | Path) -> None:
    needs("avr-gcc")
    done = subprocess.run([*AVR, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("recipe", some(sample(zoo.recipes(), 2), 2), ids=lambda recipe: recipe.name)
def test_compiles_without_a_warning(recipe: Recipe, tmp_path: Path) -> None:
    source = generated(recipe, tmp_path) / "app_heap.c"
    compile_for_avr(*STRICT, "-Wshadow", UNCHECKED, "-c", source, "-o", tmp_path / "heap.o")


@pytest.mark.parametrize("checks", ["frees", "full"])
def test_nor_do_checks_bring_one(checks: str, tmp_path: Path) -> None:
    generate(Recipe.from_dict(zoo.load("st-memmgr").to_dict() | {"checks": checks, "counters": True}), tmp_path)
    secret = "-DAPP_SECRET_OF_ADDRESS"
    compile_for_avr(*STRICT, "-Wshadow", UNCHECKED, secret, "-c", tmp_path / "app_heap.c", "-o", tmp_path / "heap.o")


@pytest.mark.parametrize("name", EVERY_KIND)
def test_the_generated_test_passes(name: str, tmp_path: Path) -> None:
    generate(zoo.load(name), tmp_path)
    test = tmp_path / "app_heap_test.c"
    text, changed = re.subn(r"ROUNDS = \d+", f"ROUNDS = {ROUNDS}", test.read_text())
    assert changed == 1
    test.write_text(text)
    compile_for_avr(
        "-std=c11", "-Dmain=test_main", f"-DARENA_BYTES={ARENA_BYTES}u", "-c", test, "-o", tmp_path / "test.o"
    )
    sources = [tmp_path / "app_heap.c", ROOT / "tests" / "c" / "avr_main.c", tmp_path / "test.o"]
    compile_for_avr("-std=c11", UNCHECKED, *sources, "-o", tmp_path / "test.elf")
    needs("simavr")
    command = ["simavr", "-m", "atmega1284p", "-f", "16000000", str(tmp_path / "test.elf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "app_heap: ok" in done.stdout + done.stderr, done.stdout + done.stderr

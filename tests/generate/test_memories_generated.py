"""Recipes in several memories: generated code and replay put each object into the same memory, at the same address."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import ROOT, SANITIZED, STRICT
from command_runner import run_here
from numpy.typing import NDArray
from run_length import by_turns
from traces_random import random_trace

import heapwright as hw
from heapwright._generate import generate
from heapwright._generate.emit import replayed_secret
from heapwright._recipes.recipe import Recipe
from heapwright._replay.memories import replay_memories, route
from heapwright._replay.pictures import metadata
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

BROKER = ROOT / "examples" / "mosquitto_broker.parquet"
UNCHECKED = ["-DAPP_FAST_HEAP_ALIGN_UNCHECKED", "-DAPP_EXTERNAL_HEAP_ALIGN_UNCHECKED"]
FIXED = {"kind": "fixed", "memory": "fast", "sizes": [64, 256], "counts": [100, 20]}
SMALL = {"kind": "general", "memory": "fast", "max_size": 128}
LARGE = {"kind": "general", "memory": "external", "bins": "two-level"}
DESIGNS: dict[str, dict[str, Any]] = {
    "pools": {"memory": {"fast": 16384, "external": 400_000}, "pool": [FIXED, SMALL, LARGE]},
    "full": {"memory": {"fast": 30_000, "external": 90_000}, "pool": [{**SMALL, "max_size": None}, LARGE]},
    "sizes": {
        "memory": {"fast": 40_000, "external": 300_000},
        "pool": [
            {"kind": "quick", "memory": "fast", "sizes": [100]},
            {"kind": "general", "memory": "fast", "min_size": 40, "max_size": 600, "fit": "best"},
            {"kind": "buddy", "memory": "external"},
        ],
    },
}


LEVELS = ("neighbours", "none", "full")
"""In the usual run each design has one of them."""
CHECKED = [(design, checks) for turn, design in enumerate(DESIGNS) for checks in by_turns(LEVELS, turn)]

Placed = Callable[[Recipe, Trace], NDArray[np.uint32]]


def recipe_of(design: str, checks: str = "none") -> Recipe:
    return Recipe.from_dict({"name": design, "checks": checks, **DESIGNS[design]})


def compiled(recipe: Recipe, folder: Path, test: Path, *flags: str) -> Path:
    generate(recipe, folder)
    sources = [folder / f"app{part}_heap.c" for part in ("", "_fast", "_external")]
    command = ["cc", *STRICT, "-Wshadow", *UNCHECKED, *flags, f"-I{folder}", *sources, test, "-o", folder / "program"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "program"


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Placed:
    """Where generated code puts the object of each call: uint32[calls, 2], the memory and the address there."""
    driver = ROOT / "tests" / "c" / "memories_driver.c"
    secret = [f"-D{replayed_secret(prefix)}" for prefix in ("app_fast", "app_external")]

    @cache
    def program(recipe: Recipe) -> Path:
        return compiled(recipe, tmp_path_factory.mktemp("driver"), driver, "-O0", *secret)

    def run(recipe: Recipe, trace: Trace) -> NDArray[np.uint32]:
        calls = tmp_path_factory.mktemp("calls") / "calls"
        numbers = np.array([len(trace), trace.calls.slots], np.uint32)
        calls.write_bytes(numbers.tobytes() + trace.calls.records().tobytes())
        sizes = [str(size) for _, size in recipe.memory]
        done = subprocess.run([program(recipe), calls, *sizes], capture_output=True, check=True)
        assert done.stderr == b"0 0\n"
        return np.frombuffer(done.stdout, np.uint32).reshape(-1, 2)

    return run


@pytest.mark.parametrize(("design", "checks"), CHECKED)
def test_each_object_of_a_real_trace_lies_where_the_replay_says(design: str, checks: str, placed: Placed) -> None:
    recipe, trace = recipe_of(design, checks), Trace.read(BROKER)
    where, at = placed(recipe, trace).T
    routed = route(trace, recipe)
    np.testing.assert_array_equal(routed.where, where)
    np.testing.assert_array_equal(routed.at, at)
    assert (np.bincount(where, minlength=3) > 100).all()
    assert moves(trace, where) > 3 or design == "sizes"


@pytest.mark.parametrize(("design", "checks"), CHECKED)
def test_so_does_each_of_random_calls_where_memory_runs_out(design: str, checks: str, placed: Placed) -> None:
    rng = random.Random(design)
    tight = {**DESIGNS[design], "memory": {"fast": 14_000, "external": 32_768}, "checks": checks}
    recipe = Recipe.from_dict(tight)
    refused = moved = 0
    for _ in range(4):
        trace = random_trace(rng, 2000)
        where, at = placed(recipe, trace).T
        routed = route(trace, recipe)
        np.testing.assert_array_equal(routed.where, where)
        np.testing.assert_array_equal(routed.at, at)
        refused += routed.found.failed
        moved += moves(trace, where)
    assert refused > 20
    assert moved > 3 or design == "sizes"


def moves(trace: Trace, where: NDArray[np.uint32]) -> int:
    """How many calls took a living object to another memory."""
    slot, last, moved = trace.calls.slot, dict[int, int](), 0
    for item, place in zip(slot.tolist(), where.tolist(), strict=True):
        moved += last.get(item, 0) not in (0, place) and place != 0
        last[item] = place
    return moved


def test_objects_that_grow_move_to_another_memory() -> None:
    """Ten objects of 100 bytes fit into 1,200; one that grows to 400 has to go, and its place serves the next."""
    recipe = Recipe.from_dict(
        {
            "memory": {"fast": 1200, "slow": 4000},
            "pool": [{"kind": "general", "memory": "fast", "max_size": 500}, {"kind": "general", "memory": "slow"}],
        }
    )
    calls = [(0, i, 100) for i in range(10)] + [(2, 0, 400), (0, 10, 100), (2, 0, 3000), (3, 0, 0), (0, 11, 600)]
    op, id, size = zip(*calls, strict=True)
    routed = route(Trace.from_columns(op=op, id=id, size=size), recipe)
    assert routed.where.tolist() == [1] * 10 + [2, 1, 2, 0, 2]
    fast = routed.traces["fast"]
    assert list(zip(fast.op, fast.size, strict=True))[10:] == [(2, 400), (3, 0), (0, 100)]
    whole, memories = replay_memories(Trace.from_columns(op=op, id=id, size=size), recipe)
    assert (whole["failed"], memories["fast"]["failed"], memories["slow"]["failed"]) == (0, 1, 0)
    assert whole["moved_bytes"] == 100 + (memories["slow"]["moved_bytes"] or 0)


def test_what_each_memory_does_adds_up() -> None:
    recipe, trace = recipe_of("pools"), Trace.read(BROKER)
    whole, memories = replay_memories(trace, recipe)
    for key in ("accesses", "reads", "writes", "footprint_bytes", "header_bytes", "energy_nJ"):
        assert whole[key] == pytest.approx(sum(memory[key] or 0 for memory in memories.values())), key
    alone = hw.replay(trace, Recipe.from_dict({"pool": [{"kind": "general"}]})).metrics
    for key in ("requested_peak_bytes", "lower_bound_bytes", "failed", "admitted_fraction"):
        assert whole[key] == alone[key], key
    for (name, size), part in zip(recipe.memory, recipe.parts().values(), strict=True):
        assert 0 < (memories[name]["footprint_bytes"] or 0) <= size
        content, marks = metadata(route(trace, recipe).traces[name], part, size)
        assert marks.any() and len(content) <= size


@pytest.mark.parametrize(("design", "checks"), [("pools", "none"), ("full", "full")])
def test_the_generated_test_passes(design: str, checks: str, tmp_path: Path) -> None:
    program = compiled(recipe_of(design, checks), tmp_path, tmp_path / "app_heap_test.c", *SANITIZED)
    assert subprocess.run([program], capture_output=True, text=True).stdout == "app_heap: ok\n"


def test_each_memory_may_have_a_lock(tmp_path: Path) -> None:
    recipe = Recipe.from_dict({"threads": "lock", **DESIGNS["full"]})
    program = compiled(recipe, tmp_path, tmp_path / "app_heap_test.c", "-O2", "-pthread")
    assert subprocess.run([program], capture_output=True, text=True).stdout == "app_heap: ok\n"


def test_a_wrong_pointer_is_counted_and_not_moved(tmp_path: Path) -> None:
    (tmp_path / "wrong.c").write_text("""
        #include "app_heap.h"
        static _Alignas(16) unsigned char fast[2000], external[4000];
        int main(void)
        {
            struct app_heap heap;
            int elsewhere = 0;
            app_init(&heap, fast, sizeof fast, external, sizeof external);
            void *object = app_malloc(&heap, 100);
            app_free(&heap, object);
            app_free(&heap, &elsewhere);
            return app_misused(&heap) != 1u || app_realloc(&heap, object, 200) != NULL || app_misused(&heap) != 2u;
        }
    """)
    program = compiled(recipe_of("full", "neighbours"), tmp_path, tmp_path / "wrong.c")
    assert subprocess.run([program]).returncode == 0


# ---- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(recipe_of("pools").to_toml())
    return path


def test_the_command_tells_the_metrics_of_each_memory(file: Path) -> None:
    command = ["replay", str(BROKER), "--heap", str(file), "--heap", "tlsf"]
    done = run_here(*command, "--json")
    ours, tlsf = json.loads(done.stdout)
    assert list(ours) == ["trace", "heap", "metrics", "memories"]
    assert list(ours["memories"]) == ["fast", "external"]
    assert ours["memories"]["fast"].keys() == ours["metrics"].keys() == tlsf["metrics"].keys()
    assert "memories" not in tlsf
    shown = run_here(*command).stdout
    assert f"{file}, external" in shown or "two.toml, external" in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["replay", str(BROKER), "--arena", "9000", "--heap"], "its memories have sizes of their own"),
        (["prove"], "lies in several memories (fast, external)"),
        (["measure"], "lies in several memories (fast, external)"),
        (["generate", "--evidence", str(BROKER), "-o", "out"], "lies in several memories (fast, external)"),
        (["attack"], "lies in several memories (fast, external)"),
        (["generate", "--platform", "newlib", "-o", "out"], "lies in several memories, and newlib gives it one"),
    ],
)
def test_what_cannot_be_had_is_told_in_one_line(words: list[str], told: str, file: Path) -> None:
    traces = [str(BROKER)] if words == ["measure"] else []
    done = run_here(*words, file, *traces, folder=file.parent)
    assert done.returncode in (1, 2)
    assert not (file.parent / "out").exists()
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_memory_that_is_too_small_is_named() -> None:
    recipe = Recipe.from_dict({**DESIGNS["pools"], "name": "tight", "memory": {"fast": 1000, "external": 9000}})
    with pytest.raises(HeapwrightError, match="tight, fast: control data and regions need"):
        hw.replay(BROKER, recipe)

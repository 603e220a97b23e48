"""Heaps for several threads: generated code under ThreadSanitizer, forks, ends of threads, and what replays report."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from c_programs import COMPILER, STRICT, UNCHECKED
from metric_values import known
from run_length import brief, by_turns
from tool_requirements import absent

import heapwright as hw
from heapwright._generate import generate
from heapwright._recipes.recipe import Recipe
from heapwright._replay.replay import replay
from heapwright._traces.trace import Trace

RACES = ("-g", "-O1", "-fsanitize=thread")
PLAIN = (brief("-O0", "-O2"),)
SMALL = brief(("-DARENA_BYTES=262144",), ())
"""An arena that is filled and emptied twenty times."""
HEAPS = ("victim-bins", "tlsf", "drr-proposed", "wifi-special-pools", "binary-buddy")


def recipe(name: str, threads: str, **keys: Any) -> Recipe:
    return Recipe.from_dict(hw.zoo(name).to_dict() | {"threads": threads} | keys)


def built(heap: Recipe, folder: Path, *flags: str) -> Path:
    """The stress program around the generated heap."""
    generate(heap, folder)
    cached = [f"-DCACHED={heap.cache_bytes}"] if heap.threads == "cached" else []
    stress = Path(__file__).resolve().parents[1] / "c" / "threads.c"
    command = [COMPILER, "-std=gnu11", "-Wall", "-Wextra", "-Werror", *flags, *cached, UNCHECKED, "-pthread"]
    program = folder / "stress"
    sources = [str(stress), str(folder / "app_heap.c")]
    done = subprocess.run([*command, f"-I{folder}", *sources, "-o", str(program)], capture_output=True, text=True)
    if done.returncode and "tsan" in done.stderr:
        absent("ThreadSanitizer", done.stderr.strip()[:200])
    assert done.returncode == 0, done.stderr
    return program


def run(program: Path, what: str) -> None:
    done = subprocess.run([str(program), what], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("threads", ["lock", "cached"])
@pytest.mark.parametrize("name", ["victim-bins", "drr-proposed"])
def test_threads_make_no_races(name: str, threads: str, tmp_path: Path) -> None:
    run(built(recipe(name, threads), tmp_path, *RACES), "stress")


def test_a_cache_that_is_always_full_makes_no_races(tmp_path: Path) -> None:
    run(built(recipe("victim-bins", "cached", cache_up_to=512, cache_bytes=1100), tmp_path, *RACES), "stress")


@pytest.mark.parametrize("threads", ["lock", "cached"])
def test_a_hundred_forks_under_load_survive(threads: str, tmp_path: Path) -> None:
    run(built(recipe("victim-bins", threads), tmp_path, *PLAIN), "forks")


@pytest.mark.parametrize("name", ["tlsf", "all-round", "binary-buddy"])
def test_caches_do_not_grow_where_objects_are_resized(name: str, tmp_path: Path) -> None:
    run(built(recipe(name, "cached"), tmp_path, *PLAIN), "resizes")


@pytest.mark.parametrize("name", ["tlsf", "all-round", "victim-bins"])
def test_nothing_is_refused_while_caches_and_depot_hold_it(name: str, tmp_path: Path) -> None:
    run(built(recipe(name, "cached"), tmp_path, *PLAIN, *SMALL), "refusals")


@pytest.mark.parametrize(
    ("name", "threads"),
    [(name, item) for turn, name in enumerate(HEAPS) for item in by_turns(("cached", "lock"), turn)],
)
def test_the_generated_test_passes(name: str, threads: str, tmp_path: Path) -> None:
    generate(recipe(name, threads), tmp_path)
    sources = [str(tmp_path / file) for file in ("app_heap.c", "app_heap_test.c")]
    program = tmp_path / "test"
    command = [COMPILER, *STRICT, *PLAIN, "-pthread", UNCHECKED, *sources, "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_hooks_stand_in_for_posix(tmp_path: Path) -> None:
    heap = recipe("victim-bins", "cached")
    generate(heap, tmp_path)
    (tmp_path / "hooks.h").write_text(
        "static unsigned depth;\n"
        "static uintptr_t masked(void) { if (depth++) __builtin_trap(); return 7; }\n"
        "static void restored(uintptr_t key) { if (key != 7 || --depth) __builtin_trap(); }\n"
        "#define APP_LOCK(heap) ((void)(heap), masked())\n"
        "#define APP_UNLOCK(heap, key) ((void)(heap), restored(key))\n"
    )
    sources = [str(tmp_path / file) for file in ("app_heap.c", "app_heap_test.c")]
    program = tmp_path / "test"
    flags = [*STRICT, UNCHECKED, '-DAPP_HOOKS="hooks.h"']
    done = subprocess.run([COMPILER, *flags, *sources, "-o", str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.run(["nm", str(program)], capture_output=True, text=True).stdout.count("pthread") == 0
    assert subprocess.run([str(program)], capture_output=True).returncode == 0


def two_threads(pairs: int) -> Trace:
    """One thread allocates what the other frees."""
    op, id_, tid = [], [], []
    for i in range(pairs):
        op += [0, 3]
        id_ += [i, i]
        tid += [1, 2]
    return Trace.from_columns(op=op, id=id_, tid=tid, size=[40] * len(op))


def test_a_replay_serves_each_thread_from_its_own_cache() -> None:
    heap = recipe("victim-bins", "cached")
    apart, bare = replay(two_threads(1000), heap), replay(two_threads(1000), hw.zoo("victim-bins"))
    alone = replay(Trace.from_columns(op=[0, 3] * 1000, id=[i // 2 for i in range(2000)], size=[40] * 2000), heap)
    # What the second thread frees the first one does not find: the second one's list grows until it gives half back.
    assert known(bare["footprint_bytes"]) < known(alone["footprint_bytes"]) < known(apart["footprint_bytes"])
    assert known(apart["footprint_bytes"]) - known(bare["footprint_bytes"]) <= 2 * (heap.cache_bytes + 8192)
    assert apart["failed"] == alone["failed"] == 0


def test_a_full_heap_takes_back_what_the_cache_of_the_calling_thread_holds() -> None:
    heap = recipe("victim-bins", "cached")
    rounds = [(0, i, 100) for i in range(64)] + [(3, i, 0) for i in range(64)] + [(0, 100, 6000)]
    trace = Trace.from_columns(op=[r[0] for r in rounds], id=[r[1] for r in rounds], size=[r[2] for r in rounds])
    assert replay(trace, heap, arena=12_000)["failed"] == 0

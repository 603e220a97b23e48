"""Pools of call sites: generated code does call by call what the replay did, and macros what the functions do."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import LEVEL, ROOT, SANITIZED, STRICT, UNCHECKED
from numpy.typing import NDArray
from run_length import brief
from traces_random import random_trace

import heapwright as hw
from heapwright._generate.emit import generated_files, replayed_secret
from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe
from heapwright._replay.incremental import running
from heapwright._replay.replay import replay
from heapwright._replay.snapshots import filming
from heapwright._traces.trace import Trace

SITES = ("", "parse (config.c:41)", "parse (config.c:97)", "send+0x1c (net)", "other")
POOLS: list[dict[str, Any]] = [
    {"kind": "fixed", "sites": ["send+*"], "sizes": [24, 64], "counts": [9, 20]},
    {"kind": "general", "sites": ["parse (config.c:*)"], "region": 4000, "bins": "exact", "fit": "best"},
    {"kind": "buddy", "sites": ["send+*"], "region": 2048},
    {"kind": "quick", "up_to": 100},
    {"kind": "general", "bins": "exact", "fit": "best", "victim_up_to": 64},
]
OF_SITES = POOLS[:3]
FAR: dict[str, Any] = {"kind": "general", "place": "ends", "bins": "exact", "fit": "best"}
ENDED: list[dict[str, Any]] = [
    {"kind": "fixed", "sites": ["send+*"], "sizes": [24, 64], "counts": [9, 20]},
    FAR | {"sites": ["parse (config.c:*)"], "min_size": 40},
    {"kind": "quick", "up_to": 100},
    {"kind": "general", "bins": "exact", "fit": "best"},
]
"""One class has the far end, for what is not small; its pool shares no list with those behind it."""


def recipe_of(pools: list[dict[str, Any]] = POOLS, **keys: Any) -> Recipe:
    return Recipe.from_dict({"name": "sited", "align": 8, **keys, "pool": pools})


def sited_trace(seed: int, calls: int) -> Trace:
    rng = random.Random(seed)
    trace = random_trace(rng, calls, live=120)
    size = np.where(np.array([rng.random() < 0.7 for _ in range(calls)]), trace.size % 90, trace.size)
    site = [rng.randrange(len(SITES)) for _ in range(calls)]
    return Trace.from_columns(op=trace.op, id=trace.id, size=size, align=trace.align, site=site, sites=SITES, name="t")


def addresses(trace: Trace, recipe: Recipe, arena: int) -> NDArray[np.int64]:
    """Where each call's object lies after it in a replay; 0 if it was freed or refused."""
    result = np.zeros(len(trace), np.int64)
    with filming(trace, recipe, arena) as film:
        for call, slot in enumerate(trace.calls.slot):
            film.go_on(call)
            alive = film.alive()
            mine = alive["at"][alive["slot"] == slot]
            result[call] = mine[0] if len(mine) else 0
    return result


def built(folder: Path, recipe: Recipe, *flags: str) -> Path:
    for file, text in generated_files(recipe).items():
        (folder / file).write_text(text)
    secret = "-D" + replayed_secret("app")
    sources = [str(folder / "app_heap.c"), str(ROOT / "tests" / "c" / "generated_driver.c")]
    words = ["cc", *STRICT, UNCHECKED, secret, LEVEL, "-pthread", *flags, f"-I{folder}", *sources]
    subprocess.run([*words, "-o", str(folder / "driver")], check=True)
    return folder / "driver"


def told_by(driver: Path, trace: Trace, classes: NDArray[np.uint8], arena: int) -> tuple[NDArray[np.int64], list[str]]:
    records = trace.calls.records()
    records[:, 2] |= classes.astype(np.uint32) << np.uint32(24)
    calls = driver.with_name("calls")
    calls.write_bytes(np.array([len(trace), trace.calls.slots], np.uint32).tobytes() + records.tobytes())
    done = subprocess.run([driver, calls, str(arena), "0"], capture_output=True, text=True, check=True)
    return np.array(done.stdout.split(), np.int64), done.stderr.split()


USUAL: list[dict[str, Any]] = [{"counters": True, "threads": "lock"}, {"checks": "full", "link_bytes": 2}]
OTHERS: list[dict[str, Any]] = [
    {},
    {"checks": "frees"},
    {"checks": "neighbours"},
    {"checks": "full", "threads": "lock"},
]


@pytest.mark.parametrize("keys", brief(USUAL, USUAL + OTHERS), ids=str)
@pytest.mark.parametrize("pools", [POOLS, ENDED], ids=["regions", "ends"])
def test_generated_code_does_call_by_call_what_the_replay_did(
    pools: list[dict[str, Any]], keys: dict[str, Any], tmp_path: Path
) -> None:
    recipe = recipe_of(pools, **keys)
    driver = built(tmp_path, recipe, "-DSITES", *(["-DCOUNTERS"] if "counters" in keys else []))
    served: set[int] = set()
    for seed in range(brief(1, 12)):
        trace = sited_trace(seed, 1000)
        needed = replay(trace, recipe, check_invariants=True)["footprint_bytes"]
        assert isinstance(needed, int)
        for arena in (needed + 64, needed * 2 // 3):
            classes = trace.calls_at(recipe.sites).site
            expected = addresses(trace, recipe, arena)
            result, output = told_by(driver, trace, classes, arena)
            np.testing.assert_array_equal(result, expected)
            assert output[3:] == ["0", "0"]
            assert output[1] == str(replay(trace, recipe, arena=arena)["failed"])
            served |= set(classes[(expected > 0) & (expected < policy(recipe)["fixed_end"])].tolist())
    assert served >= {1, 2}


def test_requests_of_no_site_and_of_others_stay_out_of_the_pools_of_sites() -> None:
    recipe = recipe_of()
    trace = sited_trace(3, 1200)
    arena = 1 << 20
    born = (trace.op <= 1) & (addresses(trace, recipe, arena) > 0)
    at, of = addresses(trace, recipe, arena)[born], trace.calls_at(recipe.sites).site[born]
    regions = policy(recipe)["fixed_end"]
    assert (at[of == 0] >= regions).all()
    assert (at[of == 1] < regions).any()
    assert (at[of == 2] < regions).any()
    aligned = trace.align[born] > 8
    assert (at[aligned] >= regions).all()


def test_sites_may_have_the_far_end() -> None:
    recipe, trace, arena = recipe_of(ENDED), sited_trace(5, 1200), 1 << 20
    born = (trace.op <= 1) & (addresses(trace, recipe, arena) > 0)
    far = addresses(trace, recipe, arena)[born] > arena // 2
    theirs = (trace.calls_at(recipe.sites).site == 2) & (trace.size >= 40) & (trace.align == 0)
    assert np.count_nonzero(far) > 50
    np.testing.assert_array_equal(far, theirs[born])


def test_an_object_that_moves_stays_with_its_class() -> None:
    pools: list[dict[str, Any]] = [{"kind": "general", "sites": ["a"], "region": 4096}, {"kind": "general"}]
    trace = Trace.from_columns(
        op=[0, 0, 2, 2, 0, 2], id=[0, 1, 0, 1, 2, 2], size=[40, 40, 400, 2000, 40, 8000], site=[1, 0, 0, 1, 1, 0],
        sites=("", "a"),
    )  # fmt: skip
    at = addresses(trace, recipe_of(pools), 1 << 16)
    regions = policy(recipe_of(pools))["fixed_end"]
    assert (at < regions).tolist() == [True, False, True, False, True, False]  # the last finds no room there


def test_a_trace_without_sites_asks_as_plain_malloc_does() -> None:
    drawn, recipe = random_trace(random.Random(1), 900), recipe_of()
    trace = Trace.from_columns(op=drawn.op, id=drawn.id, size=drawn.size)
    plain = recipe_of([pool for pool in POOLS if "sites" not in pool])
    output, without = replay(trace, recipe), replay(trace, plain)
    more = policy(recipe)["fixed_end"] - policy(plain)["fixed_end"]
    assert isinstance(output["footprint_bytes"], int)
    assert isinstance(without["footprint_bytes"], int)
    assert output["footprint_bytes"] - without["footprint_bytes"] == more
    assert output["failed"] == without["failed"]


def test_a_trace_of_another_program_is_refused_in_one_line() -> None:
    trace = Trace.from_columns(op=[0], id=[0], size=[9], site=[1], sites=("", "main"), name="other")
    with pytest.raises(hw.HeapwrightError, match=r"^other: names none of the call sites .* send\+\*; take one .*$"):
        replay(trace, recipe_of())


@pytest.mark.parametrize(
    ("pools", "keys", "problem"),
    [
        ([POOLS[4], OF_SITES[1]], {}, '"region" in bytes'),
        ([POOLS[3], OF_SITES[1], POOLS[4]], {}, 'a pool with "sites" comes before all pools without; move it up'),
        ([OF_SITES[1]], {}, 'no pool serves requests of other sites; give one below it no "sites"'),
        ([POOLS[3] | {"sites": ["a"]}, POOLS[4]], {}, 'a quick pool cannot serve "sites" alone'),
        ([{"kind": "compact", "sites": ["a"]}], {}, 'a compact pool cannot serve "sites" alone'),
        (POOLS, {"threads": "cached"}, '"threads" "cached" keeps blocks of all sites in one list'),
        ([item | {"memory": "a"} for item in (OF_SITES[0], POOLS[4])], {"memory": {"a": 9999}}, 'without "memory"'),
    ],
    ids=str,
)
def test_what_cannot_be_is_told_in_one_line(pools: list[dict[str, Any]], keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(hw.HeapwrightError) as raised:
        recipe_of(pools, **keys)
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_tells_no_sites_refuses_such_a_heap(tmp_path: Path) -> None:
    with pytest.raises(hw.HeapwrightError, match="has pools for call sites"), running(recipe_of()):
        pass
    with pytest.raises(hw.HeapwrightError, match="its pools for call sites serve calls of their own"):
        hw.generate(recipe_of([*OF_SITES, POOLS[4] | {"region": 4096}]), tmp_path / "out", behind="malloc")


def test_the_header_numbers_each_site_by_its_class() -> None:
    header = generated_files(recipe_of())["app_heap.h"]
    assert "    APP_SITE_SEND = 1, /* send+* */\n    APP_SITE_PARSE_CONFIG_C = 2, /* parse (config.c:*) */\n" in header
    assert "void *app_malloc_at(struct app_heap *heap, uint32_t site, size_t size);" in header
    assert "void *app_calloc_at(struct app_heap *heap, uint32_t site, size_t count, size_t size);" in header
    assert "lloc_at" not in generated_files(recipe_of(POOLS[3:]))["app_heap.h"]


LARGEST = """
#include <stdio.h>
#include "app_heap.h"

_Alignas(64) static unsigned char arena[20000];

int main(void)
{
    struct app_heap *heap = app_init(arena, sizeof arena);
    size_t largest = app_largest_free(heap, UINT32_MAX);
    const int same = largest == app_statistics(heap).largest_free;
    const int more = app_malloc(heap, largest + 1u) != NULL;
    const int served = app_malloc(heap, largest) != NULL;
    largest = app_largest_free(heap, UINT32_MAX);
    const unsigned char *zero = app_calloc_at(heap, APP_SITE_A, 100, 90);
    const int wrapped = app_calloc_at(heap, APP_SITE_A, SIZE_MAX / 2u, 3) != NULL;
    printf("%d %d %d %d %d %d", same, more, served, largest == 0, zero != NULL && zero[8999] == 0, wrapped);
    return 0;
}
"""


@pytest.mark.parametrize("keys", [{}, {"threads": "lock"}], ids=str)
def test_the_largest_free_piece_is_one_that_plain_malloc_can_have(keys: dict[str, Any], tmp_path: Path) -> None:
    """Twelve kilobytes lie in the region of call site a, and about six outside."""
    pools: list[dict[str, Any]] = [{"kind": "general", "sites": ["a"], "region": 12000}, {"kind": "general"}]
    for file, text in generated_files(recipe_of(pools, **keys)).items():
        (tmp_path / file).write_text(text)
    program, sources = tmp_path / "largest", [tmp_path / "largest.c", tmp_path / "app_heap.c"]
    sources[0].write_text(LARGEST)
    subprocess.run(["cc", *STRICT, UNCHECKED, "-pthread", f"-I{tmp_path}", *sources, "-o", program], check=True)
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "1 0 1 1 1 0"


def test_the_generated_test_passes(tmp_path: Path) -> None:
    recipe = recipe_of(threads="lock", counters=True)
    for file, text in generated_files(recipe, watched=True).items():
        (tmp_path / file).write_text(text)
    for source, flags in (("app_heap.c", [LEVEL]), ("app_heap_watched.c", SANITIZED)):
        sources = [str(tmp_path / source), str(tmp_path / "app_heap_test.c")]
        command = ["cc", "-std=c11", "-Wall", "-Wextra", "-pthread", UNCHECKED, *flags, *sources]
        subprocess.run([*command, "-o", str(tmp_path / "test")], check=True)
        subprocess.run([tmp_path / "test"], check=True, stdout=subprocess.DEVNULL)

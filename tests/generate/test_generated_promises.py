"""What the C of every zoo allocator promises, in words and numbers: entry points, bounds, loops, locks and checks."""

from __future__ import annotations

import re

import pytest
from case_tables import each
from generated_functions import Functions, shipped, without_tests, zoo_files
from run_length import brief

from heapwright._recipes.policy import policy
from heapwright._recipes.pools import Quick
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.worst_steps import worst_steps
from heapwright._recipes.zoo import catalogue as zoo

EVERY = {"init", "check", "field", "field_boot", "largest_free", "next_block", "owns", "statistics", "usage"}
ALLOCATING = {"malloc", "calloc", "realloc", "aligned_alloc", "free", "usable_size"}
HANDLES = {"handle_alloc", "handle_free", "handle_pointer", "handle_realloc", "handle_usable_size"}
MOVING = ("contiki-mmem", "st-compact-memmgr")
STATISTICS = ["used", "used_blocks", "unused", "largest_free", "peak", "refused", "misused"]

LOOPS = """
all-round 7 0, best-fit-fast-free 1 0, best-fit-slow-free 1 1, binary-buddy 3 2, contiki-mmem 1 3, contiki-ng-heapmem
2 0, drr-proposed 3 0, easyport-proposed 3 0, enea-ose 1 0, esp8266-umm 1 0, espressif-tlsf 1 0, espressif-tlsf-large
1 0, exact-bins 2 0, fast 7 0, first-fit-fast-free 1 0, first-fit-slow-free 1 1, fixed-pool 0 0, freertos-heap2 2 1,
freertos-heap4 1 1, half-fit 0 0, heaplib 1 1, kingsley 1 0, lea-2.7.2 6 0, lea-2.7.2-128 6 0, linux-pow2-page 2 1,
lvgl-tlsf 1 0, lwip-mem 2 0, lwip-mem-large 2 0, mantisos 1 1, mbedtls-buffer 1 0, memmgr 2 1, nano-qplus 1 1,
newlib-nano 3 1, newlib-nano-2020 1 1, nuttx-mm 3 1, rt-thread-memheap 1 0, rt-thread-small-mem 2 0, small 2 0,
small-lists 4 0, sos 1 1, sos-kernel 2 1, st-compact-memmgr 3 0, st-memmgr 2 0, st-memmgr-1 2 0, st-memmgr-2 2 0,
st-memmgr-8 2 0, symbian-rheap 1 1, threadx-byte-pool 3 0, tlsf 1 0, uclinux 2 1, umm-malloc 1 0, url-proposed 4 1,
variable-pool 1 1, victim-bins 3 0, wifi-special-pools 3 0, windows-ce 2 0, windows-xp 3 1, windows-xp-lookaside 5 1,
zephyr-sys-heap 2 0
"""
"""Functions with a loop that a malloc reaches, and a free: half-fit's has none, tlsf's looks through bitmap words."""

WITHOUT_LOOP = ("bit", "field")
"""Parts of names of functions whose loops have a constant count: bits of a word, bytes of a field."""


def files(name: str) -> dict[str, str]:
    return without_tests(zoo_files(name))


def changed(name: str, **keys: object) -> Recipe:
    return Recipe.from_dict(zoo.load(name).to_dict() | keys)


def entry_points(header: str) -> set[str]:
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    return set(re.findall(r"\bapp_(\w+)\([^)]*\);", code))


def words(header: str) -> str:
    """The opening comment in one line."""
    return re.sub(r"\s+\*?\s*", " ", header.partition("*/")[0])


def loops(files: dict[str, str], entry: str) -> set[str]:
    functions = Functions(files)
    return {name for name in functions.looping(f"app_{entry}") if not any(part in name for part in WITHOUT_LOOP)}


@each("name", zoo.names())
def test_a_header_declares_the_entry_points_of_its_kind_and_no_other(name: str) -> None:
    wanted = HANDLES if name in MOVING else ALLOCATING
    waits = any(isinstance(pool, Quick) for pool in zoo.load(name).pools)
    assert entry_points(files(name)["app_heap.h"]) == EVERY | wanted | ({"flush"} if waits else set())


@each("name", zoo.names())
def test_statistics_have_the_seven_documented_fields(name: str) -> None:
    (body,) = re.findall(r"struct app_statistics \{(.*?)\};", files(name)["app_heap.h"], re.DOTALL)
    assert re.findall(r"^\s+uint32_t (\w+);", body, re.MULTILINE) == STATISTICS


@each("name", zoo.names())
def test_a_header_states_the_alignments_that_the_policy_has(name: str) -> None:
    recipe = zoo.load(name)
    stated = dict(re.findall(r"#define APP_(ARENA_ALIGNMENT|ALIGNMENT) (\d+)u", files(name)["app_heap.h"]))
    assert stated == {"ARENA_ALIGNMENT": str(policy(recipe)["arena_align"]), "ALIGNMENT": str(recipe.align)}


@each("name", zoo.names())
def test_a_header_states_the_worst_case_accesses_of_a_call_or_why_they_have_no_bound(name: str) -> None:
    steps, text = worst_steps(zoo.load(name)), words(files(name)["app_heap.h"])
    assert steps.sentence() in text
    if steps.malloc is not None and steps.free is not None:
        assert f"{max(steps.malloc, steps.free):,} accesses" in text


@each(("name", "of_malloc", "of_free"), [line.split() for line in LOOPS.replace("\n", " ").split(",")])
def test_malloc_and_free_reach_as_many_loops_as_their_design_needs(name: str, of_malloc: str, of_free: str) -> None:
    entries = ("handle_alloc", "handle_free") if name in MOVING else ("malloc", "free")
    for entry, count in zip(entries, (of_malloc, of_free), strict=True):
        looping = loops(files(name), entry)
        assert len(looping) == int(count), f"{entry} of {name} loops in {sorted(looping)}"


def test_every_zoo_allocator_is_in_the_table_of_loops() -> None:
    assert sorted(line.split()[0] for line in LOOPS.replace("\n", " ").split(",")) == sorted(zoo.names())


@each("name", zoo.names())
def test_a_call_with_a_bound_of_less_than_fifty_accesses_has_at_most_one_loop(name: str) -> None:
    steps = worst_steps(zoo.load(name))
    for entry, bound in (("malloc", steps.malloc), ("free", steps.free)):
        if bound is not None and bound < 50 and name not in MOVING:
            assert len(loops(files(name), entry)) <= 1, entry


@each("name", [name for name in zoo.names() if name not in MOVING])
def test_a_function_calls_nothing_outside_the_heap_but_memory_copies_and_the_programs_macros(name: str) -> None:
    functions = Functions(files(name))
    outside = {call for body in functions.bodies.values() for call in re.findall(r"\b([a-z_]\w*)\(", body)}
    known = {"if", "for", "while", "switch", "return", "sizeof", "defined"} | set(functions.bodies)
    allowed = re.compile(r"__builtin_\w+|_\w+|UINT\d+_C|mem(?:cpy|set|move)")
    assert {call for call in outside - known if not allowed.fullmatch(call)} == set()


@pytest.mark.parametrize("entry", ["malloc", "realloc", "aligned_alloc", "free"])
def test_with_threads_lock_every_call_takes_the_lock_once_and_gives_it_back(entry: str) -> None:
    body = Functions(shipped(changed("victim-bins", threads="lock"))).bodies[f"app_{entry}"]
    assert (body.count("APP_LOCK("), body.count("APP_UNLOCK(")) == (1, 1)
    assert body.index("APP_LOCK(") < body.index("app_unlocked_") < body.index("APP_UNLOCK(")


def test_with_threads_cached_a_malloc_asks_the_threads_cache_before_it_takes_the_lock() -> None:
    written = shipped(changed("victim-bins", threads="cached"))
    functions = Functions(written)
    assert entry_points(written["app_heap.h"]) == EVERY | ALLOCATING | {"after_fork", "cached_bytes", "release_thread"}
    for entry in ("app_malloc", "app_free"):
        assert "APP_LOCK(" not in functions.bodies[entry]
        assert any("APP_LOCK(" in functions.bodies[name] for name in functions.reached(entry))


@each("name", ["tlsf", "freertos-heap4", "drr-proposed", *brief([], ["lea-2.7.2", "victim-bins", "windows-xp"])])
def test_each_level_of_checks_looks_at_more_than_the_one_below(name: str) -> None:
    reports, control = [], []
    for level in ("none", "frees", "neighbours", "full"):
        recipe = changed(name, checks=level)
        written = shipped(recipe)
        assert ("misused" in entry_points(written["app_heap.h"])) == (level != "none")
        functions = Functions(written)
        reports.append(sum(map(len, (functions.bodies[name] for name in functions.reached("app_free")))))
        control.append(policy(recipe)["fixed_end"])
    assert reports == sorted(set(reports)), "the text that a free reaches grows with each level"
    assert control == sorted(control) and control[0] < control[-1]


@each(
    ("name", "control"),
    [
        ("half-fit", 144), ("tlsf", 3188), ("best-fit-fast-free", 16), ("freertos-heap4", 24), ("small", 164),
        ("small-lists", 236), ("fast", 420), ("all-round", 428), ("lea-2.7.2", 844), ("exact-bins", 2456),
        ("victim-bins", 2468), ("binary-buddy", 132), ("kingsley", 128), ("umm-malloc", 28), ("zephyr-sys-heap", 84),
    ],
)  # fmt: skip
def test_control_data_take_as_many_bytes_of_the_arena(name: str, control: int) -> None:
    assert policy(zoo.load(name))["fixed_end"] == control

"""Generated pools in front of malloc: which requests they serve, how objects find back, and what is behind them."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import ROOT, SANITIZED, STRICT, UNCHECKED
from foreign_heaps import BUMP, BUMP_TOML
from forked_commands import HEAPWRIGHT
from numpy.typing import NDArray
from platform_builds import CORTEX_M3, NOSYS, cross_compiler
from tool_requirements import compilers
from traces_random import plain_trace, random_trace

import heapwright as hw
from heapwright._generate import generate
from heapwright._generate.emit import replayed_secret
from heapwright._heaps import heaps
from heapwright._heaps.foreign.heap import ForeignHeap, addresses
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._replay.memories import route
from heapwright._traces.trace import Trace

pytestmark = pytest.mark.usefixtures("forks")

BROKER = ROOT / "examples" / "mosquitto_broker.parquet"
FIXED = {"kind": "fixed", "sizes": [16, 40, 104, 520], "counts": [300, 90, 30, 12]}
DESIGNS: dict[str, list[dict[str, Any]]] = {
    "fixed": [FIXED],
    "first-fit": [{**FIXED, "fall_through": True, "find": "first-fit", "header": 8}],
    "partition": [{"kind": "partition", "size": 64, "count": 200, "max_size": 1000}],
    "regions": [
        {"kind": "quick", "sizes": [24, 100]},
        {"kind": "fixed", "sizes": [24], "counts": [200]},
        {"kind": "general", "region": 8192, "min_size": 30, "max_size": 600},
    ],
}


def recipe_of(design: str, **keys: Any) -> Recipe:
    return Recipe.from_dict({"name": design, **keys, "pool": DESIGNS[design]})


def compiled(folder: Path, test: Path, *flags: str, compiler: str = "cc", heap: str = "app_heap.c") -> Path:
    sources = [folder / heap, folder / "app_behind.c", test]
    command = [compiler, *STRICT, "-Wshadow", UNCHECKED, *flags, f"-I{folder}", *sources, "-o", folder / "program"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "program"


def passes(program: Path) -> None:
    done = subprocess.run([program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "app_heap: ok\n", "")


class Placed:
    """Where generated code put the object of each call, 1 the pools, 2 behind them; and how many it passed on."""

    def __init__(self, program: Path, recipe: Recipe, trace: Trace) -> None:
        numbers = np.array([len(trace), trace.calls.slots], np.uint32)
        calls = program.with_name("calls")
        calls.write_bytes(numbers.tobytes() + trace.calls.records().tobytes())
        arena = str(policy_struct(recipe).fixed_end)
        done = subprocess.run([program, calls, arena, "1"], capture_output=True)
        check, broken, passed = done.stderr.decode().split()
        assert (done.returncode, check, broken) == (0, "0", "0")
        self.passed = int(passed)
        self.where, self.at = np.frombuffer(done.stdout, np.uint32).reshape(-1, 2).T


def driver(recipe: Recipe, folder: Path, *flags: str) -> Path:
    generate(recipe, folder, behind="malloc")
    source = ROOT / "tests" / "c" / "memories_driver.c"
    return compiled(folder, source, "-DBEHIND", f"-D{replayed_secret('app')}", *flags)


def two_memories(recipe: Recipe) -> Recipe:
    """The same pools, and all that they do not serve in a memory that refuses nothing."""
    pools = [{**pool, "memory": "pools"} for pool in recipe.to_dict()["pool"]]
    memory = {"pools": int(policy_struct(recipe).fixed_end), "behind": 1 << 26}
    return Recipe.from_dict(
        {**recipe.to_dict(), "memory": memory, "pool": [*pools, {"kind": "general", "memory": "behind"}]}
    )


def passed_on(trace: Trace, where: NDArray[np.uint32]) -> int:
    """Requests whose objects went behind the pools, those that lay there before not counted."""
    last = dict[int, int]()
    passed = 0
    for op, slot, place in zip(trace.calls.op.tolist(), trace.calls.slot.tolist(), where.tolist(), strict=True):
        passed += place == 2 and (op != 2 or last[slot] == 1)
        last[slot] = place
    return passed


@pytest.mark.parametrize(
    ("design", "keys"),
    [("fixed", {}), ("first-fit", {"checks": "full"}), ("partition", {}), ("regions", {"threads": "lock"})],
)
def test_pools_serve_what_the_replay_says(design: str, keys: dict[str, str], tmp_path: Path) -> None:
    recipe = recipe_of(design, **keys)
    program = driver(recipe, tmp_path, *SANITIZED)
    rng = random.Random(design)
    calls = random_trace(rng, 3000)
    small = Trace.from_columns(
        op=calls.op, id=calls.id, size=np.minimum(calls.size, 9000), align=calls.align, name="small"
    )
    outgrown = 0
    for trace in (Trace.read(BROKER), small):
        placed, routed = Placed(program, recipe, trace), route(trace, two_memories(recipe))
        np.testing.assert_array_equal(placed.where, routed.where)
        np.testing.assert_array_equal(placed.at[placed.where == 1], routed.at[placed.where == 1])
        assert (np.bincount(placed.where, minlength=3)[1:] > 100).all()
        assert placed.passed == passed_on(trace, placed.where)
        last = dict[int, int]()
        for slot, place in zip(trace.calls.slot.tolist(), placed.where.tolist(), strict=True):
            outgrown += last.get(slot, 0) == 1 and place == 2
            last[slot] = place
    assert outgrown > 5


@pytest.mark.parametrize("design", DESIGNS)
def test_what_is_passed_on_is_what_the_replay_of_the_pools_refuses(design: str, tmp_path: Path) -> None:
    recipe, trace = recipe_of(design), plain_trace(3)
    placed = Placed(driver(recipe, tmp_path), recipe, trace)
    alone = hw.replay(trace, recipe, arena=int(policy_struct(recipe).fixed_end)).metrics
    assert placed.passed == alone["failed"]
    assert placed.passed > 100


# ---- the generated test --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize(
    ("design", "keys"),
    [
        ("fixed", {}),
        ("partition", {"checks": "frees"}),
        ("regions", {"checks": "full", "threads": "lock", "align": 16}),
    ],
)
def test_the_generated_test_passes(design: str, keys: dict[str, Any], compiler: str, tmp_path: Path) -> None:
    generate(recipe_of(design, **keys), tmp_path, behind="malloc")
    passes(compiled(tmp_path, tmp_path / "app_heap_test.c", *SANITIZED, "-pthread", compiler=compiler))


def test_it_passes_where_the_pools_are_watched(tmp_path: Path) -> None:
    generate(recipe_of("regions"), tmp_path, watched=True, behind="malloc")
    test = tmp_path / "app_heap_test.c"
    passes(compiled(tmp_path, test, "-O1", "-fsanitize=address", "-Wno-pedantic", heap="app_heap_watched.c"))
    (tmp_path / "late.c").write_text("""
        #include "app_heap.h"
        static _Alignas(16) unsigned char arena[APP_ARENA_BYTES];
        int main(int argc, char **argv)
        {
            (void)argv;
            struct app_heap *heap = app_init(arena, sizeof arena);
            unsigned char *object = app_malloc(heap, argc > 1 ? 100000u : 24u);
            app_free(heap, object);
            object[1] = 1;
            return 0;
        }
    """)
    program = compiled(
        tmp_path, tmp_path / "late.c", "-g", "-fsanitize=address", "-Wno-pedantic", heap="app_heap_watched.c"
    )
    for words, output in (([], "use-after-poison"), (["behind"], "heap-use-after-free")):
        done = subprocess.run([program, *words], capture_output=True, text=True)
        assert done.returncode != 0 and output in done.stderr


# ---- what is behind ------------------------------------------------------------------------------------------------


def test_another_family_is_called_by_its_name(tmp_path: Path) -> None:
    generate(recipe_of("fixed"), tmp_path, behind="my_malloc")
    (tmp_path / "main.c").write_text("""
        #include <stdlib.h>
        #include "app_heap.h"
        void *my_malloc(size_t size);
        void *my_realloc(void *pointer, size_t size);
        void my_free(void *pointer);
        static int mallocs, reallocs, frees;
        void *my_malloc(size_t size) { mallocs++; return malloc(size); }
        void *my_realloc(void *pointer, size_t size) { reallocs++; return realloc(pointer, size); }
        void my_free(void *pointer) { frees += pointer != NULL; free(pointer); }
        static _Alignas(16) unsigned char arena[APP_ARENA_BYTES];
        int main(void)
        {
            struct app_heap *heap = app_init(arena, sizeof arena);
            void *small = app_malloc(heap, 16), *large = app_malloc(heap, 5000);
            large = app_realloc(heap, large, 9000);
            if (mallocs != 1 || reallocs != 1 || app_owns(heap, large) || app_usable_size(heap, large) != 0) return 1;
            if (app_aligned_alloc(heap, 256, 16) != NULL || app_aligned_alloc(heap, 3, 16) != NULL) return 2;
            void *grown = app_realloc(heap, small, 600);
            if (mallocs != 2 || app_owns(heap, grown) || app_statistics(heap).used_blocks != 0) return 3;
            if (app_malloc(heap, SIZE_MAX) || app_realloc(heap, grown, SIZE_MAX) || mallocs + reallocs != 3) return 4;
            app_free(heap, grown);
            app_free(heap, large);
            app_free(heap, NULL);
            return frees == 2 ? 0 : 5;
        }
    """)
    assert subprocess.run([compiled(tmp_path, tmp_path / "main.c", *SANITIZED)]).returncode == 0


def test_what_is_behind_may_be_defined(tmp_path: Path) -> None:
    generate(recipe_of("fixed"), tmp_path, behind="malloc")
    (tmp_path / "rtos.h").write_text("""
        #include <stddef.h>
        void *pvPortMalloc(size_t size);
        void vPortFree(void *pointer);
        #define APP_BEHIND_MALLOC(size) pvPortMalloc(size)
        #define APP_BEHIND_FREE(pointer) vPortFree(pointer)
        #define APP_BEHIND_REALLOC(pointer, size) ((void)(pointer), (void)(size), NULL)
    """)
    (tmp_path / "main.c").write_text("""
        #include "app_heap.h"
        void *pvPortMalloc(size_t size);
        void vPortFree(void *pointer);
        static _Alignas(16) unsigned char arena[APP_ARENA_BYTES], behind[6000];
        static int freed;
        void *pvPortMalloc(size_t size) { return size > sizeof behind ? NULL : behind; }
        void vPortFree(void *pointer) { freed += pointer == behind; }
        int main(void)
        {
            struct app_heap *heap = app_init(arena, sizeof arena);
            void *object = app_malloc(heap, 5000), *small = app_malloc(heap, 20);
            if (object != behind || app_realloc(heap, object, 5500) || app_realloc(heap, small, 7000)) return 1;
            app_free(heap, object);
            app_free(heap, small);
            return freed != 1 || app_statistics(heap).used_blocks != 0;
        }
    """)
    hooks = f'-DAPP_HOOKS="{tmp_path}/rtos.h"'
    assert subprocess.run([compiled(tmp_path, tmp_path / "main.c", *SANITIZED, hooks)]).returncode == 0
    command = ["cc", UNCHECKED, "-DAPP_BEHIND_MALLOC(size)=x(size)", "-c", str(tmp_path / "app_behind.c")]
    done = subprocess.run([*command, "-o", "/dev/null"], capture_output=True, text=True)
    assert "with APP_BEHIND_MALLOC(size) define APP_BEHIND_REALLOC(pointer, size)" in done.stderr


def test_newlib_is_behind_on_a_target(tmp_path: Path) -> None:
    cross_compiler([*CORTEX_M3, NOSYS])
    generate(recipe_of("fixed"), tmp_path, behind="malloc")
    parts = ("heap", "behind", "heap_test")
    sources = [str(tmp_path / f"app_{part}.c") for part in parts]
    command = [
        "arm-none-eabi-gcc",
        "-mcpu=cortex-m3",
        "-mthumb",
        "-Os",
        *STRICT,
        "-DAPP_TEST_QUIET",
        "--specs=nosys.specs",
    ]
    done = subprocess.run([*command, *sources, "-o", str(tmp_path / "test.elf")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    symbols = subprocess.run(["arm-none-eabi-nm", str(tmp_path / "test.elf")], capture_output=True, text=True).stdout
    assert {" T malloc\n", " T realloc\n"} <= {line[8:] + "\n" for line in symbols.splitlines()}
    assert "malloc_usable_size" in symbols


# ---- the command ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["tlsf", "--behind", "malloc"], 1, "tlsf: the recipe has a general pool without bounds, so nothing would"),
        (
            ["pools.toml", "--behind", "pvPortMalloc"],
            2,
            "'pvPortMalloc' does not show what realloc and free are called",
        ),
        (
            ["pools.toml", "--behind", "malloc", "--platform", "newlib"],
            2,
            "pools in front of malloc are generated alone",
        ),
    ],
)
def test_what_cannot_be_had_is_told_in_one_line(words: Sequence[str], code: int, told: str, tmp_path: Path) -> None:
    (tmp_path / "pools.toml").write_text(recipe_of("fixed").to_toml())
    done = subprocess.run([HEAPWRIGHT, "generate", *words, "-o", "out"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == code
    assert told in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


# ---- in front of foreign heaps -------------------------------------------------------------------------------------


def in_front(design: str, behind: str, folder: Path) -> ForeignHeap:
    (folder / "pools.toml").write_text(recipe_of(design).to_toml())
    (folder / "bump.c").write_text(BUMP)
    (folder / "bump.toml").write_text(BUMP_TOML + "word_size = 64\n")
    result = heaps.resolve(f"{folder}/pools.toml+{behind}")
    assert isinstance(result, ForeignHeap)
    return result


def test_an_arena_is_for_the_pools_and_the_heap_behind_them(tmp_path: Path) -> None:
    heap = in_front("fixed", f"{tmp_path}/bump.toml", tmp_path)
    pools = int(policy_struct(recipe_of("fixed")).fixed_end)
    trace = Trace.from_columns(op=[0, 0, 0, 3, 0], id=[0, 1, 2, 1, 3], size=[16, 600, 104, 0, 800], name="five")
    assert heap.front_bytes == pools  # 8 bytes are the unit, too
    metrics = heap.replay(trace, fit=True)
    assert metrics["footprint_bytes"] == metrics["smallest_arena_bytes"] == pools + 600 + 800
    assert heap.replay(trace, arena=pools + 800)["failed"] == 1
    safe = heap.safe_arena(trace)
    assert safe is not None and safe.bytes == heap.enough_arena(trace) == pools + 1400
    at = addresses(trace, heap, pools + 1400)
    assert at.tolist() == [-1, 0, -1, -1, 600]
    with pytest.raises(hw.HeapwrightError, match=f"in front needs {pools:,} bytes of the arena of 900"):
        heap.replay(trace, arena=900)


def test_the_pools_of_a_foreign_front_are_those_of_the_generated_code(tmp_path: Path) -> None:
    heap, trace = in_front("fixed", "malloc", tmp_path), Trace.read(BROKER)
    routed = route(trace, two_memories(recipe_of("fixed")))
    served = addresses(trace, heap)
    alive = routed.where > 0
    np.testing.assert_array_equal(served[alive] == -1, routed.where[alive] == 1)


@pytest.mark.parametrize("behind", ["malloc", "lib:mimalloc"])
def test_what_is_reserved_for_a_heap_on_the_system_is_what_it_took(behind: str, tmp_path: Path) -> None:
    if behind == "lib:mimalloc":
        needs_library(behind)
    heap, trace = in_front("fixed", behind, tmp_path), plain_trace(5)
    took = heap.replay(trace)["footprint_bytes"]
    assert took is not None and took > heap.front_bytes + 40_000
    result = hw.fit(trace, f"{tmp_path}/pools.toml+{behind}", copies=1)
    assert (result.smallest_arena_bytes, result.safe_arena_bytes) == (None, None)
    assert result.reserve_bytes is not None and result.reserve_bytes >= took * 0.9


def needs_library(name: str) -> None:
    """Skip where a library of this system is not installed; fail in CI."""
    from tool_requirements import absent

    try:
        heaps.resolve(name).replay(Trace.from_columns(op=[0], id=[0], size=[8], name="one"))
    except hw.HeapwrightError as error:
        if "is not installed" not in str(error):
            raise
        absent(name, str(error))

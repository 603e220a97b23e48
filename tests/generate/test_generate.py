"""Generated C: compiled alone it behaves, byte for byte of its metadata, as the recipe's replay said it would."""

from __future__ import annotations

import dataclasses
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from c_programs import ROOT, SANITIZED, STRICT, UNCHECKED
from generated_heaps import entries, generated_once
from object_cache import built
from recipes_random import random_recipes, sample
from run_length import brief, by_turns, some
from tool_requirements import compilers, emulator, needs
from traces_random import random_trace

import heapwright as hw
from heapwright._generate import generate
from heapwright._generate.emit import replayed_secret
from heapwright._measure.boards import levels
from heapwright._native import lib
from heapwright._recipes.policy import policy, policy_struct
from heapwright._recipes.pools import Compact
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay import engine
from heapwright._replay.pictures import metadata
from heapwright._replay.replay import refused_low, replay
from heapwright._traces.trace import Trace

DRIVER = ROOT / "tests" / "c" / "generated_driver.c"

LEFT_TO_THE_LINKER = {"memcmp", "memcpy", "memmove", "memset"}
"""What gcc and clang may call from any freestanding C, for any source."""

NAMED = sample(zoo.recipes())
RECIPES = NAMED + random_recipes(brief(5, 25), seed=2006)

every_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name or recipe.hash)


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


def compile_or_fail(*words: str | Path) -> None:
    done = run(*words)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Recipe], Path]:
    return generated_once(tmp_path_factory.getbasetemp())


# ---- the code ------------------------------------------------------------------------------------------------------


def symbols(path: Path) -> Iterator[tuple[str, str]]:
    """Kind (as nm prints it) and name of every symbol of an object file."""
    needs("nm")
    for line in run("nm", path).stdout.splitlines():
        kind, name = line.split()[-2:]
        yield kind, name


FOUND = compilers()
LEVELS = ("-Os", "-O2")


def ways(recipe: Recipe) -> list[tuple[str, str]]:
    """Compilers and levels for a recipe: all in long runs, else by turns where there are two compilers."""
    turn = int(recipe.hash, 16)
    chosen = some(FOUND, 2, turn % max(1, len(FOUND)))
    levels = {which: ("-O2",) if which == "clang" else some(LEVELS, 2, turn // 2 % 2) for which in chosen}
    return [(which, level) for which in chosen for level in levels[which]]


COMPILED = [(one, *way) for one in RECIPES for way in ways(one)]


@pytest.fixture(scope="module")
def compiled(
    generated: Callable[[Recipe], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Recipe, str, str], Path]:
    """The object of a recipe's code as one compiler makes it at one level, without a warning; tests only read it."""
    folder = tmp_path_factory.mktemp("objects")
    flags = [*STRICT, "-Wshadow", UNCHECKED, "-ffreestanding", "-fno-stack-protector", "-fno-pic", "-c"]
    flags += [f"-D{replayed_secret('app')}"]

    @cache
    def made(recipe: Recipe, compiler: str, level: str) -> Path:
        heap = folder / f"{recipe.hash}-{compiler}{level}.o"
        compile_or_fail(compiler, *flags, level, generated(recipe) / "app_heap.c", "-o", heap)
        return heap

    return made


@pytest.mark.parametrize(("recipe", "compiler", "level"), COMPILED, ids=lambda item: getattr(item, "name", item))
def test_compiles_without_a_warning_and_needs_no_library(
    recipe: Recipe, compiler: str, level: str, compiled: Callable[[Recipe, str, str], Path]
) -> None:
    results = list(symbols(compiled(recipe, compiler, level)))
    kinds, names = zip(*results, strict=True)
    assert {name for kind, name in results if kind == "U"} <= LEFT_TO_THE_LINKER
    assert set(kinds) <= {"U", "T", "t", "r"}, "something is neither code nor constant"
    assert {entry.replace("hw_", "app_") for entry in entries(recipe)} <= set(names)
    assert all(name.startswith("app_") for kind, name in results if kind == "T")


@pytest.mark.parametrize("recipe", some(RECIPES, 2), ids=lambda recipe: recipe.name or recipe.hash)
def test_the_generated_test_passes(recipe: Recipe, generated: Callable[[Recipe], Path], tmp_path: Path) -> None:
    """With a heap whose own accesses are looked at; test_watched.py looks at the program's."""
    sources = [generated(recipe) / name for name in ("app_heap.c", "app_heap_test.c")]
    compile_or_fail("cc", *STRICT, UNCHECKED, *SANITIZED, *sources, "-o", tmp_path / "test")
    done = run(tmp_path / "test")
    assert (done.stdout, done.returncode) == ("app_heap: ok\n", 0), done.stderr
    quiet = ["-ffreestanding", "-DAPP_TEST_QUIET", "-fsyntax-only"]
    compile_or_fail("cc", *STRICT, *quiet, sources[1])


@pytest.mark.needs("cppcheck")
@pytest.mark.parametrize(
    "name",
    [
        "all-round",
        "binary-buddy",
        "contiki-mmem",
        "drr-proposed",
        "fixed-pool",
        "half-fit",
        "kingsley",
        "sos-kernel",
        "tlsf",
    ],
)
def test_a_reader_of_c_finds_nothing(name: str, generated: Callable[[Recipe], Path]) -> None:
    """Nothing assigned that is not read, no test that has one outcome, no variable known where it is not used."""
    source = generated(zoo.load(name)) / "app_heap.c"
    done = run("cppcheck", "-q", "--std=c11", "--enable=style", "-UAPP_HOOKS", "--error-exitcode=1", source)
    assert done.returncode == 0, done.stderr


@every_recipe
def test_the_header_may_be_included_from_cpp(
    recipe: Recipe, generated: Callable[[Recipe], Path], tmp_path: Path
) -> None:
    needs("g++")
    (tmp_path / "uses.cpp").write_text('#include "app_heap.h"\nvoid f(app_heap *h) { app_check(h); }\n')
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wold-style-cast", "-Werror", "-fsyntax-only"]
    compile_or_fail("g++", *strict, f"-I{generated(recipe)}", tmp_path / "uses.cpp")


UNLIKE = ["tlsf", "kingsley", "binary-buddy", "variable-pool", "st-compact-memmgr", "contiki-mmem", "lea-2.7.2"]
"""Heaps of every kind of pool; each is put into one unit with another."""


@pytest.mark.parametrize("pair", some(list(zip(UNLIKE, [*UNLIKE[1:], UNLIKE[0]], strict=True)), 2), ids="+".join)
def test_two_heaps_are_compiled_in_one_unit(pair: tuple[str, str], tmp_path: Path) -> None:
    flags = [*STRICT, "-Wshadow", "-DONE_HEAP_ALIGN_UNCHECKED", "-DTWO_HEAP_ALIGN_UNCHECKED", f"-I{tmp_path}"]
    calls = "int one_main(void); int two_main(void);\nint main(void) { return one_main() + two_main(); }\n"
    (tmp_path / "both.c").write_text(f'#include "one_heap.c"\n#include "two_heap.c"\n{calls}')
    tests = []
    for prefix, name in zip(("one", "two"), pair, strict=True):
        generate(zoo.load(name), tmp_path, prefix)
        tests.append(tmp_path / f"{prefix}_test.o")
        test = tmp_path / f"{prefix}_heap_test.c"
        compile_or_fail("cc", *flags, f"-Dmain={prefix}_main", "-c", test, "-o", tests[-1])
    compile_or_fail("cc", *flags, tmp_path / "both.c", *tests, "-o", tmp_path / "both")
    done = run(tmp_path / "both")
    assert (done.stdout, done.returncode) == ("one_heap: ok\ntwo_heap: ok\n", 0)


def test_the_generated_test_finds_a_broken_heap(tmp_path: Path) -> None:
    generate(zoo.load("drr-proposed"), tmp_path)
    source = tmp_path / "app_heap.c"
    text = source.read_text()
    defects = {
        "overlap": ("(n + APP_OVERHEAD + unit - 1u)", "(n + unit - 1u)"),
        "lost bytes": ("*app_word_at(h, to + left) = *app_word_at(h, from + left);", "*app_word_at(h, to + left) = 0;"),
        "stale tag": ("    app_store4(h, b + size - APP_WORD_BYTES, app_size_word(size, 0));\n", ""),
    }
    for right, wrong in defects.values():
        assert text.count(right) == 1
        source.write_text(text.replace(right, wrong))
        compile_or_fail("cc", "-w", "-O1", UNCHECKED, source, tmp_path / "app_heap_test.c", "-o", tmp_path / "test")
        done = run(tmp_path / "test")
        assert done.returncode != 0
        source.write_text(text)


KEYED = ("neighbours", "full")


def at_level(name: str, level: str) -> Recipe:
    return Recipe.from_dict({**zoo.load(name).to_dict(), "checks": level}, name)


@pytest.mark.parametrize("level", KEYED)
def test_a_heap_with_keys_has_random_words_or_does_not_compile(level: str, tmp_path: Path) -> None:
    """On Linux each init() has keys of its own; on a bare target the program says where they come from."""
    generate(at_level("all-round", level), tmp_path)
    source, flags = tmp_path / "app_heap.c", [*STRICT, UNCHECKED, "-fsyntax-only"]
    refused = run("cc", *flags, "-ffreestanding", source)
    assert refused.returncode != 0
    assert "define APP_SECRET(heap) as a call of your random number generator" in refused.stderr
    compile_or_fail("cc", *flags, "-ffreestanding", "-DAPP_SECRET_OF_ADDRESS", source)
    compile_or_fail("cc", *flags, "-ffreestanding", "-DAPP_SECRET(heap)=((void)(heap), 7u)", source)
    program = """#include <string.h>
#include "app_heap.h"
static _Alignas(16) unsigned char arena[16384], first[16384];
int main(void)
{
    app_init(arena, sizeof arena);
    memcpy(first, arena, sizeof arena);
    app_init(arena, sizeof arena);
    return memcmp(first, arena, sizeof arena) == 0;
}
"""
    (tmp_path / "main.c").write_text(program)
    compile_or_fail("cc", *STRICT, UNCHECKED, source, tmp_path / "main.c", "-o", tmp_path / "main")
    assert run(tmp_path / "main").returncode == 0


@pytest.mark.parametrize(("platform", "call"), [("zephyr", "sys_rand32_get()"), ("esp-idf", "esp_random()")])
def test_platforms_with_random_words_are_asked_for_keys(platform: str, call: str, tmp_path: Path) -> None:
    hw.generate(at_level("tlsf", "neighbours"), tmp_path, platform=platform)
    source = (tmp_path / "app_heap.c").read_text()
    assert f"#define APP_SECRET(heap) ((void)(heap), (uint32_t){call})" in source
    assert "getrandom" not in source


@pytest.mark.parametrize("level", brief(KEYED[:1], ["frees", *KEYED]))
def test_the_header_tells_what_checks_cost_this_heap(level: str, tmp_path: Path) -> None:
    emulator()
    hw.generate(at_level("all-round", level), tmp_path)
    header = " ".join((tmp_path / "app_heap.h").read_text().split("*/")[0].replace("\n * ", " ").split())
    output = re.search(rf'checks of "{level}" take ([\d,]+) instructions on a Cortex-M3, ([\d.]+) times', header)
    assert output
    assert "tlsf" not in header
    checked, bare = (_pair(at_level("all-round", item)) for item in (level, "none"))
    assert output[1] == f"{checked:,.0f}", "instructions of a malloc and its free, as `heapwright measure` counts them"
    assert output[2] == f"{checked / bare:.1f}"


def _pair(recipe: Recipe) -> float:
    """Mean instructions of a malloc and its free on the random calls that the header speaks of."""
    calls = hw.measure(recipe, levels._program(), cpu="cortex-m3")["calls"]
    return sum(float(calls[kind]["instructions_mean"]) for kind in ("malloc", "free"))


def test_the_program_in_the_documentation_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "generated-code.md").read_text()
    program = text[text.index('    #include "app_heap.h"') :]
    lines = program[: program.index("\n    }\n") + len("\n    }\n")].splitlines()
    (tmp_path / "main.c").write_text("\n".join(line[4:] for line in lines) + "\n")
    generate(zoo.load("drr-proposed"), tmp_path)
    sources = (tmp_path / "app_heap.c", tmp_path / "main.c")
    compile_or_fail("cc", *STRICT, UNCHECKED, *SANITIZED, *sources, "-o", tmp_path / "main")
    assert run(tmp_path / "main").returncode == 0


def test_without_loop_idioms_nothing_is_called(generated: Callable[[Recipe], Path], tmp_path: Path) -> None:
    """The flags that the documentation names for programs that have no memset and memcpy."""
    idioms = {"gcc": "-fno-tree-loop-distribute-patterns", "clang": "-fno-builtin"}
    heaps = ("drr-proposed", "tlsf", "wifi-special-pools")
    for turn, compiler in enumerate(compilers()):
        flags = [*STRICT, UNCHECKED, "-ffreestanding", "-fno-stack-protector", "-fno-pic", "-O2", "-c"]
        flags += [idioms[compiler]]
        for name in some(heaps, 2, turn):
            compile_or_fail(compiler, *flags, generated(zoo.load(name)) / "app_heap.c", "-o", tmp_path / "heap.o")
            assert [name for kind, name in symbols(tmp_path / "heap.o") if kind == "U"] == []


def test_malloc_and_free_of_the_2006_design_fit_into_750_bytes_of_thumb(tmp_path: Path) -> None:
    needs("arm-none-eabi-gcc")
    generate(zoo.load("drr-proposed"), tmp_path)
    target = ["-mcpu=cortex-m3", "-mthumb", "-Os", "-ffreestanding", "-ffunction-sections", "-fdata-sections"]
    roots = ["-nostdlib", "-Wl,--gc-sections", "-Wl,-e,app_malloc", "-Wl,-u,app_free"]
    elf = tmp_path / "heap.elf"
    compile_or_fail("arm-none-eabi-gcc", *STRICT, UNCHECKED, *target, *roots, tmp_path / "app_heap.c", "-o", elf)
    text = int(run("arm-none-eabi-size", elf).stdout.splitlines()[1].split()[0])
    assert 300 < text <= 750


# ---- alignment ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("align", [4, 8, 16])
def test_a_heap_does_not_compile_where_a_type_needs_more(align: int, tmp_path: Path) -> None:
    """On this host, whose max_align_t has 16 bytes, and on a Cortex-M3, whose has 8."""
    generate(zoo.load("tlsf").at_alignment(align), tmp_path)
    source, check = tmp_path / "app_heap.c", ["-std=c11", "-ffreestanding", "-fsyntax-only"]
    least = {"cc": ([], 16), "arm-none-eabi-gcc": (["-mcpu=cortex-m3", "-mthumb"], 8)}
    for compiler, (flags, needed) in least.items():
        needs(compiler)
        plain = run(compiler, *check, *flags, source)
        assert (plain.returncode == 0) == (align >= needed), plain.stderr
        assert align >= needed or "define APP_HEAP_ALIGN_UNCHECKED where no object needs it" in plain.stderr
        compile_or_fail(compiler, *check, *flags, UNCHECKED, source)


def test_an_arena_that_does_not_suit_its_objects_does_not_compile(tmp_path: Path) -> None:
    generate(zoo.load("tlsf").at_alignment(16), tmp_path)
    header = tmp_path / "app_heap.h"
    header.write_text(header.read_text().replace("ARENA_ALIGNMENT 16u", "ARENA_ALIGNMENT 8u"))
    done = run("cc", "-std=c11", "-fsyntax-only", tmp_path / "app_heap.c")
    assert "the arena is aligned to less than the objects in it" in done.stderr


# ---- the criterion: the same metadata as the replay ----------------------------------------------------------------


@pytest.fixture(scope="module")
def driver(
    generated: Callable[[Recipe], Path],
    compiled: Callable[[Recipe, str, str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Recipe], Path]:
    """The driver around a recipe's generated code, which where it can be is that of the test above."""

    @cache
    def linked(recipe: Recipe) -> Path:
        program = tmp_path_factory.mktemp("driver") / "driver"
        pool = recipe.pools[0]
        words = [f"-DHANDLE_WORDS={pool.reference_words}"] if isinstance(pool, Compact) else []
        words += ["-DCOUNTERS"] * recipe.counts + ["-DRESERVE"] * (recipe.reserve > 0)
        words += [f"-I{generated(recipe)}", "-no-pie"]
        heap = compiled(recipe, *ways(recipe)[0] if recipe in RECIPES else ("cc", "-O0"))
        done = built(["cc", *STRICT, UNCHECKED, "-O1", *words, heap, DRIVER, "-o", program], program.parent)
        assert done.returncode == 0, done.stderr
        return program

    return linked


def write_calls(trace: Trace, path: Path) -> Path:
    slots, records = trace.calls.slots, trace.calls.records()
    records[:, 2] |= trace.low  # alignment 1, as the driver has it: only what asks for none is low in these tests
    path.write_bytes(np.array([len(trace), slots], np.uint32).tobytes() + records.tobytes())
    return path


def arenas(trace: Trace, recipe: Recipe) -> Iterator[int]:
    """One that serves what can be served, with some bytes to spare, and two that must refuse."""
    values = policy(recipe)
    footprint = replay(trace, recipe)["footprint_bytes"]
    assert isinstance(footprint, int)
    needed = max(footprint, values["fixed_end"]) + 64
    yield min(2 * needed + 13, values["reach"])
    for share in (0.7, 0.3):
        yield max(int(share * needed), values["fixed_end"] + 64)


def expect_same_end(trace: Trace, recipe: Recipe, arena: int, driver: Path, calls: Path) -> int:
    """Returns the number of requests refused."""
    content, marks = metadata(trace, recipe, arena)
    expected, _ = engine.run(trace, recipe, policy_struct(recipe), arena, lib.HW_CHECK_PAYLOAD)
    covered = engine.control_bytes(policy_struct(recipe)) + expected.covered
    done = subprocess.run([driver, calls, str(arena), str(len(content))], capture_output=True, check=True)
    peak, refused, _, broken_invariant, broken_payloads = map(int, done.stderr.split())
    assert (peak, refused) == (covered, expected.failed)
    assert (broken_invariant, broken_payloads) == (0, 0)
    assert marks.any()
    result = np.frombuffer(done.stdout, np.uint8)
    differ = np.flatnonzero(marks & (result != content))
    assert differ.size == 0, f"first of {differ.size} different metadata bytes at {differ[0]}"
    return refused


@every_recipe
def test_random_calls_leave_the_metadata_of_the_replay(
    recipe: Recipe, driver: Callable[[Recipe], Path], tmp_path: Path
) -> None:
    rng = random.Random(recipe.hash)
    refused = 0
    for number in range(brief(2, 3)):
        trace = random_trace(rng, 1500)
        calls = write_calls(trace, tmp_path / f"{number}.calls")
        for arena in arenas(trace, recipe):
            refused += expect_same_end(trace, recipe, arena, driver(recipe), calls)
    assert refused > 0


@pytest.mark.parametrize("name", ["exact-bins", "drr-proposed", "tlsf", "sos", "kingsley", "binary-buddy"])
def test_requests_of_low_priority_are_refused_as_in_the_replay(
    name: str, driver: Callable[[Recipe], Path], tmp_path: Path
) -> None:
    """Calls of both priorities and resizes, in arenas that refuse: the same refusals, the same metadata."""
    hardened = {"checks": "frees"} if name == "tlsf" else {}
    rng = random.Random(name)
    plain = random_trace(rng, 1500)
    low = (plain.align == 0) & (plain.op != 3) & np.array([rng.random() < 0.5 for _ in range(len(plain))])
    align = np.minimum(plain.align, 64)
    trace = dataclasses.replace(plain, size=plain.size % 700, align=align, low=low.astype(np.uint8))
    calls = write_calls(trace, tmp_path / "low.calls")
    recipe = Recipe.from_dict({**zoo.load(name).to_dict(), "reserve": trace.peak_live_bytes // 3, **hardened})
    more = 0
    for arena in arenas(trace, recipe):
        result, _ = engine.run(trace, recipe, policy_struct(recipe), arena, lib.HW_CHECK_INVARIANTS)
        assert expect_same_end(trace, recipe, arena, driver(recipe), calls) == result.failed
        assert refused_low(trace, recipe, arena) == result.failed_low
        more += int(result.failed_low) - refused_low(trace, Recipe.from_dict(zoo.load(name).to_dict()), arena)
    assert more > 0


@pytest.fixture(scope="module")
def real_traces(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Trace, Path]]:
    folder = tmp_path_factory.mktemp("calls")
    paths = [ROOT / "examples" / f"{name}.parquet" for name in ("lighttpd_server", "mosquitto_broker")]
    paths += [shared_data / "heap" / f"{name}.parquet" for name in ("wee_find", "rec_lighttpd")]
    paths += [shared_data / "synthetic" / "m3_mixed_100000.parquet"]
    traces = [hw.cut(Trace.read(path), first=brief(4_000, 1 << 30), close=False) for path in paths]
    return [(trace, write_calls(trace, folder / f"{trace.name}.calls")) for trace in traces]


@pytest.mark.parametrize("name", [item.name for item in NAMED])
def test_real_calls_leave_the_metadata_of_the_replay(
    name: str, real_traces: list[tuple[Trace, Path]], driver: Callable[[Recipe], Path]
) -> None:
    recipe = zoo.load(name)
    for trace, calls in some(real_traces, 2, int(recipe.hash, 16) % 2):
        for arena in arenas(trace, recipe):
            expect_same_end(trace, recipe, arena, driver(recipe), calls)


HARDENED = ("tlsf", "lea-2.7.2", "victim-bins", "drr-proposed", "kingsley", "binary-buddy")
LEVELS_OF_CHECKS = ("frees", "neighbours", "full")


@pytest.mark.parametrize(
    ("name", "checks"),
    [(name, item) for turn, name in enumerate(HARDENED) for item in by_turns(LEVELS_OF_CHECKS, turn)],
)
def test_hardened_heaps_leave_the_metadata_of_the_replay_after_real_calls(
    name: str, checks: str, driver: Callable[[Recipe], Path], tmp_path: Path
) -> None:
    """Guards and masked links included, and with requests refused."""
    recipe = Recipe.from_dict({**zoo.load(name).to_dict(), "checks": checks})
    trace = Trace.read(ROOT / "examples" / "mosquitto_broker.parquet")
    calls = write_calls(trace, tmp_path / "calls")
    refused = [expect_same_end(trace, recipe, arena, driver(recipe), calls) for arena in arenas(trace, recipe)]
    assert refused[0] == 0 < refused[-1]

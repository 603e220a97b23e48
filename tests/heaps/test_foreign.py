"""Foreign heaps: small allocators written here, good and bad ones, built as their adapters say and run on traces."""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from foreign_heaps import BROKEN, BUMP, BUMP_TOML, THREE, Make, built_for, maker, replayed, trace
from tool_requirements import absent

from heapwright._generate import generate
from heapwright._heaps import heaps
from heapwright._heaps.foreign import heap as foreign
from heapwright._heaps.foreign.adapter import Adapter, WordSize
from heapwright._heaps.foreign.heap import ForeignHeap
from heapwright._heaps.heaps import fit_each
from heapwright._recipes.recipe import Recipe
from heapwright._replay.arena_sizes import fit
from heapwright._replay.metrics import METRICS
from heapwright._replay.replay import replay
from heapwright._support.errors import ForeignHeapError, HeapwrightError
from heapwright._traces.trace import Trace


@pytest.fixture(params=[32, 64])
def word_size(request: pytest.FixtureRequest, tmp_path: Path) -> WordSize:
    return built_for(request.param)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return maker(tmp_path)


# ---- what is measured ----------------------------------------------------------------------------------------------


def test_a_bump_allocator_measures_as_computed_by_hand(make: Make, word_size: WordSize) -> None:
    heap = make(word_size=word_size)
    metrics = replayed(THREE, heap, fit=True, time=True)
    assert list(metrics) == list(METRICS)
    assert metrics["footprint_bytes"] == 24 + 8 + 32
    assert metrics["smallest_arena_bytes"] == 24 + 8 + 32
    assert metrics["requested_peak_bytes"] == 38
    assert metrics["lower_bound_bytes"] == 8 + 32
    assert (metrics["failed"], metrics["admitted_fraction"]) == (0, 1.0)
    assert metrics["utilisation"] == pytest.approx((20 + 28 + 8 + 38) / 4 / 64)
    assert isinstance(metrics["ns_per_event"], float)
    assert metrics["ns_per_event"] > 0
    known = {key for key, value in metrics.items() if value is not None}
    assert known == {
        "requested_peak_bytes", "footprint_bytes", "failed", "admitted_fraction", "utilisation", "lower_bound_bytes",
        "smallest_arena_bytes", "ns_per_event",
    }  # fmt: skip


def test_addresses_are_offsets_from_the_start_of_the_arena(make: Make, word_size: WordSize) -> None:
    assert foreign.addresses(THREE, make(word_size=word_size), 64).tolist() == [0, 24, -1, 32]
    assert foreign.addresses(THREE, make(word_size=word_size), 56).tolist() == [0, 24, -1, -1]


def test_refused_requests_are_counted_and_their_later_calls_skipped(make: Make) -> None:
    calls = trace((0, 1, 40), (0, 2, 40), (2, 2, 50), (3, 2, 0), (0, 3, 8))
    metrics = replayed(calls, make(), arena=64)
    assert metrics["failed"] == 1
    assert metrics["admitted_fraction"] == pytest.approx(48 / 88)
    assert metrics["utilisation"] == pytest.approx((40 * 4 + 48) / 5 / 64)


@pytest.mark.parametrize(
    "recipe",
    [
        'link_bytes = 2\n[[pool]]\nkind = "general"\nheader = 2\norder = "address"\ncoalesce = "lazy"',
        '[[pool]]\nkind = "quick"\nsizes = [24, 100]\n[[pool]]\nkind = "general"\nbins = "two-level"',
    ],
)
@pytest.mark.parametrize("share", [None, 0.9])
def test_generated_code_as_a_foreign_heap_equals_its_recipe(
    recipe: str, share: float | None, tmp_path: Path, word_size: WordSize
) -> None:
    model = Recipe.parse(f"align = 4\n{recipe}", "test")
    generate(model, tmp_path, "own")
    (tmp_path / "own.toml").write_text(
        'style = "arena"\nsources = ["own_heap.c"]\nalign = 4\ninit = "heap = own_init(memory, bytes)"\n'
        'malloc = "own_malloc(heap, size)"\nfree = "own_free(heap, pointer)"\n'
        'realloc = "own_realloc(heap, pointer, size)"\n'
        'defines = { OWN_HEAP_ALIGN_UNCHECKED = "1" }\n'
        'flags = ["-O0"]\n'
    )
    heap = heaps.resolve(str(tmp_path / "own.toml"), word_size)
    assert isinstance(heap, ForeignHeap)
    broker = Trace.read(Path(__file__).resolve().parents[2] / "examples" / "mosquitto_broker.parquet")
    calls = first_calls(broker, 3000)
    smallest = fit(calls, model)
    assert smallest is not None
    arena = None if share is None else int(smallest * share) // 16 * 16
    theirs, ours = replayed(calls, heap, arena=arena), replay(calls, model, arena=arena)
    compared = ["requested_peak_bytes", "failed", "admitted_fraction", "lower_bound_bytes"]
    assert {key: theirs[key] for key in compared} == {key: ours[key] for key in compared}
    assert (theirs["failed"] == 0) == (share is None)
    if share is None:
        assert heap.fit(calls) == -(-smallest // 4) * 4
        assert theirs["footprint_bytes"] == pytest.approx(ours["footprint_bytes"], abs=16)
    else:
        assert theirs["utilisation"] == pytest.approx(ours["utilisation"])


def first_calls(whole: Trace, count: int) -> Trace:
    columns = {key: getattr(whole, key)[:count] for key in ("op", "id", "size", "ts_us", "align")}
    return Trace.from_columns(**columns, name="start")


def test_what_lies_between_blocks_and_an_end_marker_is_not_footprint(make: Make) -> None:
    source = BUMP.replace("{ next = memory;", "{ next = memory; *(uint64_t *)(next + bytes - 8) = 7;")
    source = source.replace("end = next + bytes", "end = next + bytes - 8")
    metrics = replayed(THREE, make(source), fit=True)
    assert metrics["footprint_bytes"] == 64 + 8
    assert metrics["smallest_arena_bytes"] == 64 + 8


def test_a_heap_that_clears_its_arena_says_so(make: Make) -> None:
    source = "#include <string.h>\n" + BUMP.replace("{ next = memory;", "{ next = memory; memset(memory, 0, bytes);")
    assert replayed(THREE, make(source, BUMP_TOML + "zeroed = true\n"))["footprint_bytes"] == 64
    assert replayed(THREE, make(source))["footprint_bytes"] == foreign.LEAST_AMPLE


SIZED = BUMP.replace(
    "static unsigned char *next, *end;",
    "static unsigned char pool[POOL_BYTES] __attribute__((aligned(8)));\nstatic unsigned char *next, *end;",
).replace("size = (size", "if (!next) next = pool, end = pool + sizeof pool;\n    size = (size")
SIZED_TOML = (
    'style = "arena"\nsources = ["bump.c"]\nalign = 8\narray = "pool"\nmalloc = "bump_malloc"\nfree = "bump_free"\n'
    'defines = { POOL_BYTES = "{bytes}" }\n'
)


def test_a_heap_with_its_own_array_is_compiled_for_each_size(make: Make, word_size: WordSize) -> None:
    heap = make(SIZED, SIZED_TOML, word_size)
    metrics = replayed(THREE, heap, fit=True)
    assert (metrics["footprint_bytes"], metrics["smallest_arena_bytes"]) == (64, 64)
    assert foreign.addresses(THREE, heap, 72).tolist() == [0, 24, -1, 32]


ONCE = SIZED.replace("pool + sizeof pool", "pool + POOL_BYTES")
ONCE_TOML = SIZED_TOML.replace("{bytes}", "{capacity}")


@pytest.fixture
def compilations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often a heap was compiled so far; the driver and queries of the compiler do not count."""
    log, compiler = tmp_path / "compiler.log", tmp_path / "counting-cc"
    log.touch()
    compiler.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec cc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    return lambda: sum("heap.c" in line for line in log.read_text().splitlines())


def test_a_heap_whose_array_has_a_capacity_is_compiled_once(
    make: Make, word_size: WordSize, compilations: Callable[[], int]
) -> None:
    heap = make(ONCE, ONCE_TOML, word_size)
    metrics = replayed(THREE, heap, fit=True, time=True)
    assert (metrics["footprint_bytes"], metrics["smallest_arena_bytes"]) == (64, 64)
    assert foreign.addresses(THREE, heap, 72).tolist() == [0, 24, -1, 32]
    assert compilations() == 1
    assert replayed(THREE, make(SIZED, SIZED_TOML, word_size), fit=True)["smallest_arena_bytes"] == 64
    assert compilations() > 2


def test_what_lies_behind_the_arena_in_a_larger_array_is_watched(make: Make) -> None:
    whole = make(ONCE.replace("pool + POOL_BYTES", "pool + sizeof pool"), ONCE_TOML)
    with pytest.raises(ForeignHeapError, match=r"outside its arena in call 1 \(malloc of 8 bytes\)"):
        replayed(THREE, whole, arena=24)
    source = ONCE.replace("if (!next) next = pool", "if (!next) pool[POOL_BYTES] = 1, next = pool")
    with pytest.raises(ForeignHeapError, match="wrote behind the end of its arena"):
        replayed(THREE, make(source, ONCE_TOML))


def test_a_heap_may_be_compiled_for_small_and_for_large_arenas(make: Make, compilations: Callable[[], int]) -> None:
    """Large arenas have objects with an index in front: 16 bytes instead of 8."""
    source = ONCE.replace(
        "size = (size", "if (!next) next = pool, end = pool + POOL_BYTES;\n    size += 8 * LARGE;\n    size = (size"
    )
    toml = ONCE_TOML.replace("defines = {", 'defines = { LARGE = "{bytes > 72}",')
    heap = make(source, toml)
    assert foreign.addresses(THREE, heap, 72).tolist() == [0, 24, -1, 32]
    assert foreign.addresses(THREE, heap, 80).tolist() == [0, 32, -1, -1]
    assert heap.fit(THREE) == 64
    assert compilations() == 2


def test_heaps_of_one_command_share_the_driver(tmp_path: Path, make: Make, compilations: Callable[[], int]) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.c").write_text(BUMP)
        (tmp_path / f"{name}.toml").write_text(BUMP_TOML.replace("bump.c", f"{name}.c"))
    result = fit_each(THREE, {name: heaps.find(f"{tmp_path}/{name}.c", 64) for name in ("one", "two", "three")})
    assert [arenas.smallest for arenas in result.values()] == [64, 64, 64]
    log = (tmp_path / "compiler.log").read_text()
    assert (log.count("driver.c"), compilations()) == (1, 3)


@pytest.mark.parametrize(("source", "toml"), [(BUMP, BUMP_TOML), (SIZED, SIZED_TOML)], ids=["arena", "array"])
def test_each_timed_pass_starts_afresh(source: str, toml: str, make: Make, word_size: WordSize) -> None:
    """A heap that never takes anything back, and ends the process where it is full, gets through several passes."""
    source = "void abort(void);\n" + source.replace("return 0;", "abort();")
    heap = make(source, toml, word_size)
    metrics = replayed(THREE, heap, arena=64, time=True)
    assert metrics["ns_per_event"] is not None


def test_realloc_is_emulated_where_the_heap_has_none(make: Make) -> None:
    calls = trace((0, 1, 16), (2, 1, 100), (2, 1, 4), (3, 1, 0))
    metrics = replayed(calls, make())
    assert metrics["footprint_bytes"] == 16 + 104 + 8
    assert metrics["failed"] == 0


def test_alignment_is_made_where_the_heap_gives_less(make: Make) -> None:
    calls = trace((0, 1, 20), (0, 2, 20), (2, 2, 90), (3, 2, 0), align=[0, 64, 0, 0])
    assert foreign.addresses(calls, make(), 1024).tolist() == [0, 64, 104, -1]
    source = BUMP + (
        "static void *bump_aligned(size_t align, size_t size)\n"
        "{ while ((uintptr_t)next % align) next++; return bump_malloc(size); }\n"
    )
    heap = make(source, BUMP_TOML + 'aligned_alloc = "bump_aligned"\n')
    assert foreign.addresses(calls, heap, 1024).tolist() == [0, 64, 88, -1]


def test_what_the_heap_calls_usable_is_used(make: Make) -> None:
    toml = BUMP_TOML + 'usable_size = "(void)pointer, 24"\n'
    assert replayed(trace((0, 1, 24), (0, 2, 20)), make(BUMP, toml))["failed"] == 0
    with pytest.raises(ForeignHeapError, match="corrupted an object"):
        replayed(trace((0, 1, 16), (0, 2, 20), (3, 1, 0)), make(BUMP, toml))


def test_calloc_is_only_called_where_the_adapter_names_it(make: Make) -> None:
    toml = BUMP_TOML + 'calloc = "bump_malloc(4 * size)"\n'
    assert replayed(trace((0, 1, 8), (1, 2, 8)), make())["footprint_bytes"] == 16
    assert foreign.addresses(trace((1, 1, 8), (1, 2, 8)), make(BUMP, toml), 1024).tolist() == [0, 32]


# ---- heaps that misbehave ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", BROKEN)
def test_a_heap_that_breaks_says_where(reason: str, make: Make) -> None:
    heap = make(BROKEN[reason], BUMP_TOML + "time_limit = 0.5\n")
    with pytest.raises(ForeignHeapError, match=re.escape(reason)):
        replayed(THREE, heap)


def test_a_realloc_that_loses_the_content_is_found(make: Make) -> None:
    heap = make(BUMP, BUMP_TOML + 'realloc = "bump_malloc(size)"\n')
    with pytest.raises(ForeignHeapError, match=r"corrupted an object \(found in call 1 \(realloc of 100 bytes\)\)"):
        replayed(trace((0, 1, 16), (2, 1, 100)), heap)


def test_what_a_heap_says_last_is_repeated(make: Make) -> None:
    source = "#include <assert.h>\n" + BUMP.replace("size = (size", "assert(size != 8);\n    size = (size")
    with pytest.raises(ForeignHeapError, match=r"SIGABRT.*Assertion `size != 8' failed"):
        replayed(THREE, make(source))


def test_too_small_an_arena_may_crash_without_harm_to_the_search(make: Make) -> None:
    source = "void abort(void);\n" + BUMP.replace("return 0;", "abort();")
    assert make(source).fit(THREE) == 64
    refusing = make(BUMP, BUMP_TOML.replace('"bump_init"', '"bump_init(memory, bytes); if (bytes < 80) heap = NULL"'))
    assert refusing.fit(THREE) == 80
    with pytest.raises(ForeignHeapError, match="refused an arena of 72 bytes"):
        replayed(THREE, refusing, arena=72)


def test_an_arena_in_which_a_heap_hangs_is_too_small(make: Make) -> None:
    """The time limit of a replay is a minute; the search does not wait for it."""
    source = BUMP.replace("return 0;", "for (;;) ;")
    start = time.perf_counter()
    assert make(source, BUMP_TOML + "min_arena = 56\n").fit(THREE) == 64
    assert time.perf_counter() - start < 30


def test_a_heap_that_can_never_serve_has_no_smallest_arena(make: Make) -> None:
    source = BUMP.replace("return 0;", "return 0;\n    if (size == 8) return 0;")
    metrics = replayed(THREE, make(source, BUMP_TOML + "max_arena = 1048576\n"), fit=True)
    assert (metrics["failed"], metrics["smallest_arena_bytes"]) == (1, None)


# ---- shared objects and the system's libraries ---------------------------------------------------------------------

ON_SYSTEM = """
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <stddef.h>
static char *next, *end;
void *PREFIX(malloc)(size_t size)
{
    size = (size + 31u) / 16u * 16u;
    if (!next || size > (size_t)(end - next)) {
        next = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end = next + (1 << 20);
    }
    *(size_t *)next = size - 16u;
    next += size;
    return next - size + 16;
}
void PREFIX(free)(void *pointer) { (void)pointer; }
void *PREFIX(realloc)(void *pointer, size_t size)
{
    void *moved = PREFIX(malloc)(size);
    if (pointer) {
        size_t had = ((size_t *)pointer)[-2];
        memcpy(moved, pointer, had < size ? had : size);
    }
    return moved;
}
"""


def shared_object(tmp_path: Path, prefix: str) -> Path:
    source, library = tmp_path / "system.c", tmp_path / f"lib{prefix or 'plain'}.so.1"
    source.write_text(ON_SYSTEM)
    define = f"-DPREFIX(name)={prefix}##name" if prefix else "-DPREFIX(name)=name"
    command = ["cc", "-shared", "-fPIC", "-O1", "-fno-builtin", define, str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


CHURN = trace(
    *((0, i, 1000) for i in range(200)), *((2, i, 3000) for i in range(100)), *((3, i, 0) for i in range(200))
)


def test_a_shared_object_takes_the_place_of_malloc(tmp_path: Path) -> None:
    heap = heaps.resolve(str(shared_object(tmp_path, "")))
    assert isinstance(heap, ForeignHeap)
    metrics = replayed(CHURN, heap, fit=True, time=True, arena=10)
    written = 200 * 1024 + 100 * 3024
    assert metrics["footprint_bytes"] == pytest.approx(written, abs=3 * 4096)
    assert (metrics["failed"], metrics["smallest_arena_bytes"]) == (0, None)
    assert metrics["ns_per_event"] is not None


def test_a_shared_object_may_name_its_functions_in_an_adapter(tmp_path: Path) -> None:
    library = shared_object(tmp_path, "my_")
    with pytest.raises(HeapwrightError, match=r"missing style|style"):
        write_and_resolve(library, 'malloc = "my_malloc"\n')
    heap = write_and_resolve(
        library, 'style = "libc"\nmalloc = "my_malloc"\nfree = "my_free"\nrealloc = "my_realloc"\n'
    )
    assert replayed(CHURN, heap)["failed"] == 0
    wrong = write_and_resolve(library, 'style = "libc"\nmalloc = "my_malloc"\nfree = "your_free"\n')
    with pytest.raises(HeapwrightError, match=r"cannot be built: .*your_free"):
        replayed(CHURN, wrong)


def write_and_resolve(library: Path, toml: str) -> ForeignHeap:
    library.with_name(library.name.partition(".")[0] + ".toml").write_text(toml)
    heap = heaps.resolve(str(library))
    assert isinstance(heap, ForeignHeap)
    return heap


def test_the_c_library_is_measured() -> None:
    heap = heaps.resolve("lib:glibc")
    assert isinstance(heap, ForeignHeap)
    metrics = replayed(CHURN, heap, time=True)
    assert isinstance(metrics["footprint_bytes"], int)
    assert 400_000 <= metrics["footprint_bytes"] < 2_000_000
    assert (metrics["requested_peak_bytes"], metrics["failed"]) == (400_000, 0)


@pytest.mark.parametrize("name", ["mimalloc", "jemalloc", "tcmalloc"])
def test_debians_allocators_are_measured(name: str) -> None:
    heap = heaps.resolve(f"lib:{name}")
    assert isinstance(heap, ForeignHeap)
    try:
        metrics = replayed(CHURN, heap, time=True)
    except HeapwrightError as error:
        if "is not installed" not in str(error):
            raise
        absent(name, str(error))
    assert metrics["failed"] == 0
    assert isinstance(metrics["footprint_bytes"], int)
    assert metrics["footprint_bytes"] >= 400_000


@pytest.mark.parametrize("length", [0, 3, 10, 63, 64, 200])
def test_a_damaged_shared_object_is_named(length: int, tmp_path: Path) -> None:
    whole = shared_object(tmp_path, "").read_bytes()
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(whole[:length] if length < 64 else whole[:4] + bytes(length))
    with pytest.raises(ForeignHeapError, match=r"damaged.so: not a shared object of this system"):
        heaps.resolve(str(damaged))


def test_a_missing_library_says_what_to_install(tmp_path: Path) -> None:
    adapter = Adapter(style="libc", library="libnosuchheap.so.7", package="libnosuchheap7", word_size=64)
    with pytest.raises(HeapwrightError, match=r"libnosuchheap.so.7 is not installed for 64-bit.*libnosuchheap7"):
        replayed(THREE, ForeignHeap(adapter, tmp_path, "lib:nosuch", (), adapter.library, 64))


# ---- a recipe in front ---------------------------------------------------------------------------------------------

FRONT = '[[pool]]\nkind = "fixed"\nsizes = [64, 1000]\ncounts = [4, 50]\n'


def test_a_recipe_in_front_takes_what_it_can(tmp_path: Path) -> None:
    (tmp_path / "front.toml").write_text(FRONT)
    shared = shared_object(tmp_path, "")
    whole, behind = heaps.resolve(f"{tmp_path}/front.toml+{shared}"), heaps.resolve(str(shared))
    assert isinstance(whole, ForeignHeap)
    assert isinstance(behind, ForeignHeap)
    with_front, without = replayed(CHURN, whole, time=True), replayed(CHURN, behind)
    assert (with_front["failed"], without["failed"]) == (0, 0)
    assert isinstance(with_front["footprint_bytes"], int)
    assert isinstance(without["footprint_bytes"], int)
    saved = without["footprint_bytes"] - with_front["footprint_bytes"]
    # what the shared object spends on a header, less the four blocks of 64 bytes that no one requests
    assert saved == pytest.approx(50 * 24 - 4 * 64, abs=4 * 4096)
    small = trace((0, 1, 60), (0, 2, 50), (2, 1, 64), (3, 1, 0), (3, 2, 0))
    in_front = replayed(small, whole)["footprint_bytes"]
    assert in_front is not None
    assert whole.front_bytes <= in_front <= whole.front_bytes + 4096


def test_a_recipe_in_front_has_bounds(tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match="general pool without bounds"):
        heaps.resolve("tlsf+lib:glibc")
    (tmp_path / "front.toml").write_text(FRONT)
    (tmp_path / "moving.toml").write_text(
        BUMP_TOML + 'handle = "void *"\npointer = "*handle"\nrealloc = "moved(handle, size)"\n'
    )
    (tmp_path / "bump.c").write_text(BUMP)
    with pytest.raises(HeapwrightError, match="objects of the heap behind the recipe move"):
        heaps.resolve(f"{tmp_path}/front.toml+{tmp_path}/moving.toml")

"""Platforms whose sources cannot be had here: compiled against declarations, and run with a stub of the kernel."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from c_programs import LEVEL
from object_cache import built
from platform_builds import BOARDS, CORTEX_M3, NANO, NOSYS, cross_compiler, run

import heapwright as hw


class StandIn(NamedTuple):
    """Flags of a build, and what has to be noticed where it is wrong: file, right text, wrong text."""

    flags: tuple[str, ...]
    mutants: tuple[tuple[str, str, str], ...]


STAND_INS = {
    "esp-idf": StandIn(
        (),
        (
            ("app_multi_heap.c", "app_counters(heap->heap).free : 0", "app_counters(heap->heap).least_free : 0"),
            ("app_multi_heap.c", "app_largest_free(heap->heap, UINT32_MAX)", "0"),
            ("app_multi_heap.c", "alignment == 0 || (alignment & (alignment - 1)) != 0", "0"),
            ("app_multi_heap.c", "heap->lock = lock;", "(void)heap, (void)lock;"),
            ("app_multi_heap.c", "app_aligned_alloc(heap->heap, alignment, size)", "app_malloc(heap->heap, size)"),
            ("app_multi_heap.c", "app_free(heap->heap, origin(p));\n    leave", "app_free(heap->heap, p);\n    leave"),
            ("app_multi_heap.c", "counted < heap->least_free ? counted : heap->least_free", "counted"),
            ("app_multi_heap.c", "offset - block->offset < block->size", "offset == block->offset"),
        ),
    ),
    "nuttx": StandIn(
        (),
        (
            ("app_nuttx.c", "(int)(counters.mallocs - counters.frees)", "(int)counters.mallocs"),
            ("app_nuttx.c", "(int)(heap->bytes - counters.least_free)", "0"),
            ("app_nuttx.c", "memory ? memset(memory, 0, size) : NULL", "memory"),
            ("app_nuttx.c", "app_aligned_alloc(heap->heap, alignment, size)", "app_malloc(heap->heap, size)"),
            ("app_nuttx.c", "procfs_register_meminfo(&heap->meminfo);", ""),
            ("app_nuttx.c", "procfs_unregister_meminfo(&heap->meminfo);", "(void)heap;"),
            ("app_nuttx.c", "initialize(config->heap,", "initialize(NULL,"),
        ),
    ),
    "threadx": StandIn(
        (),
        (
            ("app_threadx.c", "tx_semaphore_put(&pool->freed);", ""),
            ("app_threadx.c", "pool->waiting--;", ""),
            ("app_threadx.c", "app_free(pool->heap, memory);", ""),
            ("app_threadx.c", "size == 0 || size > pool->bytes", "0"),
            ("app_threadx.c", "TX_MUTEX_ERROR ? TX_POOL_ERROR : status", "TX_MUTEX_ERROR ? TX_SUCCESS : status"),
            ("app_threadx.c", "pool != NULL && pool->id == CREATED", "pool != NULL"),
            ("app_tx_byte.c", "first_suspended, suspended_count", "first_suspended ? NULL : NULL, suspended_count"),
            ("app_threadx.c", "*least_available = counters.least_free;", "*least_available = counters.free;"),
            ("app_tx_byte.c", "!app_owns(pool->pool.heap, memory)", "0"),
            ("app_tx_byte.c", "*at = pool->next;", ""),
        ),
    ),
    "zephyr": StandIn(
        (
            "-fno-builtin",
            "-DCONFIG_HEAPWRIGHT_MALLOC=1",
            "-DCONFIG_HEAPWRIGHT_MALLOC_BYTES=131072",
            "-DCONFIG_HEAPWRIGHT_SYS_HEAP=1",
            "-DCONFIG_SYS_HEAP_RUNTIME_STATS=1",
            "-DCONFIG_SYS_HEAP_VALIDATE=1",
            "-DCONFIG_SYS_HEAP_INFO=1",
        ),
        (
            ("app_zephyr.c", "k_sem_give(&pool->freed);", "(void)pool;"),
            ("app_zephyr.c", "pool->waiting--;", ""),
            ("app_zephyr.c", "app_free(pool.heap, memory);", ""),
            ("app_sys_heap.c", "app_free(heap->heap->heap, origin(mem))", "app_free(heap->heap->heap, mem)"),
            ("app_sys_heap.c", "usable < bytes ? usable : bytes", "usable / 64"),
            ("app_sys_heap.c", " && app_largest_free(made, 32) != 0", ""),
            ("app_zephyr.c", "pool->bytes - counters.least_free", "pool->bytes - counters.free"),
            (
                "app_zephyr.c",
                "k_sem_take(&pool->freed, sys_timepoint_timeout(end))",
                "k_sem_take(&pool->freed, ((void)end, K_FOREVER))",
            ),
        ),
    ),
}


def written(folder: Path, platform: str, align: int = 16) -> Path:
    """The platform's files."""
    hw.generate(hw.zoo("tlsf").at_alignment(align), folder, platform=platform)
    return folder


def tried(folder: Path, platform: str, *more: str) -> tuple[int, str]:
    """Exit code and output of the platform's test; a test that hangs has failed."""
    board = BOARDS / platform
    sources = [path.name for path in sorted(folder.glob("*.c")) if path.name != "app_heap_test.c"]
    flags = ["-std=gnu11", LEVEL, "-Wall", "-Wextra", "-Werror", "-pthread", "-I.", f"-I{board}"]
    command: list[str | Path] = ["cc", *flags, *STAND_INS[platform].flags, *more, *sources]
    command += [*board.glob("*.c"), "-o", "test"]
    done = built(command, folder)
    assert done.returncode == 0, done.stderr
    try:
        done = subprocess.run(["./test"], cwd=folder, capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return 1, ""
    return done.returncode, done.stdout


@pytest.mark.parametrize("platform", STAND_INS)
def test_a_platform_works_with_a_stand_in(platform: str, tmp_path: Path) -> None:
    code, said = tried(written(tmp_path, platform), platform)
    assert (code, said.splitlines()[-1]) == (0, f"app_{platform.replace('-', '_')}: ok")


@pytest.mark.parametrize(
    ("platform", "version"), [("nuttx", "-DNUTTX_12_12"), ("zephyr", "-DZEPHYR_3_7")], ids=["nuttx 12", "zephyr 3.7"]
)
def test_the_port_works_with_headers_of_earlier_releases(platform: str, version: str, tmp_path: Path) -> None:
    code, said = tried(written(tmp_path, platform), platform, version)
    assert (code, said.splitlines()[-1]) == (0, f"app_{platform}: ok")


def test_a_sys_heap_that_its_own_data_fill_is_refused_with_the_bytes_that_they_take(tmp_path: Path) -> None:
    folder = written(tmp_path, "zephyr")
    (least,) = (int(n) for n in re.findall(r"APP_LEAST_ARENA (\d+)u", (folder / "app_heap.h").read_text()))
    _, said = tried(folder, "zephyr")
    own = least + 16 + 3 * 8
    refused = f"bytes are too few for a heap: its own data take up to {own}"
    assert said.splitlines()[:2] == [f"app_sys_heap: {bytes_} {refused}" for bytes_ in (8, least + 16)]


@pytest.mark.parametrize("name", ["tlsf", "all-round", "fixed-pool", "freertos-heap4"])
def test_the_least_arena_is_the_smallest_that_init_accepts(name: str, tmp_path: Path) -> None:
    hw.generate(name, tmp_path)
    (tmp_path / "main.c").write_text("""
#include "app_heap.h"
static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[1 << 20];
int main(void) { return app_init(arena, APP_LEAST_ARENA - 1u) || !app_init(arena, APP_LEAST_ARENA); }
""")
    run(["cc", "-std=c11", "-DAPP_HEAP_ALIGN_UNCHECKED", "-I.", "app_heap.c", "main.c", "-o", "least"], tmp_path)
    run(["./least"], tmp_path)


@pytest.mark.parametrize("platform", ["esp-idf", "zephyr"])
def test_a_page_says_that_it_was_not_run(platform: str) -> None:
    assert "**Not run on " in hw.platforms(platform).readme
    assert hw.platforms(platform).run_on.startswith("nothing yet: ")


@pytest.mark.parametrize(
    ("platform", "mutant"),
    [(platform, mutant) for platform, stand_in in STAND_INS.items() for mutant in stand_in.mutants],
)
def test_the_test_notices_wrong_glue(platform: str, mutant: tuple[str, str, str], tmp_path: Path) -> None:
    name, right, wrong = mutant
    file = written(tmp_path, platform) / name
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong))
    assert tried(tmp_path, platform)[0] != 0


@pytest.mark.parametrize("platform", STAND_INS)
def test_the_glue_compiles_for_a_cortex_m3(platform: str, tmp_path: Path) -> None:
    written(tmp_path, platform, 8)
    compiler = cross_compiler([*CORTEX_M3, NANO, NOSYS])
    glue = [path.name for path in tmp_path.glob("*.c") if "_test" not in path.name]
    flags = ["-std=gnu11", "-Os", "-Wall", "-Wextra", "-Werror", "-I.", f"-I{BOARDS / platform}"]
    run([compiler, *CORTEX_M3, *flags, *STAND_INS[platform].flags, "-c", *glue], tmp_path)


def test_zephyrs_listeners_hear_of_each_object(tmp_path: Path) -> None:
    written(tmp_path, "zephyr")
    (tmp_path / "main.c").write_text("""
#include "app_heap.h"
static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[8192];
static size_t bytes, events;
void heap_listener_notify_alloc(uintptr_t heap, void *mem, size_t n) { bytes += n; events += heap && mem; }
void heap_listener_notify_free(uintptr_t heap, void *mem, size_t n) { bytes -= n; events += heap && mem; }
int main(void)
{
    struct app_heap *heap = app_init(arena, sizeof arena);
    void *one = app_malloc(heap, 100), *two = app_calloc(heap, 2, 50);
    const size_t most = bytes;
    app_free(heap, one);
    app_free(heap, two);
    return !(most >= 200 && bytes == 0 && events == 4);
}
""")
    flags = ["-std=c11", "-Wall", "-Werror", "-DCONFIG_HEAP_LISTENER", '-DAPP_HOOKS="app_zephyr_hooks.h"', "-I."]
    run(["cc", *flags, f"-I{BOARDS / 'zephyr'}", "app_heap.c", "main.c", "-o", "listened"], tmp_path)
    run(["./listened"], tmp_path)

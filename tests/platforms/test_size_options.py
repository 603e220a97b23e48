"""Sizes in the words of each system: FreeRTOS, Zephyr, lwIP, ThreadX, NetX Duo, Mbed TLS, LVGL and others."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import originals
import pytest
from click.testing import CliRunner
from platform_builds import fetched
from tool_requirements import programs_of_32_bits

import heapwright as hw
from heapwright._cli import heapwright
from heapwright._generate.emit import Banner
from heapwright._platforms.catalogue import platforms
from heapwright._platforms.files import generate_for
from heapwright._platforms.size_options import HeapIdentity, implied, size_options
from heapwright._traces.trace import Trace

WITHOUT_OPTION = {"cpp", "lua", "newlib-nano", "owners", "preload", "regions", "riot", "rust", "sqlite"}
"""Platforms whose arena the program itself gives, and those that are as another."""

STUBS = """
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
typedef unsigned char UCHAR;
typedef struct { void *words[14]; } NX_PACKET;
#define APP_ARENA_ALIGNMENT 8
#define K_MEM_SLAB_DEFINE(name, size, count, align) \\
    _Static_assert((size) % (align) == 0 && (count) > 0, "a block is a multiple of the alignment"); \\
    static unsigned char name[(size) * (count)]
static int heap, blocks_512, packets_512;
static unsigned char heap_memory[1 << 20], memory_512[1 << 20];
void tx_byte_pool_create(void *pool, const char *name, void *memory, size_t bytes);
void tx_block_pool_create(void *pool, const char *name, size_t size, void *memory, size_t bytes);
void nx_packet_pool_create(void *pool, const char *name, size_t size, void *memory, size_t bytes);
void app_pool_create(void *pool, const char *name, void *memory, size_t bytes);
void mbedtls_memory_buffer_alloc_init(unsigned char *memory, size_t bytes);
void app_mbedtls_use(void *memory, size_t bytes);
"""
USES = """
#ifdef configTOTAL_HEAP_SIZE
static uint8_t ucHeap[configTOTAL_HEAP_SIZE];
#endif
#ifdef MEM_SIZE
static uint8_t ram_heap[MEM_SIZE];
#endif
#ifdef LV_MEM_SIZE
static uint32_t work_mem_int[LV_MEM_SIZE / sizeof(uint32_t)];
#endif
"""


def packets() -> Trace:
    """Rounds of five objects of 512 bytes and one of 100: 5 and 1 live at once."""
    op, id_, size = [], [], []
    for turn in range(50):
        numbers = [6 * turn + k for k in range(6)]
        op += [0] * 6 + [3] * 6
        id_ += numbers * 2
        size += [512] * 5 + [100] + [0] * 6
    return Trace.from_columns(op=op, id=id_, size=size, name="packets")


def lines(platform: str, heap: str) -> list[str]:
    fit = hw.fit(packets(), heap, platform=platform)
    return [line for part in fit.options for line in part.lines]


def test_every_platform_with_a_size_option_is_in_the_table_with_its_sources() -> None:
    assert set(platforms()) - set(size_options()) == WITHOUT_OPTION
    for options in size_options().values():
        assert options.sources and (options.heap or options.port or options.pool)


def test_the_heap_that_a_system_has_now_counts_as_its_option_does() -> None:
    """heap_4's arena has 16 bytes that ucHeap has not, lwIP's 28 (tests/heaps/test_originals.py)."""
    heap4 = hw.fit(packets(), "freertos-heap4", platform="auto")
    assert heap4.reserve_bytes is not None
    (part,) = heap4.options
    assert part.lines == (f"#define configTOTAL_HEAP_SIZE ((size_t){heap4.reserve_bytes - 16})",)
    lwip = hw.fit(packets(), "lwip-mem", platform="auto")
    assert lwip.reserve_bytes is not None
    assert lwip.options[0].lines == (f"#define MEM_SIZE {lwip.reserve_bytes - 28}",)


def test_recipes_are_sized_as_they_are_generated_there() -> None:
    """FreeRTOS's port returns counters, 20 bytes of the arena, and aligns to 8; its own heap stays as it is."""
    port = hw.platforms("freertos")
    for heap in ("small", "tlsf"):
        fit = hw.fit(packets(), heap, platform="freertos")
        assert fit.smallest_arena_bytes == hw.fit(packets(), port.adapted(hw.zoo(heap))).smallest_arena_bytes
        assert fit.smallest_arena_bytes != hw.fit(packets(), heap, platform="auto").smallest_arena_bytes
    own = [hw.fit(packets(), "freertos-heap4", platform=name).smallest_arena_bytes for name in ("freertos", "auto")]
    assert own[0] == own[1]
    with pytest.raises(hw.HeapwrightError, match="cannot align objects to more than 8 bytes, as zephyr needs"):
        hw.fit(packets(), "fixed-pool@8", platform="zephyr")


def test_a_log_or_an_allocator_of_one_system_names_it() -> None:
    def system(heap: str, recorder: str = "") -> str | None:
        found = implied(HeapIdentity.of_recipe(heap), recorder)
        return found.name if found else None

    assert system("freertos-heap4@8") == "freertos"
    assert system("zephyr-sys-heap") == "zephyr"
    assert system("all-round", "esp-idf") == "esp-idf"
    assert system("tlsf") is None, "LVGL has Conte's, as others do"
    assert system("espressif-tlsf") == system("espressif-tlsf-large") == "esp-idf"
    assert system("lvgl-tlsf") == "lvgl"
    assert system("mbedtls-buffer") == "mbedtls"
    assert system("nuttx-mm") == "nuttx"
    assert system("rt-thread-small-mem") == system("rt-thread-memheap") == "rt-thread"
    assert system("esp8266-umm") == "esp8266"
    assert system("all-round") is None


@pytest.mark.parametrize(
    ("platform", "heap", "expected"),
    [
        ("zephyr", "zephyr-sys-heap", "CONFIG_HEAP_MEM_POOL_SIZE="),
        ("zephyr", "zephyr-sys-heap", "K_MEM_SLAB_DEFINE(slab_512, 512, 6, 8);"),
        ("zephyr", "tlsf", "CONFIG_HEAPWRIGHT_MALLOC_BYTES="),
        ("threadx", "threadx-byte-pool", "512, memory_512, 6 * (512 + sizeof(UCHAR *)));"),
        ("netx", "tlsf", "512, memory_512, 6 * (512 + sizeof(NX_PACKET)));"),
        ("lwip", "tlsf", "#define APP_LWIP_BYTES "),
        ("mbedtls", "tlsf", "app_mbedtls_use(tls_memory, sizeof tls_memory);"),
        ("lvgl", "tlsf", "#define LV_MEM_SIZE "),
        ("openthread", "tlsf", "#define OPENTHREAD_CONFIG_HEAP_INTERNAL_SIZE "),
        ("newlib", "newlib-nano", "_Min_Heap_Size = "),
        ("picolibc", "tlsf", "-DAPP_ARENA_BYTES="),
        ("esp-idf", "espressif-tlsf", "heap_caps_get_free_size() has to be "),
        ("rt-thread", "rt-thread-small-mem", "HEAP_END - HEAP_BEGIN has to be "),
        ("esp8266", "esp8266-umm", "ESP.getFreeHeap() has to be "),
    ],
)
def test_sizes_are_printed_under_the_options_that_people_set(platform: str, heap: str, expected: str) -> None:
    assert any(expected in line for line in lines(platform, heap))


@pytest.mark.parametrize("platform", ["freertos", "lwip", "threadx", "netx", "mbedtls", "lvgl", "openthread"])
def test_lines_of_c_compile(platform: str, tmp_path: Path) -> None:
    own = next(iter(size_options()[platform].own), "tlsf")
    for heap in {own, "tlsf"}:
        text = lines(platform, heap)
        outside = [line for line in text if line.startswith(("#", "static", "K_MEM"))]
        inside = [line for line in text if line not in outside]
        source = [STUBS, *outside, USES, "void set_up(void)\n{", *inside, "}\n"]
        (tmp_path / "sizes.c").write_text("\n".join(source))
        command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-fsyntax-only", "sizes.c"]
        subprocess.run(command, cwd=tmp_path, check=True)


def test_a_slab_line_of_zephyr_has_blocks_of_whole_alignments(tmp_path: Path) -> None:
    (line,) = [line for line in lines("zephyr", "zephyr-sys-heap") if "SLAB" in line]
    (tmp_path / "slab.c").write_text(f"{STUBS}{line}\n")
    subprocess.run(["cc", "-fsyntax-only", "slab.c"], cwd=tmp_path, check=True)


def test_openthreads_heap_ends_at_what_its_offsets_reach() -> None:
    large = Trace.from_columns(op=[0] * 80, id=range(80), size=[1000] * 80, name="large")
    (part,) = hw.fit(large, "tlsf", platform="openthread").options
    assert "OpenThread accepts 65,528 bytes at most" in part.counts


def test_the_command_prints_the_lines_below_its_table_and_in_json(tmp_path: Path) -> None:
    packets().write(tmp_path / "p.parquet")
    words = ["fit", str(tmp_path / "p.parquet"), "--heap", "tlsf", "--platform", "freertos"]
    printed = CliRunner().invoke(heapwright, words).stdout
    recommended = printed.splitlines()[4].split()[4].replace(",", "")
    assert f"    #define configTOTAL_HEAP_SIZE ((size_t){recommended})" in printed.splitlines()
    (row,) = json.loads(CliRunner().invoke(heapwright, [*words, "--json"]).stdout)
    assert row["options"][0]["file"] == "FreeRTOSConfig.h"
    failed = CliRunner().invoke(heapwright, [*words[:-1], "freertoss"])
    assert failed.exit_code == 1 and "did you mean freertos?" in str(failed.exception)


# ---- TLS -----------------------------------------------------------------------------------------------------------


def sessions(incoming: int, outgoing: int) -> Trace:
    """Twenty TLS sessions, three at once, each with its two record buffers."""
    op, id_, size = [], [], []
    for number in range(20):
        op += [1, 1]
        id_ += [2 * number, 2 * number + 1]
        size += [incoming, outgoing]
        if number >= 2:
            op += [3, 3]
            id_ += [2 * (number - 2), 2 * (number - 2) + 1]
            size += [0, 0]
    return Trace.from_columns(op=op, id=id_, size=size, name="tls")


def test_record_buffers_of_tls_are_named_by_the_options_that_set_them() -> None:
    """16,717 bytes are 16,384 and what a record has in addition, 333; so 4,429 are 4,096."""
    parts = hw.fit(sessions(16717, 4429), "tlsf", platform="esp-idf").options
    tls = parts[-1]
    assert tls.file == "sdkconfig"
    assert "CONFIG_MBEDTLS_SSL_IN_CONTENT_LEN=16384" in tls.lines
    assert "CONFIG_MBEDTLS_SSL_OUT_CONTENT_LEN=4096" in tls.lines
    assert "40 record buffers of 16,717 and 4,429 B" in tls.counts


def test_what_shorter_records_would_save_is_replayed() -> None:
    trace = sessions(16717, 16717)
    fit = hw.fit(trace, "tlsf", platform="mbedtls")
    (line,) = [line for line in fit.options[-1].lines if "max_fragment_length" in line]
    short = trace.select(np.arange(len(trace)), size=np.where(trace.size == 16717, 4096 + 333, trace.size))
    then = hw.fit(short, "tlsf", platform="mbedtls").reserve_bytes
    assert f"recommended size {then:,} B in place of {fit.reserve_bytes:,}" in line


def test_the_buffer_of_mbed_tls_is_sized_by_its_own_allocator() -> None:
    """Its sources serve the trace in the buffer that is printed; each object has 32 bytes of header."""
    programs_of_32_bits(compiler="gcc")
    heap = f"mbedtls-buffer={fetched(originals.mbedtls)}"
    fit = hw.fit(sessions(16717, 4429), heap, platform="mbedtls")
    assert fit.smallest_arena_bytes is not None and fit.reserve_bytes is not None
    assert 3 * (16717 + 4429) <= fit.smallest_arena_bytes - 6 * 32 < 3 * (16717 + 4429) + 128
    assert fit.options[0].lines[0] == f"static unsigned char tls_memory[{fit.reserve_bytes}];"
    assert hw.replay(sessions(16717, 4429), heap, arena=fit.reserve_bytes).metrics["failed"] == 0


def test_large_objects_that_are_no_records_are_not_called_so() -> None:
    parts = hw.fit(sessions(16384, 20000), "tlsf", platform="esp-idf").options
    assert [part.file for part in parts] == ["at the start of app_main"]


def test_the_page_of_a_generated_heap_has_its_size_as_the_option(tmp_path: Path) -> None:

    about = Banner(reserve="Reserve 20,000 bytes for a load like the recorded one.", reserve_bytes=20_000)
    generate_for(platforms()["freertos"], hw.zoo("tlsf"), tmp_path, "net", about)
    page = (tmp_path / "net_README.md").read_text()
    assert "\n    #define configTOTAL_HEAP_SIZE ((size_t)20000)\n" in page.partition("## Build it")[0]


def test_a_recommendation_is_also_the_option_of_the_system_that_has_the_current_heap(tmp_path: Path) -> None:
    packets().write(tmp_path / "p.parquet")
    words = ["explore", str(tmp_path / "p.parquet"), "-o", str(tmp_path / "s.duckdb"), "--strategy", "random"]
    words += ["--limit", "5", "--long-run", "0", "--current", "freertos-heap4"]
    assert CliRunner().invoke(heapwright, words).exit_code == 0
    against = ["pareto", str(tmp_path / "s.duckdb"), "--against", "freertos-heap4"]
    printed = CliRunner().invoke(heapwright, against).stdout
    assert "FreeRTOSConfig.h: #define configTOTAL_HEAP_SIZE ((size_t)" in printed

"""Adapters: what is wrong in one, those that are ready-made, and what builds with their headers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from case_tables import each
from foreign_heaps import THREE, built_for, replayed, trace

from heapwright._heaps import heaps
from heapwright._heaps.foreign import adapter as adapters
from heapwright._heaps.foreign.adapter import Adapter, WordSize
from heapwright._heaps.foreign.heap import ForeignHeap
from heapwright._support.errors import HeapwrightError


@pytest.fixture(params=[32, 64])
def word_size(request: pytest.FixtureRequest, tmp_path: Path) -> WordSize:
    return built_for(request.param)


@each(
    ("toml", "says"),
    [
        ('style = "arena"', 'needs "init"'),
        ('style = "libc"\ninit = "x"', 'are for style "arena"'),
        ('style = "arena"\narray = "pool"', "a define that sets its size"),
        ('style = "libc"\nlibrary = "x"\nsources = ["y"]', "not both"),
        ('style = "libc"\nalign = 12', '"align": must be a power of two, not 12'),
        ('style = "arena"\ninit = "x"\nmin_arena = 9\nmax_arena = 8', '"min_arena" 9 is above'),
        ('style = "arena"\ninit = "x"\n[headers]\n"../x.h" = ""', "is not the name of a header"),
        ("style = ", "not TOML"),
        ('extends = "nothing"', "no such adapter"),
    ],
)
def test_a_wrong_adapter_says_what_is_wrong(toml: str, says: str) -> None:
    with pytest.raises(HeapwrightError, match=f"^mine.toml: .*{says}|^nothing: {says}"):
        Adapter.parse(toml, "mine.toml")


def test_an_adapter_extends_a_ready_made_one() -> None:
    mine = Adapter.parse('extends = "umm-malloc"\ndefines = { UMM_FIRST_FIT = 1 }\nalign = 8', "mine.toml")
    assert (mine.defines, mine.align, mine.max_arena) == ({"UMM_FIRST_FIT": 1}, 8, 262136)
    assert mine.headers == adapters.ready_made("umm-malloc").headers


@pytest.mark.parametrize("name", adapters.names())
def test_ready_made_adapters_are_complete(name: str, tmp_path: Path) -> None:
    adapter = adapters.ready_made(name)
    assert adapter.name == name
    assert adapter.source
    assert adapter.about
    assert not any(Path(source).is_absolute() for source in adapter.sources)
    for header, text in adapter.headers.items():
        path = tmp_path / header
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for header in adapter.headers:
        defines = [f"-D{key}={value}" for key, value in adapter.defines.items()]
        command = ["cc", "-w", "-fsyntax-only", *defines, "-x", "c", str(tmp_path / header)]
        sized = [word.replace("{bytes}", "4096").replace("{capacity}", "4096") for word in command]
        subprocess.run(sized, check=True)


RTOS_HEAP = """
#include <stdlib.h>
#include "FreeRTOS.h"
#include "task.h"
#if (configAPPLICATION_ALLOCATED_HEAP == 1)
extern uint8_t ucHeap[configTOTAL_HEAP_SIZE];
#else
PRIVILEGED_DATA static uint8_t ucHeap[configTOTAL_HEAP_SIZE];
#endif
static size_t used;
void *pvPortMalloc(size_t xWantedSize)
{
    void *pvReturn = NULL;
    vTaskSuspendAll();
    xWantedSize = (xWantedSize + portBYTE_ALIGNMENT_MASK) & ~(size_t)portBYTE_ALIGNMENT_MASK;
    if (xWantedSize <= configTOTAL_HEAP_SIZE - used) {
        pvReturn = &ucHeap[used];
        used += xWantedSize;
    }
    (void)xTaskResumeAll();
    traceMALLOC(pvReturn, xWantedSize);
    configASSERT(((size_t)pvReturn & portBYTE_ALIGNMENT_MASK) == 0);
    return pvReturn;
}
void vPortFree(void *pv) { traceFREE(pv, 0); }
"""


def test_an_rtos_heap_builds_with_the_stub_headers(tmp_path: Path, word_size: WordSize) -> None:
    (tmp_path / "heap_4.c").write_text(RTOS_HEAP)
    for name in (f"freertos-heap4={tmp_path}/heap_4.c", f"freertos-heap4={tmp_path}"):
        heap = heaps.resolve(name, word_size)
        assert isinstance(heap, ForeignHeap)
        assert replayed(THREE, heap, fit=True)["smallest_arena_bytes"] == 64


MANAGED = """
#include <string.h>
struct mmem { struct mmem *next; unsigned int size; char *ptr; };
#define MMEM_PTR(m) (m)->ptr
static struct mmem *mmemlist[1];
static char memory[MMEM_CONF_SIZE];
static unsigned int used;
static void list_remove(struct mmem **list, struct mmem *m)
{
    while (*list && *list != m) {
        list = &(*list)->next;
    }
    *list = *list ? m->next : 0;
}
static void list_add(struct mmem **list, struct mmem *m)
{
    while (*list) {
        list = &(*list)->next;
    }
    *list = m;
    m->next = 0;
}
int mmem_alloc(struct mmem *m, unsigned int size)
{
    if (size > MMEM_CONF_SIZE - used) {
        return 0;
    }
    m->ptr = memory + used;
    m->size = size;
    used += size;
    list_add(mmemlist, m);
    return 1;
}
void mmem_free(struct mmem *m)
{
    memmove(m->ptr, m->ptr + m->size, memory + used - m->ptr - m->size);
    for (struct mmem *n = m->next; n; n = n->next) {
        n->ptr -= m->size;
    }
    used -= m->size;
    list_remove(mmemlist, m);
}
void mmem_init(void) {}
"""
MANAGED_REALLOC = """
int mmem_realloc(struct mmem *m, unsigned int size)
{
    if (m->next || size > m->size + MMEM_CONF_SIZE - used) {
        return 0;
    }
    used += size - m->size;
    m->size = size;
    return 1;
}
"""


@pytest.mark.parametrize(("has_realloc", "smallest"), [(False, 10 + 20 + 30), (True, 10 + 30)])
def test_contikis_heap_builds_with_and_without_realloc(
    has_realloc: bool, smallest: int, tmp_path: Path, word_size: WordSize
) -> None:
    """The releases differ; where there is none, the old object and the new one are there at once."""
    folder = tmp_path / "core" / "lib"
    folder.mkdir(parents=True)
    (folder / "list.c").touch()
    (folder / "mmem.c").write_text(MANAGED + (MANAGED_REALLOC if has_realloc else ""))
    heap = heaps.resolve(f"contiki-mmem={tmp_path}", word_size)
    assert isinstance(heap, ForeignHeap)
    calls = trace((0, 1, 10), (0, 2, 20), (2, 2, 30), (3, 1, 0), (3, 2, 0))
    assert replayed(calls, heap, fit=True)["smallest_arena_bytes"] == smallest

"""Macros for calls of constant sizes leave in the arena what the functions leave there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from c_programs import STRICT, UNCHECKED

import heapwright as hw
from heapwright._generate.emit import generated_files
from heapwright._recipes.recipe import Recipe

LISTS: list[dict[str, Any]] = [{"kind": "quick", "sizes": [24, 40, 1500]}, {"kind": "general", "bins": "exact"}]
ALL_SIZES: list[dict[str, Any]] = [
    {"kind": "quick", "up_to": 200, "flush": "before-growing"},
    {"kind": "general", "min_block": 32, "coalesce": "forward", "boundary_tags": False},
]
SITED: list[dict[str, Any]] = [{"kind": "general", "sites": ["a"], "region": 1024}, *LISTS]

PROGRAM = r"""
#include "app_heap_inline.h"
#include <stdio.h>
#include <string.h>

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char first[20000], second[20000];
static void *mine[64], *theirs[64];
static unsigned sizes[64];

#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        if (mine[i]) {                                                                                                 \
            APP_FREE(heap, mine[i], n);                                                                                \
            mine[i] = NULL;                                                                                            \
        } else {                                                                                                       \
            mine[i] = APP_MALLOC(heap, n);                                                                             \
        }                                                                                                              \
        break

int main(void)
{
    struct app_heap *heap = app_init(first, sizeof first), *other = app_init(second, sizeof second);
    static const unsigned asked[] = {0, 1, 24, 25, 40, 60, 200, 201, 1500};
    unsigned random = 1, hits = 0;
    APP_FREE(heap, NULL, 24);
    for (unsigned call = 0; call < 20000; call++) {
        random = random * 1664525u + 1013904223u;
        const unsigned i = random >> 26;
        if (mine[i] && (random >> 20 & 15u) == 0) { /* an object that is resized is of another size than it was */
            mine[i] = app_realloc(heap, mine[i], 24 + (random >> 8 & 63u));
            theirs[i] = app_realloc(other, theirs[i], 24 + (random >> 8 & 63u));
        }
        if (mine[i] == NULL) {
            sizes[i] = asked[(random >> 12 & 0xffu) % 9u];
            theirs[i] = app_malloc(other, sizes[i]);
        } else {
            app_free(other, theirs[i]);
        }
        switch (sizes[i]) {
            CASE(0);
            CASE(1);
            CASE(24);
            CASE(25);
            CASE(40);
            CASE(60);
            CASE(200);
            CASE(201);
        default:
            if (mine[i]) {
                APP_FREE(heap, mine[i], sizes[i]);
                mine[i] = NULL;
            } else {
                mine[i] = APP_MALLOC(heap, sizes[i]);
            }
        }
        if (mine[i] == NULL) {
            theirs[i] = NULL;
        }
        hits += mine[i] != NULL;
        if (memcmp(first, second, sizeof first) != 0 || app_check(heap) != 0) {
            printf("call %u differs\n", call);
            return 1;
        }
    }
    printf("%u\n", hits);
    return hits < 1000;
}
"""


@pytest.mark.parametrize("pools", [LISTS, ALL_SIZES, SITED], ids=["sizes", "up_to", "sites"])
@pytest.mark.parametrize("flags", [("-O2",), ("-O0", "-DAPP_CALLS")], ids=" ".join)
def test_macros_leave_what_the_functions_leave(
    pools: list[dict[str, Any]], flags: tuple[str, ...], tmp_path: Path
) -> None:
    for file, text in generated_files(Recipe.from_dict({"align": 8, "pool": pools}), inline=True).items():
        (tmp_path / file).write_text(text)
    (tmp_path / "main.c").write_text(PROGRAM)
    sources = [str(tmp_path / file) for file in ("app_heap.c", "main.c")]
    command = ["cc", *STRICT, UNCHECKED, *flags, f"-I{tmp_path}", *sources, "-o", str(tmp_path / "program")]
    subprocess.run(command, check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_constant_size_costs_a_few_instructions(tmp_path: Path) -> None:
    for file, text in generated_files(Recipe.from_dict({"align": 8, "pool": ALL_SIZES}), inline=True).items():
        (tmp_path / file).write_text(text)
    (tmp_path / "take.c").write_text(
        '#include "app_heap_inline.h"\nvoid *take(struct app_heap *heap) { return APP_MALLOC(heap, 40); }\n'
    )
    command = ["cc", *STRICT, "-O2", "-fcf-protection=none", "-S", str(tmp_path / "take.c"), "-o", "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    said = [line for line in text.splitlines() if line.startswith("\t") and not line.startswith("\t.")]
    assert "app_malloc" in text
    assert 6 <= len(said) <= 11, said  # the list's head, a test, the next block, the head again; the call of a miss


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"threads": "lock"}, '"threads" "lock" needs a call'),
        ({"checks": "frees"}, "checks and counters need a call"),
        ({"counters": True}, "checks and counters need a call"),
        ({"pool": LISTS[1:]}, "has not one pool of lists above one general pool"),
        ({"pool": [LISTS[0] | {"limit_blocks": 4}, LISTS[1]]}, "keep an account of their blocks"),
        ({"link_bytes": 2}, "links or headers are no whole words"),
    ],
    ids=str,
)
def test_what_cannot_be_inlined_is_told_in_one_line(keys: dict[str, Any], problem: str, tmp_path: Path) -> None:
    with pytest.raises(hw.HeapwrightError) as raised:
        hw.generate(Recipe.from_dict({"align": 8, "pool": LISTS} | keys), tmp_path / "out", inline=True)
    assert problem in str(raised.value)
    assert "leave inline out" in str(raised.value)
    assert not (tmp_path / "out").exists()

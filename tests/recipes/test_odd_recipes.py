"""Recipes of a kind that no zoo heap and no space has: the core under sanitizers, and what it takes for cached."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from c_programs import SANITIZED, UNCHECKED, compile_c, write_heaps
from run_length import brief

from heapwright._generate.emit import generated_files
from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe

LISTED = {"kind": "general", "free_list": "single", "coalesce": "never"}
ODD: dict[str, list[dict[str, Any]]] = {
    "one bin for all, whose smallest block is one byte a step": [
        LISTED | {"bins": "exact", "bins_per_octave": 8, "linear_up_to": 0, "most_bins": 1, "order": "address"}
    ],
    "a good fit in bins that begin with a payload of 1 byte": [
        LISTED | {"bins": "half-fit", "bin_by": "payload", "header": 8, "links_in": "header", "min_block": 9}
    ],
    "free blocks smaller than header and trailer": [
        {"kind": "general", "header": 8, "trailer": 1, "min_block": 8, "free_list": "implicit", "coalesce": "forward"}
    ],
    "lists of powers of two by size, asked for 4 GB": [
        {"kind": "quick", "up_to": 128},
        {"kind": "general", "header": 2, "round_to": "power-of-two", "free_list": "single"},
    ],
}


@pytest.mark.parametrize("name", ODD)
def test_random_programs_on_odd_recipes(name: str, tmp_path: Path) -> None:
    fuzz = compile_c(tmp_path / "fuzz", "fuzz.c", flags=["-std=gnu11", *SANITIZED, "-DHW_EXPLORE"])
    recipe = Recipe.from_dict({"align": 1, "pool": ODD[name]})
    least = int(policy(recipe)["fixed_end"])
    heaps = write_heaps(tmp_path / "heaps", [(least + more, recipe) for more in (100, 1000, 8000, 64000)])
    done = subprocess.run([fuzz, heaps, brief("600", "2000"), "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


AS_IF_CACHED = """
#include <stdio.h>
#include <string.h>
#include "app_heap.h"

_Alignas(64) static unsigned char arena[4096];

int main(void)
{
    struct app_heap *heap = app_init(arena, sizeof arena);
    unsigned char *object = app_malloc(heap, 40);
    unsigned char cached[40];
    app_free(heap, object);
    memcpy(cached, object, sizeof cached);
    unsigned char *again = app_malloc(heap, 40);
    memcpy(again, cached, sizeof cached);
    const size_t usable = app_usable_size(heap, again);
    app_free(heap, again);
    const unsigned wrong = app_misused(heap);
    app_free(heap, again);
    printf("%d %d %u %u", object == again, usable >= 40, wrong, (unsigned)app_misused(heap));
    return 0;
}
"""


def test_no_object_is_taken_for_cached_by_two_bytes_of_its_own(tmp_path: Path) -> None:
    """Its program may leave there what a cached block has: of 2 bytes one object in 65,536 does by chance."""
    pools = [{"kind": "quick", "up_to": 64}, {"kind": "general"}]
    recipe = Recipe.from_dict({"align": 8, "link_bytes": 2, "checks": "neighbours", "pool": pools})
    for file, text in generated_files(recipe).items():
        (tmp_path / file).write_text(text)
    program, sources = tmp_path / "program", [tmp_path / "program.c", tmp_path / "app_heap.c"]
    sources[0].write_text(AS_IF_CACHED)
    subprocess.run(["cc", UNCHECKED, f"-I{tmp_path}", *sources, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout == "1 1 0 1"

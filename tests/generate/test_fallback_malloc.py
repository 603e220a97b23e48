"""Pools in front of another allocator: which recipes stand there, which names show a family, and what is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import heapwright as hw
from heapwright._generate.emit import generated_files
from heapwright._generate.fallback_malloc import ROUTED, family
from heapwright._heaps import heaps
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._support.errors import HeapwrightError

POOLS = [{"kind": "fixed", "sizes": [16, 64], "counts": [10, 4]}]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"pool": [{"kind": "general"}]}, "has a general pool without bounds, so nothing would reach the heap behind"),
        ({"pool": [*POOLS, {"kind": "buddy"}]}, "a buddy pool without bounds"),
        ({"pool": [{"kind": "fixed", "sizes": [16], "header": 4}]}, 'give fixed pools "counts"'),
        ({"pool": [{"kind": "compact"}]}, "its objects move, and those of a heap behind it would stay; use no compact"),
        (
            {"pool": [{**POOLS[0], "memory": "a"}], "memory": {"a": 4000}},
            "lies in several memories, and only pools of one",
        ),
        (
            {"pool": [*POOLS, {"kind": "general", "region": 70_000}], "threads": "cached"},
            'its caches of threads would be emptied by each request that goes on; give it threads = "lock"',
        ),
    ],
)
def test_what_leaves_nothing_to_a_heap_behind_is_refused(data: dict[str, Any], told: str, tmp_path: Path) -> None:
    recipe = Recipe.from_dict({"name": "mine", **data})
    with pytest.raises(HeapwrightError, match=rf"^mine: .*{re.escape(told)}"):
        hw.generate(recipe, tmp_path / "out", behind="malloc")
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine.toml").write_text(recipe.to_toml())
    with pytest.raises(HeapwrightError, match=re.escape(told)):
        heaps.resolve(f"{tmp_path}/mine.toml+malloc")


def test_a_malloc_tells_its_family() -> None:
    assert family("malloc") == {"malloc": "malloc", "realloc": "realloc", "free": "free"}
    assert family("mi_malloc")["realloc"] == "mi_realloc"
    assert family("dlmalloc")["free"] == "dlfree"
    for name in ("", "pvPortMalloc", "my malloc", "a_malloc_malloc", "malloc()", "\u0101malloc"):
        with pytest.raises(HeapwrightError, match="does not show what realloc and free are called"):
            family(name)


def test_neither_a_platform_nor_evidence_goes_with_it(tmp_path: Path) -> None:
    recipe = Recipe.from_dict({"pool": POOLS})
    trace = hw.Trace.from_columns(op=[0], id=[0], size=[8])
    for more in ({"platform": "lua"}, {"evidence": trace}):
        with pytest.raises(HeapwrightError, match="pools in front of malloc are generated alone"):
            hw.generate(recipe, tmp_path / "out", behind="malloc", **more)


def test_the_text_of_the_pools_is_that_of_the_heap_alone() -> None:
    recipe = Recipe.from_dict({"name": "mine", "align": 4, "pool": POOLS})
    alone, before = generated_files(recipe, "net"), generated_files(recipe, "net", behind="k_malloc")
    assert set(before) - set(alone) == {"net_behind.c"}
    for name in ("net_heap.c", "net_heap_checks.h"):
        assert before[name].replace("net_pools_", "net_") == alone[name]
    for function in ROUTED:
        assert re.search(rf"\bnet_pools_{function}\(struct", before["net_heap.h"])
        assert re.search(rf"\bnet_{function}\(struct", before["net_heap.h"])
        assert re.search(rf"^[\w ]+[ *]net_{function}\(struct[^;]*\n{{", before["net_behind.c"], re.MULTILINE)
    assert f"#define NET_ARENA_BYTES {int(policy_struct(recipe).fixed_end)}u\n" in before["net_heap.h"]
    assert "#define NET_BEHIND_REALLOC(pointer, size) k_realloc(pointer, size)\n" in before["net_behind.c"]

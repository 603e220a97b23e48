"""Drawn blocks and tables of control data: what the comments of a heap say is what its code does."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from case_tables import each

from heapwright._generate.emit import generated_files
from heapwright._generate.memory_map import BlockField, drawing, from_end
from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo

CHECKED = {f"{name}, {level}": (name, level) for name in ("tlsf", "lea-2.7.2") for level in ("neighbours", "full")}
NAMES = [*zoo.names(), *CHECKED]


def recipe_of(name: str) -> Recipe:
    if name in CHECKED:
        own, level = CHECKED[name]
        return Recipe.from_dict(zoo.load(own).to_dict() | {"checks": level})
    return zoo.load(name)


@cache
def source(name: str) -> str:
    return generated_files(recipe_of(name))["app_heap.c"]


def numbers(name: str) -> dict[str, int]:
    """The constants that the source defines as numbers."""
    return {word: int(value) for word, value in re.findall(r"#define (\w+) +UINT32_C\((\d+)\)", source(name))}


def drawn_offsets(name: str) -> list[set[str]]:
    """The offsets above each drawing."""
    maps = source(name)[source(name).index("/* A block") :]
    lines = maps[: maps.index("*/")].splitlines()
    above = [line for line, below in pairwise(lines) if re.fullmatch(r" \* +\+[-+]+\+", below)]
    heads = [line for line in above if "|" not in line]
    return [set(re.findall(r"size - \d+|\S+", line[2:])) for line in heads]


def offsets_of(pool: dict[str, Any], align: int, cached: bool) -> set[str]:
    """The offsets of a pool's blocks, from its policy."""
    link = pool.get("links", pool).get("field", pool.get("word", {}))["bytes"]
    match pool:
        case {"partition": _}:
            return {str(number * link) for number in range(min(5, pool["descriptor"] // link))} | {
                str(pool["descriptor"])
            }
        case {"lazy": _, "size_shift": _, "most": _}:
            half = pool["word"]["bytes"]
            return {"0", "size"} | ({str(half), str(pool["header"])} if pool["header"] else set())
        case {"orders": _}:
            at = {0, pool["header"], pool["header"] + link, pool["header"] + 2 * link}
        case {"sizes": _}:
            at = {0, pool["header"]}
            at |= {4, 4 + link} if pool["first_fit"] and pool["grow"] else set()
            at |= {pool["word"]["bytes"]} if pool["header"] else set()
            at |= set() if pool["first_fit"] else {pool["header"] + link}
        case _:
            word = pool["word"]["bytes"]
            links = {0: 2, 1: 1, 2: 0, 3: 2}[pool["free_list"]]
            at = {0, word, pool["header"], *(pool["node"] + number * link for number in range(links + bool(links)))}
            at |= {2 * word} if pool["tag_in_header"] else set()
            at |= {pool["header"] + link} if cached else set()
    out = {str(number) for number in at} | {"size"}
    if "boundary_tags" in pool and pool["boundary_tags"] and not pool["tag_in_header"]:
        out.add(f"size - {pool['word']['bytes']}")
    if pool["trailer"]:
        out.add(f"size - {pool['trailer']}")
    if len(pool.get("sizes", ())) == 1:
        stride = (pool["sizes"][0] + pool["header"] + pool["trailer"] + align - 1) // align * align
        out = {text.replace("size", str(stride)) for text in out}
    return out


@each("name", NAMES)
def test_drawn_offsets_are_those_of_the_policy(name: str) -> None:
    values = policy(recipe_of(name))
    cached = any(pool["cached"] for pool in values["pools"])
    kinds = ("general", "fixed", "buddy", "partition", "compact")
    owners = [pool[kind] for pool in values["pools"] for kind in kinds if kind in pool]
    drawn = drawn_offsets(name)
    assert len(drawn) == len(owners)
    for offsets, pool in zip(drawn, owners, strict=True):
        assert offsets == offsets_of(pool, values["align"], cached)


@each("name", NAMES)
def test_drawn_offsets_are_those_that_the_code_defines(name: str) -> None:
    drawn = set().union(*drawn_offsets(name))
    defined = numbers(name)
    for word in ("APP_HEADER", "APP_NODE", "APP_DESCRIPTOR"):
        assert str(defined.get(word, 0)) in drawn


def table(name: str) -> list[tuple[int, int, str, str]]:
    """The rows of the table of control data."""
    text = source(name)
    rows = text[text.index("address  bytes  name") :].partition("*/")[0].splitlines()[1:]
    found = [re.fullmatch(r" \* +(\d+) +(\d+)  +(?:(APP_\w+)|)\s*(.*)", row) for row in rows]
    return [(int(row[1]), int(row[2]), row[3] or "", row[4]) for row in found if row]


@each("name", NAMES)
def test_the_table_covers_the_control_data_without_gaps(name: str) -> None:
    rows = table(name)
    ends = [address + size for address, size, _, _ in rows]
    assert [address for address, _, _, _ in rows] == [0, *ends[:-1]]
    assert ends[-1] == policy(recipe_of(name))["control"]
    assert [row for row in rows if not row[3]] == []


@each("name", NAMES)
def test_the_table_names_every_address_that_the_code_uses(name: str) -> None:
    control = policy(recipe_of(name))["control"]
    defined = {word: at for word, at in numbers(name).items() if re.search(r"_AT$", word) and at < control}
    assert {word: address for address, _, word, _ in table(name) if word} == defined


@each("name", NAMES)
def test_an_address_has_one_name(name: str) -> None:
    named = [value for word, value in numbers(name).items() if re.search(r"_AT$", word)]
    assert len(named) == len(set(named))


@pytest.mark.parametrize("name", ["half-fit", "binary-buddy", "contiki-ng-heapmem"])
def test_the_scratch_word_is_named_and_explained(name: str) -> None:
    text = source(name)
    link = policy(recipe_of(name))["pools"][0][recipe_of(name).pools[0].kind]["links"]["field"]["bytes"]
    assert numbers(name)["APP_SCRATCH_AT"] == link
    assert re.search(r"APP_SCRATCH_AT +scratch word, never read", text)
    stores = re.findall(r"app_store\w+\([^;]*next \+ APP_LINKS_FIELD_BYTES.*", text)
    before = [text[: text.index(store)].rstrip().rpartition("\n")[2] for store in stores]
    assert stores
    assert all("APP_SCRATCH_AT" in store + line for store, line in zip(stores, before, strict=True))


def test_a_heap_without_such_lists_has_no_scratch_word() -> None:
    assert "SCRATCH" not in source("fixed-pool") + source("best-fit-fast-free")


DRAWN = """\
      0      4      8     size - 4     size
      +------+-------------------------+
used: | word | payload                 |
      +------+------+-----+------------+
free: | word | next |     | word again |
      +------+------+-----+------------+
"""


def test_cells_are_drawn_at_their_offsets_and_gaps_empty() -> None:
    used = [BlockField(0, 4, "word"), BlockField(4, from_end(0) - 4, "payload")]
    free = [BlockField(from_end(4), 4, "word again"), BlockField(0, 4, "word"), BlockField(4, 4, "next")]
    assert drawing({"used": used, "free": free}, "size") == DRAWN.splitlines()

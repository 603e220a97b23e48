"""The layout of the control data: nothing overlaps, everything is aligned for its access, regions hold whole blocks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cache
from typing import Any

import pytest
from recipes_random import random_recipes

from heapwright._recipes.policy import policy
from heapwright._recipes.pools import MAX_REACH
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo


@cache
def recipes() -> list[Recipe]:
    return zoo.recipes() + random_recipes(400, seed=3)


Field = tuple[str, int, int]


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def pool_fields(pool: dict[str, Any], link: int) -> list[Field]:
    """(name, address, bytes) of what one pool keeps in the control data for itself alone."""
    quick, general, fixed = pool.get("quick"), pool.get("general"), pool.get("fixed")
    results: list[Field] = []
    if quick:
        results.append(("heads", quick["heads_at"], quick["count"] * link))
        results += [("counts", quick["counts_at"], 4 * quick["count"])] if quick["limit_blocks"] else []
        results += [("refills", quick["refills_at"], quick["count"])] if quick["refill"] else []
    if general:
        own = ["top_at"] + (["high_at", "limit_at"] if general["region"] else [])
        own += ["rover_at"] if general["fit"] == 1 else []
        own += ["count_at"] if general["search_percent"] < 100 else []
        own += ["pending_at"] if general["coalesce"] == 4 else []
        results += [(name, general[name], 4) for name in own]
        results += [("victim", general["victim_at"], 8)] if general["victim_up_to"] else []
        results += [("bitmap", general["bitmap_at"], round_up(general["bins"], 32) // 8)] if general["bins"] else []
        results += [("summary", general["summary_at"], 4)] if general["bins"] > 32 else []
        lists = 0 if general["free_list"] == 2 else max(general["bins"], 1)
        results += [("lists", general["lists_at"], lists * general["list_stride"])] if lists else []
    if fixed:
        listed = fixed["grow"] or not fixed["first_fit"]
        results += [("heads", fixed["heads_at"], fixed["count"] * link)] if listed else []
        results += [("carved", fixed["carved_at"], 4 * fixed["count"])] if not fixed["grow"] else []
        results += [("tails", fixed["tails_at"], fixed["count"] * link)] if fixed["grow"] and fixed["first_fit"] else []
        results += [("end", fixed["end_at"], 4)] if fixed["grow"] else []
        results += [("flags", at, count) for at, count in zip(fixed["flags_at"], fixed["counts"], strict=False)]
    return results


def control_fields(recipe: Recipe) -> list[Field]:
    result = policy(recipe)
    link = recipe.link_bytes
    fields = [(name, result[name], 4) for name in ("refused_at", "shared_limit_at", "shared_high_at")]
    fields += [("misused_at", result["misused_at"], 4)] if recipe.checks != "none" else []
    if any(pool.get("general", {}).get("free_list") == 0 for pool in result["pools"]):
        fields.append(("null node", 0, 2 * link))
    for pool in result["pools"]:
        fields += pool_fields(pool, link)
    return sorted(fields, key=lambda field: field[1])


def regions(recipe: Recipe) -> list[Field]:
    """(kind, address, bytes) of the parts of the arena that belong to one pool or class."""
    results: list[Field] = []
    for pool in policy(recipe)["pools"]:
        general, fixed = pool.get("general"), pool.get("fixed")
        if general and not general["facing_at"]:
            results.append(("general", general["start"], general["region"]))
        if fixed and not fixed["grow"]:
            for at, size, count in zip(fixed["blocks_at"], fixed["sizes"], fixed["counts"], strict=True):
                results.append(("class", at, count * round_up(size + fixed["header"], fixed["align"])))
    return results


def test_control_data_does_not_overlap() -> None:
    for recipe in recipes():
        end = 0
        for name, at, size in control_fields(recipe):
            assert at >= end, (name, recipe.to_toml())
            end = at + size
        assert end <= policy(recipe)["control"], recipe.to_toml()


def test_words_of_the_control_data_are_aligned() -> None:
    words = {
        "refused_at",
        "misused_at",
        "shared_limit_at",
        "shared_high_at",
        "top_at",
        "high_at",
        "limit_at",
        "rover_at",
    }
    words |= {"count_at", "pending_at", "victim", "bitmap", "summary", "counts", "cached", "carved", "end"}
    for recipe in recipes():
        for name, at, _ in control_fields(recipe):
            wanted = 4 if name in words else recipe.link_bytes if name in ("heads", "tails", "lists") else 1
            assert at % wanted == 0, (name, recipe.to_toml())


def test_list_heads_can_be_linked_to() -> None:
    """Double lists and the tails of FIFO lists hold addresses of heads, which a short link counts in units, unless the
    first block of a list says nothing of its head."""
    for recipe in recipes():
        for pool in policy(recipe)["pools"]:
            general = pool.get("general")
            if (
                general
                and not general["heads_close"]
                and general["free_list"] != 2
                and (general["free_list"] == 0 or general["order"] == 1)
            ):
                unit = 1 << general["links"]["shift"]
                assert general["lists_at"] % unit == 0 and general["list_stride"] % unit == 0, recipe.to_toml()


def test_regions_follow_the_control_data_without_overlap() -> None:
    for recipe in recipes():
        result = policy(recipe)
        end = result["control"]
        for kind, at, size in regions(recipe):
            assert at >= end, (kind, recipe.to_toml())
            end = at + size
        assert result["fixed_end"] >= end
        assert result["fixed_end"] <= result["reach"] <= MAX_REACH


def test_maps_lead_to_the_class_of_each_size_and_address() -> None:
    """From what a map has, only classes that end too early are passed; where steps are even, none is."""
    tried = 0
    for recipe in recipes():
        for pool in policy(recipe)["pools"]:
            fixed = pool.get("fixed")
            if not fixed or not fixed["mapped"]:
                continue
            tried += 1
            sizes, ends, step = fixed["sizes"], fixed["ends_at"], 1 << fixed["size_step"]
            for n in range(sizes[-1] + 1 if fixed["size_map"] else 0):
                result = fixed["size_map"][-(-n // step)]
                wanted = bisect_left(sizes, n)
                assert result == wanted if fixed["size_even"] else result <= wanted, (n, recipe.to_toml())
            for at in range(fixed["blocks_at"][0], fixed["end"]):
                result = fixed["region_map"][at - fixed["blocks_at"][0] >> fixed["region_step"]]
                wanted = bisect_right(ends, at)
                assert result == wanted if fixed["region_even"] else result <= wanted, (at, recipe.to_toml())
            assert len(fixed["size_map"]) <= 257 and len(fixed["region_map"]) <= 256
    assert tried > 10


def test_payloads_are_aligned() -> None:
    for recipe in recipes():
        result = policy(recipe)
        for pool in result["pools"]:
            general, fixed = pool.get("general"), pool.get("fixed")
            if general:
                assert (general["start"] + general["header"]) % (1 << general["unit_shift"]) == 0
            if fixed and not fixed["grow"]:
                assert all((at + fixed["header"]) % recipe.align == 0 for at in fixed["blocks_at"])
        assert result["arena_align"] % recipe.align == 0


@pytest.mark.parametrize("width", [1, 2, 4])
def test_fields_that_are_accessed_at_once_lie_aligned(width: int) -> None:
    for recipe in recipes():
        for pool in policy(recipe)["pools"]:
            for part in (pool.get("general"), pool.get("fixed")):
                if part and part["word"] == {"bytes": width, "natural": 1}:
                    assert recipe.align % width == 0 and part["header"] % width == 0, recipe.to_toml()
            fixed = pool.get("fixed")
            if (
                fixed
                and fixed["grow"]
                and fixed["first_fit"]
                and fixed["links"]["field"] == {"bytes": width, "natural": 1}
            ):
                assert (fixed["header"] - 4) % width == 0, recipe.to_toml()


def test_blocks_that_are_cached_hold_a_link() -> None:
    for recipe in recipes():
        pools = policy(recipe)["pools"]
        for index, pool in enumerate(pools):
            quick = pool.get("quick")
            if quick:
                below = next(other for other in pools[index:] if "quick" not in other)
                behind = below["general"]["trailer"] if "general" in below else 0
                smallest = quick["block_least"] - quick["block_header"] if quick["by_size"] else min(quick["sizes"])
                assert smallest + behind >= recipe.link_bytes, recipe.to_toml()

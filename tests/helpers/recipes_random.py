"""Random valid recipes of every kind, for tests that must hold for all of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from run_length import LONG

from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe
from heapwright._support.errors import HeapwrightError

SIZES = (1, 2, 4, 7, 8, 11, 16, 20, 33, 40, 64, 100, 128, 256, 512, 1024, 1500)


def random_recipe(rng: random.Random) -> Recipe:
    """A valid recipe whose control data and regions fit into what its links reach."""
    while True:
        heap = _heap(rng)
        try:
            recipe = Recipe.from_dict(heap)
            policy(recipe)
        except HeapwrightError:
            continue
        return recipe


def random_recipes(count: int, seed: int) -> list[Recipe]:
    rng = random.Random(seed)
    return [random_recipe(rng) for _ in range(count)]


def recipes_from_both_ends(count: int, seed: int) -> list[Recipe]:
    """Of random recipes those with a pool at the arena's far end."""
    rng, result = random.Random(f"both ends {seed}"), list[Recipe]()
    while len(result) < count:
        recipe = random_recipe(rng)
        result += [recipe] * any(pool.grows_down for pool in recipe.pools)
    return result


def values_of(recipes: Sequence[Recipe]) -> dict[str, Counter[Any]]:
    """How often each key has each value, as "kind.key"; numbers and lists without a default of their own as "some"."""
    results: dict[str, Counter[Any]] = {}
    for recipe in recipes:
        for key in ("align", "link_bytes", "checks", "counters", "aligned_search"):
            results.setdefault(f"heap.{key}", Counter())[getattr(recipe, key)] += 1
        for pool in recipe.pools:
            for key, field in type(pool).model_fields.items():
                if key in (
                    "memory",
                    "sites",
                ):  # memories are recipes of their own, calls here name no sites
                    continue
                value = getattr(pool, key)
                listed = key in ("header", "bins_per_octave") or isinstance(value, str | bool)
                kept = value if listed or value == field.default else "some"
                results.setdefault(f"{pool.kind}.{key}", Counter())[kept] += 1
    return results


def sample(recipes: Sequence[Recipe], turn: int = 0) -> list[Recipe]:
    """In the usual run a few of them, with each value of each key that one of them has; in long runs all.

    Another turn gives others where that is possible.
    """
    if LONG:
        return list(recipes)
    having = [{(key, value) for key, values in values_of([recipe]).items() for value in values} for recipe in recipes]
    missing, taken = set[tuple[str, Any]]().union(*having), set[int]()
    while missing:
        best = max(range(len(recipes)), key=lambda at: (len(having[at] & missing), (at - turn) % 3 == 0))
        taken.add(best)
        missing -= having[best]
    return [recipe for at, recipe in enumerate(recipes) if at in taken]


def _maybe(rng: random.Random, share: float, table: dict[str, Any], key: str, value: Any) -> None:
    if rng.random() < share:
        table[key] = value


def _heap(rng: random.Random) -> dict[str, Any]:
    pools = [_compact(rng)] if rng.random() < 0.08 else _pools(rng)
    for pool in pools:
        _maybe(rng, 0.1, pool, "min_size", rng.choice([1, 8, 50]))
        _maybe(rng, 0.1, pool, "max_size", rng.choice([64, 500, 2000]))
    pools = _with_far(pools)
    _age(pools)
    _refill(pools)
    heap = {
        "align": rng.choice([1, 2, 4, 4, 4, 8, 8, 16]),
        "link_bytes": rng.choice([2, 4]),
        "checks": _level(rng.random(), pools[0]["kind"] == "compact"),
        "pool": pools,
    }
    apart = random.Random(repr(heap))
    heap["counters"] = apart.random() < 0.3
    heap["aligned_search"] = apart.choice(["blocks", "multiple", "twice"])
    return _floating(rng, heap) if rng.random() < 0.08 else heap


def _with_far(pools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pools, of some heaps with one at the arena's far end; drawn apart, so that the others stay what they were."""
    apart = random.Random(repr(pools))
    last = pools[-1]
    if last.get("top") != "last" or "region" in last or apart.random() < 0.5:
        return pools
    far = _general(apart, last["header"]) | {"place": "ends", "top": "last", "boundary_tags": True}
    far |= {"coalesce": "immediate", "grow_least": 0}
    _maybe(apart, 0.5, far, "max_size", apart.choice([64, 500, 2000]))
    _maybe(apart, 0.5, far, "min_size", apart.choice([8, 50, 64]))
    front = [pool for pool in pools if pool["kind"] == "quick"]
    return [*front, far, *(pool for pool in pools if pool not in front)]


def _level(drawn: float, moving: bool) -> str:
    """A level of checks, of a number from 0 to 1."""
    return "full" if drawn < 0.1 and not moving else "neighbours" if drawn < 0.2 else "frees" if drawn < 0.4 else "none"


def _floating(rng: random.Random, heap: dict[str, Any]) -> dict[str, Any]:
    """The heap with general pools whose blocks start at units below the alignment."""
    unit = rng.choice([4, 8])
    pools = [pool for pool in heap["pool"] if pool["kind"] != "quick"]
    for pool in pools:
        if pool["kind"] == "general":
            pool |= {"unit": unit, "header": unit, "boundary_tags": False, "links_in": "payload"}
        elif pool.get("counts") == "grow":
            pool["header"] = unit
    return heap | {"align": rng.choice([2 * unit, 16]), "link_bytes": 4, "pool": pools}


def _pools(rng: random.Random) -> list[dict[str, Any]]:
    header = rng.choice([1, 2, 2, 3, 4, 4, 4, 4, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 13, 14, 15, 16])
    pools = [_quick(rng) for _ in range(rng.choice([0, 0, 1, 1, 2]))]
    general = rng.choice([0, 1, 1, 1, 1, 1, 2, 3])
    pools += [_general(rng, rng.choice([header, 4, 8])) | _region(rng) for _ in range(general - 1)]
    if general == 0 or rng.random() < 0.3:
        pools.append(_fixed(rng, header, "grow" if rng.random() < 0.5 else "counted"))
    if rng.random() < 0.1:
        pools.append(_fixed(rng, header, "counted"))
    if rng.random() < 0.2:
        pools.append(_buddy(rng, rng.choice([header, 4])) | _region(rng))
    if rng.random() < 0.2:
        pools.append(_partition(rng, rng.randint(1, 40)))
    if rng.random() < 0.1:
        rng.shuffle(pools)
    last = rng.choice(["general"] * 4 + ["buddy", "partition"])
    if last == "buddy":
        pools.append(_buddy(rng, header))
    elif last == "partition":
        pools.append(_partition(rng, "grow"))
    elif general:
        pools.append(_general(rng, header) | (_region(rng) if rng.random() < 0.1 else {}))
    quick = [pool for pool in pools if pool["kind"] == "quick"]
    if all(pool.get("victim_up_to") for pool in pools if pool not in quick) and rng.random() < 0.7:
        for pool in quick:
            pool["keep"] = "apart"
    return pools


def _quick(rng: random.Random) -> dict[str, Any]:
    quick: dict[str, Any] = {"kind": "quick", "flush": rng.choice(["before-refusing", "over-limit", "before-growing"])}
    if rng.random() < 0.3:
        quick["up_to"] = rng.choice([8, 32, 128, 512, 4096])
    else:
        quick["sizes"] = rng.sample(SIZES, rng.randint(1, 4))
    _maybe(rng, 0.5, quick, "limit_blocks", rng.randint(1, 5))
    _maybe(rng, 0.3, quick, "flush_from", rng.choice([1, 100, 500]))
    return quick


def _leave_out(pool: dict[str, Any], *keys: str) -> None:
    for key in keys:
        pool.pop(key, None)


def _age(pools: list[dict[str, Any]]) -> None:
    """Let some quick pools give back what waits idle, and some have lists for several sizes, where that is valid."""
    apart = random.Random(str(pools))
    bounds = {"min_size", "max_size"}
    for at, pool in enumerate(pools):
        below = [other for other in pools[at + 1 :] if other["kind"] != "quick"]
        plain = len(below) == 1 and below[0]["kind"] in ("general", "partition") and not bounds & {*below[0]}
        if pool["kind"] == "quick" and apart.random() < 0.5:
            pool |= {"flush": "idle", "idle_share": apart.choice([1 / 1024, 1 / 64, 0.5])}
            _leave_out(pool, "limit_blocks")
            pool["release_most"] = random.Random(str(pool)).choice([0, 1, 2, 4, 9])
        if "up_to" in pool and plain and below[0].get("round_to") != "power-of-two" and apart.random() < 0.7:
            pool["lists_per_octave"] = apart.choice([2, 4, 8, 16, 32])


def _refill(pools: list[dict[str, Any]]) -> None:
    """Let some quick pools have several blocks cut at a time, where that is valid."""
    lists = [pool for pool in pools if pool["kind"] == "quick"]
    below = [pool for pool in pools if pool["kind"] != "quick"]
    ages = all(pool.get("flush") == "idle" for pool in lists)
    if not ages or len(below) != 1 or below[0]["kind"] != "general" or {"min_size", "max_size"} & {*below[0]}:
        return
    if below[0].get("split") == "never" or below[0].get("round_to") == "power-of-two" or below[0].get("unit", 16) < 16:
        return
    for pool in lists:
        pool["refill"] = random.Random(str(pool)).choice([0, 2, 5, 16, 128])


def _region(rng: random.Random) -> dict[str, Any]:
    return {"region": rng.choice([200, 3000, 9000])}


def _general(rng: random.Random, header: int) -> dict[str, Any]:
    """A general pool whose keys do not contradict one another: most that are drawn do, and few heaps would have one."""
    while True:
        pool = _general_keys(rng, header)
        try:
            Recipe.from_dict({"align": 4, "pool": [pool]})
        except HeapwrightError:
            continue
        return pool


RESIZES = (
    *("both-sides", "both-sides", "down-first", "smaller-side", "with-rest"),
    *("keep", "keep-half", "trim", "shrink", "move"),
)
"""Of which pools with neither tags nor a last remainder have no both-sides, down-first and smaller-side."""


def _general_keys(rng: random.Random, header: int) -> dict[str, Any]:
    binned = rng.random() < 0.5
    kinds = ["immediate", "immediate", "immediate", "never", "forward", "lazy", "lazy", "deferred", "sweep"]
    coalesce = rng.choice(kinds)
    fits = ["first", "best", "worst", "exact"] if binned else ["first", "next", "next", "best", "worst", "exact"]
    general: dict[str, Any] = {
        "kind": "general",
        "header": header,
        "boundary_tags": rng.random() < 0.6,
        "free_list": rng.choice(["double", "single"] if binned else ["double", "single", "implicit", "tree", "tree"]),
        "order": "address" if coalesce == "lazy" else rng.choice(["lifo", "fifo", "address", "size"]),
        "fit": rng.choice(fits),
        "split": rng.choice(["always", "always", "never", 32, 100]),
        "split_from": rng.choice(["head", "tail"]),
        "coalesce": coalesce,
    }
    _maybe(rng, 0.3, general, "search_percent", rng.choice([0, 1, 10, 50, 99]))
    _maybe(rng, 0.3, general, "coalesce_from", rng.choice([24, 64, 200]))
    _maybe(rng, 0.2, general, "unit", rng.choice([8, 16, 64]))
    _maybe(rng, 0.15, general, "trailer", rng.choice([1, 4, 7]))
    _maybe(rng, 0.3, general, "tag_in", "header")
    _maybe(rng, 0.3, general, "links_in", "header")
    _maybe(rng, 0.15, general, "round_to", "power-of-two")
    general["top"] = rng.choice(["last", "last", "bump", "list"])
    if general["free_list"] == "tree":
        general["fit"] = rng.choice(["first", "best"])
    if general["order"] == "address" and not binned and general["free_list"] != "implicit" and rng.random() < 0.3:
        general |= {"top": "extend", "boundary_tags": False}
    if general["top"] == "bump" and not binned:
        _maybe(rng, 0.5, general, "grow_least", rng.choice([40, 128, 1000]))
    _maybe(rng, 0.15, general, "search_most", rng.choice([1, 3, 16]))
    roving = {"next": "freed", "first": "tried" if binned else "lowest-free", "exact": "lowest-free"}
    _maybe(rng, 0.5, general, "search_from", roving.get(general["fit"], "start"))
    if general.get("search_from") == "tried":
        general["order"] = "fifo"
    _maybe(rng, 0.3, general, "remainder", "filed")
    _maybe(rng, 0.3, general, "merged", rng.choice(["in-place", "at-next"]))
    _maybe(rng, 0.3, general, "merge_until", "enough")
    _maybe(rng, 0.5, general, "resize", rng.choice(RESIZES))
    _maybe(rng, 0.1, general, "max_block", rng.choice([1 << 12, 1 << 16, 1 << 30]))
    _maybe(rng, 0.2, general, "min_block", rng.choice([header, 16, 32, 48, 100]))
    if binned:
        general["bins"] = rng.choice(["exact", "exact", "lea", "two-level", "half-fit", "power-of-two"])
        _maybe(rng, 0.3, general, "linear_up_to", rng.choice([0, 64, 128, 1024]))
        _maybe(rng, 0.5, general, "bins_per_octave", rng.choice([1, 2, 4, 8, 16, 32]))
        if general["bins"] in ("two-level", "half-fit") and general["top"] == "list":
            _maybe(rng, 0.5, general, "round_to", "bin")
        _maybe(rng, 0.3, general, "close_bins", rng.randint(1, 5))
        _maybe(rng, 0.3, general, "bin_by", "payload")
        _maybe(rng, 0.3, general, "large_order", rng.choice(["lifo", "fifo", "address", "size"]))
        _maybe(rng, 0.4, general, "unsorted", True)
        _maybe(rng, 0.3, general, "most_bins", rng.choice([1, 40, 130, 600]))
        if rng.random() < 0.4:
            general |= {"victim_up_to": rng.choice([1, 64, 500, 4000]), "boundary_tags": True, "coalesce": "immediate"}
    return general


def _fixed(rng: random.Random, header: int, growth: str) -> dict[str, Any]:
    sizes = rng.sample(SIZES, rng.randint(1, 5))
    fixed: dict[str, Any] = {
        "kind": "fixed",
        "sizes": sizes,
        "find": rng.choice(["freelist", "first-fit"]),
        "fall_through": rng.random() < 0.5,
    }
    if growth == "grow":
        fixed |= {"counts": "grow", "header": header}
        _maybe(rng, 0.5, fixed, "page", rng.choice([100, 512, 4096]))
    else:
        fixed |= {"counts": [rng.randint(1, 12) for _ in sizes], "header": rng.choice([0, 0, 4, header])}
    return fixed


BEYOND_THE_MODEL = set(
    """victim_up_to close_bins trailer tag_in links_in round_to top grow_least search_most search_from remainder merged
    merge_until max_block bin_by large_order unsorted most_bins""".split()  # noqa: SIM905
)
"""Keys of general pools that `model_heap.py` leaves at their defaults; the zoo's behaviour tables cover them."""


def random_general_recipe(rng: random.Random) -> Recipe:
    """A valid recipe of one general pool that the model of the tests knows, in an arena without end."""
    while True:
        pool = _general(rng, rng.choice([4, 4, 8, 5, 16]))
        pool = {key: value for key, value in pool.items() if key not in BEYOND_THE_MODEL}
        pool |= {"resize": rng.choice(["in-place", "in-place", "keep", "keep-half", "move"])}
        pool |= {"coalesce": "deferred"} if pool["coalesce"] == "sweep" else {}
        align = rng.choice([1, 2, 4, 8, 16])
        if pool.get("unit", align) < align:
            continue  # in the model payloads do not float in their blocks
        try:
            return Recipe.from_dict({"align": align, "pool": [pool]})
        except HeapwrightError:
            continue


def _buddy(rng: random.Random, header: int) -> dict[str, Any]:
    buddy: dict[str, Any] = {"kind": "buddy", "header": header, "min_block": rng.choice([8, 16, 32, 64])}
    _maybe(rng, 0.4, buddy, "max_block", rng.choice([64, 512, 4096, 65536]))
    return buddy


def _partition(rng: random.Random, count: Any) -> dict[str, Any]:
    partition: dict[str, Any] = {
        "kind": "partition",
        "count": count,
        "order": rng.choice(["address", "lifo", "size"]),
        "fit": rng.choice(["first", "best"]),
        "coalesce": rng.choice(["immediate", "immediate", "immediate", "never"]),
    }
    _maybe(rng, 0.9, partition, "size", rng.choice([1, 8, 16, 32, 64, 100, 128, 256]))
    _maybe(rng, 0.7, partition, "descriptor_bytes", rng.choice([8, 13, 16, 20]))
    _maybe(rng, 0.4, partition, "lists", rng.choice([2, 3, 5, 8, 32]))
    return partition


def _compact(rng: random.Random) -> dict[str, Any]:
    return {
        "kind": "compact",
        "when": rng.choice(["lazy", "eager"]),
        "header": rng.choice([0, 0, *range(4, 17)]),
    }

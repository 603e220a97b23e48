"""A search tree of free blocks: it finds what a list in order of address does, in fewer steps, counted one by one."""

from __future__ import annotations

import math
from typing import Any

import pytest
from metric_values import known
from pool_recipes import random_trace, recipe

from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo.facts import facts
from heapwright._replay.pictures import HEAP_MAP_STATES, heap_map
from heapwright._replay.replay import replay
from heapwright._traces.trace import Trace

FITS = ("first", "best")
SHAPES: list[dict[str, Any]] = [
    {},
    {"boundary_tags": False},
    {"coalesce": "never"},
    {"coalesce": "deferred"},
    {"coalesce": "forward"},
    {"coalesce_from": 64},
    {"split_from": "tail"},
    {"split": 64},
    {"split": "never"},
    {"top": "list"},
    {"top": "bump", "boundary_tags": False, "grow_least": 512},
    {"links_in": "header", "header": 12},
    {"header": 2, "unit": 16},
    {"resize": "both-sides"},
]


def tree(fit: str, **keys: Any) -> Recipe:
    return recipe({"kind": "general", "free_list": "tree", "fit": fit, **keys})


def by_address(fit: str, **keys: Any) -> Recipe:
    return recipe({"kind": "general", "free_list": "double", "order": "address", "fit": fit, **keys})


def objects(trace: Trace, heap: Recipe) -> list[tuple[int, ...]]:
    """Where payload lies, from the first block on, after seven of the calls."""
    blocks = heap_map(trace, heap, columns=7)["blocks"]
    used = blocks[blocks["state"] == HEAP_MAP_STATES.index("payload in use")]
    start = policy(heap)["pools"][0]["general"]["start"]
    return [(int(run["column"]), int(run["offset"]) - start, int(run["size"])) for run in used]


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("keys", SHAPES, ids=str)
def test_every_object_lies_where_a_list_by_address_puts_it(fit: str, keys: dict[str, Any]) -> None:
    for seed in (1, 2):
        trace = random_trace(seed, calls=1200)
        assert objects(trace, tree(fit, **keys)) == objects(trace, by_address(fit, **keys))
        replay(trace, tree(fit, **keys), check_invariants=True)


def calls(*sizes: int, freed: tuple[int, ...] = (), then: tuple[int, ...] = ()) -> Trace:
    """Objects of these sizes, some of which are freed, and some more."""
    op = [0] * len(sizes) + [3] * len(freed) + [0] * len(then)
    id_ = [*range(len(sizes)), *freed, *range(len(sizes), len(sizes) + len(then))]
    return Trace.from_columns(op=op, id=id_, size=[*sizes, *[0] * len(freed), *then])


def test_accesses_are_those_of_a_walk_down_the_tree() -> None:
    """Blocks of 40, 16, 24 and 16 bytes; the first and the third are freed, then 24 bytes are cut from the first."""
    sizes = (36, 12, 20, 12)
    steps = [
        calls(*sizes),
        calls(*sizes, freed=(0,)),
        calls(*sizes, freed=(0, 2)),
        calls(*sizes, freed=(0, 2), then=(20,)),
    ]
    counted = [int(known(replay(trace, tree("first"))["accesses"])) for trace in steps]
    block = 1 + 1 + 1 + 1 + 2  # its word; the top; the next word, read and written; word and tag of the free block
    assert counted[1] - counted[0] == block + 1 + 1 + 2, "an empty root; the link to the node, and its own two"
    assert counted[2] - counted[1] == block + 3 + 1 + 2, "root, word and link of the block above; then the same"
    search = 1 + 1 + 1  # root, word of the block above, its link to what comes before
    unlink = 2 + 1  # both links of it, the root
    rest = 3 + 1 + 2  # root, word and link of the one left; the link to the remainder, and its own two
    assert counted[3] - counted[2] == search + unlink + rest + 1 + 2, (
        "and the word in use; word and tag of what is left"
    )


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("size", [24, 144, 2584])
def test_steps_grow_with_the_logarithm_of_the_number_of_blocks(fit: str, size: int) -> None:
    """Equal blocks at equal distances are the hardest: nothing but the hash of their addresses keeps the tree low."""
    for count in (64, 512, 4096):
        trace = calls(*[size, 12] * count, freed=tuple(range(0, 2 * count, 2)), then=(size,) * count)
        result = replay(trace, tree(fit))
        walked = replay(trace, by_address(fit, coalesce="never"))
        assert known(result["footprint_bytes"]) <= known(walked["footprint_bytes"])
        deepest = 3 * math.log2(count) + 4
        assert max(known(result["accesses_malloc_max"]), known(result["accesses_free_max"])) < 12 + 3 * deepest


def test_a_tree_has_two_links_and_is_not_bounded() -> None:
    assert facts(tree("best")).smallest_block_bytes == facts(by_address("best")).smallest_block_bytes == 16
    assert not facts(tree("best")).bounded
    assert tree("best", order="fifo").hash == tree("best").hash, "a tree has its own order"

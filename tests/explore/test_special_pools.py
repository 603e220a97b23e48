"""Special pools for a profile: Mamagkakis et al. 2007, section 4, A."""

from __future__ import annotations

from collections import Counter

import pytest
from case_tables import each
from networks import table

from heapwright._explore.special_pools import SPECIAL_POOLS, counted_special_pools, special_pools
from heapwright._recipes.pools import Fixed
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo.catalogue import load
from heapwright._replay.replay import replay
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace


def derived(sizes: list[int]) -> Recipe:
    rows = [{"size": size, "share": count / len(sizes)} for size, count in Counter(sizes).items()]
    return special_pools({"name": "made", "sizes": rows})


@each(
    ("sizes", "classes"),
    [
        ([40] * 43 + [1500] * 26 + list(range(41, 1500, 47)), (40, 64, 128, 256, 512, 1024, 1500)),
        ([100] * 5 + list(range(200, 300, 5)), (100, 128, 256, 296)),
        ([40] * 9 + [90] * 3 + [700, 1500], (40, 64, 92, 128, 256, 512, 1024, 1500)),
        ([7, 7, 7, 30], (8, 16, 32)),
        ([70], (72,)),
        ([64] * 9, (64,)),
        ([66] * 5 + [68] * 5 + [10], (16, 32, 64, 68)),
        ([1] * 20 + [2048, 2049], (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 2052)),
    ],
)
def test_pools_are_for_frequent_sizes_powers_of_two_and_the_largest(sizes: list[int], classes: tuple[int, ...]) -> None:
    pool = derived(sizes).pools[0]
    assert isinstance(pool, Fixed)
    assert pool.sizes == classes


def test_the_papers_own_sizes_are_those_of_the_zoo() -> None:
    made = derived([40] * 43 + [1500] * 26 + list(range(41, 1500, 47)))
    assert made.pools == load(SPECIAL_POOLS).pools
    assert made.about.startswith("Special pools for made: sizes with at least 10% of its requests (40, 1500),")


def test_where_no_size_is_frequent_it_says_so() -> None:
    made = derived(list(range(1, 200)))
    assert (
        made.about
        == "Special pools for made: sizes with at least 10% of its requests (none),\npowers of two, and the largest."
    )


def test_every_request_of_the_profile_has_a_pool() -> None:
    sizes = [*range(1, 700, 3), 699, 699]
    trace = Trace.from_columns(op=[0] * len(sizes), id=list(range(len(sizes))), size=sizes, name="made")
    recipe = derived(sizes)
    pools = recipe.model_copy(update={"pools": recipe.pools[:1]})
    assert replay(trace, pools)["failed"] == 0


def test_no_requests_need_no_pools() -> None:
    with pytest.raises(HeapwrightError, match="made: no request that a heap can serve"):
        special_pools({"name": "made", "sizes": []})


def test_counts_are_the_most_of_a_class_that_wait_at_once() -> None:
    """Of four consecutive packets three have 40 bytes, and three of others 1500."""
    sizes = [40, 40, 40, 1500, 1500, 40, 1500, 40]
    packets = table(list(range(0, 800, 100)), [size + 14 for size in sizes], [1] * 8)
    recipe = counted_special_pools(packets, "made", limit=4)
    (pool,) = recipe.pools
    assert isinstance(pool, Fixed) and (pool.sizes, pool.counts) == ((40, 1500), (3, 3))
    (fewer,) = counted_special_pools(packets, "made", limit=2).pools
    assert isinstance(fewer, Fixed) and fewer.counts == (2, 2)

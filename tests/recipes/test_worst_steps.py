"""The bound on a call's accesses: no trace exceeds it on any recipe, adversaries come near it, or why there is none."""

from __future__ import annotations

import random

import pytest
from case_tables import each
from recipes_random import random_recipes
from traces_random import churning

from heapwright._recipes.recipe import Recipe
from heapwright._recipes.worst_steps import worst_steps
from heapwright._recipes.zoo import catalogue
from heapwright._replay.adversarial_search import find_worst
from heapwright._replay.replay import replay
from heapwright._traces.trace import Trace

GENERAL = 'align = 4\n[[pool]]\nkind = "general"\n'
NEAR = {"tlsf": 2, "half-fit": 2, "fixed-pool": 3, "sos": 3, "kingsley": 2, "zephyr-sys-heap": 4}
"""Bounded heaps, and how many times what an adversary found their bound is at most."""


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    sizes = [1, 8, 12, 16, 24, 40, 64, 100, 128, 256, 300, 512, 700, 1024, 1500, 2100, 4000, 9000]
    return [churning(random.Random(seed), 1500, sizes, share, f"t{seed}") for seed, share in ((1, 0.45), (2, 0.49))]


def dearest(trace: Trace, recipe: Recipe, arena: int | None = None) -> tuple[int, int]:
    output = replay(trace, recipe, arena=arena)
    return int(output["accesses_malloc_max"] or 0), int(output["accesses_free_max"] or 0)


def test_no_trace_exceeds_the_bound_of_a_random_recipe(traces: list[Trace]) -> None:
    tried = 0
    for recipe in random_recipes(900, seed=11):
        steps = worst_steps(recipe)
        if steps.malloc is None or steps.free is None:
            assert steps.reason
            assert steps.most is None
            continue
        tried += 1
        for trace in traces:
            for arena in (None, 60_000):
                if steps.but and replay(trace, recipe, arena=arena)["failed"]:
                    continue  # lists are emptied before a request is refused
                malloc, free = dearest(trace, recipe, arena)
                assert malloc <= steps.malloc, recipe.to_toml()
                assert free <= steps.free, recipe.to_toml()
    assert tried > 25


def test_a_next_fit_malloc_may_pass_each_block_of_its_search_twice_and_a_first_fit_one_once() -> None:
    """It walks from where it stopped to the end, and from the start."""
    search = {
        fit: [worst_steps(Recipe.parse(f'{GENERAL}fit = "{fit}"\nsearch_most = {most}\n')).malloc for most in (8, 16)]
        for fit in ("first", "next")
    }
    assert search["first"] == [47, 63], "two accesses a block that is passed"
    assert search["next"] == [67, 99], "four accesses a block that is passed"


def test_lists_that_give_back_a_few_blocks_at_a_time_are_bounded(traces: list[Trace]) -> None:
    lists = 'kind = "quick"\nup_to = 132\nflush = "idle"\n'
    bins = 'kind = "general"\nbins = "exact"\nfit = "best"\nsearch_most = 16\n'
    heap = f"align = 8\n[[pool]]\n{lists}release_most = %d\n[[pool]]\n{bins}"
    results = {}
    for most in (1, 4, 9):
        recipe = Recipe.parse(heap % most)
        steps = worst_steps(recipe)
        assert steps.malloc is not None and steps.free is not None
        assert "but for a request that nothing serves before all lists are emptied" in steps.sentence()
        results[most] = steps.malloc
        for trace in traces:
            malloc, free = dearest(trace, recipe)
            assert malloc <= steps.malloc and free <= steps.free
    assert results[1] < results[4] < results[9]
    assert worst_steps(Recipe.parse(heap % 0)).most is None
    assert dearest(traces[0], Recipe.parse(heap % 0))[0] > dearest(traces[0], Recipe.parse(heap % 4))[0]


def test_no_trace_exceeds_the_bound_of_a_zoo_heap(traces: list[Trace]) -> None:
    for recipe in catalogue.recipes():
        most = worst_steps(recipe).most
        if most is not None:
            assert all(max(dearest(trace, recipe)) <= most for trace in traces), recipe.name


@pytest.mark.parametrize("name", NEAR)
def test_an_adversary_comes_near_the_bound_and_not_beyond(traces: list[Trace], name: str) -> None:
    recipe = catalogue.load(name)
    result, most = find_worst(traces[0], recipe, "accesses", tries=30).value, worst_steps(recipe).most
    assert most is not None
    assert result <= most <= NEAR[name] * result


def test_a_walk_with_a_bound_is_bounded_and_the_adversary_shows_the_other() -> None:
    trace = churning(random.Random(3), 3000, [16, 700, 800, 900, 5000, 5200], 0.49, "large")
    text = GENERAL + 'fit = "best"\n'
    walking, bounded = Recipe.parse(text), Recipe.parse(text + "search_most = 8\n")
    most = worst_steps(bounded).most
    assert worst_steps(walking).most is None
    assert most is not None
    assert find_worst(trace, walking, "accesses", tries=30).value > most
    assert find_worst(trace, bounded, "accesses", tries=30).value <= most


@each(
    ("text", "reason"),
    [
        (GENERAL + 'fit = "best"\n', "best fit walks a list"),
        (GENERAL + 'bins = "exact"\nfit = "best"\n', "best fit walks a list"),
        (GENERAL + 'bins = "exact"\ncoalesce = "deferred"\n', "merging passes all blocks"),
        (GENERAL + 'free_list = "implicit"\n', "a search walks all blocks"),
        (GENERAL + 'free_list = "tree"\nfit = "best"\n', "tree"),
        (GENERAL + 'order = "address"\nfit = "first"\n', "in order of address"),
        (GENERAL + 'bins = "two-level"\nboundary_tags = false\n', "without boundary tags"),
        ('[[pool]]\nkind = "quick"\nup_to = 64\n[[pool]]\nkind = "general"\nbins = "two-level"\n', "a flush empties"),
        ('checks = "frees"\n[[pool]]\nkind = "general"\nbins = "two-level"\n', "the checks"),
        ('[[pool]]\nkind = "compact"\n', "closing holes"),
        ('[[pool]]\nkind = "partition"\n', "free groups"),
        ('[[pool]]\nkind = "fixed"\nsizes = [16]\nfind = "first-fit"\nheader = 8\n', "chain of blocks"),
    ],
)
def test_why_there_is_no_bound_is_told(text: str, reason: str) -> None:
    steps = worst_steps(Recipe.parse(text))
    assert steps.most is None
    assert reason in steps.sentence()


def test_lists_with_a_limit_are_bounded_and_cost_what_a_flush_of_them_does() -> None:
    text = '[[pool]]\nkind = "quick"\nup_to = 64\nlimit_blocks = %d\n[[pool]]\nkind = "general"\nbins = "two-level"\n'
    few, more = (worst_steps(Recipe.parse(text % limit)).malloc for limit in (2, 20))
    assert few is not None and more is not None and more > 5 * few

"""Recipes that must do the same on a trace do, and no others are taken for them."""

from __future__ import annotations

from typing import Any

import pytest

from heapwright._explore import evaluation
from heapwright._explore.result_cache import ResultCache, form_of
from heapwright._recipes.recipe import Recipe
from heapwright._replay import engine
from heapwright._replay.engine import GivenUpError, Margins, ReplayProgress, Watch
from heapwright._replay.replay import Replayed, replay, replay_with_margins
from heapwright._traces.trace import Trace

#  | 104 | 24 | 104 |  ->  free the first and the last  ->  48 of the first: 56 are left
LEAVES_56 = Trace.from_columns(op=[0, 0, 0, 0, 3, 3, 0], id=[1, 2, 3, 4, 1, 3, 5], size=[100, 20, 100, 20, 0, 0, 40])


def general(**keys: Any) -> Recipe:
    return Recipe.from_dict({"align": 8, "pool": [{"kind": "general", **keys}]})


class Counted:
    """Takes recipes from others on a trace, and counts those that are replayed."""

    def __init__(self, trace: Trace, most: int = 100) -> None:
        self.trace, self.cache, self.replayed = trace, ResultCache(trace, most), list[Recipe]()

    def metrics(self, recipe: Recipe, watch: Watch | None = None) -> dict[str, Any]:
        def replays() -> Replayed:
            self.replayed.append(recipe)
            return replay_with_margins(self.trace, recipe, watch=watch)

        return self.cache.metrics(recipe, watch, replays)


def test_margins_reach_to_what_was_compared() -> None:
    splits = ("always", 56, 57, "never")
    output = {split: replay_with_margins(LEAVES_56, general(split=split)).margins for split in splits}
    most = 2**32 - 1
    assert output["always"] == output[56] == Margins(0, 56, 0, most)
    assert output[57] == output["never"] == Margins(56, most, 0, most)


def test_a_threshold_beyond_the_margins_is_replayed() -> None:
    counted = Counted(LEAVES_56)
    split = [counted.metrics(general(split=least)) for least in ("always", 24, 56)]
    whole = [counted.metrics(general(split=least)) for least in (57, 64, 5000, "never")]
    assert [item.pools[0].split for item in counted.replayed] == ["always", 57]  # type: ignore[union-attr]
    assert split == split[:1] * 3 and whole == whole[:1] * 4
    assert split[0] == replay(LEAVES_56, general(split=56)) != replay(LEAVES_56, general(split=57)) == whole[0]


def test_blocks_too_small_to_merge_are_compared_too() -> None:
    """Four neighbours of 104 bytes die and merge where these are enough."""
    merging = Trace.from_columns(
        op=[0] * 5 + [3] * 4 + [0], id=[1, 2, 3, 4, 5, 1, 3, 2, 4, 6], size=[100] * 5 + [0] * 4 + [400]
    )
    counted = Counted(merging)
    merged = [counted.metrics(general(coalesce_from=least)) for least in (24, 64, 104)]
    alone = [counted.metrics(general(coalesce_from=least)) for least in (105, 200, 5000)]
    assert [item.pools[0].coalesce_from for item in counted.replayed] == [24, 105]  # type: ignore[union-attr]
    assert merged == merged[:1] * 3 and alone == alone[:1] * 3
    assert merged[0] != alone[0] == replay(merging, general(coalesce_from=5000))


def test_victims_that_serve_the_same_requests_are_alike() -> None:
    sized = [{"bins": "exact", "fit": "best", "victim_up_to": size} for size in (40, 44, 60, 92, 100, 2000)]
    counted = Counted(LEAVES_56)
    results = [counted.metrics(general(**keys)) for keys in sized]
    assert [item.pools[0].victim_up_to for item in counted.replayed] == [40, 100]  # type: ignore[union-attr]
    assert results == [replay(LEAVES_56, general(**keys)) for keys in sized]


def test_what_an_aligned_request_takes_of_a_victim_is_not_told_by_requests() -> None:
    aligned = Trace.from_columns(op=[0, 3], id=[1, 1], size=[40, 0], align=[64, 0])
    counted = Counted(aligned)
    for size in (44, 60):
        counted.metrics(general(bins="exact", fit="best", victim_up_to=size))
    assert len(counted.replayed) == 2


@pytest.mark.parametrize(
    "heap",
    [
        {"pool": [{"kind": "buddy"}]},
        {"pool": [{"kind": "general", "max_size": 64, "region": 4096}, {"kind": "general"}]},
        {"pool": [{"kind": "general", "top": "list"}]},
        {"pool": [{"kind": "general"}], "threads": "cached"},
    ],
)
def test_what_margins_do_not_tell_of_is_like_no_other(heap: dict[str, Any]) -> None:
    assert form_of(Recipe.from_dict({"align": 8, **heap})) is None


def test_no_more_than_asked_for_are_kept() -> None:
    counted = Counted(LEAVES_56, most=1)
    for least in ("always", 56, "never", 57):
        counted.metrics(general(split=least))
    assert [item.pools[0].split for item in counted.replayed] == ["always", "never", 57]  # type: ignore[union-attr]


def test_what_was_given_up_is_shown_for_those_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are pruned as well, or replayed if more of them is requested."""
    monkeypatch.setattr(engine, "WATCHED_CALLS", 3)
    counted, shown = Counted(LEAVES_56), list[ReplayProgress]()

    def look(so_far: ReplayProgress) -> bool:
        shown.append(so_far)
        return False

    with pytest.raises(GivenUpError) as first:
        counted.metrics(general(split=32), lambda _: False)
    with pytest.raises(GivenUpError) as second:
        counted.metrics(general(split="never"), look)
    assert second.value.so_far == first.value.so_far == shown[0]
    assert shown[0].calls == 3 and len(counted.replayed) == 1
    assert counted.metrics(general(split=40), lambda _: True) == replay(LEAVES_56, general(split=40))
    assert counted.metrics(general(split=48), lambda _: False) == replay(LEAVES_56, general(split=48))
    assert len(counted.replayed) == 2


def test_a_trier_takes_what_is_alike_from_others() -> None:
    requested = list[Recipe]()

    def measure(trace: Trace, recipe: Recipe, watch: Watch | None) -> Replayed:
        requested.append(recipe)
        return replay_with_margins(trace, recipe, watch=watch)

    evaluator = evaluation.Evaluator([LEAVES_56], measure)
    assert evaluator._replayed(0, general(split=24), None) == evaluator._replayed(0, general(split=40), None)
    assert len(requested) == 1

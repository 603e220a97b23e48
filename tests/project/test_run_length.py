"""What the usual run takes of what long runs have whole: each turn another, and heaps with each value of each key."""

from __future__ import annotations

import pytest
import recipes_random
import run_length
from recipes_random import sample, values_of

from heapwright._recipes.zoo import catalogue as zoo


@pytest.fixture(params=[False, True], ids=["usual", "long"])
def long(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    for module in (run_length, recipes_random):
        monkeypatch.setattr(module, "LONG", request.param)
    return bool(request.param)


def test_turns_go_through_all(long: bool) -> None:
    taken = [run_length.by_turns("abc", turn) for turn in range(4)]
    assert taken == ([list("abc")] * 4 if long else [["a"], ["b"], ["c"], ["a"]])
    assert run_length.by_turns([], 1) == []


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_a_sample_has_each_value_of_each_key(turn: int, long: bool) -> None:
    whole = zoo.recipes()
    taken = sample(whole, turn)
    assert len(taken) == len(whole) if long else len(taken) < 0.6 * len(whole)
    assert {key: set(values) for key, values in values_of(taken).items()} == {
        key: set(values) for key, values in values_of(whole).items()
    }
    assert sample(whole, turn) == taken

"""Few pairs of a random recipe and a random trace make the engine walk far: accesses that it makes, not time.

bench/cliffs.py times pairs, in the nightly run as well.
"""

from __future__ import annotations

import cliffs
from click.testing import CliRunner
from run_length import EFFORT, SEED, brief

from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._replay.engine import run
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

FAR = 1_000
"""Accesses a call."""


def made(trace: Trace, recipe: Recipe) -> float | None:
    """Accesses a call that the engine made to count those of a heap; None where the recipe cannot begin."""
    try:
        result, _ = run(trace, recipe, policy_struct(recipe), None)
    except HeapwrightError:
        return None
    return float(result.reads + result.writes - result.skipped - result.moved / 2) / len(trace)


def test_few_pairs_walk_far() -> None:
    results = [made(*pair) for pair in cliffs.pairs(brief(100, 500) * EFFORT, 7 + SEED, ())]
    steps = [item for item in results if item is not None]
    far = sum(step > FAR for step in steps)
    assert len(steps) > 80
    assert far <= len(steps) * 0.03, f"{far} of {len(steps)}"
    assert max(steps) < 20 * FAR


def test_more_slow_pairs_than_allowed_fail() -> None:
    output = CliRunner().invoke(cliffs.main, ["--pairs", "20", "--bound", "0", "--most", "3"])
    assert output.exit_code == 1
    assert "above 0 ns a call" in output.stdout
    assert CliRunner().invoke(cliffs.main, ["--pairs", "20", "--bound", "1e9", "--most", "0"]).exit_code == 0

"""What is learnt of many traces at once: fronts, choices and the split of recordings, worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bench() -> Iterator[tuple[ModuleType, ModuleType]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "bench")
        import axes
        import universal

        yield axes, universal


def test_a_member_of_the_front_saves_enough_of_one_with_less_memory(bench: tuple[ModuleType, ModuleType]) -> None:
    _, universal = bench
    costs = np.array([[1.0, 3.0], [1.1, 2.99], [1.2, 2.0], [1.3, 2.5], [1.4, 1.0]])
    assert universal.members_of(costs, np.ones(5, bool), 1.02) == [0, 2, 4]
    assert universal.members_of(costs, np.array([1, 1, 0, 1, 1], bool), 1.0) == [0, 1, 3, 4]


def test_the_three_of_a_front(bench: tuple[ModuleType, ModuleType]) -> None:
    """Each step of 15 % of memory counts as much as half of the accesses."""
    _, universal = bench
    costs = np.array([[1.0, 4.0], [1.15, 2.0], [1.15**2, 1.0]])
    result = universal.three_of(costs, [0, 1, 2])
    assert result == {"least memory": 0, "compromise": 1, "fewest accesses": 2}


def test_programs_count_alike(bench: tuple[ModuleType, ModuleType]) -> None:
    _, universal = bench
    assert list(universal.weights(["a", "b", "a"])) == [0.25, 0.5, 0.25]


def test_no_program_is_learnt_and_judged(bench: tuple[ModuleType, ModuleType]) -> None:
    _, universal = bench
    learnt, judged = universal.split()
    assert not {*learnt.values()} & {*judged.values()}
    assert (len(learnt), len({*learnt.values()})) == (23, 21)
    assert {"coturn_b", "gawk_b", "knot_b", "monit_b", "redis_b", "sqlite_b", "xmllint_b"} <= {*judged}


def test_what_a_trace_chooses_is_judged_on_the_other(bench: tuple[ModuleType, ModuleType]) -> None:
    """Two values on three programs: the first chooses the second value, which costs it a step of accesses."""
    axes, _ = bench
    result = np.zeros((3, 2, 2, 2, 2))
    result[:, :, 1, :, 0] = np.log(1.15)  # the second value costs every recipe a step of memory
    result[0, :, 1, 0, 1] = -np.log(4)  # but on the first program's first recording it saves two
    output = axes.judged(result)
    assert output.fixed == [0, 0, 0]
    assert output.gains == pytest.approx([-1, 0, 0])
    assert output.ratios[0] == pytest.approx([np.log(1.15), 0])

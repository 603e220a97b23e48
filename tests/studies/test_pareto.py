from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heapwright._studies import pareto
from heapwright._studies.pareto import dominated_by, front, ratios_to_best


def front_by_definition(points: np.ndarray) -> np.ndarray:
    """O(n^2): kept if nothing is at least as good and different, and no equal point comes earlier."""
    keep = []
    for i, point in enumerate(points):
        at_least_as_good = (points <= point).all(axis=1)
        equal = (points == point).all(axis=1)
        keep.append(not (at_least_as_good & ~equal).any() and not equal[:i].any())
    return np.array(keep, dtype=bool)


shapes = st.tuples(st.integers(1, 60), st.integers(1, 5))


@given(arrays(np.float64, shapes, elements=st.integers(0, 6).map(float)))
def test_front_is_what_the_definition_says(points: np.ndarray) -> None:
    assert front(points, ["min"] * points.shape[1]).tolist() == front_by_definition(points).tolist()


@pytest.mark.parametrize("objectives", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("levels", [3, 40, 100_000])
def test_front_beyond_the_brute_force_size(objectives: int, levels: int) -> None:
    generator = np.random.default_rng(objectives * levels)
    points = generator.integers(0, levels, (700, objectives)).astype(float)
    assert (front(points, ["min"] * objectives) == front_by_definition(points)).all()


def test_more_can_be_better() -> None:
    points = np.array([[10, 0.5], [10, 0.9], [12, 0.9], [12, 1.0]])
    assert front(points, ["min", "max"]).tolist() == [False, True, False, True]


def test_of_equal_points_the_first_is_kept() -> None:
    points = np.array([[2, 1], [1, 2], [2, 1], [1, 2]])
    assert front(points, ["min", "min"]).tolist() == [True, True, False, False]


def test_no_points_have_an_empty_front() -> None:
    assert front(np.empty((0, 2)), ["min", "min"]).tolist() == []
    assert ratios_to_best(np.empty((0, 2)), ["min", "max"]).tolist() == []


@pytest.mark.parametrize(("objectives", "most"), [(3, 300_000), (4, 3_000_000)])
def test_a_front_of_all_points_takes_no_quadratic_work(
    objectives: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that joins sort and pairs that they compare: all pairs of points would be 10^8."""
    count, looked_at = 10_000, 0
    joined = pareto._undominated

    def counted(points: np.ndarray, others: np.ndarray) -> np.ndarray:
        nonlocal looked_at
        compares = points.shape[1] > 1 and len(points) * len(others) <= pareto._BRUTE_FORCE_PAIRS
        looked_at += len(points) * len(others) if compares else len(points) + len(others)
        return joined(points, others)

    monkeypatch.setattr(pareto, "_undominated", counted)
    generator = np.random.default_rng(7)
    points = np.abs(generator.normal(size=(count, objectives)))
    points /= np.linalg.norm(points, axis=1)[:, np.newaxis]
    assert front(points, ["max"] * objectives).all()
    assert looked_at < most


@pytest.mark.parametrize(
    ("points", "directions"), [(np.array([[np.nan, 1.0]]), ["min", "min"]), (np.array([[1.0, 1.0]]), ["min"])]
)
def test_unusable_points_are_an_error(points: np.ndarray, directions: list[Any]) -> None:
    with pytest.raises(ValueError, match="points"):
        front(points, directions)


def test_ratios_to_best_raise_an_objective_with_a_zero_by_one_unit() -> None:
    points = np.array([[0.0, 300.0], [1.0, 100.0]])
    assert ratios_to_best(points, ["min", "min"]).tolist() == [[1, 3], [2, 1]]
    assert ratios_to_best(points, ["min", "max"]).tolist() == [[1, 1], [2, 3]]


def test_dominated_by_names_the_member_that_beats_the_point_most() -> None:
    members = np.array([[100.0, 50.0], [90.0, 90.0], [200.0, 1.0]])
    result = dominated_by(np.array([110.0, 100.0]), members, ["min", "min"])
    assert result is not None
    assert result.member == 0
    assert result.ratios == pytest.approx((1.1, 2.0))


@pytest.mark.parametrize("members", [[(50, 50), (50, 50), (60, 60)], [(100, 50), (50, 100)], [(50, 100), (100, 50)]])
def test_of_members_that_beat_a_point_alike_the_first_is_named(members: list[tuple[float, float]]) -> None:
    result = dominated_by(np.array([100.0, 100.0]), np.array(members, float), ["min", "min"])
    assert result is not None
    assert result.member == 0


def test_dominated_by_counts_equality() -> None:
    result = dominated_by(np.array([3.0, 0.5]), np.array([[3.0, 0.5]]), ["min", "max"])
    assert result is not None
    assert result.ratios == (1.0, 1.0)


def test_a_point_better_in_one_objective_is_not_dominated() -> None:
    assert dominated_by(np.array([1.0, 100.0]), np.array([[2.0, 1.0]]), ["min", "min"]) is None

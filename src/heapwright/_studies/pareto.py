"""Pareto fronts: the non-dominated points, distances from them, and their hypervolume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heapwright._replay.metrics import Direction

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_BRUTE_FORCE_PAIRS = 1 << 12
"""Comparisons of one broadcast that cost less than another level of recursion (measured at 3 to 5 objectives)."""


def front(points: Floats, directions: Sequence[Direction]) -> Bools:
    """Mask of the points that no other point weakly dominates; of equal points only the first is kept.

    ``points`` is float64[n, k], ``directions`` says for each of the k objectives whether less or more is better. One
    point weakly dominates another if it is at least as good in every objective. Exact, and independent of the
    order of the points but for the choice among equal ones.

    Divide and conquer of Kung, Luccio and Preparata, "On finding the maxima of a set of vectors" (J. ACM 22(4), 1975,
    section 3): O(n log n) for k <= 2, O(n log^(k-2) n) joins with a sort each beyond, for any size of the front.

    Raises ValueError if a value is NaN or the shapes do not fit.
    """
    costs = _costs(points, directions)
    mask = np.zeros(len(costs), dtype=np.bool_)
    if not len(costs):
        return mask
    order = np.lexsort((np.arange(len(costs)), *costs.T[::-1]))
    ordered = costs[order]
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    distinct = order[first]
    mask[distinct[_front_of_sorted(costs[distinct])]] = True
    return mask


def ratios_to_best(points: Floats, directions: Sequence[Direction]) -> Floats:
    """Each value over its objective's best value, float64[n, k]: 1 for the best, more for others.

    An objective in which some value is 0 has all its values raised by one unit first, so that ratios stay finite and
    keep their order.
    """
    _costs(points, directions)
    shifted = points + (points == 0).any(axis=0)
    less_is_better = np.array([direction == "min" for direction in directions])
    least, most = shifted.min(axis=0, initial=np.inf), shifted.max(axis=0, initial=-np.inf)
    return np.asarray(np.where(less_is_better, shifted / least, most / shifted), np.float64)


def ratios(values: Floats, best: Floats) -> Floats:
    """Values of objectives that are to be small over the best ones, zeros as in `ratios_to_best`."""
    shift = best == 0
    result: Floats = (values + shift) / (best + shift)
    return result


def distances(points: Floats, members: Floats) -> Floats:
    """Distances of points from a front, float64[n]: the least, over its members, of the largest ratio to the member.

    Less is better in ``points`` (float64[n, k]) and ``members`` (float64[m, k]), which are above 0. The distance is the
    logarithm of the ratio, 0 or less on the front.
    """
    logs, front = np.log(points), np.log(members)
    return np.array([(point - front).max(axis=1).min() for point in logs])


def hypervolume(costs: Floats, reference: Floats) -> float:
    """The volume that points dominate, as far as `reference` (float64[k]); ``costs`` is float64[n, k], less is better.

    By slices along the last objective (While et al. 2006): O(n log n) for two objectives, n times more for each other.
    """
    inside = costs[(costs < reference).all(axis=1)]
    if not len(inside):
        return 0.0
    inside = inside[front(inside, ["min"] * inside.shape[1])]
    if inside.shape[1] == 1:
        return float(reference[0] - inside.min())
    inside = inside[np.argsort(inside[:, -1])]
    heights = np.diff(np.append(inside[:, -1], reference[-1]))
    if inside.shape[1] == 2:
        return float((heights * (reference[0] - np.minimum.accumulate(inside[:, 0]))).sum())
    slices = (hypervolume(inside[: at + 1, :-1], reference[:-1]) for at in range(len(inside)))
    return float(sum(height * area for height, area in zip(heights, slices, strict=True)))


@dataclass(frozen=True)
class Domination:
    """A front member that is at least as good as a point in every objective, and by how much.

    ``member`` is its index in the front; ``ratios`` has, for each objective, how many times worse the point is (>= 1).
    """

    member: int
    ratios: tuple[float, ...]


def dominated_by(point: Floats, members: Floats, directions: Sequence[Direction]) -> Domination | None:
    """The member that weakly dominates ``point`` (float64[k]) by most; None if no member dominates it.

    ``members`` is float64[n, k]. Among several the one with the largest geometric mean of the ratios is taken, then
    the first. Ratios are those of `ratios_to_best`, of the two points alone.
    """
    ways = np.array([1.0 if direction == "min" else -1.0 for direction in directions])
    costs, cost = _costs(members, directions), _costs(point[np.newaxis], directions)[0]
    among = np.flatnonzero((costs <= cost).all(axis=1))
    if not len(among):
        return None
    better = members[among]
    shift = (better == 0) | (point == 0)
    result = np.where(ways > 0, (point + shift) / (better + shift), (better + shift) / (point + shift))
    products = result.prod(axis=1)
    best = int(np.argmax(products))
    return Domination(int(among[best]), tuple(result[best].tolist()))


def _costs(points: Floats, directions: Sequence[Direction]) -> Floats:
    """The points with every objective turned so that less is better."""
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != len(directions) or not len(directions):
        raise ValueError(f"points of shape {points.shape} do not fit {len(directions)} objectives")
    if np.isnan(points).any():
        raise ValueError("points hold NaN; leave out what was not measured")
    costs: Floats = points * np.array([1.0 if direction == "min" else -1.0 for direction in directions])
    return costs


def _front_of_sorted(points: Floats) -> NDArray[np.intp]:
    """Indices of the front of distinct points in lexicographic order.

    An earlier point is at most as large in the first objective and differs, so only the other objectives decide
    whether it dominates a later one.
    """
    count = len(points)
    if points.shape[1] == 1:
        return np.zeros(1, dtype=np.intp)
    if points.shape[1] == 2:
        best_before = np.minimum.accumulate(points[:, 1])
        return np.flatnonzero(np.concatenate(([True], points[1:, 1] < best_before[:-1])))
    if count * count <= _BRUTE_FORCE_PAIRS:
        dominates = (points[:, np.newaxis] <= points[np.newaxis]).all(axis=2)
        return np.flatnonzero(dominates.sum(axis=0) == 1)  # each weakly dominates itself
    middle = count // 2
    low = _front_of_sorted(points[:middle])
    high = middle + _front_of_sorted(points[middle:])
    return np.concatenate([low, high[_undominated(points[high, 1:], points[low, 1:])]])


def _undominated(points: Floats, others: Floats) -> Bools:
    """Mask of ``points`` (float64[n, k]) with no row of ``others`` (float64[m, k]) at most as large everywhere."""
    if not len(points) or not len(others):
        return np.ones(len(points), dtype=np.bool_)
    if points.shape[1] == 1:
        lower: Bools = points[:, 0] < others[:, 0].min()
        return lower
    if len(points) * len(others) <= _BRUTE_FORCE_PAIRS:
        at_most: Bools = np.all(others[np.newaxis] <= points[:, np.newaxis], axis=2)
        undominated: Bools = ~np.any(at_most, axis=1)
        return undominated
    if points.shape[1] == 2:
        return _undominated_in_plane(points, others)
    return _undominated_by_halves(points, others)


def _undominated_in_plane(points: Floats, others: Floats) -> Bools:
    ordered = others[np.argsort(others[:, 0])]
    lowest = np.minimum.accumulate(ordered[:, 1])
    reach = np.searchsorted(ordered[:, 0], points[:, 0], side="right")
    below: Bools = points[:, 1] < np.concatenate(([np.inf], lowest))[reach]
    return below


def _undominated_by_halves(points: Floats, others: Floats) -> Bools:
    values = np.unique(others[:, 0])
    if len(values) == 1:
        mask = np.ones(len(points), dtype=np.bool_)
        reached = np.flatnonzero(points[:, 0] >= values[0])
        mask[reached] = _undominated(points[reached, 1:], others[:, 1:])
        return mask
    pivot = values[(len(values) - 1) // 2]
    low = points[:, 0] <= pivot
    others_low = others[:, 0] <= pivot
    mask = np.empty(len(points), dtype=np.bool_)
    mask[low] = _undominated(points[low], others[others_low])
    high = np.flatnonzero(~low)
    by_low = _undominated(points[high, 1:], others[others_low, 1:])
    mask[high] = by_low
    mask[high[by_low]] = _undominated(points[high[by_low]], others[~others_low])
    return mask

"""Results of recipes over several traces, and the Pareto front among them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from heapwright._replay.metrics import METRICS, Columns, Direction, combine_columns
from heapwright._studies import Candidate as Candidate
from heapwright._studies import pareto

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ADMITTED = "admitted_fraction"
"""The objective for which recipes may refuse requests."""

AS_MUCH = 0.999
"""A recipe that admits this share of the most that any recipe admits counts as admitting the most."""


@dataclass(frozen=True)
class Ranking:
    """Standing of a reference allocator against the front.

    ``on_front``: it is a member. Otherwise ``dominated_by`` is the id of the member that dominates it by most and
    ``ratios`` how many times worse it is in each objective (all 1: equal). Both are unset if it failed requests, lacks
    an objective's value, or is not ``ranked``: an allocator at its own alignment in a study of another.
    """

    candidate: Candidate
    on_front: bool
    dominated_by: str | None
    ratios: dict[str, float]
    ranked: bool = True


@dataclass(frozen=True)
class Results:
    """Results of many recipes on all of some traces: sorted ids, zoo names, one float64[n, traces] column a metric.

    NaN stands for None. ``ranked`` is bool[n]: false for heaps that are only shown with the others. Recipes compete on
    devices: each trace is a device of its own, or several traces are the loads of one device, whose memory is the
    largest and whose accesses are summed.
    """

    ids: list[str]
    zoo_names: list[str | None]
    traces: list[str]
    each: dict[str, Floats]
    columns: dict[str, Floats]
    """The metrics over all traces, float64[n]; see `metrics.combine`."""
    ranked: Bools
    devices: list[str]
    """The trace of each device; of several loads their names joined by "+"."""
    on_devices: dict[str, Floats]
    """The metrics over all loads of each device, float64[n, devices]."""
    _fronts: dict[tuple[object, ...], NDArray[np.intp]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        results: Mapping[str, NDArray[np.generic]],
        traces: Sequence[str],
        known: Mapping[str, tuple[str | None, bool]],
        devices: Sequence[Mapping[str, int]] = (),
    ) -> Results:
        """Gather the recipes that have a row for each of the traces.

        ``results`` has the columns ``recipe``, ``trace`` and every metric, in the order of recipe and trace;
        ``known`` the zoo's name of each recipe, if it has one, and whether it is ranked. ``devices``: of each, the
        traces that are its loads, with their calls; without, each trace is a device of its own.
        """
        recipes = results["recipe"]
        starts = np.flatnonzero(np.append(True, recipes[1:] != recipes[:-1])) if len(recipes) else np.empty(0, np.intp)
        complete = starts[np.diff(starts, append=len(recipes)) == len(traces)]
        rows = complete[:, np.newaxis] + np.arange(len(traces))
        ids: list[str] = recipes[complete].tolist()
        each = Columns({key: np.asarray(results[key], np.float64)[rows] for key in METRICS})
        order, names = sorted(traces), [known[id][0] for id in ids]
        calls = {name: count for loads in devices for name, count in loads.items()}
        if calls:
            each.calls = np.array([calls[name] for name in order], np.float64)
        ranked = np.array([known[id][1] for id in ids], np.bool_)
        if all(len(loads) == 1 for loads in devices):
            return cls(ids, names, order, each, _combined(each), ranked, order, each)
        of_each = [_over_loads(each, loads, order) for loads in devices]
        on_devices = _side_by_side(of_each, devices)
        columns = of_each[0] if len(devices) == 1 else _combined(each)
        return cls(ids, names, order, each, columns, ranked, ["+".join(loads) for loads in devices], on_devices)

    def candidate(self, row: int) -> Candidate:
        """One recipe's row with plain numbers."""
        metrics = {key: METRICS[key].plain(float(column[row])) for key, column in self.columns.items()}
        return Candidate(self.ids[row], self.zoo_names[row], metrics)

    def row(self, id: str) -> int | None:
        """The row of this full id, if there is one."""
        row = bisect_left(self.ids, id)
        return row if row < len(self.ids) and self.ids[row] == id else None

    def find(self, id: str) -> Candidate | None:
        """The recipe of this full id, if it has a row."""
        row = self.row(id)
        return None if row is None else self.candidate(row)

    def ratios(self, key: str, refusing: bool = False) -> Floats:
        """A metric on each device over the best there, float64[n, devices]: 1 for the best, more for others.

        The best is that of the recipes that served every request there, and a recipe that did not has inf there;
        with ``refusing`` all compete. NaN if there is no value, or no rank. Zeros as in `pareto.ratios_to_best`.
        """
        values = self.on_devices[key]
        known = ~np.isnan(values) & self.ranked[:, np.newaxis]
        competing = known if refusing else known & (self.on_devices["failed"] == 0)
        result = np.where(known, np.inf, np.nan)
        for device, rows in enumerate(competing.T):
            if rows.any():
                column = values[rows, device][:, np.newaxis]
                result[rows, device] = pareto.ratios_to_best(column, directions([key]))[:, 0]
        return result

    def values(self, objectives: Sequence[str]) -> Floats:
        """The objectives over all traces as float64[n, k]."""
        return np.stack([self.columns[key] for key in objectives], axis=1)

    def points(self, objectives: Sequence[str]) -> Floats:
        """What recipes are ranked by, float64[n, k]; see `directions_of`.

        On one device the objectives themselves, over all its loads. On several, the worst of the ratios to each one's
        own best, so that a small trace counts as much as a large one.
        """
        if len(self.devices) == 1:
            return self.values(objectives)
        refusing = ADMITTED in objectives
        return np.stack([self.ratios(key, refusing).max(axis=1, initial=0.0) for key in objectives], axis=1)

    def directions_of(self, objectives: Sequence[str]) -> list[Direction]:
        """Whether less or more is better in each column of `points`."""
        return directions(objectives) if len(self.devices) == 1 else ["min"] * len(objectives)

    def eligible(self, objectives: Sequence[str]) -> Bools:
        """Mask of the recipes that may be on a front.

        Recipes that failed a request are left out unless ``admitted_fraction`` is an objective, and so are recipes
        without a bounded long-run need, or that failed the stress test; in any case recipes that lack the value of an
        objective, or are not ranked.
        """
        mask = self.serving(objectives)
        if ADMITTED not in objectives:
            mask &= self.columns["lasts"] != 0
            if self.foreseen:
                mask &= np.isfinite(self.columns["long_run_bytes"])
        return mask

    def serving(self, objectives: Sequence[str]) -> Bools:
        """Mask of the recipes that may be on a front by the recordings alone, without their futures."""
        mask: Bools = self.ranked & ~np.isnan(self.points(objectives)).any(axis=1)
        return mask if ADMITTED in objectives else mask & (self.columns["failed"] == 0)

    @property
    def foreseen(self) -> bool:
        """Whether the long-run need of some recipe is known: then one without a bounded need is on no front."""
        return bool(np.isfinite(self.columns["long_run_bytes"]).any())

    def admitting(self, objectives: Sequence[str], within: Bools) -> Bools:
        """Mask of the recipes in the mask ``within`` that admit as much (`AS_MUCH`) as any in it.

        All in it if ``admitted_fraction`` is no objective. Of several traces the one of which the least is admitted
        counts.
        """
        if ADMITTED not in objectives or not within.any():
            return within
        admitted = self.columns[ADMITTED]
        mask: Bools = within & (admitted >= AS_MUCH * admitted[within].max())
        return mask

    def front_rows(self, objectives: Sequence[str], within: Bools | None = None) -> NDArray[np.intp]:
        """Rows of the front, best in the first objective first, of those `eligible` and in the mask ``within``.

        Of equal recipes the one with the lower id is kept.
        """
        points, ways = self.points(objectives), self.directions_of(objectives)
        mask = self.eligible(objectives)
        if within is not None:
            mask = mask & within
        requested = *objectives, mask.tobytes()  # pages and tables ask for the same again and again
        if requested not in self._fronts:
            rows = np.flatnonzero(mask)
            rows = rows[pareto.front(points[rows], ways)]
            keys = [points[rows, at] * (1 if way == "min" else -1) for at, way in enumerate(ways)]
            self._fronts[requested] = rows[np.lexsort(keys[::-1])]
        return self._fronts[requested]

    def standings(self, rows: Sequence[int], objectives: Sequence[str]) -> list[Ranking]:
        """Where recipes stand against the front."""
        points, ways = self.points(objectives), self.directions_of(objectives)
        front, eligible = self.front_rows(objectives), self.eligible(objectives)
        members, on_front = points[front], {*front.tolist()}

        def standing(row: int) -> Ranking:
            candidate = self.candidate(row)
            if row in on_front or not eligible[row]:
                return Ranking(candidate, row in on_front, None, {}, bool(self.ranked[row]))
            result = pareto.dominated_by(points[row], members, ways)
            assert result is not None, "an admitted recipe off the front is dominated by a member"
            ratios = dict(zip(objectives, result.ratios, strict=True))
            return Ranking(candidate, False, self.ids[front[result.member]], ratios)

        return [standing(row) for row in rows]


def _side_by_side(of_each: Sequence[Columns], devices: Sequence[Mapping[str, int]]) -> Columns:
    """Metrics with a column for each device."""
    on_devices = Columns({key: np.stack([columns[key] for columns in of_each], axis=1) for key in METRICS})
    on_devices.calls = np.array([sum(loads.values()) for loads in devices], np.float64)
    return on_devices


def _over_loads(each: Mapping[str, Floats], loads: Mapping[str, int], order: Sequence[str]) -> Columns:
    """Metrics over all loads of one device; ``order``: the traces of the columns."""
    at = [order.index(name) for name in loads]
    return _combined({key: column[:, at] for key, column in each.items()}, [*loads.values()])


def _combined(each: Mapping[str, Floats], calls: Sequence[int] | None = None) -> Columns:
    result = Columns(combine_columns(each, calls) if len(each["failed"]) else {key: np.empty(0) for key in each})
    of_each = getattr(each, "calls", None) if calls is None else calls
    result.calls = None if of_each is None else float(np.sum(of_each))
    return result


def directions(objectives: Sequence[str]) -> list[Direction]:
    """Whether less or more is better of each metric."""
    return [METRICS[key].direction for key in objectives]

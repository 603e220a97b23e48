"""Pruning: the bound that finished recipes set, and whether a partial result can still reach the front below it.

All objectives involved can only grow during a replay. So their values so far on each trace, or lower bounds of their
final values (`heapwright._replay.lower_bounds`), bound the point by which a recipe will be ranked from below
(`heapwright._studies.results.Results.points`); a recipe whose bound some finished one dominates is not finished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._replay.engine import ReplayProgress
from heapwright._replay.metrics import METRICS, Value, as_float
from heapwright._studies import pareto

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_ROUNDING = 1e-12
"""More than the rounding error of a quotient."""


def on_device(values: Floats, objectives: Sequence[str]) -> Floats:
    """Objectives on the loads of one device, float64[..., k, traces], over all of them: float64[..., k, 1].

    What can do nothing but grow in a replay (`heapwright._replay.engine.GROWING`) grows here, too, with each trace.
    """
    largest, summed = values.max(axis=-1), values.sum(axis=-1)
    over_all: Floats = np.where(_adds_up(objectives), summed, largest)[..., np.newaxis]
    return over_all


def _adds_up(objectives: Sequence[str]) -> Bools:
    return np.array([METRICS[key].rule == "sum" for key in objectives])


class PartialResult:
    """Lower bounds of a recipe's objectives on each of the traces, in their order, and where its replay ended.

    Attributes:
        least: float64[k, traces], lower bounds of the objectives.
        ended: bool[traces], whether the replay ended, so that the bounds are the values.
        refused: bool[traces], whether requests failed, in a replay that ended or not.
        so_far: progress of the replay on each trace; None if it ended or has not begun.
        floor: int64[traces], least footprint of the trace, known before its replay; 0 if not computed.
        remaining: number of traces on which it has not ended.
    """

    def __init__(self, objectives: Sequence[str], traces: int, same_device: bool = False) -> None:
        """Begin with bounds of 0; ``same_device``: the traces are loads of one device."""
        self._objectives, self._same_device = objectives, same_device
        self.least = np.zeros((len(objectives), traces))
        self.ended, self.refused = np.zeros(traces, np.bool_), np.zeros(traces, np.bool_)
        self.so_far: list[ReplayProgress | None] = [None] * traces
        self.floor = np.zeros(traces, np.int64)
        self.remaining = traces

    def __getstate__(self) -> tuple[Any, ...]:
        """Plain bytes: arrays of one number each take five times as long to pickle, and a cluster's driver does that
        for each recipe."""
        numbers = self.least.tobytes(), self.ended.tobytes(), self.refused.tobytes(), self.floor.tobytes()
        return self._objectives, self._same_device, self.remaining, self.so_far, *numbers

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._objectives, self._same_device, self.remaining, self.so_far, least, ended, refused, floor = state
        self.least = np.frombuffer(least).reshape(len(self._objectives), len(self.so_far)).copy()
        self.ended, self.refused = np.frombuffer(ended, np.bool_).copy(), np.frombuffer(refused, np.bool_).copy()
        self.floor = np.frombuffer(floor, np.int64).copy()

    def end(self, at: int, metrics: Mapping[str, Value]) -> None:
        """Set the metrics of a whole replay of one trace."""
        self.least[:, at] = [as_float(metrics[key]) for key in self._objectives]
        self.remaining -= not self.ended[at]
        self.ended[at], self.refused[at], self.so_far[at] = True, metrics["failed"] != 0, None

    def update(self, at: int, so_far: ReplayProgress) -> None:
        """Raise the bounds to the progress of a replay of one trace."""
        if so_far.calls >= self.calls(at):
            self.so_far[at] = so_far
        info = [getattr(so_far, key) for key in self._objectives]
        self.least[:, at] = np.maximum(self.least[:, at], info)

    def set_least_footprint(self, at: int | slice, footprint: int | Sequence[int]) -> None:
        """Set the least footprint on a trace, or on all."""
        self.floor[at] = footprint
        self.expect(at, "footprint_bytes", footprint)

    def expect(self, at: int | slice, key: str, least: int | Sequence[int] | NDArray[Any]) -> None:
        """Raise the bound of an objective on a trace, or on all; other metrics are ignored."""
        if key in self._objectives:
            row = self._objectives.index(key)
            self.least[row, at] = np.where(self.ended[at], self.least[row, at], np.maximum(self.least[row, at], least))

    @property
    def bound(self) -> Floats:
        """Lower bound of what ranks it, float64[k, devices]: ``least``, or that over all loads of the one device."""
        return on_device(self.least, self._objectives) if self._same_device else self.least

    @property
    def served(self) -> Bools:
        """Whether no request failed so far, bool[devices]."""
        return np.logical_not(self.refused.any()).reshape(1) if self._same_device else ~self.refused

    def left_to(self, levels: Floats, at: int) -> Floats:
        """Values on one trace at which the objectives over all loads of the one device reach levels, float64[n, k]."""
        others = np.delete(self.least, at, axis=1)
        largest = np.where(others.max(axis=1, initial=0) >= levels, 0, levels)
        remaining: Floats = np.where(_adds_up(self._objectives), levels - others.sum(axis=1), largest)
        return remaining

    def calls(self, at: int) -> int:
        """Calls of a trace that were replayed before it was pruned."""
        so_far = self.so_far[at]
        return so_far.calls if so_far else 0


@dataclass(frozen=True)
class FrontBound:
    """Bound that a recipe has to stay below to be worth finishing.

    Attributes:
        best: float64[k, devices], the best values found on each device: on each trace, or over all loads of one.
        front: float64[m, k], worst ratio to them of each recipe of the front.
        harmless: float64[k, devices], at most `best`: the front would be the same were the best only as good as that.
        tolerance: 0 for an exact front; otherwise a recipe that needs at most 1 + tolerance times as much in every
            objective dominates, too.
    """

    best: Floats
    front: Floats
    harmless: Floats
    tolerance: float

    @classmethod
    def of(cls, values: Floats, served: Bools, tolerance: float, known: Floats | None = None) -> FrontBound | None:
        """Bound that finished recipes set; None if none of them completed without failed requests.

        ``values``: float64[n, k, devices], their objectives; ``served``: bool[n, devices].

        ``known``: float64[k, devices], best values found elsewhere, from which ratios count, too.

        A better best value on a trace only makes ratios larger. The ratios of a member of the front stay no larger than
        its worst ratio while the best value is at least the member's value divided by that ratio. So the members stay
        in place, and the others only move away from them.
        """
        whole = values[served.all(axis=1)]
        if not len(whole):
            return None
        best = np.where(served[:, np.newaxis], values, np.inf).min(axis=0)
        best = best if known is None else np.minimum(best, known)
        points = pareto.ratios(whole, best).max(axis=2)
        members = pareto.front(points, ["min"] * points.shape[1])
        front = points[members]
        harmless = (whole[members] / front[:, :, np.newaxis]).max(axis=0) * (1 + _ROUNDING)
        return cls(best, front, np.minimum(harmless, best), tolerance)

    def dominates(self, least: Floats) -> Bools:
        """Whether some recipe of the front dominates any that needs at least this much.

        bool[...] of float64[..., k, devices].
        """
        point = pareto.ratios(least, self.best).max(axis=-1)[..., np.newaxis, :]
        at_least = (self.front <= (1 + self.tolerance) * point).all(axis=-1)
        if not self.tolerance:  # of equal recipes the id decides which one is on the front
            at_least &= (self.front < point).any(axis=-1)
        result: Bools = at_least.any(axis=-1)
        return result

    def corners(self, partial_result: PartialResult, at: int) -> Floats:
        """Values that a recipe must reach on a trace before it is pruned there: all of some row, float64[n, k].

        0 stands for values that its bounds have reached already.
        """
        wanted = self.front / (1 + self.tolerance) * (1 - _ROUNDING)
        if partial_result.refused.any():
            wanted = np.zeros_like(wanted[:1])
        if self.best.shape[1] == partial_result.least.shape[1]:
            others = np.delete(pareto.ratios(partial_result.least, self.best), at, axis=1).max(axis=1, initial=0)
            best, shift = self.best[:, at], self.best[:, at] == 0  # as ratios are
            levels = np.where(others >= wanted, 0, wanted * (best + shift) - shift)
        else:
            levels = partial_result.left_to(wanted * self.best[:, 0], at)
        if not self.tolerance and self.best.shape[1] > 1 and not partial_result.refused[at]:
            levels = np.maximum(levels, self.harmless[:, at])
        remaining: Floats = np.where(partial_result.least[:, at] >= levels, 0, levels)
        return remaining

    def is_far(self, least: Floats, times: float) -> bool:
        """Whether any that needs at least this much is farther than this factor from each recipe of the front."""
        point = pareto.ratios(least, self.best).max(axis=1)
        return bool((point > times * self.front).any(axis=1).all())

    def leaves_best_unchanged(self, partial_result: PartialResult, at: int) -> bool:
        """Whether a recipe cannot be so good on a trace that it changes the ratios of others to the best there.

        An exact front of several devices needs that of each trace. A front within a tolerance compares with the best
        of the replays that ended.
        """
        if self.best.shape[1] == 1 or partial_result.refused[at] or (self.tolerance and not partial_result.ended[at]):
            return True
        return bool((partial_result.least[:, at] >= self.harmless[:, at]).all())

    def settled(self, results: Sequence[PartialResult]) -> Bools:
        """Whether each recipe can neither reach the front nor change it, bool[n].

        True if it is dominated or failed requests, and `leaves_best_unchanged` on all traces.
        """
        refused, bounds = np.stack([item.refused for item in results]), np.stack([item.bound for item in results])
        dominated: Bools = refused.any(axis=1) | self.dominates(bounds)
        if self.best.shape[1] == 1:
            return dominated
        relevant = ~refused & np.stack([item.ended for item in results]) if self.tolerance else ~refused
        leaves = (bounds >= self.harmless).all(axis=1)
        return dominated & (leaves | ~relevant).all(axis=1)


@dataclass
class Incumbents:
    """Recipes that finished all traces. One thread adds them; others read `front_bound`, replaced as a whole."""

    tolerance: float
    _values: list[Floats] = field(default_factory=list)
    _served: list[Bools] = field(default_factory=list)
    front_bound: FrontBound | None = None
    """None until a recipe has completed all traces without failed requests."""
    best: Floats | None = None
    """Best values found before these recipes, if any: ratios count from them, too."""

    def add(self, partial_result: PartialResult) -> None:
        """Add a ranked recipe that has finished every trace."""
        self._values.append(partial_result.bound)
        self._served.append(partial_result.served)
        served = self._served[-1]
        if self.front_bound is not None:
            changes = ((partial_result.bound < self.front_bound.best) & served).any()
            if not changes and (not served.all() or self.front_bound.dominates(partial_result.bound)):
                return
        self._update_front_bound()

    def _update_front_bound(self) -> None:
        self.front_bound = FrontBound.of(np.stack(self._values), np.stack(self._served), self.tolerance, self.best)

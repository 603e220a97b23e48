"""Rivals: what finished recipes need, and whether another can still come on the front.

Only objectives that can do nothing but grow in a replay tell that before it ends. What a recipe has come to on each
trace, or must come to (`heapwright._replay.lower_bounds`), bounds the point that it will be ranked by from below
(`heapwright._studies.results.Results.points`); a recipe whose bound some finished one beats is not worth finishing.
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
"""More than quotients of floats are wrong by."""


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
    """What is known of a recipe on each of the traces, in their order: its objectives at least, and where it ended.

    Attributes:
        least: float64[k, traces], what each objective will come to at least.
        ended: bool[traces], where that is what it came to.
        refused: bool[traces], where it refused requests, whether it ended there or not.
        so_far: what it has come to on each trace; None where it ended, or was not begun.
        floor: int64[traces], the least footprint, which is known before a replay begins; 0 where nobody asked for it.
        left: on how many traces it has not ended.
    """

    def __init__(self, objectives: Sequence[str], traces: int, same_device: bool = False) -> None:
        """Begin with nothing; ``same_device``: the traces are loads of one."""
        self._objectives, self._same_device = objectives, same_device
        self.least = np.zeros((len(objectives), traces))
        self.ended, self.refused = np.zeros(traces, np.bool_), np.zeros(traces, np.bool_)
        self.so_far: list[ReplayProgress | None] = [None] * traces
        self.floor = np.zeros(traces, np.int64)
        self.left = traces

    def __getstate__(self) -> tuple[Any, ...]:
        """Plain bytes: arrays of one number each take five times as long to pickle, and a cluster's driver does that
        for each recipe."""
        numbers = self.least.tobytes(), self.ended.tobytes(), self.refused.tobytes(), self.floor.tobytes()
        return self._objectives, self._same_device, self.left, self.so_far, *numbers

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._objectives, self._same_device, self.left, self.so_far, least, ended, refused, floor = state
        self.least = np.frombuffer(least).reshape(len(self._objectives), len(self.so_far)).copy()
        self.ended, self.refused = np.frombuffer(ended, np.bool_).copy(), np.frombuffer(refused, np.bool_).copy()
        self.floor = np.frombuffer(floor, np.int64).copy()

    def end(self, at: int, metrics: Mapping[str, Value]) -> None:
        """Take the metrics of a whole replay of one trace."""
        self.least[:, at] = [as_float(metrics[key]) for key in self._objectives]
        self.left -= not self.ended[at]
        self.ended[at], self.refused[at], self.so_far[at] = True, metrics["failed"] != 0, None

    def raise_to(self, at: int, so_far: ReplayProgress) -> None:
        """Take what a replay of one trace has come to."""
        if so_far.calls >= self.calls(at):
            self.so_far[at] = so_far
        info = [getattr(so_far, key) for key in self._objectives]
        self.least[:, at] = np.maximum(self.least[:, at], info)

    def lay_floor(self, at: int | slice, footprint: int | Sequence[int]) -> None:
        """Take the least footprint on a trace, or on all."""
        self.floor[at] = footprint
        self.expect(at, "footprint_bytes", footprint)

    def expect(self, at: int | slice, key: str, least: int | Sequence[int] | NDArray[Any]) -> None:
        """Take what an objective will come to at least on a trace, or on all; others than these are left alone."""
        if key in self._objectives:
            row = self._objectives.index(key)
            self.least[row, at] = np.where(self.ended[at], self.least[row, at], np.maximum(self.least[row, at], least))

    @property
    def bound(self) -> Floats:
        """What it is ranked by at least, float64[k, devices]: ``least``, or that over all loads of the one device."""
        return on_device(self.least, self._objectives) if self._same_device else self.least

    @property
    def served(self) -> Bools:
        """Where it refused nothing so far, bool[devices]."""
        return np.logical_not(self.refused.any()).reshape(1) if self._same_device else ~self.refused

    def left_to(self, levels: Floats, at: int) -> Floats:
        """What one trace must come to so that all loads of the one device come to levels, float64[n, k]."""
        others = np.delete(self.least, at, axis=1)
        largest = np.where(others.max(axis=1, initial=0) >= levels, 0, levels)
        remaining: Floats = np.where(_adds_up(self._objectives), levels - others.sum(axis=1), largest)
        return remaining

    def calls(self, at: int) -> int:
        """Calls of a trace that were replayed before it was given up."""
        so_far = self.so_far[at]
        return so_far.calls if so_far else 0


@dataclass(frozen=True)
class FrontBound:
    """What a recipe has to come below to be worth finishing.

    Attributes:
        best: float64[k, devices], the best values found on each device: on each trace, or over all loads of one.
        front: float64[m, k], the worst of the ratios to them of each recipe of the front.
        harmless: float64[k, devices], at most `best`: the front would be the same were the best only as good as that.
        tolerance: 0 where the front has to be exact; else a recipe is beaten, too, by one that needs at most 1 +
            tolerance times as much in every objective.
    """

    best: Floats
    front: Floats
    harmless: Floats
    tolerance: float

    @classmethod
    def of(cls, values: Floats, served: Bools, tolerance: float, known: Floats | None = None) -> FrontBound | None:
        """The bar that finished recipes set; None if none of them has served all requests.

        ``values``: float64[n, k, devices], their objectives; ``served``: bool[n, devices].

        ``known``: float64[k, devices], the best values that others found, which ratios count from, too.

        A better best on a trace only makes ratios larger. Those of a member of the front stay no larger than its worst
        one while the best is at least the member's value over that; so the members stay where they are, and the others
        only move away from them.
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

    def beats(self, least: Floats) -> Bools:
        """Whether some recipe of the front beats whatever needs at least this much.

        bool[...] of float64[..., k, devices].
        """
        point = pareto.ratios(least, self.best).max(axis=-1)[..., np.newaxis, :]
        at_least = (self.front <= (1 + self.tolerance) * point).all(axis=-1)
        if not self.tolerance:  # of equal recipes the one on the front is told by its id
            at_least &= (self.front < point).any(axis=-1)
        result: Bools = at_least.any(axis=-1)
        return result

    def corners(self, known: PartialResult, at: int) -> Floats:
        """What a recipe must still come to on a trace before it is beaten and leaves the best, float64[n, k].

        That is all of some row; 0 is what it is known to come to.
        """
        wanted = self.front / (1 + self.tolerance) * (1 - _ROUNDING)
        if known.refused.any():
            wanted = np.zeros_like(wanted[:1])
        if self.best.shape[1] == known.least.shape[1]:
            others = np.delete(pareto.ratios(known.least, self.best), at, axis=1).max(axis=1, initial=0)
            best, shift = self.best[:, at], self.best[:, at] == 0  # as ratios are
            levels = np.where(others >= wanted, 0, wanted * (best + shift) - shift)
        else:
            levels = known.left_to(wanted * self.best[:, 0], at)
        if not self.tolerance and self.best.shape[1] > 1 and not known.refused[at]:
            levels = np.maximum(levels, self.harmless[:, at])
        remaining: Floats = np.where(known.least[:, at] >= levels, 0, levels)
        return remaining

    def is_far(self, least: Floats, times: float) -> bool:
        """Whether whatever needs at least this much is farther than so many times from each recipe of the front."""
        point = pareto.ratios(least, self.best).max(axis=1)
        return bool((point > times * self.front).any(axis=1).all())

    def leaves_best(self, known: PartialResult, at: int) -> bool:
        """Whether a recipe cannot be so good on a trace that it changes how others stand on the front.

        An exact front of several devices has to know that of each. One within a tolerance compares with the best found:
        it only looks at the replays that ended.
        """
        if self.best.shape[1] == 1 or known.refused[at] or (self.tolerance and not known.ended[at]):
            return True
        return bool((known.least[:, at] >= self.harmless[:, at]).all())

    def settled(self, known: Sequence[PartialResult]) -> Bools:
        """Whether each recipe can neither come on the front nor change it, whatever it may still come to, bool[n].

        True if it is beaten (`beats`) or refused requests, and `leaves_best` holds on all traces.
        """
        refused, bounds = np.stack([item.refused for item in known]), np.stack([item.bound for item in known])
        beaten: Bools = refused.any(axis=1) | self.beats(bounds)
        if self.best.shape[1] == 1:
            return beaten
        requested = ~refused & np.stack([item.ended for item in known]) if self.tolerance else ~refused
        leaves = (bounds >= self.harmless).all(axis=1)
        return beaten & (leaves | ~requested).all(axis=1)


@dataclass
class Incumbents:
    """The recipes that have ended on all traces. Written by one thread; others read `bar`, replaced as a whole."""

    tolerance: float
    _values: list[Floats] = field(default_factory=list)
    _served: list[Bools] = field(default_factory=list)
    bar: FrontBound | None = None
    """None as long as no recipe has served all."""
    best: Floats | None = None
    """The best values that others found, where these compete among themselves."""

    def add(self, known: PartialResult) -> None:
        """Take in a ranked recipe that has ended on every trace."""
        self._values.append(known.bound)
        self._served.append(known.served)
        served = self._served[-1]
        if self.bar is not None:
            changes = ((known.bound < self.bar.best) & served).any()
            if not changes and (not served.all() or self.bar.beats(known.bound)):
                return
        self._raise_bar()

    def _raise_bar(self) -> None:
        self.bar = FrontBound.of(np.stack(self._values), np.stack(self._served), self.tolerance, self.best)

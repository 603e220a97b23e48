"""Halving: which recipes promise most, told by short pieces of the traces, then by longer ones for those in front.

Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization" (AISTATS 2016), with a
front in place of one best: a recipe is as far from it as `heapwright.decide.pareto.distances` says.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from heapwright.decide import pareto
from heapwright.explore.runner import Meter, Runner, Trials
from heapwright.explore.trial import Candidate, Patience
from heapwright.replay.least import LeastFootprints
from heapwright.replay.metrics import METRICS
from heapwright.traces.cut import cut
from heapwright.traces.streams import Stream

SHARES = (1 / 16, 1 / 4)
"""How much of each trace the pieces have."""

ROOM = 1 / 4
"""Share of the time left that a round of pieces may take."""


def by_promise(
    runner: Runner, trials: Trials, candidates: Sequence[Candidate], meter: Meter, patience: Patience
) -> list[Candidate]:
    """The candidates, those that promise most first; some of them are replayed on pieces of the traces to know.

    As many are as the time of ``patience`` has room for; the others come last.
    """
    ordered = list(candidates)
    forecast = Forecast(trials)
    for share in SHARES:
        pieces = [int(share * len(trace)) for trace in trials.traces]
        asked = ordered[: _room(ordered, meter, patience, share)]
        counted = meter.for_pieces()
        counted.expect(asked)
        runner.run(asked, trials, counted, replace(patience, pieces=pieces))
        told = [one for one in asked if forecast.knows(one)]
        others = [one for one in ordered if not forecast.knows(one)]
        ordered = [told[at] for at in np.argsort(forecast.distances(told), kind="stable")] + others
    return ordered


def _room(candidates: Sequence[Candidate], meter: Meter, patience: Patience, share: float) -> int:
    """How many of the candidates there is time for."""
    needed = meter.seconds_of(candidates) * share
    room = ROOM * max(patience.until - time.perf_counter(), 0)
    return len(candidates) if needed <= room else max(int(len(candidates) * room / needed), 1)


class Forecast:
    """What recipes will come to on whole traces, told by the pieces that they were replayed on.

    Counts grow with the calls; the footprint is as many times the least one as it was at the end of the piece.
    """

    def __init__(self, trials: Trials) -> None:
        """Take the trials that know of the pieces."""
        self._trials = trials
        self._least: dict[tuple[int, int], LeastFootprints] = {}

    def knows(self, one: Candidate) -> bool:
        """Whether a recipe was replayed on some piece of each trace."""
        known = self._trials.known(one.id)
        return all(known.ended[at] or known.calls(at) for at in range(len(self._trials.traces)))

    def distances(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """How far each is from the front of all of them, float64[n]."""
        if not candidates:
            return np.empty(0)
        values = np.stack([self._values(one) for one in candidates])
        points = pareto.ratios(values, values.min(axis=0)).max(axis=2)
        front = points[pareto.front(points, ["min"] * points.shape[1])]
        return pareto.distances(points, front)

    def _values(self, one: Candidate) -> NDArray[np.float64]:
        known = self._trials.known(one.id)
        values: NDArray[np.float64] = known.least.copy()
        for at, trace in enumerate(self._trials.traces):
            so_far = known.so_far[at]
            if known.ended[at] or so_far is None:
                continue
            for row, key in enumerate(self._trials.objectives):
                if key == "footprint_bytes":
                    least = self._least_of(at, so_far.calls).of(one.recipe)
                    values[row, at] = known.floor[at] * so_far.footprint_bytes / least
                elif METRICS[key].rule == "sum":
                    values[row, at] = getattr(so_far, key) * len(trace) / so_far.calls
        return values

    def _least_of(self, at: int, calls: int) -> LeastFootprints:
        if (at, calls) not in self._least:
            piece = cut(Stream.of(self._trials.traces[at]), first=calls, close=False).trace()
            self._least[at, calls] = LeastFootprints(piece)
        return self._least[at, calls]

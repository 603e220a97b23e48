"""The schedule: which recipes are finished, which are given up, and in what order, so that the front comes in time.

Where there is no time for all, halving tells which promise most, by short pieces of the traces, then by longer ones for
those in front; where there is none even for the zoo, it is tried on pieces as all others are. Jamieson and Talwalkar,
"Non-stochastic best arm identification and hyperparameter optimization" (AISTATS 2016), with a front in place of one
best; a recipe is as far from it as `heapwright._studies.pareto.distances` says.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from heapwright._explore.budget import TimeBudget, in_bisecting_order
from heapwright._explore.evaluation import SearchCandidate, StopRule
from heapwright._explore.pruning import on_device
from heapwright._explore.runner import Meter, Runner, Trials
from heapwright._replay.lower_bounds import LeastFootprints
from heapwright._replay.metrics import METRICS
from heapwright._studies import pareto
from heapwright._studies.recommendations import NEAR, RIVALS, UNTUNED
from heapwright._traces.cut import cut
from heapwright._traces.streams import Stream

COMPLETE_SECONDS = 60.0
"""Every recipe is finished where that takes no longer, unless something else is asked for."""

TOLERANCE = 0.01
"""How much more than the front of all recipes one needs at most where that would take longer, as a share."""

_SURELY = 3
"""Where the zoo alone tells that all recipes take so many times as long as that, they do take longer."""

_ROUNDS = 4
"""So often what was given up is looked at again; after that it is finished."""


@dataclass(frozen=True)
class FinishingRule:
    """When an exploration is finished: all recipes done, a front within a tolerance, or the end of the time.

    ``tolerance`` None is chosen by the time that all recipes take; ``until`` is a time of `time.perf_counter`.
    """

    complete: bool
    tolerance: float | None = None
    until: float | None = None


COMPLETE = FinishingRule(complete=True)


@dataclass
class Exploring:
    """The recipes of a space on the traces that they are ranked by."""

    runner: Runner
    trials: Trials

    def run(
        self,
        chosen: Sequence[SearchCandidate],
        effort: FinishingRule,
        taught: Sequence[str] = (),
        *,
        ranked: bool,
        shares: TimeBudget,
    ) -> None:
        """Try the chosen ones, the zoo among them, with that effort; the study then tells how near its front is.

        The first `EARLY` of ``taught``, ids of what other traces taught, the best first, are finished after the zoo,
        and where there is no time for the zoo all of them are tried first on pieces. ``ranked`` says whether the chosen
        are all of the space, ``shares`` how much of the time there is.
        """
        study = self.runner.study
        before = study.meta.get("tolerance")
        meter = self._meter(chosen)
        remaining = [item for item in chosen if self._is_left(item)]
        if remaining and before is not None:
            study.set_tolerance(None)
        if effort.complete:
            meter.expect(remaining)
            self.runner.run(remaining, self.trials, meter)
            return
        for item in remaining:  # what was given up by an earlier run; the study keeps what it had come to
            if self.trials.known(item.id).floor.any():
                self.trials.trier.lay_floors(item.recipe, self.trials.known(item.id))
        tolerance = before if effort.tolerance is None else effort.tolerance
        zoo = [item for item in remaining if item.zoo_name]
        _keep(shares, meter)
        hurried = meter.until < inf and self._is_hurried(zoo, meter)
        if hurried:
            end, now = meter.until, time.perf_counter()
            meter.until = now + ROOM * (end - now)
            zoo = sorted(zoo, key=lambda item: meter.costs.of(item.design) or 0.0)
            rest = self._finish([item for item in zoo if item.zoo_name in _KNOWN], remaining, meter)
        else:
            rest = self._finish(zoo, remaining, meter)
            early = frozenset(taught[:EARLY])
            rest = self._finish([item for item in rest if item.id in early], rest, meter)
        shares.each = meter.seconds_of(zoo) * meter.crew.jobs / max(len(zoo), 1)
        _keep(shares, meter)
        if hurried and self.trials.objectives:
            meter.tolerance = TOLERANCE if tolerance is None else tolerance
            self._compete(chosen, rest, meter, hurried=True, taught=frozenset(taught))
            study.set_tolerance(None)
            return
        if tolerance is None and self._ends_soon(rest, meter, _SURELY * COMPLETE_SECONDS):
            rest = self._finish(_spread(rest), rest, meter)
        if not self.trials.objectives or (tolerance is None and self._ends_soon(rest, meter, COMPLETE_SECONDS)):
            self._finish(rest, rest, meter)
            return
        meter.tolerance = TOLERANCE if tolerance is None else tolerance
        settled = self._compete(chosen, rest, meter, spread=before is None)
        remaining = [item for item in chosen if self._is_left(item)]
        if remaining and time.perf_counter() < meter.until:  # once more: what was finished last may open others
            meter.finished -= sum(map(self._replays_left, remaining))
            settled = self._compete(chosen, remaining, meter, spread=False)
        study.set_tolerance(meter.tolerance if settled and ranked else None)

    def _is_hurried(self, zoo: Sequence[SearchCandidate], meter: Meter) -> bool:
        """Whether the zoo alone would take much of the time, as pieces of the traces tell; takes note of its costs."""
        share = SHARES[0]
        pieces = [int(share * len(trace)) for trace in self.trials.traces]
        if min(pieces) < LEAST_PIECE or not zoo:
            return False
        counted, ranked = meter.for_pieces(), [item for item in zoo if item.ranked]
        counted.expect(ranked)
        patience = StopRule(self.runner.interrupt, until=meter.until, pieces=pieces)
        self.runner.run(ranked, self.trials, counted, patience)
        needed = counted.seconds_of(zoo) / share
        if needed <= ROOM * (meter.until - time.perf_counter()):
            return False
        meter.costs.take_from_pieces(counted.costs, 1 / share)
        return True

    def _finish(
        self, some: Sequence[SearchCandidate], left: Sequence[SearchCandidate], meter: Meter
    ) -> list[SearchCandidate]:
        """Finish some of what is left while there is time; what is left then."""
        meter.expect(some)
        self.runner.run(some, self.trials, meter, StopRule(self.runner.interrupt, until=meter.until))
        return [item for item in left if self._is_left(item)]

    def _ends_soon(self, candidates: Sequence[SearchCandidate], meter: Meter, seconds: float) -> bool:
        """Whether all are finished in so many seconds, and before the end of the time, as those tried so far tell."""
        return meter.seconds_of(candidates) <= min(seconds, meter.until - time.perf_counter())

    def _meter(self, chosen: Sequence[SearchCandidate]) -> Meter:
        meter = Meter(self.runner.progress, "explored", len(chosen), len(self.trials.traces), self.runner.crew)
        meter.finished = len(chosen) * len(self.trials.traces) - sum(map(self._replays_left, chosen))
        return meter

    def _is_left(self, item: SearchCandidate) -> bool:
        return self._replays_left(item) > 0

    def _replays_left(self, item: SearchCandidate) -> int:
        return self.trials.known(item.id).left

    def _compete(
        self,
        chosen: Sequence[SearchCandidate],
        rest: list[SearchCandidate],
        meter: Meter,
        *,
        hurried: bool = False,
        spread: bool = True,
        taught: Collection[str] = (),
    ) -> bool:
        """Finish what can come on the front, give up the others; whether nothing was left for want of time.

        ``hurried``: where there is no time for one of each design; ``taught`` are then tried first. ``spread``: whether
        one of each design is tried, which an exploration that came to its end has done.
        """
        tolerance = meter.tolerance or 0.0
        rivals = self.trials.compete(tolerance, [item.id for item in chosen if item.ranked])
        patience = StopRule(self.runner.interrupt, rivals, until=meter.until)
        first = _spread(self._open(rest)) if spread and not hurried else []
        meter.expect(first)
        self.runner.run(first, self.trials, meter, replace(patience, spared=NEAR))
        known, rest = rest, self._open(rest)
        if not patience.over:  # what was given up and is open again is counted once more
            opened = {item.id for item in rest}
            meter.finished -= sum(self._replays_left(item) for item in first if item.id in opened)
        counted = {item.id for item in (*first, *rest)}
        meter.finished += sum(self._replays_left(item) for item in known if item.id not in counted)
        rest = [item for item in rest if self._is_left(item)]
        if hurried or meter.seconds_of(rest) > meter.until - time.perf_counter():
            rest = by_promise(self.runner, self.trials, rest, meter, patience, taught)
        else:
            near = {item.design for item in first if not self._is_left(item)}
            rest.sort(key=lambda item: (item.design not in near, meter.costs.of(item.design) or 0.0))
        for turn in range(_ROUNDS + 1):
            meter.expect(rest)
            final = StopRule(self.runner.interrupt, until=meter.until)
            self.runner.run(rest, self.trials, meter, patience if turn < _ROUNDS else final)
            rest = self._open([item for item in chosen if self._is_left(item)])
            if not rest or patience.over or turn == _ROUNDS:
                break
            meter.finished -= sum(map(self._replays_left, rest))
        return not rest

    def _open(self, candidates: Sequence[SearchCandidate]) -> list[SearchCandidate]:
        """Candidates that may still come on the front or change it."""
        bar = self.trials.rivals.bar if self.trials.rivals else None
        if bar is None or not candidates:
            return list(candidates)
        settled = bar.settled([self.trials.known(candidate.id) for candidate in candidates])
        return [candidate for candidate, known in zip(candidates, settled, strict=True) if not known]


_KNOWN = {*UNTUNED, *RIVALS}
"""Heaps of the zoo that are finished first where there is no time for all: what a pick has to beat."""


def _keep(shares: TimeBudget, meter: Meter) -> None:
    """Let exploring end in time for what comes after."""
    meter.until = shares.exploring_until
    meter.after = 0.0 if meter.until == inf else shares.until - meter.until


def _spread(candidates: Sequence[SearchCandidate]) -> list[SearchCandidate]:
    """One recipe of each design."""
    return list({candidate.design: candidate for candidate in reversed(candidates)}.values())


EARLY = 20
"""So many of what other traces taught are finished before anything is given up."""

SHARES = (1 / 64, 1 / 16)
"""How much of each trace the pieces have."""

LEAST_PIECE = 4096
"""A shorter piece tells too little of a trace."""

_LEADING = 8
"""Where what was taught is all that there is time for, one in so many is replayed on longer pieces."""

ROOM = 1 / 4
"""Share of the time left that a round of pieces may take."""


def by_promise(
    runner: Runner,
    trials: Trials,
    candidates: Sequence[SearchCandidate],
    meter: Meter,
    patience: StopRule,
    taught: Collection[str] = (),
) -> list[SearchCandidate]:
    """The candidates, those that promise most first; some of them are replayed on pieces of the traces to know.

    As many are as the time of ``patience`` has room for, and only those of ``taught`` where some are given; the others
    come last, by the design of those that were.
    """
    if max(map(len, trials.traces)) < LEAST_PIECE:
        return list(candidates)
    forecast = Forecast(trials)

    def try_on(share: float, some: Sequence[SearchCandidate]) -> list[SearchCandidate]:
        pieces = [max(int(share * len(trace)), min(LEAST_PIECE, len(trace) // 4)) for trace in trials.traces]
        requested = some[: _room(some, meter, patience, share)]
        counted = meter.for_pieces()
        counted.expect(requested)
        runner.run(requested, trials, counted, replace(patience, pieces=pieces))
        if taught:  # until then the zoo's slowest tell what a recipe costs
            meter.costs.take_from_pieces(counted.costs, 1 / share)
        return _in_order(candidates, forecast)

    if taught:
        for _ in range(2):
            ordered = try_on(
                SHARES[0],
                [candidate for candidate in candidates if candidate.id in taught and not forecast.knows(candidate)],
            )
        return try_on(SHARES[1], ordered[: len(taught) // _LEADING])
    ordered = try_on(SHARES[0], _spread(candidates))
    ordered = try_on(SHARES[0], [item for item in ordered if not forecast.knows(item)])
    return try_on(SHARES[1], ordered)


def _in_order(candidates: Sequence[SearchCandidate], forecast: Forecast) -> list[SearchCandidate]:
    """Candidates in the order to try: forecast ones by distance, both ends of the front first, then others by design.

    Those that refused what they were asked promise nothing, however little they need.
    """
    refusing = [candidate for candidate in candidates if forecast.refuses(candidate)]
    candidates = [candidate for candidate in candidates if not forecast.refuses(candidate)]
    info = [candidate for candidate in candidates if forecast.knows(candidate)]
    distance = forecast.distances(info)
    best: dict[Hashable, float] = {}
    for candidate, far in zip(info, distance, strict=True):
        best[candidate.design] = min(far, best.get(candidate.design, inf))
    nearest = [info[at] for at in np.argsort(distance, kind="stable")]
    front = int((distance <= 0).sum())
    nearest[:front] = [nearest[at] for at in in_bisecting_order(front)]
    others = [candidate for candidate in candidates if not forecast.knows(candidate)]
    return [*nearest, *sorted(others, key=lambda candidate: best.get(candidate.design, inf)), *refusing]


def _room(candidates: Sequence[SearchCandidate], meter: Meter, patience: StopRule, share: float) -> int:
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

    def knows(self, item: SearchCandidate) -> bool:
        """Whether a recipe was replayed on some piece of each trace."""
        known = self._trials.known(item.id)
        return all(known.ended[at] or known.calls(at) for at in range(len(self._trials.traces)))

    def refuses(self, item: SearchCandidate) -> bool:
        """Whether a recipe refused a request of some trace."""
        return bool(self._trials.known(item.id).refused.any())

    def distances(self, candidates: Sequence[SearchCandidate]) -> NDArray[np.float64]:
        """How far each is from the front of all of them, float64[n]."""
        if not candidates:
            return np.empty(0)
        values = np.stack([self._values(candidate) for candidate in candidates])
        if self._trials.same_device:
            values = on_device(values, self._trials.objectives)
        points = pareto.ratios(values, values.min(axis=0)).max(axis=2)
        front = points[pareto.front(points, ["min"] * points.shape[1])]
        return pareto.distances(points, front)

    def _values(self, item: SearchCandidate) -> NDArray[np.float64]:
        known = self._trials.known(item.id)
        values: NDArray[np.float64] = known.least.copy()
        for at, trace in enumerate(self._trials.traces):
            so_far = known.so_far[at]
            if known.ended[at] or so_far is None:
                continue
            for row, key in enumerate(self._trials.objectives):
                if key == "footprint_bytes":
                    least = self._least_of(at, so_far.calls).of(item.recipe)[0]
                    values[row, at] = known.floor[at] * so_far.footprint_bytes / least
                elif METRICS[key].rule == "sum":
                    values[row, at] = getattr(so_far, key) * len(trace) / so_far.calls
        return values

    def _least_of(self, at: int, calls: int) -> LeastFootprints:
        if (at, calls) not in self._least:
            piece = cut(Stream.of(self._trials.traces[at]), first=calls, close=False).trace()
            self._least[at, calls] = LeastFootprints([piece])
        return self._least[at, calls]

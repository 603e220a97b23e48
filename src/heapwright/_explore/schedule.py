"""Schedule of an exploration: a queue of evaluations, the most promising first, that may be stopped at any time.

Reference allocators come first, then the head of the portfolio, one recipe of each design, and the others. If time is
too short for the candidates at hand, short pieces of the traces are replayed first and longer ones for the best; what
these forecast for the whole traces is their order. Jamieson and Talwalkar, "Non-stochastic best arm identification and
hyperparameter optimization" (AISTATS 2016), with the distance to a front (`heapwright._studies.pareto.distances`) in
place of one loss. `StopRule.prunes` ends each evaluation that can no longer reach the front.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import inf

import numpy as np
from numpy.typing import NDArray

from heapwright._explore.budget import TimeBudget, in_bisecting_order
from heapwright._explore.evaluation import Flag, SearchCandidate, StopRule
from heapwright._explore.pruning import on_device
from heapwright._explore.runner import Meter, Runner, Trials
from heapwright._replay.lower_bounds import LeastFootprints
from heapwright._replay.metrics import METRICS
from heapwright._studies import pareto
from heapwright._studies.recommendations import NEAR, UNTUNED, WELL_KNOWN
from heapwright._traces.cut import cut
from heapwright._traces.streams import Stream

COMPLETE_SECONDS = 60.0
"""All recipes are finished if that takes no longer, unless the caller chose otherwise."""

TOLERANCE = 0.01
"""How far the front may be from that of all recipes if finishing all would take longer, as a share."""

_SURELY = 3
"""A forecast from the reference allocators above this many times `COMPLETE_SECONDS` needs no further measurement."""

_ROUNDS = 5
"""In each round of this number, the pruned recipes that may reach the front after all are finished unpruned."""

EARLY = 20
"""Recipes of the portfolio that are finished before anything is pruned."""

SHARES = (1 / 64, 1 / 16)
"""Lengths of the two kinds of pieces, as shares of each trace."""

LEAST_PIECE = 4096
"""Fewest calls of a piece that says enough about its trace."""

_LEADING = 8
"""One in this many recipes of the portfolio is replayed on longer pieces if there is time for the portfolio only."""

ROOM = 1 / 4
"""Share of the remaining time that a round of pieces may take."""

_COMPARED_WITH = {*UNTUNED, *WELL_KNOWN}
"""Reference allocators that are finished first if time is short: what a recommendation is compared with."""


@dataclass(frozen=True)
class FinishingRule:
    """When an exploration is finished: all recipes done, a front within a tolerance, or the end of the time.

    ``tolerance`` None is chosen by the time that all recipes take; ``until`` is a time of `time.perf_counter`.
    """

    complete: bool
    tolerance: float | None = None
    until: float | None = None


COMPLETE = FinishingRule(complete=True)


@dataclass(frozen=True)
class Batch:
    """Candidates to evaluate in this order, the rule that stops each of them, and the meter that counts them."""

    candidates: Sequence[SearchCandidate]
    stop_rule: StopRule
    meter: Meter


@dataclass
class Exploring:
    """Evaluation of the recipes of a space on the traces by which they are ranked."""

    runner: Runner
    trials: Trials

    def run(
        self,
        chosen: Sequence[SearchCandidate],
        finishing: FinishingRule,
        portfolio: Sequence[str] = (),
        *,
        ranked: bool,
        time_budget: TimeBudget,
    ) -> None:
        """Evaluate the chosen candidates as far as the finishing rule demands, and store how near the front is.

        ``portfolio``: ids of recipes that did well on other traces, the best first. ``ranked``: whether the chosen ones
        are the whole space.
        """
        study = self.runner.study
        earlier = study.meta.get("tolerance")
        meter = Meter(self.runner.progress, "explored", len(chosen), len(self.trials.traces), self.runner.workers)
        resumed = earlier is not None
        queue = EvaluationQueue(self.trials, meter, self.runner.interrupt, chosen, portfolio, resumed=resumed)
        if queue.waiting and resumed:
            study.set_tolerance(None)  # an interrupt from here on leaves a front of unknown quality
        if finishing.tolerance is None:
            finishing = replace(finishing, tolerance=earlier)
        for batch in queue.batches(finishing, time_budget):
            batch.meter.expect(batch.candidates)
            self.runner.run(batch.candidates, self.trials, batch.meter, batch.stop_rule)
        if meter.tolerance is not None:
            study.set_tolerance(meter.tolerance if ranked and not queue.waiting else None)


class EvaluationQueue:
    """Candidates that may still reach the front, in the order of their promise, handed out in batches.

    ``waiting`` are those candidates; it is empty once the front is within its tolerance.
    """

    def __init__(
        self,
        trials: Trials,
        meter: Meter,
        interrupt: Flag,
        chosen: Sequence[SearchCandidate],
        portfolio: Sequence[str] = (),
        *,
        resumed: bool = False,
    ) -> None:
        """Begin with the chosen candidates in their order. ``resumed``: an earlier run came to its end on them."""
        self._trials, self._meter, self._interrupt = trials, meter, interrupt
        self._chosen, self._portfolio, self._resumed = chosen, portfolio, resumed
        self._time_is_short = False
        """Whether even the reference allocators take too much of the time, so that pieces choose among all others."""
        self.waiting = list(chosen)
        self._drop_finished()

    def batches(self, finishing: FinishingRule, time_budget: TimeBudget) -> Iterator[Batch]:
        """Batches until no candidate is left or the time is over, each composed from what the ones before it showed."""
        tolerance, complete = finishing.tolerance, finishing.complete
        yield from self._always()
        if not complete:
            self._restore_lower_bounds()
            yield from self._references(time_budget)
            if not self._time_is_short:
                head = frozenset(self._portfolio[:EARLY])
                yield from self._evaluate([item for item in self.waiting if item.id in head], self._unpruned)
            if tolerance is None and not self._prunes_at_once and self._takes_at_most(_SURELY * COMPLETE_SECONDS):
                yield from self._evaluate(_one_of_each_design(self.waiting), self._unpruned)
            # objectives that may fall during a replay bound nothing from below, so nothing can be pruned
            complete = not self._trials.objectives or (
                tolerance is None and not self._prunes_at_once and self._takes_at_most(COMPLETE_SECONDS)
            )
        if complete:
            yield from self._evaluate(self.waiting, self._unpruned)
        else:
            yield from self._contest(TOLERANCE if tolerance is None else tolerance)

    def _always(self) -> Iterator[Batch]:
        """What is evaluated in any case, in time or not."""
        if always := [item for item in self.waiting if item.always]:
            yield from self._evaluate(always, StopRule(self._interrupt))

    @property
    def _unpruned(self) -> StopRule:
        return StopRule(self._interrupt, until=self._meter.until)

    @property
    def _prunes_at_once(self) -> bool:
        """Whether it is clear without measuring that there is no time to finish all recipes."""
        return self._time_is_short and bool(self._trials.objectives)

    def _references(self, time_budget: TimeBudget) -> Iterator[Batch]:
        """Reference allocators, which are never pruned; only well-known ones, the cheapest first, if time is short."""
        meter, zoo = self._meter, [item for item in self.waiting if item.zoo_name]
        _set_end(meter, time_budget)
        if meter.until < inf:
            yield from self._measure_on_pieces(zoo)
        if self._time_is_short:
            zoo.sort(key=lambda item: meter.costs.of(item.design) or 0.0)
            now = time.perf_counter()
            until = now + ROOM * (meter.until - now)
            well_known = [item for item in zoo if item.zoo_name in _COMPARED_WITH]
            yield from self._evaluate(well_known, StopRule(self._interrupt, until=until))
        else:
            yield from self._evaluate(zoo, self._unpruned)
        time_budget.each = meter.seconds_of(zoo) * meter.workers.jobs / max(len(zoo), 1)
        _set_end(meter, time_budget)

    def _measure_on_pieces(self, zoo: Sequence[SearchCandidate]) -> Iterator[Batch]:
        """The shortest pieces for the reference allocators, which show whether there is time to finish these."""
        share = SHARES[0]
        pieces = [int(share * len(trace)) for trace in self._trials.traces]
        if not zoo or min(pieces) < LEAST_PIECE:  # whole replays of such traces take little longer
            return
        counted = self._meter.for_pieces()
        ranked = [item for item in zoo if item.ranked]
        yield Batch(ranked, replace(self._unpruned, pieces=pieces), counted)
        if counted.seconds_of(zoo) / share > ROOM * (self._meter.until - time.perf_counter()):
            self._time_is_short = True
            self._meter.costs.take_from_pieces(counted.costs, 1 / share)

    def _contest(self, tolerance: float) -> Iterator[Batch]:
        """All other candidates; each is pruned once the incumbents dominate it."""
        self._meter.tolerance = tolerance
        incumbents = self._trials.compete(tolerance, [item.id for item in self._chosen if item.ranked])
        pruning = StopRule(self._interrupt, incumbents, until=self._meter.until)
        self._drop_settled()
        near = set[Hashable]()
        if not self._time_is_short and not self._resumed:
            # one recipe of each design near the front is finished: a recommendation may fall back on another design
            designs = _one_of_each_design(self.waiting)
            yield from self._evaluate(designs, replace(pruning, tolerated=NEAR))
            near = {item.design for item in designs if not self._replays_left(item)}
            self._drop_settled()
        if self._time_is_short or not self._takes_at_most(inf):
            yield from self._forecast(pruning)
        else:
            self.waiting.sort(key=lambda item: (item.design not in near, self._meter.costs.of(item.design) or 0.0))
        for turn in count(1):
            # what finished last may open others again; finishing these unpruned now and then makes the loop end
            yield from self._evaluate(self.waiting, pruning if turn % _ROUNDS else self._unpruned)
            self._drop_settled()
            if not self.waiting or pruning.over:
                break

    def _forecast(self, pruning: StopRule) -> Iterator[Batch]:
        """Pieces of the traces for as many candidates as there is time for; orders all by what these forecast."""
        traces = self._trials.traces
        if max(map(len, traces)) < LEAST_PIECE:
            return
        forecast, candidates = Forecast(self._trials), self.waiting
        for share, sample in self._samples(candidates, forecast):
            pieces = [max(int(share * len(trace)), min(LEAST_PIECE, len(trace) // 4)) for trace in traces]
            counted = self._meter.for_pieces()
            yield Batch(sample[: self._room(sample, share)], replace(pruning, pieces=pieces), counted)
            if self._time_is_short:  # until then only the slow well-known allocators show what a recipe costs
                self._meter.costs.take_from_pieces(counted.costs, 1 / share)
            self.waiting = _by_forecast(candidates, forecast)

    def _samples(
        self, candidates: Sequence[SearchCandidate], forecast: Forecast
    ) -> Iterator[tuple[float, Sequence[SearchCandidate]]]:
        """Candidates for pieces and the share of the traces that these have, chosen by what earlier pieces showed."""
        short, long = SHARES
        if self._time_is_short:
            portfolio = frozenset(self._portfolio)
            for _ in range(2):  # the first pass shows what a piece costs, so how many more there is time for
                yield short, [item for item in candidates if item.id in portfolio and not forecast.knows(item)]
            yield long, self.waiting[: len(portfolio) // _LEADING]
        else:
            yield short, _one_of_each_design(candidates)
            yield short, [item for item in self.waiting if not forecast.knows(item)]
            yield long, self.waiting

    def _room(self, candidates: Sequence[SearchCandidate], share: float) -> int:
        """How many of the candidates there is time for on pieces of this share."""
        needed = self._meter.seconds_of(candidates) * share
        room = ROOM * max(self._meter.until - time.perf_counter(), 0)
        return len(candidates) if needed <= room else max(int(len(candidates) * room / needed), 1)

    def _evaluate(self, candidates: Sequence[SearchCandidate], stop_rule: StopRule) -> Iterator[Batch]:
        """A batch on whole traces; what has ended then leaves the queue."""
        if not stop_rule.over:  # what was pruned and waits again counts once, not twice
            self._meter.finished = self._meter.total - sum(map(self._replays_left, self.waiting))
        yield Batch(candidates, stop_rule, self._meter)
        self._drop_finished()

    def _takes_at_most(self, seconds: float) -> bool:
        """Whether the waiting candidates are forecast to take at most these seconds, and to end in time."""
        return self._meter.seconds_of(self.waiting) <= min(seconds, self._meter.until - time.perf_counter())

    def _drop_finished(self) -> None:
        self.waiting = [item for item in self.waiting if self._replays_left(item)]

    def _drop_settled(self) -> None:
        """Keep those of all chosen candidates that may still reach the front or change it."""
        remaining = [item for item in self._chosen if self._replays_left(item)]
        front_bound = self._trials.incumbents.front_bound if self._trials.incumbents else None
        if front_bound is not None and remaining:
            settled = front_bound.settled([self._trials.partial_result(item.id) for item in remaining])
            remaining = [item for item, is_settled in zip(remaining, settled, strict=True) if not is_settled]
        self.waiting = remaining

    def _replays_left(self, item: SearchCandidate) -> int:
        return self._trials.partial_result(item.id).remaining

    def _restore_lower_bounds(self) -> None:
        """Compute the lower bounds of what an earlier run pruned; the study keeps only how far it came."""
        for item in self.waiting:
            partial_result = self._trials.partial_result(item.id)
            if partial_result.floor.any():
                self._trials.evaluator.set_lower_bounds(item.recipe, partial_result)


def _set_end(meter: Meter, time_budget: TimeBudget) -> None:
    """Let exploring end in time for what comes after it."""
    meter.until = time_budget.exploring_until
    meter.after = 0.0 if meter.until == inf else time_budget.until - meter.until


def _one_of_each_design(candidates: Sequence[SearchCandidate]) -> list[SearchCandidate]:
    """The first candidate of each design."""
    return list({candidate.design: candidate for candidate in reversed(candidates)}.values())


def _by_forecast(candidates: Sequence[SearchCandidate], forecast: Forecast) -> list[SearchCandidate]:
    """Candidates by the distance that is forecast, both ends of the front first, then those without by their design.

    Candidates that failed requests come last, however little memory they need.
    """
    failing = [candidate for candidate in candidates if forecast.fails(candidate)]
    candidates = [candidate for candidate in candidates if not forecast.fails(candidate)]
    measured = [candidate for candidate in candidates if forecast.knows(candidate)]
    distances = forecast.distances(measured)
    best: dict[Hashable, float] = {}
    for candidate, distance in zip(measured, distances, strict=True):
        best[candidate.design] = min(distance, best.get(candidate.design, inf))
    nearest = [measured[at] for at in np.argsort(distances, kind="stable")]
    front = int((distances <= 0).sum())
    nearest[:front] = [nearest[at] for at in in_bisecting_order(front)]
    others = [candidate for candidate in candidates if not forecast.knows(candidate)]
    return [*nearest, *sorted(others, key=lambda candidate: best.get(candidate.design, inf)), *failing]


class Forecast:
    """Forecast of objectives on whole traces from replays of their pieces.

    Counts grow with the calls; the footprint keeps the ratio to the least footprint that it had at the piece's end.
    """

    def __init__(self, trials: Trials) -> None:
        """Take the trials that hold the results of the pieces."""
        self._trials = trials
        self._least: dict[tuple[int, int], LeastFootprints] = {}

    def knows(self, item: SearchCandidate) -> bool:
        """Whether a recipe was replayed on some piece of each trace."""
        partial_result = self._trials.partial_result(item.id)
        return all(partial_result.ended[at] or partial_result.calls(at) for at in range(len(self._trials.traces)))

    def fails(self, item: SearchCandidate) -> bool:
        """Whether a recipe failed a request of some trace."""
        return bool(self._trials.partial_result(item.id).refused.any())

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
        partial_result = self._trials.partial_result(item.id)
        values: NDArray[np.float64] = partial_result.least.copy()
        for at, trace in enumerate(self._trials.traces):
            so_far = partial_result.so_far[at]
            if partial_result.ended[at] or so_far is None:
                continue
            for row, key in enumerate(self._trials.objectives):
                if key == "footprint_bytes":
                    least = self._least_of(at, so_far.calls).of(item.recipe)[0]
                    values[row, at] = partial_result.floor[at] * so_far.footprint_bytes / least
                elif METRICS[key].rule == "sum":
                    values[row, at] = getattr(so_far, key) * len(trace) / so_far.calls
        return values

    def _least_of(self, at: int, calls: int) -> LeastFootprints:
        if (at, calls) not in self._least:
            piece = cut(Stream.of(self._trials.traces[at]), first=calls, close=False).trace()
            self._least[at, calls] = LeastFootprints([piece])
        return self._least[at, calls]

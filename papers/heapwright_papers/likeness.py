"""How like the paper's tables ours are under a reading of its sentences, and which readings are the likest.

Every table of the 2006 paper (3 to 5), on each kind of traffic, has six allocators with fragmentation and time. Its
likeness is the rank correlation of both with the paper's, and the mean |ln ratio|: of memory, 1 + fragmentation, and of
times over the proposed allocator's. The leading readings are those with the largest `score` over all tables. What that
choice is worth shows on an application that had no part in it: `held_out`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright_papers.answers import rank_correlation
from heapwright_papers.case_study import PROPOSED, SYSTEMS, Case, Trial, case, fragmentation, millions, read_as
from heapwright_papers.readings import Joint, all_joint, leading

ROWS = (*SYSTEMS, PROPOSED)
APPLICATIONS = ("drr", "easyport", "url")
WHOLE_PROGRAM = ("url",)
"""Applications whose seconds contain the application's own work: of their times only the order is compared."""
WEIGHT = 0.1
"""Of the mean |ln ratio| in the score: ranks lead, and it tells apart what ranks alike."""
WEIGHTS = (0.0, 0.05, WEIGHT, 0.2, 0.5, 1.0)
"""Other weights, to see what hangs on this one."""

Values = Mapping[str, Sequence[float]]
"""By the name of `case_study.read_name`, the mean fragmentation in per cent and the millions of instructions."""
Tables = Mapping[str, Mapping[str, Values]]
"""By application and kind of traffic."""


class Likeness(NamedTuple):
    """Of one table; `time_ratio` is None where times of the paper contain the application."""

    fragmentation_rank: float
    time_rank: float
    memory_ratio: float
    time_ratio: float | None


@dataclass(frozen=True)
class Choice:
    """The readings with the best score over some tables."""

    joint: Joint
    score: float

    @property
    def names(self) -> list[str]:
        """Of its readings."""
        return [reading.name for reading in self.joint]


def values_of(trial: Trial) -> dict[str, list[float]]:
    """What each reading's allocators cost on a kind of traffic; those that refuse or are not counted are left out."""
    heaps = {heap for joint in all_joint() for heap in read_as(joint).values()}
    timed = trial.counted
    return {
        heap: [trial.average(heap, fragmentation), timed.average(heap, millions)]
        for heap in sorted(heaps)
        if trial.served(heap) and timed.timed(heap)
    }


def likeness(of: Case, heaps: Mapping[str, str], values: Values) -> Likeness | None:
    """Of a table with these allocators in its rows, by row; None if one has no values."""
    if any(heaps[row] not in values for row in ROWS):
        return None
    wasted, times = np.array([values[heaps[row]] for row in ROWS]).T
    theirs, seconds = (np.array([of.rows[row][at][0] for row in ROWS], float) for at in (0, 1))
    own = ROWS.index(PROPOSED)
    ratio = np.abs(np.log(times / times[own]) - np.log(seconds / seconds[own]))
    return Likeness(
        _correlation(wasted, theirs),
        _correlation(times, seconds),
        float(np.abs(np.log((100 + wasted) / (100 + theirs))).mean()),
        None if of.name in WHOLE_PROGRAM else float(np.delete(ratio, own).mean()),
    )


def _correlation(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    return rank_correlation(ours, theirs) if len(set(ours.tolist())) > 1 else 0.0


def score(of: Iterable[Likeness], weight: float = WEIGHT) -> float:
    """The mean rank correlation less `weight` times the mean |ln ratio|."""
    info = list(of)
    ranks = [rank for item in info for rank in item[:2]]
    ratios = [ratio for item in info for ratio in item[2:] if ratio is not None]
    return float(np.mean(ranks) - weight * np.mean(ratios))


class Judge:
    """Every combination of readings on the tables of some applications; `consistent`: none goes against Table 1."""

    def __init__(self, tables: Tables, consistent: bool = False) -> None:
        self.tables = tables
        self._known: dict[tuple[str, ...], dict[tuple[str, str], Likeness]] = {}
        for joint in all_joint():
            if consistent and any(reading.against for reading in joint):
                continue
            found = self.of(joint)
            if all(item is not None for item in found.values()):
                self._known[_names(joint)] = {key: item for key, item in found.items() if item is not None}

    def of(self, joint: Joint) -> dict[tuple[str, str], Likeness | None]:
        """By application and kind of traffic."""
        heaps = read_as(joint)
        return {
            (name, on): likeness(case(name), heaps, values)
            for name, kinds in self.tables.items()
            for on, values in kinds.items()
        }

    def best(self, without: str = "", weight: float = WEIGHT) -> Choice:
        """The combination with the best score over all applications but one; of several the first."""
        by_name = {_names(joint): joint for joint in all_joint()}
        scores = {
            key: score((item for (name, _), item in found.items() if name != without), weight)
            for key, found in self._known.items()
        }
        key = max(scores, key=lambda key: round(scores[key], 9))
        return Choice(by_name[key], scores[key])


def _names(joint: Joint) -> tuple[str, ...]:
    return tuple(reading.name for reading in joint)


def means(of: Iterable[Likeness]) -> dict[str, float]:
    """Over some tables: both rank correlations, the least of all, and both |ln ratios|."""
    info = list(of)
    times = [item.time_ratio for item in info if item.time_ratio is not None]
    return {
        "fragmentation_rank": float(np.mean([item.fragmentation_rank for item in info])),
        "time_rank": float(np.mean([item.time_rank for item in info])),
        "least": min(min(item[:2]) for item in info),
        "memory_ratio": float(np.mean([item.memory_ratio for item in info])),
        "time_ratio": float(np.mean(times)) if times else float("nan"),
    }


def held_out(tables: Tables) -> dict[str, Any]:
    """What the choice of readings is worth, from the tables of all APPLICATIONS.

    `rows`, of each table its likeness under the readings chosen on all, and under those chosen without its application,
    with their names where they are others; `chosen` and `apart`, the means of both; `weights`, for each of WEIGHTS the
    readings chosen on all, and the means of those without; `consistent`, such a row for WEIGHT among the readings that
    nothing in Table 1 goes against.
    """
    judge = Judge(tables)
    chosen = judge.best()
    inside, outside, without = judge.of(chosen.joint), *_apart(judge, WEIGHT)
    rows = [
        {"page": key[0], "on": key[1], "all": item, "without": outside[key], "others": _others(without[key[0]], chosen)}
        for key, item in inside.items()
        if item is not None
    ]
    return {
        "names": chosen.names,
        "leads": chosen.names == list(_names(leading())),
        "rows": rows,
        "chosen": means(item for item in inside.values() if item is not None),
        "apart": means(outside.values()),
        "weights": [_weighed(judge, weight, chosen) for weight in WEIGHTS],
        "consistent": _weighed(Judge(tables, consistent=True), WEIGHT, chosen),
    }


def _apart(judge: Judge, weight: float) -> tuple[dict[tuple[str, str], Likeness], dict[str, Choice]]:
    """Each table's likeness under what is chosen without its application, and that choice."""
    without = {name: judge.best(name, weight) for name in judge.tables}
    found = {name: judge.of(choice.joint) for name, choice in without.items()}
    return {key: item for name, of in found.items() for key, item in of.items() if key[0] == name and item}, without


def _weighed(judge: Judge, weight: float, chosen: Choice) -> dict[str, Any]:
    """What is chosen at a weight, beside another choice, and the means of what is chosen without each application."""
    pick, (outside, without) = judge.best(weight=weight), _apart(judge, weight)
    return {
        "weight": weight,
        "same": pick.names == chosen.names,
        "others": {name: _others(one, pick) for name, one in without.items()},
        **means(outside.values()),
    }


def _others(choice: Choice, than: Choice) -> list[str]:
    return [name for name, other in zip(choice.names, than.names, strict=True) if name != other]

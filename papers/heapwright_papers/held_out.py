"""Whether a proposed allocator is the most balanced: against the best of the full space, on networks held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import heapwright as hw
from heapwright import Recipe, Space, Study, zoo
from heapwright_papers.measuring import each, replayed
from heapwright_papers.page import ALIGN
from heapwright_papers.traffic import has_ip

if TYPE_CHECKING:
    from heapwright import PacketTable, Trace
    from heapwright_papers.case_study import Case

Costs: TypeAlias = "tuple[float, float]"
"""Memory in bytes and accesses, or the ratios of both."""

COPIES = 2
"""Perturbed copies of each network explored on, on which the balanced pick has to hold."""
ONE_IN = 6
"""One network of this number is explored on, the others are held out."""

NO_LARGER, BALANCED = "no larger", "balanced"
PUBLISHED, RETUNED = "the paper's", "its design, retuned"


@contextmanager
def explored(traces: Sequence[Trace], space: Space, **how: Any) -> Iterator[Study]:
    """The results of evaluating recipes of a space without pruning; `how` is what `heapwright.explore` takes."""
    with TemporaryDirectory(prefix="heapwright-papers-") as folder:
        path = Path(folder) / "study.duckdb"
        hw.explore(list(traces), path, space=space, stress_test=False, complete=True, **how)
        with Study.open(path) as study:
            yield study


@dataclass(frozen=True)
class Split:
    """Traces by the name of their network: those to explore on, and those held out."""

    explored: Mapping[str, Trace]
    held_out: Mapping[str, Trace]

    @classmethod
    def of(cls, short: Mapping[str, Trace], long: Mapping[str, Trace]) -> Split:
        """Deal networks in the order of what is live at once: the largest and every ONE_IN-th after it are explored.

        Of those the `short` traces are taken, of the others the `long` ones.
        """
        order = sorted(short, key=lambda name: (-short[name].peak_live_bytes, name))
        explored = order[::ONE_IN]
        return cls({name: short[name] for name in explored}, {n: long[n] for n in long if n not in explored})

    @classmethod
    def of_packets(cls, workload: str, tables: Mapping[str, PacketTable], short: int, long: int) -> Split:
        """Deal the traces that a workload (its name) makes of each network's first packets, `short` or `long` of them.

        Networks without IP packets are left out.
        """
        shown = {name: table for name, table in tables.items() if has_ip(table)}
        short_and_long = (
            {name: hw.workload(workload, table, count=count) for name, table in shown.items()}
            for count in (short, long)
        )
        return cls.of(*short_and_long)


@dataclass(frozen=True)
class Contest:
    """The allocator of the paper against the best of the full space.

    Attributes:
        split: the networks.
        tried: how many recipes, of the `space`, and how many form the `front`.
        heaps: what is compared, by name: PUBLISHED, RETUNED and the `picks`.
        picks: members of the front, by NO_LARGER and BALANCED.
        found: what each heap costs on each network held out, None where it refused requests.
    """

    split: Split
    tried: int
    space: int
    front: int
    heaps: Mapping[str, Recipe]
    picks: Mapping[str, Recipe]
    found: Mapping[str, Mapping[str, Costs | None]]

    @property
    def networks(self) -> list[str]:
        """All that it is about."""
        return [*self.split.explored, *self.split.held_out]

    def ratios(self, heap: str) -> list[Costs]:
        """To the allocator of the paper, on the networks that both serve."""
        pairs = (ratios_of(of[heap], of[PUBLISHED]) for of in self.found.values())
        return [pair for pair in pairs if pair]

    def rows(self) -> list[list[str]]:
        """On each network held out, and the geometric means: of the paper's both costs, of others their ratios."""
        others = [heap for heap in self.heaps if heap != PUBLISHED]
        rows = []
        for name, of in self.found.items():
            base = of[PUBLISHED]
            own = [f"{base[0]:,.0f}", f"{base[1] / len(self.split.held_out[name]):.1f}"] if base else ["–", "–"]
            rows.append([name, *own, *(cell for heap in others for cell in _shown(ratios_of(of[heap], base)))])
        means = (geometric_means(self.ratios(heap)) for heap in others)
        return [*rows, ["geometric mean", "", "", *(cell for mean in means for cell in _shown(mean))]]


def contest(case: Case, tables: Mapping[str, PacketTable], progress: Callable[[str], None]) -> Contest:
    """Explore the full space on some networks, and compare its best with the proposed allocator on the others."""
    split = Split.of_packets(case.name, tables, case.explored_packets, case.packets)
    proposed = zoo(case.proposed)
    heaps = {PUBLISHED: proposed, RETUNED: retuned(proposed, list(split.explored.values()))}
    if not split.held_out:
        return Contest(split, 0, 0, 0, heaps, {}, {})
    named = [replace(trace, name=name) for name, trace in split.explored.items()]
    space = Space.default(named, ALIGN, move_zoo=False)
    progress(f"{case.name}: {min(len(space), case.explored_recipes):,} recipes on {len(named)} networks")
    with explored(named, space, copies=COPIES, strategy="random", limit=case.explored_recipes) as study:
        base = {trace.name: costs(replayed(trace, proposed)) for trace in named}
        picks, tried, front = _picks(study, proposed, base), study.ranked, len(study.front())
    return Contest(split, tried, len(space), front, heaps | picks, picks, compared(split.held_out, heaps | picks))


def retuned(proposed: Recipe, traces: Sequence[Trace]) -> Recipe:
    """The proposed design with its freelists for the most frequent sizes of these traces."""
    lists = proposed.pools[0]
    assert isinstance(lists, hw.pools.Quick) and lists.sizes is not None
    sizes = tuple(size for size, _ in hw.default_space.Demand.of(traces).sizes[: len(lists.sizes)])
    return proposed.model_copy(update={"pools": (lists.model_copy(update={"sizes": sizes}), *proposed.pools[1:])})


def _picks(study: Study, proposed: Recipe, base: Mapping[str, Costs | None]) -> dict[str, Recipe]:
    """The members of the front that are compared: one where there is no other, or it is both.

    NO_LARGER is that with the fewest accesses of those that need no more memory than the proposed allocator, which is
    in the space, too, and is none of them. `base` is what it costs by network.
    """
    own = proposed.canonical().hash
    means = _means(study, [member.id for member in study.front() if member.id != own], base)
    fitting = [(mean[1], id) for id, mean in means.items() if mean[0] <= 1]
    chosen = {NO_LARGER: min(fitting)[1]} if fitting else {}
    balanced = study.pick("balanced").id
    if balanced not in (own, *chosen.values()):
        chosen[BALANCED] = balanced
    return {why: study.recipe(id) for why, id in chosen.items()}


def _means(study: Study, ids: Sequence[str], base: Mapping[str, Costs | None]) -> dict[str, Costs]:
    """By id, ratios over the traces that a recipe serves."""
    results: dict[str, Costs] = {}
    for id, metrics in study.per_trace(ids).items():
        pairs = [ratios_of(costs(metrics[name]), item) for name, item in base.items()]
        mean = geometric_means([pair for pair in pairs if pair])
        results |= {id: mean} if mean else {}
    return results


def compared(held_out: Mapping[str, Trace], heaps: Mapping[str, Recipe]) -> dict[str, dict[str, Costs | None]]:
    """What each heap costs on each trace."""

    def on(trace: Trace) -> dict[str, Costs | None]:
        return each(lambda recipe: costs(replayed(trace, recipe)), heaps)

    return {name: on(trace) for name, trace in held_out.items()}


def costs(metrics: Mapping[str, Any]) -> Costs | None:
    """Memory and accesses; None for a heap that refused requests."""
    return None if metrics["failed"] else (float(metrics["footprint_bytes"]), float(metrics["accesses"]))


def ratios_of(result: Costs | None, base: Costs | None) -> Costs | None:
    """Memory and accesses as ratios to those of another heap; None where one of the two refused requests."""
    return (result[0] / base[0], result[1] / base[1]) if result and base else None


def geometric_means(pairs: Sequence[Costs]) -> Costs | None:
    """Of both costs apart; None of none."""
    if not pairs:
        return None
    memory, accesses = np.exp(np.log(np.array(pairs)).mean(axis=0))
    return float(memory), float(accesses)


def _shown(pair: Costs | None) -> list[str]:
    return [f"{value:.2f}" for value in pair] if pair else ["–", "–"]

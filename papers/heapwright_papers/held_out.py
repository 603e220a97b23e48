"""The paper's own question on real traffic: the best allocators of the full space against the one that it proposes, on
networks that none of them was tuned on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import heapwright as hw
from heapwright import Recipe, Space, Study
from heapwright_papers.answers import percent
from heapwright_papers.case_study import REAL
from heapwright_papers.measuring import replayed
from heapwright_papers.page import ALIGN, Page
from heapwright_papers.traffic import has_ip, marked
from heapwright_papers.verdicts import Cause, fails, judge, not_tested

if TYPE_CHECKING:
    from heapwright import PacketTable, Trace

Costs: TypeAlias = "tuple[float, float]"
"""Memory in bytes and accesses, or the ratios of both."""

COPIES = 2
"""Perturbed copies of each network explored on, on which the balanced pick has to hold."""
ONE_IN = 6
"""One network in so many is explored on, the others are held out."""

NO_LARGER, BALANCED = "no larger", "balanced"
PUBLISHED, RETUNED = "the paper's", "its design, retuned"

_INTRODUCTION = """\
## The best of the full space on networks that it was not tuned on

Explored on {explored}: every {one_in}th network in the order of how much is live at once, the first {short:,}
packets of each. {recipes:,} recipes, {sample}judged by memory (the footprint, with headers and control data; of
several networks the largest) and accesses (of all together); {front} form the front. Members of it meet the allocator
of the paper on the {held_out} other networks, {long:,} packets of each where there are so many, which none of them was
tuned on. Recordings of 802.11 have no IP packets, whose sizes the paper's allocator is made for, and are left out:

{picks}

{beside}Ratios are to the allocator of the paper: less than 1 is better. `–`: requests were refused."""
_RETUNED = """\
Beside them, the paper's design with its lists made for the sizes of the networks explored. """


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
        return cls.of(
            *(
                {name: hw.workload(workload, table, count=count) for name, table in shown.items()}
                for count in (short, long)
            )
        )


def retuned(proposed: Recipe, traces: Sequence[Trace]) -> Recipe:
    """The proposed design with its freelists for the most frequent sizes of these traces."""
    lists = proposed.pools[0]
    assert isinstance(lists, hw.pools.Quick) and lists.sizes is not None
    sizes = tuple(size for size, _ in hw.families.Demand.of(traces).sizes[: len(lists.sizes)])
    return proposed.model_copy(update={"pools": (lists.model_copy(update={"sizes": sizes}), *proposed.pools[1:])})


def add_contest(
    page: Page,
    split: Split,
    packets: tuple[int, int],
    proposed: Mapping[str, Recipe],
    progress: Callable[[str], None],
    limit: int | None = None,
) -> None:
    """Explore the full space, add a table to the page, and answer whether the paper's allocator is the most balanced.

    Args:
        page: the page of the paper.
        split: see `Split`; where nothing is held out nothing is added.
        packets: how many packets of each network are in its trace, at most: explored on, and held out.
        proposed: the paper's allocator as PUBLISHED, and what else to compare with it, as RETUNED.
        progress: is told in a few words what is being done.
        limit: how many recipes of the space are tried, drawn at random; None for all.
    """
    if not split.held_out:
        return page.verdict(f"{page.name}-balanced", "–", not_tested("no network is left to be held out"), REAL)
    named = [replace(trace, name=name) for name, trace in split.explored.items()]
    space = Space.default(named, ALIGN, move_zoo=False)
    progress(f"{page.name}: {min(len(space), limit or len(space)):,} recipes on {len(named)} networks")
    reference = proposed[PUBLISHED]
    with TemporaryDirectory(prefix="heapwright-papers-") as folder:
        path = Path(folder) / "study.duckdb"
        how: dict[str, Any] = {"strategy": "exhaustive" if limit is None else "random", "limit": limit}
        hw.explore(named, path, space=space, copies=COPIES, endurance=False, complete=True, **how)
        with Study.open(path) as study:
            recipes, front = study.ranked, len(study.front())
            picks = _picks(study, reference, {trace.name: costs(replayed(trace, reference)) for trace in named})
    page.text(
        _INTRODUCTION.format(
            explored=", ".join(map(marked, split.explored)),
            short=packets[0],
            long=packets[1],
            one_in=ONE_IN,
            recipes=recipes,
            sample=""
            if limit is None or limit >= len(space)
            else f"the zoo and {limit:,} of {len(space):,} drawn at random, ",
            front=front,
            picks="\n".join(
                f"- {_WHY[why]}: `{recipe.name or recipe.hash}` ({recipe.summary(ALIGN)});"
                for why, recipe in picks.items()
            ),
            held_out=len(split.held_out),
            beside=_RETUNED if RETUNED in proposed else "",
        )
    )
    _compare(page, split.held_out, {**proposed, **picks})
    for why, recipe in picks.items():
        page.text(f"The {why} one as a recipe:\n\n```toml\n{_pools_of(recipe)}\n```")
    return None


_WHY = {
    NO_LARGER: f"{NO_LARGER}, that with the fewest accesses of those that need no more memory than the paper's on the "
    "networks explored (geometric means over the networks)",
    BALANCED: f"{BALANCED}, what `heapwright pareto --pick balanced` takes: the best compromise of memory and accesses "
    "among those that hold on perturbed copies of the networks explored",
}


def _picks(study: Study, proposed: Recipe, reference: Mapping[str, Costs | None]) -> dict[str, Recipe]:
    """The members of the front that are compared, by the keys of `_WHY`: one where there is no other, or it is both.

    The proposed allocator, which is in the space, too, is none of them; `reference` is what it costs by network.
    """
    own = proposed.canonical().hash
    front = [member for member in study.front() if member.id != own]
    per_trace = study.per_trace([member.id for member in front])
    fitting: list[tuple[float, str]] = []
    for member in front:
        pairs = [ratios_of(costs(per_trace[member.id][name]), base) for name, base in reference.items()]
        means = geometric_means([pair for pair in pairs if pair])
        if means and means[0] <= 1:
            fitting.append((means[1], member.id))
    chosen = {NO_LARGER: min(fitting)[1]} if fitting else {}
    balanced = study.pick("balanced").id
    if balanced not in (own, *chosen.values()):
        chosen[BALANCED] = balanced
    return {why: study.recipe(id) for why, id in chosen.items()}


def _pools_of(recipe: Recipe) -> str:
    """The recipe without what the zoo tells about it."""
    text = recipe.model_copy(update={"name": "", "source": "", "about": "", "year": None}).to_toml()
    return text.strip()


def _compare(page: Page, held_out: Mapping[str, Trace], heaps: Mapping[str, Recipe]) -> None:
    """The table of all heaps on the traces held out, and whether any pick is better in both."""
    others = [heap for heap in heaps if heap != PUBLISHED]
    ratios: dict[str, list[Costs]] = {heap: [] for heap in others}
    rows: list[list[object]] = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        tasks = {
            name: {heap: threads.submit(replayed, trace, recipe) for heap, recipe in heaps.items()}
            for name, trace in held_out.items()
        }
        made = {name: {heap: task.result() for heap, task in some.items()} for name, some in tasks.items()}
    for name, found in made.items():
        base = costs(found[PUBLISHED])
        cells = [ratios_of(costs(found[heap]), base) for heap in others]
        for heap, pair in zip(others, cells, strict=True):
            ratios[heap] += [pair] if pair else []
        rows.append(
            [marked(name), *_absolute(base, len(held_out[name])), *(cell for pair in cells for cell in _shown(pair))]
        )
    means = {heap: geometric_means(pairs) for heap, pairs in ratios.items()}
    rows.append(["geometric mean", "", "", *(cell for heap in others for cell in _shown(means[heap]))])
    columns = [f"{heap}: {what}" for heap in others for what in ("memory", "accesses")]
    page.table(("held out", f"{PUBLISHED}: memory, B", "accesses a call", *columns), rows)
    _judge(page, {why: ratios[why] for why in (NO_LARGER, BALANCED) if ratios.get(why)}, len(held_out))


def _judge(page: Page, ratios: Mapping[str, Sequence[Costs]], networks: int) -> None:
    """The most balanced is one that no pick beats in both memory and accesses, by geometric means."""
    told, better = [], []
    for why, pairs in ratios.items():
        means = geometric_means(pairs)
        assert means is not None
        both = sum(memory <= 1 and accesses <= 1 for memory, accesses in pairs)
        refused = f", and refuses requests on {networks - len(pairs)}" if len(pairs) < networks else ""
        told.append(
            f"the {why} one of the space takes {percent(means[0])} of its memory and {percent(means[1])} of its "
            f"accesses, and is at least as good in both on {both} of {networks} networks held out{refused}"
        )
        if max(means) < 1 and len(pairs) == networks:
            better.append(f"the {why} one, {percent(means[0])} of the memory and {percent(means[1])} of the accesses")
    why_not = fails(
        Cause.CHOICE,
        f"better in both is {'; '.join(better)}: a larger space than the four techniques of the paper has such",
    )
    here = "; ".join(told) or "both picks of the space are this one"
    page.verdict(f"{page.name}-balanced", here, judge(not better, why_not), REAL)


def costs(metrics: Mapping[str, Any]) -> Costs | None:
    """Memory and accesses; None for a heap that refused requests."""
    return None if metrics["failed"] else (float(metrics["footprint_bytes"]), float(metrics["accesses"]))


def ratios_of(found: Costs | None, base: Costs | None) -> Costs | None:
    """Memory and accesses as ratios to those of another heap; None where one of the two refused requests."""
    return (found[0] / base[0], found[1] / base[1]) if found and base else None


def geometric_means(pairs: Sequence[Costs]) -> Costs | None:
    """Of both costs apart; None of none."""
    if not pairs:
        return None
    memory, accesses = np.exp(np.log(np.array(pairs)).mean(axis=0))
    return float(memory), float(accesses)


def _absolute(found: Costs | None, calls: int) -> list[str]:
    return [f"{found[0]:,.0f}", f"{found[1] / calls:.1f}"] if found else ["–", "–"]


def _shown(pair: Costs | None) -> list[str]:
    return [f"{value:.2f}" for value in pair] if pair else ["–", "–"]

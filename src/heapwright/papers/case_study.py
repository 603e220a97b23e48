"""What the case studies of Mamagkakis et al. 2006 share: their tables, the allocators in them, and how ours are run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from heapwright.errors import HeapwrightError
from heapwright.host.timing import Bench
from heapwright.papers.page import Page, percent
from heapwright.recipes.recipe import Recipe
from heapwright.replay.replay import replay
from heapwright.zoo.catalogue import load

if TYPE_CHECKING:
    from heapwright.traces.trace import Trace
    from heapwright.traffic.packets import PacketTable

PAPER = "Mamagkakis et al. 2006"
PROPOSED = "Proposed"
SYSTEMS = {
    "Windows CE": "windows-ce",
    "Windows XP": "windows-xp",
    "Linux": "lea-2.7.2-128",
    "Enea OSE": "enea-ose",
    "uClinux": "uclinux",
}
"""The allocators of operating systems in the paper's tables, and those of the zoo that stand for them."""
UNSPLIT = {f"{name}, no split, no merge": name for name in ("Windows CE", "Windows XP")}
"""The same as section 5 of the paper speaks of them; its table 1 says the opposite."""
OTHERS = ("symbian-rheap", "kingsley", "binary-buddy", "tlsf", "victim-bins")
"""Of the zoo, beside the paper's: those that its section 2 names, and two of today."""

LEAST_PACKETS = 10_000
QUICK_ACCESSES = 500
"""Accesses a call below which a heap is timed in three rounds; slower ones, which noise disturbs less, in one."""


@dataclass(frozen=True)
class Case:
    """A case study: its table, and the reductions that its text claims, each (up to, on average) in per cent."""

    name: str
    table: int
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[tuple[int, ...], tuple[float, ...]]]
    less_fragmentation: tuple[float, float]
    less_time: tuple[float, float]
    unsplit: bool = True
    """Whether sizes differ so much that it matters whether Windows splits and merges."""

    @property
    def proposed(self) -> str:
        """The zoo's name of the allocator that the paper proposes."""
        return f"{self.name}-proposed"

    def heaps(self) -> dict[str, Recipe]:
        """Every allocator of our tables by its name there: the paper's, in its order, then the others."""
        heaps = {name: load(heap) for name, heap in SYSTEMS.items()}
        heaps |= {PROPOSED: load(self.proposed)}
        if self.unsplit:
            heaps |= {name: _unsplit(heaps[system]) for name, system in UNSPLIT.items()}
        return heaps | {name: load(name) for name in OTHERS}


@dataclass(frozen=True)
class Run:
    """One network under a workload, and what each heap made of it; `ns` a call lacks heaps that refused requests."""

    name: str
    trace: Trace
    metrics: Mapping[str, Mapping[str, Any]]
    ns: Mapping[str, float]

    @classmethod
    def of(cls, name: str, trace: Trace, heaps: Mapping[str, Recipe], bench: Bench) -> Run:
        """Replay the trace on every heap, and time the generated code of those that refuse nothing."""
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            metrics = dict(zip(heaps, threads.map(partial(replay, trace), heaps.values()), strict=True))
        served = [heap for heap in heaps if not metrics[heap]["failed"]]
        programs = {heap: bench.generated(heaps[heap]) for heap in served}
        most = QUICK_ACCESSES * len(trace)
        slow = {heap for heap in served if int(metrics[heap]["accesses"] or 0) > most}
        ns = bench.measure({heap: programs[heap] for heap in served if heap not in slow}, trace, rounds=3, passes=1)
        ns |= bench.measure({heap: programs[heap] for heap in slow}, trace, rounds=1, passes=1)
        return cls(name, trace, metrics, ns)

    def fragmentation(self, heap: str) -> float:
        """Memory used / memory requested - 1, headers not counted."""
        return float(self.metrics[heap]["fragmentation"])

    def milliseconds(self, heap: str) -> float:
        """CPU time of all calls."""
        return self.ns[heap] * len(self.trace) / 1e6


def stand_ins(tables: Mapping[str, PacketTable], packets: int, count: int) -> dict[str, PacketTable]:
    """The `count` tables with most distinct IP sizes in their first `packets`: networks of people, as the paper's are.

    Raises HeapwrightError where no table has LEAST_PACKETS IP packets there.
    """
    fit: dict[str, int] = {}
    for name, table in tables.items():
        sizes = table.ip_len[:packets]
        sizes = sizes[sizes > 0]
        if len(sizes) >= LEAST_PACKETS:
            fit[name] = len(np.unique(sizes))
    if not fit:
        raise HeapwrightError(f"no packet table has {LEAST_PACKETS:,} IP packets among its first {packets:,}")
    return {name: tables[name] for name in sorted(fit, key=lambda name: -fit[name])[:count]}


def run_all(case: Case, traces: Mapping[str, Callable[[], Trace]], progress: Callable[[str], None]) -> list[Run]:
    """A run for each trace, by the name of its network."""
    heaps, runs = case.heaps(), []
    with Bench() as bench:
        for name, make in traces.items():
            progress(f"{case.name}: {name}")
            runs.append(Run.of(name, make(), heaps, bench))
    return runs


# ---- tables ----------------------------------------------------------------------------------------------------------

METRIC = """\
Fragmentation is the paper's cost function, memory used / memory requested - 1, each at its peak and without
headers. The paper's times are those of the allocator in a whole run on a Pentium IV; ours are CPU time of the
generated code on this host, in milliseconds for all calls. `–`: the allocator refused requests."""

CONTRADICTION = """\
- The paper contradicts itself. Its Table 1 says that Windows CE merges free blocks in every cycle and that Windows XP
  gives full support to coalescing and splitting; its section 5 says that all but Linux hardly do either and "suffer
  massively". Our `windows-ce` and `windows-xp` follow the systems' documentation, which agrees with Table 1. The rows
  "no split, no merge" are the same heaps as section 5 has them, average fragmentation: {unsplit}."""

CHOICES = """\
- What the paper does not publish are choices of ours, each told by `heapwright zoo NAME`: Enea's buffer sizes, the
  smallest class of uClinux, the order of the free blocks in the proposed main pool (last freed first).
- The paper's metric leaves out headers, and so do the tables above but for the last column of the last: 8 bytes a
  block in Windows, 16 in Enea, 4 in the others."""


def add_tables(page: Page, case: Case, runs: Sequence[Run], reasons: Sequence[str]) -> None:
    """The paper's table, ours on the same rows and columns, other allocators, and why the numbers differ.

    `reasons` are items of a Markdown list, for this case study alone.
    """
    page.text(f"## Table {case.table}: fragmentation and execution time")
    names = [column.rstrip(".") for column in case.columns]
    header = ("the paper", "average, %", *(f"{name}, %" for name in names), "average, s", *(f"{n}, s" for n in names))
    rows = [[name, *wasted, *(f"{time:.2f}" for time in times)] for name, (wasted, times) in case.rows.items()]
    page.table(header, rows)
    networks = [run.name for run in runs]
    columns = ("average, %", *(f"{name}, %" for name in networks), "average, ms", *(f"{n}, ms" for n in networks))
    ours = [_row(heap, runs) for heap in (*SYSTEMS, PROPOSED)]
    page.table(("here", *columns), [*ours[:-1], _average_row(runs), ours[-1]])
    page.text("Allocators that are not in the paper's table:")
    unsplit = tuple(UNSPLIT) if case.unsplit else ()
    page.table(("here", *columns), [_row(heap, runs) for heap in (*unsplit, *OTHERS)])
    page.text("Accesses of the allocator to its own data, per call, which no machine changes; and what headers add:")
    header = ("here", *networks, "average fragmentation, %", "with headers, %")
    page.table(header, [_access_row(heap, runs) for heap in (*SYSTEMS, PROPOSED, *unsplit, *OTHERS)])
    page.text("Why our numbers differ from the paper's, as far as it is known:")
    theirs = {name: case.rows[UNSPLIT[name]][0][0] for name in unsplit}
    told = "; ".join(
        f"{UNSPLIT[name]} {_average_fragmentation(name, runs)}, the paper {theirs[name]} %" for name in unsplit
    )
    page.text("\n".join([*([CONTRADICTION.format(unsplit=told)] if told else []), CHOICES, *reasons]))


def _unsplit(recipe: Recipe) -> Recipe:
    *front, general = recipe.pools
    return recipe.model_copy(
        update={"pools": (*front, general.model_copy(update={"split": "never", "coalesce": "never"}))}
    )


def _served(heap: str, runs: Sequence[Run]) -> bool:
    return all(heap in run.ns for run in runs)


def _row(heap: str, runs: Sequence[Run]) -> list[object]:
    wasted = [f"{100 * run.fragmentation(heap):.1f}" if heap in run.ns else "–" for run in runs]
    times = [f"{run.milliseconds(heap):.2f}" if heap in run.ns else "–" for run in runs]
    whole = _served(heap, runs)
    average = f"{100 * mean(run.fragmentation(heap) for run in runs):.1f}" if whole else "–"
    time = f"{mean(run.milliseconds(heap) for run in runs):.2f}" if whole else "–"
    return [heap, average, *wasted, time, *times]


def _average_row(runs: Sequence[Run]) -> list[object]:
    systems = [heap for heap in SYSTEMS if _served(heap, runs)]
    wasted = [mean(100 * run.fragmentation(heap) for heap in systems) for run in runs]
    times = [mean(run.milliseconds(heap) for heap in systems) for run in runs]
    return [
        "Avg. Alloc.",
        *(f"{value:.1f}" for value in (mean(wasted), *wasted)),
        *(f"{value:.2f}" for value in (mean(times), *times)),
    ]


def _average_fragmentation(heap: str, runs: Sequence[Run]) -> str:
    return percent(mean(run.fragmentation(heap) for run in runs)) if _served(heap, runs) else "–"


def _access_row(heap: str, runs: Sequence[Run]) -> list[object]:
    accesses = [f"{run.metrics[heap]['accesses'] / len(run.trace):.1f}" if heap in run.ns else "–" for run in runs]
    if not _served(heap, runs):
        return [heap, *accesses, "–", "–"]
    both = [
        mean(100 * float(run.metrics[heap][key]) for run in runs)
        for key in ("fragmentation", "fragmentation_with_headers")
    ]
    return [heap, *accesses, *(f"{value:.1f}" for value in both)]


# ---- claims ----------------------------------------------------------------------------------------------------------


def check(page: Page, case: Case, runs: Sequence[Run]) -> None:
    """What the paper says of its own allocator beside those of operating systems."""
    systems = [heap for heap in SYSTEMS if _served(heap, runs)]
    wasted = {heap: [100 * run.fragmentation(heap) for run in runs] for heap in (*systems, PROPOSED)}
    times = {heap: [run.milliseconds(heap) for run in runs] for heap in (*systems, PROPOSED)}
    published: list[dict[str, float]] = [{name: row[of][0] for name, row in case.rows.items()} for of in (0, 1)]
    _check_best(page, "has the least fragmentation", published[0], "{:.0f} %", wasted, "{:.1f} %")
    _check_best(page, "is the fastest", published[1], "{:.2f} s", times, "{:.2f} ms")
    _check_reductions(page, "fragmentation", case.less_fragmentation, wasted)
    _check_reductions(page, "execution time", case.less_time, times)


def _check_best(
    page: Page,
    what: str,
    published: Mapping[str, float],
    unit_there: str,
    values: Mapping[str, Sequence[float]],
    unit: str,
) -> None:
    averages = {heap: mean(found) for heap, found in values.items()}
    rival = min(set(averages) - {PROPOSED}, key=lambda heap: averages[heap])
    rival_there = min(SYSTEMS, key=lambda heap: published[heap])
    ours, theirs = (unit_there.format(published[heap]) for heap in (PROPOSED, rival_there))
    page.claim(
        f"on average the proposed allocator {what}",
        f"{ours}; next is {rival_there} with {theirs}",
        f"{unit.format(averages[PROPOSED])}; the best of the others is {rival} with {unit.format(averages[rival])}",
        averages[PROPOSED] <= averages[rival],
    )


def _check_reductions(
    page: Page, what: str, claimed: tuple[float, float], values: Mapping[str, Sequence[float]]
) -> None:
    """The largest reduction over allocators and traces, and that of the averages, as the paper computes them."""
    ours = values[PROPOSED]
    averages = {heap: mean(found) for heap, found in values.items() if heap != PROPOSED}
    most = max(1 - own / other for heap in averages for own, other in zip(ours, values[heap], strict=True) if other > 0)
    usual = 1 - mean(ours) / mean(averages.values())
    worst = max(averages, key=lambda heap: averages[heap])
    rest = 1 - mean(ours) / mean(average for heap, average in averages.items() if heap != worst)
    up_to, average = claimed
    page.claim(f"it reduces {what} by up to", f"{up_to} %", percent(most, 1), 100 * most >= up_to)
    found = f"{percent(usual, 1)}; {percent(rest, 1)} if {worst}, the worst, is left out"
    page.claim(f"it reduces {what} on average by", f"{average} %", found, 100 * usual >= average)

"""What the case studies of Mamagkakis et al. 2006 share: the allocators in their tables, and how ours are run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from random import Random
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from heapwright import HeapwrightError, Recipe, zoo
from heapwright_papers import measuring
from heapwright_papers.documents import tables
from heapwright_papers.measuring import Instructions, each, replayed, spread
from heapwright_papers.readings import Joint, Reading, leading, rows_of, sentences

if TYPE_CHECKING:
    from heapwright import PacketTable, Trace

PROPOSED = "Proposed"
SYSTEMS = {
    "Windows CE": "windows-ce",
    "Windows XP": "windows-xp",
    "Linux": "lea-2.7.2-128",
    "Enea OSE": "enea-ose",
    "uClinux": "uclinux",
}
"""The allocators of operating systems in the paper's tables, and those of the zoo that stand for them: `system`."""
OTHERS = ("windows-ce", "symbian-rheap", "kingsley", "binary-buddy", "tlsf", "victim-bins")
"""Of the zoo, in addition to the paper's: those that its section 2 names, and two of today."""

REAL, MIX = "real networks", "the paper's mix"
LEAST_PACKETS = 10_000


def system(name: str) -> Recipe:
    """The allocator of an operating system as the leading readings have it."""
    return rows_of(leading())[name].recipe(name, "")


@dataclass(frozen=True)
class Case:
    """A case study: its table, the reductions that its text claims, each (up to, on average) in per cent, and its runs.

    Attributes:
        packets: of each network or trace.
        traces: how many networks replace the paper's, and how many forms its mix has.
        dominant: bytes of the IP packets that are most frequent in the paper's mix.
        explored_packets: of each network on which the full space is explored, `explored_recipes` of it.
        grid_packets: of each trace of the mix on which the uses of the four techniques are tried.
    """

    name: str
    packets: int
    traces: int
    dominant: tuple[int, int]
    explored_packets: int
    explored_recipes: int
    grid_packets: int
    table: int
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[tuple[int, ...], tuple[float, ...]]]
    less_fragmentation: tuple[float, float]
    less_time: tuple[float, float]

    @property
    def proposed(self) -> str:
        """The zoo's name of the allocator that the paper proposes."""
        return f"{self.name}-proposed"

    def read(self, joint: Joint) -> dict[str, Recipe]:
        """The allocators of the paper's table by their names there, in its order."""
        rows = rows_of(joint)
        return {row: rows[row].recipe(row, self.proposed) for row in (*SYSTEMS, PROPOSED)}

    def heaps(self) -> dict[str, Recipe]:
        """The allocators of all readings, by the names of `read_name`, and those not in the paper's table."""
        results = {name: item.recipe(row, self.proposed) for name, (row, item) in as_read().items()}
        return results | {name: zoo(name) for name in OTHERS} | {RANDOM: random_recipe(self.proposed)}


def counted(heaps: Iterable[str]) -> list[str]:
    """Of those of `Case.heaps`, the ones whose instructions the statements and their readings need."""
    return [heap for heap in heaps if heap in as_read() or heap in MUTANTS]


def as_read() -> dict[str, tuple[str, Reading]]:
    """Each row of the paper's under each reading that is about it, by the name that our tables give it."""
    every = ((row, reading) for sentence in sentences() for reading in sentence.readings for row in reading.heaps)
    return {read_name(row, reading): (row, reading) for row, reading in every}


def case(name: str) -> Case:
    """The case study of a page, as `cases.toml` has it."""
    return Case(name=name, **tables("cases")[name])


def read_as(joint: Joint) -> dict[str, str]:
    """The paper's rows by the names that our tables give them under these readings: see `Trial.under`."""
    return {row: read_name(row, reading) for row, reading in rows_of(joint).items()}


def read_name(row: str, reading: Reading) -> str:
    """How our tables name a row of the paper's as a reading has it."""
    return f"{row}, {reading.name}"


RANDOM = "random"
MUTANTS = ("windows-ce", "kingsley", "tlsf", RANDOM)
"""Of the zoo, and one drawn at random: what takes the proposed allocator's place to see which verdicts then change."""


def mutants(page: str) -> dict[str, Recipe]:
    """The allocators of MUTANTS by name; the random one is drawn for the page."""
    return {name: random_recipe(page) if name == RANDOM else zoo(name) for name in MUTANTS}


def random_recipe(seed: str) -> Recipe:
    """A recipe of two freelists and one list, drawn at random from the uses of the paper's four techniques."""
    draw = Random(seed)
    general = {
        "order": draw.choice(("lifo", "fifo", "address")),
        "fit": draw.choice(("first", "best", "worst")),
        "split": draw.choice(("always", "never", 64, 512)),
        "coalesce": draw.choice(("immediate", "never", "deferred")),
    }
    lists = {"kind": "quick", "sizes": sorted(draw.sample(range(8, 1500, 4), 2))}
    return Recipe.from_dict({"align": 4, "pool": [lists, {"kind": "general", **general}]})


@dataclass(frozen=True)
class Run:
    """One network under a workload, or one draw of the paper's mix, and what each heap made of it.

    `instructions` lacks heaps that refused requests or were not counted.
    """

    name: str
    trace: Trace
    metrics: Mapping[str, Mapping[str, Any]]
    instructions: Mapping[str, Instructions]
    seed: int = 0


Value = Callable[[Run, str], float]
"""The numbers of a heap on a run."""


@dataclass(frozen=True)
class Trial:
    """The runs of a case study on one kind of traffic; several of one name differ in their seed.

    `shown` names the heaps that stand under other names, which are those of `base`: there means are taken once.
    """

    on: str
    runs: Sequence[Run]
    base: Trial | None = None
    shown: Mapping[str, str] = field(default_factory=dict)

    def under(self, heaps: Mapping[str, str]) -> Trial:
        """The same with other heaps under the names of the paper's rows: both by name."""
        runs = []
        for run in self.runs:
            metrics = {**run.metrics, **{row: run.metrics[heap] for row, heap in heaps.items()}}
            info = {row: run.instructions[heap] for row, heap in heaps.items() if heap in run.instructions}
            kept = {heap: item for heap, item in run.instructions.items() if heap not in heaps}
            runs.append(replace(run, metrics=metrics, instructions=kept | info))
        return Trial(self.on, runs, self, heaps)

    @cached_property
    def _means(self) -> dict[tuple[str, Value, str], float]:
        return {}

    @cached_property
    def names(self) -> list[str]:
        """The networks or traces: the columns of its tables."""
        return list(dict.fromkeys(run.name for run in self.runs))

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds, one where the traffic is not drawn."""
        return sorted({run.seed for run in self.runs})

    @cached_property
    def counted(self) -> Trial:
        """The runs of the first seed: instructions are counted on those, as they hardly differ between seeds."""
        base = self.base and self.base.counted
        return Trial(self.on, [run for run in self.runs if run.seed == self.seeds[0]], base, self.shown)

    def of(self, name: str) -> list[Run]:
        """The runs of one column."""
        return [run for run in self.runs if run.name == name]

    def served(self, heap: str) -> bool:
        """Whether the heap refused nothing."""
        return all(heap in run.metrics and not run.metrics[heap]["failed"] for run in self.runs)

    def timed(self, heap: str) -> bool:
        """Whether its instructions are known on all runs."""
        return all(heap in run.instructions for run in self.runs)

    def column(self, heap: str, value: Value, name: str) -> float:
        """The mean over the seeds of one network."""
        if self.base:
            return self.base.column(self.shown.get(heap, heap), value, name)
        key = heap, value, name
        if key not in self._means:
            self._means[key] = mean(value(run, heap) for run in self.of(name))
        return self._means[key]

    def columns(self, heap: str, value: Value) -> list[float]:
        """The same for each network."""
        return [self.column(heap, value, name) for name in self.names]

    def average(self, heap: str, value: Value) -> float:
        """The mean over networks and seeds, as the paper's columns "Avg."."""
        return mean(self.columns(heap, value))

    def seed_averages(self, heap: str, value: Value) -> list[float]:
        """The mean over networks for each seed."""
        return [mean(value(run, heap) for run in self.runs if run.seed == seed) for seed in self.seeds]


def fragmentation(run: Run, heap: str) -> float:
    """Memory used / memory requested - 1 in per cent, headers not counted."""
    return 100 * float(run.metrics[heap]["fragmentation"])


@cache
def part(key: str) -> Value:
    """The metric "internal_bytes" or "external_bytes" as per cent of the memory requested."""

    def value(run: Run, heap: str) -> float:
        return 100 * float(run.metrics[heap][key]) / run.trace.peak_live_bytes

    return value


def millions(run: Run, heap: str) -> float:
    """Instructions of all calls, in millions."""
    return run.instructions[heap].total / 1e6


def accesses(run: Run, heap: str) -> float:
    """Accesses of the allocator to its own data, a call."""
    return float(run.metrics[heap]["accesses"]) / len(run.trace)


def stand_ins(tables: Mapping[str, PacketTable], packets: int, count: int) -> dict[str, PacketTable]:
    """The `count` tables with most distinct IP sizes in their first `packets`: networks of people, as the paper's are.

    None of none. Raises HeapwrightError where no table has LEAST_PACKETS IP packets there.
    """
    fit: dict[str, int] = {}
    for name, table in tables.items():
        sizes = table.ip_len[:packets]
        sizes = sizes[sizes > 0]
        if len(sizes) >= LEAST_PACKETS:
            fit[name] = len(np.unique(sizes))
    if tables and not fit:
        raise HeapwrightError(f"no packet table has {LEAST_PACKETS:,} IP packets among its first {packets:,}")
    return {name: tables[name] for name in sorted(fit, key=lambda name: -fit[name])[:count]}


def try_all(
    on: str, traces: Mapping[tuple[str, int], Trace], heaps: Mapping[str, Recipe], counted: Sequence[str] = ()
) -> Trial:
    """Replay every heap on traces by name and seed; on the first seed count the instructions of those in `counted`.

    What two names stand for is run once.
    """
    ids = {name: recipe.canonical().hash for name, recipe in heaps.items()}
    recipes = {ids[name]: recipe for name, recipe in heaps.items()}
    results = {key: each(partial(replayed, trace), recipes) for key, trace in traces.items()}
    seeds = [seed for _, seed in traces]
    first = [key for key in traces if key[1] == seeds[0]]

    def count(id: str) -> dict[tuple[str, int], Instructions | None]:
        known = [float(results[key][id]["accesses"] or 0) for key in first]
        info = measuring.instructions(recipes[id], [traces[key] for key in first], known)
        return dict(zip(first, info, strict=True)) if info else {}

    wanted = list(dict.fromkeys(ids[name] for name in counted))
    counts = dict(zip(wanted, spread(count, wanted), strict=True))

    def run(key: tuple[str, int], trace: Trace) -> Run:
        info = {heap: counts[ids[heap]].get(key) for heap in counted}
        known = {heap: item for heap, item in info.items() if item is not None}
        return Run(key[0], trace, {heap: results[key][id] for heap, id in ids.items()}, known, key[1])

    return Trial(on, [run(*item) for item in traces.items()])

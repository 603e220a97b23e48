"""What the case studies of Mamagkakis et al. 2006 share: the allocators in their tables, and how ours are run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from heapwright import HeapwrightError, Recipe, zoo
from heapwright_papers import measuring
from heapwright_papers.measuring import Instructions, replayed

if TYPE_CHECKING:
    from heapwright import PacketTable, Trace

PAPER = "Mamagkakis et al. 2006"
PROPOSED = "Proposed"
SYSTEMS = {
    "Windows CE": "windows-ce",
    "Windows XP": "windows-xp",
    "Linux": "lea-2.7.2-128",
    "Enea OSE": "enea-ose",
    "uClinux": "uclinux",
}
"""The allocators of operating systems in the paper's tables, and those of the zoo that stand for them: `system`."""
UNSPLIT = {f"{name}, no split, no merge": name for name in ("Windows CE", "Windows XP")}
"""The same as section 5 of the paper speaks of them; its Table 1 says the opposite."""
DOCUMENTED = {"Windows CE, units of 8": "windows-ce", "Windows XP, as documented": "windows-xp"}
"""As the systems' documentation has them, where the paper's tables say something else."""
OTHERS = ("symbian-rheap", "kingsley", "binary-buddy", "tlsf", "victim-bins")
"""Of the zoo, beside the paper's: those that its section 2 names, and two of today."""

REAL, MIX = "real networks", "the paper's mix"
LEAST_PACKETS = 10_000


def system(name: str) -> Recipe:
    """The allocator of an operating system as the paper's tables have it.

    Table 1: Windows XP keeps blocks above 1024 bytes in one FIFO list, uClinux neither splits nor merges. Table 5:
    Windows CE wastes 2 to 8 % on blocks of 8, 11 and 20 bytes, so its unit is 4.
    """
    recipe = zoo(SYSTEMS[name])
    if name == "Windows CE":
        return recipe.model_copy(update={"align": 4})
    if name == "Windows XP":
        return with_general(recipe, large_order="fifo")
    return with_general(recipe, split="never", coalesce="never") if name == "uClinux" else recipe


def with_general(recipe: Recipe, **changes: Any) -> Recipe:
    """A recipe with these keys of its last pool, a general one, set anew."""
    *front, general = recipe.pools
    return recipe.model_copy(update={"pools": (*front, general.model_copy(update=changes))})


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
        """The allocators of the paper's table by their names there, in its order, and those of its section 5."""
        heaps = {name: system(name) for name in SYSTEMS} | {PROPOSED: zoo(self.proposed)}
        if self.unsplit:
            heaps |= {name: with_general(heaps[of], split="never", coalesce="never") for name, of in UNSPLIT.items()}
        return heaps

    def more_heaps(self) -> dict[str, Recipe]:
        """Allocators that are not in the paper's table, by their names in ours."""
        return {name: zoo(stem) for name, stem in DOCUMENTED.items()} | {name: zoo(name) for name in OTHERS}


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


@dataclass(frozen=True)
class Trial:
    """The runs of a case study on one kind of traffic; several of one name differ in their seed."""

    on: str
    runs: Sequence[Run]

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
        return Trial(self.on, [run for run in self.runs if run.seed == self.seeds[0]])

    def of(self, name: str) -> list[Run]:
        """The runs of one column."""
        return [run for run in self.runs if run.name == name]

    def served(self, heap: str) -> bool:
        """Whether the heap refused nothing."""
        return all(heap in run.metrics and not run.metrics[heap]["failed"] for run in self.runs)

    def timed(self, heap: str) -> bool:
        """Whether its instructions are known on all runs."""
        return all(heap in run.instructions for run in self.runs)

    def column(self, heap: str, value: Callable[[Run, str], float], name: str) -> float:
        """The mean over the seeds of one network."""
        return mean(value(run, heap) for run in self.of(name))

    def columns(self, heap: str, value: Callable[[Run, str], float]) -> list[float]:
        """The same for each network."""
        return [self.column(heap, value, name) for name in self.names]

    def average(self, heap: str, value: Callable[[Run, str], float]) -> float:
        """The mean over networks and seeds, as the paper's columns "Avg."."""
        return mean(self.columns(heap, value))

    def seed_averages(self, heap: str, value: Callable[[Run, str], float]) -> list[float]:
        """The mean over networks for each seed."""
        return [mean(value(run, heap) for run in self.runs if run.seed == seed) for seed in self.seeds]


def fragmentation(run: Run, heap: str) -> float:
    """Memory used / memory requested - 1 in per cent, headers not counted."""
    return 100 * float(run.metrics[heap]["fragmentation"])


def part(key: str) -> Callable[[Run, str], float]:
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


def try_all(
    on: str, traces: Mapping[tuple[str, int], Trace], heaps: Mapping[str, Recipe], counted: Sequence[str] = ()
) -> Trial:
    """Replay every heap on traces by name and seed; on the first seed count the instructions of those in `counted`."""
    keys = list(traces)
    first = [at for at, (_, seed) in enumerate(keys) if seed == keys[0][1]]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        found = [
            dict(zip(heaps, threads.map(partial(replayed, traces[key]), heaps.values()), strict=True)) for key in keys
        ]

        def count(heap: str) -> list[Instructions | None] | None:
            known = [float(found[at][heap]["accesses"] or 0) for at in first]
            return measuring.instructions(heaps[heap], [traces[keys[at]] for at in first], known)

        counts = dict(zip(counted, threads.map(count, counted), strict=True))
    runs = []
    for at, (name, seed) in enumerate(keys):
        told = {heap: known[first.index(at)] for heap, known in counts.items() if known and at in first}
        instructions = {heap: one for heap, one in told.items() if one is not None}
        runs.append(Run(name, traces[name, seed], found[at], instructions, seed))
    return Trial(on, runs)

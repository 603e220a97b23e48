"""Pools of partitions and of buffers under Poisson requests: Figures 5 to 9, all five experiments; and real packets.

Elsayed and Galal, "Building better memory management for high performance wired/wireless networks: Part 2".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

import heapwright as hw
from heapwright import MALLOC, PacketTable, Recipe, Trace, zoo
from heapwright_papers.case_study import mutants
from heapwright_papers.declared import Metrics, constants, finish, metrics, page_of, seen
from heapwright_papers.measuring import probe, replayed, spread
from heapwright_papers.page import Page
from heapwright_papers.traffic import has_ip, packet_tables

REQUESTS = 1_000_000
LOADS = (0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.0035)
SMALLEST = (100, 200, 400, 800, 1600)
LARGEST = (1000, 1200, 1400, 1600, 1800, 2000)
RATE = 500
"""Requests a second in experiments 2 and 3, and of real packets."""
PARTITIONS = (256, 512, 1024, 2048, 4096)
MANY = 4096
"""Partitions of experiment 4's second configuration."""
SEGMENTS = (16, 32, 64, 128, 256, 512, 1024)
TOTALS = (64 * 1024, 512 * 1024)
"""Usable bytes of experiment 5's pools; the second is also that of experiment 4's first configuration."""
BUFFER_HEADERS = (0, 8)
"""Bytes of data that a fixed pool keeps for each buffer, in experiment 5; the paper does not give it."""

VARIABLE, INDEXED, FIXED = "variable pool", "variable pool, indexed", "fixed pool"
SERIES = ("admission", "pool utilisation", "utilisation", "utility")
LISTS = 8
"""Lists of free groups of INDEXED: one for each number of partitions that a request of the paper takes, and more."""
PACKETS = 50_000
"""Real packets of each network that are replayed."""


@dataclass(frozen=True)
class Scenario:
    """The requests of one point: mean seconds between them, and the range of their sizes in bytes."""

    interarrival: float
    min_size: int
    max_size: int


@dataclass(frozen=True)
class Results:
    """One experiment: x, and each pool's point at each x."""

    x: tuple[float, ...]
    points: dict[str, list[Metrics]]

    def of(self, pool: str, series: str) -> list[float]:
        """One line of a figure."""
        return [point[series] for point in self.points[pool]]

    def gains(self, series: str, pool: str = VARIABLE, other: str = FIXED) -> list[float]:
        """By how much a pool is above another at each x."""
        return [ours - theirs for ours, theirs in zip(self.of(pool, series), self.of(other, series), strict=True)]


def memory_bytes(recipe: Recipe) -> int:
    """All memory of a pool of a fixed number of blocks: data, descriptors or headers, and control data."""
    return probe(recipe, [(MALLOC, 0, 1)], "footprint_bytes")


def usable_bytes(recipe: Recipe) -> int:
    """Bytes of such a pool that requests can use."""
    pool = recipe.pools[0]
    if isinstance(pool, hw.pools.Partition) and isinstance(pool.count, int):
        return pool.size * pool.count
    if isinstance(pool, hw.pools.Fixed) and not isinstance(pool.counts, str):
        return sum(size * count for size, count in zip(pool.sizes, pool.counts, strict=True))
    raise ValueError(f"{recipe.name}: a pool without a fixed number of blocks")


def erlang_b(load: float, servers: int) -> float:
    """Share of requests that find all servers busy, at `load` Erlang, by the recurrence over the servers."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked


def exact_admission(interarrival: float) -> float:
    """Share that Erlang's B formula admits to the fixed pool, at holds of 1 s on average."""
    buffer = zoo("fixed-pool").pools[0]
    assert isinstance(buffer, hw.pools.Fixed)
    return 1 - erlang_b(1 / interarrival, int(buffer.counts[0]))


def _zoo_with(name: str, called: str = "", **changes: Any) -> Recipe:
    """A recipe of the zoo with these keys of its one pool, perhaps under another name."""
    recipe = zoo(name)
    pool = recipe.pools[0].model_copy(update=changes)
    return recipe.model_copy(update={"name": called or recipe.name, "pools": (pool,)})


def partitions(size: int, count: int) -> Recipe:
    """The zoo's variable pool with partitions of another size or number."""
    return _zoo_with("variable-pool", size=size, count=count)


def pools() -> dict[str, Recipe]:
    """The three that are compared, by name; INDEXED has free groups in lists by their length, last in first out."""
    indexed = _zoo_with("variable-pool", INDEXED, lists=LISTS, order="lifo")
    return {VARIABLE: zoo("variable-pool"), INDEXED: indexed, FIXED: zoo("fixed-pool")}


Arena = tuple[Recipe, int, int]
"""An allocator, all its memory in bytes, and what of it requests can use."""


def pool_alone(recipe: Recipe) -> Arena:
    """A pool in an arena that is the pool and nothing else."""
    return recipe, memory_bytes(recipe), usable_bytes(recipe)


def run(scenario: Scenario, arenas: Sequence[Arena], requests: int = REQUESTS) -> list[Metrics]:
    """Replay one scenario on each pool."""
    trace = hw.workload("poisson", **vars(scenario), requests=requests, seed=1)
    return [_point(trace, *arena) for arena in arenas]


def _point(trace: Trace, recipe: Recipe, memory: int, usable: int) -> Metrics:
    result = replayed(trace, recipe, arena=memory)
    return metrics("pools", "point", result, calls=len(trace), memory=memory, usable=usable)


def experiments(
    requests: int = REQUESTS,
    progress: Callable[[str], None] = lambda line: None,
    arenas: Mapping[str, Arena] | None = None,
) -> dict[str, Results]:
    """Experiments 1 to 3 with all three pools or other arenas, as "load", "smallest" and "largest"; on all cores."""
    scenarios = {
        "load": (LOADS, [Scenario(load, 80, 2000) for load in LOADS]),
        "smallest": (SMALLEST, [Scenario(1 / RATE, smallest, 2000) for smallest in SMALLEST]),
        "largest": (LARGEST, [Scenario(1 / RATE, 100, largest) for largest in LARGEST]),
    }
    compared = arenas or {name: pool_alone(pool) for name, pool in pools().items()}
    results: dict[str, Results] = {}
    for name, (x, points) in scenarios.items():
        progress(f"pools: {name}")
        of = spread(lambda scenario: run(scenario, list(compared.values()), requests), points)
        results[name] = Results(x, dict(zip(compared, map(list, zip(*of, strict=True)), strict=True)))
    return results


SAME_MEMORY, SAME_COUNT = f"{TOTALS[1] // 1024} KB usable", f"{MANY} partitions"


def with_other(result: Mapping[str, Results], place: str, other: Recipe, requests: int) -> dict[str, Results]:
    """Experiments 1 to 3 with another allocator in the memory of one of the three pools, descriptors included."""
    memory = memory_bytes(pools()[place])  # no part of it is set aside from requests
    again = experiments(requests, arenas={place: (other, memory, memory)})
    return {name: Results(of.x, {**of.points, **again[name].points}) for name, of in result.items()}


def partition_sizes(requests: int = REQUESTS, other: Recipe | None = None) -> Results:
    """Experiment 4: both configurations at each of PARTITIONS, or another allocator in the usable bytes of each."""
    scenario = Scenario(1 / 1000, 1000, 3000)
    recipes = [partitions(size, TOTALS[1] // size) for size in PARTITIONS]
    recipes += [partitions(size, MANY) for size in PARTITIONS]
    arenas = list(map(pool_alone, recipes))
    if other:
        arenas = [(other, usable, usable) for _, _, usable in arenas]
    result = run(scenario, arenas, requests)
    return Results(PARTITIONS, {SAME_MEMORY: result[: len(PARTITIONS)], SAME_COUNT: result[len(PARTITIONS) :]})


def overheads() -> list[Metrics]:
    """Experiment 5: bytes about the blocks / bytes usable, of kinds of pools at each size, from their layout."""
    results = []
    for total, size in product(TOTALS, SEGMENTS):
        count = total // size
        kinds = {VARIABLE: partitions(size, count)}
        for header in BUFFER_HEADERS:
            buffers = _zoo_with("fixed-pool", sizes=(size,), counts=(count,), header=header)
            kinds[f"{FIXED}, {header} B a buffer"] = buffers
        for name, recipe in kinds.items():
            share = memory_bytes(recipe) / usable_bytes(recipe) - 1
            results.append(Metrics(pool=name, total=total, size=size, share=share))
    return results


def on_packets(name: str, table: PacketTable, requests: int = PACKETS) -> Metrics | None:
    """Replay the first packets of a network with IP: sizes and arrivals are real, RATE a second on average.

    Times are stretched as one, so that bursts stay bursts; each packet is held as in the experiments.
    """
    if not has_ip(table):
        return None
    with_ip = np.flatnonzero(table.ip_len)[:requests]
    arrived = (table.ts_us[with_ip] - table.ts_us[with_ip[0]]).astype(np.float64)
    stretched = arrived * (len(with_ip) / RATE * 1e6 / max(float(arrived[-1]), 1.0))
    times = np.random.default_rng(1).exponential(1.0, len(with_ip))
    trace = hw.held_requests(stretched, times * 1e6, table.ip_len[with_ip], {"workload": "packets", "network": name})
    points = {pool: _point(trace, *pool_alone(recipe)) for pool, recipe in pools().items()}
    return Metrics(network=name, mean_size=float(table.ip_len[with_ip].mean()), points=points)


# ---- the page --------------------------------------------------------------------------------------------------------


MUTANTS_OF = 20
"""Other allocators in the pools' places meet one in this number of requests."""


def page(packets: Path | None, progress: Callable[[str], None], requests: int = REQUESTS) -> Page:
    """All five experiments of the paper; with a folder of packet tables also the pools under real packets.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`, where a folder is given.
    """
    result = experiments(requests, progress)
    progress("pools: partition size")
    sized = partition_sizes(requests)
    made = page_of("pools")
    progress("pools: real packets")
    networks = packet_tables(packets)
    real = [item for item in spread(on_packets, networks, networks.values()) if item]
    made.traffic({item.network: networks[item.network] for item in real})
    progress("pools: other allocators in the pools' places")
    few = max(1, requests // MUTANTS_OF)

    def others(place: str, other: Recipe) -> dict[str, Any]:
        again = partition_sizes(few, other) if place == VARIABLE else sized
        return _names(with_other(result, place, other, few), again)

    more = {"requests": requests, "on_packets": real, "where": _where}
    return finish(made, _names(result, sized), more, mutants("pools"), others)


def _names(result: Mapping[str, Results], sized: Results) -> dict[str, Any]:
    """What the expressions see: results by experiment, bytes by pool, and the constants of the runs."""
    compared = pools()
    many = [memory_bytes(partitions(size, MANY)) for size in PARTITIONS]
    same = [memory_bytes(partitions(size, TOTALS[1] // size)) for size in PARTITIONS]
    runs = {
        "sized": sized,
        "sized_memory": {SAME_MEMORY: same, SAME_COUNT: many},
        "overheads": overheads(),
        "usable": {name: usable_bytes(recipe) for name, recipe in compared.items()},
        "memory": {name: memory_bytes(recipe) for name, recipe in compared.items()},
        "many": many,
        "monotone": _monotone,
        "exact_admission": exact_admission,
    }
    return seen("pools", globals(), {**result, **runs})


def _monotone(values: Sequence[float], sign: int) -> bool:
    """Whether shares rise (1) or fall (-1), up to SAMPLING from one to the next, and beyond it in all."""
    sampling = constants("pools")["SAMPLING"]
    steps = [sign * (later - item) for item, later in pairwise(values)]
    return bool(min(steps) > -sampling and sum(steps) > sampling)


def _where(results: Results, what: str, unit: str = "") -> str:
    """Where the variable pool admits more, for the title of a figure."""
    better = [x for x, gain in zip(results.x, results.gains("admission"), strict=True) if gain > 0]
    if len(better) == len(results.x):
        return f"at every {what}"
    return f"up to {max(better, default=0):g}{unit}, the fixed above"

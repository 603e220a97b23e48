"""The sizes of packets, and pools for them under a transmit queue.

Mamagkakis, Soudris and Catthoor 2007, "Middleware design optimization of wireless protocols based on the exploitation
of dynamic input patterns".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

import heapwright as hw
from heapwright import FREE, MALLOC, PacketTable, Recipe, Trace, default_energy_table, special_pools, synthesise, zoo
from heapwright_papers import measuring
from heapwright_papers.answers import NO_PACKETS
from heapwright_papers.case_study import mutants
from heapwright_papers.declared import Metrics, constants, finish, metrics, page_of, seen
from heapwright_papers.measuring import NO_TOOLS, each, probe, replayed, spread
from heapwright_papers.page import ALIGN, Page
from heapwright_papers.traffic import has_ip, packet_tables

SPECIAL_POOLS = "wifi-special-pools"
"""The zoo's recipe, with the paper's own sizes."""
POOLS, PUBLISHED, LISTED = "special pools", "pools of 40 to 1500", "with free lists"
PAGES, LEA, WALK = "linux-pow2-page", "lea-2.7.2", "best fit over all blocks"
HEAPS = (POOLS, LISTED, SPECIAL_POOLS, PAGES, LEA, WALK)
"""What fills and empties the queue with the paper's mix."""
LEVELS = ("O0", "Os")
ACK, ACK_SHARE, MTU, MTU_SHARE = 40, 0.43, 1500, 0.26
"""The mix of sizes that section 3 states."""
LARGE_SHARE, SMALL_MOST = 0.14, 417
"""Of the other 31 %, what section 5's totals fix: 40 % of all packets take a page of 4096 bytes for its 1,793,611, so
14 % lie between 1025 and 1499; and 17 % are small, with a mean of 229 for its 621,172, even up to 417."""
DRAWS, TIMED_DRAWS = 18, 4
"""Draws of that mix, as many as the paper has networks; and those whose instructions are counted, too."""
SAMPLES = (1_000, 10_000, 100_000)
"""Packets of the samples that section 3 compares."""
LIMIT = 1000
"""Packets that the queue holds (section 4), as `heapwright workload queue` has it where nothing is said."""


@dataclass(frozen=True)
class Network:
    """One packet table: its profile, the queue's trace, and what each allocator made of it."""

    name: str
    table: PacketTable
    profile: dict[str, Any]
    trace: Trace

    @property
    def is_ip(self) -> bool:
        """Whether its sizes are those of IP packets, not of frames."""
        return has_ip(self.table)

    @property
    def shares(self) -> dict[int, float]:
        """The share of each size."""
        return {int(row["size"]): float(row["share"]) for row in self.profile["sizes"]}

    def lengths(self) -> Any:
        """The sizes of its packets in their order, those without one left out."""
        lengths = self.table.ip_len if self.is_ip else self.table.frame_len
        return lengths[lengths > 0]


@dataclass(frozen=True)
class Results:
    """All that the page is made of: runs by allocator, for each draw of the mix and for each network.

    Attributes:
        mix: the draws' traces.
        drawn: of each of HEAPS, a run on each draw.
        networks: the packet tables.
        real: of each allocator tried on networks, the run on each by its name.
        sizes: of their code by level, None without a compiler.
    """

    mix: Sequence[Trace]
    drawn: Mapping[str, Sequence[Metrics]]
    networks: Sequence[Network]
    real: Mapping[str, Mapping[str, Metrics]]
    sizes: Mapping[str, Any] | None

    def average(self, heap: str, key: str) -> float:
        """The mean of a metric over the draws."""
        return mean(float(getattr(item, key)) for item in self.drawn[heap])

    def instructions(self, heap: str) -> list[float]:
        """Of all calls, for each draw that was timed; empty without tools."""
        return [item.instructions for item in self.drawn[heap] if item.instructions is not None]

    def total(self, heap: str, key: str) -> float:
        """The sum of a metric over the networks."""
        return sum(float(getattr(item, key)) for item in self.real[heap].values())

    def with_pools(self, recipe: Recipe) -> Results:
        """The same with another allocator in the place of the pools."""
        of = run(recipe, [network.trace for network in self.networks]) if self.networks else []
        real = {network.name: result for network, result in zip(self.networks, of, strict=True)}
        drawn = {**self.drawn, POOLS: run(recipe, self.mix, TIMED_DRAWS)}
        return replace(self, drawn=drawn, real={**self.real, POOLS: real})


def samples(networks: Sequence[Network], count: int | None = None) -> tuple[float, float]:
    """The shares of acknowledgements and of packets of the MTU in the first packets, averages over the networks."""
    parts = [network.lengths()[:count] for network in networks]
    ack, mtu = (mean(float((part == size).mean()) for part in parts) for size in (ACK, MTU))
    return ack, mtu


# ---- allocators --------------------------------------------------------------------------------------------------


def paper_mix() -> dict[str, Any]:
    """The profile of the packets that section 3 states and section 5 sums up."""
    small, large = range(ACK + 1, SMALL_MOST + 1), range(1025, MTU)
    shares = ((small, 1 - ACK_SHARE - MTU_SHARE - LARGE_SHARE), (large, LARGE_SHARE))
    sizes = [{"size": size, "share": share / len(of)} for of, share in shares for size in of]
    sizes += [{"size": ACK, "share": ACK_SHARE}, {"size": MTU, "share": MTU_SHARE}]
    return {"name": "section 3", "packets": LIMIT, "size_column": "ip_len", "sizes": sizes, "seconds": 1, "flows": 1}


def pools_of(profile: Mapping[str, Any], find: str = "first-fit") -> Recipe:
    """The paper's pools for the sizes of a profile: blocks side by side, as many of each size as the queue can hold."""
    recipe = special_pools(profile)
    pool = recipe.pools[0]
    assert isinstance(pool, hw.pools.Fixed)
    counted = pool.model_copy(update={"counts": (LIMIT,) * len(pool.sizes), "header": 0, "find": find})
    return recipe.model_copy(update={"name": POOLS, "pools": (counted, *recipe.pools[1:])})


def allocators(profile: Mapping[str, Any]) -> dict[str, Recipe]:
    """What stands on the page, by name; the pools are those of the profile."""
    walk = {"kind": "general", "free_list": "implicit", "fit": "best"}
    return {
        POOLS: pools_of(profile),
        LISTED: pools_of(profile, "freelist"),
        SPECIAL_POOLS: zoo(SPECIAL_POOLS),
        PAGES: zoo(PAGES),
        LEA: zoo(LEA),
        WALK: Recipe.from_dict({"name": WALK, "align": ALIGN, "pool": [walk]}),
    }


def finding(recipe: Recipe, sizes: NDArray[np.uint32]) -> int:
    """Accesses in which the paper's pools are found for requests of these sizes; 0 for another allocator.

    Section 4, C and D: the special pools are looked at for an exact fit, then each other one from the smallest on, and
    last the special one that holds the request: at most one more than there are pools. Special is here what is no power
    of two. A free finds the pool from its block.
    """
    if recipe.name != POOLS:
        return 0
    pool = recipe.pools[0]
    assert isinstance(pool, hw.pools.Fixed)
    special = [size for size in pool.sizes if size & (size - 1)]
    others = np.array([size for size in pool.sizes if size not in special], np.int64)
    at = len(special) + np.searchsorted(others, sizes.astype(np.int64)) + 1
    for place, size in enumerate(special, 1):
        at[sizes == size] = place
    return int(at.sum())


# ---- measuring ---------------------------------------------------------------------------------------------------


def network_of(name: str, table: PacketTable) -> Network:
    """Its profile, and the queue filled with its first packets and emptied."""
    profile = {**hw.profile(table), "name": name}
    return Network(name, table, profile, hw.workload("queue", table, size="ip" if has_ip(table) else "frame"))


def run(recipe: Recipe, traces: Sequence[Trace], timed: int | None = None) -> list[Metrics]:
    """An allocator on traces; instructions are counted on the first `timed` of them, None for all."""
    counted = (measuring.on_target(recipe, *traces[:timed]) if timed != 0 else None) or []
    info = [*counted, *[None] * (len(traces) - len(counted))]
    return [_measured(recipe, trace, item) for trace, item in zip(traces, info, strict=True)]


def _measured(recipe: Recipe, trace: Trace, told: Mapping[str, Any] | None = None) -> Metrics:
    found, energy = replayed(trace, recipe), default_energy_table().energy_nj
    search = finding(recipe, trace.size[trace.op == MALLOC])
    reads, accesses = (int(found[key] or 0) + search for key in ("reads", "accesses"))
    return metrics(
        "wifi", "queue", {**found, "reads": reads, "accesses": accesses}, search=search, told=told, energy_nj=energy
    )


def measure(networks: Sequence[Network], progress: Callable[[str], None]) -> Results:
    """Every allocator on each draw of the paper's mix and on each network, on all cores."""
    mix = [hw.workload("queue", synthesise(paper_mix(), seed=seed)) for seed in range(1, DRAWS + 1)]
    heaps, published = allocators(paper_mix()), pools_of(paper_mix())
    ip = [network for network in networks if network.is_ip]
    progress("wifi: the paper's mix")
    drawn = each(lambda recipe: run(recipe, mix, TIMED_DRAWS), heaps)
    progress("wifi: networks")
    jobs: list[tuple[str, Recipe, Sequence[Network], int | None]] = [
        *((heap, heaps[heap], networks, timed) for heap, timed in ((LEA, None), (WALK, None), (PAGES, 0))),
        *([(PUBLISHED, published, ip, 0)] if ip else []),
        *((POOLS, pools_of(network.profile), [network], None) for network in networks),
        *((LISTED, pools_of(network.profile, "freelist"), [network], None) for network in networks),
    ]
    result = spread(lambda job: run(job[1], [network.trace for network in job[2]], job[3]), jobs)
    real: dict[str, dict[str, Metrics]] = {POOLS: {}, LISTED: {}}
    for (heap, _, of, _), runs in zip(jobs, result, strict=True):
        real.setdefault(heap, {}).update({network.name: item for network, item in zip(of, runs, strict=True)})
    return Results(mix, drawn, networks, real, measuring.code_sizes(published, LEVELS))


SAMPLE = SAMPLES[0]
"""Packets from which pools are chosen, of which section 3 says that they suffice."""


def foretell(network: Network) -> Metrics:
    """Fragmentation on all packets of a network but the first SAMPLE, by where the pools' sizes are from.

    `first` and `rest` are averages over queues that are filled from nothing, of pools from the first packets and from
    the later ones themselves; `published` is of the paper's own seven, None where packets do not show their IP length;
    with `kept` the first pools keep what they took for one queue, and for all before, to the end.
    """
    start, rest = _part(network.table, 0, SAMPLE), _part(network.table, SAMPLE, None)
    size = "ip" if network.is_ip else "frame"
    fills = [hw.workload("queue", _part(rest, at, at + LIMIT), size=size) for at in range(0, len(rest), LIMIT)]
    first, late = (pools_of({**hw.profile(part), "name": network.name}, "freelist") for part in (start, rest))
    return Metrics(
        name=network.name,
        packets=len(rest),
        first=_average(first, fills),
        rest=_average(late, fills),
        published=_average(pools_of(paper_mix(), "freelist"), fills) if network.is_ip else None,
        kept=_measured(first, hw.workload("queue", rest, size=size, cycles=None)).fragmentation,
    )


def _average(recipe: Recipe, fills: Sequence[Trace]) -> float:
    return mean(float(_measured(recipe, trace).fragmentation) for trace in fills)


def _part(table: PacketTable, start: int, stop: int | None) -> PacketTable:
    columns = {item.name: getattr(table, item.name)[start:stop] for item in fields(table) if item.name != "metadata"}
    return replace(table, **columns)


# ---- the example of Figure 2 ---------------------------------------------------------------------------------------


def figure_2(size: int) -> tuple[int, int, bool]:
    """A request in the state of the paper's Figure 2: its block's bytes, accesses, and whether the memory grew."""
    calls = [*((MALLOC, id, 1024) for id in range(3)), (FREE, 2, 0), (MALLOC, 3, size)]
    pools, keys = pools_of(paper_mix()), ("allocated_peak_bytes", "accesses")
    grown, accesses = (probe(pools, calls, key) - probe(pools, calls[:-1], key) for key in keys)
    return grown or 1024, accesses, grown > 0


# ---- the page --------------------------------------------------------------------------------------------------------


MIX, REAL = (constants("wifi")[name] for name in ("MIX", "REAL"))


def page(packets: Path | None, progress: Callable[[str], None]) -> Page:
    """Figures 1 to 3, on the paper's own mix and on every packet table of the folder; and what its rule predicts.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`.
    """
    networks = [network_of(name, table) for name, table in packet_tables(packets).items()]
    results = measure(networks, progress)
    progress("wifi: pools of the first packets")
    foretold = spread(foretell, networks)
    made = page_of("wifi")
    made.traffic({network.name: network.table for network in networks})
    progress("wifi: other allocators in the pools' place")
    names, count = names_of(results, foretold), {"count": len(networks)}
    return finish(made, names, count, mutants("wifi"), lambda _, item: names_of(results.with_pools(item), foretold))


def names_of(results: Results, foretold: Sequence[Metrics]) -> dict[str, Any]:
    """What the expressions see: the results, probes of single pools, and the constants of the runs."""
    untimed = any(item.instructions is None for heap in (POOLS, WALK) for item in results.real[heap].values())
    probes = {
        **{name: getattr(results, name) for name in ("average", "instructions")},
        "no_ip": "" if any(network.is_ip for network in results.networks) else "no table shows IP lengths",
        "no_times": NO_TOOLS if untimed or not results.instructions(POOLS) else "",
        "asked": [trace.size[trace.op == MALLOC] for trace in results.mix],
        "seven": pools_of(paper_mix()).pools[0],
        "samples": samples,
        "powers": _powers(results),
        "one_pool": _one_pool,
        "figure_2": figure_2,
        "in_pages": in_pages(results),
        "page_classes": list(page_classes(results)),
    }
    real = {"networks": results.networks, "real": results.real, "total": results.total, "foretold": foretold}
    if not results.networks:
        real = dict.fromkeys(real, NO_PACKETS)
    return seen("wifi", globals(), {**vars(results), **probes, **real})


def _powers(results: Results) -> float:
    """What pools of powers of two alone waste on the mix."""
    linux = zoo(PAGES)
    plain = linux.pools[0].model_copy(update={"sizes": (64, 128, 256, 512, 1024, 2048)})
    recipe = linux.model_copy(update={"pools": (plain, *linux.pools[1:])})
    return mean(float(item.fragmentation) for item in run(recipe, results.mix, 0))


def _one_pool(limit: int) -> int:
    """Accesses where the walk has one pool for all sizes."""
    recipe = pools_of({"name": "one pool", "sizes": [{"size": MTU, "share": 1.0}]})
    return int(replayed(hw.workload("queue", synthesise(paper_mix(), seed=1), limit=limit), recipe)["accesses"])


def _classes() -> tuple[int, ...]:
    """Sizes of the blocks of the Linux model."""
    pool = zoo(PAGES).pools[0]
    assert isinstance(pool, hw.pools.Fixed)
    return pool.sizes


def page_classes(results: Results) -> Iterator[tuple[int, int, float, float]]:
    """Of each class of the Linux model: its least and most bytes, and how many packets of the mix, with what bytes."""
    sizes = [trace.size[trace.op == MALLOC] for trace in results.mix]
    for below, most in pairwise((0, *_classes())):
        inside = [of[(of > below) & (of <= most)] for of in sizes]
        yield below + 1, most, mean(len(of) for of in inside), mean(int(of.sum()) for of in inside)


def in_pages(results: Results) -> tuple[float, float]:
    """The share of packets of the mix that take a page in the Linux model, and what the paper's bytes need."""
    *_, below, page = _classes()
    sizes = [trace.size[trace.op == MALLOC] for trace in results.mix]
    share = mean(float((of > below).mean()) for of in sizes)
    rest = mean(float(of[of <= below].mean()) for of in sizes)
    linux = constants("wifi")["LINUX_BYTES"]
    return share, share + (linux - results.average(PAGES, "allocated")) / LIMIT / (page - rest)

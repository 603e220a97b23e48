"""Pools of partitions and of buffers under Poisson requests: Figures 5 to 9, all five experiments; and real packets.

Elsayed and Galal, "Building better memory management for high performance wired/wireless networks: Part 2".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import heapwright as hw
from heapwright import PacketTable, Recipe, zoo
from heapwright_papers import pools_pictures, pools_runs
from heapwright_papers.answers import percent
from heapwright_papers.case_study import mutants
from heapwright_papers.page import Page
from heapwright_papers.pools_runs import (
    BUFFER_HEADERS,
    FIXED,
    INDEXED,
    LARGEST,
    LISTS,
    LOADS,
    MANY,
    PACKETS,
    PARTITIONS,
    RATE,
    REQUESTS,
    SAME_COUNT,
    SAME_MEMORY,
    SEGMENTS,
    SERIES,
    SMALLEST,
    TOTALS,
    VARIABLE,
    OnPackets,
    Results,
    exact_admission,
    experiments,
    memory_bytes,
    on_packets,
    overheads,
    partition_sizes,
    partitions,
    usable_bytes,
)
from heapwright_papers.traffic import marked, packet_tables

_INTRODUCTION = """\
K. Elsayed and M. Galal compare a pool of {partitions}, of which a request takes as many as it needs side by side
(`heapwright zoo variable-pool`), with a pool of {buffers} (`heapwright zoo fixed-pool`). The paper prints its results
as figures that its text does not repeat: only the numbers in its text can stand beside ours.

Each point is {requests:,} requests of `heapwright workload poisson` (seed 1), the same for both pools, in an arena
that is just the pool: {variable_memory:,} bytes with the partitions' descriptors, {fixed_memory:,} with the buffers'
free list. One time unit is one second; at equal times releases come first; refused requests are dropped. Buffers are
held for 1 s on average in all experiments: the paper says so for the first, and its 54 % in the third is what theory
gives for that. Its “increments of 0.005” are taken for a slip of 0.0005. Real packets, where there
are packet tables, have a section of their own.

- *Admission* is the paper's bandwidth admission probability, bytes admitted / bytes requested.
- *Pool utilisation* is the mean of the bytes held / bytes usable for requests, *utilisation* / all memory of the pool.
- *Utility* is admission x pool utilisation: the paper shows a combined utility and does not define it.
- *Erlang B* is the exact admission of the fixed pool: requests of any size take one of its buffers.

What Part 1 says of the variable pool could not be had; its list of free groups is in order of address here, the first
that is large enough is taken, and released groups merge at once. A descriptor of {descriptor} bytes a partition makes
the memory of the two pools equal, as the paper says it is."""


def page(packets: Path | None, progress: Callable[[str], None], requests: int = REQUESTS) -> Page:
    """All five experiments of the paper; with a folder of packet tables also the pools under real packets.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`, where a folder is given.
    """
    found = experiments(requests, progress)
    progress("pools: partition size")
    sized = partition_sizes(requests)
    made = Page("pools", "Pools of partitions and of buffers under Poisson load", "Elsayed and Galal, Part 2")
    _introduce(made, requests)
    _experiments(made, found)
    _partition_sizes(made, sized)
    _overheads(made)
    _indexed(made, found["load"])
    if packets is not None:
        progress("pools: real packets")
        _real(made, packet_tables(packets))
    made.judge(_names(found, sized))
    progress("pools: other allocators in the pools' places")
    few = max(1, requests // MUTANTS_OF)

    def with_other(place: str, other: Recipe) -> dict[str, Any]:
        others = partition_sizes(few, other) if place == VARIABLE else sized
        return _names(pools_runs.with_other(found, place, other, few), others)

    made.mutate(mutants("pools"), with_other)
    return made


MUTANTS_OF = 20
"""Other allocators in the pools' places meet one in so many of the requests."""


SAMPLING = 0.002
"""Shares closer than this are taken for equal: what a million requests leave to chance."""


ANY = "; so does any allocator tried in its memory"
"""Of statements in which nothing hangs on the ways of the pool that they are about."""


def _monotone(values: Sequence[float], sign: int) -> bool:
    """Whether shares rise (1) or fall (-1), up to SAMPLING from one to the next, and beyond it in all."""
    steps = [sign * (later - one) for one, later in pairwise(values)]
    return min(steps) > -SAMPLING and sum(steps) > SAMPLING


def _names(found: Mapping[str, Results], sized: Results) -> dict[str, Any]:
    """What the statements' expressions see: results by experiment, bytes by pool, and the constants of the runs."""
    compared = pools_runs.pools()
    return {
        **{name: value for name, value in vars(pools_runs).items() if name.isupper()},
        **found,
        "SAMPLING": SAMPLING,
        "sized": sized,
        "overheads": overheads(),
        "usable": {name: usable_bytes(recipe) for name, recipe in compared.items()},
        "memory": {name: memory_bytes(recipe) for name, recipe in compared.items()},
        "many": [memory_bytes(partitions(size, MANY)) for size in PARTITIONS],
        "ANY": ANY,
        "monotone": _monotone,
        # Erlang's formula gives the fixed pool's utility up to a factor: admitted share, squared, times the load.
        "beyond": max((step * 1e-5 for step in range(100, 1000)), key=lambda mean: exact_admission(mean) ** 2 / mean),
    }


# ---- experiments 1 to 3 --------------------------------------------------------------------------------------------


def _introduce(page: Page, requests: int) -> None:
    variable, fixed = zoo("variable-pool"), zoo("fixed-pool")
    group, buffer = variable.pools[0], fixed.pools[0]
    assert isinstance(group, hw.pools.Partition) and isinstance(buffer, hw.pools.Fixed)
    page.text(
        _INTRODUCTION.format(
            partitions=f"{group.count} partitions of {group.size} bytes",
            buffers=f"{buffer.counts[0]} buffers of {buffer.sizes[0]} bytes",
            requests=requests,
            variable_memory=memory_bytes(variable),
            fixed_memory=memory_bytes(fixed),
            descriptor=group.descriptor_bytes,
        )
    )


def _experiments(page: Page, found: dict[str, Results]) -> None:
    axis = "mean time between requests, time units"
    page.text("## Experiment 1 (the paper's Figure 5): load\n\nSizes from 80 to 2000 bytes.")
    theirs = {0.003: "variable 100 %, fixed 80 %"}
    exact = [exact_admission(load) for load in LOADS]
    _table(page, axis, found["load"], [theirs.get(load, "–") for load in LOADS], exact)
    at = {VARIABLE: {0.003: 1.0}, FIXED: {0.003: 0.8}}
    title = _admits_more(found["load"], "load")
    page.figure(pools_pictures.experiment("pools-load", title, axis, found["load"], at))
    page.text(
        f"## Experiment 2 (the paper's Figure 6): smallest request\n\n{RATE} requests a second, up to 2000 bytes."
    )
    axis = "smallest request, B"
    exact = [exact_admission(1 / RATE)] * len(SMALLEST)
    _table(page, axis, found["smallest"], ["–"] * len(SMALLEST), exact)
    title = _admits_more(found["smallest"], "smallest request", " bytes")
    page.figure(
        pools_pictures.experiment("pools-smallest", title, f"{axis} (logarithmic)", found["smallest"], {}, log=True)
    )
    page.text(f"## Experiment 3 (the paper's Figure 7): largest request\n\n{RATE} requests a second, from 100 bytes.")
    axis = "largest request, B"
    exact = [exact_admission(1 / RATE)] * len(LARGEST)
    _table(page, axis, found["largest"], ["fixed 54 %"] * len(LARGEST), exact)
    at = {FIXED: dict.fromkeys(map(float, LARGEST), 0.54), VARIABLE: {float(LARGEST[0]): 1.0}}
    title = _admits_more(found["largest"], "largest request")
    page.figure(pools_pictures.experiment("pools-largest", title, axis, found["largest"], at))


def _admits_more(results: Results, what: str, unit: str = "") -> str:
    """The sentence above a figure: where the variable pool admits more."""
    pairs = zip(results.of(VARIABLE, "admission"), results.of(FIXED, "admission"), strict=True)
    better = [x for x, (ours, theirs) in zip(results.x, pairs, strict=True) if ours > theirs]
    if len(better) == len(results.x):
        return f"The variable pool admits more at every {what}"
    return f"The variable pool admits more up to {max(better, default=0):g}{unit}, the fixed above"


def _table(page: Page, axis: str, results: Results, theirs: Sequence[str], exact: Sequence[float]) -> None:
    page.text("Admission, and Erlang B for the fixed pool:")
    rows: list[list[object]] = []
    for at, x in enumerate(results.x):
        variable, fixed = results.points[VARIABLE][at], results.points[FIXED][at]
        ours = [f"{share:.4f}" for share in (variable.admission, fixed.admission, exact[at])]
        rows.append([f"{x:g}", theirs[at], *ours])
    page.table((axis, "the paper: admission", VARIABLE, FIXED, "Erlang B"), rows)
    page.text("Utilisation of the pool and of all memory, and the combined utility:")
    header = [axis]
    for series in SERIES[1:]:
        header += [f"{series}, variable", "fixed"]
    rows = []
    for at, x in enumerate(results.x):
        values = [results.points[pool][at].of(series) for series in SERIES[1:] for pool in (VARIABLE, FIXED)]
        rows.append([f"{x:g}", *(f"{value:.4f}" for value in values)])
    page.table(header, rows)


# ---- experiments 4 and 5 -------------------------------------------------------------------------------------------


def _partition_sizes(page: Page, sized: Results) -> None:
    page.text(
        "## Experiment 4 (the paper's Figure 8): partition size\n\n"
        "1000 requests a second of 1000 to 3000 bytes. “Total pool memory fixed” is read as "
        f"{TOTALS[1]:,} bytes of partitions, those of the other experiments; the descriptors come on top. Were they "
        "inside, 256-byte partitions would admit less than 512-byte ones, against the paper's text. The caption of the "
        "paper's figure speaks of fixed-size pools; its text of these two configurations."
    )
    rows = []
    for at, size in enumerate(sized.x):
        cells: list[str] = []
        for name, points in sized.points.items():
            count = TOTALS[1] // int(size) if name == SAME_MEMORY else MANY
            memory = memory_bytes(partitions(int(size), count))
            values = (points[at].of(series) for series in SERIES)
            cells += [f"{memory:,}", *(f"{value:.4f}" for value in values)]
        rows.append([f"{size:g}", *cells])
    page.table(("partition, B", f"{SAME_MEMORY}: memory, B", *SERIES, f"{SAME_COUNT}: memory, B", *SERIES), rows)
    used = sized.of(SAME_MEMORY, "utilisation")
    title = f"Of {SAME_MEMORY}, partitions of {PARTITIONS[used.index(max(used))]} bytes use most"
    axis = "partition, B (logarithmic)"
    page.figure(pools_pictures.experiment("pools-partition", title, axis, sized, {}, log=True))


def _overheads(page: Page) -> None:
    page.text(
        "## Experiment 5 (the paper's Figure 9): overheads\n\n"
        "Bytes of descriptors, headers and control data / bytes usable, as the pools are laid out. The fixed pool "
        f"links its free buffers inside them and needs nothing else; a version with {BUFFER_HEADERS[1]} bytes a buffer "
        "stands for an implementation that keeps a pointer and a state."
    )
    found = overheads()
    columns = [(pool, total) for total in TOTALS for pool in dict.fromkeys(one.pool for one in found)]
    values = {(one.pool, one.total, one.size): one.share for one in found}
    rows = [[size, *(percent(values[pool, total, size], 2) for pool, total in columns)] for size in SEGMENTS]
    page.table(("size, B", *(f"{pool}: {total // 1024} KB" for pool, total in columns)), rows)
    page.figure(pools_pictures.overheads(found))


# ---- beyond the paper ----------------------------------------------------------------------------------------------


def _indexed(page: Page, found: Results) -> None:
    page.text(
        "## Free groups in lists by their length\n\nThe paper's outlook: “more efficient structures than a linked list "
        f"to maintain the FPG”, the free groups. **{INDEXED}** keeps them in {LISTS} lists, one for each number of "
        "partitions and the last for all larger ones, with a bitmap of those that hold any (`lists` of a partition "
        "pool): the smallest group that is large enough is found without a search, and a freed group is filed without "
        "one. Admission and accesses a call under the load of experiment 1:"
    )
    pools = list(found.points)
    rows = [
        [
            f"{x:g}",
            *(f"{found.points[pool][at].admission:.4f}" for pool in pools),
            *(f"{found.points[pool][at].accesses:.1f}" for pool in pools),
        ]
        for at, x in enumerate(found.x)
    ]
    page.table(("mean time between requests", *pools, *(f"accesses, {pool}" for pool in pools)), rows)
    page.figure(pools_pictures.indexed(found))


def _real(page: Page, tables: dict[str, PacketTable]) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        of = executor.map(lambda item: on_packets(*item), tables.items())
        found = [one for one in of if one is not None]
    if not found:
        return
    for one in found:
        page.traffic(one.network, tables[one.network])
    page.text(
        f"## Real packets\n\nThe first {PACKETS:,} IP packets of each network at their own times, stretched so that "
        f"{RATE} come in a second on average, and held as in the experiments: bursts stay bursts. Frames whose IP "
        "lengths are not to be seen are left out."
    )
    pools = list(found[0].points)
    header = ["network", "mean size, B"]
    header += [f"{what}, {pool}" for what in ("admission", "accesses") for pool in pools]
    page.table(header, [_real_row(one, pools) for one in found])
    page.figure(pools_pictures.real(found))
    gains = [one.points[VARIABLE].admission / one.points[FIXED].admission for one in found]
    fewer = [1 - one.points[INDEXED].accesses / one.points[VARIABLE].accesses for one in found]
    page.text(
        f"Most packets are small: a buffer of 2048 bytes holds one, and is as soon gone. The variable pool admits "
        f"{min(gains):.2f} to {max(gains):.2f} times the bytes of the fixed pool, and lists by length save up to "
        f"{percent(max(fewer))} of its accesses. Neither uses much of its memory: partitions of 512 bytes are large "
        "for such packets, too."
    )


def _real_row(one: OnPackets, pools: Sequence[str]) -> list[str]:
    points = [one.points[pool] for pool in pools]
    shares = [percent(point.admission, 1) for point in points]
    return [marked(one.network), f"{one.mean_size:,.0f}", *shares, *(f"{point.accesses:.1f}" for point in points)]

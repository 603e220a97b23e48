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

from heapwright import Recipe, zoo
from heapwright_papers import pools_runs
from heapwright_papers.case_study import mutants
from heapwright_papers.declared import constants, fill, page_of
from heapwright_papers.page import Page
from heapwright_papers.pools_runs import (
    MANY,
    PARTITIONS,
    REQUESTS,
    SAME_COUNT,
    SAME_MEMORY,
    TOTALS,
    VARIABLE,
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
from heapwright_papers.traffic import packet_tables

MUTANTS_OF = 20
"""Other allocators in the pools' places meet one in so many of the requests."""


def page(packets: Path | None, progress: Callable[[str], None], requests: int = REQUESTS) -> Page:
    """All five experiments of the paper; with a folder of packet tables also the pools under real packets.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`, where a folder is given.
    """
    found = experiments(requests, progress)
    progress("pools: partition size")
    sized = partition_sizes(requests)
    made = page_of("pools")
    progress("pools: real packets")
    networks = packet_tables(packets)
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        real = [one for one in executor.map(on_packets, networks, networks.values()) if one]
    for one in real:
        made.traffic(one.network, networks[one.network])
    names = _names(found, sized)
    fill(made, {**names, "requests": requests, "on_packets": real, "where": _where})
    made.judge(names)
    progress("pools: other allocators in the pools' places")
    few = max(1, requests // MUTANTS_OF)

    def with_other(place: str, other: Recipe) -> dict[str, Any]:
        others = partition_sizes(few, other) if place == VARIABLE else sized
        return _names(pools_runs.with_other(found, place, other, few), others)

    made.mutate(mutants("pools"), with_other)
    return made


def _names(found: Mapping[str, Results], sized: Results) -> dict[str, Any]:
    """What the expressions see: results by experiment, bytes by pool, and the constants of the runs."""
    compared = pools_runs.pools()
    many = [memory_bytes(partitions(size, MANY)) for size in PARTITIONS]
    same = [memory_bytes(partitions(size, TOTALS[1] // size)) for size in PARTITIONS]
    return {
        **constants("pools"),
        **{name: value for name, value in vars(pools_runs).items() if name.isupper()},
        **found,
        "sized": sized,
        "sized_memory": {SAME_MEMORY: same, SAME_COUNT: many},
        "overheads": overheads(),
        "usable": {name: usable_bytes(recipe) for name, recipe in compared.items()},
        "memory": {name: memory_bytes(recipe) for name, recipe in compared.items()},
        "group": zoo("variable-pool").pools[0],
        "buffer": zoo("fixed-pool").pools[0],
        "many": many,
        "monotone": _monotone,
        "exact_admission": exact_admission,
        # Erlang's formula gives the fixed pool's utility up to a factor: admitted share, squared, times the load.
        "beyond": max((step * 1e-5 for step in range(100, 1000)), key=lambda mean: exact_admission(mean) ** 2 / mean),
    }


def _monotone(values: Sequence[float], sign: int) -> bool:
    """Whether shares rise (1) or fall (-1), up to SAMPLING from one to the next, and beyond it in all."""
    sampling = constants("pools")["SAMPLING"]
    steps = [sign * (later - one) for one, later in pairwise(values)]
    return bool(min(steps) > -sampling and sum(steps) > sampling)


def _where(results: Results, what: str, unit: str = "") -> str:
    """Where the variable pool admits more, for the title of a figure."""
    better = [x for x, gain in zip(results.x, results.gains("admission"), strict=True) if gain > 0]
    if len(better) == len(results.x):
        return f"at every {what}"
    return f"up to {max(better, default=0):g}{unit}, the fixed above"

"""The sizes of packets, and pools for them under a transmit queue.

Mamagkakis, Soudris and Catthoor 2007, "Middleware design optimization of wireless protocols based on the exploitation
of dynamic input patterns".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import heapwright as hw
from heapwright import MALLOC, synthesise, zoo
from heapwright_papers import wifi_runs
from heapwright_papers.answers import NO_PACKETS, percent
from heapwright_papers.case_study import mutants
from heapwright_papers.declared import constants, fill, page_of
from heapwright_papers.measuring import NO_TOOLS, code_bytes, replayed
from heapwright_papers.page import Page
from heapwright_papers.traffic import packet_tables
from heapwright_papers.wifi_runs import (
    ACK,
    HEAPS,
    LEVELS,
    LIMIT,
    MTU,
    PAGES,
    POOLS,
    WALK,
    Foretold,
    Results,
    figure_2,
    foretell,
    measure,
    network_of,
    paper_mix,
    pools_of,
    run,
    samples,
)

MIX, REAL = (constants("wifi")[name] for name in ("MIX", "REAL"))


def page(packets: Path | None, progress: Callable[[str], None]) -> Page:
    """Figures 1 to 3, on the paper's own mix and on every packet table of the folder; and what its rule foretells.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`.
    """
    networks = [network_of(name, table) for name, table in packet_tables(packets).items()]
    results = measure(networks, progress)
    progress("wifi: pools of the first packets")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        foretold = list(pool.map(foretell, networks))
    made = page_of("wifi")
    for network in networks:
        made.traffic(network.name, network.table)
    names = names_of(results, foretold)
    fill(made, {**names, "count": len(networks)})
    made.judge(names)
    progress("wifi: other allocators in the pools' place")
    made.mutate(mutants("wifi"), lambda _, other: names_of(results.with_pools(other), foretold))
    return made


def names_of(results: Results, foretold: Sequence[Foretold]) -> dict[str, Any]:
    """What the expressions see: the results, probes of single pools, and the constants of the runs."""
    ip = [network for network in results.networks if network.is_ip]
    ack, mtu = samples(ip) if ip else (0.0, 0.0)
    real = {heap: [one.instructions for one in results.real[heap].values()] for heap in (POOLS, WALK)}
    drawn = {heap: results.instructions(heap) for heap in HEAPS}
    untimed = not drawn[POOLS] or any(value is None for of in real.values() for value in of)
    special = pools_of(paper_mix()).pools[0]
    assert isinstance(special, hw.pools.Fixed)
    asked = [trace.size[trace.op == MALLOC] for trace in results.mix]

    def less_than(heap: str, other: str) -> str:
        """How much less energy an allocator takes than another, and how many fewer instructions where they are told."""
        fewer = percent(1 - mean(drawn[heap]) / mean(drawn[other]), 1) if drawn[heap] else ""
        energy = percent(1 - results.average(heap, "energy") / results.average(other, "energy"), 1)
        return f"{fewer} fewer instructions and " * bool(fewer) + f"{energy} less energy"

    known = {
        **constants("wifi"),
        **{name: value for name, value in vars(wifi_runs).items() if name.isupper()},
        **vars(results),
        **{name: getattr(results, name) for name in ("average", "instructions", "total")},
        "foretold": foretold,
        "no_ip": "" if ip else "no table shows IP lengths",
        "no_times": NO_TOOLS if untimed else "",
        "no_codes": NO_TOOLS if results.codes is None else "",
        "codes": [code_bytes(results.codes, level) for level in LEVELS],
        "ip": ip,
        "ack": ack,
        "mtu": mtu,
        "samples": samples,
        "special": special.sizes,
        "others": mean(int(of[(of != ACK) & (of != MTU)].sum()) for of in asked),
        "powers": _powers(results),
        "cost": {heap: results.average(heap, "accesses") / (2 * LIMIT) for heap in HEAPS},
        "one_pool": _one_pool,
        "figure_2": figure_2,
        "timed": {MIX: drawn, REAL: real if results.networks else NO_PACKETS},
        "in_pages": in_pages(results),
        "page_classes": list(page_classes(results)),
        "less": _less,
        "less_than": less_than,
    }
    return known if results.networks else known | dict.fromkeys(_OF_NETWORKS, NO_PACKETS)


_OF_NETWORKS = ("networks", "real", "total", "foretold", "ip", "samples", "ack", "mtu")
"""What is seen of real networks."""


def _less(saved: float) -> str:
    return f"{percent(saved, 1)} less than" if saved >= 0 else f"{1 - saved:.3g} times as much as"


def _powers(results: Results) -> float:
    """What pools of powers of two alone waste on the mix."""
    linux = zoo(PAGES)
    plain = linux.pools[0].model_copy(update={"sizes": (64, 128, 256, 512, 1024, 2048)})
    recipe = linux.model_copy(update={"pools": (plain, *linux.pools[1:])})
    return mean(one.fragmentation for one in run(recipe, results.mix, 0))


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

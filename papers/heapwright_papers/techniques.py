"""Tables 1 and 2: which technique the allocators use, and what each of the four does to memory and speed.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance", sections 3 to 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import heapwright as hw
from heapwright_papers import mixes, techniques_answers
from heapwright_papers.case_study import MIX, REAL, stand_ins
from heapwright_papers.declared import fill, page_of
from heapwright_papers.page import Page
from heapwright_papers.techniques_grid import BEST, FIRST, Grid
from heapwright_papers.traffic import packet_tables

if TYPE_CHECKING:
    from heapwright import PacketTable, Trace

PACKETS, NETWORKS, FORMS = 1_500, 3, 3
LEAST_PACKETS_LOOKED_AT = 50_000
WORKLOADS = ("drr", "easyport", "url")
DOMINANT = {"drr": (40, 1500), "easyport": (52, 1500), "url": (40, 1500)}
"""Bytes of the two most frequent IP packets of the paper's mix, by application."""


def page(packets: Path | None, progress: Callable[[str], None]) -> Page:
    """Tables 1 and 2, with the curves behind them.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`, or where no table holds enough IP packets.
    """
    tables = stand_ins(packet_tables(packets), LEAST_PACKETS_LOOKED_AT, NETWORKS)
    made = page_of("techniques")
    for name, table in tables.items():
        made.traffic(name, table)
    traces = {**({REAL: _real(tables)} if tables else {}), MIX: _mix(made)}
    grids: dict[str, dict[str, list[Grid]]] = {on: {} for on in traces}
    for on, of in traces.items():
        for name, some in of.items():
            progress(f"techniques: {name}, {on}")
            grids[on][name] = Grid.of(some, thinned=on == MIX)
    names = techniques_answers.names(grids, traces.get(REAL))
    on, first = next(iter(grids.items()))
    more = {
        "packets": PACKETS,
        "networks": list(tables),
        "forms": [mix.name for mix in mixes.mixes((40, 1500), FORMS)],
        "seeds": len(mixes.SEEDS),
        "grids": grids,
        "replays": {on: sum(grid.recipes for some in of.values() for grid in some) for on, of in grids.items()},
        "paths": {name: {one: _path(first[name], one) for one in names["TABLE_2"]} for name in WORKLOADS},
        "shown_on": on,
    }
    fill(made, {**names, **more})
    made.judge(names)
    return made


def _real(tables: Mapping[str, PacketTable]) -> dict[str, list[Trace]]:
    return {name: [hw.workload(name, table, count=PACKETS) for table in tables.values()] for name in WORKLOADS}


def _mix(made: Page) -> dict[str, list[Trace]]:
    traces = {}
    for name in WORKLOADS:
        forms = mixes.mixes(DOMINANT[name], FORMS)
        drawn = {(mix.name, seed): mix.packets(PACKETS, seed) for seed in mixes.SEEDS for mix in forms}
        traces[name] = [hw.workload(name, table, rate=mixes.RATE) for table in drawn.values()]
        if DOMINANT[name] == DOMINANT["drr"]:
            for (form, seed), table in drawn.items():
                made.traffic(f"{form}, seed {seed}", table)
    return traces


def _path(grids: Sequence[Grid], technique: str) -> list[dict[str, Any]]:
    """A row for each level of a technique from none to full; grids are left out of the levels that they lack."""
    first = grids[0]
    fits = [FIRST, *(at for at, fit in enumerate(hw.families.FITS) if "search_percent" in fit), BEST]
    attribute, steps = {
        "freelists": ("freelists", range(first.last("freelists") + 1)),
        "best fit": ("fit", fits),
        "split": ("split", range(first.last("split"), -1, -1)),
        "coalesce": ("coalesce", [first.last("coalesce"), *range(3, -1, -1)]),
    }[technique]
    known = [[log for grid in grids for log in grid.level_means(attribute, level)] for level in steps]
    means = [np.exp(np.mean(of, axis=0)) for of in known if of]
    return [
        {
            "technique": technique,
            "step": step,
            "last": len(means) - 1,
            "memory": 100 * (float(memory) - 1),
            "accesses": float(accesses),
        }
        for step, (memory, accesses) in enumerate(means)
    ]

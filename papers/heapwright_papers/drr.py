"""Deficit round robin: Table 3, Figures 3 and 4, and the characteristics of section 5.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import heapwright as hw
from heapwright import zoo
from heapwright_papers import drr_claims
from heapwright_papers.answers import NO_PACKETS
from heapwright_papers.case_page import CaseRun
from heapwright_papers.case_study import MIX, PROPOSED, REAL, case, stand_ins
from heapwright_papers.drr_claims import BEST_FIT
from heapwright_papers.readings import Joint, with_general
from heapwright_papers.traffic import has_ip

if TYPE_CHECKING:
    from heapwright import PacketTable
    from heapwright_papers.page import Page

CROSSED_PACKETS = 10_000
"""Of each network, under which all uses of the techniques are crossed: without coalescing lists grow long."""
EXTRA = 16
"""Bytes beside the data that a packet is stored with, as `heapwright workload drr` has them."""

CASE = case("drr")


def page(packets: Path | None, progress: Callable[[str], None], joint: Joint | None = None) -> Page:
    """Table 3, Figures 3 and 4, the claims of sections 5 and 6, and the best of the full space on networks held out.

    `joint` is how the paper is read, by default as `readings.leading` has it.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`, or where no table holds enough IP packets.
    """
    of = CaseRun(CASE, progress, packets, joint)
    of.choose(stand_ins(of.tables, CASE.packets, CASE.traces))
    frames = {name: table for name, table in of.tables.items() if not has_ip(table)}
    of.traffic(frames)
    more = {BEST_FIT: with_general(CASE.read(of.read)[PROPOSED], fit="best")}
    of.try_heaps(more)
    progress("drr: the four techniques")
    real = {name: of.workload(table, count=CROSSED_PACKETS) for name, table in of.chosen.items()}
    kinds = {**({REAL: real} if real else {}), MIX: of.short_mix(CROSSED_PACKETS)}
    crossed = {on: drr_claims.crossed(on, traces, zoo(CASE.proposed)) for on, traces in kinds.items()}
    seen = {
        "crossed": {REAL: NO_PACKETS} | crossed,
        "crossed_names": list(crossed[MIX].runs[0].metrics),
        **drr_claims.names(
            of.trials,
            {name: _sizes(table) for name, table in of.chosen.items()},
            {name: of.workload(table, count=CASE.packets, size="frame") for name, table in frames.items()},
            {name: table.flow[: CASE.packets] for name, table in of.chosen.items()},
        ),
    }
    return of.filled(more, seen)


def _sizes(table: PacketTable) -> NDArray[np.int64]:
    """Bytes that each packet is stored in: its data, which a queue tells in order of arrival, and EXTRA."""
    queue = hw.workload("queue", table, count=CASE.packets, size="payload", limit=CASE.packets)
    sizes: NDArray[np.int64] = queue.size[queue.op == hw.MALLOC].astype(np.int64)
    return sizes + EXTRA

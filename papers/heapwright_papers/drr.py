"""Deficit round robin: Table 3, Figures 3 and 4, and the characteristics of section 5.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import heapwright as hw
from heapwright import Recipe, zoo
from heapwright_papers import drr_claims, drr_figures, mixes
from heapwright_papers.answers import NO_PACKETS, percent
from heapwright_papers.case_study import (
    MIX,
    PAPER,
    PROPOSED,
    REAL,
    Trial,
    case,
    counted,
    read_as,
    stand_ins,
    try_all,
)
from heapwright_papers.case_study import accesses as accesses_of
from heapwright_papers.case_tables import BAND, METRIC, add_published, add_reasons, add_tables
from heapwright_papers.drr_claims import BEST_FIT, LISTS
from heapwright_papers.grid import check_grid
from heapwright_papers.held_out import PUBLISHED, RETUNED, Split, add_contest, retuned
from heapwright_papers.page import Page
from heapwright_papers.readings import Joint, leading, with_general
from heapwright_papers.readings_page import add_readings
from heapwright_papers.traffic import LAID, has_ip, marked, packet_tables

if TYPE_CHECKING:
    from heapwright import PacketTable, Trace

PACKETS, TRACES = 50_000, 5
EXPLORED_PACKETS, EXPLORED_RECIPES = 4_000, 2_000
CROSSED_PACKETS = 10_000
"""Of each network, under which all uses of the techniques are crossed: without coalescing lists grow long."""
GRID_PACKETS = 2_000
"""Of each trace of the paper's mix, on which a thousand uses of the techniques are tried."""
EXTRA = 16
"""Bytes beside the data that a packet is stored with, as `heapwright workload drr` has them."""
DOMINANT = (40, 1500)
"""Bytes of the IP packets that become blocks of 16 and 1476 bytes."""

CASE = case("drr")

_INTRODUCTION = """\
{paper} run deficit round robin on wireless traces of five buildings of the Dartmouth campus, {packets:,} packets each.
Those traces are not to be had. Two kinds of traffic stand in: real networks, the five tables of the folder with most
distinct sizes of IP packets, and the paper's own mix of sizes. Networks whose frames hide their
IP packets, as recordings of encrypted 802.11 do, cannot: the paper's sizes are those of data in IP packets. Each is
`heapwright workload drr --count {packets}`, with `--longest-gap 1` where it is marked †, and its defaults: quantum
9 KB, every packet looked for from the oldest queue on, the data of a packet and 16 bytes beside it, 24 bytes a queue,
a link busy 90 % of the time."""

_REASONS = (
    """\
- The freelists of the proposed allocator serve {lists} of the packets here (16 and 1476 bytes, in the order of the
  networks). Freelists never give a block back, so what they hold at a peak of small packets is lost to the next peak
  of large ones.""",
    """\
- First fit walks a list that is as long as traffic is mixed: see the accesses. The paper does not say how long its
  lists were. `Proposed` is slow on {slowest} for that reason alone.""",
    """\
- How much waits in the queues depends on the rate of the link, which the paper does not tell.""",
)


def page(packets: Path | None, progress: Callable[[str], None], joint: Joint | None = None) -> Page:
    """Table 3, Figures 3 and 4, the claims of sections 5 and 6, and the best of the full space on networks held out.

    `joint` is how the paper is read, by default as `readings.leading` has it.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`, or where no table holds enough IP packets.
    """
    tables = packet_tables(packets)
    chosen = stand_ins(tables, PACKETS, TRACES)
    made = Page("drr", "Deficit round robin", PAPER)
    for name, table in chosen.items():
        made.traffic(name, table)
    made.text(_INTRODUCTION.format(paper=PAPER, packets=PACKETS))
    made.text(METRIC)
    made.text(BAND)
    add_published(made, CASE)
    progress("drr: real networks")
    read = joint or leading()
    trials = [_real(made, chosen, read)] if chosen else []
    wireless = _wireless(made, tables)
    progress("drr: the paper's own mix")
    trials.append(_mix(made, read))
    progress("drr: the four techniques")
    check_grid(made, CASE.proposed, _short_mix(GRID_PACKETS))
    if tables:
        _contest(made, tables, progress)
    sizes = {name: _sizes(table) for name, table in chosen.items()}
    flows = {name: table.flow[:PACKETS] for name, table in chosen.items()}
    short = {MIX: _short_mix(CROSSED_PACKETS)}
    if chosen:
        short = {
            REAL: {name: hw.workload("drr", table, count=CROSSED_PACKETS) for name, table in chosen.items()},
            **short,
        }
    crossed = {on: drr_claims.crossed(on, of, zoo(CASE.proposed)) for on, of in short.items()}
    seen: dict[str, Any] = {
        "crossed": {REAL: NO_PACKETS} | crossed,
        "crossed_names": list(crossed[MIX].runs[0].metrics),
    }
    seen |= drr_claims.names(trials, sizes, wireless, flows)
    progress("drr: readings")
    add_readings(made, CASE, trials, seen, read)
    return made


def _real(made: Page, chosen: Mapping[str, PacketTable], joint: Joint) -> Trial:
    traces = {name: hw.workload("drr", table, count=PACKETS) for name, table in chosen.items()}
    heaps = _heaps(joint)
    trial = try_all(REAL, {(name, 0): trace for name, trace in traces.items()}, heaps, counted(heaps))
    trial = trial.under(read_as(joint))
    made.text("## Real networks")
    sizes = {name: _sizes(table) for name, table in chosen.items()}
    add_tables(made, trial, list(heaps))
    returned = ", ".join(percent(float(np.isin(found, LISTS).mean())) for found in sizes.values())
    slowest = marked(max(trial.names, key=lambda name: trial.column(PROPOSED, accesses_of, name)))
    add_reasons(made, [reason.format(lists=returned, slowest=slowest) for reason in _REASONS])
    made.text("### Memory over time (the paper's Figure 3)")
    note = "Bytes that the scheduler has asked for and not freed. " + _LAID * any(name in LAID for name in chosen)
    made.figure(drr_figures.memory("drr-memory", "Real networks: thin and fat spikes, no plateau", note, traces))
    made.text("### Sizes of the requests (the paper's Figure 4)")
    title = "Real networks: few large packets, hundreds of sizes"
    note = f"Packets by the size of their block. In vermillion the paper's two modes, {LISTS[0]} and {LISTS[1]} bytes."
    made.figure(drr_figures.sizes("drr-sizes", title, note, sizes, LISTS))
    return trial


_LAID = "† Captures laid end to end, gaps above 1 s closed."


def _mix(made: Page, joint: Joint) -> Trial:
    forms = mixes.mixes(DOMINANT, TRACES)
    traces = {
        key: hw.workload("drr", table, rate=mixes.RATE) for key, table in mixes.draw(made, forms, PACKETS).items()
    }
    heaps = _heaps(joint)
    trial = try_all(MIX, traces, heaps, counted(heaps)).under(read_as(joint))
    made.text(mixes.introduction(forms, "blocks of 16 and 1476 bytes"))
    add_tables(made, trial, list(heaps))
    first = {run.name: run.trace for run in trial.runs if run.seed == mixes.SEEDS[0]}
    note = f"As drawn with seed {mixes.SEEDS[0]}, over a link of {mixes.RATE / 1e6:g} Mbit/s."
    made.figure(drr_figures.memory("drr-memory-mix", "The paper's mix: the five forms of its Figure 3", note, first))
    return trial


def _short_mix(count: int) -> dict[str, Trace]:
    """The five forms in fewer packets, with the first seed."""
    forms = mixes.mixes(DOMINANT, TRACES)
    return {mix.name: hw.workload("drr", mix.packets(count, mixes.SEEDS[0]), rate=mixes.RATE) for mix in forms}


def _heaps(joint: Joint) -> dict[str, Recipe]:
    return CASE.heaps() | {BEST_FIT: with_general(CASE.read(joint)[PROPOSED], fit="best")}


def _sizes(table: PacketTable) -> NDArray[np.int64]:
    """Bytes that each packet is stored in: its data, which a queue tells in order of arrival, and EXTRA."""
    queue = hw.workload("queue", table, count=PACKETS, size="payload", limit=PACKETS)
    sizes: NDArray[np.int64] = queue.size[queue.op == hw.MALLOC].astype(np.int64)
    return sizes + EXTRA


def _wireless(made: Page, tables: Mapping[str, PacketTable]) -> dict[str, Trace]:
    """Traces of the 802.11 tables, whose sizes are those of frames."""
    found = {}
    for name, table in tables.items():
        if not has_ip(table):
            made.traffic(name, table)
            found[name] = hw.workload("drr", table, count=PACKETS, size="frame")
    return found


def _contest(made: Page, tables: dict[str, PacketTable], progress: Callable[[str], None]) -> None:
    split = Split.of_packets("drr", tables, EXPLORED_PACKETS, PACKETS)
    for name in (*split.explored, *split.held_out):
        made.traffic(name, tables[name])
    proposed = zoo(CASE.proposed)
    heaps = {PUBLISHED: proposed, RETUNED: retuned(proposed, list(split.explored.values()))}
    add_contest(made, split, (EXPLORED_PACKETS, PACKETS), heaps, progress, EXPLORED_RECIPES)

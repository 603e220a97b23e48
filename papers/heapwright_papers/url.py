"""URL-based switching: Table 5.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance", section 6.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import heapwright as hw
from heapwright import zoo
from heapwright_papers import mixes
from heapwright_papers.case_study import (
    MIX,
    PAPER,
    REAL,
    Trial,
    case,
    counted,
    read_as,
    stand_ins,
    try_all,
)
from heapwright_papers.case_tables import BAND, METRIC, add_published, add_reasons, add_tables
from heapwright_papers.grid import check_grid
from heapwright_papers.held_out import PUBLISHED, RETUNED, Split, add_contest, retuned
from heapwright_papers.page import Page
from heapwright_papers.readings import Joint, leading
from heapwright_papers.readings_page import add_readings
from heapwright_papers.traffic import packet_tables

if TYPE_CHECKING:
    from heapwright import PacketTable, Recipe

PACKETS, TRACES = 50_000, 4
EXPLORED_PACKETS, EXPLORED_RECIPES = 2_000, 2_000
GRID_PACKETS = 1_000
DOMINANT = (40, 1500)
"""Bytes of the two most frequent IP packets of the paper's mix, which here shape the queue alone."""
TWO_LISTS = "Proposed, without the list of 11"

CASE = case("url")

_INTRODUCTION = """\
{paper} run NetBench's URL-based switching on traces of wired networks by NLANR (BWY, COS, UFL), {packets:,} packets
each. Those traces are not to be had. Two kinds of traffic stand in: real networks, the four tables of the folder with
most distinct sizes of IP packets, and the paper's own mix. Each is `heapwright workload url --count {packets}`, with
`--longest-gap 1` where it is marked †, and its defaults: a table of 64 patterns that stays, and for every packet a
copy of its IP header (20 bytes), a list node (8) and a route record (20), with the text of the URL (11) for the first
packet with data of a flow, until a link that is busy 90 % of the time has sent the packet. The paper gives only the
three sizes."""

_REASONS = (
    """\
- Two thirds of the blocks have 20 bytes, one third 8: in units of 4 nothing is lost inside, which the paper's 2 to 8 %
  of Windows CE and the proposed allocator need. So the main pool of `url-proposed` keeps no boundary tags, which would
  force blocks of 12 bytes and 8.3 %: Linux keeps them, and has that.""",
    """\
- Windows XP rounds to 8 bytes: 20 become 24, 11 become 16, so 8 / 48 = 16.7 %, as in the paper (10 to 16 %).""",
    "- uClinux takes 32 bytes for each of the three sizes, twice the mean of 16: 100 %, as in the paper.",
    """\
- The paper's times hardly differ, 3.00 to 3.37 s: they are likely to contain the application's own work. Ours do not.
  Windows CE walks over all the blocks in use, thousands here: the link's load, which the paper does not tell, decides
  how many there are.""",
)


def page(packets: Path | None, progress: Callable[[str], None], joint: Joint | None = None) -> Page:
    """Table 5, its claims, and the best of the full space on networks held out.

    `joint` is how the paper is read, by default as `readings.leading` has it.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`, or where no table holds enough IP packets.
    """
    tables = packet_tables(packets)
    chosen = stand_ins(tables, PACKETS, TRACES)
    made = Page("url", "URL-based switching", PAPER)
    for name, table in chosen.items():
        made.traffic(name, table)
    made.text(_INTRODUCTION.format(paper=PAPER, packets=PACKETS))
    made.text(METRIC)
    made.text(BAND)
    add_published(made, CASE)
    progress("url: real networks")
    read = joint or leading()
    trials = [_real(made, chosen, read)] if chosen else []
    progress("url: the paper's own mix")
    trials.append(_mix(made, read))
    add_readings(made, CASE, trials, {"TWO_LISTS": TWO_LISTS}, read)
    if tables:
        _contest(made, tables, progress)
    return made


def _real(made: Page, chosen: dict[str, PacketTable], joint: Joint) -> Trial:
    traces = {(name, 0): hw.workload("url", table, count=PACKETS) for name, table in chosen.items()}
    heaps = _heaps()
    trial = try_all(REAL, traces, heaps, counted(heaps)).under(read_as(joint))
    made.text("## Real networks")
    add_tables(made, trial, list(heaps))
    add_reasons(made, _REASONS)
    return trial


def _mix(made: Page, joint: Joint) -> Trial:
    forms = mixes.mixes(DOMINANT, TRACES)
    traces = {
        key: hw.workload("url", table, rate=mixes.RATE) for key, table in mixes.draw(made, forms, PACKETS).items()
    }
    heaps = _heaps()
    trial = try_all(MIX, traces, heaps, counted(heaps)).under(read_as(joint))
    made.text(mixes.introduction(forms, "packets of 40 and 1500 bytes"))
    add_tables(made, trial, list(heaps))
    short = {mix.name: hw.workload("url", mix.packets(GRID_PACKETS, mixes.SEEDS[0]), rate=mixes.RATE) for mix in forms}
    check_grid(made, CASE.proposed, short)
    return trial


def _heaps() -> dict[str, Recipe]:
    proposed = zoo(CASE.proposed)
    lists, general = proposed.pools
    two = lists.model_copy(update={"sizes": (8, 20)})
    return CASE.heaps() | {TWO_LISTS: proposed.model_copy(update={"pools": (two, general)})}


def _contest(made: Page, tables: dict[str, PacketTable], progress: Callable[[str], None]) -> None:
    split = Split.of_packets("url", tables, EXPLORED_PACKETS, PACKETS)
    for name in (*split.explored, *split.held_out):
        made.traffic(name, tables[name])
    proposed = zoo(CASE.proposed)
    heaps = {PUBLISHED: proposed, RETUNED: retuned(proposed, list(split.explored.values()))}
    add_contest(made, split, (EXPLORED_PACKETS, PACKETS), heaps, progress, EXPLORED_RECIPES)

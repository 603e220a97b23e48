"""Packet buffers of Easyport: Table 4 and Figure 2, the cloud of all allocators explored and its front.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance", sections 5 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import heapwright as hw
from heapwright import HeapwrightError, Space, Study, pareto, zoo
from heapwright_papers import mixes
from heapwright_papers.answers import percent
from heapwright_papers.case_study import (
    MIX,
    PAPER,
    PROPOSED,
    REAL,
    SYSTEMS,
    Trial,
    case,
    counted,
    fragmentation,
    read_as,
    try_all,
)
from heapwright_papers.case_tables import BAND, METRIC, add_published, add_reasons, add_tables
from heapwright_papers.cloud import cloud
from heapwright_papers.fronts import add_fronts
from heapwright_papers.grid import check_grid
from heapwright_papers.held_out import PUBLISHED, RETUNED, Split, add_contest, retuned
from heapwright_papers.page import ALIGN, Page
from heapwright_papers.readings import Joint, leading
from heapwright_papers.readings_page import add_readings
from heapwright_papers.traffic import has_ip, marked, packet_tables

if TYPE_CHECKING:
    from heapwright import PacketTable, Trace, figure

PACKETS, TRACES = 4_200, 3
EXPLORED_RECIPES = 1_500
MODES = (66, 1514)
"""Bytes of the two dominant frames, for which the proposed allocator has freelists."""
DOMINANT = (52, 1500)
"""Bytes of the IP packets in them."""

CASE = case("easyport")

_INTRODUCTION = """\
{paper} run the packet buffers of Infineon's Easyport on three traces of Infineon, mainly FTP sessions, {packets:,}
packets each; its proposed allocator has lists for frames of 66 and 1514 bytes. Those traces are not to be had. Two
kinds of traffic stand in: real networks, the three tables of the folder in which the rarer of the two frames is most
frequent, and the paper's own mix of sizes. Each is `heapwright workload easyport --count {packets}`, with
`--longest-gap 1` where it is marked †, and its defaults: one block a frame, first in, first out, a link that is busy
90 % of the time."""

_REASONS = (
    """\
- The freelists of the proposed allocator serve {lists} of the requests here, in the order of the networks.""",
    """\
- A queue frees its blocks in the order in which it took them. Allocators that merge then get back whole stretches of
  memory, and fragment little whatever else they do. The paper's 20 to 97 % are those of heaps that hardly merge, or of
  buffers that are not a plain queue; it does not tell more of Easyport than "in a FIFO way".""",
)

_WASTEFUL = "Windows CE, ce-neither"
_FIGURE = """\
## The cloud and its front (the paper's Figure 2)

All recipes of the default space and the zoo, none given up early, on {name}: of the three networks the one on which a
heap that neither splits nor merges wastes most. Of {recipes:,} allocators the {admitted:,} that served every request
are drawn, but for those that move blocks, which serve handles. The axes of the paper's figure are execution time and
memory footprint, without numbers. Ours are accesses, which no machine changes, and the footprint with headers and
control data, as what it is beyond the memory requested."""


def page(packets: Path | None, progress: Callable[[str], None], joint: Joint | None = None) -> Page:
    """Table 4, Figure 2, their claims, and the best of the full space on networks held out.

    `joint` is how the paper is read, by default as `readings.leading` has it.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`, or where no table has both of the paper's
    frames.
    """
    tables = packet_tables(packets)
    chosen = stand_ins(tables) if tables else {}
    made = Page("easyport", "Packet buffers of Easyport", PAPER)
    for name, table in chosen.items():
        made.traffic(name, table)
    made.text(_INTRODUCTION.format(paper=PAPER, packets=PACKETS))
    made.text(METRIC)
    made.text(BAND)
    add_published(made, CASE)
    progress("easyport: real networks")
    read = joint or leading()
    trials = [_real(made, chosen, read)] if chosen else []
    progress("easyport: the paper's own mix")
    trials.append(_mix(made, read))
    wasteful = max(trials[0].names, key=lambda name: trials[0].column(_WASTEFUL, fragmentation, name))
    seen = _explore(made, replace(trials[0].of(wasteful)[0].trace, name=wasteful), progress)
    add_readings(made, CASE, trials, seen, read)
    if tables:
        _contest(made, tables, progress)
    return made


def _contest(made: Page, tables: dict[str, PacketTable], progress: Callable[[str], None]) -> None:
    split = Split.of_packets("easyport", tables, PACKETS, PACKETS)
    for name in (*split.explored, *split.held_out):
        made.traffic(name, tables[name])
    proposed = zoo(CASE.proposed)
    heaps = {PUBLISHED: proposed, RETUNED: retuned(proposed, list(split.explored.values()))}
    add_contest(made, split, (PACKETS, PACKETS), heaps, progress, EXPLORED_RECIPES)


def _real(made: Page, chosen: Mapping[str, PacketTable], joint: Joint) -> Trial:
    traces = {(name, 0): hw.workload("easyport", table, count=PACKETS) for name, table in chosen.items()}
    heaps = CASE.heaps()
    trial = try_all(REAL, traces, heaps, counted(heaps)).under(read_as(joint))
    made.text("## Real networks")
    add_tables(made, trial, list(heaps))
    add_reasons(made, _reasons(chosen))
    return trial


def _mix(made: Page, joint: Joint) -> Trial:
    forms = mixes.mixes(DOMINANT, TRACES)
    traces = {
        key: hw.workload("easyport", table, rate=mixes.RATE) for key, table in mixes.draw(made, forms, PACKETS).items()
    }
    heaps = CASE.heaps()
    trial = try_all(MIX, traces, heaps, counted(heaps)).under(read_as(joint))
    made.text(mixes.introduction(forms, "frames of 66 and 1514 bytes"))
    add_tables(made, trial, list(heaps))
    check_grid(made, CASE.proposed, {run.name: run.trace for run in trial.runs if run.seed == mixes.SEEDS[0]})
    return trial


def stand_ins(tables: dict[str, PacketTable]) -> dict[str, PacketTable]:
    """The TRACES tables in whose first packets the rarer of the paper's two frames is most frequent."""
    shares = {name: min(_shares(table)) for name, table in tables.items() if has_ip(table)}
    chosen = sorted((name for name in shares if shares[name] > 0), key=lambda name: -shares[name])[:TRACES]
    if not chosen:
        sizes = " and of ".join(f"{size} bytes" for size in MODES)
        raise HeapwrightError(f"no packet table has frames of {sizes} among its first {PACKETS:,}")
    return {name: tables[name] for name in chosen}


def _shares(table: PacketTable) -> tuple[float, float]:
    small, large = ((table.frame_len[:PACKETS] == size).mean() if len(table) else 0.0 for size in MODES)
    return float(small), float(large)


def _reasons(chosen: Mapping[str, PacketTable]) -> list[str]:
    lists = ", ".join(percent(sum(_shares(table))) for table in chosen.values())
    return [reason.format(lists=lists) for reason in _REASONS]


# ---- Figure 2 --------------------------------------------------------------------------------------------------------


def _explore(page: Page, trace: Trace, progress: Callable[[str], None]) -> dict[str, Any]:
    """Try every recipe on one network, without giving any up, and draw them all; what the statements see of it."""
    space = Space.default([trace], ALIGN, move_zoo=False)
    progress(f"easyport: {len(space):,} recipes on {trace.name}")
    with TemporaryDirectory(prefix="heapwright-papers-") as folder:
        path = Path(folder) / "study.duckdb"
        hw.explore(trace, path, space=space, copies=0, endurance=False, complete=True)
        with Study.open(path) as study:
            recipes = study.ranked
            points = _points(study, len(trace), trace.peak_live_bytes)
            page.text(_FIGURE.format(name=marked(trace.name), recipes=recipes, admitted=len(points)))
            page.figure(_draw(points))
            front = _front(page, study, points)
            (standing,) = (one for one in study.zoo_standings() if one.candidate.zoo_name == CASE.proposed)
            progress("easyport: time, fragmentation and energy")
            found = add_fronts(page, study, trace, {zoo: name for name, zoo in NAMED.items()})
    return {"recipes": recipes, "front": front, "standing": standing, **found}


def _points(study: Study, calls: int, requested: int) -> list[dict[str, Any]]:
    """A point for every recipe that served all requests and hands out pointers; `id` is the recipe's."""
    combined = study.combined
    columns = [combined.columns[key].tolist() for key in ("failed", "footprint_bytes", "accesses")]
    points = [
        {
            "id": id,
            "kind": "zoo" if name else "cloud",
            "name": name or "",
            "overhead": 100 * (memory / requested - 1),
            "accesses": accesses / calls,
        }
        for id, name, failed, memory, accesses in zip(combined.ids, combined.zoo_names, *columns, strict=True)
        if not failed
    ]
    costs = np.array([[point["overhead"], point["accesses"]] for point in points])
    for at in np.flatnonzero(pareto.front(costs, ("min", "min"))):
        points[at]["kind"] = "front"
    return points


def _draw(points: Sequence[dict[str, Any]]) -> figure.Figure:
    front = sum(point["kind"] == "front" for point in points)
    title = f"{len(points):,} allocators of the packet buffers: {front} that none beats"
    note = "Each point is an allocator; nearer the lower left is better. The paper's are named."
    return cloud("easyport-cloud", title, note, points, {zoo: name for name, zoo in NAMED.items()}, CASE.proposed)


class Member(NamedTuple):
    """What is asked of a member of the front.

    Its freelists, its general pools, whether some blocks are of fixed classes, and what it is, in words.
    """

    lists: int
    generals: Sequence[hw.pools.General]
    classes: bool
    summary: str


def _front(page: Page, study: Study, points: Sequence[dict[str, Any]]) -> list[Member]:
    ids = [point["id"] for point in sorted(points, key=lambda point: point["overhead"]) if point["kind"] == "front"]
    front = [(study.candidate(id), study.recipe(id)) for id in ids]
    keys = ("footprint_bytes", "accesses")
    rows = [[one.label, *(f"{one.metrics[key]:,}" for key in keys), recipe.summary(ALIGN)] for one, recipe in front]
    page.text("The front, smallest first:")
    page.table(("recipe", "footprint, B", "accesses", "what it is"), rows)
    return [
        Member(
            sum(len(pool.sizes or ()) for pool in recipe.pools if isinstance(pool, hw.pools.Quick)),
            [pool for pool in recipe.pools if isinstance(pool, hw.pools.General)],
            any(isinstance(pool, hw.pools.Fixed) for pool in recipe.pools),
            recipe.summary(ALIGN),
        )
        for _, recipe in front
    ]


NAMED = {**SYSTEMS, PROPOSED: CASE.proposed}

"""Packet buffers of Easyport: Table 4 and Figure 2, the cloud of all allocators explored and its front.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance", sections 5 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heapwright.errors import HeapwrightError
from heapwright.explore import pareto
from heapwright.explore.search import explore
from heapwright.explore.space import Space
from heapwright.explore.study import Study
from heapwright.files.temporary import temporary_folder
from heapwright.papers.case_study import METRIC, PAPER, PROPOSED, UNSPLIT, Case, Run, add_tables, check, run_all
from heapwright.papers.cloud import cloud
from heapwright.papers.held_out import PUBLISHED, RETUNED, Split, add_contest, retuned
from heapwright.papers.page import ALIGN, Page, percent
from heapwright.papers.traffic import packet_tables
from heapwright.recipes.pools import General, Quick
from heapwright.recipes.recipe import Recipe
from heapwright.workloads.easyport import easyport
from heapwright.zoo.catalogue import load

if TYPE_CHECKING:
    from heapwright.report.figure import Figure
    from heapwright.traffic.packets import PacketTable

PACKETS, TRACES = 4_200, 3
MODES = (66, 1514)
"""Bytes of the two dominant frames, for which the proposed allocator has freelists."""

CASE = Case(
    "easyport",
    4,
    ("Trace 1", "Trace 2", "Trace 3"),
    {
        "Windows CE": ((46, 30, 75, 34), (0.51, 0.62, 0.33, 0.60)),
        "Windows XP": ((49, 33, 78, 37), (0.49, 0.59, 0.31, 0.59)),
        "Linux": ((40, 29, 62, 28), (0.59, 0.69, 0.37, 0.71)),
        "Enea OSE": ((46, 30, 70, 36), (1.20, 1.42, 0.81, 1.39)),
        "uClinux": ((60, 40, 97, 42), (0.87, 1.02, 0.62, 0.97)),
        "Avg. Alloc.": ((48, 32, 77, 35), (0.73, 0.86, 0.48, 0.85)),
        PROPOSED: ((37, 20, 61, 30), (0.47, 0.52, 0.32, 0.59)),
    },
    less_fragmentation=(50.16, 23.0),
    less_time=(63.39, 35.62),
)

_INTRODUCTION = """\
{paper} run the packet buffers of Infineon's Easyport on three traces of Infineon, mainly FTP sessions, {packets:,}
packets each; two sizes of frames dominate, 66 and 1514 bytes. Those traces are not to be had; these stand in, the
tables of the folder in which the rarer of the two sizes is most frequent: {stand}. Each is
`heapwright workload easyport --count {packets}` with its defaults: one block a frame, first in, first out, a link
that is busy 90 % of the time."""

_REASONS = (
    """\
- The freelists of the proposed allocator serve {lists} of the requests here, in the order of the networks.""",
    """\
- A queue frees its blocks in the order in which it took them. Allocators that merge then get back whole stretches of
  memory, and fragment little whatever else they do. The paper's 20 to 97 % are those of heaps that hardly merge, or of
  buffers that are not a plain queue; it does not tell more of Easyport than "in a FIFO way".""",
)

_FIGURE = """\
## The cloud and its front (the paper's Figure 2)

All recipes of the default space and the zoo, none given up early, on {name}: of the three networks the one on which a
heap that neither splits nor merges wastes most. {recipes:,} allocators in {seconds:.0f} seconds. The {admitted:,} that
served every request are drawn, but for those that move blocks, which serve handles. The paper took 45 days on two
Pentium IV workstations for about 10,000 allocators on each of three applications. Its axes are execution time and
memory footprint. Ours are accesses, which no machine changes, and the footprint with headers and control data, as what
it is beyond the memory requested."""


def page(packets: Path | None, progress: Callable[[str], None]) -> Page:
    """Table 4, Figure 2, their claims, and the best of the full space on networks held out.

    Raises HeapwrightError as `heapwright.papers.packet_tables`, or where no table has both of the paper's frames.
    """
    tables = packet_tables(packets)
    chosen = stand_ins(tables)
    runs = run_all(CASE, {name: partial(easyport, table, count=PACKETS) for name, table in chosen.items()}, progress)
    made = Page("easyport", "Packet buffers under real traffic", PAPER)
    stand = ", ".join(f"{run.name} ({run.trace.peak_live_bytes:,} B live at most)" for run in runs)
    made.text(_INTRODUCTION.format(paper=PAPER, packets=PACKETS, stand=stand))
    made.text(METRIC)
    add_tables(made, CASE, runs, _reasons(chosen))
    check(made, CASE, runs)
    unsplit = next(reversed(UNSPLIT))
    _explore(made, max(runs, key=lambda run: run.fragmentation(unsplit)), progress)
    split = Split.of_packets(easyport, tables, PACKETS, PACKETS)
    proposed = load(CASE.proposed)
    heaps = {PUBLISHED: proposed, RETUNED: retuned(proposed, list(split.explored.values()))}
    add_contest(made, split, (PACKETS, PACKETS), heaps, progress)
    return made


def stand_ins(tables: dict[str, PacketTable]) -> dict[str, PacketTable]:
    """The TRACES tables in whose first packets the rarer of the paper's two frames is most frequent."""
    shares = {name: min(_shares(table)) for name, table in tables.items()}
    chosen = sorted((name for name in tables if shares[name] > 0), key=lambda name: -shares[name])[:TRACES]
    if not chosen:
        sizes = " and of ".join(f"{size} bytes" for size in MODES)
        raise HeapwrightError(f"no packet table has frames of {sizes} among its first {PACKETS:,}")
    return {name: tables[name] for name in chosen}


def _shares(table: PacketTable) -> tuple[float, float]:
    small, large = ((table.frame_len[:PACKETS] == size).mean() if len(table) else 0.0 for size in MODES)
    return float(small), float(large)


def _reasons(chosen: dict[str, PacketTable]) -> list[str]:
    lists = ", ".join(percent(sum(_shares(table))) for table in chosen.values())
    return [reason.format(lists=lists) for reason in _REASONS]


# ---- Figure 2 --------------------------------------------------------------------------------------------------------


def _explore(page: Page, run: Run, progress: Callable[[str], None]) -> None:
    """Try every recipe on one network, without giving any up, and draw them all."""
    space = Space.default([run.trace], ALIGN, move_zoo=False)
    progress(f"easyport: {len(space):,} recipes on {run.name}")
    with temporary_folder("papers") as folder:
        found = explore([run.trace], space, study_path=folder / "study.duckdb")
        with Study.open(found.study) as study:
            points = _points(study, len(run.trace), run.trace.peak_live_bytes)
            told = {"name": run.name, "recipes": found.recipes, "seconds": found.seconds, "admitted": len(points)}
            page.text(_FIGURE.format(**told))
            page.figure(_draw(points))
            _check_front(page, study, found.recipes, points)


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


def _draw(points: Sequence[dict[str, Any]]) -> Figure:
    title = f"{len(points):,} allocators of the packet buffers, and what none of them beats"
    note = "Each point is an allocator; nearer the lower left is better. The paper's proposed one is in bold."
    return cloud("easyport-cloud", title, note, points, CASE.proposed)


def _check_front(page: Page, study: Study, recipes: int, points: Sequence[dict[str, Any]]) -> None:
    ids = [point["id"] for point in sorted(points, key=lambda point: point["overhead"]) if point["kind"] == "front"]
    front = [(study.candidate(id), study.recipe(id)) for id in ids]
    keys = ("footprint_bytes", "accesses")
    rows = [[one.label, *(f"{one.metrics[key]:,}" for key in keys), recipe.summary(ALIGN)] for one, recipe in front]
    page.text("The front, smallest first:")
    page.table(("recipe", "footprint, B", "accesses", "what it is"), rows)
    page.claim("about 10,000 allocators can be explored", "10,000", f"{recipes:,}", recipes >= 10_000)
    page.claim("only a handful of them are optimal", "a handful", f"{len(front)} of {recipes:,}", len(front) <= 50)
    alike = [_techniques(recipe) for _, recipe in front]
    for number, what in enumerate(_COMMON):
        count = sum(found[number] for found in alike)
        page.claim(f"the optimal allocators share {what}", "all", f"{count} of {len(front)}", count == len(front))
    (standing,) = (one for one in study.zoo_standings() if one.candidate.zoo_name == CASE.proposed)
    needs = [percent(1 / ratio) for ratio in standing.ratios.values()]
    beaten = "yes" if standing.on_front else "no: another takes {} of its memory and {} of its accesses".format(*needs)
    page.claim("the proposed allocator is one of the optimal ones", "yes", beaten, standing.on_front)


_COMMON = ("two or three freelists", "first fit", "full splitting", "full coalescing")


def _techniques(recipe: Recipe) -> tuple[bool, bool, bool, bool]:
    """Whether a recipe has two or three freelists, first fit, full splitting and full coalescing."""
    lists = sum(len(pool.sizes or ()) for pool in recipe.pools if isinstance(pool, Quick))
    generals = [pool for pool in recipe.pools if isinstance(pool, General)]
    return (
        lists in (2, 3),
        any(pool.fit == "first" for pool in generals),
        any(pool.split == "always" for pool in generals),
        any(pool.coalesce == "immediate" and not pool.coalesce_from for pool in generals),
    )

"""The case studies of the 2006 paper: the arithmetic behind the claims of their pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from networks import five_networks, network

from heapwright.errors import HeapwrightError
from heapwright.explore.families import FITS, Techniques, technique_grid
from heapwright.papers import case_study, drr, easyport, held_out, techniques, url
from heapwright.papers.case_study import PROPOSED, SYSTEMS, Case, Run
from heapwright.papers.page import Page
from heapwright.papers.traffic import packet_tables
from heapwright.recipes.pools import Quick
from heapwright.replay.replay import replay
from heapwright.traces.trace import Trace
from heapwright.traces.validation import FREE, MALLOC
from heapwright.zoo import catalogue as zoo

CASES: dict[str, tuple[ModuleType, Case]] = {
    "drr": (drr, drr.CASE),
    "easyport": (easyport, easyport.CASE),
    "url": (url, url.CASE),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return five_networks(tmp_path / "packets")


def test_stand_ins_are_the_tables_with_most_sizes(folder: Path) -> None:
    tables = packet_tables(folder)
    assert list(tables) == ["air", "campus", "home", "office", "shop"]
    assert len(case_study.stand_ins(tables, 12_000, 2)) == 2
    assert "air" not in case_study.stand_ins(tables, 12_000, 5)
    with pytest.raises(HeapwrightError, match="no packet table has 10,000 IP packets among its first 50,000"):
        case_study.stand_ins({"air": tables["air"]}, 50_000, 2)


def test_a_folder_without_the_frames_of_easyport_is_refused() -> None:
    frames = network(1)
    frames.frame_len[:] = 100
    with pytest.raises(
        HeapwrightError, match="no packet table has frames of 66 bytes and of 1514 bytes among its first 4,200"
    ):
        easyport.stand_ins({"campus": frames})


# ---- claims ----------------------------------------------------------------------------------------------------------


class Published(Run):
    """A run with the numbers of the paper's own table."""

    def fragmentation(self, heap: str) -> float:
        return float(self.metrics[heap]["fragmentation"])

    def milliseconds(self, heap: str) -> float:
        return float(self.ns[heap])


def published_runs(case: Case) -> Iterator[Run]:
    trace = Trace.from_columns(op=[MALLOC, FREE], id=[1, 1], size=[8, 0])
    heaps = (*SYSTEMS, PROPOSED)
    for at, name in enumerate(case.columns, start=1):
        metrics = {heap: {"fragmentation": case.rows[heap][0][at] / 100} for heap in heaps}
        yield Published(name, trace, metrics, {heap: case.rows[heap][1][at] for heap in heaps})


@pytest.mark.parametrize("case", [case for _, case in CASES.values()], ids=list(CASES))
def test_reductions_are_computed_as_the_paper_computes_them(case: Case) -> None:
    """The paper's own table gives the paper's own claims, up to the rounding of its numbers."""
    page = Page("p", "t", "someone")
    case_study.check(page, case, list(published_runs(case)))
    found = {claim.claim: claim.our_value for claim in page.claims}
    most = float(found["it reduces fragmentation by up to"].split()[0])
    usual = float(found["it reduces fragmentation on average by"].split()[0])
    assert most == pytest.approx(case.less_fragmentation[0], abs=0.5)
    assert usual == pytest.approx(case.less_fragmentation[1], abs=1.0)
    most = float(found["it reduces execution time by up to"].split()[0])
    assert most == pytest.approx(case.less_time[0], abs=1.0)
    best = next(claim for claim in page.claims if "least fragmentation" in claim.claim)
    assert best.holds


def test_every_column_of_the_paper_averages_to_its_average() -> None:
    for _, case in CASES.values():
        for name, (wasted, times) in case.rows.items():
            assert wasted[0] == pytest.approx(np.mean(wasted[1:]), abs=1), (case.name, name)
            assert times[0] == pytest.approx(np.mean(times[1:]), abs=0.02), (case.name, name)


# ---- networks held out -----------------------------------------------------------------------------------------------


def some_trace(blocks: int) -> Trace:
    ids = np.arange(blocks)
    op = np.repeat(np.array([MALLOC, FREE], np.uint8), blocks)
    return Trace.from_columns(op=op, id=np.tile(ids, 2), size=np.concatenate([24 + 8 * (ids % 3), ids * 0]))


def test_the_largest_network_and_every_sixth_after_it_are_explored() -> None:
    short = {f"n{blocks}": some_trace(blocks) for blocks in (3, 90, 10, 50, 70, 5, 8)}
    long = {name: some_trace(100) for name in short}
    split = held_out.Split.of(short, long)
    assert dict(split.explored) == {"n90": short["n90"], "n3": short["n3"]}
    assert dict(split.held_out) == {name: long[name] for name in ("n10", "n50", "n70", "n5", "n8")}


def test_the_papers_design_is_retuned_to_the_most_frequent_sizes() -> None:
    recipe = held_out.retuned(zoo.load("drr-proposed"), [some_trace(100)])
    assert isinstance(recipe.pools[0], Quick) and recipe.pools[0].sizes == (24, 32)
    assert recipe.pools[1:] == zoo.load("drr-proposed").pools[1:]


def test_what_beats_the_proposed_allocator_is_told_with_its_ratios() -> None:
    page = Page("p", "t", "someone")
    traces = {f"n{blocks}": some_trace(blocks) for blocks in (40, 50)}
    heaps = {held_out.PUBLISHED: zoo.load("drr-proposed"), held_out.BALANCED: zoo.load("kingsley")}
    held_out._compare(page, traces, heaps, "by hand")
    (claim,) = page.claims
    found = [[replay(trace, recipe) for trace in traces.values()] for recipe in heaps.values()]
    ratios = [
        [mine[key] / theirs[key] for theirs, mine in zip(*found, strict=True)]
        for key in ("footprint_bytes", "accesses")
    ]
    memory, accesses = (float(np.exp(np.mean(np.log(some)))) for some in ratios)
    assert f"{memory:.0%}".replace("%", " %") in claim.our_value
    assert f"{accesses:.0%}".replace("%", " %") in claim.our_value
    assert claim.holds == (memory * accesses >= 1)


# ---- techniques ------------------------------------------------------------------------------------------------------


def test_the_grid_knows_the_levels_of_its_recipes() -> None:
    grid = technique_grid([some_trace(60)], 4)
    assert len(grid) == 10 * 10 * 10 * 4
    proposed = grid[Techniques(freelists=2, fit=FITS.index({"fit": "first"}), split=0, coalesce=0)]
    lists, general = proposed.pools
    assert lists.sizes == (24, 32)
    assert (general.fit, general.split, general.coalesce) == ("first", "always", "immediate")
    none = grid[Techniques(freelists=0, fit=0, split=9, coalesce=9)].pools
    assert len(none) == 1 and (none[0].split, none[0].coalesce) == ("never", "never")


@pytest.mark.parametrize(
    ("change", "expected"), [(0.0, "None"), (-0.009, "None"), (0.05, "+"), (-0.05, "-"), (0.4, "++"), (-0.2, "--")]
)
def test_signs(change: float, expected: str) -> None:
    assert techniques.sign(change) == expected


def grid_of(values: Callable[[Techniques], float]) -> techniques.Grid:
    """A grid of 3 x 10 x 2 x 2 levels whose every column is `values` of the levels."""
    levels = [Techniques(*at) for at in np.ndindex(3, len(FITS), 2, 2)]
    column = np.array([values(at) for at in levels])
    rows = {at: row for row, at in enumerate(levels)}
    return techniques.Grid(rows, column, column, column, column, np.ones(len(rows), np.bool_), len(rows), 1.0)


def test_a_change_is_the_geometric_mean_over_pairs_that_differ_in_one_technique() -> None:
    grid = grid_of(lambda at: 1.25**at.freelists * 2.0 ** (at.split == 0) * (1 + at.coalesce) * 3.0**at.fit)
    internal, external, performance = techniques._changes([grid, grid], "freelists", None)
    assert internal == external == pytest.approx(1.25**2 - 1)
    assert performance == pytest.approx(1.25**-2 - 1)
    assert techniques._changes([grid], "split", None)[0] == pytest.approx(1.0)
    assert techniques._changes([grid], "coalesce", techniques.PROPOSED)[0] == pytest.approx(-0.5)


def test_recipes_that_refused_requests_form_no_pair() -> None:
    grid = grid_of(lambda at: 1.0)
    grid.served[:] = False
    assert np.isnan(techniques._changes([grid], "split", None)).all()

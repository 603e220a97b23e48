"""The page about the four techniques: the arithmetic behind its signs, and what its probes show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from heapwright._explore.default_space import FITS, Techniques, technique_grid
from heapwright._recipes.pools import General, Quick
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC
from heapwright_papers import techniques
from heapwright_papers.answers import judged
from heapwright_papers.case_study import MIX, REAL
from heapwright_papers.documents import statements_of
from heapwright_papers.techniques import PROPOSED, THINNED, UNSPLIT, Grid, changes, together
from heapwright_papers.verdicts import HOLDS, Cause, Kind, Verdict


def some_trace(blocks: int) -> Trace:
    ids = np.arange(blocks)
    op = np.repeat(np.array([MALLOC, FREE], np.uint8), blocks)
    return Trace.from_columns(op=op, id=np.tile(ids, 2), size=np.concatenate([24 + 8 * (ids % 3), ids * 0]))


def test_the_grid_knows_the_levels_of_its_recipes() -> None:
    grid = technique_grid([some_trace(60)], 4)
    assert len(grid) == 10 * 10 * 10 * 4
    proposed = grid[Techniques(freelists=2, fit=FITS.index({"fit": "first"}), split=0, coalesce=0)]
    lists, general = proposed.pools
    assert isinstance(lists, Quick) and isinstance(general, General)
    assert lists.sizes == (24, 32)
    assert (general.fit, general.split, general.coalesce) == ("first", "always", "immediate")
    (none,) = grid[Techniques(freelists=0, fit=0, split=9, coalesce=9)].pools
    assert isinstance(none, General)
    assert (none.split, none.coalesce) == ("never", "never")


def test_a_thinned_grid_keeps_none_and_full_of_every_technique() -> None:
    grids = Grid.of([some_trace(60), some_trace(30)], thinned=True)
    assert len(grids) == 2 and all(grid.served.all() for grid in grids)
    for grid in grids:
        for technique, kept in THINNED.items():
            assert {getattr(levels, technique) for levels in grid.rows} == set(kept)


@pytest.mark.parametrize(
    ("change", "expected"), [(0.0, "None"), (-0.009, "None"), (0.05, "+"), (-0.05, "-"), (0.4, "++"), (-0.2, "--")]
)
def test_signs(change: float, expected: str) -> None:
    assert techniques.sign(change) == expected


def test_two_signs_of_ours_are_one_of_theirs_and_not_the_reverse() -> None:
    assert techniques.agrees("+", 0.4) and techniques.agrees("--", -0.2)
    assert not techniques.agrees("--", -0.05) and not techniques.agrees("None", 0.05)


def grid_of(values: Callable[[Techniques], float]) -> Grid:
    """A grid of 3 x 10 x 2 x 2 levels whose every column is `values` of the levels."""
    levels = [Techniques(*at) for at in np.ndindex(3, len(FITS), 2, 2)]
    column = np.array([values(at) for at in levels])
    rows = {at: row for row, at in enumerate(levels)}
    return Grid(rows, column, column, column, column, np.ones(len(rows), np.bool_))


def test_a_change_is_the_geometric_mean_over_pairs_that_differ_in_one_technique() -> None:
    grid = grid_of(lambda at: 1.25**at.freelists * 2.0 ** (at.split == 0) * (1 + at.coalesce) * 3.0**at.fit)
    result = changes([grid, grid], "freelists")
    assert result is not None
    assert result["internal"] == result["memory"] == pytest.approx(1.25**2 - 1)
    assert result["performance"] == pytest.approx(1.25**-2 - 1)
    for technique, beside, expected in (("split", {}, 1.0), ("coalesce", PROPOSED, -0.5), ("coalesce", UNSPLIT, -0.5)):
        (item,) = [changes([grid], technique, beside)]
        assert item is not None and item["internal"] == pytest.approx(expected)
    assert together([result, None, result], "external") == pytest.approx(1.25**2 - 1)


def test_recipes_that_refused_requests_form_no_pair() -> None:
    grid = grid_of(lambda at: 1.0)
    grid.served[:] = False
    assert changes([grid], "split") is None


def test_a_sign_that_only_some_draws_have_is_noise_and_on_real_networks_has_a_cause() -> None:
    def fits(best: float) -> Grid:
        return grid_of(lambda at: best if at.fit == len(FITS) - 1 else 1.0)

    here, verdict = external(REAL, fits(1.001))
    assert verdict == HOLDS and here.startswith("None (+0.1 %)")
    assert external(MIX, fits(0.9), fits(1.0))[1].kind is Kind.NOISE
    verdict = external(REAL, fits(0.9), fits(1.0))[1]
    assert verdict.kind is Kind.FAILS and verdict.cause is Cause.UNEXPLAINED


def external(on: str, *grids: Grid) -> tuple[str, Verdict]:
    """What becomes of the statement about best fit and external fragmentation."""
    (answer,) = statements_of("techniques")["techniques-table-2-best-fit-external"].answers
    judgements = list(judged(answer, techniques.names({on: {"a": grids}}, {})))
    ((here, verdict),) = [(here, verdict) for here, verdict, where in judgements if where == on]
    assert all(verdict.kind is Kind.NOT_TESTED for _, verdict, where in judgements if where != on)
    return here, verdict


PROBES = ("split-exact", "split-blocks", "coalesce-blocks", "coalesce-cost")


def test_probes_show_what_one_split_and_one_merge_do() -> None:
    names = techniques.names({REAL: {"a": [grid_of(lambda at: 1.0)]}}, {})
    statements = statements_of("techniques")
    results = [next(judged(statements[f"techniques-{probe}"].answers[0], names)) for probe in PROBES]
    assert all(verdict.kind is Kind.SET_UP for _, verdict, _ in results), "they could only fail by a fault of ours"
    assert results[0][0].startswith("0 B of a free block of 200")

"""Picks: which recipe is chosen, from what, and why one that looks good is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from made_studies import IDS, OBJECTIVES, RECIPES, metrics

from heapwright.decide import picks
from heapwright.decide.picks import BLIND, Condition, Needs, design, order, shortlist
from heapwright.decide.prior import doubt
from heapwright.decide.results import Results
from heapwright.decide.robustness import Robustness
from heapwright.files.errors import HeapwrightError
from heapwright.recipes.pools import Buddy, Fixed, General, Pool, Quick
from heapwright.recipes.recipe import Recipe
from heapwright.recipes.zoo import catalogue
from heapwright.replay.metrics import METRICS, as_float
from heapwright.replay.reach import reach
from heapwright.studies.tables import Role

Points = Sequence[tuple[float, float]]


def results(points: Sequence[Points], refused: Sequence[Sequence[int]] = (), ids: Sequence[str] = IDS) -> Results:
    """Footprint and accesses of recipes on each of some traces: one list of points a trace."""
    rows = [
        (id, f"trace{at}", metrics(*trace[number], failed=refused[at][number] if refused else 0))
        for number, id in enumerate(ids[: len(points[0])])
        for at, trace in enumerate(points)
    ]
    columns = {key: np.array([as_float(row[2][key]) for row in rows]) for key in METRICS}
    columns["recipe"], columns["trace"] = (np.array([row[at] for row in rows], object) for at in (0, 1))
    return Results.of(columns, [f"trace{at}" for at in range(len(points))], dict.fromkeys(ids, (None, True)))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Ratios of recipes here, of at least 1, and at the worst, which are no smaller."""
    ratio = st.sampled_from([1, 1.01, 1.1, 1.14, 1.2, 1.5, 1.9, 2.1, 4])
    both = draw(st.lists(st.tuples(ratio, ratio, ratio, ratio), min_size=1, max_size=9))
    return [one[:2] for one in both], [(a * c, b * d) for a, b, c, d in both]


def needs(here: Points, at_worst: Points | None = None) -> dict[str, Needs]:
    first, last = np.array(here, float), np.array(at_worst or here, float)
    return {key: Needs(first[:, at], last[:, at]) for at, key in enumerate(OBJECTIVES)}


# --- ranking ---------------------------------------------------------------------------------------------------------


def test_several_traces_are_ranked_by_the_worst_ratio_to_each_ones_best() -> None:
    small, large = [(10, 100), (11, 100), (50, 100)], [(1000, 900), (1500, 900), (900, 900)]
    both = results([small, large])
    assert both.points(["footprint_bytes"])[:, 0] == pytest.approx([1000 / 900, 1500 / 900, 5])
    assert [both.ids[row] for row in both.front_rows(OBJECTIVES)] == [IDS[0]]
    assert both.candidate(0).metrics["footprint_bytes"] == 1000, "shown as ever: the largest"


def test_on_one_trace_the_objectives_themselves_rank() -> None:
    assert results([[(10, 100), (20, 50)]]).points(OBJECTIVES).tolist() == [[10, 100], [20, 50]]


def test_who_refuses_sets_no_best() -> None:
    ratios = results([[(10, 1), (20, 1), (30, 1)]], [[1, 0, 0]]).ratios("footprint_bytes")
    assert ratios[:, 0].tolist() == [np.inf, 1, 1.5]


# --- conditions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("footprint_bytes <= 20", [True, True, False]),
        ("footprint_bytes<20", [True, False, False]),
        ("  accesses   >= 5e1", [True, True, False]),
        ("accesses == 50", [False, True, False]),
        ("accesses > 50", [True, False, False]),
    ],
)
def test_a_condition_is_read_and_met(text: str, met: list[bool]) -> None:
    condition = Condition.parse(text)
    assert condition.met(results([[(10, 100), (20, 50), (30, 49)]]).columns[condition.key]).tolist() == met


def test_nothing_meets_a_condition_on_what_was_not_measured() -> None:
    assert not Condition.parse("ns_per_event > 0").met(results([[(1, 1)]]).columns["ns_per_event"]).any()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("footprint_bytes", "where: 'footprint_bytes': no condition; write one as in 'footprint_bytes <= 131072'"),
        ("accesses <= many", "where: 'accesses <= many': no condition"),
        ("acesses <= 1", "did you mean accesses"),
        ("accesses => 1", "no condition"),
    ],
)
def test_what_is_no_condition_is_one_line(text: str, says: str) -> None:
    with pytest.raises(HeapwrightError) as error:
        Condition.parse(text)
    assert says in str(error.value) and error.value.parameter == "where"


# --- the choice ------------------------------------------------------------------------------------------------------


def test_smallest_is_the_least_memory_and_of_those_alike_the_fewest_accesses_at_the_worst() -> None:
    here = [(1.0, 9), (1.02, 5), (1.02, 5), (1.021, 1)]
    assert order("smallest", needs(here, [(1, 9), (1, 8), (1, 7), (1, 1)]))[0] == 2


def test_fastest_is_the_fewest_accesses_at_the_worst_and_of_those_alike_the_least_memory() -> None:
    here = [(5.0, 1), (4, 1.02), (1, 1.03)]
    assert order("fastest", needs(here))[0] == 1
    assert order("fastest", needs(here, [(5, 3), (4, 3), (1, 2.9)]))[0] == 2, (
        "a list that is short here grows elsewhere"
    )


def test_fastest_goes_by_the_time_at_the_worst_where_that_was_explored_for() -> None:
    timed = needs([(1, 1), (2, 1.5), (1, 1.6)])
    assert order("fastest", timed)[0] == 0
    timed["ns_per_event"] = Needs(np.array([1.5, 1.1, 1]), np.array([1.5, 1.1, 2]))
    assert order("fastest", timed)[0] == 1


def test_balanced_pays_15_percent_of_memory_for_half_of_the_accesses() -> None:
    assert order("balanced", needs([(1, 2.01), (1.14, 1)]))[0] == 1
    assert order("balanced", needs([(1, 1.9), (1.16, 1)]))[0] == 0
    assert order("balanced", needs([(1, 8), (1.15, 4), (1.5, 1)]))[0] == 1, (
        "two doublings cost as much as 1.32 x memory"
    )


def test_balanced_leaves_out_what_doubles_the_memory() -> None:
    assert order("balanced", needs([(1, 1000), (2.01, 1)]))[0] == 0
    assert order("balanced", needs([(1, 1000), (2.0, 1)]))[0] == 1


def test_balanced_stays_near_the_least_memory_where_twice_the_least_accesses_can_be_had_there() -> None:
    here = [(1.0, 4), (1.15, 2), (1.3, 1)]
    at_worst = [(1, 40), (1, 20), (1, 1)]
    assert order("balanced", needs(here, at_worst))[0] == 1
    assert order("balanced", needs([(1.0, 4), (1.15, 2.1), (1.3, 1)], at_worst))[0] == 2


def test_needs_count_at_their_worst() -> None:
    assert order("balanced", needs([(1, 1.2), (1.01, 1)], [(1, 1.2), (1, 3)]))[0] == 0
    assert order("balanced", needs([(1.1, 1), (1, 1.01)], [(1.1, 1), (1.3, 1)]))[0] == 0


@given(points=tables(), how=st.sampled_from(picks.PICKS))
def test_no_pick_is_beaten_in_what_it_was_explored_for(
    points: tuple[list[tuple[float, float]], list[tuple[float, float]]], how: picks.Pick
) -> None:
    here, at_worst = points
    left = list(range(len(here)))
    for pick in order(how, needs(here, at_worst)):
        left.remove(pick)
        for other in left:
            assert not (here[other] != here[pick] and all(a <= b for a, b in zip(here[other], here[pick], strict=True)))
    assert left == []


@given(points=tables(), how=st.sampled_from(picks.PICKS))
def test_more_memory_never_gives_a_pick_with_more_accesses(
    points: tuple[list[tuple[float, float]], list[tuple[float, float]]], how: picks.Pick
) -> None:
    here, at_worst = points
    in_order = order(how, needs(here, at_worst))
    least = math.inf
    for bound in sorted({memory for memory, _ in here}):
        pick = next(at for at in in_order if here[at][0] <= bound)
        assert here[pick][1] <= least
        least = here[pick][1]


# --- what is tried elsewhere -----------------------------------------------------------------------------------------


def test_where_all_refuse_somewhere_needs_here_decide() -> None:
    nowhere = np.full(3, np.inf)
    memory, accesses = np.array([1.3, 1.0, 1.1]), np.array([1.0, 3.0, 1.2])
    needs = {"footprint_bytes": Needs(memory, nowhere), "accesses": Needs(accesses, nowhere)}
    assert order("balanced", needs)[0] == 2


def test_the_shortlist_is_the_front_and_the_nearest_of_every_design_near_it() -> None:
    points = [(100, 100), (110, 110), (105, 100), (120, 90), (181, 100), (150, 150), (100, 101), (149, 100)]
    table = results([points])
    designs = {id: number % 4 for number, id in enumerate(IDS)}
    assert [IDS[row] for row in shortlist(table, OBJECTIVES, designs)] == [IDS[at] for at in (0, 3, 6, 1)]
    assert len(shortlist(table, OBJECTIVES, {id: id for id in IDS})) == 7, "all but the one that is 1.51 x away"


def test_what_is_taken_without_a_look_is_of_the_zoo() -> None:
    assert set(BLIND) <= set(catalogue.names())


def test_the_shortlist_is_bounded_but_holds_the_front(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picks, "SHORTLIST", 2)
    table = results([[(100, 100), (90, 110), (80, 120), (101, 101)]])
    assert shortlist(table, OBJECTIVES, {id: id for id in IDS}) == [2, 1, 0]


def test_a_design_leaves_sizes_and_thresholds_out() -> None:
    def of(up_to: int = 64, fit: str = "first", victim_up_to: int = 0, split: int | str = "always") -> object:
        general = General(bins="exact", fit=fit, victim_up_to=victim_up_to, split=split)  # type: ignore[arg-type]
        return design(Recipe.unchecked((Quick(up_to=up_to), general)))

    assert of() == of(up_to=128) == of(split=64)
    assert of(victim_up_to=64) == of(victim_up_to=512)
    assert len({of(), of(fit="best"), of(victim_up_to=64), design(Recipe.unchecked((General(bins="exact"),)))}) == 4


# --- what holds ------------------------------------------------------------------------------------------------------


def robustness(
    here: Points,
    there: Points,
    refused: Sequence[int] = (0,) * 8,
    role: Role = "copy",
    objectives: Sequence[str] = OBJECTIVES,
    texts: Mapping[str, str] | None = None,
) -> Robustness:
    toml = {id: one.to_toml() for id, one in zip(IDS, RECIPES, strict=True)} | dict(texts or {})
    return Robustness(results([here]), {role: results([there], [refused])}, toml, objectives)


def test_what_falls_off_or_refuses_elsewhere_does_not_hold() -> None:
    found = robustness([(100, 1), (100, 1), (200, 1)], [(100, 1), (121, 1), (239, 9)], (0, 0, 0))
    assert [found.why_not(id) for id in IDS[:3]] == [None, "1.21 x the least memory on trace0, 1.00 x here", None]
    refusing = robustness([(100, 1), (100, 1)], [(100, 1), (10, 1)], (0, 7))
    assert refusing.why_not(IDS[1]) == "refused 7 requests on copies, as on trace0"
    assert refusing.worst(IDS[0])["copy"].ratios["footprint_bytes"] == 1


@pytest.mark.parametrize(("role", "words"), [("copy", "copies"), ("held out", "traces held out")])
@pytest.mark.parametrize("refused", [1, 2, 5, 6])
def test_no_refusal_elsewhere_is_forgiven(role: Role, words: str, refused: int) -> None:
    refusing = robustness([(100, 1), (100, 1)], [(100, 1), (100, 1)], (0, refused), role)
    assert refusing.why_not(IDS[0]) is None
    assert refusing.why_not(IDS[1]) == f"refused {refused} requests on {words}, as on trace0"
    assert refusing.candidates("balanced", np.array([1]), np.ones(2, dtype=bool)) == [0]


def test_refusals_elsewhere_count_nothing_where_requests_may_be_refused() -> None:
    objectives = ["footprint_bytes", "admitted_fraction"]
    assert robustness([(100, 1)] * 2, [(100, 1)] * 2, (0, 5), objectives=objectives).why_not(IDS[1]) is None


def test_what_was_not_tried_or_nothing_holds() -> None:
    found = robustness([(100, 1), (100, 1), (50, 9)], [(100, 1), (90, 1)])
    assert found.why_not(IDS[2]) == "not tried on copies"
    every = np.ones(3, dtype=bool)
    assert found.candidates("balanced", np.array([2]), every) == [0, 1]
    assert robustness([(50, 1), (50, 1)], [(1, 1), (100, 1)], (1, 1)).candidates(
        "balanced", np.array([1]), every[:2]
    ) == [1]


def test_a_heap_that_cannot_grow_to_twice_its_memory_does_not_hold() -> None:
    narrow = Recipe.unchecked((General(header=2),), 4, 2)
    text = {IDS[0]: narrow.to_toml()}
    most = reach(narrow).request_bytes
    assert most is not None
    assert robustness([(most // 2, 1)], [(10, 1)], texts=text).why_not(IDS[0]) is None
    assert robustness([(10, 1)], [(most // 2, 1)], texts=text).why_not(IDS[0]) is None
    needed = most // 2 + 1
    told = f"reaches {most:,} bytes, less than 2 x the {needed:,} that it needed"
    assert robustness([(needed, 1)], [(10, 1)], texts=text).why_not(IDS[0]) == told
    assert robustness([(10, 1)], [(needed, 1)], texts=text).why_not(IDS[0]) == told


def test_needs_are_the_ratio_here_and_the_worst_where_it_counts() -> None:
    here, there = [(100, 10), (150, 10)], [(300, 40), (200, 10)]
    found = robustness(here, there)
    assert found.needs("fastest", "footprint_bytes", [0, 1]).here.tolist() == [1, 1.5]
    assert found.needs("fastest", "footprint_bytes", [0, 1]).at_worst.tolist() == [1.5, 1.5]
    assert found.needs("fastest", "accesses", [0, 1]).at_worst.tolist() == [4, 1]
    assert found.needs("balanced", "accesses", [0, 1]).at_worst.tolist() == [1, 1], "copies do not foretell this"
    held_out = robustness(here, there, role="held out")
    assert held_out.needs("balanced", "accesses", [0, 1]).at_worst.tolist() == [4, 1]


# --- the prior -------------------------------------------------------------------------------------------------------

HELD = General(bins="exact", fit="best")
WAIT = "freed blocks wait in its lists while the heap grows"
IDLE = Quick(up_to=516, flush="idle", idle_share=1 / 16)


@pytest.mark.parametrize(
    "pools",
    [
        (HELD,),
        (General(bins="lea", fit="best"),),
        (General(free_list="tree", fit="best"),),
        (Quick(up_to=64, limit_blocks=4), HELD),
        (Quick(sizes=(12, 64), flush="over-limit", limit_blocks=2), HELD),
        (IDLE, HELD),
        (Quick(up_to=64, flush="before-growing", flush_from=245), HELD),
    ],
)
def test_a_design_that_held_elsewhere_is_not_doubted(pools: tuple[Pool, ...]) -> None:
    assert doubt(Recipe.unchecked(pools)) is None


@each(
    ("pools", "why"),
    [
        ((Fixed(sizes=(64,)), HELD), "its pools take memory that no other pool gets back"),
        ((Buddy(),), "its pools take memory that no other pool gets back"),
        ((General(bins="exact", fit="best", coalesce="deferred"),), "it does not merge every block as it is freed"),
        ((General(bins="exact", fit="best", coalesce_from=64),), "it does not merge every block as it is freed"),
        ((General(bins="two-level"),), "it finds no best fit through exact bins or a tree"),
        ((General(bins="exact", fit="exact"),), "it finds no best fit through exact bins or a tree"),
        ((General(fit="best"),), "it finds no best fit through exact bins or a tree"),
        ((Quick(up_to=8), HELD), WAIT),
        ((Quick(sizes=(8, 1028), limit_blocks=5), HELD), WAIT),
        ((Quick(up_to=516, flush="before-growing"), HELD), WAIT),
        ((Quick(up_to=516, flush="idle", idle_share=1 / 8), HELD), WAIT),
    ],
)
def test_a_design_that_fell_off_elsewhere_is_doubted_in_words(pools: tuple[Pool, ...], why: str) -> None:
    recipe = Recipe.unchecked(pools)
    assert doubt(recipe) == why
    assert doubt(recipe, lists=False) == (None if "lists" in why else why)


@pytest.mark.parametrize("name", ["all-round", "victim-bins", "fast", "small", "small-lists", "lea-2.7.2"])
def test_heaps_taken_blind_are_not_doubted(name: str) -> None:
    assert doubt(catalogue.load(name)) is None


def test_a_doubted_recipe_is_no_pick_where_another_is_not() -> None:
    sure = {IDS[1]: Recipe.unchecked((HELD,)).to_toml()}
    points = [(100, 1), (130, 9)]
    assert robustness(points, points, texts=sure).candidates("balanced", np.array([0]), np.ones(2, dtype=bool)) == [1]
    assert robustness(points, points).candidates("balanced", np.array([0]), np.ones(2, dtype=bool)) == [0, 1]


@pytest.mark.parametrize(("role", "holds"), [("copy", True), ("held out", False)])
def test_a_design_that_is_not_doubted_falls_off_only_on_what_was_recorded(role: Role, holds: bool) -> None:
    sure = {IDS[1]: Recipe.unchecked((HELD,)).to_toml()}
    found = robustness([(100, 1), (100, 1)], [(100, 1), (150, 1)], role=role, texts=sure)
    assert (found.why_not(IDS[1]) is None) == holds


def test_fastest_may_have_lists_that_wait() -> None:
    waiting = {IDS[0]: Recipe.unchecked((Quick(up_to=516), HELD)).to_toml()}
    sure = {IDS[1]: Recipe.unchecked((HELD,)).to_toml()}
    found = robustness([(100, 1)] * 2, [(100, 1)] * 2, texts=waiting | sure)
    every = np.ones(2, dtype=bool)
    assert found.candidates("balanced", np.array([0]), every) == [1]
    assert found.candidates("fastest", np.array([0]), every) == [0, 1]


def test_the_shortlist_holds_the_fronts_of_trusted_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picks, "SHORTLIST", 2)
    table = results([[(100, 100), (90, 110), (300, 90), (400, 300), (290, 310), (401, 301)]])
    alike = dict.fromkeys(IDS, 0)
    assert shortlist(table, OBJECTIVES, alike) == [1, 0, 2]
    assert shortlist(table, OBJECTIVES, alike, [IDS[3:6], IDS[5:6]]) == [1, 0, 2, 4, 3, 5]


def test_the_shortlist_holds_what_would_be_picked_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picks, "SHORTLIST", 2)
    points = [(100, 100), (300, 90), (101, 101), (110, 102), (102, 190)]
    likely = robustness(points, points).likely("balanced", [IDS[4], IDS[2], IDS[3], "unknown"], 2)
    assert likely == [IDS[2], IDS[3]], "of the three the least price first"
    assert shortlist(results([points]), OBJECTIVES, dict.fromkeys(IDS, 0), (), likely) == [0, 1, 2, 3]


def test_nothing_is_likely_where_nothing_served_all() -> None:
    refused = Robustness(results([[(1, 1), (2, 1)]], [[1, 1]]), {}, {}, OBJECTIVES)
    assert refused.likely("balanced", IDS[:2], 5) == []


def test_smallest_is_the_least_taken_blind_unless_others_need_5_percent_less() -> None:
    blind = np.array([True, True, False])
    assert order("smallest", needs([(1.05, 9), (1.06, 5), (1.0, 10)]), blind)[0] == 0
    assert order("smallest", needs([(1.06, 9), (1.06, 5), (1.0, 10)]), blind)[0] == 2
    assert order("smallest", needs([(1.02, 9), (1.03, 5), (1.0, 8)]), blind)[0] == 2, "no pick is beaten"

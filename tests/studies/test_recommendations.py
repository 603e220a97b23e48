"""Recommendations: which recipe is chosen, from what, and why one that looks good is not fit to ship."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_studies import IDS, OBJECTIVES, RECIPES, in_the_long_run, metrics

from heapwright._recipes.pools import General, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._replay.long_run import UNBOUNDED
from heapwright._replay.metrics import DEFAULT_OBJECTIVES, METRICS, Value, as_float
from heapwright._replay.reach import reach
from heapwright._studies import recommendations
from heapwright._studies.recommendations import (
    EQUAL_WITHIN,
    UNTUNED,
    WELL_KNOWN,
    WORST_CALL,
    Condition,
    Needs,
    design,
    order,
    prices,
)
from heapwright._studies.results import Results
from heapwright._studies.robustness import Robustness
from heapwright._studies.tables import Role
from heapwright._support.errors import HeapwrightError

Points = Sequence[tuple[float, float]]


def results(
    points: Sequence[Points],
    failed: Sequence[Sequence[int]] = (),
    ids: Sequence[str] = IDS,
    more: Sequence[Mapping[str, Value]] = (),
    names: Mapping[int, str] | None = None,
) -> Results:
    """Footprint and accesses of recipes on each of some traces: one list of points a trace; ``more`` metrics a recipe,
    and the names of those that are reference allocators."""
    rows = [
        (
            id,
            f"trace{at}",
            metrics(trace[number][0], trace[number][1], **{"failed": failed[at][number] if failed else 0, **further}),
        )
        for number, id in enumerate(ids[: len(points[0])])
        for at, trace in enumerate(points)
        for further in [more[number] if more else {}]
    ]
    columns = {key: np.array([as_float(row[2][key]) for row in rows]) for key in METRICS}
    columns["recipe"], columns["trace"] = (np.array([row[at] for row in rows], object) for at in (0, 1))
    known = {id: ((names or {}).get(number), True) for number, id in enumerate(ids)}
    return Results.of(columns, [f"trace{at}" for at in range(len(points))], known)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Ratios of recipes here, of at least 1, and at the worst, which are no smaller."""
    ratio = st.sampled_from([1, 1.01, 1.1, 1.14, 1.2, 1.5, 1.9, 2.1, 4])
    both = draw(st.lists(st.tuples(ratio, ratio, ratio, ratio), min_size=1, max_size=9))
    return [item[:2] for item in both], [(a * c, b * d) for a, b, c, d in both]


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
    here = [(1.0, 9), (EQUAL_WITHIN, 5), (EQUAL_WITHIN, 5), (EQUAL_WITHIN + 0.001, 1)]
    assert order("smallest", needs(here, [(1, 9), (1, 8), (1, 7), (1, 1)]))[0] == 2


def test_fastest_is_the_fewest_accesses_at_the_worst_and_of_those_alike_the_least_memory() -> None:
    here = [(5.0, 1), (4, 1.02), (1, 1.03)]
    assert order("fastest", needs(here))[0] == 1
    assert order("fastest", needs(here, [(5, 3), (4, 3), (1, 2.9)]))[0] == 2, (
        "a list that is short here grows on the hold-out set"
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


def test_the_price_is_the_steps_of_the_dearer_of_memory_and_accesses() -> None:
    assert prices(needs([(1, 4), (1.15, 2), (1.15**2, 1)])) == pytest.approx([2, 1, 2])


def test_balanced_leaves_out_what_doubles_the_memory() -> None:
    assert order("balanced", needs([(1, 1000), (2.01, 1)]))[0] == 0
    assert order("balanced", needs([(1, 1000), (2.0, 1)]))[0] == 1
    assert prices(needs([(1, 1000), (2.01, 1)]))[1] == math.inf


def test_needs_count_at_their_worst() -> None:
    assert order("balanced", needs([(1, 1.2), (1.01, 1)], [(1, 1.2), (1.01, 3)]))[0] == 0
    assert order("balanced", needs([(1.1, 1), (1, 1.01)], [(1.1, 1), (1.3, 1.01)]))[0] == 0


def test_only_as_many_as_asked_for_are_ordered() -> None:
    points = needs([(1, 4), (1.15, 2), (1.3, 1), (4, 4)])
    assert order("balanced", points, most=2) == order("balanced", points)[:2]


@given(points=tables(), how=st.sampled_from(recommendations.PICKS))
def test_no_recommendation_is_beaten_in_what_it_was_explored_for(
    points: tuple[list[tuple[float, float]], list[tuple[float, float]]], how: recommendations.Pick
) -> None:
    here, at_worst = points
    remaining = list(range(len(here)))
    for pick in order(how, needs(here, at_worst)):
        remaining.remove(pick)
        for other in remaining:
            assert not (here[other] != here[pick] and all(a <= b for a, b in zip(here[other], here[pick], strict=True)))
    assert remaining == []


@given(points=tables(), how=st.sampled_from(recommendations.PICKS))
def test_more_memory_never_gives_a_recommendation_with_more_accesses(
    points: tuple[list[tuple[float, float]], list[tuple[float, float]]], how: recommendations.Pick
) -> None:
    here, at_worst = points
    in_order = order(how, needs(here, at_worst))
    least = math.inf
    for bound in sorted({memory for memory, _ in here}):
        pick = next(at for at in in_order if here[at][0] <= bound)
        assert here[pick][1] <= least
        least = here[pick][1]


def test_where_all_fail_requests_somewhere_needs_here_decide() -> None:
    nowhere = np.full(3, np.inf)
    memory, accesses = np.array([1.3, 1.0, 1.1]), np.array([1.0, 3.0, 1.2])
    needs = {"footprint_bytes": Needs(memory, nowhere), "accesses": Needs(accesses, nowhere)}
    assert order("balanced", needs)[0] == 2


def test_what_is_named_without_a_recording_is_a_reference_allocator() -> None:
    assert {*UNTUNED, *WELL_KNOWN} <= set(catalogue.names())


def test_a_design_leaves_sizes_and_thresholds_out() -> None:
    def of(up_to: int = 64, fit: str = "first", victim_up_to: int = 0, split: int | str = "always") -> object:
        general = General(bins="exact", fit=fit, victim_up_to=victim_up_to, split=split)  # type: ignore[arg-type]
        return design(Recipe.unchecked((Quick(up_to=up_to), general)))

    assert of() == of(up_to=128) == of(split=64)
    assert of(victim_up_to=64) == of(victim_up_to=512)
    assert len({of(), of(fit="best"), of(victim_up_to=64), design(Recipe.unchecked((General(bins="exact"),)))}) == 4


# --- fitness to ship -------------------------------------------------------------------------------------------------

TEXTS = {id: one.to_toml() for id, one in zip(IDS, RECIPES, strict=True)}


def robustness(
    here: Points,
    there: Points,
    failed: Sequence[int] = (0,) * 8,
    role: Role = "copy",
    objectives: Sequence[str] = OBJECTIVES,
    texts: Mapping[str, str] | None = None,
) -> Robustness:
    return Robustness(results([here]), {role: results([there], [failed])}, TEXTS | dict(texts or {}), objectives)


def foreseen(
    *more: Mapping[str, Value], current: str | None = None, names: Mapping[int, str] | None = None
) -> Robustness:
    """Of recipes that are the same on the recording: what each does on a future, and in the stress test."""
    table = results([[(1000, 100)] * len(more)], more=more, names=names)
    return Robustness(table, {}, TEXTS, DEFAULT_OBJECTIVES, current)


def recommended(found: Robustness, count: int) -> list[int]:
    """Rows to recommend from, of `count` recipes of which all that may be on a front are."""
    eligible = found._combined.eligible(DEFAULT_OBJECTIVES)
    assert len(eligible) == count
    return found.candidates(found._combined.front_rows(DEFAULT_OBJECTIVES), eligible)


@pytest.mark.parametrize(("role", "words"), [("copy", "copies"), ("held out", "traces held out")])
@pytest.mark.parametrize("failed", [1, 2, 5, 6])
def test_no_failed_request_elsewhere_is_forgiven(role: Role, words: str, failed: int) -> None:
    failing = robustness([(100, 1), (100, 1)], [(100, 1), (100, 1)], (0, failed), role)
    assert failing.why_not(IDS[0]) is None
    assert failing.why_not(IDS[1]) == f"failed {failed} requests on {words}, as on trace0"
    assert failing.candidates(np.array([1]), np.ones(2, dtype=bool)) == [0]
    assert failing.worst(IDS[0])[role].ratios["footprint_bytes"] == 1


def test_failed_requests_elsewhere_count_nothing_where_requests_may_fail() -> None:
    objectives = ["footprint_bytes", "admitted_fraction"]
    assert robustness([(100, 1)] * 2, [(100, 1)] * 2, (0, 5), objectives=objectives).why_not(IDS[1]) is None


def test_more_memory_on_a_copy_makes_no_recipe_unfit() -> None:
    result = robustness([(100, 1), (100, 1)], [(100, 1), (190, 9)])
    assert [result.why_not(id) for id in IDS[:2]] == [None, None]


def test_what_was_not_tried_is_not_recommended_and_where_nothing_is_fit_the_front_is() -> None:
    result = robustness([(100, 1), (100, 1), (50, 9)], [(100, 1), (90, 1)])
    assert result.why_not(IDS[2]) == "was not tried on copies"
    every = np.ones(3, dtype=bool)
    assert result.candidates(np.array([2]), every) == [0, 1]
    assert robustness([(50, 1), (50, 1)], [(1, 1), (100, 1)], (1, 1)).candidates(np.array([1]), every[:2]) == [1]


def test_a_heap_that_cannot_use_what_is_reserved_for_it_is_not_fit() -> None:
    narrow = Recipe.unchecked((General(header=2),), 4, 2)
    text = {IDS[0]: narrow.to_toml()}
    most = reach(narrow).request_bytes
    assert most is not None
    served = int(most / 1.2)
    assert robustness([(served, 1)], [(10, 1)], texts=text).why_not(IDS[0]) is None
    assert robustness([(10, 1)], [(served, 1)], texts=text).why_not(IDS[0]) is None
    needed = served + 10
    why_not = f"can use {most:,} bytes at most, less than 1.2 times the {needed:,} that it needs"
    assert robustness([(needed, 1)], [(10, 1)], texts=text).why_not(IDS[0]) == why_not
    assert robustness([(10, 1)], [(needed, 1)], texts=text).why_not(IDS[0]) == why_not


def test_needs_are_the_ratio_here_and_the_worst_with_the_hold_out_set() -> None:
    here, there = [(100, 10), (150, 10)], [(300, 40), (200, 10)]
    copies, held_out = robustness(here, there), robustness(here, there, role="held out")
    for result in (copies, held_out):
        assert result.needs("footprint_bytes", [0, 1]).here.tolist() == [1, 1.5]
    assert held_out.needs("footprint_bytes", [0, 1]).at_worst.tolist() == [1.5, 1.5]
    assert held_out.needs("accesses", [0, 1]).at_worst.tolist() == [4, 1]
    assert copies.needs("footprint_bytes", [0, 1]).at_worst.tolist() == [1, 1.5], "copies rank nothing"
    assert copies.needs("accesses", [0, 1]).at_worst.tolist() == [1, 1]


def test_the_need_in_the_long_run_is_compared_with_footprints_of_the_hold_out_set() -> None:
    more = [in_the_long_run(2000, 10), in_the_long_run(3000, 5)]
    here, apart = results([[(1000, 100)] * 2], more=more), results([[(1600, 40), (800, 10)]])
    result = Robustness(here, {"held out": apart}, TEXTS, DEFAULT_OBJECTIVES)
    assert result.needs("long_run_bytes", [0, 1]).here.tolist() == [1, 1.5]
    assert result.needs("long_run_bytes", [0, 1]).at_worst.tolist() == [2, 1.5]
    assert result.needs("long_run_accesses", [0, 1]).at_worst.tolist() == [4, 1]


@pytest.mark.parametrize(
    ("unfit", "why_not"),
    [
        (
            in_the_long_run(None, long_run_growth=1.37),
            "grows without bound: 37 % over the last nine tenths of 500,000 calls",
        ),
        (
            in_the_long_run(None, long_run_growth=UNBOUNDED - 0.03),
            "fails requests within 500,000 calls of traffic like the recording's",
        ),
        (
            in_the_long_run(1200, lasts=0, growth_ratio=1.61, endured_calls=50_000),
            "grows by 61 % at constant live bytes in the stress test",
        ),
        ({}, "was not replayed on a future"),
    ],
)
def test_without_a_bounded_need_or_after_a_failed_stress_test_a_recipe_is_on_no_front(
    unfit: Mapping[str, Value], why_not: str
) -> None:
    """However little it needs: of the same recording the other needs five times as much in the long run."""
    result = foreseen(in_the_long_run(6000, lasts=1, growth_ratio=1.1, endured_calls=50_000), unfit)
    assert result.why_not(IDS[0]) is None
    assert result.why_not(IDS[1]) == why_not
    for objectives in (DEFAULT_OBJECTIVES, OBJECTIVES):
        assert result._combined.front_rows(objectives).tolist() == [0]
    assert recommended(result, 2) == [0]


def test_before_any_future_the_recordings_rank() -> None:
    table = results([[(1000, 100), (900, 200)]])
    assert not table.foreseen
    assert table.front_rows(OBJECTIVES).tolist() == [1, 0]
    assert Robustness(table, {}, TEXTS, OBJECTIVES).why_not(IDS[0]) is None


def test_what_makes_at_most_400_accesses_in_any_call_comes_first() -> None:
    assert WORST_CALL == 400
    result = foreseen(
        in_the_long_run(1000, malloc=401, free=9),
        in_the_long_run(1500, 5, malloc=9, free=400),
        in_the_long_run(1600, 9, malloc=400, free=9),
        in_the_long_run(1200, 9, malloc=9, free=9000),
    )
    assert [result.worst_call(id) for id in IDS[:4]] == [401, 400, 400, 9000]
    assert sorted(recommended(result, 4)) == [1, 2]
    assert result.in_order("smallest", np.array([0]), np.ones(4, bool))[0] == 1


def test_where_every_heap_has_a_longer_call_all_that_are_fit_are_recommended_from() -> None:
    result = foreseen(in_the_long_run(1000, malloc=401), in_the_long_run(1500, 5, malloc=9000))
    assert sorted(recommended(result, 2)) == [0, 1]


def test_nothing_is_recommended_that_needs_more_memory_and_a_longer_call_than_the_current_heap() -> None:
    heaps = [
        in_the_long_run(1000, malloc=50, free=50),
        in_the_long_run(1500, 5, malloc=60, free=9),
        in_the_long_run(1500, 4, malloc=50, free=50),
        in_the_long_run(900, 9, malloc=390, free=9),
    ]
    current = foreseen(*heaps, current="tlsf", names={0: "tlsf"})
    assert sorted(recommended(current, 4)) == [0, 2, 3]
    assert sorted(recommended(foreseen(*heaps, current=None, names={0: "tlsf"}), 4)) == [0, 1, 2, 3]
    assert sorted(recommended(foreseen(*heaps, current="half-fit", names={0: "tlsf"}), 4)) == [0, 1, 2, 3]


def test_recommendations_go_by_the_objectives_and_by_memory_and_a_cost() -> None:
    future, past = foreseen(in_the_long_run(1000)), robustness([(1, 1)], [(1, 1)])
    assert future.keys_of("balanced") == future.keys_of("smallest") == ("long_run_bytes", "long_run_accesses")
    assert past.keys_of("fastest") == ("footprint_bytes", "accesses")
    timed = Robustness(results([[(1, 1)]]), {}, TEXTS, ("smallest_arena_bytes", "ns_per_event"))
    assert timed.keys_of("fastest") == ("smallest_arena_bytes", "ns_per_event")


def test_what_is_known_of_a_recipe_is_plain_values() -> None:
    result = robustness([(100, 1), (100, 1)], [(100, 1), (120, 3)], (0, 7), role="held out")
    assert result.describe(IDS[1]) == {
        "copies": None,
        "held_out": {"refused": 7, "worst_ratio": {"footprint_bytes": None, "accesses": None}},
        "lasts": None,
        "why_not": "failed 7 requests on traces held out, as on trace0",
    }

"""Spaces too large to try all of: what their axes stand for, and how they are searched."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import keyword_explorations
import numpy as np
import pytest
from click.testing import CliRunner
from sample_studies import IDS, OBJECTIVES, TRACES, identity, metrics, result, write_five

import heapwright as hw
from heapwright._cli import heapwright as command_line
from heapwright._explore.local_search import Neighbourhood, RecipeCosts, fronts, own_volumes
from heapwright._explore.portfolio import first_of
from heapwright._explore.space import Space, WideSpace
from heapwright._recipes.recipe import Recipe
from heapwright._report.growth import growth
from heapwright._studies import pareto
from heapwright._studies.analysis import Analysis
from heapwright._studies.records import Grown
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

explore = partial(keyword_explorations.explore, stress_test=False)

WIDE = """
[[pool]]
kind = "quick"
up_to = [16, 32, 64, 128]
limit_blocks = [1, 4, 16, 64]
flush = ["never", "over-limit", "before-growing"]

[[pool]]
kind = "general"
bins = ["none", "exact", "lea", "two-level"]
fit = ["best", "first", "next"]
order = ["lifo", "fifo", "address", "size"]
split = ["always", 16, 32, 64, 128, "never"]
coalesce = ["immediate", "deferred", "forward", "never"]
victim_up_to = [0, 32, 64, 128, 256]
close_bins = [0, 4, 8]
header = [4, 8]
"""


GENERAL = '[[pool]]\nkind = "general"\nbins = "exact"\nfit = "best"\n'


@pytest.fixture(scope="module")
def trace() -> Trace:
    random = np.random.default_rng(3)
    op, id, size = list[int](), list[int](), list[int]()
    live: list[int] = []
    for number in range(600):
        if live and random.random() < 0.45:
            op.append(3)
            id.append(live.pop(int(random.integers(len(live)))))
            size.append(0)
        else:
            op.append(0)
            id.append(number)
            size.append(int(random.choice([12, 20, 36, 100, 250, 700])))
            live.append(number)
    return Trace.from_columns(op=op, id=id, size=size, name="made")


@pytest.fixture
def space(tmp_path: Path) -> WideSpace:
    (tmp_path / "wide.toml").write_text(WIDE)
    made = Space.load(tmp_path / "wide.toml")
    assert isinstance(made, WideSpace)
    return made


@pytest.fixture
def joined(trace: Trace, tmp_path: Path) -> WideSpace:
    (tmp_path / "joined.toml").write_text(f"default = true\n{WIDE}")
    made = Space.load(tmp_path / "joined.toml", [trace])
    assert isinstance(made, WideSpace)
    return made


def rows(path: Path) -> list[tuple[Any, ...]]:
    with Analysis.open(path) as study:
        return study.sql("SELECT * FROM replays ORDER BY recipe, trace")[1]


# ---- what axes stand for -------------------------------------------------------------------------------------------


def test_a_space_of_more_than_a_hundred_thousand_combinations_is_wide(space: WideSpace) -> None:
    assert space.axes.count == 4 * 4 * 3 * 4 * 3 * 4 * 6 * 4 * 5 * 3 * 2
    assert len(space) == space.axes.count + len(space.zoo)
    assert space.notes == (f"{space.axes.count:,} combinations are too many to try all: they are searched",)


def genome(space: WideSpace, **values: Any) -> Any:
    """The first value of every axis but for some."""
    return np.array(
        [
            [value for _, _, value in axis].index(values[key]) if (key := axis[0][1]) in values else 0
            for axis in space.axes.values
        ]
    )


def test_a_genome_is_the_recipe_of_its_values(space: WideSpace) -> None:
    made = space.recipe(genome(space, bins="exact", victim_up_to=64, up_to=32, limit_blocks=4))
    text = '[[pool]]\nkind = "quick"\nup_to = 32\nlimit_blocks = 4\n[[pool]]\nkind = "general"\nbins = "exact"\n'
    assert made == Recipe.parse(f'align = 8\n{text}fit = "best"\nvictim_up_to = 64').canonical()


def test_of_keys_that_contradict_the_later_stay_at_their_defaults(space: WideSpace) -> None:
    with_victim = space.recipe(genome(space, bins="none", victim_up_to=64))
    assert with_victim == space.recipe(genome(space, bins="none"))
    assert space.recipe(genome(space, bins="two-level", fit="next")) == space.recipe(genome(space, bins="two-level"))


def test_every_genome_stands_for_a_recipe(space: WideSpace) -> None:
    drawn = np.random.default_rng(1).integers(0, space.sizes, (60, len(space.sizes)))
    made = [space.recipe(item) for item in drawn]
    assert all(item is not None and item.align == 8 for item in made)
    assert len({item.hash for item in made if item}) > 50


def test_the_genome_nearest_to_a_recipe(space: WideSpace) -> None:
    text = '[[pool]]\nkind = "general"\nbins = "lea"\nfit = "first"\nsplit = 70\n'
    near = space.recipe(space.nearest(Recipe.parse(f"align = 8\n{text}")))
    assert near == space.recipe(genome(space, bins="lea", fit="first", split=64))


def test_another_axis_is_another_space(space: WideSpace, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(WIDE.replace("header = [4, 8]", "header = [4, 12]"))
    assert Space.load(tmp_path / "other.toml").digest != space.digest


# ---- searching -----------------------------------------------------------------------------------------------------


def test_a_search_that_was_stopped_ends_as_one_that_was_not(trace: Trace, space: WideSpace, tmp_path: Path) -> None:
    at_once, stopped = tmp_path / "a.duckdb", tmp_path / "b.duckdb"
    first = explore([trace], space, study_path=at_once, limit=160, copies=0)
    assert first.evaluations >= 160
    assert not first.complete
    explore([trace], space, study_path=stopped, limit=130, copies=0)
    explore([trace], space, study_path=stopped, limit=160, copies=0)
    assert rows(at_once) == rows(stopped)
    with Analysis.open(stopped) as study:
        growth = study.growth()
        assert growth[-1].evaluations == 160
        assert [item.hypervolume for item in growth] == sorted(item.hypervolume for item in growth)
        assert [item.seconds for item in growth] == sorted(item.seconds for item in growth)


def test_costs_are_ratios_to_the_best_of_the_first_and_of_devices_the_worst_counts(tmp_path: Path) -> None:
    measured = {
        "busy": [metrics(99, 999), metrics(199, 399), metrics(999, 299), metrics(9, 9, failed=1)],
        "idle": [metrics(399, 1999), metrics(199, 999), metrics(399, 9), metrics(9, 9)],
    }
    with Analysis.create_or_resume(tmp_path / "two.duckdb", identity(TRACES)) as study:
        study.add([result(number, item, where) for where, each in measured.items() for number, item in enumerate(each)])
        item = RecipeCosts(("footprint_bytes", "accesses"), [{"busy": 3}])
        first = item.of(study, [IDS[3], IDS[0], IDS[1]])
        assert np.allclose(np.exp(first), [[np.inf, np.inf], [1.0, 2.5], [2.0, 1.0]])
        assert item.reference is not None and np.allclose(np.exp(item.reference), [2, 2.5])
        assert np.allclose(np.exp(item.of(study, [IDS[2], IDS[3]])), [[10, 0.75], [np.inf, np.inf]])
        two = RecipeCosts(("footprint_bytes", "accesses"), [{"busy": 3}, {"idle": 3}])
        assert np.allclose(np.exp(two.of(study, IDS[:2])), [[2, 2.5], [2.0, 1.0]])
        assert np.allclose(np.exp(two.of(study, IDS[2:4])), [[10, 0.75], [np.inf, np.inf]])
        new, part = {"busy": metrics(199, 999), "idle": metrics(199, 999)}, {"idle": metrics(9, 9)}
        output = two.of(study, [IDS[1], "new", IDS[0]], {"new": new, IDS[0]: part})
        assert np.allclose(np.exp(output), [[2.0, 1.0], [2.0, 2.5], [2.0, 2.5]]), (
            "what is known of each trace is not requested"
        )


def test_a_search_comes_nearer_than_random_draws(trace: Trace, space: WideSpace, tmp_path: Path) -> None:
    """Both along the axes alone."""
    path = tmp_path / "s.duckdb"
    explore([trace], space, study_path=path, limit=300, copies=0)
    random, drawn = np.random.default_rng(2), dict[str, Recipe]()
    while len(drawn) < 300:
        if item := space.recipe(random.integers(0, space.sizes)):
            drawn[item.hash] = item
    measured = [hw.replay(trace, item).metrics for item in drawn.values()]
    points = np.log([[float(item[key] or 0) + 1 for key in OBJECTIVES] for item in measured if not item["failed"]])
    with Analysis.open(path) as study:
        assert study.ranked == 300 + len(space.zoo)
        outcome = np.log(study.combined.values(OBJECTIVES)[study.combined.eligible(OBJECTIVES)] + 1)
        zoo = np.array([study.resolve(id) in space.zoo for id in study.combined.ids])
        reference = np.log(study.combined.values(OBJECTIVES)[zoo].max(axis=0) + 1)
        assert study.growth()[-1].hypervolume == pytest.approx(pareto.hypervolume(outcome, reference))
    assert pareto.hypervolume(outcome, reference) > 1.001 * pareto.hypervolume(points, reference)


def test_a_search_of_axes_alone_tries_nothing_else(trace: Trace, space: WideSpace, tmp_path: Path) -> None:
    explore([trace], space, study_path=tmp_path / "s.duckdb", limit=100, copies=0)
    with Analysis.open(tmp_path / "s.duckdb") as study:
        tried = [item for item, name, ranked in study.recipes() if ranked and name is None]
    assert len(tried) == 100
    assert {near.hash for item in tried if (near := space.recipe(space.nearest(item)))} == {item.hash for item in tried}


def test_where_the_default_space_joins_the_search_tries_what_other_traces_taught_first(
    trace: Trace, joined: WideSpace, tmp_path: Path
) -> None:
    first = [item.hash for item in first_of([trace], 8) if item.hash not in joined.zoo]
    path = tmp_path / "s.duckdb"
    explore([trace], joined, study_path=path, limit=len(first) + 64, copies=0)
    with Analysis.open(path) as study:
        tried = {item.hash: item for item, name, ranked in study.recipes() if ranked and name is None}
    assert set(first) <= set(tried)
    steps = [item for id, item in tried.items() if id not in first]
    assert len(steps) == 64
    nearest = {near.hash for step in steps if (near := joined.recipe(joined.nearest(step)))}
    assert nearest != {step.hash for step in steps}, "no step leaves the axes"


def test_what_a_search_begins_with_has_the_alignment_of_the_space(
    trace: Trace, joined: WideSpace, tmp_path: Path
) -> None:
    warm = Recipe.parse(f"align = 4\n{GENERAL}victim_up_to = 64")
    explore([trace], joined, study_path=tmp_path / "s.duckdb", limit=5, copies=0, earlier=[warm])
    with Analysis.open(tmp_path / "s.duckdb") as study:
        tried = [item for item, name, ranked in study.recipes() if ranked]
    near = joined.recipe(joined.nearest(warm))
    assert {item.align for item in tried} == {8}
    assert near is not None
    assert near.hash in {item.hash for item in tried}


def test_the_default_space_makes_another_space_of_the_same_axes(space: WideSpace, joined: WideSpace) -> None:
    assert joined.digest != space.digest
    assert joined.axes.values == space.axes.values


@pytest.mark.parametrize(("default", "digest"), [("false", "4563e5b99a96"), ("true", "cb2069f7ba7b")])
def test_what_a_study_knows_its_space_by_stays_as_it_is(
    default: str, digest: str, trace: Trace, tmp_path: Path
) -> None:
    """A search goes on only in the space that it was begun in."""
    (tmp_path / "wide.toml").write_text(f"include_zoo = false\ndefault = {default}\n{WIDE}")
    assert Space.load(tmp_path / "wide.toml", [trace]).digest[:12] == digest


def test_every_step_leads_to_a_recipe_that_reads_back(trace: Trace, joined: WideSpace) -> None:
    beginnings = [*(item.canonical() for item in joined.zoo.values()), *first_of([trace], 8)]
    steps, made = Neighbourhood(joined, beginnings), 0
    for recipe in beginnings[::9]:
        for what, make in steps.steps(recipe)[::7]:
            if (item := make()) is not None:
                assert Recipe.parse(item.to_toml()).hash == item.hash, what
                assert (item.name, item.source) == ("", "")
                made += 1
    assert made > 200


def test_steps_take_the_values_of_axes_as_recipes_read_them(joined: WideSpace) -> None:
    steps = Neighbourhood(joined, []).steps(
        Recipe.parse('[[pool]]\nkind = "quick"\nup_to = 32\nlimit_blocks = 4\n' + GENERAL).canonical()
    )
    made = [item for what, make in steps if what == ("quick", "flush") and (item := make())]
    assert [item.pools[0].model_dump()["flush"] for item in made] == ["over-limit", "before-growing"], (
        "never is no name now"
    )


def test_steps_take_the_values_of_a_heap_s_own_axes(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "links.toml").write_text(f"default = true\nlink_bytes = [2, 4]\n{WIDE}")
    links = Space.load(tmp_path / "links.toml", [trace])
    assert isinstance(links, WideSpace)
    steps = Neighbourhood(links, []).steps(Recipe.parse(f"link_bytes = 4\n{GENERAL}").canonical())
    made = [item for what, make in steps if what == ("heap", "link_bytes") and (item := make())]
    assert [item.link_bytes for item in made] == [2]


def test_the_nearest_recipe_has_as_many_lists(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "lists.toml").write_text(WIDE.replace("up_to = [16, 32, 64, 128]", "most_frequent = [0, 1, 2, 4]"))
    lists = Space.load(tmp_path / "lists.toml", [trace])
    assert isinstance(lists, WideSpace)
    (axis,) = [at for at, values in enumerate(lists.axes.values) if values[0][1] == "most_frequent"]
    for sizes, count in ([], 0), ([16], 1), ([16, 24], 2), ([16, 24, 32, 40, 48], 4):
        quick = f'[[pool]]\nkind = "quick"\nsizes = {sizes}\n' if sizes else ""
        genome = lists.nearest(Recipe.parse(quick + GENERAL))
        assert lists.axes.values[axis][genome[axis]][2] == count


def test_a_search_begins_near_the_best_of_the_zoo(trace: Trace, space: WideSpace, tmp_path: Path) -> None:
    explore([trace], space, study_path=tmp_path / "s.duckdb", limit=1, copies=0)
    with Analysis.open(tmp_path / "s.duckdb") as study:
        zoo = {id: study.candidate(id).metrics for id in space.zoo}
        (first,) = [
            item for item in study.combined.ids if item not in zoo and study.combined.ranked[study.combined.row(item)]
        ]
    product = {id: float(output["footprint_bytes"] or 0) * float(output["accesses"] or 0) for id, output in zoo.items()}
    served = [id for id, output in zoo.items() if not output["failed"]]
    best = space.recipe(space.nearest(space.zoo[min(served, key=lambda id: product[id])]))
    assert best is not None and first == best.hash


def test_a_space_that_is_used_up_ends_the_search(trace: Trace, tmp_path: Path) -> None:
    axes = [f"up_to = {list(range(8, 808, 8))}", "limit_blocks = [1]", f"idle_share = {[0.5] * 40}"]
    axes += [f"release_most = {[2] * 30}"]
    quick = "\n".join(["include_zoo = false", "[[pool]]", 'kind = "quick"', *axes])
    (tmp_path / "few.toml").write_text(f"{quick}\n{GENERAL}")
    few = Space.load(tmp_path / "few.toml")
    assert isinstance(few, WideSpace)
    assert explore([trace], few, study_path=tmp_path / "s.duckdb", limit=200, copies=0).recipes == 100


def test_a_search_can_begin_near_the_front_of_an_earlier_study(trace: Trace, space: WideSpace, tmp_path: Path) -> None:
    explore([trace], space, study_path=tmp_path / "a.duckdb", limit=300, copies=0)
    with Analysis.open(tmp_path / "a.duckdb") as study:
        front = [study.recipe(item.id) for item in study.front()]
    assert fronts([tmp_path / "a.duckdb"] * 2) == [*front, *front]
    warm = tmp_path / "b.duckdb"
    explore([trace], space, study_path=warm, limit=100, copies=0, earlier=front, seed=7)
    made = {item.hash for item in front if item.canonical() == space.recipe(space.nearest(item))}
    with Analysis.open(warm) as study:
        assert made
        assert made <= set(study.combined.ids)


def test_seeds_take_other_steps(trace: Trace, space: WideSpace, tmp_path: Path) -> None:
    for seed in (0, 1):
        explore([trace], space, study_path=tmp_path / f"{seed}.duckdb", limit=300, copies=0, seed=seed)
    assert rows(tmp_path / "0.duckdb") != rows(tmp_path / "1.duckdb")


def test_the_size_of_a_space_says_how_it_is_explored(trace: Trace, space: WideSpace, tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match=r"recipes are too many to try all; valid: search$"):
        explore([trace], space, study_path=tmp_path / "a.duckdb", strategy="exhaustive")
    with pytest.raises(HeapwrightError, match=r"recipes are few enough to try all; valid: exhaustive, random"):
        explore([trace], Space([]), study_path=tmp_path / "a.duckdb", strategy="search")


def test_the_command_says_that_it_searches(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "wide.toml").write_text(WIDE)
    trace.write(tmp_path / "made.parquet")
    words = ["explore", str(tmp_path / "made.parquet"), "--space", str(tmp_path / "wide.toml"), "--limit", "30"]
    done = CliRunner().invoke(command_line, [*words, "--copies", "0", "-o", str(tmp_path / "s.duckdb")])
    assert done.exit_code == 0, done.stderr
    assert "combinations are too many to try all: they are searched" in done.stderr
    assert "partial: " in done.stderr


# ---- hypervolume ---------------------------------------------------------------------------------------------------


def test_hypervolumes_by_hand() -> None:
    assert pareto.hypervolume(np.array([[1.0, 1.0]]), np.array([3.0, 4.0])) == 6
    assert pareto.hypervolume(np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0]]), np.array([3.0, 3.0])) == 3
    assert pareto.hypervolume(np.array([[5.0, 1.0]]), np.array([3.0, 3.0])) == 0
    assert pareto.hypervolume(np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 1.0]]), np.array([3.0, 3.0, 2.0])) == 5


def test_hypervolumes_are_those_of_counted_cells() -> None:
    random = np.random.default_rng(5)
    for dimensions in (1, 2, 3, 4):
        points = random.integers(0, 5, (12, dimensions)).astype(float)
        cells = np.stack(np.meshgrid(*[np.arange(5)] * dimensions), axis=-1).reshape(-1, dimensions)
        below = np.asarray((points[np.newaxis] <= cells[:, np.newaxis]).all(axis=2))
        covered = below.any(axis=1).sum()
        assert pareto.hypervolume(points, np.full(dimensions, 5.0)) == covered


def test_what_members_of_a_front_add_to_its_hypervolume() -> None:
    own = own_volumes(np.array([[1.0, 3.0], [2.0, 1.0], [3.0, 0.5]]), np.array([4.0, 4.0]))
    assert own.tolist() == [1.0 * 1.0, 1.0 * 2.0, 1.0 * 0.5]
    assert own_volumes(np.array([[1.0, 9.0]]), np.array([4.0, 4.0])).tolist() == [3.0 * 1e-9], "beyond the reference"


# ---- the report ----------------------------------------------------------------------------------------------------


def test_the_report_draws_how_a_search_grew(tmp_path: Path) -> None:
    path = write_five(tmp_path / "five.duckdb")
    with Analysis.open(path, write=True) as study:
        assert growth(study) == []
        for evaluations, volume in {100: 1.0, 200: 1.99, 300: 2.0}.items():
            study.add_growth(Grown("latin-hypercube", 7, evaluations, evaluations / 10, volume))
        (figure,) = growth(study)
    assert figure.title == "Search, seed 7: 300 recipes"
    assert figure.note.startswith("99 % of what the front dominates at the end was reached after 200.")
    assert "search.svg" in figure.files()


def test_the_page_of_a_searched_study_holds_the_plot(trace: Trace, space: WideSpace, tmp_path: Path) -> None:
    trace.write(tmp_path / "made.parquet")
    path = tmp_path / "s.duckdb"
    explore([Trace.read(tmp_path / "made.parquet")], space, study_path=path, limit=150, copies=0)
    hw.report(path, tmp_path / "s.html")
    assert 'id="search"' in (tmp_path / "s.html").read_text()

"""Monotone minimum: every larger arena serves, and the search reports the evidence."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from recipes_random import random_recipes
from sample_traces import trace_of

import heapwright as hw
from heapwright._cli import heapwright as command_line
from heapwright._heaps.heaps import RecipeHeap, fit_each
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._replay.arena_sizes import depends_on_arena, fit, high_water_mark, server
from heapwright._replay.engine import run
from heapwright._replay.monotone_minimum import LEAST_TRIES, SafeArena, enough_arena, safe_arena, search
from heapwright._replay.reserve import reserved
from heapwright._studies.analysis import Analysis
from heapwright._studies.decision import decide
from heapwright._support.errors import HeapwrightError
from heapwright._traces.copies import AT_LOAD, Load, copies
from heapwright._traces.load import load_of
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def broker() -> Trace:
    whole = Trace.read(EXAMPLES / "mosquitto_broker.parquet")
    return Trace.from_columns(op=whole.op[:4000], id=whole.id[:4000], size=whole.size[:4000], name="broker")


def refusing(trace: Trace, recipe: Recipe, start: int, count: int) -> list[int]:
    """The sizes, of `count` from `start` to twice that, of arenas that refuse a request of the trace."""
    serves = server(trace, recipe, policy_struct(recipe))
    draw = random.Random(99)
    sizes = {start + draw.randrange(start) // recipe.align * recipe.align for _ in range(count)}
    return sorted(size for size in {start, *sizes} if not serves(size))


def churn(sizes: list[int], share: float) -> Trace:
    """1,200 calls that draw their sizes from a list; `share` of them free an object drawn from the live ones."""
    draw = random.Random(5)
    op, id, size = list[int](), list[int](), list[int]()
    live: list[int] = []
    for _ in range(1200):
        if live and draw.random() < share:
            op.append(3)
            id.append(live.pop(draw.randrange(len(live))))
            size.append(0)
        else:
            op.append(0)
            id.append(len(op))
            size.append(draw.choice(sizes))
            live.append(len(op))
    return Trace.from_columns(op=op, id=id, size=size, name="churn")


def test_a_lucky_arena_is_not_safe() -> None:
    """TLSF's fresh memory is a free block among others: what goes where depends on how large it is."""
    trace, tlsf = churn([24, 40, 56, 120, 200, 333, 700, 2000], 0.49), catalogue.load("tlsf")
    smallest, result = fit(trace, tlsf), safe_arena(trace, tlsf)
    assert result == SafeArena(28_476, 1000, proved=False)
    assert smallest == 25_324
    assert refusing(trace, tlsf, smallest, 100) != []
    assert refusing(trace, tlsf, result.bytes, 1000) == []


@pytest.mark.parametrize("name", ["victim-bins", "lea-2.7.2", "drr-proposed", "kingsley", "binary-buddy"])
def test_fresh_memory_taken_last_proves_it(broker: Trace, name: str) -> None:
    recipe = catalogue.load(name)
    result = safe_arena(broker, recipe)
    assert result is not None
    assert result.proved
    assert refusing(broker, recipe, result.bytes, 40) == []
    serves = server(broker, recipe, policy_struct(recipe))
    assert not serves(result.bytes - recipe.align), "the next smaller one does not serve"


def test_random_heaps_do_the_same_in_every_arena_above_their_high_water_mark() -> None:
    whole = Trace.read(EXAMPLES / "lighttpd_server.parquet")
    trace = Trace.from_columns(op=whole.op[:1500], id=whole.id[:1500], size=whole.size[:1500])
    tried = 0
    for recipe in random_recipes(130, seed=3):
        struct = policy_struct(recipe)
        result, _ = run(trace, recipe, struct, None)
        if result.failed or depends_on_arena(recipe):
            continue
        safe = safe_arena(trace, recipe)
        assert safe is not None
        assert safe.bytes <= high_water_mark(struct, result) + recipe.align
        assert refusing(trace, recipe, safe.bytes, 40) == [], recipe
        tried += 1
    assert tried > 30


def test_a_lucky_arena_below_the_mark_is_not_taken_for_safe() -> None:
    """Quick lists that are flushed before growing may save a heap near its end, in one arena and not in the next."""
    trace = churn([24, 40, 56, 120, 200, 333, 700], 0.48)
    recipe = Recipe.parse(
        """
        [[pool]]
        kind = "quick"
        sizes = [24, 40, 56, 120]
        flush = "before-growing"
        [[pool]]
        kind = "general"
        bins = "exact"
        fit = "best"
        coalesce = "deferred"
        """
    )
    safe = safe_arena(trace, recipe)
    smallest = fit(trace, recipe)
    assert safe is not None and smallest is not None
    assert smallest <= safe.bytes
    assert refusing(trace, recipe, safe.bytes, 300) == []


def test_what_serves_just_below_the_mark_is_found() -> None:
    """Each arena next below the safe one down from the mark is tried, until one refuses or 256 have served."""
    trace = churn([24, 40, 56, 120, 200, 333, 700], 0.48)
    below = []
    for recipe in [*catalogue.recipes(), *random_recipes(20, seed=3)]:
        struct = policy_struct(recipe)
        result, _ = run(trace, recipe, struct, None)
        if result.failed or depends_on_arena(recipe):
            continue
        safe = safe_arena(trace, recipe)
        assert safe is not None
        mark = -(-high_water_mark(struct, result) // recipe.align) * recipe.align
        units = (mark - safe.bytes) // recipe.align
        assert 0 <= units <= 256
        assert units == 256 or not server(trace, recipe, struct)(safe.bytes - recipe.align), recipe
        below.append(units)
    assert sum(units > 0 for units in below) >= 5
    assert 256 in below


def test_what_no_arena_serves_has_none(broker: Trace) -> None:
    assert safe_arena(broker, catalogue.load("fixed-pool")) is None


def test_the_step_is_a_multiple(broker: Trace) -> None:
    result = safe_arena(broker, catalogue.load("victim-bins"), step=256)
    assert result is not None
    assert result.bytes % 256 == 0
    plain = safe_arena(broker, catalogue.load("victim-bins"))
    assert plain is not None
    assert result.bytes - 256 < plain.bytes <= result.bytes


def test_search_goes_above_the_last_failure_it_meets() -> None:
    failing = {1_040, 1_200, *range(1_504, 1_600, 8)}
    seen = []

    def serves(size: int) -> bool:
        seen.append(size)
        return size not in failing

    assert search(serves, 1_000, 8, 1 << 20, tries=400) == SafeArena(1_600, 400, proved=False)
    assert max(seen) <= 2 * 1_600


def not_in(failing: range, size: int) -> bool:
    return size not in failing


@pytest.mark.parametrize("tries", [LEAST_TRIES, 400])
def test_a_failing_stretch_of_a_few_in_so_many_tries_is_met_wherever_it_lies(tries: int) -> None:
    """Of the tries a quarter, 64 at most, are the next arenas; each of the others lies in an equal part up to twice."""
    smallest, part = 100_000, 100_000 // (tries - min(64, tries // 4))
    for at in range(smallest, 2 * smallest - 2 * part, 7 * part):
        failing = range(at, at + 2 * part)
        result = search(partial(not_in, failing), smallest, 8, 1 << 30, tries)
        assert at < result.bytes <= at + 2 * part + 8


def test_search_stays_within_reach() -> None:
    seen: list[int] = []

    def serves(size: int) -> bool:
        seen.append(size)
        return True

    assert search(serves, 1_000, 8, 1_400, tries=LEAST_TRIES).bytes == 1_000
    assert max(seen) < 1_400


# ---- the arena to reserve ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tlsf", "victim-bins", "lwip-mem-large", "kingsley", "contiki-mmem"])
def test_what_is_enough_for_a_copy_serves_it_and_so_do_larger_ones(broker: Trace, name: str) -> None:
    recipe = catalogue.load(name)
    for copy in copies(broker, 2):
        needed = enough_arena(copy, recipe)
        assert needed is not None
        assert refusing(copy, recipe, needed, 30) == []


def test_the_reserve_serves_the_trace_its_copies_and_the_held_out_traces(broker: Trace) -> None:
    heaps = {name: RecipeHeap(catalogue.load(name)) for name in ("tlsf", "victim-bins")}
    made, other = copies(broker, 4), copies(broker, 1, kinds=[Load(8)])
    for name, result in fit_each(broker, heaps, copies=made, held_out=other).items():
        assert result.smallest is not None and result.safe is not None and result.reserve is not None
        assert result.smallest <= result.safe.bytes <= result.reserve
        serves = [
            server(item, heaps[name].recipe, policy_struct(heaps[name].recipe)) for item in (broker, *made, *other)
        ]
        assert all(serve(result.reserve) for serve in serves)
        assert result.refused == ()


def test_a_copy_beyond_the_reach_is_named(broker: Trace) -> None:
    near = Recipe.parse("align = 4\nlink_bytes = 2\n[[pool]]\nkind = 'general'\nheader = 4\n")
    assert near.reach == 262_140
    (result,) = fit_each(broker, {"near": RecipeHeap(near)}, copies=copies(broker, 4)).values()
    assert result.safe is not None
    assert result.reserve is None
    assert result.refused == ("broker~load-1", "broker~load-2")
    (half,) = fit_each(broker, {"near": RecipeHeap(near)}, copies=copies(broker, 4), share=0.5).values()
    assert half.reserve is not None and half.refused == result.refused


def test_the_reserve_takes_the_share_of_the_copies_and_all_held_out_traces() -> None:
    assert reserved([1000], [], 1.0) == 1216, "a fifth more than 1,000, in whole units"
    assert reserved([1000], [3000, 2000, None, 1500], 0.75) == 3008, "a copy is served, and no more"
    assert reserved([1000], [3000, 2000, None, 1500], 0.5) == 2000
    assert reserved([1000], [3000, 2000, None, 1500], 1.0) is None
    assert reserved([1000, 4000], [3000, 2000], 0.5) == 4800
    assert reserved([5000, 4000], [3000, 2000], 1.0) == 6016
    assert reserved([1000, None], [], 1.0) is None
    assert reserved([0], [100 * part for part in range(1, 11)], 0.7) == 704
    assert reserved([100], [1000, 2000, 3000, 4000], 0.7) == 3008, "three of four copies are the least share above 0.7"
    assert reserved([100], [1000, 2000, 3000], 0.01) == 1008, "a share above 0 is one copy at least"


def test_the_margin_ends_where_the_heap_reaches_no_further() -> None:
    assert [reserved([1000], [], 1.0, reach) for reach in (999, 1000, 1055, 2000)] == [None, 1000, 1055, 1216]


def test_what_depends_on_the_load_grows_and_what_is_permanent_does_not(broker: Trace) -> None:
    load = load_of(broker)
    assert (load.fixed_bytes, load.peak_bytes) == (load.peak_bytes - load.varying_bytes, broker.peak_live_bytes)
    assert load.factor(1) == 1 and load.factor(3) == (load.fixed_bytes + 3 * load.varying_bytes) / load.peak_bytes
    heap = {"tlsf": RecipeHeap(catalogue.load("tlsf"))}
    made = copies(broker, 2, kinds=AT_LOAD)
    (once,) = fit_each(broker, heap, copies=made).values()
    (grown,) = fit_each(broker, heap, copies=made, scaled=lambda trace: load_of(trace).factor(2.5)).values()
    assert once.reserve is not None and grown.reserve is not None
    assert grown.reserve / once.reserve == pytest.approx(load.factor(2.5), rel=0.02)
    assert (grown.smallest, grown.safe) == (once.smallest, once.safe), "these are of the recording"


def test_what_is_live_all_along_leaves_out_start_and_shutdown() -> None:
    clients = [call for number in range(1, 21) for call in ((MALLOC, number, 100), (FREE, number, 0))]
    assert load_of(trace_of((MALLOC, 0, 500), *clients, (FREE, 0, 0))) == (500, 100)
    assert load_of(trace_of(*clients)) == (0, 100)


def test_fit_and_a_study_tell_one_reserve(broker: Trace, tmp_path: Path) -> None:
    space, study, file = (tmp_path / name for name in ("space.toml", "s.duckdb", "broker.parquet"))
    broker.write(file)
    space.write_text('[[pool]]\nkind = "general"\nbins = ["exact", "two-level"]\nfit = "best"\n')
    pick = hw.explore(file, study, space=space, align=4, jobs=1).pick("balanced")
    with Analysis.open(study) as opened:
        output = decide(opened, "balanced").reserve_bytes
    assert output == hw.fit(file, f"{study}:{pick.id}").reserve_bytes


def test_growth_is_a_factor_of_what_depends_on_the_load(broker: Trace, tmp_path: Path) -> None:
    file = tmp_path / "broker.parquet"
    broker.write(file)

    def told(*options: str) -> tuple[int, str]:
        done = CliRunner().invoke(command_line, ["fit", str(file), "--heap", "victim-bins", *options])
        return done.exit_code, " ".join(done.output.split())

    load = load_of(broker)
    parts = f"{load.fixed_bytes:,} live bytes are permanent, {load.varying_bytes:,} depend on the load"
    assert f"{parts}." in told()[1]
    assert f"{parts}; the recommended size is for 2.5 times that load." in told("--growth", "2.5")[1]
    (fit,) = json.loads(told("--json", "--growth", "2.5")[1])
    assert fit["reserve_bytes"] == hw.fit(broker, "victim-bins", growth=2.5).reserve_bytes


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--clients", "20:50"), "give --growth WANTED/RECORDED, as 2.5 for 20 clients recorded and 50 wanted"),
        (("--live", "9999", "--growth", "3"), "give one of them"),
        (("--growth", "0"), "--growth"),
    ],
)
def test_a_growth_that_means_nothing_is_refused(options: tuple[str, ...], says: str) -> None:
    file = str(EXAMPLES / "mosquitto_broker.parquet")
    done = CliRunner().invoke(command_line, ["fit", file, "--heap", "tlsf", *options])
    assert done.exit_code == 2 and says in " ".join(done.output.split())


def test_a_live_peak_that_is_known_scales_what_depends_on_the_load(broker: Trace) -> None:
    """The reserve is for that live peak: three halves of the need if it is three halves of the recording's."""
    load = load_of(broker)
    live = load.peak_bytes * 3 // 2
    assert load.factor(load.growth_for(live)) == pytest.approx(live / load.peak_bytes)
    once, more = hw.fit(broker, "small"), hw.fit(broker, "small", live=live)
    assert once.reserve_bytes and more.reserve_bytes
    assert more.reserve_bytes / once.reserve_bytes == pytest.approx(1.5, rel=0.001)
    with pytest.raises(HeapwrightError, match="are permanent; give more"):
        hw.fit(broker, "small", live=load.fixed_bytes)
    with pytest.raises(HeapwrightError, match="says the same as growth"):
        hw.fit(broker, "small", live=live, growth=2)

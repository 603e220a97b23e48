"""One run in an ample arena shows from which size on every arena serves the same: none of these is replayed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from heapwright._native import lib
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._replay import arena_sizes
from heapwright._replay.arena_sizes import depends_on_arena, fit_steps, footprint_where, proved_from, server
from heapwright._replay.engine import run
from heapwright._replay.monotone_minimum import NEIGHBOURS, TRIES, safe_arena
from heapwright._replay.replay import replay
from heapwright._traces.trace import Trace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PLACED = ("covered", "shared", "failed", "peak_requested", "peak_capacity", "peak_headers", "mean_requested")
"""Counts of the engine that depend on where blocks lie."""

WATCHED = (
    "tlsf",
    "half-fit",
    "freertos-heap2",
    "freertos-heap4",
    "lwip-mem-large",
    "rt-thread-small-mem",
    "esp8266-umm",
)


@pytest.fixture(scope="module")
def broker() -> Trace:
    whole = Trace.read(EXAMPLES / "mosquitto_broker.parquet")
    return Trace.from_columns(op=whole.op[:6000], id=whole.id[:6000], size=whole.size[:6000], name="broker")


def random_program(seed: int, calls: int = 2500) -> Trace:
    """Objects of many sizes, freed at random, of which few are large."""
    draw = random.Random(seed)
    rows, live = list[tuple[int, int, int]](), list[int]()
    for number in range(calls):
        if len(live) > draw.randrange(20, 120):
            rows.append((3, live.pop(draw.randrange(len(live))), 0))
        else:
            live.append(number)
            rows.append((0, number, draw.choice([8, 24, 40, 100, draw.randrange(1, 700), draw.randrange(1, 9000)])))
    op, id, size = zip(*rows, strict=True)
    return Trace.from_columns(op=op, id=id, size=size, name=f"random{seed}")


def placed(trace: Trace, recipe: Recipe, arena: int) -> list[float]:
    result, _ = run(trace, recipe, policy_struct(recipe), arena)
    return [float(getattr(result, key)) for key in PLACED]


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_blocks_lie_the_same_in_every_arena_of_a_proved_size(broker: Trace, seed: int | None) -> None:
    trace = broker if seed is None else random_program(seed)
    proved = dict[str, int]()
    for name in catalogue.names():
        recipe = catalogue.load(name)
        struct = policy_struct(recipe)
        result, ample = run(trace, recipe, struct, None)
        size = proved_from(result, ample)
        if size is None:
            continue
        assert depends_on_arena(recipe), name
        proved[name] = size
        draw, expected = random.Random(7), placed(trace, recipe, ample)
        larger = [size + draw.randrange(4 * size) for _ in range(12)]
        for arena in (size, size + 1, size + recipe.align, *larger):
            assert arena > ample or placed(trace, recipe, arena) == expected, (name, arena)
    assert set(WATCHED) - {"esp8266-umm"} <= proved.keys()


@pytest.mark.parametrize("name", WATCHED)
def test_no_arena_of_a_proved_size_changes_a_footprint(broker: Trace, name: str) -> None:
    recipe = catalogue.load(name)
    struct = policy_struct(recipe)
    result, ample = run(broker, recipe, struct, None)
    largest = int(broker.size.max())
    searched = footprint_where(server(broker, recipe, struct), recipe, struct, result, ample, largest)
    assert replay(broker, recipe)["footprint_bytes"] == searched


def replays_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the arenas that are replayed from now on to learn whether they serve."""
    sizes, serves = list[int](), lib.hw_serves

    class Counted:
        def __getattr__(self, key: str) -> object:
            return getattr(lib, key)

        @staticmethod
        def hw_serves(struct: object, calls: object, memory: object, size: int, wiped: object) -> int:
            sizes.append(size)
            return int(serves(struct, calls, memory, size, wiped))

    monkeypatch.setattr(arena_sizes, "lib", Counted())
    return sizes


def test_fit_replays_no_size_twice_and_none_that_is_proved(broker: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = catalogue.load("tlsf")
    proved = proved_from(*run(broker, recipe, policy_struct(recipe), None))
    assert proved is not None
    sizes = replays_of(monkeypatch)
    smallest, safe = arena_sizes.fit(broker, recipe), safe_arena(broker, recipe)
    assert smallest is not None and safe is not None and safe.bytes >= smallest
    assert len(sizes) == len(set(sizes)) and max(sizes) < proved
    assert safe.tried == TRIES and sum(size > safe.bytes for size in sizes) < TRIES / 2


def test_first_fit_in_order_of_address_needs_no_random_tests(broker: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = replays_of(monkeypatch)
    safe = safe_arena(broker, catalogue.load("freertos-heap4"))
    assert safe is not None and safe.proved and safe.tried == 0
    assert sum(size >= safe.bytes for size in sizes) <= NEIGHBOURS


def test_the_search_on_a_long_trace_is_a_bisection() -> None:
    calls = arena_sizes.BISECTED_CALLS
    long = Trace.from_columns(op=[0, *[2] * calls], id=[1] * (calls + 1), size=[8] * (calls + 1))
    assert fit_steps(long) == 0

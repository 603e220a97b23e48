"""Are the arenas that `heapwright fit` gives enough? bench/robustness.md shows what this prints.

The monotone minimum: 1,000 larger arenas that the search did not try, up to twice as large. The reserve: what the
second recording of each pair needs, in bench/pairs and in ../shared/data/pairs, which had no part in choosing the
margin. More load: how straight the need is between once and four times the load.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import click

import heapwright as hw
from heapwright import Recipe, Trace

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

from recipes_random import random_recipe  # noqa: E402
from robustness import heap  # noqa: E402

ARENAS, RANDOM_RECIPES = 1000, 50
FOLDERS = {"chosen on": ROOT / "bench" / "pairs", "judged on": ROOT.parent / "shared" / "data" / "pairs"}

DRAWS = ((0.02, 600), (0.05, 2000), (0.5, 2000))
"""Seconds that a buffer is held, and the largest, in bytes."""

QUICK = '[[pool]]\nkind = "quick"\nup_to = 256\n'
LISTS = {
    "quick, exact bins": QUICK + '[[pool]]\nkind = "general"\nbins = "exact"\nfit = "best"\n',
    "quick flushed, exact bins": QUICK
    + 'flush = "before-growing"\n[[pool]]\nkind = "general"\nbins = "exact"\nfit = "best"\n',
    "quick flushed from a share": QUICK
    + 'flush = "before-growing"\n[[pool]]\nkind = "general"\nbins = "exact"\nfit = "best"\n',
    "deferred": '[[pool]]\nkind = "general"\nbins = "exact"\nfit = "best"\ncoalesce = "deferred"\n',
    "quick, deferred": QUICK + '[[pool]]\nkind = "general"\nbins = "exact"\nfit = "best"\ncoalesce = "deferred"\n',
}


def traces() -> list[Trace]:
    broker = hw.read_trace(ROOT / "examples" / "mosquitto_broker.parquet")
    return [heap("wee_find"), heap("rec_lighttpd"), heap("wee_gcc-hello"), broker]


def fitted(trace: Trace) -> Iterator[tuple[str, Recipe, hw.Fit]]:
    """TLSF, the quick lists, and random recipes until enough of them complete the trace."""
    for name, recipe in {
        "tlsf": hw.zoo("tlsf"),
        **{name: Recipe.parse(f"align = 4\n{text}") for name, text in LISTS.items()},
    }.items():
        result = hw.fit(trace, recipe, copies=0)
        assert result.safe_arena_bytes is not None
        yield name, recipe, result
    random_, served = random.Random(1), 0
    while served < RANDOM_RECIPES:
        recipe = random_recipe(random_)
        result = hw.fit(trace, recipe, copies=0)
        if result.safe_arena_bytes is not None:
            served += 1
            yield f"random {served}", recipe, result


def refusing(trace: Trace, recipe: Recipe, result: hw.Fit) -> int:
    """How many of `ARENAS` from the safe one to twice that refuse a request."""
    safe = result.safe_arena_bytes or 0
    most = min(2 * safe, result.reach_bytes or 2 * safe)
    random_ = random.Random(f"{trace.name} {safe}")
    shares = [0.0, *((part + random_.random()) / (ARENAS - 1) for part in range(ARENAS - 1))]
    arenas = [safe + int(share * (most - safe)) // recipe.align * recipe.align for share in shares]
    return sum(hw.replay(trace, recipe, arena=arena).metrics["failed"] != 0 for arena in arenas)


def try_safe() -> None:
    click.echo("| trace | heaps | proved | arenas tried | heaps that refuse in one | refusals |")
    click.echo("| --- | ---: | ---: | ---: | ---: | ---: |")
    for trace in traces():
        results = [
            (name, bool(item.safe_proved), refusing(trace, recipe, item)) for name, recipe, item in fitted(trace)
        ]
        failing = {name: count for name, _, count in results if count}
        proved, tried = sum(proved for _, proved, _ in results), ARENAS * len(results)
        info = ", ".join(f"{name} ({count})" for name, count in failing.items()) or "none"
        click.echo(f"| {trace.name} | {len(results)} | {proved} | {tried:,} | {info} | {sum(failing.values())} |")


def try_reserve() -> None:
    """Of pairs: the reserve of the first recording and what the second needs, and what a growth named predicts."""
    click.echo("| recordings | heap | pairs | served | reserve, mean | at most | grown within 5 % | 10 % | worst |")
    click.echo("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for where, folder in FOLDERS.items():
        pairs = [
            (first, first.with_name(first.name.replace("_a.", "_b."))) for first in sorted(folder.glob("*_a.parquet"))
        ]
        for name in ("all-round", "victim-bins", "lea-2.7.2", "tlsf"):
            rows = [_reserve_of(hw.read_trace(first), hw.read_trace(other), name) for first, other in pairs]
            served = [over for over, _ in rows if over >= 1]
            grown = [predicted for _, predicted in rows]
            worst = max(grown, key=lambda item: abs(item - 1))
            near, nearest = (sum(abs(item - 1) <= share for item in grown) for share in (0.1, 0.05))
            click.echo(
                f"| {where} | {name} | {len(rows)} | {len(served)} | {sum(served) / len(served):.2f} x | "
                f"{max(served):.2f} x | {nearest} | {near} | {worst:.2f} x |"
            )
    _try_draws()


def _try_draws() -> None:
    """The same for draws of one load: Poisson arrivals, each of six seeds judged on the others."""
    for name in ("all-round", "victim-bins", "lea-2.7.2", "tlsf"):
        recipe, over = hw.zoo(name).at_alignment(16), []
        for hold, most in DRAWS:
            draws = [hw.workload("poisson", requests=15_000, hold=hold, max_size=most, seed=seed) for seed in range(6)]
            results = [hw.fit(draw, recipe) for draw in draws]
            over += [
                (item.reserve_bytes or 0) / (other.safe_arena_bytes or 1)
                for item in results
                for other in results
                if item is not other
            ]
        served = [share for share in over if share >= 1]
        mean = sum(served) / len(served)
        click.echo(f"| draws | {name} | {len(over)} | {len(served)} | {mean:.2f} x | {max(served):.2f} x | - | - | - |")


def try_load() -> None:
    """At twice and three times the load: what a straight line from once to four times says, over what is needed."""
    click.echo("| recordings | heap | within 10 % at twice | worst | within 10 % at three times | worst |")
    click.echo("| --- | --- | ---: | ---: | ---: | ---: |")
    firsts = [trace for folder in FOLDERS.values() for trace in map(hw.read_trace, sorted(folder.glob("*_a.parquet")))]
    for name in ("all-round", "tlsf", "newlib-nano"):
        recipe = hw.zoo(name).at_alignment(8)
        info = [_straight(trace, recipe) for trace in firsts]
        cells = []
        for result in zip(*info, strict=True):
            worst = max(result, key=lambda item: abs(item - 1))
            cells += [f"{sum(abs(item - 1) <= 0.1 for item in result)} of {len(result)}", f"{worst:.2f} x"]
        click.echo(f"| all first ones | {name} | {' | '.join(cells)} |")


def _straight(trace: Trace, recipe: Recipe) -> tuple[float, float]:
    """What the line says at twice and at three times the load, over the footprint; the most of two copies each."""
    needs = [hw.replay(trace, recipe).metrics["footprint_bytes"] or 0]
    for times in (2, 3, 4):
        loaded = hw.copies(trace, 2, kinds=[hw.copy_kinds.Load(times=times)], seed=1)
        needs.append(max(hw.replay(copy, recipe).metrics["footprint_bytes"] or 0 for copy in loaded))
    once, *between, most = needs
    twice, thrice = ((once + step * (most - once) / 3) / need for step, need in zip((1, 2), between, strict=True))
    return twice, thrice


def _reserve_of(first: Trace, other: Trace, name: str) -> tuple[float, float]:
    """The reserve over what the other recording needs, were it as large as the first; and the first recording's need,
    grown as what the user says that varies, over the other's. Both grow as the live bytes.
    """
    recipe = hw.zoo(name).at_alignment(16)
    of_first, of_other = hw.fit(first, recipe), hw.fit(other, recipe, copies=0)
    more = other.peak_live_bytes / first.peak_live_bytes
    needs = of_other.safe_arena_bytes or 0
    return (of_first.reserve_bytes or 0) * more / needs, (of_first.safe_arena_bytes or 0) * more / needs


@click.command()
@click.argument("what", type=click.Choice(["safe", "reserve", "load"]))
def main(what: str) -> None:
    """Try the monotone minima, the reserves, or what more load needs, and print tables."""
    {"safe": try_safe, "reserve": try_reserve, "load": try_load}[what]()


if __name__ == "__main__":
    main()

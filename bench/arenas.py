"""Are the arenas that `heapwright fit` gives enough? docs/robustness.md shows what this prints.

The safe arena: 1,000 larger ones, other than those that the search tried, up to twice as large. The reserve: what the
second recording of each pair needs, in bench/pairs and in ../shared/data/pairs, which had no part in choosing the
margin.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import click

import heapwright as hw
from heapwright import Recipe, Trace
from heapwright.recipes.policy import policy_struct
from heapwright.replay.safe import SafeArena, safe_arena
from heapwright.replay.smallest import server

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

from recipes_random import random_recipe  # noqa: E402
from robustness import heap  # noqa: E402

ARENAS, RANDOM_RECIPES = 1000, 50
FOLDERS = {"chosen on": ROOT / "bench" / "pairs", "judged on": ROOT.parent / "shared" / "data" / "pairs"}

QUICK = '[[pool]]\nkind = "quick"\nup_to = 256\n'
LISTS = {
    "quick, exact bins": QUICK + '[[pool]]\nkind = "general"\nbins = "exact"\nfit = "best"\n',
    "quick flushed, exact bins": QUICK
    + 'flush = "before-growing"\n[[pool]]\nkind = "general"\nbins = "exact"\nfit = "best"\n',
    "quick flushed from a share": QUICK
    + 'flush = "before-growing"\nflush_share = 0.25\n[[pool]]\nkind = "general"\nbins = "exact"\nfit = "best"\n',
    "deferred": '[[pool]]\nkind = "general"\nbins = "exact"\nfit = "best"\ncoalesce = "deferred"\n',
    "quick, deferred": QUICK + '[[pool]]\nkind = "general"\nbins = "exact"\nfit = "best"\ncoalesce = "deferred"\n',
}


def traces() -> list[Trace]:
    broker = hw.read_trace(ROOT / "examples" / "mosquitto_broker.parquet")
    return [heap("wee_find"), heap("rec_lighttpd"), heap("wee_gcc-hello"), broker]


def fitted(trace: Trace) -> Iterator[tuple[str, Recipe, SafeArena]]:
    """TLSF, the quick lists, and random recipes until so many serve the trace."""
    for name, recipe in {
        "tlsf": hw.zoo("tlsf"),
        **{name: Recipe.parse(f"align = 4\n{text}") for name, text in LISTS.items()},
    }.items():
        safe = safe_arena(trace, recipe)
        assert safe is not None
        yield name, recipe, safe
    random_, served = random.Random(1), 0
    while served < RANDOM_RECIPES:
        recipe = random_recipe(random_)
        safe = safe_arena(trace, recipe)
        if safe is not None:
            served += 1
            yield f"random {served}", recipe, safe


def refusing(trace: Trace, recipe: Recipe, safe: int) -> int:
    """How many of `ARENAS` from the safe one to twice that refuse a request."""
    struct = policy_struct(recipe)
    serves, most = server(trace, recipe, struct), min(2 * safe, int(struct.reach))
    random_ = random.Random(f"{trace.name} {safe}")
    shares = [0.0, *((part + random_.random()) / (ARENAS - 1) for part in range(ARENAS - 1))]
    return sum(not serves(safe + int(share * (most - safe)) // recipe.align * recipe.align) for share in shares)


def try_safe() -> None:
    click.echo("| trace | heaps | proved | arenas tried | heaps that refuse in one | refusals |")
    click.echo("| --- | ---: | ---: | ---: | ---: | ---: |")
    for trace in traces():
        found = [(name, safe.proved, refusing(trace, recipe, safe.bytes)) for name, recipe, safe in fitted(trace)]
        failing = {name: count for name, _, count in found if count}
        proved, tried = sum(proved for _, proved, _ in found), ARENAS * len(found)
        told = ", ".join(f"{name} ({count})" for name, count in failing.items()) or "none"
        click.echo(f"| {trace.name} | {len(found)} | {proved} | {tried:,} | {told} | {sum(failing.values())} |")


def try_reserve() -> None:
    """Of pairs: the reserve of the first recording beside what the second needs, and what a growth named foretells."""
    click.echo("| recordings | heap | pairs | served | reserve, mean | at most | grown within 10 % | worst |")
    click.echo("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for where, folder in FOLDERS.items():
        pairs = [
            (first, first.with_name(first.name.replace("_a.", "_b."))) for first in sorted(folder.glob("*_a.parquet"))
        ]
        for name in ("all-round", "victim-bins", "lea-2.7.2", "tlsf"):
            rows = [_reserve_of(hw.read_trace(first), hw.read_trace(other), name) for first, other in pairs]
            served = [over for over, _ in rows if over >= 1]
            grown = [foretold for _, foretold in rows]
            worst = max(grown, key=lambda one: abs(one - 1))
            near = sum(abs(one - 1) <= 0.1 for one in grown)
            click.echo(
                f"| {where} | {name} | {len(rows)} | {len(served)} | {sum(served) / len(served):.2f} x | "
                f"{max(served):.2f} x | {near} | {worst:.2f} x |"
            )


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
@click.argument("what", type=click.Choice(["safe", "reserve"]))
def main(what: str) -> None:
    """Try the safe arenas, or the reserves, and print tables."""
    {"safe": try_safe, "reserve": try_reserve}[what]()


if __name__ == "__main__":
    main()

"""The numbers of README's table of heaps; growth of all of them in long runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from effort import LONG, brief
from known import known
from needed import absent

import heapwright as hw
from heapwright.api.given import recipe_of
from heapwright.measure.boards.compilers import find_compiler
from heapwright.measure.boards.cpus import cpu
from heapwright.recipes.recipe import Recipe
from heapwright.recipes.worst_steps import worst_steps
from heapwright.replay import endurance

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "examples" / "mosquitto_broker.parquet"
PICK = """
[[pool]]
kind = "quick"
up_to = 132
limit_blocks = 4

[[pool]]
kind = "general"
bins = "exact"
linear_up_to = 256
bins_per_octave = 2
most_bins = 64
victim_up_to = 260
close_bins = 1
fit = "best"
search_most = 16
"""
"""What the demo's exploration picks: `docs/tutorial.md`, which is run, shows its id."""

HEAPS = {
    "made for it": Recipe.parse(PICK),
    "all-round": recipe_of("all-round@8"),
    "TLSF": recipe_of("tlsf@8"),
    "newlib-nano": recipe_of("newlib-nano@8"),
    "FreeRTOS's heap_4": recipe_of("freertos-heap4@8"),
}
COMPILER = "12.2"


def table() -> dict[str, list[str]]:
    """The cells behind the heap's name, row by row."""
    rows = re.findall(r"^\| (.*) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)[2:]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    return {re.sub(r"\*|,.*", "", name): rest for name, *rest in cells}


TABLE = table()


def test_the_rows_are_these_and_the_pick_is_the_demos() -> None:
    assert list(TABLE) == list(HEAPS)
    assert HEAPS["made for it"].hash in (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", HEAPS)
def test_arena_accesses_and_the_dearest_malloc(name: str) -> None:
    replays = hw.replay([TRACE], [HEAPS[name]])
    assert isinstance(replays, list)
    metrics = replays[0].metrics
    arena, accesses, _, dearest, _, bounded = TABLE[name]
    assert arena == f"{metrics['footprint_bytes']:,}"
    assert accesses == f"{known(metrics['accesses']) / 12_620:.1f}"
    assert dearest == str(metrics["accesses_malloc_max"])
    most = worst_steps(HEAPS[name]).most
    assert bounded == ("no" if most is None else f"yes, {most:,}")


@pytest.mark.parametrize("name", ["made for it", "all-round", "TLSF", "newlib-nano"])
def test_instructions(name: str) -> None:
    """Those of newlib-nano are its library's, not those of the heap of the zoo."""
    found = find_compiler(cpu("cortex-m3"))
    if COMPILER not in found.version:
        absent("the cross compiler of Debian 12", f"found: {found.version}")
    calls = hw.measure("lib:newlib-nano" if name == "newlib-nano" else HEAPS[name], TRACE)["calls"]
    assert TABLE[name][2] == f"{sum(calls[kind]['instructions_mean'] for kind in ('malloc', 'free')):.1f}"


@pytest.mark.parametrize("name", brief(["all-round"], list(HEAPS)))
def test_growth(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the usual run, in the loop alone in which this heap grows most."""
    if not LONG:
        monkeypatch.setattr(endurance, "_loops", lambda *_: ("drift",))
    (endured,) = hw.endure(TRACE, HEAPS[name])
    assert TABLE[name][4] == f"{100 * (known(endured.growth_ratio) - 1):.1f} %"
    assert endured.lasts

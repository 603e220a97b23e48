"""The numbers of README's table of heaps: each is measured here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tool_requirements import absent

import heapwright as hw
from heapwright._api.arguments import recipe_of
from heapwright._measure.boards.compilers import find_compiler
from heapwright._measure.boards.cpus import cpu
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.worst_steps import worst_steps
from heapwright._replay.long_run import CALLS, long_run
from heapwright._traces.futures import resample
from heapwright._traces.trace import Trace
from heapwright._traffic.workloads.made import future_of

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "examples" / "mosquitto_broker.parquet"
PICK = """
[[pool]]
kind = "fixed"
sizes = [8, 16, 24, 32, 40, 48, 56, 64, 96, 112, 512, 648]
counts = [62, 115, 14, 63, 22, 148, 26, 40, 48, 36, 34, 38]

[[pool]]
kind = "quick"
up_to = 572
lists_per_octave = 8
flush = "idle"
keep = "apart"

[[pool]]
kind = "general"
bins = "exact"
linear_up_to = 128
bins_per_octave = 2
most_bins = 32
victim_up_to = 260
fit = "best"
search_most = 16
"""
"""What the demo's exploration recommends: `docs/tutorial.md`, which is run, shows its id."""

HEAPS = {
    "tailored": Recipe.parse(PICK),
    "all-round": recipe_of("all-round@8"),
    "TLSF": recipe_of("tlsf@8"),
    "newlib-nano": recipe_of("newlib-nano@8"),
    "FreeRTOS's heap_4": recipe_of("freertos-heap4@8"),
}
RING = {
    "tailored behind a ring of 16 frames": Recipe.parse(
        'align = 8\n[[pool]]\nkind = "fixed"\nsizes = [1520]\ncounts = [16]\n'
    ),
    "all-round behind it": HEAPS["all-round"],
    "TLSF behind it": HEAPS["TLSF"],
}
"""Behind a ring of 16 frames, at a load of 1.1; the first is what `heapwright network` recommends."""
PACKETS = ROOT / "examples" / "tcp_transfers.parquet"
COMPILER = "12.2"


def table() -> dict[str, list[str]]:
    """The cells behind the heap's name, row by row."""
    rows = re.findall(r"^\| (.*) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)[2:]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    return {re.sub(r"\*|,.*", "", name): rest for name, *rest in cells}


TABLE = table()


def test_the_rows_are_these_and_the_pick_is_the_demos() -> None:
    assert list(TABLE) == [*HEAPS, *RING]
    assert HEAPS["tailored"].hash in (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def future() -> Trace:
    """What the demo's exploration replays candidates on."""
    return resample(Trace.read(TRACE), CALLS, seed=0)


@pytest.mark.parametrize("name", HEAPS)
def test_need_accesses_worst_call_and_growth_are_those_of_the_future(name: str, future: Trace) -> None:
    result = long_run(future, HEAPS[name])
    need, accesses, _, worst, growth, bounded = TABLE[name]
    assert need == f"{result.arena:,}"
    assert accesses == f"{result.accesses:.1f}"
    assert worst == str(result.malloc_max)
    assert growth == f"{100 * (result.growth - 1):.1f} %"
    most = worst_steps(HEAPS[name]).most
    assert bounded == ("no" if most is None else f"yes, {most:,}")


@pytest.fixture(scope="module")
def behind_ring() -> Trace:
    return hw.workload("easyport", PACKETS, ring=16, load=1.1)


@pytest.mark.parametrize("name", RING)
def test_behind_a_ring_the_need_is_proved_and_all_else_is_of_its_future(name: str, behind_ring: Trace) -> None:
    result = long_run(future_of(behind_ring, CALLS, seed=0), RING[name])
    need, accesses, _, worst, growth, bounded = TABLE[name]
    assert need == f"{result.arena:,}" and growth == "proved"
    assert accesses == f"{result.accesses:.1f}"
    assert worst == str(result.malloc_max)
    assert bounded == f"yes, {worst_steps(RING[name]).most}"


@pytest.mark.parametrize("name", RING)
def test_instructions_behind_a_ring(name: str, behind_ring: Trace, tmp_path: Path) -> None:
    result = find_compiler(cpu("cortex-m3"))
    if COMPILER not in result.version:
        absent("the cross compiler of Debian 12", f"found: {result.version}")
    behind_ring.write(tmp_path / "ring.parquet")
    measured = hw.measure(RING[name], tmp_path / "ring.parquet")
    calls = measured["calls"]
    assert TABLE[name][2] == f"{sum(calls[kind]['instructions_mean'] for kind in ('malloc', 'free')):.1f}"
    if name.startswith("tailored"):
        assert measured["code_bytes"]["total"] == 94
        assert "The code of the tailored heap is 94 bytes" in " ".join((ROOT / "README.md").read_text().split())


@pytest.mark.parametrize("name", ["tailored", "all-round", "TLSF", "newlib-nano"])
def test_instructions(name: str) -> None:
    """The numbers of newlib-nano are its library's, not those of the heap of the zoo."""
    result = find_compiler(cpu("cortex-m3"))
    if COMPILER not in result.version:
        absent("the cross compiler of Debian 12", f"found: {result.version}")
    calls = hw.measure("lib:newlib-nano" if name == "newlib-nano" else HEAPS[name], TRACE)["calls"]
    assert TABLE[name][2] == f"{sum(calls[kind]['instructions_mean'] for kind in ('malloc', 'free')):.1f}"


def test_what_it_saves_is_said_in_numbers_of_the_table() -> None:
    page = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    tailored, tlsf = TABLE["tailored"], TABLE["TLSF"]
    ours, theirs = (round(float(row[2])) for row in (tailored, tlsf))
    need, other = (int(row[0].replace(",", "")) for row in (tailored, tlsf))
    less = round(100 * (1 - need / other))
    assert (
        f"executes {ours} instructions for a malloc and a free on a Cortex-M3, TLSF {theirs}; "
        f"it needs {less} % less RAM" in page
    )


def test_only_a_checkout_is_promised() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pip install" not in page
    assert page.index("make demo") < page.index("docs/images/live.svg") < page.index("**What it does not do**")

"""The numbers of docs/hardening.md: what each level costs on a Cortex-M3, each measured here."""

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

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "examples" / "mosquitto_broker.parquet"
PAGE = (ROOT / "docs" / "hardening.md").read_text(encoding="utf-8")
COMPILER = "12.2"
ROWS = re.findall(
    r"^\| ([a-z-]+) \| `(none|frees|neighbours|full)` \| ([\d.,]+) \| (\S+) \| (\S+) \| (\S+) \|$", PAGE, re.M
)


def checked(name: str, level: str) -> Recipe:
    """A heap of the zoo with that level of checks."""
    return Recipe.parse(f'checks = "{level}"\n{recipe_of(name).to_toml()}')


def test_both_heaps_have_a_row_for_each_level() -> None:
    levels = ["none", "frees", "neighbours", "full"]
    assert [row[:2] for row in ROWS] == [(name, level) for name in ("all-round", "tlsf") for level in levels]


@pytest.mark.parametrize(("name", "level", "free", "worst", "malloc", "code"), ROWS)
def test_a_level_costs_what_its_row_says(name: str, level: str, free: str, worst: str, malloc: str, code: str) -> None:
    result = find_compiler(cpu("cortex-m3"))
    if COMPILER not in result.version:
        absent("the cross compiler of Debian 12", f"found: {result.version}")
    measured = hw.measure(checked(name, level), TRACE)
    calls = measured["calls"]
    assert free == f"{calls['free']['instructions_mean']:,.1f}"
    assert worst == f"{calls['free']['instructions_max']:,}"
    assert malloc == f"{calls['malloc']['instructions_mean']:,.1f}"
    assert code == f"{measured['code_bytes']['total']:,}"


def test_level_full_needs_the_arena_that_the_page_says() -> None:
    ((full, none),) = re.findall(r"tlsf then needs ([\d,]+) bytes for that trace instead of ([\d,]+)", PAGE)
    needs = [hw.fit(TRACE, checked("tlsf", level)).smallest_arena_bytes for level in ("full", "none")]
    assert [full, none] == [f"{need:,}" for need in needs]


FAULTS = re.findall(
    r"^\| ([\w.-]+) \| ([\d.]+) \| ([\d.]+) / ([\d.]+) \| ([\d.]+) / ([\d.]+) \| ([\d.]+) / ([\d.]+) \|$", PAGE, re.M
)


@pytest.mark.parametrize("row", FAULTS, ids=[row[0] for row in FAULTS])
def test_faults_are_detected_as_often_as_the_page_says(row: tuple[str, ...]) -> None:
    name, *shown = row
    levels = ("neighbours", "full")
    faults = {item["checks"]: item["faults"] for item in hw.attack(name, checks=levels)}

    def detected(level: str, fault: str) -> float:
        counts = faults[level][fault]
        of = counts["runs"] - counts["harmless"] if fault == "metadata_write" else counts["runs"]
        return 100.0 * int(counts["at_once"] + counts["later"]) / int(of)

    measured = [detected("full", "overflow_1")]
    measured += [
        detected(level, fault) for fault in ("overflow_16", "use_after_free", "metadata_write") for level in levels
    ]
    assert [float(value) for value in shown] == pytest.approx(measured, abs=0.51)

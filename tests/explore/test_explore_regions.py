"""A heap for several regions of memory: which of several serves, in which order, and what ships."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

import heapwright as hw
from heapwright._cli import heapwright
from heapwright._recipes.recipe import Recipe
from heapwright._traces.trace import Trace

REGIONS = (4520, 3110)


def large_after_small() -> Trace:
    """Forty objects of 100 bytes, then one of 3,060."""
    return Trace.from_columns(op=[0] * 41, id=range(41), size=[100] * 40 + [3060], name="t")


def later() -> Trace:
    """The same with two objects more, for which 7,630 bytes have no room."""
    return Trace.from_columns(op=[0] * 43, id=range(43), size=[100] * 40 + [3060, 400, 400], name="t~future")


def memories() -> Recipe:
    return Recipe.parse(
        'name = "two"\nalign = 8\n[memory]\nfast = 2048\nslow = 8192\n'
        '[[pool]]\nkind = "fixed"\nmemory = "fast"\nsizes = [104]\ncounts = [15]\n'
        '[[pool]]\nkind = "general"\nmemory = "slow"\n'
    )


def test_the_first_heap_that_serves_is_chosen_and_the_order_that_fails_is_named() -> None:
    """Kingsley rounds 3,060 bytes up to 4,096, and so fits nowhere."""
    pick = hw.place_in_regions(large_after_small(), ["kingsley", "freertos-heap4", "tlsf"], REGIONS)
    assert pick is not None and pick.serves
    assert pick.heap == "freertos-heap4" and pick.placement.order == (0, 1)
    assert [name for name, fewest in pick.passed_over if fewest] == ["kingsley"]
    assert hw.replay(large_after_small(), pick.recipe).metrics["failed"] == 0


def test_a_placement_has_to_serve_the_future_too() -> None:
    heaps = ["freertos-heap4"]
    pick = hw.place_in_regions(large_after_small(), heaps, REGIONS, futures=[later()])
    assert pick is not None and not pick.serves and pick.failed == 0 and pick.failed_future >= 1
    wider = hw.place_in_regions(large_after_small(), heaps, (5600, 3110), futures=[later()])
    assert wider is not None and wider.serves


def test_every_recording_has_to_be_served() -> None:
    pick = hw.place_in_regions([large_after_small(), later()], "freertos-heap4", REGIONS)
    assert pick is not None and pick.failed >= 1


def test_no_heap_that_can_be_placed_is_none() -> None:
    assert hw.place_in_regions(large_after_small(), [memories()], REGIONS) is None
    with pytest.raises(hw.HeapwrightError, match="1 regions; give 2 to 4"):
        hw.place_in_regions(large_after_small(), "tlsf", (4000,))


def test_each_memory_of_a_recipe_is_measured() -> None:
    """15 objects of 100 bytes lie in the fast memory, in blocks of 104 bytes."""
    fast, slow = hw.fit_memories(large_after_small(), memories())
    replayed = hw.replay(large_after_small(), memories()).memories
    assert [fast.used_bytes, slow.used_bytes] == [replayed[name]["footprint_bytes"] for name in ("fast", "slow")]
    assert 15 * 104 <= fast.used_bytes < 15 * 104 + 64
    assert 25 * 100 + 3060 <= slow.used_bytes <= 8192
    assert fast.recommended_bytes > fast.used_bytes and fast.failed == fast.failed_then == 0


def test_the_command_prints_what_each_memory_takes(tmp_path: Path) -> None:
    large_after_small().write(tmp_path / "t.parquet")
    (tmp_path / "two.toml").write_text(memories().to_toml())
    words = ["fit", str(tmp_path / "t.parquet"), "--heap", str(tmp_path / "two.toml")]
    printed = CliRunner().invoke(heapwright, words).stdout
    assert "fast" in printed and "with them the trace completes." in printed.replace("\n ", "")
    rows = json.loads(CliRunner().invoke(heapwright, [*words, "--json"]).stdout)
    assert [row["memory"] for row in rows] == ["fast", "slow"]


def test_explore_writes_a_recipe_for_the_regions_that_generate_turns_into_c(tmp_path: Path) -> None:
    large_after_small().write(tmp_path / "t.parquet")
    words = ["explore", str(tmp_path / "t.parquet"), "-o", str(tmp_path / "app.duckdb"), "--strategy", "random"]
    words += ["--limit", "5", "--long-run", "0", "--regions", "5000,4000"]
    done = CliRunner().invoke(heapwright, words)
    assert done.exit_code == 0, done.output
    assert "Regions: " in done.output and "4,000 holds " in done.output
    recipe = tmp_path / "app.regions.toml"
    assert f"heapwright generate {recipe}" in done.output.replace("\n  ", " ")
    (placed,) = [json.loads(CliRunner().invoke(heapwright, [*words, "--json"]).stdout)["regions"]]
    assert placed["serves"] and placed["file"] == str(recipe)
    assert sorted(Recipe.load(recipe).memory) == [("region1", 5000), ("region2", 4000)] or placed["order"] == [1, 0]
    files = hw.generate(recipe, tmp_path / "heap")
    header = (tmp_path / "heap/app_heap.h").read_text()
    assert "void *region1_memory, size_t region1_bytes, void *region2_memory, size_t region2_bytes" in header
    sources = [path for path in files if path.suffix == ".c"]
    unchecked = [f"-DAPP{name}_HEAP_ALIGN_UNCHECKED" for name in ("", "_REGION1", "_REGION2")]
    subprocess.run(["cc", "-std=c11", *unchecked, *sources, "-o", "test"], cwd=tmp_path, check=True)
    assert subprocess.run(["./test"], cwd=tmp_path, capture_output=True, text=True).stdout == "app_heap: ok\n"


def test_too_many_regions_end_the_command_before_it_explores(tmp_path: Path) -> None:
    large_after_small().write(tmp_path / "t.parquet")
    words = ["explore", str(tmp_path / "t.parquet"), "-o", str(tmp_path / "s.duckdb"), "--regions", "1K,1K,1K,1K,1K"]
    done = CliRunner().invoke(heapwright, words)
    assert done.exit_code == 2 and "5 regions; give 2 to 4" in done.output
    assert not (tmp_path / "s.duckdb").exists()

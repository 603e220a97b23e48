"""What is generated from a study states its own numbers: those that a replay of its own recipe comes to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from metric_values import known
from run_length import by_turns

import heapwright as hw
from heapwright._api import cut
from heapwright._recipes.recipe import Recipe
from heapwright._replay.replay import replay
from heapwright._studies.decision import decide
from heapwright._studies.recommendations import PICKS
from heapwright._traces.trace import Trace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PLATFORMS = ("freertos", "newlib", "threadx", "lwip", "sqlite")


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("trace") / "part.parquet"
    cut(Trace.read(EXAMPLES / "mosquitto_broker.parquet"), first=1200).write(file)
    return file


@pytest.fixture(scope="module")
def study(trace_file: Path, tmp_path_factory: pytest.TempPathFactory) -> hw.Study:
    return hw.explore(trace_file, tmp_path_factory.mktemp("study") / "small.duckdb", limit=40)


def words_of(header: Path) -> str:
    """The opening comment in one line."""
    comment = header.read_text().partition("*/")[0]
    return re.sub(r"\s+\*?\s*", " ", comment)


def stated(metrics: Any) -> str:
    malloc, realloc, free = (metrics[f"accesses_{kind}_max"] for kind in ("malloc", "realloc", "free"))
    assert realloc
    return (
        f"Measured there: {metrics['footprint_bytes']:,} bytes of arena, for a peak of "
        f"{metrics['requested_peak_bytes']:,} requested, {metrics['accesses']:,} metadata accesses, at most "
        f"{malloc:,} in a malloc, in a realloc at most {realloc:,} and its copy, at most {free:,} in a free."
    )


@pytest.mark.parametrize(
    ("platform", "how"),
    [(item, how) for turn, item in enumerate([None, *PLATFORMS]) for how in by_turns([*PICKS], turn)],
)
def test_a_replay_of_what_was_generated_gives_the_headers_numbers(
    platform: str | None, how: Any, study: hw.Study, trace_file: Path, tmp_path: Path
) -> None:
    pick = study.pick(how)
    files = hw.generate(pick, tmp_path, platform=platform)
    recipe = tmp_path / "app_heap.toml"
    assert recipe in files
    output = words_of(tmp_path / "app_heap.h")
    assert stated(hw.replay(trace_file, recipe).metrics) in output
    reserve = decide(study, how).reserve_bytes
    assert reserve
    assert f"Reserve {reserve:,} bytes" in output
    if platform:
        assert f"Reserve {reserve:,} bytes" in (tmp_path / "app_README.md").read_text()


def test_counters_are_counted(study: hw.Study, tmp_path: Path) -> None:
    pick = study.pick()
    hw.generate(f"{study.path}:{pick.id}", tmp_path, platform="freertos")
    assert Recipe.load(tmp_path / "app_heap.toml").counters
    assert stated(pick.metrics) not in words_of(tmp_path / "app_heap.h")


def test_where_the_trace_is_gone_no_other_heaps_numbers_are_stated(trace_file: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.parquet"
    moved.write_bytes(trace_file.read_bytes())
    small = hw.explore(moved, tmp_path / "gone.duckdb", limit=20, copies=0, stress_test=False)
    moved.unlink()
    pick = small.pick()
    hw.generate(pick, tmp_path / "alone")
    assert stated(pick.metrics) in words_of(tmp_path / "alone" / "app_heap.h")
    hw.generate(pick, tmp_path / "freertos", platform="freertos")
    assert "Measured there" not in words_of(tmp_path / "freertos" / "app_heap.h")


@pytest.mark.parametrize("name", ["first-fit-fast-free", "lea-2.7.2", "tlsf", "kingsley"])
def test_fragmentation_is_not_negative_where_headers_went(name: str) -> None:
    count = 1000
    trace = Trace.from_columns(
        op=[0] * count + [3] * count + [0],
        id=[*range(count), *range(count), count],
        size=[8] * count + [0] * count + [11_000],
    )
    metrics = replay(trace, hw.zoo(name))
    assert metrics["fragmentation"] is not None and metrics["fragmentation"] >= 0
    assert known(metrics["allocated_peak_bytes"]) >= known(metrics["requested_peak_bytes"]) == 11_000

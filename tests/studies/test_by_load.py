"""The pick at each load."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import heapwright as hw
from heapwright._cli import heapwright
from heapwright._recipes.zoo import catalogue
from heapwright._replay.replay import replay
from heapwright._traffic.packets import PacketTable


def packets(count: int = 300) -> PacketTable:
    draw = np.random.default_rng(1)
    frames = draw.choice([66, 600, 1514], count).astype(np.uint32)
    times = np.cumsum(draw.integers(0, 900, count))
    nothing = np.zeros(count, np.uint8)
    flow = np.zeros(count, np.uint32)
    return PacketTable(
        ts_us=times - times[0], frame_len=frames, ip_len=frames - 14, proto=nothing, flow=flow, dir=nothing
    )


def test_each_load_has_its_own_pick(tmp_path: Path) -> None:
    traces = hw.workload("easyport", packets(), load=[1.5, 0.5])
    study = hw.explore(traces, tmp_path / "study.duckdb", limit=20, copies=0)
    result = hw.picks_by_load(study, traces)
    assert [(item.load, item.trace) for item in result] == [(0.5, "easyport-0.5"), (1.5, "easyport-1.5")]
    assert [item.requested_peak_bytes for item in result] == [trace.peak_live_bytes for trace in traces[::-1]]
    for item, trace in zip(result, traces[::-1], strict=True):
        assert item.footprint_bytes == replay(trace, study[item.pick].recipe)["footprint_bytes"]
        assert study.robustness().why_not(item.pick) is None, "it is fit to ship on all of the loads"
        heaps = [catalogue.load(name).at_alignment(8) for name in ("newlib-nano", "tlsf")]
        beside = {heap.name: replay(trace, heap)["footprint_bytes"] for heap in heaps}
        assert item.beside == beside


@pytest.mark.parametrize("loads", [[0.5], []])
def test_one_load_says_nothing(tmp_path: Path, loads: list[float]) -> None:
    traces = [hw.workload("easyport", packets(100), load=load) for load in loads] or [
        hw.workload("easyport", packets(100), rate=1e6)
    ]
    study = hw.explore(traces, tmp_path / "study.duckdb", limit=5, copies=0, stress_test=False)
    assert hw.picks_by_load(study, traces) == []


def test_the_command_ends_with_the_pick_at_each_load(tmp_path: Path) -> None:
    paths = []
    for trace in hw.workload("easyport", packets(), load=[0.5, 1.5]):
        paths.append(str(tmp_path / f"{trace.name}.parquet"))
        trace.write(paths[-1])
    words = ["explore", *paths, "--limit", "5", "--copies", "0", "--long-run", "0"]
    words += ["-o", str(tmp_path / "study.duckdb")]
    (least, most) = json.loads(CliRunner().invoke(heapwright, [*words, "--json"]).stdout)["by_load"]
    assert (least["load"], most["load"]) == (0.5, 1.5)
    assert set(least["beside"]) == {"newlib-nano", "tlsf"}
    table = CliRunner().invoke(heapwright, words).stdout.partition("Balanced picks by load")[2]
    assert f"{most['footprint_bytes']:,}" in table and most["pick"] in table

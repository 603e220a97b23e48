"""Real traces and packet tables: the facts their descriptions give."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import heapwright as hw
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, MALLOC, REALLOC
from heapwright._traffic.packets import PacketTable
from heapwright._traffic.profile import profile_file, profile_packets
from heapwright._traffic.synthetic import synthesise


@pytest.mark.parametrize(
    ("name", "size", "share", "distinct", "peak"),
    [("wee_gcc-hello", 16, 20.7, 521, 9303005), ("rec_lighttpd", 32, 17.0, 45, 174264)],
)
def test_published_figures_of_real_traces(
    shared_data: Path, name: str, size: int, share: float, distinct: int, peak: int
) -> None:
    result = profile_file(shared_data / "heap" / f"{name}.parquet")
    assert result["sizes"][0]["size"] == size
    assert round(100 * result["sizes"][0]["share"], 1) == share
    assert (result["distinct_sizes"], result["requested_peak_bytes"]) == (distinct, peak)


def test_published_figures_of_real_packets(shared_data: Path) -> None:
    result = profile_file(shared_data / "packets" / "westermo_ind_2023.parquet")
    sizes = [(row["size"], round(100 * row["share"], 1)) for row in result["sizes"][:2]]
    assert (result["packets"], result["distinct_sizes"], sizes) == (35124, 33, [(44, 66.4), (52, 13.0)])
    assert (round(result["seconds"]), result["flows"]) == (5444, 15657)


PUBLISHED = {
    "rec_tshark": (420460, 63811605, 101819),
    "rec_xmllint": (627966, 25087250, 236693),
    "wee_gcc-hello": (17775, 9303005, 5732),
    "kmem_loopback_net": (64088, 104064, 225),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_facts_of_real_traces(name: str, shared_data: Path) -> None:
    trace = Trace.read(shared_data / "heap" / f"{name}.parquet")
    assert (len(trace), trace.peak_live_bytes, trace.peak_live_objects) == PUBLISHED[name]
    facts = hw.trace_facts(shared_data / "heap" / f"{name}.parquet")
    assert (facts["events"], facts["requested_peak_bytes"], facts["live_objects_peak"]) == PUBLISHED[name]


def test_a_real_trace_that_is_cut_in_two_and_merged_is_whole_again(shared_data: Path, tmp_path: Path) -> None:
    whole = Trace.read(shared_data / "heap" / "rec_tshark.parquet")
    middle = len(whole) // 2
    first = hw.cut(whole, stop=middle, close=False)
    second = hw.cut(whole, start=middle, live=True, close=False)
    lived = int(second.metadata["inherited"])
    assert first.live_bytes[-1] == second.live_bytes[lived - 1]
    assert np.array_equal(np.concatenate([first.live_bytes, second.live_bytes[lived:]]), whole.live_bytes)
    output = hw.merge([first, second], tmp_path / "both.parquet")
    assert output.events == len(whole) + lived


def test_a_real_trace_comes_back_from_the_lines_of_malloc_labs(shared_data: Path, tmp_path: Path) -> None:
    whole = Trace.read(shared_data / "heap" / "rec_jq.parquet")
    hw.export_trace(whole, tmp_path / "jq.rep", format="malloclab")
    again = hw.import_log(tmp_path / "jq.rep")
    assert np.array_equal(again.op, np.where(whole.op == CALLOC, MALLOC, whole.op))
    assert np.array_equal(again.id, whole.objects()[0])
    assert np.array_equal(again.live_bytes, whole.live_bytes)


def test_every_real_trace_is_valid(shared_data: Path) -> None:
    paths = sorted((shared_data / "heap").glob("*.parquet"))
    assert paths
    for path in paths:
        trace = Trace.read(path)
        number, count = trace.objects()
        assert count == np.count_nonzero(trace.op <= CALLOC) == number.max() + 1
        assert np.count_nonzero(trace.op == REALLOC) < len(trace)


def test_tables_of_real_networks_read(shared_data: Path) -> None:
    files = sorted((shared_data / "packets").glob("*.parquet"))
    assert files
    for file in files:
        table = PacketTable.read(file)
        assert len(table) >= 10_000
        assert (table.ip_len <= table.frame_len).mean() > 0.99, file


def test_synthetic_traffic_has_the_profile_it_was_fitted_to(shared_data: Path) -> None:
    real = profile_packets(PacketTable.read(shared_data / "packets" / "zeek_mix.parquet"), "zeek_mix")
    table = synthesise(json.loads(json.dumps(real)), 200_000, seed=3)
    assert table.metadata == {"synthetic": "true", "fitted_to": "zeek_mix", "seed": "3"}
    made = profile_packets(table, "made")
    assert made["synthetic"] and not real["synthetic"]
    for size, share in ((row["size"], row["share"]) for row in real["sizes"][:20]):
        assert next(row["share"] for row in made["sizes"] if row["size"] == size) == pytest.approx(share, abs=0.005)
    assert made["top_flow_share"] == pytest.approx(real["top_flow_share"], abs=0.01)
    assert made["forward_share"] == pytest.approx(real["forward_share"], abs=0.01)
    for key in ("interarrival_mean_us", "interarrival_cv"):
        assert made["burstiness"][key] == pytest.approx(real["burstiness"][key], rel=0.1)

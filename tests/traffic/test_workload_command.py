"""`heapwright workload` and the facts of its traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import strategies as st
from networks import random_packets, table

from heapwright._cli import heapwright
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC
from heapwright._traffic.packets import PacketTable
from heapwright._traffic.workloads import link
from heapwright._traffic.workloads.drr import drr
from heapwright._traffic.workloads.easyport import easyport
from heapwright._traffic.workloads.modem import modem
from heapwright._traffic.workloads.poisson import poisson

MILLION_BITS = 8e6
"""A rate at which a byte takes a microsecond."""


@st.composite
def packet_tables(draw: st.DrawFn) -> PacketTable:
    rows = draw(
        st.lists(st.tuples(st.integers(0, 300), st.integers(15, 400), st.integers(0, 4)), min_size=1, max_size=40)
    )
    times = np.cumsum([row[0] for row in rows])
    return table((times - times[0]).tolist(), [row[1] for row in rows], [row[2] for row in rows])


def calls(trace: Trace) -> list[tuple[int, int, int, int]]:
    """(time, op, size, order of birth) of every call; a free has the size of what it frees."""
    number, _ = trace.objects()
    size = dict(zip(number[trace.op == MALLOC].tolist(), trace.size[trace.op == MALLOC].tolist(), strict=True))
    rows = zip(trace.ts_us.tolist(), trace.op.tolist(), number.tolist(), strict=True)
    return [(time, op, size[object_], object_) for time, op, object_ in rows]


def test_the_load_of_poisson_multiplies_the_requests_a_second() -> None:
    plain, same, twice = (poisson(requests=5000, load=load) for load in (None, 1, 2))
    np.testing.assert_array_equal(plain.ts_us, same.ts_us)
    assert "load" not in plain.metadata and twice.metadata["load"] == "2"
    np.testing.assert_array_equal(twice.ts_us, poisson(requests=5000, interarrival=0.001).ts_us)
    with pytest.raises(HeapwrightError, match=r"load: 0: must be more than 0; 1 is one request each interarrival"):
        poisson(load=0)


def test_the_command_writes_a_trace_for_each_load_of_poisson(tmp_path: Path) -> None:
    words: list[str | Path] = [
        "--requests",
        "2000",
        "--set",
        "hold=0.1",
        "--load",
        "0.5,2",
        "-o",
        tmp_path / "p.parquet",
        "--json",
    ]
    output = json.loads(run_workload("poisson", *words).stdout)
    assert [list(item["peaks_by_load"]) for item in output] == [["0.45", "0.5", "0.55"], ["1.8", "2", "2.2"]]
    peaks = [Trace.read(tmp_path / f"p-{load}.parquet").peak_live_bytes for load in ("0.5", "2")]
    assert peaks == [item["requested_peak_bytes"] for item in output] and 2 * peaks[0] < peaks[1]


def test_releases_come_first_at_equal_times() -> None:
    trace = poisson(interarrival=1e-6, hold=2e-6, requests=5000)
    same = np.diff(trace.ts_us) == 0
    assert same.sum() > 1000
    assert not (same & (trace.op[:-1] == MALLOC) & (trace.op[1:] == FREE)).any()


# --- all -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", [modem, poisson])
def test_the_seed_decides(workload: Callable[..., Trace]) -> None:
    few = {"calls": 50} if workload is modem else {"requests": 500}
    first, again, other = (workload(seed=seed, **few) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.ts_us, again.ts_us)
    np.testing.assert_array_equal(first.size, again.size)
    assert len(other) != len(first) or (other.ts_us != first.ts_us).any()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"load": 0}, "load: 0: must be more than 0"),
        ({"rate": -5}, "rate: -5: a link sends"),
        ({"rate": 1e-12}, "takes more than a century; give it a higher rate"),
    ],
)
def test_links_that_cannot_be(options: dict[str, Any], says: str) -> None:
    with pytest.raises(HeapwrightError, match=says):
        easyport(random_packets(50), **options)


def test_packets_without_times_need_a_rate() -> None:
    packets = table([0, 0, 0], [60, 60, 60], [1, 2, 3])
    with pytest.raises(HeapwrightError, match="the load is undefined; give the link a rate"):
        drr(packets)
    assert len(drr(packets, rate=1e6)) == 12
    with pytest.raises(HeapwrightError, match="the packet table is empty"):
        link.first_packets(table([], [], []), None)


WIDE = {"COLUMNS": "999"}


def run_workload(*words: str | Path) -> Result:
    return CliRunner(env=WIDE).invoke(heapwright, ["workload", *map(str, words)])


@pytest.mark.parametrize("loads", ["0.5,0.7,0.9", "0.5:0.9:0.2"])
def test_the_command_writes_a_trace_for_each_load(tmp_path: Path, loads: str) -> None:
    packets, output = tmp_path / "packets.parquet", tmp_path / "out.parquet"
    random_packets(1000).write(packets)
    printed = json.loads(run_workload("easyport", packets, "--load", loads, "-o", output, "--json").stdout)
    paths = [tmp_path / f"out-{load}.parquet" for load in ("0.5", "0.7", "0.9")]
    assert [item["path"] for item in printed] == [str(path) for path in paths] and not output.exists()
    assert [Trace.read(path).metadata["load"] for path in paths] == ["0.5", "0.7", "0.9"]
    assert [list(item["peaks_by_load"]) for item in printed] == [
        ["0.45", "0.5", "0.55"],
        ["0.63", "0.7", "0.77"],
        ["0.81", "0.9", "0.99"],
    ]
    assert [item["peaks_by_load"][item["metadata"]["load"]] for item in printed] == [
        item["requested_peak_bytes"] for item in printed
    ]
    plain = run_workload("easyport", packets, "--load", "0.7", "-o", output).stdout
    less, here, more = (f"{peak:,}" for peak in printed[1]["peaks_by_load"].values())
    assert f"peak {here} bytes at load 0.7; 10 % less load: {less}; 10 % more: {more}" in plain


@pytest.mark.parametrize("words", [["--load", "0"], ["--load", "0.5:0.9"], ["--load", "0.5,0.5"], ["--load", "a"]])
def test_loads_that_are_none_are_refused(tmp_path: Path, words: list[str]) -> None:
    result = run_workload("easyport", tmp_path / "none.parquet", *words, "-o", tmp_path / "out.parquet")
    assert result.exit_code == 2 and "valid: 0.7, several as 0.5,0.7,0.9" in result.output


def test_a_rate_is_one_load(tmp_path: Path) -> None:
    packets = tmp_path / "packets.parquet"
    random_packets(100).write(packets)
    result = run_workload("easyport", packets, "--load", "0.5,0.7", "--set", "rate=1e6", "-o", tmp_path / "out.parquet")
    assert result.exit_code == 2 and "rate is one load" in result.output


@pytest.mark.parametrize(
    ("words", "peak"),
    [
        (["drr", "p", "--set", "count=500", "--load", "0.5", "--set", "rotation=classic"], None),
        (["easyport", "p"], None),
        (["url", "p", "--set", "patterns=3"], None),
        (["queue", "p", "--set", "limit=7", "--set", "cycles=3"], 7),
        (["queue", "p", "--set", "limit=7", "--set", "cycles=all"], 7),
        (["queue", "p", "--set", "limit=7", "--load", "2"], 7),
        (["priority", "p", "--set", "ring=5", "--load", "2"], 5),
        (["modem", "--set", "calls=9", "--seed", "3"], None),
        (["poisson", "--set", "requests=900", "--set", "interarrival=0.1", "--set", "min_size=1"], None),
    ],
)
def test_every_command_writes_a_trace(tmp_path: Path, words: list[str], peak: int | None) -> None:
    packets = tmp_path / "packets.parquet"
    random_packets(1000).write(packets)
    output = tmp_path / "trace.parquet"
    words = [str(packets) if word == "p" else word for word in words]
    result = CliRunner().invoke(heapwright, ["workload", *words, "-o", str(output), "--json"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    trace = Trace.read(output)
    assert answer["events"] == len(trace) and answer["requested_peak_bytes"] == trace.peak_live_bytes
    assert trace.metadata["workload"] == words[0]
    assert peak is None or trace.peak_live_objects == peak
    plain = CliRunner(env=WIDE).invoke(heapwright, ["workload", *words, "-o", str(output)])
    assert f"{output}: {len(trace):,} calls" in plain.stdout and plain.stderr == ""


@pytest.mark.parametrize(
    "words",
    [
        ["drr"],
        ["poisson", "--set", "requests=-1", "-o", "x"],
        ["drr", "p", "--size", "x"],
        ["drr", "p", "--set", "quantum=1", "-o", "x"],
    ],
)
def test_wrong_flags_exit_2(words: list[str]) -> None:
    assert CliRunner().invoke(heapwright, ["workload", *words]).exit_code == 2

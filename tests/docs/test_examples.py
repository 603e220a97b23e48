"""The shipped examples are valid, small, and what their README says."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import heapwright as hw
from heapwright._explore.default_space import bounded_recipes
from heapwright._replay.worst_case import worst_case_of
from heapwright._support.errors import HeapwrightError
from heapwright._traces.live_bound import LiveBound
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE
from heapwright._traffic.packets import PacketTable
from heapwright._traffic.statistics import burstiness

EXAMPLES = Path(__file__).parents[2] / "examples"
TRACES = ["lighttpd_server", "mosquitto_broker"]
PACKETS = [
    "modbus_polls",
    "opcua_subscriptions",
    "quic_downloads",
    "sensor_frames",
    "tcp_lossy",
    "tcp_transfers",
    "voip_calls",
]
RING = 32


def rows_of_readme() -> dict[str, list[str]]:
    """The README's table rows by file name, cells without blanks around them."""
    rows = {}
    for line in (EXAMPLES / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and cells[0] in TRACES + PACKETS:
            rows[cells[0]] = cells[1:]
    return rows


def frequent(values: np.ndarray, number: int = 2) -> str:
    """The most frequent values with their shares, as in the README."""
    result, count = np.unique(values, return_counts=True)
    first = np.argsort(-count, kind="stable")[:number]
    return ", ".join(f"{result[i]} ({100 * count[i] / len(values):.1f} %)" for i in first)


def trace_row(trace: Trace, script: str) -> list[str]:
    sizes = trace.size[trace.op != FREE]
    return [
        str(len(trace)),
        " / ".join(map(str, np.bincount(trace.op, minlength=4))),
        f"{trace.seconds:.1f}",
        frequent(sizes),
        str(len(np.unique(sizes))),
        str(sizes.max()),
        str(trace.peak_live_bytes),
        str(trace.peak_live_objects),
        f"`{script}`",
    ]


def packets_row(table: PacketTable) -> list[str]:
    bound = LiveBound.of(hw.workload("easyport", table, ring=RING))
    assert bound is not None
    proved = worst_case_of(bound, bounded_recipes([bound], 8)[0])
    assert proved is not None
    return [
        str(len(table)),
        f"{table.ts_us[-1] / 1e6:.1f}",
        str(len(np.unique(table.flow))),
        frequent(table.ip_len, 3),
        str(len(np.unique(table.ip_len))),
        f"{burstiness(table.ts_us)['interarrival_cv']:.2f}",
        str(bound.largest),
        str(proved.bytes),
    ]


def example_module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_shipped_table_is_known_and_small() -> None:
    files = {file.stem: file.stat().st_size for file in EXAMPLES.glob("*.parquet")}
    assert sorted(files) == sorted(TRACES + PACKETS) == sorted(rows_of_readme())
    assert all(size < 300_000 for size in files.values())


@pytest.mark.parametrize(
    ("name", "script"), [("mosquitto_broker", "record_mqtt.sh"), ("lighttpd_server", "record_http.sh")]
)
def test_a_trace_is_what_the_readme_says(name: str, script: str) -> None:
    trace = Trace.read(EXAMPLES / f"{name}.parquet")
    assert trace.repairs == ()
    assert trace.metadata["pointer_bytes"] == "8"
    assert trace.metadata["program"] == name.split("_")[0]
    assert rows_of_readme()[name] == trace_row(trace, script)


@pytest.mark.parametrize("name", PACKETS)
def test_a_packet_table_is_what_the_readme_says(name: str) -> None:
    table = PacketTable.read(EXAMPLES / f"{name}.parquet")
    assert "warning" not in table.metadata
    assert rows_of_readme()[name] == packets_row(table)


@pytest.mark.parametrize("name", PACKETS)
def test_the_capture_holds_frames_a_wire_would_carry(name: str) -> None:
    table = PacketTable.read(EXAMPLES / f"{name}.parquet")
    assert table.metadata["link"] == "Ethernet"
    assert table.ip_len.max() <= (102 if name == "sensor_frames" else 1500)
    np.testing.assert_array_equal(table.frame_len, table.ip_len + 14)
    flows = np.unique(table.flow[table.proto == 6])
    assert all(set(table.dir[table.flow == flow].tolist()) == {0, 1} for flow in flows)


def test_the_script_makes_each_packet_table_and_lists_it() -> None:
    text = (EXAMPLES / "record_networks.sh").read_text()
    assert all(f"\n#   {name} " in text and f"\n{name}() {{" in text for name in PACKETS)
    wrong = subprocess.run(["sh", EXAMPLES / "record_networks.sh", "x"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and all(name in wrong.stderr for name in PACKETS)


def test_the_traces_press_on_a_heap() -> None:
    for name in TRACES:
        trace = Trace.read(EXAMPLES / f"{name}.parquet")
        assert 5_000 <= len(trace) <= 20_000
        assert trace.peak_live_objects >= 500
        assert trace.live_objects[-1] < 10, "the program ended properly, so it freed nearly all"


@pytest.mark.parametrize("script", ["record_mqtt.sh", "record_http.sh", "record_networks.sh"])
def test_a_script_is_executable_shell(script: str) -> None:
    assert os.access(EXAMPLES / script, os.X_OK)
    assert subprocess.run(["sh", "-n", EXAMPLES / script], check=False).returncode == 0


def test_cutting_the_start_drops_its_objects_for_good() -> None:
    cut_start = example_module("cut_start").cut_start
    # Object 0 is allocated before the pause and dies after it; its id then names a newer object, which stays.
    ops = [(0, 0, 0, 10), (5, 0, 1, 20), (2_000_005, 1, 2, 30), (2_000_006, 3, 0, 0), (2_000_007, 0, 0, 40)]
    ops += [(2_000_008, 2, 1, 25), (2_000_009, 3, 0, 0), (2_000_010, 3, 2, 0)]
    ts_us, op, id_, size = zip(*ops, strict=True)
    cut = cut_start(Trace.from_columns(ts_us=ts_us, op=op, id=id_, size=size), 1.0)
    assert cut.op.tolist() == [1, 0, 3, 3]
    assert cut.id.tolist() == [2, 0, 0, 2]
    assert cut.ts_us.tolist() == [0, 2, 4, 5]
    assert cut.metadata["cut"].startswith("the first 2 calls")


def test_cutting_a_start_that_has_no_end_is_refused() -> None:
    cut_start = example_module("cut_start").cut_start
    with pytest.raises(HeapwrightError, match=r"no pause of 1\.0 s"):
        cut_start(Trace.from_columns(ts_us=[0, 1], op=[0, 3], id=[0, 0], size=[1, 0]), 1.0)

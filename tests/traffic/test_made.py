"""What a workload makes of other packets: futures and copies go through the queue, never past it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from networks import random_packets

import heapwright as hw
from heapwright._support.errors import HeapwrightError
from heapwright._traces.live_bound import LiveBound
from heapwright._traffic.workloads.made import Made, each_copy, future_of

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tcp_transfers.parquet"

NEWEST_FIRST = """
class Queue:
    def __init__(self):
        self.packets = []

    def put(self, packet):
        if packet.bytes > 1000 and len(self.packets) > 5:
            return False
        self.packets.append(packet)

    def take(self):
        return self.packets.pop() if self.packets else None
"""


@pytest.mark.parametrize("name", ["easyport", "drr", "priority", "url"])
def test_a_future_holds_no_more_than_the_ring_and_fills_it(name: str) -> None:
    trace = hw.workload(name, EXAMPLE, ring=16, count=4000)
    bound = LiveBound.of(trace)
    assert bound is not None
    future = future_of(trace, 60_000, seed=1)
    assert len(future) > 60_000 and LiveBound.of(future) == bound
    packets = bound.classes[0].objects if name != "url" else bound.objects
    assert future.peak_live_objects >= 0.9 * packets, "stalls of the output fill the ring"


def test_a_copy_at_four_times_the_load_meets_the_same_ring() -> None:
    """Drawn from the calls it would be 94,668 bytes: four times what one ring holds."""
    trace = hw.workload("easyport", EXAMPLE, ring=16, load=1.1)
    order, loaded = each_copy(trace, 2, seed=0)
    assert (order.name, loaded.name) == ("easyport~packets-1", "easyport~load-1")
    assert loaded.peak_live_bytes == 16 * 1514 and loaded.peak_live_objects == 16
    assert int(loaded.metadata["dropped"]) > int(trace.metadata["dropped"])


def test_the_same_seed_makes_the_same_future_and_another_makes_another() -> None:
    trace = hw.workload("easyport", EXAMPLE, ring=16)
    first, again, other = (future_of(trace, 20_000, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.size, again.size) and not np.array_equal(first.size[:15_000], other.size[-15_000:])


def test_packets_are_found_beside_the_trace_and_not_used_if_they_changed(tmp_path: Path) -> None:
    packets, folder = tmp_path / "packets.parquet", tmp_path / "moved"
    random_packets(500).write(packets)
    hw.workload("easyport", packets, ring=8).write(tmp_path / "trace.parquet")
    assert Made.of(hw.read_trace(tmp_path / "trace.parquet")) is not None
    folder.mkdir()
    for name in ("packets.parquet", "trace.parquet"):
        shutil.move(tmp_path / name, folder / name)
    assert Made.of(hw.read_trace(folder / "trace.parquet")) is not None
    random_packets(501).write(folder / "packets.parquet")
    assert Made.of(hw.read_trace(folder / "trace.parquet")) is None


def test_a_queue_in_a_file_is_run_by_its_user_and_never_for_a_trace(tmp_path: Path) -> None:
    """A trace may come from a stranger; the file that it names is not run."""
    packets, queue = tmp_path / "packets.parquet", tmp_path / "newest.py"
    random_packets(800).write(packets)
    queue.write_text(NEWEST_FIRST)
    trace = hw.workload(str(queue), packets, ring=12, load=2, extra=4)
    assert trace.metadata["workload"] == "newest" and trace.peak_live_objects <= 12
    assert LiveBound.of(trace) is not None and int(trace.metadata["dropped"]) > 0
    assert Made.of(trace) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "has no class Queue"),
        ("1 / 0", "ZeroDivisionError"),
        (NEWEST_FIRST.replace("if self.packets else None", "if len(self.packets) > 3 else None"), "returned None"),
        (NEWEST_FIRST.replace("self.packets.pop()", "self.packets[0]"), "does not hold"),
    ],
)
def test_a_queue_that_loses_or_doubles_packets_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    queue = tmp_path / "mine.py"
    queue.write_text(text)
    with pytest.raises(HeapwrightError, match=message):
        hw.workload(str(queue), random_packets(300), load=2)


def test_short_packets_leave_a_strict_priority_queue_first() -> None:
    """A frame of 1,500 bytes is on the link when one of 1,500 and one of 60 come; the short one goes next."""
    packets = random_packets(3)
    columns = {"ts_us": np.array([0, 1, 2]), "frame_len": np.array([1500, 1500, 60], np.uint32)}
    packets = type(packets)(**{**vars(packets), **columns})
    trace = hw.workload("priority", packets, rate=8e6)
    freed = trace.id[trace.op == hw.FREE].tolist()
    assert freed == [0, 2, 1]


def test_joined_packets_are_cut_to_the_mtu() -> None:
    packets = random_packets(2)
    columns = {"frame_len": np.array([3014, 60], np.uint32), "ip_len": np.array([3000, 46], np.uint32)}
    packets = type(packets)(**{**vars(packets), **columns}).segmented(1500)
    assert packets.ip_len.tolist() == [1500, 1500, 80, 46], "2,960 bytes of data, 1,460 in each, with 40 of headers"
    assert packets.frame_len.tolist() == [1514, 1514, 94, 60]
    assert packets.metadata["segmented"] == "1"
    bound = LiveBound.of(hw.workload("easyport", packets, ring=4, rate=1e6, mtu=9000))
    assert bound is not None and bound.largest == 9014, "the MTU is what may come"

"""The recorded networks in examples/: their traffic is what each protocol makes, and a ring's reserve is exact."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

import heapwright as hw
from heapwright._cli import heapwright
from heapwright._explore.default_space import bounded_recipes
from heapwright._replay.arena_sizes import fit
from heapwright._replay.worst_case import worst_case_of
from heapwright._replay.worst_order import worst_order
from heapwright._traces.live_bound import LiveBound
from heapwright._traffic.packets import PacketTable
from heapwright._traffic.profile import in_words, profile_packets

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RING = 32
CONTROL = 24
"""Bytes of control data of one pool of fixed blocks at alignment 8."""


class Traffic(NamedTuple):
    """What a network's protocols make: sizes of IP packets with their least and greatest share, and the MTU's."""

    modes: tuple[tuple[int, float, float], ...]
    largest: int
    protocols: tuple[int, ...]
    gaps: tuple[float, float]


TCP, UDP, ICMP = 6, 17, 1
NETWORKS = {
    # Full segments and acknowledgements with time stamps, 40 + 12 bytes; a selective one has 12 or 20 bytes more.
    "tcp_transfers": Traffic(((1500, 0.4, 0.6), (52, 0.3, 0.5), (64, 0.02, 0.1)), 1500, (TCP,), (1.1, 2)),
    "tcp_lossy": Traffic(((1500, 0.5, 0.6), (52, 0.1, 0.2), (64, 0.1, 0.2)), 1500, (TCP,), (1.1, 2)),
    # 1,472 bytes are the largest datagram that path MTU discovery of ngtcp2 tries.
    "quic_downloads": Traffic(((1472, 0.5, 0.7), (74, 0.1, 0.2)), 1472, (UDP, ICMP), (1.1, 2)),
    "sensor_frames": Traffic(((52, 0.2, 0.35), (56, 0.05, 0.15)), 102, (TCP, UDP), (2, 6)),
    # 160 samples of 8 bits each 20 ms, with 12 bytes of RTP, 8 of UDP and 20 of IP.
    "voip_calls": Traffic(((200, 0.98, 1),), 845, (UDP, ICMP), (0.8, 1.1)),
    # A request for registers is 12 bytes of data, its acknowledgement none; ten registers are 29 bytes.
    "modbus_polls": Traffic(((52, 0.3, 0.4), (64, 0.3, 0.4), (81, 0.15, 0.25)), 141, (TCP,), (3, 6)),
    "opcua_subscriptions": Traffic(((52, 0.3, 0.4), (145, 0.08, 0.15)), 1208, (TCP,), (1.1, 3)),
}


@pytest.fixture(params=sorted(NETWORKS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_profile_is_that_of_the_protocols(name: str) -> None:
    expected, table = NETWORKS[name], PacketTable.read(EXAMPLES / f"{name}.parquet")
    profile = profile_packets(table, name)
    shares = [(row["size"], row["share"]) for row in profile["sizes"][: len(expected.modes)]]
    assert [size for size, _ in shares] == [size for size, _, _ in expected.modes]
    for (_, share), (size, least, most) in zip(shares, expected.modes, strict=True):
        assert least <= share <= most, size
    assert tuple(row["proto"] for row in profile["protocols"]) == expected.protocols
    assert table.ip_len.max() == expected.largest
    least, most = expected.gaps
    assert least < profile["burstiness"]["interarrival_cv"] < most
    size, share = shares[0]
    assert f": {size:,} bytes {share:.1%}" in in_words(profile)[0]
    printed = (
        CliRunner(env={"COLUMNS": "120"}).invoke(heapwright, ["profile", str(EXAMPLES / f"{name}.parquet")]).output
    )
    assert f"{len(table):,} packets" in printed and f"{size:,}" in printed and f"{share:.1%}" in printed


def test_each_direction_of_a_call_has_a_packet_every_20_ms() -> None:
    """Eight streams together look like a Poisson process, each alone like a clock."""
    table = PacketTable.read(EXAMPLES / "voip_calls.parquet")
    voice = table.ip_len == 200
    streams = [
        np.diff(table.ts_us[voice & (table.flow == flow) & (table.dir == direction)])
        for flow in np.unique(table.flow[voice])
        for direction in (0, 1)
    ]
    assert len(streams) == 8 and min(map(len, streams)) >= 900, "four calls of 20 s, both ways"
    for gaps in streams:
        assert gaps.mean() == pytest.approx(20_000, rel=0.01)
        assert gaps.std() / gaps.mean() < 0.3


def test_lost_segments_are_acknowledged_selectively() -> None:
    """Blocks of 8 bytes behind 4: acknowledgements of 64, 72 or 80 bytes, ten times as often as where queues lose."""

    def selective(name: str) -> float:
        return float(np.isin(PacketTable.read(EXAMPLES / f"{name}.parquet").ip_len, (64, 72, 80)).mean())

    assert selective("tcp_lossy") > 0.2 and selective("tcp_transfers") < 0.1


@pytest.mark.parametrize(("queue", "node"), [("easyport", 0), ("drr", 24), ("priority", 0)])
def test_a_ring_of_32_holds_no_more_and_the_worst_order_needs_all_of_its_proved_reserve(
    name: str, queue: str, node: int
) -> None:
    trace = hw.workload(queue, EXAMPLES / f"{name}.parquet", ring=RING, load=1.3)
    bound = LiveBound.of(trace)
    assert bound is not None and bound.classes[0].objects == RING
    assert trace.peak_live_objects <= bound.objects == RING * (2 if node else 1)
    assert int(trace.metadata["dropped"]) > 0, "the ring is full at times"
    (recipe,) = bounded_recipes([bound], 8)
    proved = worst_case_of(bound, recipe)
    assert proved is not None
    assert proved.bytes == worst_order(bound, recipe)[1]
    assert fit(trace, recipe) == proved.bytes
    if not node:
        largest = NETWORKS[name].largest + 14
        assert trace.peak_live_objects == RING
        assert proved.bytes == RING * -(-largest // 8) * 8 + CONTROL


@pytest.mark.parametrize("queue", ["easyport", "drr"])
def test_pools_that_skip_no_free_block_are_proved_near_what_an_order_needs(name: str, queue: str) -> None:
    """Within 6 %, or 20 % for packets of less than 160 bytes: a header is a large share of them."""
    bound = LiveBound.of(hw.workload(queue, EXAMPLES / f"{name}.parquet", ring=RING, load=1.3))
    assert bound is not None
    recipes = [item for item in hw.zoo() if item.name in ("tlsf", "first-fit-slow-free", "best-fit-slow-free")]
    assert len(recipes) == 3
    for recipe in recipes:
        proved = worst_case_of(bound, recipe)
        assert proved is not None
        order = worst_order(bound, recipe)[1]
        assert order <= proved.bytes <= order * (1.2 if bound.largest < 160 else 1.06), recipe.name

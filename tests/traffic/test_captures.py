"""Importers of packets: every link type, TSH, CSV, synthetic traffic, and what a profile says of arrivals and flows."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import (
    ACCESS_POINT,
    CLIENT,
    ETHERNET_IP,
    PACKET,
    SENSOR,
    SERVER,
    SNAP_IP,
    WIFI,
    pcapng,
    radiotap,
    tcp_packet,
    tsh_record,
    udp6_packet,
    wifi_data,
)
from case_tables import each
from click.testing import CliRunner

from heapwright._cli import heapwright
from heapwright._support.errors import HeapwrightError
from heapwright._traffic import find_format, import_packets, links, statistics
from heapwright._traffic.packets import PacketTable
from heapwright._traffic.profile import profile_packets
from heapwright._traffic.rows import Flows
from heapwright._traffic.synthetic import synthesise
from heapwright._traffic.tsh import RECORD
from heapwright._traffic.workloads.poisson import poisson


@each(
    ("link_type", "frame", "frame_len", "ip_len", "proto"),
    [
        (1, CLIENT + SERVER + b"\x08\x00" + PACKET, 154, 140, 6),
        (1, CLIENT + SERVER + b"\x81\x00\0\x05\x86\xdd" + udp6_packet(12), 78, 60, 17),
        (113, struct.pack(">HHH", 0, 1, 6) + CLIENT + b"\0\0\x08\x00" + PACKET, 156, 140, 6),
        (276, b"\x08\x00\0\0\0\0\0\1\0\1\0\6" + CLIENT + b"\0\0" + PACKET, 160, 140, 6),
        (101, PACKET, 140, 140, 6),
        (12, udp6_packet(12), 60, 60, 17),
        (12, udp6_packet(12)[:6] + b"\x32" + udp6_packet(12)[7:], 60, 60, 50),
        (228, PACKET, 140, 140, 6),
        (229, udp6_packet(0), 48, 48, 17),
        (0, struct.pack("<I", 2) + PACKET, 144, 140, 6),
        (0, struct.pack(">I", 30) + udp6_packet(12), 64, 60, 17),
        (108, struct.pack(">I", 2) + PACKET, 144, 140, 6),
        (105, WIFI, 172, 140, 6),
        (105, wifi_data(1, SNAP_IP + PACKET, qos=True), 174, 140, 6),
        (105, wifi_data(1, b"\0\0" + SNAP_IP + PACKET, qos=True), 176, 140, 6),
        (105, wifi_data(3, SNAP_IP + PACKET, fourth=ACCESS_POINT), 178, 140, 6),
        (105, wifi_data(0x41, SNAP_IP + PACKET), 172, 0, 0),
        (127, radiotap(WIFI), 172, 140, 6),
        (119, b"\x44\0\0\0\x90\0\0\0" + b"\0" * 136 + WIFI, 172, 140, 6),
        (119, struct.pack(">II", 0x80211001, 64) + b"\0" * 56 + WIFI, 172, 140, 6),
        (163, struct.pack(">II", 0x80211001, 64) + b"\0" * 56 + WIFI, 172, 140, 6),
        (192, struct.pack("<BBHI", 0, 0, 8, 105) + WIFI, 172, 140, 6),
        (192, struct.pack("<BBHI", 0, 0, 264, 105) + b"\0" * 256 + WIFI, 172, 140, 6),
        (195, SENSOR + b"\x41" + udp6_packet(12) + b"\0\0", 72, 60, 17),
        (230, SENSOR + b"\x7a\x33 compressed", 22, 0, 0),
        (283, struct.pack("<HH", 0, 4) + SENSOR + b"\x41" + udp6_packet(12), 70, 60, 17),
        (283, struct.pack("<HH", 0, 260) + b"\0" * 256 + SENSOR + b"\x41" + udp6_packet(12), 70, 60, 17),
    ],
)
def test_every_link_type_gives_lengths_and_protocol(
    link_type: int, frame: bytes, frame_len: int, ip_len: int, proto: int
) -> None:
    result = links.dissect(link_type, frame, len(frame), Flows())
    assert result[:3] == (frame_len, ip_len, proto)
    assert result[3] != 0 and result[4] == 0
    assert link_type in links.NAMES


def test_a_flow_is_the_same_on_every_link_and_in_both_directions() -> None:
    flows = Flows()
    there = links.dissect(101, tcp_packet(0), 40, flows)
    back = links.dissect(105, wifi_data(2, SNAP_IP + tcp_packet(9, back=True)), 80, flows)
    assert there[3] == back[3]
    assert (there[4], back[4]) == (0, 1)


@pytest.mark.parametrize(
    ("flags", "fourth", "source", "destination"),
    [
        (0, b"", CLIENT, SERVER),
        (1, b"", CLIENT, ACCESS_POINT),
        (2, b"", ACCESS_POINT, SERVER),
        (3, b"\x02\0\0\0\0\x09", b"\x02\0\0\0\0\x09", ACCESS_POINT),
    ],
)
def test_wifi_frames_without_ip_count_by_sender_and_receiver(
    flags: int, fourth: bytes, source: bytes, destination: bytes
) -> None:
    flows = Flows()
    frame = wifi_data(flags | 0x40, b"secret", fourth=fourth)
    _, ip_len, proto, flow, direction = links.dissect(105, frame, len(frame), flows)
    assert (ip_len, proto, direction) == (0, 0, 0)
    assert flow == flows.of(0, destination, source)[0]


def test_frames_that_name_no_sender_have_no_flow() -> None:
    acknowledgement = b"\xd4\0\0\0" + CLIENT
    assert links.dissect(105, acknowledgement, 10, Flows()) == (10, 0, 0, 0, 0)
    assert links.dissect(127, radiotap(acknowledgement), 22, Flows()) == (10, 0, 0, 0, 0)
    assert links.dissect(195, b"\x02\x00\x07\0\0", 5, Flows()) == (5, 0, 0, 0, 0)


def test_a_radiotap_header_longer_than_the_frame_leaves_nothing() -> None:
    assert links.dissect(127, b"\0\0\xff\xff", 4, Flows()) == (0, 0, 0, 0, 0)


def test_frames_of_other_links_are_left_out_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "mixed"
    frames = [ETHERNET_IP + PACKET, b"what", radiotap(WIFI), b"ever"]
    file.write_bytes(pcapng(frames, links=(1, 147, 127, 147)))
    table = import_packets(file)
    assert table.frame_len.tolist() == [154, 172]
    assert table.ts_us.tolist() == [0, 3000]
    assert table.metadata["link"] == "802.11 with radiotap header, Ethernet"
    assert table.metadata["warning"].startswith("2 frames left out: link type 147 (USER0) is not supported; valid: ")


# --- TSH -------------------------------------------------------------------------------------------------------------


def test_tsh_records_are_packets(tmp_path: Path) -> None:
    file = tmp_path / "BWY.tsh"
    records = [tsh_record(999_999, tcp_packet(0)), tsh_record(1_000_500, tcp_packet(1460, back=True))]
    fragment = bytearray(tcp_packet(7))
    fragment[6:8] = struct.pack(">H", 185)
    file.write_bytes(b"".join([*records, tsh_record(1_000_600, bytes(fragment))]))
    table = import_packets(file)
    assert table.ts_us.tolist() == [0, 501, 601]
    assert table.ip_len.tolist() == table.frame_len.tolist() == [40, 1500, 47]
    assert table.proto.tolist() == [6, 6, 6]
    assert table.flow[0] == table.flow[1] != table.flow[2]
    assert table.dir.tolist() == [0, 1, 0]
    assert table.flow[0] == links.dissect(101, tcp_packet(0), 40, Flows())[3]


def test_a_cut_tsh_file_keeps_whole_records_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "cut"
    not_ip = tsh_record(5, b"\x60" + bytes(35))
    file.write_bytes(b"".join([tsh_record(number, tcp_packet(0)) for number in range(12)] + [not_ip]) + b"\0" * 43)
    table = import_packets(file)
    assert len(table) == 12
    assert table.metadata["warning"] == (
        "1 records without an IPv4 header left out; "
        "cut or damaged after packet 12 (the file ends inside a record); what came before is kept"
    )
    file.write_bytes(bytes(RECORD.itemsize * 3))
    with pytest.raises(HeapwrightError, match="holds no time-sequenced header"):
        import_packets(file, "tsh")


# --- CSV -------------------------------------------------------------------------------------------------------------


def test_csv_as_wireshark_exports_it(tmp_path: Path) -> None:
    file = tmp_path / "export.csv"
    file.write_text(
        '"No.","Time","Source","Destination","Protocol","Length","Info"\n'
        '"1","0.000000","192.0.2.1","192.0.2.2","TCP","66","a, b ""quoted"""\n'
        '"2","0.001500","192.0.2.2","192.0.2.1","TCP","1514","two\nlines"\n'
        '"3","0.002","192.0.2.9","192.0.2.1","ARP","60",""\n'
    )
    table = import_packets(file)
    assert table.ts_us.tolist() == [0, 1500, 2000]
    assert table.frame_len.tolist() == [66, 1514, 60]
    assert table.ip_len.tolist() == [0, 0, 0]
    assert table.proto.tolist() == [6, 6, 0]
    assert table.dir.tolist() == [0, 1, 0]
    assert table.flow[0] == table.flow[1] != table.flow[2]


@pytest.mark.parametrize(
    ("text", "times", "sizes"),
    [
        ("ts_us;ip_len\n5;40\n25;1500\n", [0, 20], [40, 1500]),
        ("frame.time_epoch\tip.len\n1700000000.25\t40\n1700000001.5\t52\n", [0, 1_250_000], [40, 52]),
        ("Timestamp,Size\n2024-01-01T00:00:00Z,40\n2024-01-01 00:00:02.500000,41\n", [0, 2_500_000], [40, 41]),
        ("time_ms,len,extra\n1.5,10\n2.5,20,x,y\n", [0, 1000], [10, 20]),
        ("\ufefftime,length\r\n2,10\r\n1,20\r\n", [0, 1_000_000], [20, 10]),
    ],
)
def test_csv_dialects(tmp_path: Path, text: str, times: list[int], sizes: list[int]) -> None:
    file = tmp_path / "packets.csv"
    file.write_bytes(text.encode())
    table = import_packets(file)
    assert table.ts_us.tolist() == times
    assert table.frame_len.tolist() == sizes


def test_csv_lines_without_a_packet_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "packets.csv"
    file.write_text("time,length\n0,40\nnoon,40\n1,\n2,-4\n\n3,99999999999\ninf,40\n4,1500\n")
    table = import_packets(file)
    assert table.frame_len.tolist() == [40, 1500]
    assert table.metadata["warning"] == "5 lines left out, the first of them line 3"


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "time,other\n1,2\n", "no header at all", "\n\n"])
def test_text_without_a_time_and_a_length_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "packets.csv"
    file.write_text(text)
    with pytest.raises(HeapwrightError, match="no header line that names a time and a length; valid: one of time,"):
        import_packets(file, "csv")
    with pytest.raises(HeapwrightError, match="no packet capture, TSH, CSV"):
        import_packets(file)


# --- profiles and synthetic traffic ----------------------------------------------------------------------------------


def packets_of(sizes: np.ndarray, ts_us: np.ndarray, flow: np.ndarray | None = None) -> PacketTable:
    ones = np.ones(len(sizes), np.uint32)
    return PacketTable(
        ts_us=ts_us.astype(np.int64),
        frame_len=(sizes + 14).astype(np.uint32),
        ip_len=sizes.astype(np.uint32),
        proto=np.full(len(sizes), 6, np.uint8),
        flow=ones if flow is None else flow.astype(np.uint32),
        dir=np.zeros(len(sizes), np.uint8),
    )


def test_stability_tells_the_shares_in_samples() -> None:
    sizes = np.array(([40] * 500 + [1500] * 500 + [40] * 900 + [1500] * 100) * 2)
    rows = statistics.stability(sizes, [40, 1500])
    assert [(row["packets"], row["samples"]) for row in rows] == [(1000, 4), (4000, 1)]
    forty = rows[0]["shares"][0]
    assert forty == pytest.approx(
        {"size": 40, "first": 0.5, "mean": 0.7, "deviation": 0.2, "smallest": 0.5, "largest": 0.9}
    )
    assert rows[1]["shares"][1]["mean"] == pytest.approx(0.3)
    assert statistics.stability(np.array([], np.int64), []) == []


def test_burstiness_knows_a_clock_from_poisson_from_bursts() -> None:
    random = np.random.default_rng(5)
    clock = statistics.burstiness(np.arange(100_000) * 1000)
    assert clock["interarrival_cv"] == 0 and clock["parameter"] == -1
    assert all(row["index"] < 1e-3 for row in clock["dispersion"])
    poisson = statistics.burstiness(np.cumsum(random.exponential(1000, 200_000)).astype(np.int64))
    assert poisson["interarrival_cv"] == pytest.approx(1, abs=0.02)
    assert [row["index"] for row in poisson["dispersion"][:4]] == pytest.approx([1] * 4, abs=0.15)
    bursts = statistics.burstiness(np.repeat(np.arange(1000) * 1_000_000, 100))
    assert bursts["parameter"] > 0.7
    assert bursts["dispersion"][0]["index"] == pytest.approx(100, rel=0.01)
    assert statistics.burstiness(np.zeros(5, np.int64))["interarrival_cv"] is None


def test_histogram_and_flows() -> None:
    assert statistics.histogram(np.array([0, 63, 64, 1500])) == [
        {"from": 0, "to": 64, "count": 2},
        {"from": 64, "to": 128, "count": 1},
        {"from": 1472, "to": 1536, "count": 1},
    ]
    table = packets_of(np.full(5, 40), np.arange(5), np.array([7, 7, 7, 9, 0]))
    result = statistics.flows(table)
    assert (result["flows"], result["top_flow_share"], result["forward_share"]) == (2, 0.6, 1.0)
    assert result["protocols"] == [{"proto": 6, "share": 1.0}]


def test_the_forward_share_is_one_of_the_packets_whose_flow_is_known() -> None:
    table = packets_of(np.full(4, 40), np.arange(4), np.array([0, 7, 7, 7]))
    table = dataclasses.replace(table, dir=np.array([0, 0, 1, 1], np.uint8))
    assert statistics.flows(table)["forward_share"] == pytest.approx(1 / 3), "the first packet has no flow"


def test_synthetic_traffic_depends_on_the_seed_alone() -> None:
    profile = profile_packets(packets_of(np.array([40, 1500] * 50), np.arange(100) ** 2), "p")
    first, again, other = (synthesise(profile, seed=seed) for seed in (1, 1, 2))
    assert len(first) == 100
    np.testing.assert_array_equal(first.ts_us, again.ts_us)
    np.testing.assert_array_equal(first.ip_len, again.ip_len)
    assert (first.ip_len != other.ip_len).any()


def test_synthetic_traffic_has_the_gaps_of_its_profile() -> None:
    profile = {"packets": 4000, "size_column": "ip_len", "sizes": [{"size": 40, "share": 1}], "seconds": 1, "flows": 2}
    for variation in (0, 1, 3):
        bursts = {"interarrival_mean_us": 500, "interarrival_cv": variation}
        output = statistics.burstiness(synthesise({**profile, "burstiness": bursts}, seed=3).ts_us)
        assert output["interarrival_cv"] == pytest.approx(variation, rel=0.2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sizes": []}, "shares must be positive"),
        ({"sizes": [{"size": 0, "share": 1}]}, "sizes must be 1 to"),
        ({"sizes": [{"size": (1 << 31) + 1, "share": 1}]}, "sizes must be 1 to"),
        ({"sizes": [{"size": 40, "share": -1}]}, "shares must be positive"),
        ({"packets": 0}, "0 packets; 1 to"),
        ({"flows": -1}, "-1 flows"),
        ({"seconds": 1e30}, "out of range"),
        ({"sizes": None}, "not iterable"),
    ],
)
def test_a_profile_that_no_network_has_is_refused(change: dict[str, object], says: str) -> None:
    profile = {"packets": 9, "size_column": "ip_len", "sizes": [{"size": 40, "share": 1}], "seconds": 1, "flows": 2}
    assert len(synthesise(profile)) == 9
    if "sizes" in change and change["sizes"] == []:
        says = "sizes must be 1 to"
    with pytest.raises(HeapwrightError, match=says):
        synthesise({**profile, **change})


def test_the_command_makes_labelled_synthetic_packets(tmp_path: Path) -> None:
    profile = profile_packets(packets_of(np.array([40, 1500] * 50), np.arange(100) * 7), "p")
    (tmp_path / "p.json").write_text(json.dumps(profile))
    output = tmp_path / "out.parquet"
    arguments = [str(tmp_path / "p.json"), "--count", "321", "--seed", "4", "-o", str(output)]
    result = CliRunner().invoke(heapwright, ["import", *arguments])
    assert result.exit_code == 0
    assert "321 packets" in result.stdout and "(synthetic)" in result.stdout and result.stderr == ""
    assert PacketTable.read(output).metadata["fitted_to"] == "p"


@pytest.mark.parametrize("data", [b"", b"PAR1 and so on", b"\x1f\x8b\x08 gzip", b"\0" * 500])
def test_files_that_hold_no_packets_are_one_clear_line(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    with pytest.raises(HeapwrightError) as raised:
        find_format(file)
    assert str(raised.value).startswith(str(file)) and "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["interarrival", "hold", "load"])
def test_times_of_poisson_are_within_a_thousand_million_seconds(name: str) -> None:
    given: dict[str, Any] = {name: 1e9}
    with pytest.raises(HeapwrightError, match=rf"{name}: 1e\+09: must be more than 0"):
        poisson(requests=10, **given)

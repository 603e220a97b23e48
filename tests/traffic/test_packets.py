"""Packet tables: round trip, validation, and the import of captures, whole and damaged."""

from __future__ import annotations

import io
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import dpkt
import duckdb
import numpy as np
import pytest
from captures import CLIENT, FRAMES, SERVER, block, pcap, pcapng, tcp_frame
from click.testing import CliRunner

from heapwright._cli import heapwright
from heapwright._support.errors import HeapwrightError
from heapwright._traffic import import_packets, packets
from heapwright._traffic.capture import import_capture
from heapwright._traffic.packets import COLUMNS, PacketTable

Load = Callable[[bytes], PacketTable]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(data: bytes) -> PacketTable:
        file = tmp_path / "capture"
        file.write_bytes(data)
        return import_capture(file)

    return load


def assert_is_frames(table: PacketTable) -> None:
    """`table` holds FRAMES: a handshake and an answer on one flow, then a second flow."""
    assert table.ts_us.tolist() == [0, 1500, 3000, 4500]
    assert table.frame_len.tolist() == [54, 54, 1054, 61]
    assert table.ip_len.tolist() == [40, 40, 1040, 47]
    assert table.proto.tolist() == [6] * 4
    assert table.dir.tolist() == [0, 1, 1, 0]
    first, second, third, other = table.flow.tolist()
    assert first == second == third != other
    assert first != 0 != other
    for name, (dtype, _) in COLUMNS.items():
        assert getattr(table, name).dtype == dtype


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1_000_000)])
def test_pcap_of_both_byte_orders_and_resolutions(load: Load, order: str, magic: int, unit: int) -> None:
    table = load(pcap(FRAMES, order, magic, unit=unit))
    assert_is_frames(table)
    assert table.metadata == {"source": "capture", "capture": "pcap", "link": "Ethernet"}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("resolution", [6, 9])
def test_pcapng_of_both_byte_orders_and_resolutions(load: Load, order: str, resolution: int) -> None:
    table = load(pcapng(FRAMES, order, resolution))
    assert_is_frames(table)
    assert table.metadata["capture"] == "pcapng"


def test_pcapng_resolution_as_a_power_of_two(load: Load) -> None:
    times = load(pcapng(FRAMES, resolution=0x80 | 20)).ts_us
    np.testing.assert_allclose(times, [0, 1500, 3000, 4500], atol=2)


def test_pcapng_as_dpkt_writes_it(load: Load) -> None:
    stream = io.BytesIO()
    writer = dpkt.pcapng.Writer(stream)
    for number, frame in enumerate(FRAMES):
        writer.writepkt(frame, 1_000.0 + number * 0.0015)
    assert_is_frames(load(stream.getvalue()))


def test_pcapng_of_several_interfaces_and_sections(load: Load) -> None:
    two_sections = pcapng(FRAMES[:2], "<", 6, (1, 1)) + pcapng(FRAMES[:2], ">", 9, (1,))
    table = load(two_sections)
    assert table.frame_len.tolist() == [54, 54, 54, 54]
    assert table.ts_us.tolist() == [0, 0, 1500, 1500]
    assert table.metadata["warning"] == "1 packet was stored after a later one; put in order of time"


def test_snap_length_keeps_the_length_on_the_wire(load: Load) -> None:
    table = load(pcap(FRAMES, snap=54))
    assert_is_frames(table)


@pytest.mark.parametrize(("write", "between"), [(pcap, 3), (pcapng, 7)])
def test_every_cut_keeps_what_was_read(load: Load, write: Callable[..., bytes], between: int) -> None:
    whole = write(FRAMES)
    kept, output = [], 0
    for length in range(len(whole)):
        try:
            table = load(whole[:length])
        except HeapwrightError:
            kept.append(0)
            continue
        kept.append(len(table))
        assert table.frame_len.tolist() == [54, 54, 1054, 61][: len(table)]
        output += "after packet" in table.metadata.get("warning", "")
    assert kept == sorted(kept)
    # Only a cut between two records (or blocks) looks like a shorter capture; every other one is reported.
    assert sum(count > 0 for count in kept) - output == between


def test_a_cut_inside_a_packet_says_so(load: Load) -> None:
    table = load(pcap(FRAMES)[:-1])
    assert len(table) == 3
    assert table.metadata["warning"] == (
        "cut or damaged after packet 3 (the file ends inside a record); what came before is kept"
    )


def test_a_length_no_capture_has_is_damage(load: Load) -> None:
    damaged = pcap(FRAMES[:1]) + struct.pack("<IIII", 1_700_000_000, 0, 0xFFFFFFF0, 60)
    table = load(damaged)
    assert len(table) == 1
    assert "4294967280 captured bytes" in table.metadata["warning"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a packet capture; a pcap or pcapng file (not compressed) is needed"),
        (b"\xd4\xc3", "not a packet capture; a pcap or pcapng file (not compressed) is needed"),
        (b"\x1f\x8b\x08\x00 and so on", "not a packet capture"),
        (b"PAR1 is another format", "not a packet capture"),
        (pcap([]), "no packet could be read (there is none in it)"),
        (pcap([])[:-3], "no packet could be read (the file ends inside a record)"),
        (pcapng([]), "no packet could be read (there is none in it)"),
        (
            pcap(FRAMES, link=147),
            "link type 147 (USER0) is not supported; valid: BSD loopback (0), Ethernet (1), raw IP",
        ),
        (pcap(FRAMES, ">", link=9), "link type 9 (PPP) is not supported; valid: "),
        (pcap(FRAMES, link=9999), "link type 9999 is not supported; valid: "),
        (pcapng(FRAMES, links=(189, 10)), "link type 189 (USB_LINUX) is not supported; valid: "),
        (pcapng(FRAMES)[:28], "no packet could be read (there is none in it)"),
        (pcapng([]) + block("<", 3, b"\0" * 64), "(a simple packet block carries no time)"),
        (pcapng([])[:28] + pcapng(FRAMES)[60:], "(a packet names interface 0, which the file does not describe)"),
        (b"\x0a\x0d\x0d\x0a" + b"\x1c\0\0\0" * 6, "(a section header has no byte-order mark)"),
    ],
)
def test_what_cannot_be_imported_is_one_clear_line(load: Load, data: bytes, says: str) -> None:
    with pytest.raises(HeapwrightError) as raised:
        load(data)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_frames_without_ip_count_by_their_mac_addresses(load: Load) -> None:
    arp = bytes(dpkt.ethernet.Ethernet(src=CLIENT, dst=b"\xff" * 6, type=dpkt.ethernet.ETH_TYPE_ARP, data=b"\0" * 46))
    spanning_tree = SERVER + CLIENT + struct.pack(">H", 38) + b"\x42\x42\x03" + b"\0" * 43
    answer = CLIENT + SERVER + struct.pack(">H", 0x88B5) + b"\0" * 46
    table = load(pcap([arp, spanning_tree, answer, b"\x01\x02\x03"]))
    assert table.frame_len.tolist() == [60, 60, 60, 3]
    assert table.ip_len.tolist() == table.proto.tolist() == [0, 0, 0, 0]
    broadcast, there, back, unknown = table.flow.tolist()
    assert there == back != broadcast != 0
    assert unknown == 0
    assert table.dir.tolist() == [0, 0, 1, 0]


def test_ipv6_vlan_fragments_and_offloaded_segments(load: Load) -> None:
    datagram = dpkt.udp.UDP(sport=5683, dport=5683, data=b"y" * 12)
    datagram.ulen = len(datagram)
    six = dpkt.ip6.IP6(src=b"\x20" + b"\0" * 15, dst=b"\x20" + b"\1" * 15, nxt=17, hlim=1, data=datagram, plen=20)
    ipv6 = bytes(dpkt.ethernet.Ethernet(src=CLIENT, dst=SERVER, type=0x86DD, data=six))
    plain = tcp_frame(100)
    tagged = plain[:12] + b"\x81\x00\x00\x05" + plain[12:]
    fragment = plain[:20] + struct.pack(">H", 185) + plain[22:]
    offloaded = plain[:16] + b"\0\0" + plain[18:]
    table = load(pcap([ipv6, plain, tagged, fragment, offloaded]))
    assert table.ip_len.tolist() == [60, 140, 140, 140, 140]
    assert table.proto.tolist() == [17, 6, 6, 6, 6]
    assert table.flow[1] == table.flow[2] == table.flow[4]
    assert len(set(table.flow.tolist())) == 3


def test_late_packets_are_put_in_order_of_time(load: Load) -> None:
    ordered = pcap(FRAMES)
    head, first = ordered[:24], ordered[24 : 24 + 16 + 54]
    table = load(head + ordered[24 + 16 + 54 :] + first)
    assert table.ts_us.tolist() == [0, 1500, 3000, 4500]
    assert table.frame_len.tolist() == [54, 54, 1054, 61]
    assert table.metadata["warning"] == "1 packet was stored after a later one; put in order of time"


# --- Parquet ---------------------------------------------------------------------------------------------------------


def some_table(count: int = 1000, **metadata: str) -> PacketTable:
    draw = np.random.default_rng(1)
    return PacketTable(
        ts_us=np.cumsum(draw.integers(0, 5000, count)),
        frame_len=draw.integers(0, 2**32, count, np.uint32),
        ip_len=draw.integers(0, 2**32, count, np.uint32),
        proto=draw.integers(0, 256, count, np.uint8),
        flow=draw.integers(0, 2**32, count, np.uint32),
        dir=draw.integers(0, 2, count, np.uint8),
        metadata=metadata,
    )


@pytest.mark.parametrize("name", ["packets.parquet", "it's [1]*.parquet"])
def test_round_trip(tmp_path: Path, name: str) -> None:
    table = some_table(link="Ethernet", note="it's {odd}: 'quoted'")
    table.write(tmp_path / name)
    again = PacketTable.read(tmp_path / name)
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(again, column), getattr(table, column))
        assert getattr(again, column).dtype == getattr(table, column).dtype
    assert again.metadata == {"format_version": "1", **table.metadata}
    assert os.listdir(tmp_path) == [name]


def test_writing_replaces_the_whole_file_or_nothing(tmp_path: Path) -> None:
    file = tmp_path / "packets.parquet"
    some_table(10).write(file)
    some_table(20).write(file)
    assert len(PacketTable.read(file)) == 20
    (tmp_path / "folder.parquet").mkdir()
    for target in ("folder.parquet", "missing/packets.parquet", "packets.parquet/packets.parquet"):
        with pytest.raises(HeapwrightError, match="cannot be written") as raised:
            some_table(5).write(tmp_path / target)
        assert "\n" not in str(raised.value)
    assert sorted(os.listdir(tmp_path)) == ["folder.parquet", "packets.parquet"]


@pytest.mark.parametrize(
    ("select", "says"),
    [
        ("SELECT 0 AS ts_us, 60 AS frame_len", "with columns ts_us, frame_len, ip_len, proto, flow, dir is needed"),
        ("SELECT 0 AS ts_us, -1 AS frame_len, 0 AS ip_len, 6 AS proto, 1 AS flow, 0 AS dir", "out of range"),
        ("SELECT 0 AS ts_us, NULL AS frame_len, 0 AS ip_len, 6 AS proto, 1 AS flow, 0 AS dir", "row 0: frame_len is"),
        ("SELECT 0 AS ts_us, 60 AS frame_len, 0 AS ip_len, 6 AS proto, 1 AS flow, 2 AS dir", "row 0: dir is 2; 0 or 1"),
        ("SELECT -5 AS ts_us, 60 AS frame_len, 0 AS ip_len, 6 AS proto, 1 AS flow, 0 AS dir", "row 0: ts_us is -5"),
        (
            "SELECT 5 - range AS ts_us, 60 AS frame_len, 0 AS ip_len, 6 AS proto, 1 AS flow, 0 AS dir FROM range(3)",
            "row 1: ts_us falls",
        ),
    ],
)
def test_reading_names_the_first_thing_wrong(tmp_path: Path, select: str, says: str) -> None:
    file = tmp_path / "packets.parquet"
    duckdb.sql(f"COPY ({select}) TO '{file}' (FORMAT parquet)")
    with pytest.raises(HeapwrightError) as raised:
        PacketTable.read(file)
    assert says in str(raised.value)
    assert str(raised.value).startswith(str(file))
    assert "\n" not in str(raised.value)


def test_cut_and_foreign_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "packets.parquet"
    some_table().write(file)
    whole = file.read_bytes()
    for data in (whole[: len(whole) // 2], whole[:3], b"", b"text"):
        file.write_bytes(data)
        with pytest.raises(HeapwrightError, match="not a packet table"):
            PacketTable.read(file)
    with pytest.raises(HeapwrightError, match="no such file"):
        PacketTable.read(tmp_path / "missing.parquet")


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "packets.parquet"
    some_table(3, format_version="2").write(file)
    with pytest.raises(HeapwrightError, match="version 2; this Heapwright reads 1"):
        PacketTable.read(file)


def test_columns_of_the_wrong_type_or_length_are_refused() -> None:
    good = some_table(3)
    columns = {name: getattr(good, name) for name in COLUMNS}
    with pytest.raises(HeapwrightError, match="column flow is int64"):
        PacketTable(**{**columns, "flow": columns["flow"].astype(np.int64)})
    with pytest.raises(HeapwrightError, match="column dir is uint8 of shape"):
        PacketTable(**{**columns, "dir": columns["dir"][:2]})


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_a_table_and_warns(tmp_path: Path) -> None:
    (tmp_path / "cut.pcap").write_bytes(pcap(FRAMES)[:-1])
    output = tmp_path / "out.parquet"
    result = CliRunner().invoke(heapwright, ["import", str(tmp_path / "cut.pcap"), "-o", str(output), "--json"])
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["packets"] == 3 == len(PacketTable.read(output))
    assert answer["path"] == str(output)
    assert "after packet 3" in answer["warning"]
    assert "after packet 3" in result.stderr


def test_the_command_refuses_other_formats(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(pcap(FRAMES))
    result = CliRunner().invoke(
        heapwright, ["import", str(tmp_path / "a.pcap"), "--format", "dhat", "-o", str(tmp_path / "out")]
    )
    assert result.exit_code == 2
    assert "'--format': 'dhat' is not one of 'text', 'board', 'valgrind', " in result.stderr
    with pytest.raises(HeapwrightError, match="format: 'mtrace' is no format of packets; valid: capture, tsh, csv, "):
        import_packets(tmp_path / "a.pcap", "mtrace")
    assert not (tmp_path / "out").exists()


def test_more_packets_than_are_read_are_refused_before_any_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.parquet"
    some_table(9).write(path)
    monkeypatch.setattr(packets, "MOST_PACKETS", 9)
    assert len(PacketTable.read(path)) == 9
    monkeypatch.setattr(packets, "MOST_PACKETS", 8)
    with pytest.raises(HeapwrightError, match=r"bomb.parquet: 9 packets; at most 8 are read$"):
        PacketTable.read(path)

"""Every importer on files that were right once: mutated, cut and joined, they are imported or refused in one line.

A run has INPUTS for each kind of packets and a quarter of them for each kind of log. `HEAPWRIGHT_FUZZ=400` runs 400
times as many: 100,000 of each kind of packets.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import resource
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from captures import (
    ACCESS_POINT,
    ETHERNET_IP,
    FRAMES,
    PACKET,
    SENSOR,
    SNAP_IP,
    WIFI,
    block,
    pcap,
    pcapng,
    radiotap,
    tcp_frame,
    tcp_packet,
    tsh_record,
    udp6_packet,
    wifi_data,
)
from heap_logs import LOGS, MORE_LOGS
from run_length import EFFORT, SEED, tell

from heapwright._support.errors import HeapwrightError
from heapwright._traces.logs import import_log
from heapwright._traffic import FORMATS, import_packets, links
from heapwright._traffic.packets import PacketTable
from heapwright._traffic.profile import profile_packets
from heapwright._traffic.rows import Flows

INPUTS = 250
FIRST = SEED * 1_000_000
HANGS_AFTER_SECONDS = 10

LINK_FRAMES = {
    0: [struct.pack("<I", 2) + PACKET, struct.pack(">I", 30) + udp6_packet(12)],
    1: [
        ETHERNET_IP + PACKET,
        tcp_frame(0)[:12] + b"\x81\0\0\x05\x86\xdd" + udp6_packet(12),
        tcp_frame(0)[:12] + b"\x88\x47" + b"\0\0\1\1" * 3 + tcp_frame(0)[14:],
    ],
    101: [PACKET, udp6_packet(12)],
    105: [WIFI, wifi_data(3, SNAP_IP + PACKET, fourth=ACCESS_POINT), wifi_data(1, SNAP_IP + PACKET, qos=True)],
    108: [struct.pack(">I", 2) + PACKET],
    113: [struct.pack(">HHH", 0, 1, 6) + b"\2\0\0\0\0\1\0\0\x08\0" + PACKET],
    119: [
        b"\x44\0\0\0\x90\0\0\0" + b"\0" * 136 + WIFI,
        struct.pack(">II", 0x80211001, 64) + b"\0" * 56 + WIFI,
    ],
    127: [radiotap(WIFI)],
    163: [struct.pack(">II", 0x80211001, 64) + b"\0" * 56 + WIFI],
    192: [struct.pack("<BBHI", 0, 0, 8, 105) + WIFI],
    195: [SENSOR + b"\x41" + udp6_packet(12) + b"\0\0", SENSOR + b"\x7a\x33 compressed"],
    276: [b"\x08\0\0\0\0\0\0\1\0\1\0\6" + b"\2\0\0\0\0\1\0\0" + PACKET],
    283: [struct.pack("<HH", 0, 4) + SENSOR + b"\x41" + udp6_packet(12)],
}
"""Frames of every kind of link layer, by the number of the link."""

PROFILE = PacketTable(
    ts_us=np.arange(15) * 9,
    frame_len=np.array([54, 1514, 66] * 5, np.uint32),
    ip_len=np.array([40, 1500, 52] * 5, np.uint32),
    proto=np.array([6, 17, 1] * 5, np.uint8),
    flow=np.array([1, 2, 3] * 5, np.uint32),
    dir=np.zeros(15, np.uint8),
)

SEEDS: dict[str, list[bytes]] = {
    "pcap": [
        pcap(FRAMES),
        pcap(FRAMES, ">", snap=60),
        pcap(FRAMES, "<", 0xA1B23C4D),
        pcap(FRAMES, "<", 0xA1B2CD34),
        *(pcap(frames * 2, link=link) for link, frames in LINK_FRAMES.items()),
    ],
    "pcapng": [
        pcapng(FRAMES),
        pcapng(FRAMES, ">", 9, (1, 1)),
        pcapng(FRAMES, "<", 0x80 | 30),
        pcapng(FRAMES[:2]) + pcapng(FRAMES[:2], ">", 9),
        pcapng([frame for frames in LINK_FRAMES.values() for frame in frames[:1]], links=tuple(LINK_FRAMES)),
        pcapng(FRAMES).replace(b"\x09\x00\x01\x00\x06", b"\x09\x00\x01\x00\x7f"),
        pcapng(FRAMES[:1]) + block("<", 6, b""),
    ],
    "tsh": [
        b"".join(tsh_record(number, tcp_packet(number)) for number in range(5)),
        b"".join(tsh_record(number * 1_000_000, tcp_packet(1460, back=True)) for number in range(12)) + b"\0" * 43,
    ],
    "csv": [
        b"time,length,ip_len,source,destination,proto\n0,54,40,a,b,6\n1.5,60,46,b,a,17\n2024-01-01,70,0,c,d,TCP\n",
        b"frame.time_epoch\tip.len\n1700000000.25\t40\n1700000001.5\t52\n",
        b'\xef\xbb\xbf"No.","Time","Length","Info"\r\n"1","0.0","66","a ""q"""\r\n"2","1","1514","two\r\nlines"',
        b"ts_us;ip_len;src;sport;dst;dport\n5;40;a;1;b;2\n25;1500;b;2;a;1\n",
    ],
    "profile": [json.dumps(profile_packets(PROFILE, "p"), separators=(",", ":")).encode()],
}
"""Valid files by kind."""

NUMBERS = [0, 1, 4, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 262_145, 1_000_000]
TOKENS = [b"9" * 30, b"-1", b"1e308", b"1e-320", b"NaN", b"Infinity", b"null", b"{}", b"[", b'"', b"\n", b"\r", b"\0",
          b",", b";", b"\t", b"2024-13-01", b"9999-12-31T23:59:59Z", b"\xff\xfe", b"\xc2\xb2", b"1_0"]  # fmt: skip


def mutate(draw: random.Random, seeds: list[bytes]) -> bytes:
    """One to eight changes of a seed; sometimes bytes of no format at all."""
    if draw.random() < 0.02:
        return draw.choice(seeds)[: draw.choice([0, 4, 24])] + draw.randbytes(draw.randrange(300))
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.choice([1, 1, 2, 3, 8])):
        at = draw.randrange(len(data) + 1)
        end = min(at + draw.choice([1, 2, 4, 16, 44, 200]), len(data))
        change = draw.randrange(10)
        if change == 0:
            data[at:end] = draw.randbytes(end - at)
        elif change == 1:
            data[at:at] = draw.randbytes(draw.randrange(40))
        elif change == 2:
            del data[at:end]
        elif change == 3:
            data[at : at + 4] = draw.choice(NUMBERS).to_bytes(4, draw.choice(["big", "little"]))
        elif change == 4:
            data[at : at + draw.randrange(8)] = draw.choice(TOKENS)
        elif change == 5:
            data[at:at] = data[at:end] * draw.choice([1, 2, 20])
        elif change == 6:
            other = draw.choice(seeds)
            data[at:] = other[draw.randrange(len(other) + 1) :]
        elif change == 7:
            del data[max(at, len(data) - 100) :]
        else:
            change_a_number(draw, data)
    return bytes(data)


def change_a_number(draw: random.Random, data: bytearray) -> None:
    """Put another number, or what is none, in place of one that is written in digits."""
    results = list(re.finditer(rb"-?\d+(\.\d+)?", data))
    if results:
        written = draw.choice(results)
        other = draw.choice([*TOKENS, *(str(number).encode() for number in NUMBERS), b"0.5", b"-0.0"])
        data[written.start() : written.end()] = other


@contextmanager
def watched(seconds: int) -> Iterator[None]:
    """Raise TimeoutError where the body takes more processor time."""

    def alarm(*_: object) -> None:
        raise TimeoutError(f"an input took more than {seconds} s of processor time")

    before = signal.signal(signal.SIGPROF, alarm)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def import_or_refuse(file: Path, data: bytes, format_name: str | None) -> bool:
    """Whether `data` is imported; a table that comes out is valid, a refusal is one line that names the file."""
    file.write_bytes(data)
    try:
        with watched(HANGS_AFTER_SECONDS):
            table = import_packets(file, format_name, count=20)
    except HeapwrightError as error:
        assert "\n" not in str(error)
        assert str(error).startswith(str(file))
        return False
    assert len(table) > 0
    assert table.ts_us[0] == 0
    assert (np.diff(table.ts_us) >= 0).all()
    assert (table.dir <= 1).all()
    return True


@pytest.mark.parametrize("kind", [*SEEDS, "any"])
def test_a_mutated_file_is_imported_or_refused(tmp_path: Path, kind: str) -> None:
    seeds = SEEDS.get(kind) or [seed for some in SEEDS.values() for seed in some]
    format_name = {"pcap": "capture", "pcapng": "capture", "any": None}.get(kind, kind)
    imported = 0
    for number in range(INPUTS * EFFORT):
        data = mutate(random.Random(f"{kind} {number + FIRST}"), seeds)
        try:
            imported += import_or_refuse(tmp_path / "file", data, format_name)
        except Exception as error:
            raise AssertionError(f"input {number} of {kind}: {data!r}") from error
    tell("packet files, at random", INPUTS * EFFORT)
    # Inputs of which all, or none, are refused would test little.
    assert 0.05 < imported / (INPUTS * EFFORT) < 0.99


LOG_SEEDS: dict[str, list[bytes]] = {
    name: [log if isinstance(log, bytes) else log.encode() for log in (LOGS[name], *MORE_LOGS.get(name, []))]
    for name in LOGS
}
MOST_BYTES = 1 << 29
"""What an import of a small log may take on top of what there is."""


def mutate_log(draw: random.Random, seeds: list[bytes]) -> bytes:
    """A seed that is changed as `mutate` does, and now and then as logs are damaged on their way."""
    data = mutate(draw, seeds)
    change = draw.randrange(12)
    if change == 0:
        lines = data.splitlines(keepends=True)
        draw.shuffle(lines)
        return b"".join(lines)
    if change == 1:
        return data.decode("latin-1").encode(draw.choice(["utf-16", "utf-16-be", "utf-8-sig", "cp500"]), "replace")
    if change == 2:
        at = draw.randrange(len(data) + 1)
        run = draw.choice([b"\0", b"9", b"f", b" ", b"(", b"a b ", b"0x", b"1 ", b"[0]", b"\xff"])
        return data[:at] + run * draw.choice([100, 3000, 40_000]) + data[at:]
    if change == 3:
        return data.replace(b"\n", draw.choice([b"\r\n", b"\r", b"", b"\n\n", b"\0\n"]))
    return data


@contextmanager
def bounded(most: int) -> Iterator[None]:
    """Let the body raise MemoryError where it takes more address space than `most` bytes on top of what there is."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("name", [*LOGS, "any"])
def test_a_mutated_log_is_imported_or_refused(tmp_path: Path, name: str) -> None:
    seeds = LOG_SEEDS.get(name) or [seed for some in LOG_SEEDS.values() for seed in some]
    imported, file, inputs = 0, tmp_path / "file", INPUTS * EFFORT // 4
    with bounded(MOST_BYTES):
        for number in range(inputs):
            data = mutate_log(random.Random(f"{name} {number + FIRST}"), seeds)
            file.write_bytes(gzip.compress(data, 1)[: -number % 40 or None] if number % 8 == 0 else data)
            try:
                with watched(HANGS_AFTER_SECONDS):
                    trace = import_log(file, None if name == "any" else name)
            except HeapwrightError as error:
                assert "\n" not in str(error), (number, data)
                assert str(error).startswith(str(file))
                continue
            except Exception as error:
                raise AssertionError(f"input {number} of {name}: {data[:2000]!r}") from error
            assert len(trace) > 0
            imported += 1
    tell("logs, at random", inputs)
    assert 0.05 < imported / inputs < 0.999


@pytest.mark.parametrize("format_name", [None, *FORMATS])
def test_every_cut_of_a_file_is_imported_or_refused(tmp_path: Path, format_name: str | None) -> None:
    for seed in (seeds[0] for seeds in SEEDS.values()):
        for length in range(0, len(seed), 1 if EFFORT > 1 else 7):
            import_or_refuse(tmp_path / "file", seed[:length], format_name)


def test_any_bytes_on_any_link_are_a_frame() -> None:
    frames = [frame for of_link in LINK_FRAMES.values() for frame in of_link]
    for number in range(INPUTS * EFFORT):
        draw = random.Random(f"frame {number}")
        frame = mutate(draw, frames)
        wire_len = len(frame) + draw.choice([0, 0, 1000])
        result = links.dissect(draw.choice(list(links.NAMES)), frame, wire_len, Flows())
        frame_len, ip_len, proto, flow, direction = result
        assert 0 <= frame_len <= wire_len, (number, result)
        assert 0 <= ip_len < 1 << 32 and 0 <= proto < 256 and 0 <= flow < 1 << 32 and direction in (0, 1)


def test_any_frame_counts_as_a_packet(tmp_path: Path) -> None:
    starts = (b"", ETHERNET_IP[:12], ETHERNET_IP + b"\x45", ETHERNET_IP[:12] + b"\x86\xdd\x60")
    for number in range(INPUTS * EFFORT // 10):
        draw = random.Random(f"frames {number}")
        frames = [draw.choice(starts) + draw.randbytes(draw.randint(1, 120)) for _ in range(draw.randint(1, 4))]
        (tmp_path / "file").write_bytes(pcap(frames))
        table = import_packets(tmp_path / "file")
        assert table.frame_len.tolist() == list(map(len, frames))
        assert "warning" not in table.metadata

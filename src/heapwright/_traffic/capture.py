"""Captures: pcap and pcapng files of any supported link type, whole, cut or damaged, become packet tables."""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from dpkt import pcap, pcapng
from dpkt.dpkt import UnpackError

from heapwright._support.errors import HeapwrightError
from heapwright._support.remote import read_from
from heapwright._traffic import links
from heapwright._traffic.packets import PacketTable
from heapwright._traffic.rows import DamageError, Flows, Rows

# What libpcap accepts at most; a larger length in a file is damage, not a reason to ask for that much memory.
_MAX_CAPTURED = 262_144
_MAX_BLOCK = 16 * 1024 * 1024


class CapturedFrame(NamedTuple):
    """One captured frame: nanoseconds since the epoch, bytes on the wire, bytes captured, link type."""

    nanoseconds: int
    wire_len: int
    data: bytes
    link_type: int


def is_capture(start: bytes) -> bool:
    """Whether a file that starts with these bytes (4 are enough) is a pcap or pcapng capture."""
    magic = int.from_bytes(start[:4], "big")
    return len(start) >= 4 and (magic in pcap.MAGIC_TO_PKT_HDR or magic == pcapng.PCAPNG_BT_SHB)


def import_capture(path: str | os.PathLike[str]) -> PacketTable:
    """Read a pcap or pcapng capture; `heapwright._traffic.links.NAMES` lists the link types.

    Both byte orders, micro- and nanoseconds and captures with a snap length are read; frame_len is the length on the
    link. Packets are put in order of time. A file that is cut or damaged keeps the packets before the damage, frames of
    other link types are left out, and metadata["warning"] says so. Fragments of an IP datagram after the first carry
    no ports: they form a flow of their own, per pair of addresses.

    Raises:
        HeapwrightError: the file is empty or no capture, no link type in it is supported, or it holds no packet.
    """
    name = os.fspath(path)
    rows, flows = Rows(), Flows()
    seen: Counter[int] = Counter()
    damage = ""
    with read_from(Path(name)).open("rb") as stream:
        start = stream.read(4)
        stream.seek(0)
        if not is_capture(start):
            raise HeapwrightError(f"{name}: not a packet capture; a pcap or pcapng file (not compressed) is needed")
        kind = "pcapng" if int.from_bytes(start, "big") == pcapng.PCAPNG_BT_SHB else "pcap"
        try:
            for frame in _pcapng_frames(stream) if kind == "pcapng" else _pcap_frames(stream):
                seen[frame.link_type] += 1
                if frame.link_type in links.NAMES:
                    rows.add(frame.nanoseconds, links.dissect(frame.link_type, frame.data, frame.wire_len, flows))
        except (DamageError, UnpackError, struct.error, ValueError, OverflowError) as error:
            damage = " ".join(str(error).split()) or type(error).__name__
    used = _check_links(name, seen, rows)
    if damage and rows.nanoseconds:
        rows.damaged(damage)
    elif damage:
        rows.warnings.append(damage)
    return rows.table(name, {"source": Path(name).name, "capture": kind, "link": ", ".join(used)})


def _check_links(name: str, seen: Counter[int], rows: Rows) -> list[str]:
    """Names of the link types read; what was left out becomes a warning, or an error where it was all."""
    foreign = [link_type for link_type in seen if link_type not in links.NAMES]
    if foreign and not rows.nanoseconds:
        raise HeapwrightError(f"{name}: {links.unsupported(foreign[0])}")
    for link_type in foreign:
        rows.warnings.append(f"{seen[link_type]} frames left out: {links.unsupported(link_type)}")
    return sorted({links.NAMES[link_type] for link_type in seen if link_type in links.NAMES})


def _read_exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise DamageError("the file ends inside a record")
    return data


def _pcap_frames(stream: IO[bytes]) -> Iterator[CapturedFrame]:
    start = _read_exactly(stream, pcap.FileHdr.__hdr_len__)
    magic = pcap.FileHdr(start).magic
    little = magic in (pcap.PMUDPCT_MAGIC, pcap.PMUDPCT_MAGIC_NANO, pcap.PACPDOM_MAGIC)
    header = pcap.LEFileHdr(start) if little else pcap.FileHdr(start)
    # The upper half of the field may hold the length of a frame check sequence.
    link_type = header.linktype & 0xFFFF
    record_type = pcap.MAGIC_TO_PKT_HDR[magic]
    unit = 1 if magic in (pcap.TCPDUMP_MAGIC_NANO, pcap.PMUDPCT_MAGIC_NANO) else 1000
    while stream.peek(1):  # type: ignore[attr-defined]
        record = record_type(_read_exactly(stream, record_type.__hdr_len__))
        if record.caplen > max(_MAX_CAPTURED, header.snaplen):
            raise DamageError(f"a record claims {record.caplen} captured bytes")
        data = _read_exactly(stream, record.caplen)
        nanoseconds = record.tv_sec * 1_000_000_000 + record.tv_usec * unit
        yield CapturedFrame(nanoseconds, max(record.len, record.caplen), data, link_type)


def _pcapng_frames(stream: IO[bytes]) -> Iterator[CapturedFrame]:
    little = False
    interfaces: list[_Interface] = []
    while stream.peek(1):  # type: ignore[attr-defined]
        start = _read_exactly(stream, 8)
        section = int.from_bytes(start[:4], "big") == pcapng.PCAPNG_BT_SHB
        if section:
            start += _read_exactly(stream, 4)
            little = _byte_order(start[8:12])
            interfaces = []
        order = "little" if little else "big"
        kind, length = (int.from_bytes(start[at : at + 4], order) for at in (0, 4))  # type: ignore[arg-type]
        if not 12 <= length <= _MAX_BLOCK:
            raise DamageError(f"a block claims {length} bytes")
        block = start + _read_exactly(stream, length - len(start))
        if kind == pcapng.PCAPNG_BT_IDB:
            interfaces.append(_Interface.parse(block, little))
        elif kind in (pcapng.PCAPNG_BT_EPB, pcapng.PCAPNG_BT_PB):
            yield _frame_of_block(block, kind, little, interfaces)
        elif kind == pcapng.PCAPNG_BT_SPB:
            raise DamageError("a simple packet block carries no time")


def _byte_order(mark: bytes) -> bool:
    value = int.from_bytes(mark, "big")
    if value not in (pcapng.BYTE_ORDER_MAGIC, pcapng.BYTE_ORDER_MAGIC_LE):
        raise DamageError("a section header has no byte-order mark")
    return bool(value == pcapng.BYTE_ORDER_MAGIC_LE)


@dataclass(frozen=True)
class _Interface:
    """One interface of a pcapng section: link type, clock ticks a second, seconds to add to every time."""

    link_type: int
    ticks: int = 1_000_000
    offset: int = 0

    @classmethod
    def parse(cls, block: bytes, little: bool) -> _Interface:
        parsed = (pcapng.InterfaceDescriptionBlockLE if little else pcapng.InterfaceDescriptionBlock)(block)
        ticks, offset = cls.ticks, cls.offset
        for option in parsed.opts:
            if option.code == pcapng.PCAPNG_OPT_IF_TSRESOL and option.data:
                # The top bit chooses the base: 2 or 10; the rest is the negative exponent.
                base = 2 if option.data[0] & 0x80 else 10
                ticks = base ** int(option.data[0] & 0x7F)
            elif option.code == pcapng.PCAPNG_OPT_IF_TSOFFSET:
                offset = int.from_bytes(option.data[:8], "little" if little else "big", signed=True)
        return cls(parsed.linktype, ticks, offset)


def _frame_of_block(block: bytes, kind: int, little: bool, interfaces: list[_Interface]) -> CapturedFrame:
    if kind == pcapng.PCAPNG_BT_EPB:
        packet = (pcapng.EnhancedPacketBlockLE if little else pcapng.EnhancedPacketBlock)()
    else:
        packet = (pcapng.PacketBlockLE if little else pcapng.PacketBlock)()
    packet.unpack_hdr(block)
    data_at = packet.__hdr_len__ - 4  # dpkt counts the trailing length as header
    if packet.iface_id >= len(interfaces):
        raise DamageError(f"a packet names interface {packet.iface_id}, which the file does not describe")
    if data_at + packet.caplen > len(block) - 4:
        raise DamageError(f"a packet claims {packet.caplen} captured bytes in a block of {len(block)}")
    interface = interfaces[packet.iface_id]
    ticks = packet.ts_high << 32 | packet.ts_low
    nanoseconds = ticks * 1_000_000_000 // interface.ticks + interface.offset * 1_000_000_000
    if not -(1 << 62) <= nanoseconds < 1 << 62:
        raise DamageError("a time is out of range")
    data = block[data_at : data_at + packet.caplen]
    return CapturedFrame(nanoseconds, max(packet.pkt_len, packet.caplen), data, interface.link_type)

"""Packet tables: the packets a network carried, one row each, and their import from capture files."""

from __future__ import annotations

import os
import struct
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from dpkt import pcap, pcapng
from dpkt.dpkt import Packet, UnpackError
from dpkt.ethernet import Ethernet
from dpkt.ip import IP
from dpkt.ip6 import IP6
from numpy.typing import NDArray

from heapwright import parquet
from heapwright.errors import HeapwrightError

FORMAT_VERSION = "1"

# Column -> (numpy dtype, DuckDB type), in the order of the file.
COLUMNS: dict[str, tuple[Any, str]] = {
    "ts_us": (np.int64, "BIGINT"),
    "frame_len": (np.uint32, "UINTEGER"),
    "ip_len": (np.uint32, "UINTEGER"),
    "proto": (np.uint8, "UTINYINT"),
    "flow": (np.uint32, "UINTEGER"),
    "dir": (np.uint8, "UTINYINT"),
}


@dataclass(frozen=True, eq=False)
class PacketTable:
    """The packets of one network, in order of arrival; every column has shape (packets,).

    Attributes:
        ts_us: int64, microseconds since the first packet, never falling.
        frame_len: uint32, bytes of the link-layer frame as it was on the wire.
        ip_len: uint32, IP total length in bytes, 0 where the frame carries no IP.
        proto: uint8, IP protocol number (for IPv6 the one after the extension headers), 0 where none.
        flow: uint32, hash of the unordered 5-tuple, or of the pair of MAC addresses; 0 where unknown.
        dir: uint8, which end of the flow sent it; an import gives 0 to the sender of the flow's first packet.
        metadata: text by key, as in the Parquet file; "warning" tells what an import had to leave out.
    """

    ts_us: NDArray[np.int64]
    frame_len: NDArray[np.uint32]
    ip_len: NDArray[np.uint32]
    proto: NDArray[np.uint8]
    flow: NDArray[np.uint32]
    dir: NDArray[np.uint8]
    metadata: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (dtype, _) in COLUMNS.items():
            column = getattr(self, name)
            if column.dtype != dtype or column.shape != (len(self.ts_us),):
                raise HeapwrightError(
                    f"packet table: column {name} is {column.dtype} of shape {column.shape}; "
                    f"{np.dtype(dtype)} of shape ({len(self.ts_us)},) is needed"
                )

    def __len__(self) -> int:
        return len(self.ts_us)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PacketTable:
        """Read and validate a packet table.

        Raises:
            HeapwrightError: the file is missing, no Parquet, cut short, lacks a column, or holds values out of range.
        """
        import duckdb

        name = os.fspath(path)
        if not os.path.isfile(name):
            raise HeapwrightError(f"{name}: no such file; a packet table (Parquet) is needed")
        columns = ", ".join(f'"{column}"::{kind} AS "{column}"' for column, (_, kind) in COLUMNS.items())
        try:
            with duckdb.connect() as connection:
                found = connection.execute(f"SELECT {columns} FROM {parquet.source(Path(name))}").fetchnumpy()
                metadata = parquet.metadata(connection, Path(name))
        except duckdb.Error as error:
            raise HeapwrightError(
                f"{name}: not a packet table: {_first_line(error)}; Parquet with columns {', '.join(COLUMNS)} is needed"
            ) from error
        _validate(name, found)
        version = metadata.setdefault("format_version", FORMAT_VERSION)
        if version != FORMAT_VERSION:
            raise HeapwrightError(f"{name}: packet table version {version}; this Heapwright reads {FORMAT_VERSION}")
        return cls(**found, metadata=metadata)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet, whole or not at all: a reader never sees half a file.

        Raises:
            HeapwrightError: the folder cannot be written, or the disk is full; a file that was there before is kept.
        """
        rows = {column: getattr(self, column) for column in COLUMNS}
        parquet.write(Path(path), rows, {"format_version": FORMAT_VERSION, **self.metadata})


def import_capture(path: str | os.PathLike[str]) -> PacketTable:
    """Read a pcap or pcapng capture of Ethernet frames.

    Both byte orders, micro- and nanoseconds and captures with a snap length are read; frame_len is the length on the
    wire. Packets are put in order of time. A file that is cut or damaged keeps the packets before the damage, and
    metadata["warning"] says so. Fragments of an IP datagram after the first carry no ports: they form a flow of
    their own, per pair of addresses.

    Raises:
        HeapwrightError: the file is empty or no capture, its link type is not supported, or it holds no packet.
    """
    name = os.fspath(path)
    columns = {column: array(np.dtype(dtype).char) for column, (dtype, _) in COLUMNS.items() if column != "ts_us"}
    times = array("q")
    flows = _Flows()
    damage = ""
    with open(name, "rb") as stream:
        kind, frames = _open_capture(name, stream)
        try:
            for nanoseconds, frame_len, data in frames:
                row = _dissect(data, frame_len, flows)
                times.append(nanoseconds)
                for column, value in zip(columns.values(), (frame_len, *row), strict=True):
                    column.append(value)
        except (_DamageError, UnpackError, struct.error, ValueError, OverflowError) as error:
            damage = _first_line(error) or type(error).__name__
    if not times:
        raise HeapwrightError(f"{name}: no packet could be read ({damage or 'the capture is empty'}); one is needed")
    warnings = [f"cut or damaged after packet {len(times)} ({damage}); what came before is kept"] if damage else []
    return _in_order_of_time(times, columns, warnings, {"source": Path(name).name, "capture": kind, "link": "Ethernet"})


# --- capture files ---------------------------------------------------------------------------------------------------

# (nanoseconds since the epoch, bytes on the wire, bytes captured)
_Frame = tuple[int, int, bytes]

# What libpcap accepts at most; a larger length in a file is damage, not a reason to ask for that much memory.
_MAX_CAPTURED = 262_144
_MAX_BLOCK = 16 * 1024 * 1024


class _DamageError(Exception):
    """The capture cannot be followed any further."""


def _open_capture(name: str, stream: IO[bytes]) -> tuple[str, Iterator[_Frame]]:
    start = stream.read(4)
    stream.seek(0)
    if not start:
        raise HeapwrightError(f"{name}: the file is empty; a pcap or pcapng capture is needed")
    magic = int.from_bytes(start, "big")
    if len(start) == 4 and magic in pcap.MAGIC_TO_PKT_HDR:
        return "pcap", _pcap_frames(name, stream)
    if len(start) == 4 and magic == pcapng.PCAPNG_BT_SHB:
        return "pcapng", _pcapng_frames(name, stream)
    raise HeapwrightError(f"{name}: not a packet capture; pcap and pcapng (not compressed) are supported")


def _check_link_type(name: str, link_type: int) -> None:
    if link_type == pcap.DLT_EN10MB:
        return
    names = [key[4:] for key, value in vars(pcap).items() if key.startswith("DLT_") and value == link_type]
    known = f" ({names[0]})" if names else ""
    raise HeapwrightError(f"{name}: link type {link_type}{known} is not supported; Ethernet (1) is")


def _read_exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise _DamageError("the file ends inside a record")
    return data


def _pcap_frames(name: str, stream: IO[bytes]) -> Iterator[_Frame]:
    start = _read_exactly(stream, pcap.FileHdr.__hdr_len__)
    magic = pcap.FileHdr(start).magic
    little = magic in (pcap.PMUDPCT_MAGIC, pcap.PMUDPCT_MAGIC_NANO, pcap.PACPDOM_MAGIC)
    header = pcap.LEFileHdr(start) if little else pcap.FileHdr(start)
    # The upper half of the field may tell the length of a frame check sequence.
    _check_link_type(name, header.linktype & 0xFFFF)
    record_type = pcap.MAGIC_TO_PKT_HDR[magic]
    unit = 1 if magic in (pcap.TCPDUMP_MAGIC_NANO, pcap.PMUDPCT_MAGIC_NANO) else 1000
    while stream.peek(1):  # type: ignore[attr-defined]
        record = record_type(_read_exactly(stream, record_type.__hdr_len__))
        if record.caplen > max(_MAX_CAPTURED, header.snaplen):
            raise _DamageError(f"a record claims {record.caplen} captured bytes")
        data = _read_exactly(stream, record.caplen)
        yield record.tv_sec * 1_000_000_000 + record.tv_usec * unit, max(record.len, record.caplen), data


def _pcapng_frames(name: str, stream: IO[bytes]) -> Iterator[_Frame]:
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
            raise _DamageError(f"a block claims {length} bytes")
        block = start + _read_exactly(stream, length - len(start))
        if kind == pcapng.PCAPNG_BT_IDB:
            interfaces.append(_Interface.parse(block, little))
        elif kind in (pcapng.PCAPNG_BT_EPB, pcapng.PCAPNG_BT_PB):
            yield _packet_of_block(name, block, kind, little, interfaces)
        elif kind == pcapng.PCAPNG_BT_SPB:
            raise _DamageError("a simple packet block carries no time")


def _byte_order(mark: bytes) -> bool:
    value = int.from_bytes(mark, "big")
    if value not in (pcapng.BYTE_ORDER_MAGIC, pcapng.BYTE_ORDER_MAGIC_LE):
        raise _DamageError("a section header has no byte-order mark")
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


def _packet_of_block(name: str, block: bytes, kind: int, little: bool, interfaces: list[_Interface]) -> _Frame:
    if kind == pcapng.PCAPNG_BT_EPB:
        packet = (pcapng.EnhancedPacketBlockLE if little else pcapng.EnhancedPacketBlock)()
    else:
        packet = (pcapng.PacketBlockLE if little else pcapng.PacketBlock)()
    packet.unpack_hdr(block)
    data_at = packet.__hdr_len__ - 4  # dpkt counts the trailing length as header
    if packet.iface_id >= len(interfaces):
        raise _DamageError(f"a packet names interface {packet.iface_id}, which the file does not describe")
    if data_at + packet.caplen > len(block) - 4:
        raise _DamageError(f"a packet claims {packet.caplen} captured bytes in a block of {len(block)}")
    interface = interfaces[packet.iface_id]
    _check_link_type(name, interface.link_type)
    ticks = packet.ts_high << 32 | packet.ts_low
    nanoseconds = ticks * 1_000_000_000 // interface.ticks + interface.offset * 1_000_000_000
    if not -(1 << 62) <= nanoseconds < 1 << 62:
        raise _DamageError("a time is out of range")
    return nanoseconds, max(packet.pkt_len, packet.caplen), block[data_at : data_at + packet.caplen]


def _in_order_of_time(
    times: array[int], columns: dict[str, array[int]], warnings: list[str], metadata: dict[str, str]
) -> PacketTable:
    nanoseconds = np.frombuffer(times, np.int64)
    late = int(np.count_nonzero(nanoseconds[1:] < nanoseconds[:-1]))
    order = np.argsort(nanoseconds, kind="stable")
    if late:
        warnings.append(f"{late} packets were stored after a later one; put in order of time")
    table = {column: np.frombuffer(values, COLUMNS[column][0])[order] for column, values in columns.items()}
    ordered = nanoseconds[order]
    if warnings:
        metadata = {**metadata, "warning": "; ".join(warnings)}
    return PacketTable(ts_us=(ordered - ordered[0]) // 1000, **table, metadata=metadata)


# --- frames ----------------------------------------------------------------------------------------------------------


class _Flows:
    """Numbers flows by a hash of both ends; the end that is seen sending first has direction 0."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes, bytes], tuple[int, int]] = {}

    def of(self, proto: int, source: bytes, destination: bytes) -> tuple[int, int]:
        """Return (flow, dir) of a packet between two ends, each its address followed by its port."""
        found = self._known.get((proto, source, destination))
        if found is None:
            first, second = sorted((source, destination))
            flow = zlib.crc32(bytes([proto]) + first + second) or 1  # 0 says unknown
            found = self._known[proto, source, destination] = (flow, 0)
            self._known.setdefault((proto, destination, source), (flow, 1))
        return found


def _dissect(data: bytes, frame_len: int, flows: _Flows) -> tuple[int, int, int, int]:
    """Return (ip_len, proto, flow, dir) of one Ethernet frame, of which `data` was captured."""
    try:
        frame = Ethernet(data)
        layer = frame.data
        while isinstance(layer, Packet) and not isinstance(layer, (IP, IP6)):
            layer = layer.data
    except Exception:
        # Dissectors meet whatever a network carried, and fail on it in many ways. The frame was there all the same.
        return 0, 0, 0, 0
    if not isinstance(layer, (IP, IP6)):
        return 0, 0, *flows.of(0, frame.src, frame.dst)
    header = 0 if isinstance(layer, IP) else layer.__hdr_len__
    ip_len = layer.len + header if isinstance(layer, IP) else layer.plen + header
    if ip_len == header:
        # Segmentation offload: the sender's stack left the length to the network card.
        ip_len = frame_len - frame.__hdr_len__ - 4 * len(getattr(frame, "vlan_tags", ()))
    ends = (
        address + int(getattr(layer.data, port, 0)).to_bytes(2, "big")
        for address, port in ((layer.src, "sport"), (layer.dst, "dport"))
    )
    return ip_len, layer.p, *flows.of(layer.p, *ends)


# --- Parquet ---------------------------------------------------------------------------------------------------------


def _validate(name: str, found: dict[str, Any]) -> None:
    for column, values in found.items():
        if np.ma.is_masked(values):
            row = int(np.argmax(np.ma.getmaskarray(values)))
            raise HeapwrightError(f"{name}: row {row}: {column} is missing; every column needs a value")
        found[column] = np.ma.getdata(values)
    times = found["ts_us"]
    if len(times) and times[0] < 0:
        raise HeapwrightError(f"{name}: row 0: ts_us is {times[0]}; times count up from 0")
    late = np.flatnonzero(times[1:] < times[:-1])
    if len(late):
        raise HeapwrightError(f"{name}: row {late[0] + 1}: ts_us falls; packets must be in order of time")
    wrong = np.flatnonzero(found["dir"] > 1)
    if len(wrong):
        raise HeapwrightError(f"{name}: row {wrong[0]}: dir is {found['dir'][wrong[0]]}; 0 or 1 is valid")


def _first_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).strip().split("\n", 1)[0]

"""Packets as text: CSV with a header line that names a time and a length column, as tshark and Wireshark write it."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import IO

from heapwright._support.errors import HeapwrightError
from heapwright._support.remote import read_from
from heapwright._traffic.packets import PacketTable
from heapwright._traffic.rows import Flows, Rows

TIMES = {
    **dict.fromkeys(("time", "timestamp", "ts", "seconds", "time_s", "ts_s", "date", "datetime"), 1e9),
    **dict.fromkeys(("frame.time_epoch", "frame.time_relative", "frame.time"), 1e9),
    **dict.fromkeys(("time_ms", "ts_ms", "timestamp_ms", "milliseconds"), 1e6),
    **dict.fromkeys(("time_us", "ts_us", "timestamp_us", "microseconds"), 1e3),
    **dict.fromkeys(("time_ns", "ts_ns", "timestamp_ns", "nanoseconds"), 1.0),
}
"""Names of time columns (case does not matter), with the nanoseconds in their unit."""
FRAME_LENGTHS = ("frame_len", "frame.len", "length", "len", "size", "bytes", "packet_len", "packet_length", "pktlen")
IP_LENGTHS = ("ip_len", "ip.len", "ip_length", "ip_size")
_SOURCES = (("source", "src", "ip.src", "src_ip", "saddr"), ("sport", "src_port", "tcp.srcport", "srcport"))
_DESTINATIONS = (("destination", "dst", "ip.dst", "dst_ip", "daddr"), ("dport", "dst_port", "tcp.dstport", "dstport"))
_PROTOCOLS = ("proto", "ip.proto", "protocol")
_NUMBERS = {"ICMP": 1, "TCP": 6, "UDP": 17, "ICMPV6": 58, "SCTP": 132}
_OF_A_HEAP = re.compile(r"free|heap|largest|address|^addr$|ptr|pointer|alloc")
"""Part of a column's name that marks the table as one of a heap, for any names of its other columns."""
_MAX_LINE = 1 << 20


def is_text_table(start: bytes) -> bool:
    """Whether a file that starts with these bytes (some thousand) is CSV with a time and a length column."""
    line = start.split(b"\n", 1)[0].decode("utf-8-sig", "replace")
    cells = _split(line)
    return "\0" not in line and _Columns.find(cells) is not None and not any(map(_OF_A_HEAP.search, cells))


def import_csv(path: str | os.PathLike[str]) -> PacketTable:
    """Read CSV (separated by comma, semicolon or tab) with a header line.

    Needed are a time (a name in TIMES; numbers, or dates in ISO 8601) and a length (FRAME_LENGTHS or IP_LENGTHS);
    source, destination, their ports and protocol are used where there are such columns. A length of the IP packet alone
    is also taken for frame_len; of the frame alone, ip_len is 0. Lines without a usable time and length are left out,
    and metadata["warning"] counts them and names the first.

    Raises:
        HeapwrightError: no such header line, or no line could be used.
    """
    name = os.fspath(path)
    rows = Rows()
    with read_from(Path(name)).open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        header = stream.readline(_MAX_LINE)
        columns = _Columns.find(_split(header))
        if columns is None:
            raise HeapwrightError(
                f"{name}: no header line that names a time and a length; valid: one of {', '.join(TIMES)} and one of "
                f"{', '.join((*FRAME_LENGTHS, *IP_LENGTHS))}"
            )
        left_out = _read(stream, _delimiter(header), columns, rows)
    if left_out:
        rows.warnings.append(f"{len(left_out)} lines left out, the first of them line {left_out[0]}")
    return rows.table(name, {"source": Path(name).name, "capture": "CSV", "link": "none recorded"})


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


def _split(line: str) -> list[str]:
    try:
        cells = next(csv.reader([line], delimiter=_delimiter(line)), [])
    except csv.Error:
        return []
    return [cell.strip().lower() for cell in cells]


class _Columns:
    """Where the columns are that a packet is made of."""

    def __init__(self, header: Sequence[str], time: int, frame_len: int | None, ip_len: int | None) -> None:
        self.time, self.unit = time, TIMES[header[time]]
        self.frame_len, self.ip_len = frame_len, ip_len
        self.ends = [[_position(header, names) for names in end] for end in (_SOURCES, _DESTINATIONS)]
        self.proto = _position(header, _PROTOCOLS)

    @classmethod
    def find(cls, header: Sequence[str]) -> _Columns | None:
        time = _position(header, tuple(TIMES))
        lengths = _position(header, FRAME_LENGTHS), _position(header, IP_LENGTHS)
        return None if time is None or lengths == (None, None) else cls(header, time, *lengths)

    def packet(self, cells: Sequence[str], flows: Flows) -> tuple[int, tuple[int, int, int, int, int]]:
        """Nanoseconds and row of a line. Raises ValueError, IndexError or OverflowError where it holds no packet."""
        nanoseconds = _nanoseconds(cells[self.time], self.unit)
        ip_len = int(_cell(cells, self.ip_len) or 0)
        frame_len = int(cells[self.frame_len]) if self.frame_len is not None else ip_len
        if frame_len <= 0:
            raise ValueError("no length")
        proto = _cell(cells, self.proto)
        number = int(proto) & 0xFF if proto.isdecimal() and len(proto) < 4 else _NUMBERS.get(proto.upper(), 0)
        source, destination = (" ".join(_cell(cells, column) for column in end).strip().encode() for end in self.ends)
        known = flows.of(number, source, destination) if source and destination else (0, 0)
        return nanoseconds, (frame_len, ip_len, number, *known)


def _position(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _cell(cells: Sequence[str], column: int | None) -> str:
    return cells[column].strip() if column is not None and column < len(cells) else ""


def _nanoseconds(text: str, unit: float) -> int:
    try:
        value = float(text) * unit
    except ValueError:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        value = (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1e9
    if not math.isfinite(value) or abs(value) >= 1 << 62:
        raise ValueError("a time out of range")
    return round(value)


def _read(stream: IO[str], delimiter: str, columns: _Columns, rows: Rows) -> list[int]:
    """Add every usable line; return the numbers of those that are not."""
    flows = Flows()
    left_out = []
    for number, cells in _lines(stream, delimiter, rows):
        try:
            rows.add(*columns.packet(cells, flows))
        except (ValueError, IndexError, OverflowError):
            if cells:
                left_out.append(number)
    return left_out


def _lines(stream: IO[str], delimiter: str, rows: Rows) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of every line behind the header, up to one that is no CSV."""
    reader = csv.reader(stream, delimiter=delimiter)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            rows.damaged(f"line {reader.line_num + 1}: {error}")
            return
        yield reader.line_num + 1, cells

"""Packet tables: the packets a network carried, one row each. `heapwright._traffic` makes them of capture files."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._support import database, parquet
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._support.remote import read_from

FORMAT_VERSION = "1"
MOST_PACKETS = 1 << 26
"""Packets that are read, some 2 GB of them: a file of some kilobytes may say that it holds more."""

_SEGMENT_HEADERS = 40
"""Bytes of IP and TCP headers that each segment of a joined packet has."""

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
        metadata: text by key, as in the Parquet file; "warning" lists what an import skipped.
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

    def __repr__(self) -> str:
        return f"<PacketTable: {len(self):,} packets, {int(self.frame_len.sum()):,} B on the wire>"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PacketTable:
        """Read and validate a packet table.

        Raises:
            HeapwrightError: the file is missing, no Parquet, cut short, lacks a column, or holds values out of range.
        """
        name = os.fspath(path)
        if not read_from(Path(name)).is_file():
            raise HeapwrightError(f"{name}: no such file; a packet table (Parquet) is needed")
        columns = ", ".join(f'"{column}"::{kind} AS "{column}"' for column, (_, kind) in COLUMNS.items())
        try:
            with database.reaching(Path(name)) as connection:
                rows = parquet.rows(connection, Path(name))
                if rows > MOST_PACKETS:
                    raise HeapwrightError(f"{name}: {rows:,} packets; at most {MOST_PACKETS:,} are read")
                result = connection.execute(f"SELECT {columns} FROM {parquet.source(Path(name))}").fetchnumpy()
                metadata = parquet.metadata(connection, Path(name))
        except database.Error as error:
            reason = "" if "Binder Error" in str(error) else f" ({str(error).splitlines()[0]})"  # a column is missing
            needs = f"Parquet with columns {', '.join(COLUMNS)} is needed"
            raise HeapwrightError(f"{name}: not a packet table{reason}; {needs}") from error
        _validate(name, result)
        version = metadata.setdefault("format_version", FORMAT_VERSION)
        if version != FORMAT_VERSION:
            raise HeapwrightError(f"{name}: packet table version {version}; this Heapwright reads {FORMAT_VERSION}")
        return cls(**result, metadata=metadata)

    def closing_gaps(self, longest: float) -> PacketTable:
        """The packets with each gap cut to at most `longest` seconds, which `metadata` keeps as "longest_gap".

        For concatenated captures: the gaps between them say nothing about a link's load, and workloads leave them out.

        Raises:
            ParameterError: `longest` is not above 0.
        """
        if not longest > 0:
            raise ParameterError(f"{longest:g}: must be more than 0 seconds", parameter="longest_gap")
        gaps = np.minimum(np.diff(self.ts_us), np.int64(longest * 1e6))
        times = np.concatenate([self.ts_us[:1], self.ts_us[:1] + np.cumsum(gaps)])
        return replace(self, ts_us=times, metadata={**self.metadata, "longest_gap": f"{longest:g}"})

    def segmented(self, mtu: int) -> PacketTable:
        """The packets with each IP packet above `mtu` bytes cut into packets of at most that size.

        Hosts whose network card joins segments (GRO, TSO) capture packets that no link carries. The parts come at the
        time of the whole, and each repeats the headers of the link, and 40 bytes of IP and TCP. `metadata`
        keeps "mtu", and in "segmented" how many packets were cut.

        Raises:
            ParameterError: `mtu` is below 68, the least that IP requires of a link (RFC 791), or above 65,535.
        """
        if not 68 <= mtu <= 0xFFFF:
            raise ParameterError(f"{mtu}: 68 to 65535 is valid", parameter="mtu")
        ip = self.ip_len.astype(np.int64)
        data, room = ip - _SEGMENT_HEADERS, mtu - _SEGMENT_HEADERS
        parts = np.where(ip > mtu, -(-data // room), 1)
        whole = np.repeat(np.arange(len(self)), parts)
        part = np.arange(len(whole)) - np.repeat(np.cumsum(parts) - parts, parts)
        last = part == parts[whole] - 1
        cut = parts[whole] > 1
        part_ip = np.where(cut, np.where(last, data[whole] - part * room + _SEGMENT_HEADERS, mtu), ip[whole])
        frame = self.frame_len.astype(np.int64)[whole] - ip[whole] + part_ip
        columns = {name: getattr(self, name)[whole] for name in ("ts_us", "proto", "flow", "dir")}
        columns |= {"ip_len": part_ip.astype(np.uint32), "frame_len": frame.astype(np.uint32)}
        count = int(np.count_nonzero(parts > 1))
        info = {"mtu": str(mtu)} | ({"segmented": str(count)} if count else {})
        return replace(self, **columns, metadata={**self.metadata, **info})

    @property
    def digest(self) -> str:
        """Digest of the columns: equal for equal packets."""
        result = hashlib.sha256()
        for name in COLUMNS:
            result.update(np.ascontiguousarray(getattr(self, name)).data)
        return result.hexdigest()[:16]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet, whole or not at all: a reader never sees half a file.

        Raises:
            HeapwrightError: the folder cannot be written, or the disk is full; a file that was there before is kept.
        """
        rows = {column: getattr(self, column) for column in COLUMNS}
        parquet.write(Path(path), rows, {"format_version": FORMAT_VERSION, **self.metadata})


def _validate(name: str, result: dict[str, Any]) -> None:
    for column, values in result.items():
        if np.ma.is_masked(values):
            row = int(np.argmax(np.ma.getmaskarray(values)))
            raise HeapwrightError(f"{name}: row {row}: {column} is missing; every column needs a value")
        result[column] = np.ma.getdata(values)
    times = result["ts_us"]
    if len(times) and times[0] < 0:
        raise HeapwrightError(f"{name}: row 0: ts_us is {times[0]}; times count up from 0")
    late = np.flatnonzero(times[1:] < times[:-1])
    if len(late):
        raise HeapwrightError(f"{name}: row {late[0] + 1}: ts_us falls; packets must be in order of time")
    wrong = np.flatnonzero(result["dir"] > 1)
    if len(wrong):
        raise HeapwrightError(f"{name}: row {wrong[0]}: dir is {result['dir'][wrong[0]]}; 0 or 1 is valid")

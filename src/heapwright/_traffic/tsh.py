"""Time-sequenced headers: the format of NLANR's passive measurements, 44 bytes a packet.

A record, in network byte order: seconds (4 bytes), interface (1), microseconds (3), the IPv4 header without options
(20), the first 16 bytes of the transport header.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heapwright._support.errors import HeapwrightError
from heapwright._support.remote import read_from
from heapwright._traffic.packets import PacketTable
from heapwright._traffic.rows import Flows, Rows

RECORD = np.dtype(
    [
        ("seconds", ">u4"),
        ("interface_microseconds", ">u4"),
        ("version_header", "u1"),
        ("service", "u1"),
        ("ip_len", ">u2"),
        ("identification", ">u2"),
        ("fragment", ">u2"),
        ("time_to_live", "u1"),
        ("proto", "u1"),
        ("checksum", ">u2"),
        ("source", "S4"),
        ("destination", "S4"),
        ("source_port", ">u2"),
        ("destination_port", ">u2"),
        ("rest", "V12"),
    ]
)
_FRAGMENT_OFFSET = 0x1FFF
_WITH_PORTS = (6, 17, 132)


def is_tsh(start: bytes) -> bool:
    """Whether a file that starts with these bytes (up to 100 records) holds time-sequenced headers."""
    records = np.frombuffer(start[: len(start) // RECORD.itemsize * RECORD.itemsize][: 100 * RECORD.itemsize], RECORD)
    return len(records) > 0 and bool(_valid(records)[0]) and float(_valid(records).mean()) >= 0.9


def import_tsh(path: str | os.PathLike[str]) -> PacketTable:
    """Read a file of time-sequenced headers; frame_len is ip_len, because the link is not recorded.

    A last record that is cut, and records that hold no IPv4 header, are left out, and metadata["warning"] says so.

    Raises:
        HeapwrightError: the file holds no such record.
    """
    name = os.fspath(path)
    data = read_from(Path(name)).read_bytes()
    count, rest = divmod(len(data), RECORD.itemsize)
    records = np.frombuffer(data, RECORD, count)
    valid = _valid(records)
    if not valid.any():
        raise HeapwrightError(f"{name}: holds no time-sequenced header; 44 bytes a packet with an IPv4 header are")
    rows = Rows()
    if not valid.all():
        rows.warnings.append(f"{np.count_nonzero(~valid)} records without an IPv4 header left out")
    _add(records[valid], rows)
    if rest:
        rows.damaged("the file ends inside a record")
    return rows.table(name, {"source": Path(name).name, "capture": "TSH", "link": "none recorded"})


def _valid(records: NDArray[np.void]) -> NDArray[np.bool_]:
    plausible: NDArray[np.bool_] = (records["version_header"] >> 4 == 4) & (records["version_header"] & 15 >= 5)
    return plausible & (_microseconds(records) < 1_000_000) & (records["ip_len"] >= 20)


def _microseconds(records: NDArray[np.void]) -> NDArray[np.int64]:
    return records["interface_microseconds"].astype(np.int64) & 0xFFFFFF


def _add(records: NDArray[np.void], rows: Rows) -> None:
    flows = Flows()
    nanoseconds = (records["seconds"].astype(np.int64) * 1_000_000 + _microseconds(records)) * 1000
    ported = np.isin(records["proto"], _WITH_PORTS) & (records["fragment"] & _FRAGMENT_OFFSET == 0)
    ends = [
        # numpy drops trailing zero bytes of text of one width, and addresses may end in them
        [address.ljust(4, b"\0") + port.to_bytes(2, "big") for address, port in zip(*columns, strict=True)]
        for columns in (
            (records["source"].tolist(), np.where(ported, records["source_port"], 0).tolist()),
            (records["destination"].tolist(), np.where(ported, records["destination_port"], 0).tolist()),
        )
    ]
    columns = (nanoseconds.tolist(), records["ip_len"].tolist(), records["proto"].tolist(), *ends)
    for time, ip_len, proto, source, destination in zip(*columns, strict=True):
        rows.add(time, (ip_len, ip_len, proto, *flows.of(proto, source, destination)))

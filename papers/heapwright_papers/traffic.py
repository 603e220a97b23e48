"""The real traffic of the pages: packet tables of a folder, which of them are what they seem, and their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from heapwright import HeapwrightError, PacketTable

if TYPE_CHECKING:
    from heapwright import Trace

LAID = frozenset({"ics_plant_mix", "ndpi_apps", "qut_s7_2016", "suricata_mix", "zeek_mix"})
"""Tables that are several captures laid end to end: their mix of sizes is real, their long-range timing is not."""
MARK = "†"
PACKET_COLUMNS = ("ts_us", "frame_len", "ip_len", "proto", "flow", "dir")
TRACE_COLUMNS = ("ts_us", "tid", "op", "id", "size")
LONGEST_GAP = 1.0
"""Seconds to which the gaps of tables in LAID are closed: no load is computed over a pause between two captures."""

FOOTNOTE = f"""\
{MARK} Several captures laid end to end: the mix of sizes is real, the long-range timing is not. Gaps above
{LONGEST_GAP:g} s are closed to that, and no load is computed over them."""


def packet_tables(folder: Path | None) -> dict[str, PacketTable]:
    """All packet tables of a folder by file stem, in the order of their names; in those of LAID gaps are closed.

    None where no folder is given. Raises HeapwrightError where there is no packet table in it, or one cannot be read.
    """
    if folder is None:
        return {}
    if not folder.is_dir():
        raise HeapwrightError(f"{folder}: no such folder; one with packet tables (Parquet) is needed")
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise HeapwrightError(f"{folder}: holds no packet table (*.parquet); `heapwright import` makes them")
    return {file.stem: _real(file) for file in files}


def _real(file: Path) -> PacketTable:
    table = PacketTable.read(file)
    return table.closing_gaps(LONGEST_GAP) if file.stem in LAID else table


def marked(name: str) -> str:
    """The name of a network as tables and captions show it."""
    return f"{name}{MARK}" if name in LAID else name


def has_ip(table: PacketTable) -> bool:
    """Whether any of its packets shows an IP length; recordings of encrypted 802.11 show none."""
    return bool(table.ip_len.any())


def digest(traffic: PacketTable | Trace, columns: Sequence[str] = ()) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of these columns' bytes, by default of all that replays use."""
    names = columns or (PACKET_COLUMNS if isinstance(traffic, PacketTable) else TRACE_COLUMNS)
    whole = hashlib.sha256()
    for name in names:
        whole.update(np.ascontiguousarray(getattr(traffic, name)).tobytes())
    return whole.hexdigest()[:12]

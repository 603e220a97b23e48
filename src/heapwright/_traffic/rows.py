"""What every importer of packets fills: rows that become a packet table."""

from __future__ import annotations

import zlib
from array import array
from dataclasses import dataclass, field

import numpy as np

from heapwright._support.errors import HeapwrightError
from heapwright._traffic.packets import COLUMNS, PacketTable

_VALUES = [column for column in COLUMNS if column != "ts_us"]


class DamageError(Exception):
    """The file cannot be followed any further; what was read so far is kept."""


@dataclass
class Rows:
    """Packets as they are read, and warnings about them.

    Attributes:
        nanoseconds: the packets' times, in any order, since any epoch.
        columns: the other columns of a packet table by name.
        warnings: what was left out, in words.
    """

    nanoseconds: array[int] = field(default_factory=lambda: array("q"))
    columns: dict[str, array[int]] = field(
        default_factory=lambda: {column: array(np.dtype(COLUMNS[column][0]).char) for column in _VALUES}
    )
    warnings: list[str] = field(default_factory=list)

    def add(self, nanoseconds: int, row: tuple[int, int, int, int, int]) -> None:
        """Append one packet: its time, and (frame_len, ip_len, proto, flow, dir).

        Raises OverflowError where a value does not fit its column; nothing is appended then.
        """
        for value, values in zip(row, self.columns.values(), strict=True):
            if not 0 <= value < 1 << 8 * values.itemsize:
                raise OverflowError(f"{value} does not fit {8 * values.itemsize} bits")
        self.nanoseconds.append(nanoseconds)
        for value, values in zip(row, self.columns.values(), strict=True):
            values.append(value)

    def damaged(self, reason: str, unit: str = "packet") -> None:
        """Note that reading ended early."""
        self.warnings.append(
            f"cut or damaged after {unit} {len(self.nanoseconds)} ({reason}); what came before is kept"
        )

    def table(self, name: str, metadata: dict[str, str]) -> PacketTable:
        """Put the packets in order of time; the warnings go into the metadata.

        Raises:
            HeapwrightError: there is no packet; the message lists the warnings.
        """
        if not self.nanoseconds:
            reason = "; ".join(self.warnings) or "there is none in it"
            raise HeapwrightError(f"{name}: no packet could be read ({reason}); one is needed")
        nanoseconds = np.frombuffer(self.nanoseconds, np.int64)
        late = int(np.count_nonzero(nanoseconds[1:] < nanoseconds[:-1]))
        if late:
            are = "packet was" if late == 1 else "packets were"
            self.warnings.append(f"{late} {are} stored after a later one; put in order of time")
        order = np.argsort(nanoseconds, kind="stable")
        columns = {key: np.frombuffer(values, COLUMNS[key][0])[order] for key, values in self.columns.items()}
        ordered = nanoseconds[order]
        if self.warnings:
            metadata = {**metadata, "warning": "; ".join(self.warnings)}
        return PacketTable(ts_us=(ordered - ordered[0]) // 1000, **columns, metadata=metadata)


class Flows:
    """Numbers flows by a hash of both ends; the end that is seen sending first has direction 0."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes, bytes], tuple[int, int]] = {}

    def of(self, proto: int, source: bytes, destination: bytes) -> tuple[int, int]:
        """Return (flow, dir) of a packet between two ends, each its address followed by its port."""
        result = self._known.get((proto, source, destination))
        if result is None:
            first, second = sorted((source, destination))
            flow = zlib.crc32(bytes([proto]) + first + second) or 1  # 0 says unknown
            result = self._known[proto, source, destination] = (flow, 0)
            self._known.setdefault((proto, destination, source), (flow, 1))
        return result

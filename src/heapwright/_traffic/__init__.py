"""Traffic: files of packets become packet tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright._support.errors import HeapwrightError, ParameterError

if TYPE_CHECKING:
    from heapwright._traffic.packets import PacketTable

FORMATS = ("capture", "tsh", "csv", "profile")
"""capture: pcap and pcapng; tsh: time-sequenced headers; csv: text with a time and a length column; profile: what
`heapwright profile PACKETS --json` prints, of which synthetic packets are made."""

_START = 1 << 16


def import_packets(
    path: str | os.PathLike[str], format_name: str | None = None, count: int | None = None, seed: int = 0
) -> PacketTable:
    """Read a file of packets; metadata["warning"] lists what was skipped.

    Args:
        path: the file.
        format_name: one of FORMATS, None to find it by the file's first bytes.
        count, seed: for a profile, see `heapwright._traffic.synthetic.synthesise`.

    Raises:
        HeapwrightError: the format is not known, or the file holds nothing of it that could be used.
    """
    from heapwright._traffic import capture, synthetic, text, tsh

    if format_name is None:
        format_name = find_format(path)
    elif format_name not in FORMATS:
        raise ParameterError(
            f"{format_name!r} is no format of packets; valid: {', '.join(FORMATS)}", parameter="format"
        )
    if format_name == "capture":
        return capture.import_capture(path)
    if format_name == "tsh":
        return tsh.import_tsh(path)
    if format_name == "csv":
        return text.import_csv(path)
    return synthetic.import_profile(path, count, seed)


def find_format(path: str | os.PathLike[str]) -> str:
    """The format of a file of packets, by its first bytes.

    Raises:
        HeapwrightError: the file is empty, or of no format of FORMATS.
    """
    from heapwright._support.kinds import first_bytes
    from heapwright._traffic import capture, synthetic, text, tsh

    start = first_bytes(Path(path), _START)
    name = os.fspath(path)
    if not start:
        raise HeapwrightError(f"{name}: the file is empty; pcap, pcapng, TSH or CSV is needed")
    for format_name, matches in zip(
        FORMATS, (capture.is_capture, tsh.is_tsh, text.is_text_table, synthetic.is_profile), strict=True
    ):
        if matches(start):
            return format_name
    raise HeapwrightError(
        f"{name}: no log of heap calls in a known format (docs/logs.md; patterns read other wordings), no packet "
        "capture, TSH, CSV of packets with a time and a length column, or profile (these uncompressed); heapwright "
        f"diagnose reads telemetry, counters and snapshots; formats of packets: {', '.join(FORMATS)}",
        parameter="format",
    )

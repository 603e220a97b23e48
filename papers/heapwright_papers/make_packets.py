"""Packet tables from the public captures that `papers/packets.toml` names, and whether they are those of the pages.

    python -m heapwright_papers.make_packets papers/packets.toml DIR

downloads the captures of each table, compares their SHA-256, imports them as `heapwright import` does, several in order
of time, writes DIR/NAME.parquet, and says of each table whether it agrees. Of a table whose captures were laid end to
end, or are no captures, no list is kept: it is named, and left out.
"""

from __future__ import annotations

import hashlib
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from heapwright import HeapwrightError, PacketTable, import_packets
from heapwright_papers.traffic import digest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TIMEOUT = 60
"""Seconds that a server may take to answer."""
_CAPTURES = (".pcap", ".pcapng", ".cap")
_BYTE_ORDER = {b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">"}
"""Of a pcap file with microseconds, by its first bytes."""
_HEADER, _RECORD = 24, 16
"""Bytes of a pcap file's header, and of the header of each packet."""


def sizes_digest(table: PacketTable) -> str:
    """The digest of times, sizes and protocols alone.

    Flows are numbers that each importer chooses, and `dir` hangs on them: tables that differ in these alone have the
    same sizes at the same times, of which all pages but those about flows are made.
    """
    return digest(table, ("ts_us", "frame_len", "ip_len", "proto"))


def compared(table: PacketTable, told: Mapping[str, Any]) -> str:
    """In words, how a table compares with what `packets.toml` says of it; it begins with "agrees" where it does."""
    if digest(table) == told["digest"]:
        return "agrees"
    if sizes_digest(table) == told.get("sizes"):
        return "agrees in times, sizes and protocols; flows are numbered otherwise"
    if len(table) != told["packets"]:
        warning = f" ({table.metadata['warning']})" if "warning" in table.metadata else ""
        return f"differs: {len(table):,} packets for {told['packets']:,}{warning}"
    return f"differs: digest {digest(table)} for {told['digest']}, {sizes_digest(table)} for {told.get('sizes', '–')}"


def fetch(url: str, folder: Path, sha256: str) -> Path:
    """Download a file, out of its archive where that is a ZIP of one capture.

    Raises HeapwrightError, with the URL, where it cannot be had whole, or is another than when `sha256` was taken.
    """
    file = folder / Path(urlsplit(url).path).name
    try:
        with urlopen(url, timeout=TIMEOUT) as answer, file.open("wb") as out:
            shutil.copyfileobj(answer, out)
            info = answer.headers.get("Content-Length")
        if info and file.stat().st_size != int(info):
            raise HeapwrightError(f"{url}: cut off after {file.stat().st_size:,} of {int(info):,} bytes")
        if hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
            raise HeapwrightError(f"{url}: is another file now: its SHA-256 is not {sha256[:12]}...")
        return _unpacked(file, folder) if zipfile.is_zipfile(file) else file
    except (OSError, HTTPException, zipfile.BadZipFile) as error:
        reason = getattr(error, "reason", error)
        raise HeapwrightError(f"{url}: cannot be downloaded: {reason}") from error


def _unpacked(file: Path, folder: Path) -> Path:
    with zipfile.ZipFile(file) as archive:
        inside = [name for name in archive.namelist() if name.lower().endswith(_CAPTURES)]
        if len(inside) != 1:
            raise HeapwrightError(f"{file.name}: holds {len(inside)} captures; one is needed")
        return Path(archive.extract(inside[0], folder))


def joined(files: Sequence[Path], output: Path) -> Path:
    """Write one pcap file with the packets of several, in order of time; a single file is returned as it is.

    Raises HeapwrightError for a file that is no pcap with microseconds, or of another link than the first.
    """
    if len(files) == 1:
        return files[0]
    packets, links = list[tuple[int, int, int, bytes]](), set[int]()
    for file in files:
        data = file.read_bytes()
        order = _BYTE_ORDER.get(data[:4])
        if order is None or len(data) < _HEADER:
            raise HeapwrightError(f"{file.name}: is no pcap with microseconds, which alone can be joined")
        links.add(struct.unpack_from(f"{order}I", data, 20)[0])
        at = _HEADER
        while at + _RECORD <= len(data):
            seconds, micros, kept, length = struct.unpack_from(f"{order}4I", data, at)
            packets.append((seconds, micros, length, data[at + _RECORD : at + _RECORD + kept]))
            at += _RECORD + kept
    if len(links) != 1:
        raise HeapwrightError(f"{files[0].name}: the captures are of {len(links)} kinds of links; one is needed")
    packets.sort(key=lambda packet: packet[:2])
    with output.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, links.pop()))
        for seconds, micros, length, content in packets:
            out.write(struct.pack("<4I", seconds, micros, len(content), length) + content)
    return output


def make(named: Mapping[str, Mapping[str, Any]], folder: Path, report: Callable[[str], None]) -> bool:
    """Make each table that has `files`, and report a line of each.

    Args:
        named: what `packets.toml` holds: by the table's name its `packets`, `digest`, `sizes`, the URL `captures`, and
            the names and SHA-256 of `files` there.
        folder: where the tables are written, made where there is none.
        report: is called with each line.

    Returns whether all that were made agree, and some were.
    """
    folder.mkdir(parents=True, exist_ok=True)
    agree = []
    for name, info in named.items():
        if "files" not in info:
            report(f"{name}: not made; no capture is named for it: {info['from']}")
            continue
        try:
            with TemporaryDirectory() as there:
                files = [fetch(info["captures"] + file, Path(there), sha256) for file, sha256 in info["files"]]
                table = import_packets(joined(files, Path(there) / "joined"))
            table.write(folder / f"{name}.parquet")
            result = compared(table, info)
        except HeapwrightError as error:
            result = f"not made; {error}"
        agree.append(result.startswith("agrees"))
        report(f"{name}: {result}")
    return all(agree) and bool(agree)


def main(arguments: Sequence[str]) -> int:
    """Run as a command; returns 0, 1 where a table cannot be made or differs, and 2 for wrong arguments."""
    if len(arguments) != 2:
        print("usage: python -m heapwright_papers.make_packets PACKETS.TOML FOLDER", file=sys.stderr)
        return 2
    try:
        named = tomllib.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"{arguments[0]}: cannot be read: {error}", file=sys.stderr)
        return 1
    return 0 if make(named, Path(arguments[1]), print) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

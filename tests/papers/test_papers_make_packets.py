"""Packet tables made from captures: which agree with their declaration, and what is said if none can be made."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from captures import FRAMES, pcap
from networks import network

from heapwright._support.errors import HeapwrightError
from heapwright._traffic import import_packets
from heapwright_papers import make_packets
from heapwright_papers.make_packets import compared, fetch, main, make, sizes_digest
from heapwright_papers.traffic import digest, packet_tables

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAMED = Path(__file__).parents[2] / "papers" / "packets.toml"


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    file = tmp_path / "seen.pcap"
    file.write_bytes(pcap(FRAMES))
    return file


def told(file: Path, **changes: Any) -> dict[str, Any]:
    """What packets.toml would declare of a capture."""
    table = import_packets(file)
    known = {"packets": len(table), "digest": digest(table), "sizes": sizes_digest(table)}
    return {**known, "from": "a test", **place(file), **changes}


def place(*files: Path) -> dict[str, Any]:
    """Where packets.toml would say that these captures of a folder are."""
    hashes = [[file.name, hashlib.sha256(file.read_bytes()).hexdigest()] for file in files]
    return {"captures": f"{files[0].parent.as_uri()}/", "files": hashes}


def made(named: dict[str, dict[str, Any]], folder: Path) -> tuple[bool, list[str]]:
    lines: list[str] = []
    return make(named, folder, lines.append), lines


def test_a_capture_becomes_the_table_of_its_name_and_agrees(capture: Path, tmp_path: Path) -> None:
    agree, lines = made({"seen": told(capture)}, tmp_path / "tables")
    assert agree and lines == ["seen: agrees"]
    assert {name: digest(item) for name, item in packet_tables(tmp_path / "tables").items()} == {
        "seen": told(capture)["digest"]
    }


def test_flows_that_are_numbered_otherwise_are_told_and_other_sizes_differ(capture: Path, tmp_path: Path) -> None:
    other = {"digest": "0" * 12}
    assert made({"seen": told(capture, **other)}, tmp_path) == (
        True,
        ["seen: agrees in times, sizes and protocols; flows are numbered otherwise"],
    )
    agree, lines = made({"seen": told(capture, sizes="1" * 12, **other)}, tmp_path)
    right = told(capture)
    assert not agree
    assert lines == [f"seen: differs: digest {right['digest']} for {'0' * 12}, {right['sizes']} for {'1' * 12}"]


def test_sizes_are_told_apart_and_flows_are_not() -> None:
    table = network(1, True)
    table.flow[:] = table.flow[::-1].copy()
    assert sizes_digest(table) == sizes_digest(network(1, True)) and digest(table) != digest(network(1, True))
    table.ip_len[0] += 1
    assert sizes_digest(table) != sizes_digest(network(1, True))


def test_a_capture_that_was_cut_is_told_with_what_was_read(capture: Path, tmp_path: Path) -> None:
    right = told(capture)
    capture.write_bytes(capture.read_bytes()[:-5])
    agree, (line,) = made({"seen": right | place(capture)}, tmp_path)
    assert not agree and line.startswith("seen: differs: 3 packets for 4 (") and "\n" not in line
    agree, (line,) = made({"seen": right}, tmp_path)
    (_, known) = right["files"][0]
    assert not agree
    assert line == f"seen: not made; {capture.as_uri()}: is another file now: its SHA-256 is not {known[:12]}..."


def test_a_download_that_ends_early_is_one_line(capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Cut:
        """An answer that promises more bytes than come."""

        def __init__(self) -> None:
            self.headers = {"Content-Length": "1000000"}
            self._left = [capture.read_bytes(), b""]

        def read(self, _size: int = -1) -> bytes:
            return self._left.pop(0)

        def __enter__(self) -> Cut:
            return self

        def __exit__(self, *_error: object) -> None:
            """Nothing to close."""

    right = told(capture)
    monkeypatch.setattr(make_packets, "urlopen", lambda url, timeout: Cut())
    agree, lines = made({"seen": right}, tmp_path / "tables")
    size = capture.stat().st_size
    assert not agree and lines == [f"seen: not made; {capture.as_uri()}: cut off after {size:,} of 1,000,000 bytes"]
    assert not list((tmp_path / "tables").iterdir())


def test_a_missing_capture_is_one_line_and_the_others_are_made(capture: Path, tmp_path: Path) -> None:
    gone = told(capture, files=[["gone.pcap", ""]])
    no_list = {key: value for key, value in told(capture).items() if key not in ("captures", "files")}
    agree, lines = made({"gone": gone, "mix": no_list, "seen": told(capture)}, tmp_path / "tables")
    assert not agree and len(lines) == 3 and not any("\n" in line for line in lines)
    assert lines[0].startswith(f"gone: not made; {gone['captures']}gone.pcap: cannot be downloaded: ")
    assert lines[1:] == ["mix: not made; no capture is named for it: a test", "seen: agrees"]
    assert not made({"mix": no_list}, tmp_path)[0], "nothing was made"


def test_what_is_no_capture_is_one_line(tmp_path: Path, capture: Path) -> None:
    page = tmp_path / "seen.html"
    page.write_text("<html>not found</html>")
    agree, (line,) = made({"seen": told(capture, **place(page))}, tmp_path / "tables")
    assert not agree and line.startswith("seen: not made; ") and "\n" not in line


def test_a_zip_holds_one_capture(capture: Path, tmp_path: Path) -> None:
    archive, tables = tmp_path / "right.zip", tmp_path / "tables"
    with zipfile.ZipFile(archive, "w") as out:
        out.write(capture, "data/right.pcap")
        out.writestr("README", "about it")
    named = {"right": told(capture, **place(archive))}
    assert made(named, tables) == (True, ["right: agrees"])
    with zipfile.ZipFile(archive, "a") as out:
        out.write(capture, "data/left.pcap")
    with pytest.raises(HeapwrightError, match=r"right\.zip: holds 2 captures; one is needed"):
        fetch(archive.as_uri(), tables, place(archive)["files"][0][1])


def test_several_captures_are_joined_in_order_of_time(capture: Path, tmp_path: Path) -> None:
    """The packets of one file, dealt to two, make the same table again."""
    whole = capture.read_bytes()
    dealt, at, turn = [whole[:24], whole[:24]], 24, 0
    while at < len(whole):
        end = at + 16 + int.from_bytes(whole[at + 8 : at + 12], "little")
        dealt[turn % 2] += whole[at:end]
        at, turn = end, turn + 1
    halves = [tmp_path / "late.pcap", tmp_path / "early.pcap"]
    for half, data in zip(halves, dealt, strict=True):
        half.write_bytes(data)
    assert made({"both": told(capture, **place(*halves))}, tmp_path / "tables") == (True, ["both: agrees"])
    halves[1].write_bytes(pcap(FRAMES, link=127))
    agree, (line,) = made({"both": told(capture, **place(*halves))}, tmp_path / "tables")
    assert not agree and line == "both: not made; late.pcap: the captures are of 2 kinds of links; one is needed"
    halves[1].write_bytes(b"no capture")
    agree, (line,) = made({"both": told(capture, **place(*halves))}, tmp_path / "tables")
    assert line == "both: not made; early.pcap: is no pcap with microseconds, which alone can be joined"


def test_the_command_says_how_it_is_used_and_what_it_cannot_read(
    tmp_path: Path, capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 2 and "usage: " in capsys.readouterr().err
    assert main([str(tmp_path / "none.toml"), str(tmp_path)]) == 1
    assert "none.toml: cannot be read: " in capsys.readouterr().err
    listed = tmp_path / "packets.toml"
    listed.write_text("[seen]\n" + "".join(f"{key} = {value!r}\n" for key, value in told(capture).items()))
    assert main([str(listed), str(tmp_path / "tables")]) == 0
    assert capsys.readouterr().out == "seen: agrees\n"


def test_the_tables_behind_the_pages_are_told_with_sizes(shared_data: Path) -> None:
    named = tomllib.loads(NAMED.read_text())
    for name, table in packet_tables(shared_data / "packets").items():
        assert compared(table, named[name]) == "agrees"
        assert sizes_digest(table) == named[name]["sizes"], name

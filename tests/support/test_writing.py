"""Files are on the disk before they take their names, and their names before the call is over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heapwright._support.errors import HeapwrightError
from heapwright._support.writing import filling, making, write_text

Done = list[tuple[str, str]]


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Done:
    """What was flushed and what took a name, in order; both are still done."""
    calls: Done = []
    flush, replace = os.fsync, os.replace

    def flushed(handle: int) -> None:
        held = Path(os.readlink(f"/proc/self/fd/{handle}"))
        calls.append(("flush", "folder" if held.is_dir() else held.read_text()))
        flush(handle)

    def replaced(source: Path, target: Path) -> None:
        calls.append(("name", target.name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", replaced)
    return calls


def test_a_file_is_flushed_before_it_takes_its_name_and_the_folder_behind(tmp_path: Path, done: Done) -> None:
    write_text(tmp_path / "a.txt", "whole")
    assert done == [("flush", "whole"), ("name", "a.txt"), ("flush", "folder")]
    assert (tmp_path / "a.txt").read_text() == "whole"


def test_so_are_all_files_of_a_folder(tmp_path: Path, done: Done) -> None:
    with filling(tmp_path / "out") as put:
        put("b.txt", "second")
        put("a.txt", b"first")
    names = [("name", "a.txt"), ("name", "b.txt")]
    assert done == [("flush", "first"), ("flush", "second"), *names, ("flush", "folder")]


def test_what_cannot_be_flushed_takes_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HeapwrightError, match=r"a\.txt: cannot be written: No space left on device"):
        write_text(tmp_path / "a.txt", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_no_folder_is_made_at_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(HeapwrightError, match=r"^https://lab/heap: is only read; write to a file of this machine$"),
        making(Path("https://lab/heap")),
    ):
        pytest.fail("was made")
    assert not list(tmp_path.iterdir())

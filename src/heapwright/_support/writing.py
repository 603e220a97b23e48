"""Writing files whole or not at all, also where power is lost: what takes a name is on the disk before it does."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright._support.errors import HeapwrightError
from heapwright._support.inputs import check_output, note_output
from heapwright._support.remote import writable

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file next to `path` that takes its place if all goes well, and is removed if not.

    Raises HeapwrightError if `path` is an address, a folder, a device or an input of this command, or no file can be
    written there.
    """
    writable(path)
    check_output(path)
    temporary = _new_file_beside(path)
    try:
        yield temporary
        with _naming(path):
            _flush(temporary)
            os.replace(temporary, path)
        note_output(path)
        _flush_names(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file, all of it or nothing; raises HeapwrightError as `replacing`, and where the disk is full."""
    with replacing(path) as temporary, _naming(path):
        temporary.write_text(text, encoding="utf-8")


def check_writable(path: Path) -> None:
    """Raise HeapwrightError now, not after long work, where no file can be written under this name."""
    writable(path)
    check_output(path)
    _new_file_beside(path).unlink()


@contextlib.contextmanager
def making(folder: Path) -> Iterator[None]:
    """Make a folder, and those above it that are missing; if something then fails, remove those that stayed empty.

    Raises HeapwrightError where it cannot be made or is none.
    """
    writable(folder)
    missing = [item for item in (folder, *folder.parents) if not item.exists()]
    try:
        with _naming(folder):
            if folder.is_file():
                raise HeapwrightError(f"{folder}: is a file; name a folder")
            folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for item in missing:
            with contextlib.suppress(OSError):
                item.rmdir()
        raise


@contextlib.contextmanager
def filling(folder: Path) -> Iterator[Callable[[str, str | bytes], Path]]:
    """Give a function that writes a file of a name into `folder`, made where it is missing, and returns its path.

    The name may be that of a file in a folder below, as "zephyr/module.yml".
    The files take their places together if all goes well; if not, the folder is as it was. Raises HeapwrightError as
    `making`, or where a file cannot be written.
    """
    written: set[str] = set()
    with making(folder), _aside(folder) as aside:

        def put(name: str, content: str | bytes) -> Path:
            place = folder / name
            if place.is_dir():
                raise HeapwrightError(f"{place}: cannot be written: is a folder; name another one around it")
            check_output(place)
            with _naming(place):
                Path(aside, name).parent.mkdir(parents=True, exist_ok=True)
                Path(aside, name).write_bytes(content.encode() if isinstance(content, str) else content)
            written.add(name)
            return place

        yield put
        for name in sorted(written):
            with _naming(folder / name):
                _flush(Path(aside, name))
        for name in sorted(written):
            with _naming(folder / name):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(Path(aside, name), folder / name)
        _flush_names(folder)


def _flush(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _flush_names(folder: Path) -> None:
    """Flush a folder's names; a file system that cannot has the files all the same."""
    with contextlib.suppress(OSError):
        _flush(folder)


def _aside(folder: Path) -> TemporaryDirectory[str]:
    from tempfile import TemporaryDirectory

    with _naming(folder):
        return TemporaryDirectory(prefix=".heapwright-", dir=folder)


def _new_file_beside(path: Path) -> Path:
    with _naming(path):
        if path.exists() and not path.is_file():
            hint = "is a folder; name a file in it" if path.is_dir() else "is a device; name a file"
            raise HeapwrightError(f"{path}: cannot be written: {hint}")
        temporary = path.with_name(f".heapwright-{uuid.uuid4().hex}.tmp")
        temporary.touch(exist_ok=False)
    return temporary


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise HeapwrightError(f"{path}: cannot be written: {reason}; name a file in another folder") from error

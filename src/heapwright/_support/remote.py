"""Remote files: http and https addresses, fetched once a process and only read.

The one way to a network. What is read by address is a file of this machine before anything parses it, so DuckDB
reaches nothing but files, and content from strangers is checked as any other. A `Path` of an address has one slash
where the address has two; `names.addressed` restores the second one. Only a person gives addresses: one that is stored
in a study is never followed.

Credentials of an https server come from ~/.netrc. An address itself holds none.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heapwright._support.errors import HeapwrightError
from heapwright._support.inputs import note_input
from heapwright._support.names import addressed, shortened
from heapwright._support.temporary import folder_for

_ADDRESS = re.compile(r"https?:/.+", re.DOTALL)
_S3 = re.compile(r"s3:/.+", re.DOTALL)

MOST_FETCHED = 1 << 34
"""Most bytes of a fetched file: a server may send without end."""

_PIECE = 1 << 20
_TIMEOUT_SECONDS = 30.0


def is_address(path: Path | str) -> bool:
    """Whether a path is a remote address."""
    return _ADDRESS.fullmatch(str(path)) is not None or _S3.fullmatch(str(path)) is not None


def local(path: Path) -> Path:
    """The file of this machine that a path stands for: the path, or for an address its content, fetched once a process.

    Raises HeapwrightError if an address holds credentials, or its file cannot be fetched whole.
    """
    return _files.fetched(path) if is_address(path) else path


def read_from(path: Path) -> Path:
    """The file that `local` gives, read as an input: this command does not write over it."""
    note_input(path)
    return local(path)


def writable(path: Path) -> Path:
    """The path of a file or folder to write; raises HeapwrightError for an address, which is only read."""
    if is_address(path):
        raise HeapwrightError(f"{addressed(path)}: is only read; write to a file of this machine")
    return path


class _Files:
    """The fetched files, for as long as the process lives."""

    def __init__(self) -> None:
        self._by_address: dict[str, Path] = {}
        self._lock = threading.RLock()

    def fetched(self, path: Path) -> Path:
        address = _checked(path)
        with self._lock:
            if address not in self._by_address:
                file = folder_for(self, "remote") / shortened(path.name)
                _fetch(address, file)
                self._by_address[address] = file
            return self._by_address[address]


_files = _Files()


def _checked(path: Path) -> str:
    """The address; raises HeapwrightError if it could hold a password, which the message does not repeat."""
    where = addressed(path)
    scheme, _, rest = where.partition("://")
    host, _, _ = rest.partition("/")
    if "@" in host:
        shown = f"{scheme}://{rest.rpartition('@')[2]}"
        raise HeapwrightError(f"{shown.partition('?')[0]}: no user and password in an address; put them into ~/.netrc")
    if scheme == "s3":
        raise HeapwrightError(f"{where}: S3 is not supported; copy the file here, or give an https address")
    if "?" in rest:
        shown = where.partition("?")[0]
        raise HeapwrightError(f"{shown}: nothing after a ? in an address, as it may be a secret; fetch the file first")
    return where


def _copied(read: Callable[[int], bytes], length: int | None, where: str, file: Path) -> None:
    """Write what `read` returns to a file; raises HeapwrightError if that is not `length` bytes, or too many."""
    room = shutil.disk_usage(file.parent).free
    if length is not None and length > min(MOST_FETCHED, room):
        raise HeapwrightError(f"{where}: {length:,} bytes; {file.parent} takes {min(MOST_FETCHED, room):,} at most")
    got = 0
    with file.open("wb") as out:
        while piece := read(_PIECE):
            got += len(piece)
            if got > MOST_FETCHED:
                raise HeapwrightError(f"{where}: more than {MOST_FETCHED:,} bytes; fetch a part of it first")
            out.write(piece)
    if length is not None and got != length:
        raise _cut(where, got, length)


def _cut(where: str, got: int, length: int | None = None) -> HeapwrightError:
    of = f" of {length:,}" if length is not None else ""
    return HeapwrightError(f"{where}: the transfer was cut off after {got:,}{of} bytes; try again")


def _fetch(where: str, file: Path) -> None:
    """Fetch a file; raises HeapwrightError. An https address leads to https addresses alone."""
    from http.client import HTTPException, IncompleteRead
    from urllib.error import HTTPError, URLError
    from urllib.parse import quote, urlsplit
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Redirects(HTTPRedirectHandler):
        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            valid = ("https",) if where.startswith("https:") else ("http", "https")
            if urlsplit(newurl).scheme not in valid:
                fp.close()
                raise HeapwrightError(f"{where}: leads to another address that is not {' or '.join(valid)}")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    scheme, _, rest = where.partition("://")
    request = Request(f"{scheme}://{quote(rest, safe='/:%[]')}")
    if login := _netrc(urlsplit(where).hostname or ""):
        request.add_unredirected_header("Authorization", login)
    try:
        with build_opener(Redirects).open(request, timeout=_TIMEOUT_SECONDS) as response:
            _copied(response.read, response.length, where, file)
    except HTTPError as error:
        error.close()
        raise HeapwrightError(f"{where}: the server says {error.code} {error.reason}") from None
    except IncompleteRead as error:
        inner = error.__cause__  # of a chunk that was cut
        of_chunk = inner.partial if isinstance(inner, IncompleteRead) else b""
        raise _cut(where, file.stat().st_size + len(error.partial) + len(of_chunk)) from None
    except URLError as error:
        reason = error.reason
        said = reason.strerror or str(reason) if isinstance(reason, OSError) else str(reason)
        raise HeapwrightError(f"{where}: cannot be reached ({said})") from None
    except (OSError, HTTPException, ValueError) as error:
        raise HeapwrightError(f"{where}: cannot be fetched ({' '.join(str(error).split())})") from None


def _netrc(host: str) -> str | None:
    """The Authorization header for a host, if ~/.netrc, or the file that NETRC names, has a login for it."""
    from base64 import b64encode
    from netrc import NetrcParseError, netrc

    file = os.environ.get("NETRC", os.path.expanduser("~/.netrc"))
    try:
        result = netrc(file).authenticators(host)
    except (OSError, NetrcParseError):
        return None
    return result and "Basic " + b64encode(f"{result[0]}:{result[2]}".encode()).decode()

"""Files by address: s3://BUCKET/KEY and https://HOST/PATH are fetched once, and files for S3 are sent whole.

The one door to a network. What is read by address is a file of this machine before anything looks into it, so DuckDB
reaches nothing but files, and content from strangers meets the same checks as any other. A `Path` of an address has
one slash where the address has two; `names.addressed` gives the second one back. Addresses are only what a person
gives: one that is stored in a study is never followed.

S3's credentials and endpoint come from where AWS's tools look (AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_ENDPOINT_URL, ...),
those of an https server from ~/.netrc. An address itself holds none.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from heapwright._support.errors import HeapwrightError
from heapwright._support.names import addressed, shortened
from heapwright._support.temporary import folder_for

_ADDRESS = re.compile(r"(s3|https?):/.+", re.DOTALL)

MOST_FETCHED = 1 << 34
"""Bytes of a file that are fetched: a server may send without end."""

MOST_SENT = 5 * 1000**3
"""Bytes that S3 takes at once, and so either all or none of them."""

_PIECE = 1 << 20
_TIMEOUT_SECONDS = 30.0


def is_address(path: Path | str) -> bool:
    """Whether a path names a file elsewhere."""
    return _ADDRESS.fullmatch(str(path)) is not None


def local(path: Path) -> Path:
    """The file of this machine that a path stands for: the path, or for an address its content, fetched once a process.

    Raises HeapwrightError where an address holds credentials, or its file cannot be fetched whole.
    """
    return _files.fetched(path) if is_address(path) else path


def working(path: Path) -> Path:
    """The file of this machine to change for a path, before `send` takes it to its address: there need not be one yet.

    Raises HeapwrightError as `local`, and for an address that is only read.
    """
    return _files.begun(path) if is_address(path) else path


def send(path: Path) -> None:
    """Send the file of an address that `working` gave: all of it or nothing, and only over the one that it was made of.

    Raises HeapwrightError where it cannot be sent, or another has been written there meanwhile.
    """
    _files.send(path, working(path), only_over=True)


def kept(path: Path) -> Path:
    """A copy of the file that `working` gave, which stays when the process ends."""
    import tempfile

    copy = Path(tempfile.mkdtemp(prefix="heapwright-kept-"), shortened(path.name))
    shutil.copyfile(working(path), copy)
    return copy


@contextlib.contextmanager
def sending(path: Path) -> Iterator[Path]:
    """Give a temporary file that is sent to an address if all goes well, whatever is there. Raises as `send`."""
    import tempfile

    check_sendable(path)
    with tempfile.TemporaryDirectory(prefix="heapwright-remote-") as folder:
        file = Path(folder, shortened(path.name))
        file.touch()
        yield file
        _files.send(path, file, only_over=False)


def check_sendable(path: Path) -> None:
    """Raise HeapwrightError now, not after long work, where an address is only read, or has no bucket of this name."""
    _bucket_of(path)


def refuse_folder(path: Path) -> None:
    """Raise HeapwrightError for an address where a folder is to be made."""
    if is_address(path):
        raise HeapwrightError(f"{path}: an address; name a folder of this machine")


class _Files:
    """The files of addresses on this machine, for as long as the process lives."""

    def __init__(self) -> None:
        self._of: dict[str, Path] = {}
        self._tags: dict[str, str | None] = {}
        self._lock = threading.RLock()

    def fetched(self, path: Path) -> Path:
        where = _checked(path)
        with self._lock:
            if where not in self._of:
                file = self._room(path)
                if where.startswith("s3:"):
                    self._tags[where] = _fetch_from_s3(where, file)
                else:
                    _fetch_by_http(where, file)
                self._of[where] = file
            return self._of[where]

    def begun(self, path: Path) -> Path:
        where = _checked(path)
        with self._lock:
            if where not in self._tags:
                _bucket_of(path)
                try:
                    return self.fetched(path)
                except _MissingError:
                    self._of[where], self._tags[where] = self._room(path), None
            return self._of[where]

    def send(self, path: Path, file: Path, *, only_over: bool) -> None:
        where = _checked(path)
        with self._lock:
            tag = self._tags.get(where)
            condition: dict[str, Any] = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"}
            new = _send_to_s3(where, file, condition if only_over else {})
            if only_over:
                self._tags[where] = new
            else:
                self._of.pop(where, None)
                self._tags.pop(where, None)

    def _room(self, path: Path) -> Path:
        return folder_for(self, "remote") / shortened(path.name)


_files = _Files()


class _MissingError(HeapwrightError):
    """There is no object of this key in the bucket."""


def _checked(path: Path) -> str:
    """The address; raises HeapwrightError where it could hold a password, which it does not repeat."""
    where = addressed(path)
    scheme, _, rest = where.partition("://")
    host, _, _ = rest.partition("/")
    if "@" in host:
        shown = f"{scheme}://{rest.rpartition('@')[2]}"
        raise HeapwrightError(f"{shown.partition('?')[0]}: no user and password in an address; put them into ~/.netrc")
    if scheme != "s3" and "?" in rest:
        shown = where.partition("?")[0]
        raise HeapwrightError(f"{shown}: nothing after a ? in an address, as it may be a secret; fetch the file first")
    return where


def _copied(read: Callable[[int], bytes], length: int | None, where: str, file: Path) -> None:
    """Write what `read` gives to a file; raises HeapwrightError where that is not `length` bytes, or too many."""
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


# ---- http and https ------------------------------------------------------------------------------------------------


def _fetch_by_http(where: str, file: Path) -> None:
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
    """The Authorization header for a host, where ~/.netrc, or the file that NETRC names, has a login for it."""
    from base64 import b64encode
    from netrc import NetrcParseError, netrc

    file = os.environ.get("NETRC", os.path.expanduser("~/.netrc"))
    try:
        result = netrc(file).authenticators(host)
    except (OSError, NetrcParseError):
        return None
    return result and "Basic " + b64encode(f"{result[0]}:{result[2]}".encode()).decode()


# ---- S3 ------------------------------------------------------------------------------------------------------------


def _split(where: str) -> tuple[str, str]:
    bucket, _, key = where.removeprefix("s3://").partition("/")
    if not key:
        raise HeapwrightError(f"{where}: no key; an address there is s3://BUCKET/KEY")
    return bucket, key


@contextlib.contextmanager
def _s3(where: str) -> Iterator[Any]:
    """A client of S3, whose errors become one line; raises HeapwrightError where boto3 is missing."""
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            EndpointConnectionError,
            IncompleteReadError,
            NoCredentialsError,
            ResponseStreamingError,
        )
    except ImportError:
        raise HeapwrightError(f"{where}: boto3 is missing; install heapwright[remote]") from None
    how = Config(
        connect_timeout=10, read_timeout=_TIMEOUT_SECONDS, retries={"mode": "standard", "total_max_attempts": 3}
    )
    try:
        yield boto3.Session().client("s3", config=how)  # of this moment's environment
    except ClientError as error:
        raise _said(where, error.response.get("Error", {})) from None
    except NoCredentialsError:
        raise HeapwrightError(
            f"{where}: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        ) from None
    except EndpointConnectionError:
        raise HeapwrightError(f"{where}: S3 cannot be reached; AWS_ENDPOINT_URL and AWS_REGION say where") from None
    except (IncompleteReadError, ResponseStreamingError):
        raise HeapwrightError(f"{where}: the transfer was cut off; try again") from None
    except (BotoCoreError, ValueError) as error:
        said = re.sub(r"//[^/@\s]*@", "//", " ".join(str(error).split()))
        raise HeapwrightError(f"{where}: S3 cannot be used ({said})") from None


def _said(where: str, error: dict[str, Any]) -> HeapwrightError:
    """What S3 answered, in one line."""
    code, bucket = str(error.get("Code", "")), where.removeprefix("s3://").partition("/")[0]
    if code == "NoSuchBucket":
        return HeapwrightError(f"{where}: no such bucket {bucket}")
    if code in ("NoSuchKey", "404"):
        return _MissingError(f"{where}: no such object in the bucket")
    if code in ("AccessDenied", "403"):
        return HeapwrightError(f"{where}: access denied with the credentials of this environment")
    if code in ("PreconditionFailed", "412", "ConditionalRequestConflict"):
        return HeapwrightError(f"{where}: another was written there meanwhile")
    return HeapwrightError(f"{where}: S3 says {code} {' '.join(str(error.get('Message', '')).split())}")


def _fetch_from_s3(where: str, file: Path) -> str | None:
    """Fetch an object; returns its tag, which tells it from any other that is written there. Raises HeapwrightError."""
    bucket, key = _split(where)
    with _s3(where) as client:
        answer = client.get_object(Bucket=bucket, Key=key)
        with contextlib.closing(answer["Body"]) as body:
            _copied(body.read, None, where, file)
        if file.stat().st_size != answer["ContentLength"]:
            raise _cut(where, file.stat().st_size, answer["ContentLength"])
        tag: str | None = answer.get("ETag")
        return tag


def _send_to_s3(where: str, file: Path, condition: dict[str, Any]) -> str | None:
    """Send a file, all of it or nothing; returns its tag. Raises HeapwrightError."""
    bucket, key = _split(where)
    if file.stat().st_size > MOST_SENT:
        raise HeapwrightError(f"{where}: {file.stat().st_size:,} bytes; S3 takes {MOST_SENT:,} at once")
    with _s3(where) as client, file.open("rb") as body:
        tag: str | None = client.put_object(Bucket=bucket, Key=key, Body=body, **condition).get("ETag")
        return tag


def _bucket_of(path: Path) -> None:
    """Raise HeapwrightError unless the address is one of S3, in a bucket that is there."""
    where = _checked(path)
    if not where.startswith("s3:"):
        raise HeapwrightError(f"{where}: is only read; write to a file, or to s3://BUCKET/KEY")
    bucket, _ = _split(where)
    try:
        with _s3(where) as client:
            client.head_bucket(Bucket=bucket)
    except _MissingError:
        raise HeapwrightError(f"{where}: no such bucket {bucket}") from None

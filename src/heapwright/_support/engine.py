"""The replay engine of this installation: digests of the native module and of the Python sources."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from heapwright._support.version import __version__


@dataclass(frozen=True)
class Engine:
    """The engine of this installation.

    Attributes:
        digest: of the sources of the core and of the replay engine, SHA-256 in hexadecimal.
        commit: the last one that changed them before they were built; None if they were in no checkout.
    """

    digest: str
    commit: str | None

    def sentence(self) -> str:
        """The engine in words, with the first digits of digest and commit."""
        return f"engine {self.digest[:12]}{f', commit {self.commit[:12]}' if self.commit else ''}"


@cache
def engine() -> Engine:
    """The engine of this installation."""
    from heapwright._native import ffi, lib

    digest, commit = (ffi.string(text()).decode() for text in (lib.hw_engine_digest, lib.hw_engine_commit))
    return Engine(digest, commit or None)


@cache
def build() -> str:
    """The identity of this installation, by which results are reused: the version, and digests of C and of Python."""
    package = Path(__file__).parents[1]
    result = hashlib.sha256()
    for path in sorted(package.rglob("*.py"), key=lambda path: path.relative_to(package).as_posix()):
        result.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    return f"{__version__}, engine {engine().digest[:12]}, Python {result.hexdigest()[:12]}"

"""A log as a file: its lines or blocks, decompressed, and whether it is complete."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from heapwright._support.errors import HeapwrightError
from heapwright._support.remote import read_from
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.losses import Losses

LONGEST_LINE = 1 << 12
"""Bytes; a longer line is not a call, and patterns take time that grows with the square of it."""

_PIECE = 1 << 18
_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"


class Source:
    """A log to be read once; gzip, xz and zstd are decompressed, in pieces of bounded size. Reading raises OSError.

    Attributes:
        path: the file.
        elf: the program to which its addresses belong; None for none.
        folder: where a long trace may be kept while it is read; None for in memory.
        cut: once it is read, why it ends too early, in words; None if it does not.
        heap: of a log of several heaps or memories, the one to read; None for the one with the most calls.
        heaps: once it is read, the names of its heaps, that with the most calls first; empty for formats with one.
        losses: once it is read, its lines about lost, dropped or repeated lines (`losses.py`).
    """

    def __init__(
        self, path: Path, folder: Path | None = None, elf: Path | None = None, heap: str | None = None
    ) -> None:
        self.path, self.folder, self.elf, self.heap = path, folder, elf, heap
        self.heaps: tuple[str, ...] = ()
        self.losses = Losses()
        self.cut: str | None = None

    def history(self) -> LogHistory:
        """An empty history for its calls, which keeps a long trace in `folder`."""
        return LogHistory(self.folder)

    def start(self, most: int) -> bytes:
        """The first bytes."""
        return next(self.blocks(most), b"")

    def lines(self) -> Iterator[bytes]:
        """Each line without its end; a last one that has no end is left out, for it may stop within a number."""
        for text in self.texts():
            for line in text.split(b"\n")[:-1]:
                if len(line) <= LONGEST_LINE:
                    self.losses.look(line)
                    yield line.rstrip(b"\r")

    def texts(self) -> Iterator[bytes]:
        """Whole lines with their ends, as `lines` gives them one by one; in them may be some that are too long."""
        rest = b""
        for piece in self._pieces():
            text = rest + piece
            end = text.rfind(b"\n") + 1
            if end:
                yield text[:end]
            rest = text[end:]
            if len(rest) > LONGEST_LINE:
                rest = b""
        if rest:
            self.cut = self.cut or "its last line has no end"

    def blocks(self, size: int) -> Iterator[bytes]:
        """Pieces of `size` bytes; the last may be shorter."""
        rest = b""
        for piece in self._pieces():
            rest += piece
            while len(rest) >= size:
                yield rest[:size]
                rest = rest[size:]
        if rest:
            yield rest

    def _pieces(self) -> Iterator[bytes]:
        with read_from(self.path).open("rb") as file:
            start = file.read(6)
            file.seek(0)
            if start.startswith(_GZIP):
                yield from self._of_gzip(file)
            elif start.startswith(_XZ):
                yield from self._of_xz(file)
            elif start.startswith(_ZSTD):
                yield from self._of_zstd(file)
            else:
                yield from iter(lambda: file.read(_PIECE), b"")

    def _of_gzip(self, file: IO[bytes]) -> Iterator[bytes]:
        """All members, each begun where the one before ends."""
        member: Any = None
        given = b""
        try:
            while given := given or file.read(_PIECE):
                member = member or zlib.decompressobj(31)
                yield member.decompress(given, _PIECE)
                given = member.unused_data if member.eof else member.unconsumed_tail
                member = None if member.eof else member
        except zlib.error as error:
            self.cut = f"its compression is damaged ({error})"
            return
        if member:
            self.cut = "its compression has no end"

    def _of_xz(self, file: IO[bytes]) -> Iterator[bytes]:
        stream = lzma.LZMADecompressor()
        try:
            while not stream.eof:
                given = file.read(_PIECE) if stream.needs_input else b""
                if stream.needs_input and not given:
                    self.cut = "its compression has no end"
                    return
                yield stream.decompress(given, _PIECE)
        except lzma.LZMAError as error:
            self.cut = f"its compression is damaged ({error})"

    def _of_zstd(self, file: IO[bytes]) -> Iterator[bytes]:
        try:
            import zstandard
        except ImportError:
            hint = f"pip install zstandard, or zstd -d {self.path}"
            raise HeapwrightError(f"{self.path}: compressed by zstd; {hint}") from None
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        try:
            yield from iter(lambda: reader.read(_PIECE), b"")
        except zstandard.ZstdError as error:
            self.cut = f"its compression is damaged ({error})"

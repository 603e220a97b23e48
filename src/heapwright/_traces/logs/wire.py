"""Where bytes come from while they are written: a serial port, a file that grows, a pipe, a socket."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import socket
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from heapwright._support.errors import HeapwrightError, ParameterError

STDIN = "-"

_PIECE = 1 << 16
_CONNECT_SECONDS = 10
_HOST = re.compile(r"\[?(?P<host>[^][/\s]+?)\]?:(?P<port>\d{1,5})")
_NO_MORE = (errno.EIO, errno.ENXIO, errno.ENODEV, errno.ECONNRESET)
"""A pseudo-terminal whose other end is closed, a port that was pulled out, a peer that has gone."""


class Wire:
    """An open source of bytes, closed at the end of a `with` block.

    Attributes:
        path: its name, as it was given.
    """

    def __init__(self, source: str, baud: int) -> None:
        """Open it.

        Args:
            source: a path, HOST:PORT of a TCP socket that listens, or "-" for standard input.
            baud: bits a second of a serial port.

        Raises HeapwrightError if there is no such source, or no such baud.
        """
        self.path = Path(source)
        with contextlib.ExitStack() as opened:
            self._file = opened.enter_context(_opened(source, baud))
            self._grows = source != STDIN and stat.S_ISREG(os.fstat(self._file).st_mode)
            self._close = opened.pop_all().close

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def read(self, seconds: float) -> bytes | None:
        """The bytes that have come, at most 64 KiB; b"" if none come in `seconds`, None at the end of the wire.

        A file has no end: it may grow. A file that was truncated below what was read is read from its start.
        """
        if self._grows:
            piece = os.read(self._file, _PIECE)
            if not piece:
                time.sleep(seconds)
                if os.fstat(self._file).st_size < os.lseek(self._file, 0, os.SEEK_CUR):
                    os.lseek(self._file, 0, os.SEEK_SET)
            return piece
        if not select.select([self._file], [], [], seconds)[0]:
            return b""
        try:
            return os.read(self._file, _PIECE) or None
        except BlockingIOError:
            return b""
        except OSError as error:
            if error.errno in _NO_MORE:
                return None
            raise


@contextlib.contextmanager
def _opened(source: str, baud: int) -> Iterator[int]:
    """The file descriptor."""
    path = Path(source)
    with contextlib.ExitStack() as closing:
        if source == STDIN:
            yield sys.stdin.fileno()
            return
        if path.is_socket():
            yield closing.enter_context(_connected(source, socket.AF_UNIX, source)).fileno()
            return
        if not path.exists():
            yield closing.enter_context(_to_host(source)).fileno()
            return
        if path.is_dir():
            raise HeapwrightError(f"{source}: a folder; name a serial port, a file, a pipe, or HOST:PORT")
        file = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        closing.callback(os.close, file)
        if os.isatty(file):
            _make_raw(file, source, baud)
        yield file


def _to_host(source: str) -> socket.socket:
    result = _HOST.fullmatch(source)
    if result is None or int(result["port"]) > 0xFFFF:
        raise HeapwrightError(f"{source}: no such file; valid: a serial port, a file, a pipe, a socket, or HOST:PORT")
    return _connected(source, socket.AF_UNSPEC, (result["host"], int(result["port"])))


def _connected(source: str, family: int, address: str | tuple[str, int]) -> socket.socket:
    try:
        if isinstance(address, tuple):
            result = socket.create_connection(address, _CONNECT_SECONDS)
        else:
            result = socket.socket(family)
            result.connect(address)
    except OSError as error:
        raise HeapwrightError(f"{source}: {error.strerror or error}; who writes has to listen there first") from None
    result.setblocking(False)
    return result


def _make_raw(file: int, source: str, baud: int) -> None:
    """Set a serial port to pass every byte as it comes, at `baud` bits a second."""
    import termios
    import tty

    speeds = {int(name[1:]): name for name in dir(termios) if re.fullmatch(r"B[1-9]\d*", name)}
    if baud not in speeds:
        valid = ", ".join(str(speed) for speed in sorted(speeds) if speed >= 1200)
        raise ParameterError(f"{source}: {baud} is no speed of a serial port here; valid: {valid}", parameter="baud")
    tty.setraw(file, termios.TCSANOW)
    modes = termios.tcgetattr(file)
    modes[2] = modes[2] & ~termios.HUPCL | termios.CLOCAL | termios.CREAD  # the board is not reset at the end
    modes[4] = modes[5] = getattr(termios, speeds[baud])
    termios.tcsetattr(file, termios.TCSANOW, modes)

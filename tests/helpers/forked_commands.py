"""`heapwright` without its start: each command runs in a fork of one process that has imported the package.

What a command imports takes a second, and tests run hundreds of commands. `HEAPWRIGHT` is a program that hands its
arguments, folder, environment and open files to that process, and ends as the fork did; the fixture `forks` is for
tests that run it. Tests of the start itself, of signals and of limits run the command as it is installed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

INSTALLED = str(Path(sys.executable).with_name("heapwright"))

_HERE = Path(tempfile.gettempdir()) / f"heapwright-forks-{os.getpid()}"
_SOCKET = _HERE / "socket"

HEAPWRIGHT = str(_HERE / "heapwright")

_PROGRAM = f"""#!{sys.executable} -IS
import marshal, os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as channel:
    channel.connect({str(_SOCKET)!r})
    asked = marshal.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)])
    socket.send_fds(channel, [len(asked).to_bytes(8, "little")], [0, 1, 2])
    channel.sendall(asked)
    answer = channel.recv(8)
status = int.from_bytes(answer, "little", signed=True) if answer else 70
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """While the process is there that `HEAPWRIGHT` asks."""
    shutil.rmtree(_HERE, ignore_errors=True)
    _HERE.mkdir(mode=0o700)
    with open(os.open(HEAPWRIGHT, os.O_CREAT | os.O_WRONLY, 0o755), "w", encoding="utf-8") as program:
        program.write(_PROGRAM)
    server = Path(__file__).with_name("fork_server.py")
    try:
        with subprocess.Popen([sys.executable, server, _SOCKET], start_new_session=True) as process:
            try:
                while not _SOCKET.exists() and process.poll() is None:
                    time.sleep(0.02)
                yield
            finally:
                process.kill()
    finally:
        shutil.rmtree(_HERE)

"""`heapwright` without its start: each command runs in a fork of one process that has imported the package.

What a command imports takes a second, and tests run hundreds of commands. `HEAPWRIGHT` is a program that hands its
arguments, folder, environment and open files to that process, and ends as the fork did. Tests of the start itself, of
signals and of limits run the installed command; one that is not started (the fixture `forks`) is run as installed, too.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

INSTALLED = str(Path(sys.executable).with_name("heapwright"))

_HERE = Path(tempfile.mkdtemp(prefix="heapwright-forks-"))
_OWNER = os.getpid()
atexit.register(lambda: os.getpid() == _OWNER and shutil.rmtree(_HERE, ignore_errors=True))
_SOCKET = _HERE / "socket"

HEAPWRIGHT = str(_HERE / "heapwright")

_PROGRAM = f"""#!{sys.executable} -IS
import marshal, os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as one:
    try:
        one.connect({str(_SOCKET)!r})
    except OSError:
        os.execv({INSTALLED!r}, [{INSTALLED!r}, *sys.argv[1:]])
    asked = marshal.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)])
    socket.send_fds(one, [len(asked).to_bytes(8, "little")], [0, 1, 2])
    one.sendall(asked)
    told = one.recv(8)
status = int.from_bytes(told, "little", signed=True) if told else 70
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""

with open(os.open(HEAPWRIGHT, os.O_CREAT | os.O_WRONLY, 0o755), "w", encoding="utf-8") as _program:
    _program.write(_PROGRAM)


def started() -> subprocess.Popen[bytes]:
    """The process that forks, ready to be asked."""
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("forking.py"), _SOCKET], start_new_session=True
    )
    while not _SOCKET.exists():
        if process.poll() is not None:
            raise RuntimeError(f"the process that runs commands ended with {process.returncode}")
        time.sleep(0.02)
    return process

"""The process that `forked_commands` asks: it imports the package once, and each command runs in a fork of it."""

from __future__ import annotations

import atexit
import contextlib
import gc
import marshal
import os
import pkgutil
import select
import signal
import socket
import sys
import traceback
from importlib import import_module
from typing import Any, NoReturn

from short_explorations import ASKED, forms

from heapwright._generate.emit import generated_files
from heapwright._recipes.zoo import catalogue as zoo

_NOT_PYTHON = ("heapwright.recorder", "heapwright.papers")
"""What is preloaded into recorded programs, and what only the pages of papers need."""


def main(path: str) -> None:
    """Answer until killed or orphaned: in a fork for each who asks, which waits for the command in a fork of its."""
    package = import_module("heapwright")
    for module in pkgutil.walk_packages(package.__path__, "heapwright."):
        if not module.name.startswith(_NOT_PYTHON):
            import_module(module.name)
    _know()
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path + "~")
        listening.listen(64)
        os.rename(path + "~", path)
        signal.signal(signal.SIGCHLD, _reap)
        listening.settimeout(5)
        parent = os.getppid()
        while os.getppid() == parent:
            try:
                asking, _ = listening.accept()
            except TimeoutError:
                continue
            asking.settimeout(None)
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _answer(asking)
            asking.close()


def _know() -> None:
    """What commands otherwise find out each for itself: the zoo, and the core as the generator reads it."""
    zoo.recipes()
    generated_files(zoo.load("tlsf"))


def _reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(asking: socket.socket) -> None:
    """Returns in the process that is to run the command alone."""
    output, files, _, _ = socket.recv_fds(asking, 8, 3)
    length, requested = int.from_bytes(output, "little"), b""
    while len(requested) < length:
        requested += asking.recv(1 << 16)
    words, folder, environment = marshal.loads(requested)
    child = os.fork()
    if child == 0:
        asking.close()
        _become(words, folder, environment, files)
    for file in files:
        os.close(file)
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([ended, asking.fileno()], [], [])
    if ended not in ready:  # who asked has been killed
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        asking.sendall(status.to_bytes(8, "little", signed=True))
    os._exit(0)


def _become(words: list[str], folder: str, environment: dict[str, str], files: list[int]) -> NoReturn:
    """Run the command as the installed program does."""
    os.setpgid(0, 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for at, descriptor in enumerate(files):
        os.dup2(descriptor, at)
        os.close(descriptor)
    names = ("stdin", "stdout", "stderr")
    for at, (name, mode) in enumerate(zip(names, "rww", strict=True)):
        more: dict[str, Any] = {"errors": "backslashreplace"} if name == "stderr" else {}
        buffering = 1 if name == "stderr" or (mode == "w" and os.isatty(at)) else -1
        setattr(sys, name, open(at, mode, buffering, encoding="utf-8", closefd=False, **more))  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["heapwright", *words]
    if ASKED in environment:
        for module, form, effort in forms():
            setattr(module, form, effort)
    status: Any = 1
    try:
        status = import_module("heapwright._cli").main()
    except SystemExit as ended:
        status = ended.code
    except BaseException:
        traceback.print_exc()
    if isinstance(status, str):
        print(status, file=sys.stderr)
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            file.flush()
    os._exit(int(bool(status)) if isinstance(status, str) else status or 0)  # ending Python would copy all its pages


if __name__ == "__main__":
    main(sys.argv[1])

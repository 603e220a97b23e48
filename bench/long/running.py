"""One recording: a folder of its own, the program that is recorded, its seed, and how much traffic it gets."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

HEAPWRIGHT = Path(sys.executable).with_name("heapwright")
HERE = Path(__file__).resolve().parent
HOST = "127.0.0.1"
PORTS = range(15000, 32000)
"""Below those that Linux gives to clients, so that no connection of a client takes a server's port."""
START_SECONDS = 20
END_SECONDS = 120
AGAIN_SECONDS = 10
MOST_SECONDS = 400
"""Of one recording's traffic: what is not asked by then is never asked."""


def free_port() -> int:
    """A port that no program uses, neither with TCP nor with UDP."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        with suppress(OSError), socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind((HOST, port))
            udp.bind((HOST, port))
            return port


def open_ports() -> set[int]:
    """The ports that a program listens to. Looking them up is no connection, which the recording would show."""
    ports = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            if state in ("0A", "07"):
                ports.add(int(local.rpartition(":")[2], 16))
    return ports


class Run:
    """A folder, a seed, and the number of requests that all clients make together.

    Attributes:
        folder: what the program reads and writes, removed afterwards.
        trace: where the recording goes.
        seed: what clients ask follows from it.
        requests: of all clients together.
        port: where the recorded program listens.
    """

    def __init__(self, folder: Path, seed: int, requests: int) -> None:
        self.folder = folder
        self.trace = folder / "trace" / "trace.parquet"
        self.trace.parent.mkdir()
        self.seed = seed
        self.requests = requests
        self.port = free_port()

    def random(self, *names: object) -> random.Random:
        """Random numbers of one client: the same in each run of a seed, no matter what the other clients draw."""
        return random.Random(" ".join(map(str, (self.seed, *names))))

    def file(self, name: str, text: str | bytes) -> Path:
        """Write a file of the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def record(self, *command: str | Path, text: str = "") -> None:
        """Record a program that ends by itself; `text` is its standard input."""
        done = subprocess.run(
            _recording(self.trace, command),
            input=text,
            text=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=MOST_SECONDS + END_SECONDS,
        )
        if done.returncode or not self.trace.exists():
            raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")

    @contextmanager
    def serve(self, *command: str | Path, end: signal.Signals = signal.SIGTERM) -> Iterator[int]:
        """Record a server on `port`: its start, the traffic that the body makes, and its orderly end.

        Args:
            command: the server.
            end: what the server ends at.

        Yields:
            Its process.
        """
        with started(_recording(self.trace, command), self.port, self.folder) as recorder:
            server = int(Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text().split()[0])
            yield server
            # Again where it is missed: a server that looks for it just before it waits for the next client sleeps on.
            for _ in range(END_SECONDS // AGAIN_SECONDS):
                with suppress(ProcessLookupError):
                    os.kill(server, end)
                with suppress(subprocess.TimeoutExpired):
                    recorder.wait(AGAIN_SECONDS)
                    break
        if not self.trace.exists():
            raise RuntimeError(f"{command[0]}: no trace:\n{_output(self.folder, self.port).read_text()[-2000:]}")

    def traffic(self, clients: Sequence[Awaitable[None]], readers: Sequence[Awaitable[None]] = ()) -> None:
        """Run clients until each has asked all that it asks, or MOST_SECONDS are over.

        Args:
            clients: those with a number of requests.
            readers: clients that go on until the others have ended.
        """
        asyncio.run(_traffic(clients, readers))

    def shares(self, clients: int) -> list[int]:
        """How many of the requests each client makes."""
        return [self.requests // clients + (number < self.requests % clients) for number in range(clients)]


async def _traffic(clients: Sequence[Awaitable[None]], readers: Sequence[Awaitable[None]]) -> None:
    others = [asyncio.ensure_future(item) for item in readers]
    asking = [asyncio.ensure_future(client) for client in clients]
    done, late = await asyncio.wait(asking, timeout=MOST_SECONDS)
    for item in (*late, *others):
        item.cancel()
    await asyncio.gather(*late, *others, return_exceptions=True)
    for item in done:
        item.result()


def _recording(trace: Path, command: Sequence[str | Path]) -> list[str | Path]:
    return [HEAPWRIGHT, "record", "-o", trace, "--", *command]


def _output(folder: Path, port: int) -> Path:
    return folder / f"output-{port}"


@contextmanager
def started(command: Sequence[str | Path], port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program and wait until it listens; it and what it started are ended with the body."""
    with _output(folder, port).open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output, start_new_session=True)
    try:
        until = time.monotonic() + START_SECONDS
        while port not in open_ports():
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{command[0]} does not listen:\n{_output(folder, port).read_text()[-2000:]}")
            time.sleep(0.05)
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

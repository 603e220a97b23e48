"""One recording: a folder of its own, the program that is recorded, and those that it talks to."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HEAPWRIGHT = Path(sys.executable).with_name("heapwright")
HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"


def free_port() -> int:
    """A port of this machine that no program uses, neither with TCP nor with UDP."""
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        udp.bind(tcp.getsockname())
        return int(tcp.getsockname()[1])


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
    """A folder, and a seed. The trace of the process with most calls is `trace` of the folder.

    With `sites` it says where each call was made.
    """

    def __init__(self, folder: Path, seed: int, sites: bool = False) -> None:
        self.sites = ["--sites"] if sites else []
        self.folder = folder
        self.trace = folder / "trace" / "trace.parquet"
        self.trace.parent.mkdir()
        self.draw = random.Random(seed)
        self.seed = seed
        self.port = free_port()
        self.other_port = free_port()

    def file(self, name: str, text: str) -> Path:
        """Write a file of the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def program(self, name: str) -> Path:
        """A script that ships with this one."""
        return HERE / "programs" / name

    def words(self, count: int, longest: int = 12) -> list[str]:
        """Words of lower-case letters."""
        return ["".join(self.draw.choices("etaoinshrdlucmfwyp", k=self.draw.randint(2, longest))) for _ in range(count)]

    def run(self, *command: str | Path, seconds: float = 60, check: bool = True) -> None:
        """Run a program that is not recorded."""
        subprocess.run(command, check=check, timeout=seconds, cwd=self.folder, stdout=subprocess.DEVNULL)

    def recording(self, command: Sequence[str | Path]) -> list[str | Path]:
        """The command that records another."""
        return [HEAPWRIGHT, "record", *self.sites, "-o", self.trace, "--", *command]

    def record(self, *command: str | Path, text: str = "") -> None:
        """Record a program that ends by itself; `text` is its standard input."""
        with (self.folder / "output").open("w") as output:
            subprocess.run(
                self.recording(command), input=text, text=True, check=True, cwd=self.folder, stdout=output, timeout=120
            )

    @contextmanager
    def started(self, *command: str | Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
        """Start a program, and wait until it listens; it is killed if it has not ended by itself at the end."""
        with (self.folder / f"output-{port}").open("w") as output:
            process = subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=output)
        try:
            until = time.monotonic() + 20
            while port not in open_ports():
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{command[0]} does not listen:\n{Path(output.name).read_text()}")
                time.sleep(0.05)
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(30)

    @contextmanager
    def serve(
        self, *command: str | Path, first: Sequence[str] = (), end: signal.Signals = signal.SIGTERM
    ) -> Iterator[int]:
        """Record a server on `port`: a pause once it listens, the load that the body is, and its orderly end.

        Args:
            command: the server.
            first: a client that belongs to the start: it runs before the pause.
            end: what the server ends at.

        Yields:
            Its process.
        """
        with self.started(*self.recording(command), port=self.port) as recorder:
            if first:
                self.run(*first)
            time.sleep(1.5)
            server = int(Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text().split()[0])
            yield server
            time.sleep(0.5)
            os.kill(server, end)
            if recorder.wait(30) not in (0, -end, 128 + end):
                raise RuntimeError(f"{command[0]} ended with {recorder.returncode}")

    def cut_start(self) -> Path:
        """The trace without the start of a server: what it allocates before the pause that `serve` makes."""
        cut = self.folder / "cut.parquet"
        subprocess.run([sys.executable, EXAMPLES / "cut_start.py", self.trace, cut, "--pause", "0.7"], check=True)
        return cut

    @contextmanager
    def web_site(self, port: int) -> Iterator[Path]:
        """Serve the site of the examples with lighttpd, which is not recorded."""
        site = self.folder / "site"
        self.run(sys.executable, EXAMPLES / "http_load.py", "--root", site, "--make", "--seed", str(self.seed))
        config = self.file("site.conf", lighttpd_config(site, port, self.folder))
        with self.started("lighttpd", "-D", "-f", config, port=port):
            yield site

    def visit(self, site: Path, visitors: int, requests: int) -> None:
        """Fetch pages of a site at `port`."""
        load = [sys.executable, str(EXAMPLES / "http_load.py"), "--root", str(site), "--port", str(self.port)]
        counts = ["--visitors", str(visitors), "--requests", str(requests), "--seed", str(self.seed)]
        self.run(*load, *counts, "--pause", "0.05", seconds=120)


def lighttpd_config(site: Path, port: int, folder: Path) -> str:
    """A server with listings, compression and a log, as on a device that shows its state."""
    return f"""
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{site}"
server.modules = ("mod_access", "mod_dirlisting", "mod_deflate", "mod_accesslog", "mod_setenv")
dir-listing.activate = "enable"
deflate.mimetypes = ("text/")
deflate.allowed-encodings = ("gzip")
mimetype.assign = (".txt" => "text/plain", ".html" => "text/html", "" => "application/octet-stream")
accesslog.filename = "{folder}/access.log"
setenv.add-response-header = ("X-Frame-Options" => "DENY", "Cache-Control" => "max-age=60")
"""

"""Remote files: http and https addresses, from servers of this process."""

from __future__ import annotations

import re
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import tool_requirements
from command_runner import run_here

import heapwright as hw
from heapwright._support import remote
from heapwright._support.remote import local

EXAMPLE = Path(__file__).parents[2] / "examples" / "mosquitto_broker.parquet"
FOLDER = "lab"


class Server(ThreadingHTTPServer):
    """Files by path. `cut` limits the bytes that are sent, `leads_to` redirects, `in_chunks` sends no length."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.logins: list[str | None] = []
        self.cut: int | None = None
        self.leads_to = ""
        self.in_chunks = False

    def handle_error(self, *_: object) -> None:
        """Clients break off: that is tested."""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cut])

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        self.server.logins.append(self.headers.get("Authorization"))
        body = self.server.files.get(self.path)
        if self.server.leads_to:
            self.answer(302, Location=self.server.leads_to)
        elif body is None:
            self.answer(404)
        elif self.server.in_chunks:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(f"{len(body):x}\r\n".encode() + body[: self.server.cut])
        else:
            self.answer(200, body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setattr(remote, "_files", remote._Files())
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with Server() as item:
        item.files[f"/{FOLDER}/broker.parquet"] = EXAMPLE.read_bytes()
        threading.Thread(target=item.serve_forever, args=(0.01,), daemon=True).start()
        yield item
        item.shutdown()


@pytest.fixture
def over_tls(server: Server, tmp_path: Path) -> str:
    """The server's https address, whose certificate is trusted by SSL_CERT_FILE alone."""
    words = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run([tool_requirements.tool("openssl"), *words.split(), *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return f"https://{server.host}"


def fails(*words: str | Path) -> str:
    """The one line of a command that exits with 1."""
    done = run_here(*words)
    assert done.returncode == 1, done
    last = done.stderr.splitlines()[-1].removeprefix("heapwright: ")
    assert not re.search("SECRET(?!_)", done.stderr) and "Traceback" not in done.stderr
    return last


def test_a_remote_trace_replays_like_its_file_and_is_fetched_once(server: Server) -> None:
    address = f"http://{server.host}/{FOLDER}/broker.parquet"
    remote_metrics, local_metrics = (hw.replay(path, "tlsf").metrics for path in (address, EXAMPLE))
    assert remote_metrics == local_metrics
    assert hw.read_trace(address).name == "broker"
    assert server.requests == [f"/{FOLDER}/broker.parquet"]


def test_addresses_are_only_read(server: Server) -> None:
    trace = f"http://{server.host}/{FOLDER}/broker.parquet"
    target = f"https://{server.host}/target"
    for words in (("trace", "cut", trace, "--part", ":5"), ("explore", trace), ("generate", "tlsf")):
        assert fails(*words, "-o", target) == f"{target}: is only read; write to a file of this machine"


def test_s3_is_not_supported_and_the_error_names_the_alternatives() -> None:
    for words in (("profile", "s3://lab/x.parquet"), ("import", "s3://lab/x.log", "-o", "x.parquet")):
        assert fails(*words).endswith("S3 is not supported; copy the file here, or give an https address")


LOGS = {
    "log.txt": b"= Start\n@ ./app:[0x1] + 0x10 0x18\n@ ./app:[0x1] - 0x10\n= End\n",
    "packets.csv": b"time,length\n0.1,60\n0.2,1500\n",
}


@pytest.mark.parametrize("name", LOGS)
def test_remote_logs_and_packets_are_imported(server: Server, tmp_path: Path, name: str) -> None:
    server.files[f"/{FOLDER}/{name}"] = LOGS[name]
    done = run_here("import", f"http://{server.host}/{FOLDER}/{name}", "-o", tmp_path / "out.parquet")
    assert done.returncode == 0, done
    assert run_here("profile", tmp_path / "out.parquet").returncode == 0


def test_http_and_what_goes_wrong_with_it(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    base = f"http://{server.host}/{FOLDER}"
    assert len(hw.read_trace(f"{base}/broker.parquet")) == len(hw.read_trace(EXAMPLE))
    assert fails("profile", f"{base}/none.parquet") == f"{base}/none.parquet: the server says 404 Not Found"
    assert fails("profile", "http://127.0.0.1:9/x").endswith("cannot be reached (Connection refused)")
    assert fails("profile", f"http://SECRET:SECRET@{server.host}/x").startswith(f"http://{server.host}/x: no user")
    assert fails("profile", f"{base}/x?token=SECRET").startswith(f"{base}/x: nothing after a ?")
    server.files[f"/{FOLDER}/long.parquet"] = bytes(5000)
    with monkeypatch.context() as patched:
        patched.setattr(remote, "MOST_FETCHED", 4000)
        assert "long.parquet: 5,000 bytes" in fails("profile", f"{base}/long.parquet")
    server.cut = 3000
    cut = fails("profile", f"{base}/long.parquet")
    assert cut == f"{base}/long.parquet: the transfer was cut off after 3,000 of 5,000 bytes; try again"
    server.in_chunks = True
    cut = fails("profile", f"{base}/long.parquet")
    assert cut == f"{base}/long.parquet: the transfer was cut off after 3,000 bytes; try again"


def test_a_login_is_from_netrc_and_goes_to_its_host_alone(server: Server, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine localhost login me password SECRET")
    port = server.server_address[1]
    local(Path(f"http://localhost:{port}/{FOLDER}/broker.parquet"))
    assert server.logins == ["Basic bWU6U0VDUkVU"]
    server.logins.clear()
    local(Path(f"http://127.0.0.1:{port}/{FOLDER}/broker.parquet"))
    assert server.logins == [None]


def test_https_has_a_certificate_that_is_trusted(
    server: Server, over_tls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = f"{over_tls}/{FOLDER}/broker.parquet"
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    assert "cannot be reached" in (said := fails("profile", given)) and "certificate verify failed" in said
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    assert len(hw.read_trace(given)) == len(hw.read_trace(EXAMPLE))
    server.leads_to = "http://127.0.0.1:9/x"
    assert fails("profile", f"{over_tls}/x").endswith("leads to another address that is not https")
    server.leads_to = f"file://{EXAMPLE}"
    assert "is not allowed" in fails("profile", f"{over_tls}/x")

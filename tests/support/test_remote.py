"""Traces and studies by address, from servers of this process: the part of S3 that is used, and https."""

from __future__ import annotations

import hashlib
import re
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import tool_requirements
from command_runner import run_here

import heapwright as hw
from heapwright._studies import sending
from heapwright._support import remote
from heapwright._support.remote import local

EXAMPLE = Path(__file__).parents[2] / "examples" / "mosquitto_broker.parquet"
BUCKET = "lab"
FEW = ("--copies", "0", "--no-endurance", "--complete")
SPACE = """
include_zoo = false
[[pool]]
kind = "general"
bins = ["none", "exact"]
coalesce = ["immediate", "deferred"]
"""


class Server(ThreadingHTTPServer):
    """Objects by path, /BUCKET/KEY. `cut` sends so many bytes of one alone, `leads_to` redirects, `in_chunks` tells no
    length."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
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
        if self.command != "HEAD":
            self.wfile.write(body[: self.server.cut])

    def refused(self, code: int, name: str) -> None:
        self.answer(code, f"<Error><Code>{name}</Code><Message>No.</Message></Error>".encode())

    def known(self) -> bool:
        self.server.asked.append((self.command, self.path))
        self.server.logins.append(self.headers.get("Authorization"))
        if self.path.split("/")[1] == BUCKET:
            return True
        self.refused(404, "NoSuchBucket")
        return False

    def do_HEAD(self) -> None:
        if self.known():
            self.answer(200)

    def do_GET(self) -> None:
        body = self.server.objects.get(self.path)
        if self.server.leads_to:
            self.answer(302, Location=self.server.leads_to)
        elif self.known() and body is None:
            self.refused(404, "NoSuchKey")
        elif body is not None and self.server.in_chunks:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(f"{len(body):x}\r\n".encode() + body[: self.server.cut])
        elif body is not None:
            self.answer(200, body, ETag=tag(body))

    def do_PUT(self) -> None:
        body = self.content()
        if not self.known():
            return
        there = self.server.objects.get(self.path)
        only_over, only_new = self.headers.get("If-Match"), self.headers.get("If-None-Match")
        if (only_new and there is not None) or (only_over and (there is None or tag(there) != only_over)):
            self.refused(412, "PreconditionFailed")
            return
        self.server.objects[self.path] = body
        self.answer(200, ETag=tag(body))

    def content(self) -> bytes:
        if self.headers.get("Expect"):
            self.send_response_only(100)
            self.end_headers()
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return self.rfile.read(int(self.headers["Content-Length"]))
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body


def tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()}"'


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setattr(remote, "_files", remote._Files())
    for name in ("AWS_PROFILE", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "SECRETID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRETKEY")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with Server() as item:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{item.host}")
        item.objects[f"/{BUCKET}/broker.parquet"] = EXAMPLE.read_bytes()
        threading.Thread(target=item.serve_forever, args=(0.01,), daemon=True).start()
        yield item
        item.shutdown()


@pytest.fixture
def over_tls(server: Server, tmp_path: Path) -> str:
    """The server's https address, whose certificate nobody trusts that SSL_CERT_FILE does not tell of it."""
    words = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run([tool_requirements.tool("openssl"), *words.split(), *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return f"https://{server.host}"


@pytest.fixture
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("space") / "space.toml"
    path.write_text(SPACE)
    return path


def fails(*words: str | Path) -> str:
    """What a command says that exits 1: one line."""
    done = run_here(*words)
    assert done.returncode == 1, done
    last = done.stderr.splitlines()[-1].removeprefix("heapwright: ")
    assert not re.search("SECRET(?!_)", done.stderr) and "Traceback" not in done.stderr
    return last


def test_a_trace_on_s3_replays_as_its_file_does_and_is_fetched_once(server: Server) -> None:
    given = f"s3://{BUCKET}/broker.parquet"
    item, two = (hw.replay(path, "tlsf") for path in (given, EXAMPLE))
    assert item.metrics == two.metrics
    assert hw.read_trace(given).name == "broker"
    assert server.asked == [("GET", f"/{BUCKET}/broker.parquet")]
    assert "SECRETID" in str(server.logins)


def test_what_s3_does_not_have_is_one_line(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    given = f"s3://{BUCKET}/none.parquet"
    assert fails("profile", given) == f"{given}: no such object in the bucket"
    assert fails("profile", "s3://other/x.parquet") == "s3://other/x.parquet: no such bucket other"
    assert fails("profile", f"s3://{BUCKET}") == f"s3://{BUCKET}: no key; an address there is s3://BUCKET/KEY"
    server.objects[f"/{BUCKET}/none.parquet"] = b"no Parquet"
    assert fails("replay", given, "--heap", "tlsf").startswith(f"{given}: not a whole Parquet file")
    server.cut = 100
    whole = f"s3://{BUCKET}/broker.parquet"
    assert fails("profile", whole).startswith(f"{whole}: the transfer was cut off")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://SECRET:SECRET@127.0.0.1:9")
    assert fails("profile", whole) == f"{whole}: S3 cannot be reached; AWS_ENDPOINT_URL and AWS_REGION say where"
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert "no credentials; set AWS_ACCESS_KEY_ID" in fails("profile", whole)
    monkeypatch.setitem(sys.modules, "boto3", None)
    assert fails("profile", whole) == f"{whole}: boto3 is missing; install heapwright[remote]"


def test_a_study_on_s3_goes_on_and_is_read(server: Server, tmp_path: Path, space: Path) -> None:
    trace, study = f"s3://{BUCKET}/broker.parquet", f"s3://{BUCKET}/studies/b.duckdb"
    for recipes in ("2", "4"):
        remote._files.__init__()  # type: ignore[misc]  # as in a process of its own
        done = run_here(
            "explore", trace, "-o", study, "--limit", recipes, "--json", "--space", space, *FEW, folder=tmp_path
        )
        assert done.returncode == 0, done
        assert f'"study": "{study}"' in done.stdout
    assert not list(tmp_path.glob("s3:*"))
    run_here("explore", EXAMPLE, "-o", tmp_path / "b.duckdb", "--space", space, *FEW)
    remote._files.__init__()  # type: ignore[misc]
    there, here = hw.open_study(study), hw.open_study(tmp_path / "b.duckdb")
    assert there.finished_recipes == here.finished_recipes
    assert [info.path for info in there.traces()] == [trace]
    assert b"SECRET" not in server.objects[f"/{BUCKET}/studies/b.duckdb"]
    replayed = run_here("replay", trace, "--heap", f"{study}:balanced")
    assert replayed.returncode == 0 and "b.duckdb:balanced" in replayed.stdout
    id = there.front()[0].id
    server.asked.clear()
    assert "an address that a study holds is not fetched" in fails("study", "again", f"{study}:{id}")
    assert not server.asked
    assert run_here("study", "again", f"{study}:{id}", "--moved", trace).returncode == 0


def test_a_study_that_changed_meanwhile_is_not_written_over(server: Server, tmp_path: Path, space: Path) -> None:
    trace, study = f"s3://{BUCKET}/broker.parquet", f"s3://{BUCKET}/b.duckdb"
    place = f"/{BUCKET}/b.duckdb"

    def meanwhile(_: object) -> None:
        server.objects[place] = b"of another"

    with pytest.raises(hw.HeapwrightError, match="another was written there meanwhile; the study is kept as") as output:
        hw.explore(trace, study, space=space, copies=0, endurance=False, progress=meanwhile)
    assert server.objects[place] == b"of another"
    kept = Path(str(output.value).rpartition(" ")[2])
    assert hw.open_study(kept).ranked
    kept.unlink()
    kept.parent.rmdir()


def test_a_study_is_sent_while_it_is_written(server: Server, space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "EVERY_SECONDS", 0.0)
    hw.explore(EXAMPLE, f"s3://{BUCKET}/b.duckdb", space=space, copies=1, endurance=False)
    assert server.asked.count(("PUT", f"/{BUCKET}/b.duckdb")) > 1


def test_traces_are_written_to_s3_and_to_no_other_address(server: Server, tmp_path: Path, space: Path) -> None:
    trace, cut = f"s3://{BUCKET}/broker.parquet", f"s3://{BUCKET}/cut.parquet"
    for _ in range(2):  # over the one that is there
        assert run_here("trace", "cut", trace, "--first", "500", "-o", cut, folder=tmp_path).returncode == 0
    assert len(hw.read_trace(cut)) < len(hw.read_trace(EXAMPLE))
    assert not list(tmp_path.iterdir())
    assert "no such bucket other" in fails("trace", "cut", trace, "--first", "5", "-o", "s3://other/cut.parquet")
    elsewhere = f"https://{server.host}/cut.parquet"
    for words in (("trace", "cut", trace, "--first", "5"), ("explore", trace, "--space", str(space))):
        assert fails(*words, "-o", elsewhere) == f"{elsewhere}: is only read; write to a file, or to s3://BUCKET/KEY"
    assert "name a folder of this machine" in fails("generate", "tlsf", "-o", f"s3://{BUCKET}/firmware")


LOGS = {
    "log.txt": b"= Start\n@ ./app:[0x1] + 0x10 0x18\n@ ./app:[0x1] - 0x10\n= End\n",
    "packets.csv": b"time,length\n0.1,60\n0.2,1500\n",
}


@pytest.mark.parametrize("name", LOGS)
def test_logs_and_packets_are_imported_from_s3_to_s3(server: Server, name: str) -> None:
    server.objects[f"/{BUCKET}/{name}"] = LOGS[name]
    done = run_here("import", f"s3://{BUCKET}/{name}", "-o", f"s3://{BUCKET}/{name}.parquet")
    assert done.returncode == 0, done
    assert run_here("profile", f"s3://{BUCKET}/{name}.parquet").returncode == 0
    assert server.objects[f"/{BUCKET}/{name}.parquet"].startswith(b"PAR1")


def test_http_and_what_goes_wrong_with_it(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    base = f"http://{server.host}/{BUCKET}"
    assert len(hw.read_trace(f"{base}/broker.parquet")) == len(hw.read_trace(EXAMPLE))
    assert fails("profile", f"{base}/none.parquet") == f"{base}/none.parquet: the server says 404 Not Found"
    assert fails("profile", "http://127.0.0.1:9/x").endswith("cannot be reached (Connection refused)")
    assert fails("profile", f"http://SECRET:SECRET@{server.host}/x").startswith(f"http://{server.host}/x: no user")
    assert fails("profile", f"{base}/x?token=SECRET").startswith(f"{base}/x: nothing after a ?")
    server.objects[f"/{BUCKET}/long.parquet"] = bytes(5000)
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
    local(Path(f"http://localhost:{port}/{BUCKET}/broker.parquet"))
    assert server.logins == ["Basic bWU6U0VDUkVU"]
    server.logins.clear()
    local(Path(f"http://127.0.0.1:{port}/{BUCKET}/broker.parquet"))
    assert server.logins == [None]


def test_https_has_a_certificate_that_is_trusted(
    server: Server, over_tls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = f"{over_tls}/{BUCKET}/broker.parquet"
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    assert "cannot be reached" in (said := fails("profile", given)) and "certificate verify failed" in said
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    assert len(hw.read_trace(given)) == len(hw.read_trace(EXAMPLE))
    server.leads_to = "http://127.0.0.1:9/x"
    assert fails("profile", f"{over_tls}/x").endswith("leads to another address that is not https")
    server.leads_to = f"file://{EXAMPLE}"
    assert "is not allowed" in fails("profile", f"{over_tls}/x")

"""HTTP clients of a web server: sessions of pipelined requests in bursts, some that stop reading or break off."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from long.running import HOST, Run

CLIENTS, SLOW_CLIENTS = 20, 4
NEVER_ENDING = 1 << 30
"""Requests of a client that goes on until the others have asked all that they ask."""
KINDS = 3000
"""Requests that differ: made before, so that making them does not hold the server up."""
FILES = 120
ENDINGS = ("html", "txt", "json", "bin")
WINDOW_BYTES = 4096
"""Of a client that stops reading: the rest of an answer waits in the server, not in the kernel."""
HOSTS = ("device.local", "www.example.org", "panel-7.lan")
SILENCE_SECONDS = 10


def record_lighttpd(run: Run) -> None:
    """Record lighttpd, with listings and a log."""
    _make_site(run)
    config = run.file(
        "lighttpd.conf",
        f"""
server.bind = "{HOST}"
server.port = {run.port}
server.document-root = "{run.folder}/site"
server.modules = ("mod_access", "mod_rewrite", "mod_dirlisting", "mod_accesslog", "mod_setenv")
server.max-keep-alive-requests = 200
server.errorlog = "{run.folder}/error.log"
dir-listing.activate = "enable"
url.rewrite-once = (
    "^/old/(.*)$" => "/d0/",
    "^/(d[0-9]+)/index-([0-9]+)$" => "/$1/f$2.html",
    "^(.*)/same/(.*)$" => "$1/$2"
)
mimetype.assign = (".txt" => "text/plain", ".html" => "text/html", "" => "application/octet-stream")
accesslog.filename = "{run.folder}/access.log"
setenv.add-response-header = ("X-Frame-Options" => "DENY", "Cache-Control" => "max-age=60")
""",
    )
    with run.serve("lighttpd", "-D", "-f", config):
        _visit(run)


def record_nginx(run: Run) -> None:
    """Record nginx as one process, with listings, compression and a log."""
    _make_site(run)
    config = run.file(
        "nginx.conf",
        f"""
daemon off;
master_process off;
pid {run.folder}/pid;
error_log {run.folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log {run.folder}/access.log;
    client_body_temp_path {run.folder}/body;
    proxy_temp_path {run.folder}/proxy;
    fastcgi_temp_path {run.folder}/fastcgi;
    uwsgi_temp_path {run.folder}/uwsgi;
    scgi_temp_path {run.folder}/scgi;
    keepalive_requests 200;
    server {{
        listen {HOST}:{run.port};
        root {run.folder}/site;
        autoindex on;
        gzip on;
        gzip_types text/plain application/json;
        location /old/ {{ return 301 /; }}
    }}
}}
""",
    )
    with run.serve("nginx", "-c", config, "-p", run.folder):
        _visit(run)


def _make_site(run: Run) -> None:
    """Files of a few hundred bytes to half a megabyte, in folders."""
    draw = run.random("site")
    for number in range(FILES):
        size = int(min(draw.lognormvariate(8, 1.5), 500_000))
        line = f"line {draw.randrange(10**9)} of file {number}\n".encode()
        content = (line * (size // len(line) + 1))[:size]
        run.file(f"site/d{number % 6}/f{number}.{ENDINGS[number % len(ENDINGS)]}", content)


def _visit(run: Run) -> None:
    draw = run.random("requests")
    kinds = [request(draw, last=False) for _ in range(KINDS)]
    run.traffic(
        [_client(run, kinds, number, share, ()) for number, share in enumerate(run.shares(CLIENTS))],
        [_client(run, kinds, number, NEVER_ENDING, (0.02, 0.2)) for number in range(CLIENTS, CLIENTS + SLOW_CLIENTS)],
    )


def request(draw: random.Random, last: bool) -> bytes:
    """A request with the headers of some browser or tool; the last one of a connection says that it is."""
    kind = draw.random()
    if kind < 0.8:
        number = int(FILES * draw.random() ** 2)
        path = f"/d{number % 6}/f{number}.{ENDINGS[number % len(ENDINGS)]}"
    elif kind < 0.92:
        path = f"/missing/{'d' * draw.randrange(1, 120)}"
    else:
        path = f"/d{draw.randrange(6)}/" if kind < 0.97 else "/old/page"
    if draw.random() < 0.3:
        keys = draw.randrange(1, 12)
        path += "?" + "&".join(f"k{key}={draw.randrange(10 ** draw.randrange(1, 12))}" for key in range(keys))
    lines = [f"{'HEAD' if draw.random() < 0.1 else 'GET'} {path} HTTP/1.1", f"Host: {draw.choice(HOSTS)}"]
    if draw.random() < 0.6:
        lines.append(f"User-Agent: browser/{draw.randrange(99)} ({'x' * draw.randrange(5, 150)})")
    if draw.random() < 0.5:
        lines.append("Accept: " + "text/html," * draw.randrange(1, 20))
    if draw.random() < 0.3:
        lines.append(f"Cookie: session={'c' * int(min(draw.lognormvariate(4, 1), 1500))}")
    if draw.random() < 0.2:
        lines.append("Accept-Encoding: gzip, deflate")
    if draw.random() < 0.1:
        lines.append(f"Range: bytes={draw.randrange(99)}-{draw.randrange(100, 900)}")
    if draw.random() < 0.1:
        lines.append("If-Modified-Since: Sat, 29 Oct 2044 19:43:31 GMT")
    if last:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _read_all(reader: asyncio.StreamReader, draw: random.Random, stall: float) -> None:
    """Read until the server closes; where there are stalls, now and then stop reading, then catch up."""
    with suppress(OSError):
        while await reader.read(WINDOW_BYTES if stall else 1 << 18):
            if stall and draw.random() < 0.05:
                await asyncio.sleep(draw.expovariate(1 / stall))


@asynccontextmanager
async def connection(
    port: int, draw: random.Random, stall: float
) -> AsyncIterator[tuple[asyncio.StreamWriter, asyncio.Future[None]]]:
    """A connection, and the reading of all that the server sends; what is left of both ends with the body.

    One with stalls takes little that is not read.
    """
    with socket.socket() as own:
        if stall:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW_BYTES)
        own.setblocking(False)
        await asyncio.get_running_loop().sock_connect(own, (HOST, port))
        reader, writer = await asyncio.open_connection(sock=own, limit=WINDOW_BYTES if stall else 1 << 18)
        reading = asyncio.ensure_future(_read_all(reader, draw, stall))
        try:
            yield writer, reading
        finally:
            reading.cancel()
            writer.transport.abort()
            await asyncio.sleep(0)  # until the socket is no longer watched


async def _client(run: Run, kinds: list[bytes], number: int, requests: int, stalls: tuple[float, ...]) -> None:
    """Connections of some bursts of requests each; one in ten breaks off. Stalls are seconds without reading."""
    draw = run.random("client", number)
    while requests > 0:
        stall = draw.choice(stalls) if stalls else 0.0
        with suppress(OSError):
            async with connection(run.port, draw, stall) as (writer, reading):
                bursts = draw.randrange(1, 10)
                for burst in range(bursts):
                    requested = min(requests, 1 + int(draw.expovariate(1 / 12)))
                    requests -= requested
                    last = burst + 1 == bursts or requests == 0
                    asks = [draw.choice(kinds) for _ in range(requested - last)] + [request(draw, last=True)] * last
                    writer.write(b"".join(asks))
                    await writer.drain()
                    if last or reading.done():
                        break
                    await asyncio.sleep(draw.expovariate(1 / 0.004))
                if draw.random() > 0.1:
                    await asyncio.wait([reading], timeout=SILENCE_SECONDS)
        await asyncio.sleep(draw.expovariate(1 / 0.01))

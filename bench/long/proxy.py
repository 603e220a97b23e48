"""Clients of a web proxy, and the origin behind it: short connections, slow readers, an origin that answers late."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from functools import partial

from long.http import NEVER_ENDING, SILENCE_SECONDS, connection, request
from long.running import HOST, Run, free_port

CLIENTS, SLOW_CLIENTS = 20, 4


def record(run: Run) -> None:
    """Record tinyproxy: a thread for each connection."""
    config = run.file(
        "tinyproxy.conf",
        f"""
Port {run.port}
Listen {HOST}
Timeout 5
MaxClients 100
LogFile "{run.folder}/log"
LogLevel Warning
ViaProxyName "gateway"
AddHeader "X-Device" "gateway-1"
""",
    )
    origin = free_port()
    with run.serve("tinyproxy", "-d", "-c", config):
        run.traffic(
            [_client(run, origin, number, share, ()) for number, share in enumerate(run.shares(CLIENTS))],
            [
                _origin(run, origin),
                *(_client(run, origin, CLIENTS + item, NEVER_ENDING, (0.02, 0.2)) for item in range(SLOW_CLIENTS)),
            ],
        )


async def _origin(run: Run, port: int) -> None:
    """A web server of this process, until it is cancelled."""
    server = await asyncio.start_server(partial(_answer, run.random("origin")), HOST, port)
    async with server:
        await server.serve_forever()


async def _answer(draw: random.Random, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A page with some headers; one in twenty comes late, or in pieces."""
    # Cancelled where the clients have ended: a server of this process would report that as an error.
    with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
        requested = await reader.readuntil(b"\r\n\r\n")
        headers = "".join(f"X-Field-{n}: {'v' * draw.randrange(4, 80)}\r\n" for n in range(draw.randrange(2, 12)))
        size = int(min(draw.lognormvariate(7.5, 1.3), 100_000))
        start = f"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\n{headers}\r\n"
        late = draw.random() < 0.05
        writer.write(start.encode())
        if late:
            await asyncio.sleep(draw.expovariate(1 / 0.1))
        if not requested.startswith(b"HEAD"):
            writer.write(bytes(size))
        await writer.drain()
    writer.close()


async def _client(run: Run, origin: int, number: int, requests: int, stalls: tuple[float, ...]) -> None:
    """Bursts of connections with one request each, and pauses between bursts. Stalls are seconds without reading."""
    draw = run.random("client", number)
    while requests > 0:
        for _ in range(min(requests, 1 + int(draw.expovariate(1 / 6)))):
            requests -= 1
            stall = draw.choice(stalls) if stalls else 0.0
            with suppress(OSError):
                async with connection(run.port, draw, stall) as (writer, reading):
                    requested = request(draw, last=True).replace(b" /", f" http://{HOST}:{origin}/".encode(), 1)
                    writer.write(requested)
                    broken = draw.random() < 0.03
                    await asyncio.wait([reading], timeout=0.001 if broken else SILENCE_SECONDS)
        await asyncio.sleep(draw.expovariate(1 / 0.02))

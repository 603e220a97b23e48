"""Clients of a TLS wrapper, and the echo behind it: handshakes, messages in bursts, readers that stall, resets."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from contextlib import suppress

from long.http import WINDOW_BYTES
from long.running import HOST, Run, free_port

CLIENTS = 12
SILENCE_SECONDS = 10


def record(run: Run) -> None:
    """Record stunnel: a thread for each connection."""
    key, certificate = run.folder / "key.pem", run.folder / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    make += ["-subj", "/CN=device.local", "-days", "30", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(make, check=True, capture_output=True)
    behind = free_port()
    config = run.file(
        "stunnel.conf",
        f"""
foreground = quiet
pid =
syslog = no
output = {run.folder}/log
debug = err
[echo]
accept = {HOST}:{run.port}
connect = {HOST}:{behind}
cert = {certificate}
key = {key}
TIMEOUTclose = 0
sessionCacheSize = 40
""",
    )
    with run.serve("stunnel4", config):
        clients = [_client(run, number, share) for number, share in enumerate(run.shares(CLIENTS))]
        run.traffic(clients, [_behind(behind)])


async def _behind(port: int) -> None:
    """An echo of this process, until it is cancelled."""
    server = await asyncio.start_server(_echo, HOST, port)
    async with server:
        await server.serve_forever()


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while got := await reader.read(1 << 14):
            writer.write(got)
            await writer.drain()
    writer.close()


async def _client(run: Run, number: int, sessions: int) -> None:
    """Sessions of a handshake and some bursts of messages; one in ten is reset, one client in four reads slowly."""
    draw = run.random("client", number)
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    if number % 3 == 0:
        trusting.maximum_version = ssl.TLSVersion.TLSv1_2
    for _ in range(sessions):
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(HOST, run.port, ssl=trusting, limit=WINDOW_BYTES)
            with suppress(asyncio.TimeoutError, asyncio.IncompleteReadError):
                for _ in range(draw.randrange(1, 8)):
                    sizes = [int(min(draw.lognormvariate(6, 1.5), 20_000)) for _ in range(draw.randrange(1, 6))]
                    for size in sizes:
                        writer.write(bytes(size + 1))
                    if number % 4 == 0:
                        await asyncio.sleep(draw.expovariate(1 / 0.05))
                    await asyncio.wait_for(reader.readexactly(sum(sizes) + len(sizes)), SILENCE_SECONDS)
                    await asyncio.sleep(draw.expovariate(1 / 0.005))
            if draw.random() < 0.1:
                writer.transport.abort()
            else:
                writer.close()
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(writer.wait_closed(), 1)
        await asyncio.sleep(draw.expovariate(1 / 0.02))

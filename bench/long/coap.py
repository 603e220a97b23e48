"""CoAP clients over UDP: resources made, read and removed in bursts, observers of the time, ports that come again."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import struct
from contextlib import suppress

from long.running import HOST, Run

CLIENTS, OBSERVERS = 12, 4
PORTS_EACH = 4
"""A server keeps a session for minutes after its last packet: new ports without end would be a leak of minutes."""
NAMES = 60
GET, PUT, DELETE = 1, 3, 4
CONFIRMABLE, NOT_CONFIRMABLE, ACKNOWLEDGEMENT = 0x40, 0x50, 0x60
OBSERVE, PATH, FORMAT, QUERY, MARKER = 6, 11, 12, 15, b"\xff"
WAIT_SECONDS = 0.5
READ_BYTES = 4096


def record(run: Run) -> None:
    """Record the example server of libcoap, whose clients may make resources."""
    server = ("coap-server-notls", "-A", HOST, "-p", str(run.port), "-d", str(NAMES))
    with run.serve(*server, end=signal.SIGINT):
        run.traffic(
            [_client(run, number, share) for number, share in enumerate(run.shares(CLIENTS))],
            [_observer(run, number) for number in range(OBSERVERS)],
        )


def _options(options: list[tuple[int, bytes]]) -> bytes:
    result, before = bytearray(), 0
    for number, value in sorted(options, key=lambda option: option[0]):
        length = len(value)
        result.append((number - before) << 4 | (length if length < 13 else 13))
        result += bytes([length - 13]) if length >= 13 else b""
        result += value
        before = number
    return bytes(result)


def _message(kind: int, code: int, number: int, options: list[tuple[int, bytes]], content: bytes = b"") -> bytes:
    token = struct.pack(">I", number)
    header = struct.pack(">BBH", kind | len(token), code, number & 0xFFFF)
    return header + token + _options(options) + (MARKER + content if content else b"")


def _name(number: int) -> bytes:
    """Each name has always the same length."""
    return f"resource-{number}-{'x' * (number % 20)}".encode()


def _request(draw: random.Random, number: int) -> bytes:
    path = (PATH, _name(draw.randrange(NAMES)))
    kind = CONFIRMABLE if draw.random() < 0.7 else NOT_CONFIRMABLE
    what = draw.random()
    if what < 0.4:
        size = 1 + int(min(draw.lognormvariate(4, 1), 1000))
        return _message(kind, PUT, number, [path, (FORMAT, b"")], bytes(size))
    if what < 0.55:
        return _message(kind, DELETE, number, [path])
    if what < 0.6:
        return _message(kind, GET, number, [(PATH, b".well-known"), (PATH, b"core")])
    if what < 0.7:
        return _message(kind, GET, number, [(PATH, b"time"), (QUERY, b"ticks")][: draw.randrange(1, 3)])
    return _message(kind, GET, number, [path])


def _opened(run: Run) -> socket.socket:
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.setblocking(False)
    own.connect((HOST, run.port))
    return own


async def _answers(own: socket.socket, count: int) -> None:
    """Read a number of answers, and acknowledge those that require it."""
    loop = asyncio.get_running_loop()
    while count > 0:
        got = await loop.sock_recv(own, READ_BYTES)
        if got[0] & 0x30 == 0:
            own.send(bytes([ACKNOWLEDGEMENT, 0]) + got[2:4])
        count -= 1


async def _client(run: Run, number: int, requests: int) -> None:
    """Bursts of requests from one of a few ports; some are not read until much later."""
    draw = run.random("client", number)
    owned = [_opened(run) for _ in range(PORTS_EACH)]
    requested = 0
    while requested < requests:
        own = draw.choice(owned)
        burst = min(requests - requested, 1 + int(draw.expovariate(1 / 6)))
        for _ in range(burst):
            requested += 1
            own.send(_request(draw, number << 24 | requested & 0xFFFFFF))
        if draw.random() < 0.03:
            await asyncio.sleep(draw.expovariate(1 / 0.1))
        with suppress(asyncio.TimeoutError, OSError):
            await asyncio.wait_for(_answers(own, burst), WAIT_SECONDS)
        await asyncio.sleep(draw.expovariate(1 / 0.003))
    for own in owned:
        own.close()


async def _observer(run: Run, number: int) -> None:
    """Observes the time, which changes each second, and stops after some seconds; some never acknowledge."""
    draw = run.random("observer", number)
    own = _opened(run)
    requested = 0
    try:
        while True:
            requested += 1
            own.send(_message(CONFIRMABLE, GET, number << 28 | requested, [(PATH, b"time"), (OBSERVE, b"")]))
            with suppress(asyncio.TimeoutError, OSError):
                await asyncio.wait_for(_answers(own, 1000), draw.expovariate(1 / 3))
            own.send(_message(CONFIRMABLE, GET, number << 28 | requested, [(PATH, b"time"), (OBSERVE, b"\x01")]))
            await asyncio.sleep(draw.expovariate(1 / 0.5))
    finally:
        own.close()

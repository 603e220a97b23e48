"""Clients of a DNS forwarder in bursts, and the server that it asks: short-lived answers, some late, some lost."""

from __future__ import annotations

import asyncio
import random
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import cast

from long.running import HOST, Run, free_port

CLIENTS = 16
NAMES = 3000
HEADER = struct.Struct(">6H")
QUESTION_BYTES = 4
ADDRESS, TEXT, ADDRESS_6, MAIL = 1, 16, 28, 15
KINDS = (ADDRESS, ADDRESS, ADDRESS, ADDRESS_6, TEXT, MAIL)
LARGER_ANSWERS = b"\0\0\x29\x10\0\0\0\0\0\0\0"
"""EDNS: up to 4 KiB."""
WAIT_SECONDS = 0.5


def record(run: Run) -> None:
    """Record unbound as a forwarder with small caches."""
    upstream = free_port()
    config = run.file(
        "unbound.conf",
        f"""
server:
    interface: {HOST}@{run.port}
    port: {run.port}
    access-control: 127.0.0.0/8 allow
    username: ""
    chroot: ""
    directory: "{run.folder}"
    pidfile: "{run.folder}/pid"
    do-daemonize: no
    use-syslog: no
    logfile: "{run.folder}/log"
    num-threads: 1
    num-queries-per-thread: 64
    outgoing-range: 128
    msg-buffer-size: 8192
    module-config: "iterator"
    do-not-query-localhost: no
    msg-cache-size: 200k
    rrset-cache-size: 400k
    infra-cache-numhosts: 100
    cache-min-ttl: 0
forward-zone:
    name: "."
    forward-addr: {HOST}@{upstream}
remote-control:
    control-enable: no
""",
    )
    with run.serve("unbound", "-d", "-c", config):
        clients = [_client(run, number, share) for number, share in enumerate(run.shares(CLIENTS))]
        run.traffic(clients, [_upstream(run, upstream)])


def _name(draw: random.Random) -> bytes:
    host = f"h{int(NAMES * draw.random() ** 2)}"
    kind = draw.choice(("www", "mail", "a", "some-long-label-of-a-network", "x"))
    labels = (host, kind, "example", draw.choice(("org", "com", "net")))
    return b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"


def _query(draw: random.Random, number: int) -> bytes:
    larger = draw.random() < 0.4
    question = _name(draw) + struct.pack(">2H", draw.choice(KINDS), 1)
    return HEADER.pack(number & 0xFFFF, 0x0100, 1, 0, 0, larger) + question + (LARGER_ANSWERS if larger else b"")


class _Datagrams(asyncio.DatagramProtocol):
    """Hands each datagram to a function."""

    def __init__(self, received: Callable[[asyncio.DatagramTransport, bytes, tuple[str, int]], object]) -> None:
        self.received = received
        self.transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No subclass of it in every release of Python.
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert self.transport is not None
        self.received(self.transport, data, addr)


def _count(came: asyncio.Semaphore, *_: object) -> None:
    came.release()


async def _all(came: asyncio.Semaphore, count: int) -> None:
    for _ in range(count):
        await came.acquire()


async def _client(run: Run, number: int, queries: int) -> None:
    """Bursts of queries from one port, another one after some bursts; a burst waits until its answers have come."""
    draw = run.random("client", number)
    loop = asyncio.get_running_loop()
    requested = 0
    while requested < queries:
        came = asyncio.Semaphore(0)
        transport, _ = await loop.create_datagram_endpoint(
            partial(_Datagrams, partial(_count, came)), remote_addr=(HOST, run.port)
        )
        for _ in range(draw.randrange(1, 30)):
            burst = min(queries - requested, 1 + int(draw.expovariate(1 / 10)))
            for _ in range(burst):
                requested += 1
                transport.sendto(_query(draw, requested))
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(_all(came, burst), WAIT_SECONDS)
            await asyncio.sleep(draw.expovariate(1 / 0.003))
            if requested >= queries:
                break
        transport.close()


async def _upstream(run: Run, port: int) -> None:
    """The server that the forwarder asks, until cancelled. Now and then it is silent, then answers all at once."""
    draw = run.random("upstream")
    waiting: list[tuple[bytes, tuple[str, int]]] = []
    silent = False

    def received(transport: asyncio.DatagramTransport, data: bytes, address: tuple[str, int]) -> None:
        if draw.random() < 0.002:
            return
        if silent:
            waiting.append((data, address))
        else:
            transport.sendto(_answer(data), address)

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        partial(_Datagrams, received), local_addr=(HOST, port)
    )
    try:
        while True:
            await asyncio.sleep(draw.expovariate(1 / 1.5))
            silent = True
            await asyncio.sleep(draw.expovariate(1 / 0.05))
            silent = False
            for data, address in waiting:
                transport.sendto(_answer(data), address)
            waiting.clear()
    finally:
        transport.close()


def _answer(query: bytes) -> bytes:
    """What the name has, or that there is no such name: the same each time, for any seed."""
    end = HEADER.size
    while query[end]:
        end += query[end] + 1
    end += 1 + QUESTION_BYTES
    kind = int.from_bytes(query[end - 4 : end - 2], "big")
    draw = random.Random(zlib.crc32(query[HEADER.size : end].lower()))
    if draw.random() < 0.15:
        return query[:2] + struct.pack(">5H", 0x8183, 1, 0, 0, 0) + query[HEADER.size : end]
    records = []
    for _ in range(draw.randrange(1, 9)):
        content = {
            ADDRESS: draw.randbytes(4),
            ADDRESS_6: draw.randbytes(16),
            TEXT: b"\x3c" + b"t" * 60,
            MAIL: b"\x00\x0a\x04mail\xc0\x0c",
        }.get(kind, b"\0")
        # Seconds: few, so that the cache asks again and again.
        records.append(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, draw.randrange(1, 9), len(content)) + content)
    header = query[:2] + struct.pack(">5H", 0x8180, 1, len(records), 0, 0)
    return header + query[HEADER.size : end] + b"".join(records)

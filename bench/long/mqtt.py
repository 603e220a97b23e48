"""MQTT 3.1.1 clients of a broker: publishers in bursts, subscribers that come and go, some that stop reading."""

from __future__ import annotations

import asyncio
import getpass
import random
import socket
import struct
from contextlib import suppress

from long.running import HOST, Run

SITES, PLACES = 6, 4
KINDS = ("temperature", "humidity", "door", "power", "image", "log")
TOPICS = tuple(f"site/{site}/{kind}/{place}" for site in range(SITES) for kind in KINDS for place in range(PLACES))
PUBLISHERS, SUBSCRIBERS = 10, 12
WINDOW_BYTES = 4096
"""Of a subscriber that stops reading: the rest waits in the broker, not in the kernel."""
CONNECT, PUBLISH, PUBACK, SUBSCRIBE, DISCONNECT = 0x10, 0x30, 0x40, 0x82, 0xE0


def record(run: Run) -> None:
    """Record mosquitto."""
    config = run.file(
        "mosquitto.conf",
        f"""
listener {run.port} {HOST}
allow_anonymous true
persistence false
max_queued_messages 100
sys_interval 2
log_dest none
user {getpass.getuser()}
""",
    )
    with run.serve("mosquitto", "-c", config):
        run.traffic(
            [_publisher(run, number, share) for number, share in enumerate(run.shares(PUBLISHERS))],
            [_subscriber(run, number) for number in range(SUBSCRIBERS)],
        )


def _length(count: int) -> bytes:
    """A length of MQTT: seven bits a byte."""
    result = bytearray()
    while True:
        count, low = divmod(count, 128)
        result.append(low | (128 if count else 0))
        if not count:
            return bytes(result)


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _connect(client: str, clean: bool) -> bytes:
    body = _text("MQTT") + bytes([4, 2 if clean else 0]) + struct.pack(">H", 60) + _text(client)
    return bytes([CONNECT]) + _length(len(body)) + body


def _subscribe(topics: list[tuple[str, int]]) -> bytes:
    body = struct.pack(">H", 1) + b"".join(_text(topic) + bytes([quality]) for topic, quality in topics)
    return bytes([SUBSCRIBE]) + _length(len(body)) + body


def _publish(draw: random.Random, packet: int) -> bytes:
    """A message: most are short readings, some logs, a few pieces of images; four in ten are acknowledged."""
    kind = draw.random()
    if kind < 0.85:
        size = int(draw.lognormvariate(3.5, 0.8))
    else:
        size = draw.randrange(200, 1500) if kind < 0.97 else draw.randrange(1500, 8000)
    acknowledged, retained = draw.random() < 0.4, draw.random() < 0.15
    body = _text(draw.choice(TOPICS)) + (struct.pack(">H", packet) if acknowledged else b"") + draw.randbytes(size)
    return bytes([PUBLISH | acknowledged << 1 | retained]) + _length(len(body)) + body


def _acknowledgements(waiting: bytearray) -> bytes:
    """Take all whole packets out of what came, and acknowledge the messages that ask for it."""
    answer = bytearray()
    start = 0
    while True:
        at, length, shift = start + 1, 0, 0
        while at < len(waiting):
            length |= (waiting[at] & 127) << shift
            shift += 7
            at += 1
            if waiting[at - 1] < 128:
                break
        else:
            break
        if at + length > len(waiting):
            break
        if waiting[start] >> 4 == PUBLISH >> 4 and waiting[start] >> 1 & 3 == 1:
            topic = int.from_bytes(waiting[at : at + 2], "big")
            answer += bytes([PUBACK, 2]) + waiting[at + 2 + topic : at + 4 + topic]
        start = at + length
    del waiting[:start]
    return bytes(answer)


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, draw: random.Random, stall: float) -> None:
    """Read and acknowledge until the connection ends; now and then stop reading, then catch up."""
    waiting = bytearray()
    with suppress(OSError):
        while got := await reader.read(WINDOW_BYTES if stall else 1 << 16):
            waiting += got
            if answer := _acknowledgements(waiting):
                writer.write(answer)
            if stall and draw.random() < 0.02:
                await asyncio.sleep(draw.expovariate(1 / stall))


async def _subscriber(run: Run, number: int) -> None:
    """Sessions of about a second; each subscribes to other topics. One in three keeps its state in the broker."""
    draw = run.random("subscriber", number)
    while True:
        with socket.socket() as own, suppress(OSError):
            stall = draw.choice((0.0, 0.1, 0.3)) if number % 3 == 0 else 0.0
            if stall:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW_BYTES)
            own.setblocking(False)
            await asyncio.get_running_loop().sock_connect(own, (HOST, run.port))
            reader, writer = await asyncio.open_connection(sock=own, limit=WINDOW_BYTES if stall else 1 << 16)
            writer.write(_connect(f"subscriber{number}", clean=number % 3 != 1))
            wanted = [TOPICS[draw.randrange(len(TOPICS))] for _ in range(draw.randrange(1, 5))]
            if draw.random() < 0.5:
                wanted[0] = f"site/{draw.randrange(SITES)}/+/#"
            writer.write(_subscribe([(topic, draw.randrange(2)) for topic in wanted]))
            try:
                await asyncio.wait_for(_read(reader, writer, draw, stall), draw.expovariate(1 / 0.8))
            except asyncio.TimeoutError:
                pass
            finally:
                writer.transport.abort()
                await asyncio.sleep(0)  # until the socket is no longer watched
        await asyncio.sleep(draw.expovariate(1 / 0.15))


async def _publisher(run: Run, number: int, messages: int) -> None:
    """Sessions of some bursts of messages, as fast as the broker takes them, and pauses between bursts."""
    draw = run.random("publisher", number)
    while messages > 0:
        reader, writer = await asyncio.open_connection(HOST, run.port)
        reading = asyncio.ensure_future(_read(reader, writer, draw, 0.0))
        with suppress(OSError):
            writer.write(_connect(f"publisher{number}-{draw.randrange(4)}", clean=draw.random() < 0.7))
            for _ in range(draw.randrange(1, 40)):
                burst = min(messages, 1 + int(draw.expovariate(1 / 8)))
                writer.write(b"".join(_publish(draw, 1 + (messages - sent) % 60000) for sent in range(burst)))
                messages -= burst
                await writer.drain()
                await asyncio.sleep(draw.expovariate(1 / 0.02))
                if messages == 0:
                    break
            if draw.random() < 0.8:
                writer.write(bytes([DISCONNECT, 0]))
                await writer.drain()
        # What the broker still sends is read, as it would else reset the connection before it reads our last bytes.
        await asyncio.wait([reading], timeout=0.2)
        reading.cancel()
        writer.close()

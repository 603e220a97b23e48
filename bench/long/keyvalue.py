"""Clients of a key-value server: pipelined commands on bounded sets of keys, subscribers that stop reading."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

from long.http import NEVER_ENDING, connection
from long.running import Run

CLIENTS, SLOW_CLIENTS, SUBSCRIBERS = 10, 3, 4
KEYS, MEMBERS = 150, 60
SILENCE_SECONDS = 10


def record(run: Run) -> None:
    """Record Redis, which keeps nothing on disk."""
    options = ["--port", str(run.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(run.folder)]
    options += ["--client-output-buffer-limit", "pubsub", "1mb", "256kb", "1"]
    with run.serve("redis-server", *options):
        run.traffic(
            [_client(run, number, share, 0.0) for number, share in enumerate(run.shares(CLIENTS))],
            [
                *(_client(run, CLIENTS + number, NEVER_ENDING, 0.02) for number in range(SLOW_CLIENTS)),
                *(_subscriber(run, number) for number in range(SUBSCRIBERS)),
            ],
        )


def _packed(*words: object) -> bytes:
    """A command in the server's protocol."""
    texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts)


def _value(draw: random.Random) -> bytes:
    return draw.randbytes(int(min(draw.lognormvariate(4, 1.2), 4000)))


def _command(draw: random.Random) -> bytes:
    """One command; each kind of key is bounded in number and in length."""
    key, kind = int(KEYS * draw.random() ** 1.5), draw.random()
    member = f"member{draw.randrange(MEMBERS)}"
    if kind < 0.35:
        return _text_command(draw, f"text{key}")
    if kind < 0.55:
        return draw.choice((
            lambda: _packed("RPUSH", f"list{key}", *(_value(draw) for _ in range(draw.randrange(1, 5)))),
            lambda: _packed("LTRIM", f"list{key}", -draw.randrange(1, 40), -1),
            lambda: _packed("LPOP", f"list{key}", draw.randrange(1, 4)),
            lambda: _packed("LRANGE", f"list{key}", 0, draw.choice((5, -1))),
            lambda: _packed("LTRIM", f"list{key}", -20, -1),
        ))()  # fmt: skip
    if kind < 0.75:
        return draw.choice((
            lambda: _packed("HSET", f"hash{key}", member, _value(draw)),
            lambda: _packed("HSET", f"hash{key}", member, draw.randrange(10**6)),
            lambda: _packed("HDEL", f"hash{key}", member),
            lambda: _packed("HGETALL", f"hash{key}"),
            lambda: _packed("DEL", f"hash{key}"),
        ))()  # fmt: skip
    if kind < 0.87:
        return draw.choice((
            lambda: _packed("ZADD", f"sorted{key}", draw.randrange(1000), member),
            lambda: _packed("ZREM", f"sorted{key}", member),
            lambda: _packed("ZRANGEBYSCORE", f"sorted{key}", draw.randrange(1000), 1000),
            lambda: _packed("ZREMRANGEBYRANK", f"sorted{key}", 0, -40),
        ))()  # fmt: skip
    if kind < 0.95:
        return draw.choice((
            lambda: _packed("SADD", f"set{key}", member, draw.randrange(99)),
            lambda: _packed("SREM", f"set{key}", member, draw.randrange(99)),
            lambda: _packed("SMEMBERS", f"set{key}"),
            lambda: _packed("SUNIONSTORE", f"set{key}", f"set{(key + 1) % KEYS}", f"set{(key + 2) % KEYS}"),
        ))()  # fmt: skip
    return _packed("PUBLISH", f"channel{draw.randrange(4)}", _value(draw) * draw.choice((1, 1, 8)))


def _text_command(draw: random.Random, key: str) -> bytes:
    kind = draw.random()
    if kind < 0.4:
        return _packed("SET", key, _value(draw), *draw.choice(((), ("PX", draw.randrange(20, 900)))))
    if kind < 0.7:
        return _packed("GET", key)
    if kind < 0.8:
        return _packed("APPEND", f"{key}:log", _value(draw)[:100])
    return _packed("DEL", key, f"{key}:log")


async def _client(run: Run, number: int, commands: int, stall: float) -> None:
    """Connections of some bursts of commands; one in ten breaks off. A stall is seconds without reading."""
    draw = run.random("client", number)
    while commands > 0:
        with suppress(OSError):
            async with connection(run.port, draw, stall) as (writer, reading):
                for _ in range(draw.randrange(1, 40)):
                    burst = min(commands, 1 + int(draw.expovariate(1 / 10)))
                    commands -= burst
                    writer.write(b"".join(_command(draw) for _ in range(burst)))
                    await writer.drain()
                    if commands == 0 or reading.done():
                        break
                    await asyncio.sleep(draw.expovariate(1 / 0.004))
                if draw.random() > 0.1:
                    writer.write(_packed("QUIT"))
                    await asyncio.wait([reading], timeout=SILENCE_SECONDS)
        await asyncio.sleep(draw.expovariate(1 / 0.01))


async def _subscriber(run: Run, number: int) -> None:
    """Listens to some channels, and stops reading now and then, so that the server keeps what it cannot send."""
    draw = run.random("subscriber", number)
    while True:
        with suppress(OSError):
            async with connection(run.port, draw, draw.choice((0.05, 0.2))) as (writer, reading):
                writer.write(
                    _packed("SUBSCRIBE", *(f"channel{draw.randrange(4)}" for _ in range(draw.randrange(1, 4))))
                )
                await asyncio.wait([reading], timeout=draw.expovariate(1 / 0.7))
        await asyncio.sleep(draw.expovariate(1 / 0.1))

"""IRC clients: channels joined and left, messages, bans, topics and names that change, slow readers, reconnects."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

from long.http import NEVER_ENDING, connection
from long.running import HOST, Run

CLIENTS, SLOW_CLIENTS = 20, 4
CHANNELS = 30
SILENCE_SECONDS = 5


def record(run: Run) -> None:
    """Record InspIRCd, without its limits for clients that ask much."""
    config = run.file(
        "inspircd.conf",
        f"""
<server name="irc.device.local" description="a server" network="Local" id="001">
<admin name="person" email="person@device.local">
<bind address="{HOST}" port="{run.port}" type="clients">
<connect allow="*" timeout="30" useident="no" resolvehostnames="no" pingfreq="60" hardsendq="200K" softsendq="100K"
 recvq="20K" threshold="10000" commandrate="1000000000" fakelag="no" localmax="100" globalmax="100" maxchans="40">
<pid file="{run.folder}/pid">
<log method="file" type="*" level="default" target="{run.folder}/log">
""",
    )
    with run.serve("inspircd", "--nofork", "--runasroot", "--config", config):
        run.traffic(
            [_client(run, number, share, ()) for number, share in enumerate(run.shares(CLIENTS))],
            [_client(run, CLIENTS + number, NEVER_ENDING, (0.02, 0.1)) for number in range(SLOW_CLIENTS)],
        )


def _words(draw: random.Random, most: int) -> str:
    return " ".join("w" * draw.randrange(1, 12) for _ in range(draw.randrange(1, most)))


def _command(draw: random.Random, nick: str) -> str:
    channel, other = f"#room{int(CHANNELS * draw.random() ** 2)}", f"client{draw.randrange(CLIENTS)}"
    kind = draw.random()
    if kind < 0.3:
        return f"JOIN {channel}"
    if kind < 0.5:
        return f"PART {channel} :{_words(draw, 5)}"
    if kind < 0.6:
        return f"TOPIC {channel} :{_words(draw, 20)}"
    if kind < 0.72:
        return f"MODE {channel} {draw.choice('+-')}b mask{draw.randrange(40)}!*@{'h' * draw.randrange(1, 30)}"
    if kind < 0.82:
        return f"PRIVMSG {draw.choice((channel, other))} :{_words(draw, 30)}"
    return {
        0: f"INVITE {other} {channel}",
        1: f"AWAY :{_words(draw, 8)}",
        2: f"NICK {nick}{draw.choice(('', '_', '-away'))}",
        3: f"WHOIS {other}",
        4: f"NAMES {channel}",
        5: "AWAY",
    }[draw.randrange(6)]


async def _client(run: Run, number: int, commands: int, stalls: tuple[float, ...]) -> None:
    """Sessions of some bursts of commands; one in ten breaks off. Stalls are seconds without reading."""
    draw = run.random("client", number)
    nick = f"client{number}"
    while commands > 0:
        stall = draw.choice(stalls) if stalls else 0.0
        with suppress(OSError):
            async with connection(run.port, draw, stall) as (writer, reading):
                writer.write(f"NICK {nick}\r\nUSER {'u' * draw.randrange(1, 9)} 0 * :{_words(draw, 5)}\r\n".encode())
                for _ in range(draw.randrange(1, 30)):
                    burst = min(commands, 1 + int(draw.expovariate(1 / 10)))
                    commands -= burst
                    writer.write("".join(f"{_command(draw, nick)}\r\n" for _ in range(burst)).encode())
                    await writer.drain()
                    if commands == 0 or reading.done():
                        break
                    await asyncio.sleep(draw.expovariate(1 / 0.01))
                if draw.random() > 0.1:
                    writer.write(b"QUIT :until later\r\n")
                    await asyncio.wait([reading], timeout=SILENCE_SECONDS)
        await asyncio.sleep(draw.expovariate(1 / 0.02))

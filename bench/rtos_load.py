"""Clients of lwIP's example application on an emulated board: what they ask, and how often, by a seed.

Each client waits for a random time, asks, reads what comes, and begins again, until the time is over. They reach the
board through ports of this machine; the broker that the board's MQTT client talks to is one of them.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

READY_SECONDS = 30
ANSWER_SECONDS = 5
END_SECONDS = 30
STALL_SECONDS = 0.3
NARROW_BYTES = 4096
PAGES = ("/", "/img/sics.gif", "/none.html")
GROUPS = (1, 2, 4, 5, 6, 7, 11)
"""Of MIB-II: system, interfaces, ip, icmp, tcp, udp, snmp."""


@dataclass(frozen=True)
class Load:
    """How many clients of each kind there are, and for how many seconds one waits between requests on average.

    Attributes:
        stalled: clients that stop reading for a while, and then go on.
        burst: requests that a client makes without waiting, at most.
    """

    http: int = 4
    echo: int = 1
    characters: int = 2
    datagrams: int = 2
    snmp: int = 1
    shell: int = 1
    stalled: int = 0
    pause: float = 0.2
    burst: int = 1

    def times(self, factor: int) -> Load:
        """This many times the clients."""
        more = {kind: factor * count for kind, count in asdict(self).items() if kind not in ("pause", "burst")}
        return replace(self, **more)

    def counts(self) -> tuple[int, ...]:
        return self.http, self.echo, self.characters, self.datagrams, self.snmp, self.shell, self.stalled


@dataclass
class Ports:
    """Where the board's services are on this machine."""

    http: int
    echo: int
    characters: int
    shell: int
    snmp: int

    @classmethod
    def free(cls) -> Ports:
        """Ports that are free now, for TCP and UDP."""
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(5)]
        ports = [item.getsockname()[1] for item in held]
        for item in held:
            item.close()
        return cls(*ports)

    def forwards(self) -> str:
        """As QEMU's user network is configured."""
        services = ((self.http, 80), (self.echo, 7), (self.characters, 19), (self.shell, 23))
        info = [f"hostfwd=tcp:127.0.0.1:{ours}-:{port}" for ours, port in services]
        info += [f"hostfwd=udp:127.0.0.1:{ours}-:{port}" for ours, port in ((self.echo, 7), (self.snmp, 161))]
        return ",".join(info)


@dataclass
class Clients:
    """The clients of one run, and what they got."""

    load: Load
    seed: int
    seconds: float
    ports: Ports
    served: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        """All clients side by side, until the time is over."""
        asks = (_http, _echo, _characters, _datagram, _snmp, _shell, _stalled)
        clients = [
            self._client(ask, number)
            for ask, count in zip(asks, self.load.counts(), strict=True)
            for number in range(count)
        ]
        await asyncio.gather(*clients)

    async def _client(self, ask: Ask, number: int) -> None:
        name = ask.__name__.removeprefix("_")
        chance = random.Random(f"{self.seed} {name} {number}")
        over = asyncio.get_running_loop().time() + self.seconds
        while asyncio.get_running_loop().time() < over:
            await asyncio.sleep(chance.expovariate(1 / self.load.pause))
            for _ in range(chance.randint(1, self.load.burst) if self.load.burst > 1 else 1):
                try:
                    await asyncio.wait_for(ask(self.ports, chance), ANSWER_SECONDS)
                    self.served[name] += 1
                except (OSError, EOFError, asyncio.TimeoutError):
                    self.failed[name] += 1


Ask = Callable[[Ports, random.Random], Coroutine[None, None, None]]


@asynccontextmanager
async def _connection(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        await _closed(writer)


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _http(ports: Ports, chance: random.Random) -> None:
    """A page with a header of some length; the board closes."""
    async with _connection(ports.http) as (reader, writer):
        cookie = "c" * chance.randrange(20, 500)
        writer.write(f"GET {chance.choice(PAGES)} HTTP/1.0\r\nHost: board\r\nCookie: {cookie}\r\n\r\n".encode())
        if not await reader.read():
            raise EOFError


async def _echo(ports: Ports, chance: random.Random) -> None:
    """Some messages in one connection, each read back."""
    async with _connection(ports.echo) as (reader, writer):
        for _ in range(chance.randrange(1, 9)):
            message = bytes(chance.randrange(8, 1400))
            writer.write(message)
            await reader.readexactly(len(message))


async def _characters(ports: Ports, chance: random.Random) -> None:
    """Some kilobytes of characters; the client closes."""
    async with _connection(ports.characters) as (reader, _):
        await reader.readexactly(chance.randrange(1000, 8000))


async def _stalled(ports: Ports, chance: random.Random) -> None:
    """Characters that are not read for a while, so that the board's window fills; then some are, and it closes."""
    with socket.socket() as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW_BYTES)
        own.setblocking(False)
        await asyncio.get_running_loop().sock_connect(own, ("127.0.0.1", ports.characters))
        reader, writer = await asyncio.open_connection(sock=own, limit=NARROW_BYTES)
        try:
            await asyncio.sleep(chance.expovariate(1 / STALL_SECONDS))
            await reader.readexactly(chance.randrange(1000, 100_000))
        finally:
            await _closed(writer)


async def _shell(ports: Ports, chance: random.Random) -> None:
    """A few commands, and "quit"."""
    async with _connection(ports.shell) as (reader, writer):
        for command in [*chance.choices(("help", "stat", "idxtoname 1"), k=2), "quit"]:
            writer.write(f"{command}\r\n".encode())
            await (reader.read() if command == "quit" else reader.readuntil(b"> "))


async def _datagram(ports: Ports, chance: random.Random) -> None:
    await _asked(ports.echo, bytes(chance.randrange(8, 1400)))


async def _snmp(ports: Ports, chance: random.Random) -> None:
    """GetBulk of up to ten values of a group of MIB-II."""
    name = bytes([0x2B, 6, 1, 2, 1, chance.choice(GROUPS)])
    wanted = _tlv(0x30, _tlv(0x30, _tlv(6, name) + _tlv(5, b"")))
    bulk = _tlv(0xA5, _tlv(2, b"\x01") + _tlv(2, b"\x00") + _tlv(2, bytes([chance.randrange(1, 11)])) + wanted)
    await _asked(ports.snmp, _tlv(0x30, _tlv(2, b"\x01") + _tlv(4, b"public") + bulk))


def _tlv(tag: int, value: bytes) -> bytes:
    return bytes([tag, len(value)]) + value


async def _asked(port: int, message: bytes) -> None:
    """One datagram, and one back."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.setblocking(False)
        own.connect(("127.0.0.1", port))
        own.send(message)
        await loop.sock_recv(own, 4096)


CONNECT, PUBLISH_0, PUBLISH_1, SUBSCRIBE, PING = 0x10, 0x30, 0x32, 0x82, 0xC0
LONGEST_PAYLOAD = 100
"""lwIP's client never ends with a message above 128 bytes that comes in several buffers of its pool."""
ANSWERED = {CONNECT: b"\x20\x02\x00\x00", PING: b"\xd0\x00"}


async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seed: int, pause: float) -> None:
    """MQTT 3.1.1, the least of it: takes the board's client, and publishes to both of its topics."""
    chance = random.Random(f"{seed} broker")
    publishing: asyncio.Task[None] | None = None
    try:
        while True:
            kind = (await reader.readexactly(1))[0]
            body = await reader.readexactly((await reader.readexactly(1))[0])
            if kind == SUBSCRIBE:
                writer.write(bytes([0x90, 3, body[0], body[1], body[-1]]))
                publishing = publishing or asyncio.create_task(_publish(writer, chance, pause))
            elif kind in ANSWERED:
                writer.write(ANSWERED[kind])
    except (OSError, EOFError):
        pass
    finally:
        if publishing:
            publishing.cancel()
        await _closed(writer)


async def _publish(writer: asyncio.StreamWriter, chance: random.Random, pause: float) -> None:
    number = 0
    while True:
        await asyncio.sleep(chance.expovariate(1 / pause))
        number = number % 0xFFFF + 1
        acknowledged = chance.randrange(2)
        topic = b"topic_qos%d" % acknowledged
        body = len(topic).to_bytes(2, "big") + topic
        body += number.to_bytes(2, "big") if acknowledged else b""
        body += bytes(chance.randrange(4, LONGEST_PAYLOAD))
        writer.write(bytes([PUBLISH_1 if acknowledged else PUBLISH_0, len(body)]) + body)


@dataclass(frozen=True)
class Ran:
    """One run of the board: what its console printed, and what the clients got."""

    console: str
    served: Counter[str]
    failed: Counter[str]


async def _ran(command: Sequence[str], load: Load, seed: int, seconds: float, output: Path | None) -> Ran:
    clients = Clients(load, seed, seconds, Ports.free())
    serial: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
    serial = asyncio.get_running_loop().create_future()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serial.set_result((reader, writer))

    publishing: list[asyncio.Task[None]] = []

    async def published(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        publishing.append(asyncio.create_task(broker(reader, writer, seed, load.pause)))

    console = await asyncio.start_server(connected, "127.0.0.1", 0)
    brokers = await asyncio.start_server(published, "127.0.0.1", 0)
    async with console, brokers:
        network = f"user,{clients.ports.forwards()},guestfwd=tcp:10.0.2.100:1883-tcp:127.0.0.1:{_port(brokers)}"
        whole = [*command, "-serial", f"tcp:127.0.0.1:{_port(console)}", "-nic", network]
        board = await asyncio.create_subprocess_exec(
            *whole, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
        try:
            reader, writer = await asyncio.wait_for(serial, READY_SECONDS)
            await asyncio.wait_for(reader.readexactly(1), READY_SECONDS)
            await clients.run()
            writer.write(b"q")
            said, _ = await asyncio.wait_for(board.communicate(), END_SECONDS)
            await _closed(writer)
        finally:
            if board.returncode is None:
                board.kill()
                await board.wait()
            await asyncio.gather(*publishing)
    console_bytes = said if output is None else output.read_bytes()
    return Ran(console_bytes.decode(errors="replace"), clients.served, clients.failed)


def _port(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])


def run(
    image: Path, load: Load, seed: int, seconds: float, more: Sequence[str] = (), output: Path | None = None
) -> Ran:
    """Run an image on QEMU's mps2-an385 with clients of this seed for a number of seconds, then end it.

    A board that prints much while it runs needs a file, `output`: a pipe is read at the end only.

    Raises OSError or TimeoutError where the board does not come up, does not end, or there is no QEMU.
    """
    command = ["qemu-system-arm", "-M", "mps2-an385", "-display", "none", "-monitor", "none"]
    console = "stdio,id=out" if output is None else f"file,id=out,path={output}"
    command += ["-chardev", console, "-semihosting-config", "enable=on,target=native,chardev=out"]
    return asyncio.run(_ran([*command, *more, "-kernel", str(image)], load, seed, seconds, output))

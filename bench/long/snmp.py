"""SNMP managers: values, walks in bulk, and values that are set, in bursts."""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import suppress

from long.running import HOST, Run

CLIENTS = 8
MODULES = "system_mib,sysORTable,snmp_mib,ifTable,ifXTable,interfaces,memory,loadave,vacm_conf,vacm_vars"
"""Of the agent: what is walked, and no more, as all of them make as many calls at the start as a short run."""
WAIT_SECONDS = 0.5
READ_BYTES = 1 << 16
GET, GET_NEXT, SET, GET_BULK = 0xA0, 0xA1, 0xA3, 0xA5
INTEGER, TEXT, NULL, NAME, SEQUENCE = 2, 4, 5, 6, 0x30
MIB_2 = (1, 3, 6, 1, 2, 1)
SYSTEM = (*MIB_2, 1)
CONTACT, HOST_NAME, LOCATION = 4, 5, 6
WALKED = (
    SYSTEM,
    (*MIB_2, 2),  # interfaces
    (*MIB_2, 11),  # this agent's own counters
    (*MIB_2, 31),  # more of interfaces
    (1, 3, 6, 1, 4, 1, 2021, 4),  # memory
    (1, 3, 6, 1, 4, 1, 2021, 10),  # load
    (1, 3, 6, 1, 6, 3, 16),  # views and groups
)


def record(run: Run) -> None:
    """Record Net-SNMP's agent."""
    config = run.file("snmpd.conf", "rwcommunity public 127.0.0.1\nsysServices 72\nload 12 10 5\n")
    agent = ["snmpd", "-f", "-Lf", str(run.folder / "log"), "-C", "-c", str(config), "-I", MODULES]
    agent += [f"--persistentDir={run.folder}", f"udp:{HOST}:{run.port}"]
    with run.serve(*agent):
        run.traffic([_client(run, number, share) for number, share in enumerate(run.shares(CLIENTS))])


def _tlv(tag: int, value: bytes) -> bytes:
    length = len(value)
    if length < 128:
        return bytes([tag, length]) + value
    return bytes([tag, 0x82, length >> 8, length & 255]) + value


def _number(value: int) -> bytes:
    return _tlv(INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _name(parts: tuple[int, ...]) -> bytes:
    result = bytearray([40 * parts[0] + parts[1]])
    for part in parts[2:]:
        groups = [part & 127]
        while part := part >> 7:
            groups.append(part & 127 | 128)
        result += bytes(reversed(groups))
    return _tlv(NAME, bytes(result))


def _message(kind: int, number: int, bound: list[bytes], first: int = 0, second: int = 0) -> bytes:
    body = _number(number) + _number(first) + _number(second) + _tlv(SEQUENCE, b"".join(bound))
    return _tlv(SEQUENCE, _number(1) + _tlv(TEXT, b"public") + _tlv(kind, body))


def _request(draw: random.Random, number: int) -> bytes:
    kind = draw.random()
    nothing = _tlv(NULL, b"")
    if kind < 0.35:
        names = [_name((*SYSTEM, draw.randrange(1, 8), 0)) for _ in range(draw.randrange(1, 12))]
        return _message(GET, number, [_tlv(SEQUENCE, name + nothing) for name in names])
    if kind < 0.5:
        names = [_name(draw.choice(WALKED)) for _ in range(draw.randrange(1, 6))]
        return _message(GET_NEXT, number, [_tlv(SEQUENCE, name + nothing) for name in names])
    if kind < 0.8:
        bound = [_tlv(SEQUENCE, _name(draw.choice(WALKED)) + nothing)]
        return _message(GET_BULK, number, bound, 0, draw.randrange(1, 40))
    text = "".join(draw.choices("abcdefgh ", k=int(min(draw.lognormvariate(3, 1), 250))))
    where = draw.choice((CONTACT, HOST_NAME, LOCATION))
    return _message(SET, number, [_tlv(SEQUENCE, _name((*SYSTEM, where, 0)) + _tlv(TEXT, text.encode()))])


async def _client(run: Run, number: int, requests: int) -> None:
    """Bursts of requests from one port, another one after some bursts; some are read late."""
    draw = run.random("client", number)
    requested = 0
    while requested < requests:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.setblocking(False)
            own.connect((HOST, run.port))
            for _ in range(draw.randrange(1, 20)):
                burst = min(requests - requested, 1 + int(draw.expovariate(1 / 5)))
                for _ in range(burst):
                    requested += 1
                    own.send(_request(draw, requested))
                if draw.random() < 0.03:
                    await asyncio.sleep(draw.expovariate(1 / 0.1))
                with suppress(asyncio.TimeoutError, OSError):
                    await asyncio.wait_for(_answers(own, burst), WAIT_SECONDS)
                await asyncio.sleep(draw.expovariate(1 / 0.003))
                if requested == requests:
                    break


async def _answers(own: socket.socket, count: int) -> None:
    loop = asyncio.get_running_loop()
    for _ in range(count):
        await loop.sock_recv(own, READ_BYTES)

"""Load for an MQTT broker: sensors that come and go, and subscribers of which some are away for a while.

Every client is a real mosquitto_pub or mosquitto_sub. What is sent is drawn from a seed; when it
arrives is up to the machine. Times and messages are bounded.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import random
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field

ROOMS = 6
QUANTITIES = ("temperature", "humidity", "door", "power", "image")


@dataclass
class Load:
    """A schedule of things to do, and the processes they started."""

    address: str
    port: int
    draw: random.Random
    messages_left: int
    quantities: tuple[str, ...] = QUANTITIES
    agenda: list[tuple[float, int, Callable[[float], None]]] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def at(self, when: float, action: Callable[[float], None]) -> None:
        """Do `action(when)` at `when` seconds after the start."""
        heapq.heappush(self.agenda, (when, next(self.numbers), action))

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start one client."""
        process = subprocess.Popen(
            [command[0], "-h", self.address, "-p", str(self.port), *command[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.running.append(process)
        return process

    def run(self, seconds: float) -> None:
        """Work through the agenda until `seconds` have passed, then end every client."""
        began = time.monotonic()
        try:
            while self.agenda and self.agenda[0][0] < seconds:
                when, _, action = heapq.heappop(self.agenda)
                time.sleep(max(0.0, began + when - time.monotonic()))
                action(when)
        finally:
            for process in self.running:
                process.terminate()
            for process in self.running:
                process.wait(10)


def payload(draw: random.Random, quantity: str) -> bytes:
    """One message: a short reading, a report of several lines, or a small picture."""
    if quantity == "image":
        return bytes(draw.choices(b"ABCDEFGHIJKLMNOP", k=draw.randint(1500, 9000)))
    if quantity == "power":
        return b'{"watts":[' + b",".join(b"%d" % draw.randint(0, 4000) for _ in range(draw.randint(8, 240))) + b"]}"
    if quantity == "door":
        return draw.choice((b"open", b"closed"))
    return b'{"value":%d.%d,"unit":"%s"}' % (draw.randint(-20, 100), draw.randint(0, 99), quantity.encode())


def sensor(load: Load, when: float) -> None:
    """A sensor connects, sends some readings (half the sensors retained, with any quality of service), and leaves."""
    draw = load.draw
    quantity = draw.choice(load.quantities)
    topic = f"site/room-{draw.randrange(ROOMS)}/{quantity}/sensor-{draw.randrange(4)}"
    retained = ["-r"] if draw.random() < 0.5 else []
    process = load.start("mosquitto_pub", "-l", "-t", topic, "-q", draw.choice("0112"), *retained)

    def say(now: float) -> None:
        if load.messages_left <= 0 or process.stdin is None or process.poll() is not None:
            return
        load.messages_left -= 1
        process.stdin.write(payload(draw, quantity) + b"\n")
        process.stdin.flush()

    def leave(now: float) -> None:
        if process.stdin is not None:
            process.stdin.close()

    moment = when
    for _ in range(draw.randint(1, 8)):
        moment += draw.expovariate(2.0)
        load.at(moment, say)
    load.at(moment + 0.5, leave)
    load.at(moment + 0.5 + draw.expovariate(1.0), lambda now: sensor(load, now))


def subscriber(load: Load, number: int, when: float) -> None:
    """A subscriber listens; every second one has a session that outlives its connection, so its messages queue up."""
    draw = load.draw
    filters = ("site/#", "site/+/door/#", f"site/room-{number % ROOMS}/#", f"site/+/{QUANTITIES[number % 4]}/+")
    lasting = ["-c", "-i", f"listener-{number}"] if number % 2 else []
    process = load.start("mosquitto_sub", "-t", filters[number % len(filters)], "-q", "1", *lasting)
    away = when + draw.uniform(2, 6)
    load.at(away, lambda now: process.terminate())
    load.at(away + draw.uniform(1, 4), lambda now: subscriber(load, number, now))


def main() -> None:
    """Run the load against a broker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--messages", type=int, default=160)
    parser.add_argument("--sensors", type=int, default=20)
    parser.add_argument("--subscribers", type=int, default=12)
    parser.add_argument("--quantities", default=",".join(QUANTITIES), help="what the sensors measure")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    quantities = tuple(arguments.quantities.split(","))
    load = Load(arguments.address, arguments.port, random.Random(arguments.seed), arguments.messages, quantities)
    for number in range(arguments.subscribers):
        load.at(load.draw.uniform(0, 2), lambda now, number=number: subscriber(load, number, now))
    for _ in range(arguments.sensors):
        load.at(load.draw.uniform(0.5, 4), lambda now: sensor(load, now))
    load.run(arguments.seconds)


if __name__ == "__main__":
    main()

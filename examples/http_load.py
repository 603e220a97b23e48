"""Load for an HTTP server: visitors that fetch pages of many sizes over connections which come and go.

Each visitor is a thread with its own connection. A seed determines the requests; their times depend on the
machine. The number of requests is bounded.
"""

from __future__ import annotations

import argparse
import http.client
import random
import threading
import time
from pathlib import Path

# Bytes of the files served: many small objects, some pages, few downloads, as on most web sites.
SIZES = (43, 120, 310, 560, 780, 1_024, 1_460, 2_200, 3_900, 6_100, 9_800, 17_000, 33_000, 61_000, 128_000)


def make_site(root: Path, seed: int) -> None:
    """Fill `root` with text files of SIZES bytes in a few folders (their listings are pages too)."""
    draw = random.Random(seed)
    for folder in ("pages", "images", "styles"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        for number, size in enumerate(SIZES):
            text = bytes(draw.choices(b"etaoin shrdlu cmfwyp\n", k=size))
            (root / folder / f"{number:02}-{draw.randrange(10**6)}.txt").write_bytes(text)


def paths_of(root: Path) -> list[str]:
    """The paths a visitor may ask for: every file, every folder, and one that is not there."""
    files = sorted(str(path.relative_to(root)) for path in root.rglob("*.txt"))
    folders = sorted(str(path.relative_to(root)) + "/" for path in root.iterdir() if path.is_dir())
    return ["/" + path for path in (*files, *folders, "missing")]


def visit(address: str, port: int, paths: list[str], requests: int, pause: float, draw: random.Random) -> None:
    """Fetch `requests` objects, a few a connection, with a pause between them."""
    connection = http.client.HTTPConnection(address, port, timeout=20)
    for _ in range(requests):
        headers = {"User-Agent": "load/" + "x" * draw.randint(0, 120), "Cookie": "id=" + "c" * draw.randint(8, 400)}
        if draw.random() < 0.3:
            headers["Accept-Encoding"] = "gzip"
        # Small objects are requested more often than large ones.
        path = paths[min(draw.randrange(len(paths)), draw.randrange(len(paths)))]
        connection.request("GET", path + "?q=" + "z" * draw.randint(0, 200), headers=headers)
        connection.getresponse().read()
        if draw.random() < 0.2:
            connection.close()
        time.sleep(draw.expovariate(1 / pause))
    connection.close()


def main() -> None:
    """Make a site, or visit one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the folder served")
    parser.add_argument("--make", action="store_true", help="only fill the folder")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=18080)
    parser.add_argument("--visitors", type=int, default=24)
    parser.add_argument("--requests", type=int, default=25, help="requests a visitor")
    parser.add_argument("--pause", type=float, default=0.1, help="mean seconds between a visitor's requests")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.make:
        make_site(arguments.root, arguments.seed)
        return
    paths = paths_of(arguments.root)
    visitors = []
    for number in range(arguments.visitors):
        draw = random.Random(arguments.seed * 1000 + number)
        visitor = threading.Thread(
            target=visit,
            args=(arguments.address, arguments.port, paths, arguments.requests, arguments.pause, draw),
        )
        visitor.start()
        visitors.append(visitor)
        time.sleep(draw.expovariate(1 / arguments.pause) / 4)
    for visitor in visitors:
        visitor.join()


if __name__ == "__main__":
    main()

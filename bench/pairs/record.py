"""Record pairs: a program under two loads, as one device may see them, for learning which heaps hold on other traffic.

    .venv/bin/python bench/pairs/record.py NAME|all OUT [--sites]    # OUT/NAME_a.parquet and OUT/NAME_b.parquet

README.md describes each pair. The packages are Debian's; servers run on loopback, at free ports.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

# Files of this folder are modules of `pairs`, as its record.py is not the one next to the folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pairs import servers, tools
from pairs.running import Run


class Pair(NamedTuple):
    """A program: its packages, what records it, and the parameters of both loads."""

    packages: str
    record: Callable[..., None]
    a: dict[str, Any]
    b: dict[str, Any]
    starts: bool = True
    """Whether the trace has the program's start; it is left out where it would hide the load."""


PAIRS = {
    "lighttpd": Pair(
        "lighttpd lighttpd-mod-deflate",
        servers.lighttpd,
        {"visitors": 8, "requests": 20},
        {"visitors": 24, "requests": 25},
    ),
    "tinyproxy": Pair(
        "tinyproxy-bin lighttpd lighttpd-mod-deflate",
        servers.tinyproxy,
        {"visitors": 6, "requests": 15},
        {"visitors": 16, "requests": 20},
        starts=False,
    ),
    "mosquitto": Pair(
        "mosquitto mosquitto-clients",
        servers.mosquitto,
        {"seconds": 8, "messages": 200, "sensors": 14, "subscribers": 8},
        {"seconds": 12, "messages": 300, "sensors": 24, "subscribers": 10},
        starts=False,
    ),
    "dnsmasq": Pair(
        "dnsmasq-base", servers.dnsmasq, {"hosts": 150, "questions": 1000}, {"hosts": 500, "questions": 2500}
    ),
    "knot": Pair(
        "knot", servers.knot, {"hosts": 200, "questions": 400}, {"hosts": 600, "questions": 1000}, starts=False
    ),
    "coturn": Pair(
        "coturn", servers.coturn, {"clients": 4, "messages": 20}, {"clients": 12, "messages": 30}, starts=False
    ),
    "iperf3": Pair("iperf3", servers.iperf3, {"streams": 2, "seconds": 3}, {"streams": 5, "seconds": 5}),
    "rsyslog": Pair(
        "rsyslog", servers.rsyslog, {"senders": 5, "messages": 800}, {"senders": 15, "messages": 2400}, starts=False
    ),
    "freeradius": Pair(
        "freeradius freeradius-utils",
        servers.freeradius,
        {"users": 20, "requests": 100},
        {"users": 60, "requests": 300},
        starts=False,
    ),
    "coap": Pair("libcoap3-bin", servers.coap, {"clients": 6, "requests": 60}, {"clients": 15, "requests": 180}),
    "redis": Pair(
        "redis-server redis-tools",
        servers.redis,
        {"clients": 4, "requests": 60},
        {"clients": 10, "requests": 140},
        starts=False,
    ),
    "nginx": Pair(
        "nginx-light lighttpd lighttpd-mod-deflate",
        servers.nginx,
        {"visitors": 8, "requests": 20},
        {"visitors": 24, "requests": 25},
    ),
    "monit": Pair("monit curl", servers.monit, {"checks": 8, "visits": 30}, {"checks": 25, "visits": 80}),
    "collectd": Pair(
        "collectd-core", servers.collectd, {"metrics": 30, "reports": 500}, {"metrics": 90, "reports": 1500}
    ),
    "sftp": Pair("openssh-sftp-server openssh-client", tools.sftp, {"files": 30}, {"files": 90}),
    "git": Pair("git", tools.git, {"files": 20, "commits": 20}, {"files": 50, "commits": 50}),
    "curl": Pair("curl lighttpd lighttpd-mod-deflate", tools.curl, {"transfers": 50}, {"transfers": 160}),
    "wget": Pair("wget lighttpd lighttpd-mod-deflate", tools.wget, {"pages": 12}, {"pages": 40}),
    "tcpdump": Pair("tcpdump", tools.tcpdump, {"packets": 600, "names": 20}, {"packets": 2000, "names": 90}),
    "lua": Pair("lua5.4", tools.lua, {"sensors": 30, "readings": 1000}, {"sensors": 90, "readings": 2500}),
    "mruby": Pair("mruby", tools.mruby, {"rooms": 6, "events": 300}, {"rooms": 15, "events": 800}),
    "jimsh": Pair("jimsh", tools.jimsh, {"devices": 20, "settings": 8}, {"devices": 50, "settings": 12}),
    "sqlite": Pair("sqlite3", tools.sqlite, {"sensors": 12, "readings": 300}, {"sensors": 40, "readings": 700}),
    "xmllint": Pair("libxml2-utils", tools.xmllint, {"depth": 4, "children": 6}, {"depth": 4, "children": 8}),
    "gawk": Pair("gawk", tools.gawk, {"visitors": 15, "visits": 400}, {"visitors": 30, "visits": 1000}),
    "rrdtool": Pair("rrdtool", tools.rrdtool, {"values": 200, "graphs": 4}, {"values": 500, "graphs": 10}),
    "make": Pair("make", tools.make, {"modules": 20}, {"modules": 50}),
    "bc": Pair("bc", tools.bc, {"digits": 20, "terms": 30}, {"digits": 40, "terms": 50}),
}


def record(name: str, out: Path, sites: bool) -> None:
    """Record both loads of a pair, each from scratch."""
    pair = PAIRS[name]
    for number, (load, parameters) in enumerate((("a", pair.a), ("b", pair.b)), 1):
        with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
            run = Run(Path(folder), number, sites)
            pair.record(run, **parameters)
            trace = run.trace
            if not pair.starts:
                trace = run.cut_start()
            shutil.copy(trace, out / f"{name}_{load}.parquet")


def main() -> None:
    """Record the pairs named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=[*PAIRS, "all"], metavar="NAME")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--sites", action="store_true", help="with the place of each call")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in PAIRS if arguments.name == "all" else [arguments.name]:
        record(name, arguments.out.resolve(), arguments.sites)


if __name__ == "__main__":
    main()

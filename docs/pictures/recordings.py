"""The recordings that the pictures show, and the heap that the tutorial makes for one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent

import heapwright as hw

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PACKETS = EXAMPLES / "tcp_transfers.parquet"


@cache
def broker() -> hw.Trace:
    """An MQTT broker."""
    return hw.read_trace(EXAMPLES / "mosquitto_broker.parquet")


@cache
def server() -> hw.Trace:
    """A web server."""
    return hw.read_trace(EXAMPLES / "lighttpd_server.parquet")


@cache
def ring_of_packets() -> hw.Trace:
    """A driver's ring of 64 packets, at more than the link carries."""
    return hw.workload("easyport", PACKETS, load=1.1, ring=64)


@cache
def tutorials_pick() -> hw.Recipe:
    """The recipe that the tutorial prints."""
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    result = re.search(r"study again demo/broker.duckdb:\w+\n((?: {4}.*\n|\n)+)", page)
    assert result
    with TemporaryDirectory() as folder:
        recipe = Path(folder, "pick.toml")
        recipe.write_text(dedent(result[1]), encoding="utf-8")
        return hw.read_recipe(recipe)

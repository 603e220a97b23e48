"""The recordings that the pictures show."""

from __future__ import annotations

from functools import cache
from pathlib import Path

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

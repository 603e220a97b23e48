"""Which pictures there are, by the names of their files in docs/images."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import heapwright as hw
from pictures import arenas, measured, schemes, studies, tables
from pictures.drawing import Picture
from pictures.recordings import EXAMPLES, ROOT

IMAGES = ROOT / "docs" / "images"

PICTURES: Mapping[str, Callable[[], Picture]] = {
    "arena": arenas.arena,
    "benchmark": tables.benchmark,
    "caches": schemes.caches,
    "circle": schemes.circle,
    "copies": measured.copies,
    "files": schemes.files,
    "film": arenas.film,
    "flow": schemes.flow,
    "foretold": tables.foretold,
    "gate": measured.gate,
    "glue": schemes.glue,
    "growth": measured.growth,
    "instructions": tables.instructions,
    "levels": measured.levels,
    "live": measured.live,
    "live-bytes": measured.live_bytes,
    "load": measured.load,
    "logs": schemes.logs,
    "many-machines": tables.many_machines,
    "packet-sizes": measured.packet_sizes,
    "packets-kingsley": arenas.packets_on_kingsley,
    "packets-live": measured.packets_live,
    "pools": schemes.pools,
    "proof": schemes.proof,
    "reserve": measured.reserve,
    "space": schemes.space,
    "two-heaps": schemes.two_heaps,
    "web-heap4": arenas.server_on_heap4,
    "web-live": measured.server_live,
}


@dataclass(frozen=True)
class Explored:
    """A study that a page's commands make: its path there, how it is made, and the pictures of it."""

    study: str
    options: Mapping[str, Any]
    pictures: Mapping[str, Callable[[hw.Study], Picture]] = field(repr=False)

    def drawn(self, folder: Path) -> dict[str, Picture]:
        """The pictures of the study that lies in a folder."""
        study = hw.open_study(folder / self.study)
        return {name: draw(study) for name, draw in self.pictures.items()}

    def make(self, folder: Path) -> None:
        """Explore into a folder."""
        (folder / self.study).parent.mkdir(parents=True, exist_ok=True)
        hw.explore(EXAMPLES / "mosquitto_broker.parquet", folder / self.study, **self.options)


EXPLORED: Mapping[str, Explored] = {
    "docs/choosing.md": Explored("broker.duckdb", {"limit": 300}, {"front": studies.trade_off}),
    "docs/tutorial.md": Explored(
        "demo/broker.duckdb",
        {"complete": True},
        {"answer": studies.answer, "trade-off": studies.trade_off, "heap-map": studies.pick},
    ),
}
"""By the page; the tests that run its commands compare these."""


def with_words(page: str, name: str, told: str) -> str:
    """A page with these words in place of what it says of the picture."""
    return re.sub(rf"!\[[^\]]*\]\(((?:[\w.:-]*/)*images/{name}\.svg)\)", lambda result: f"![{told}]({result[1]})", page)

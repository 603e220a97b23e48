"""The papers' pages of fewer packets, calls and draws, so that making them takes seconds.

All code that makes a page runs, and every heap on it, on a tenth of the traffic or less.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import short_explorations

import heapwright as hw
from heapwright_papers import drr, easyport, measuring, mixes, modem, own_space, pools, sensor, techniques, url

WHOLE = ("wifi",)
"""Pages that take seconds as they are, and are left so."""


@contextmanager
def briefly() -> Iterator[None]:
    """While it takes seconds to make pages without packets."""
    with short_explorations.small_pictures(), pytest.MonkeyPatch.context() as patched:
        for module, packets in ((drr, 1_000), (easyport, 500), (url, 1_000)):
            few = {"packets": packets, "traces": 2, "grid_packets": 100}
            patched.setattr(module, "CASE", replace(module.CASE, **few))
        patched.setattr(drr, "CROSSED_PACKETS", 200)
        patched.setattr(easyport, "CLOUD", {**easyport.CLOUD, "limit": 20})
        patched.setattr(own_space, "STEP", 9)
        patched.setattr(mixes, "SEEDS", (1, 2))
        patched.setattr(measuring, "MOST_ACCESSES", 20_000)
        patched.setattr(modem, "page", partial(modem.page, calls=30, most=2))
        patched.setattr(pools, "page", partial(pools.page, requests=3_000))
        patched.setattr(techniques, "PACKETS", 150)
        patched.setattr(sensor, "traces", partial(_cut, sensor.traces))
        patched.setattr(sensor, "SEEDS", 1)
        patched.setattr(sensor, "TRIES", 10)
        patched.setattr(sensor, "page", partial(sensor.page, calls=100))
        yield


def _cut(traces: Callable[[int], dict[str, list[hw.Trace]]], calls: int) -> dict[str, list[hw.Trace]]:
    return {name: [hw.cut(trace, first=1_000) for trace in some] for name, some in traces(calls).items()}


def digests_of(folder: Path) -> dict[str, str]:
    """Of all pages in a folder by name, but for those of HTML that a page in Markdown says the same as."""
    pages = sorted(path for path in folder.iterdir() if path.suffix in (".md", ".html"))
    twins = {path.with_suffix(".html") for path in pages if path.suffix == ".md"}
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in pages if path not in twins}


def promised(file: Path) -> dict[str, str]:
    """The digests in a file by the names of pages."""
    return {name: digest for digest, name in map(str.split, file.read_text(encoding="utf-8").splitlines())}

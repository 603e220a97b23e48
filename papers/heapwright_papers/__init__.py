"""The source papers' tables and figures, compared with ours."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import heapwright as hw
from heapwright import HeapwrightError
from heapwright_papers.readings import read_as
from heapwright_papers.summary import write_summary

PAGES = ("drr", "easyport", "url", "techniques", "modem", "wifi", "pools", "sensor")
"""What can be reproduced; each is a module of this package with a function `page`."""
READ = ("drr", "easyport", "url")
"""Papers that can be read in several ways: `readings/*.toml`."""


def reproduce(
    what: str,
    packets: Path | None,
    output: Path,
    progress: Callable[[str], None] = lambda line: None,
    reading: str | None = None,
    readings: bool = False,
) -> dict[str, Any]:
    """Run the experiments of one paper, or of "all", and write a page and figures for each.

    Args:
        what: one of PAGES, or "all".
        packets: folder of packet tables; without, statements about real networks are not tested. "modem" and "sensor"
            need none.
        output: folder to write to, made where there is none.
        progress: called with a few words on what is being done.
        reading: the name of one that takes the place of the leading one of its sentence, on the pages of READ.
        readings: also report which contests hold under each reading.

    The first page of the folder, README.md, is written from all pages that are there.

    Returns `{"pages": [path, ...], "claims": [{"paper", "claim", "paper_value", "our_value", "holds", ...}, ...]}`; a
    claim has its "verdict" in words, and its "cause" where it does not hold. Pages of READ also give "tables":
    `[{"page", "table", "on", "rows", "likeness"}, ...]`, the paper's six allocators with fragmentation in per cent and
    time beside ours, and the rank correlations and mean |ln ratios| of both. With `readings` there is "readings", too:
    `[{"page", "reading", "id", "on", "verdict"}, ...]`.

    Raises:
        HeapwrightError: `what` or `reading` is not known, `what` has no readings, or the folder lacks packet tables
            that an experiment can use.
    """
    if what != "all" and what not in PAGES:
        raise HeapwrightError(f"{what}: cannot be reproduced; valid: {', '.join(PAGES)}, all")
    if (reading or readings) and what not in (*READ, "all"):
        raise HeapwrightError(f"{what}: is read in one way; valid: {', '.join(READ)}, all", parameter="reading")
    joint = read_as(reading) if reading else None
    read: list[dict[str, str]] = []
    pages: list[str] = []
    claims: list[dict[str, Any]] = []
    tables: list[dict[str, Any]] = []
    with hw.writing.making(output):
        names = PAGES if what == "all" else (what,)
        for number, name in enumerate(names, 1):
            progress(f"page {number} of {len(names)}, {name}")
            run = importlib.import_module(f"heapwright_papers.{name}").page
            page = run(packets, progress, joint) if name in READ else run(packets, progress)
            read += [{"page": name, **item} for item in page.readings]
            tables += [{"page": name, **item} for item in page.tables]
            pages += [str(path) for path in page.write(output)]
            claims += [{"paper": page.paper, **item.as_claim()} for item in page.answers() if item.decided]
        pages += [str(path) for path in write_summary(output, PAGES)]
    found = {"pages": pages, "claims": claims} | ({"tables": tables} if tables else {})
    return found | ({"readings": read} if readings else {})

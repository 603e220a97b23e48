"""The source papers' tables and figures, theirs beside ours."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heapwright.errors import HeapwrightError
from heapwright.files.writing import making
from heapwright.traffic.packets import PacketTable

PAGES = ("drr", "easyport", "url", "techniques", "modem", "wifi", "pools", "sensor")
"""What can be reproduced; each is a module of this package with a function `page`."""


def reproduce(
    what: str, packets: Path | None, output: Path, progress: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Run the experiments of one paper, or of "all", and write a page and figures for each.

    Args:
        what: one of PAGES, or "all".
        packets: folder of packet tables, needed by all but "modem", "pools" and "sensor".
        output: folder to write to, made where there is none.
        progress: is told in a few words what is being done.

    Returns `{"pages": [path, ...], "claims": [{"paper", "claim", "paper_value", "our_value", "holds"}, ...]}`.

    Raises:
        HeapwrightError: `what` is not known, or the folder lacks packet tables that an experiment can use.
    """
    if what != "all" and what not in PAGES:
        raise HeapwrightError(f"{what}: cannot be reproduced; valid: {', '.join(PAGES)}, all")
    pages: list[str] = []
    claims: list[dict[str, Any]] = []
    with making(output):
        for name in PAGES if what == "all" else (what,):
            page = importlib.import_module(f"heapwright.papers.{name}").page(packets, progress)
            pages += [str(path) for path in page.write(output)]
            claims += [asdict(claim) for claim in page.claims]
    return {"pages": pages, "claims": claims}


def packet_tables(folder: Path | None) -> dict[str, PacketTable]:
    """All packet tables of a folder by file stem, in the order of their names.

    Raises:
        HeapwrightError: no folder was given, or there is no packet table in it, or one cannot be read.
    """
    if folder is None:
        raise HeapwrightError("real traffic is needed; name a folder of packet tables", parameter="packets")
    if not folder.is_dir():
        raise HeapwrightError(f"{folder}: no such folder; one with packet tables (Parquet) is needed")
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise HeapwrightError(f"{folder}: holds no packet table (*.parquet); `heapwright import` makes them")
    return {file.stem: PacketTable.read(file) for file in files}

"""A study with its report, explored once for all tests that look at it, and its page in a browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import short_explorations
from c_programs import kept_once
from chromium import Chromium
from keyword_explorations import explore

from heapwright._explore.space import Space
from heapwright._recipes.recipe import Recipe
from heapwright._report import write_report
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC


def small_trace(name: str = "traffic", seed: int = 1, calls: int = 3000) -> Trace:
    """Packets of two frequent sizes and some others, queued and freed in no strict order."""
    generator = np.random.default_rng(seed)
    live: list[int] = []
    rows: list[tuple[int, int, int]] = []
    for identifier in range(calls // 2):
        size = int(generator.choice([40, 1500, int(generator.integers(8, 1500))], p=[0.45, 0.3, 0.25]))
        rows.append((MALLOC, identifier, size))
        live.append(identifier)
        while live and generator.random() < (0.3 if len(live) < 40 else 0.55):
            rows.append((FREE, live.pop(int(generator.integers(len(live)))), 0))
    op, ids, sizes = zip(*rows, strict=True)
    return Trace.from_columns(op=op, id=ids, size=sizes, name=name)


def small_recipes() -> list[Recipe]:
    """A few hundred recipes of one quick and one general pool."""
    results = []
    for sizes in ([], [40], [40, 1500]):
        for order in ("lifo", "address"):
            for fit in ("first", "best", "worst"):
                for split in ("always", "never", 64):
                    for coalesce in ("immediate", "never", "deferred"):
                        general = {"kind": "general", "order": order, "fit": fit, "split": split}
                        pools = [{"kind": "quick", "sizes": sizes}] if sizes else []
                        results.append(Recipe.from_dict({"pool": [*pools, {**general, "coalesce": coalesce}]}))
    return results


def small_space() -> Space:
    return Space([small_recipes()])


@dataclass(frozen=True)
class Made:
    """A study with its report."""

    folder: Path
    study: Path
    page: Path
    written: list[Path]


def reported(base: Path, folder: Path) -> Made:
    """A copy, in an empty folder, of the study with its report that is made once in a run, whose folder is `base`."""
    with kept_once(base / "report", "a study with its report") as kept:
        output = kept / "written.txt"
        if not output.exists():
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir()
            path = kept / "traffic.parquet"
            small_trace().write(path)
            study, held_out = kept / "s.duckdb", small_trace("later", seed=2)
            explore([Trace.read(path)], small_space(), study_path=study, jobs=2, held_out=[held_out])
            with short_explorations.small_pictures():
                written = write_report(study, kept / "report.html", plots=kept / "plots")
            output.write_text("\n".join(str(item.relative_to(kept)) for item in written))
        shutil.copytree(kept, folder, dirs_exist_ok=True)
    written = [folder / name for name in output.read_text().splitlines()]
    return Made(folder, folder / "s.duckdb", folder / "report.html", written)


def packed(page: Path) -> dict[str, Any]:
    """The data that a page carries."""
    (text,) = re.findall(r'<script id="data"[^>]*>([^<]*)</script>', page.read_text(encoding="utf-8"))
    result: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text)))
    return result


READY = "document.documentElement.dataset.ready === 'true'"


def opened(browser: Chromium, page: Path, fragment: str = "", **look: Any) -> Chromium:
    """The browser after all scripts of the page, which forbids itself to load anything: attempts are on the console."""
    browser.look(**look)
    browser.open(page, fragment, READY)
    return browser


def text(browser: Chromium, identifier: str) -> str:
    result: str = browser.run(f"document.getElementById('{identifier}').textContent")
    return result


def selected(browser: Chromium) -> str:
    result: str = browser.run("document.documentElement.dataset.selected")
    return result

"""The arithmetic of bins, for every size that a block or a request can have: a loop over all of them, compiled."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heapwright.assure.proof.harness import PACKAGE, Harness
from heapwright.errors import HeapwrightError
from heapwright.files.templates import template
from heapwright.files.temporary import temporary_folder
from heapwright.files.tools import find_compiler, run_tool
from heapwright.generate.emit import align_unchecked
from heapwright.recipes.policy import policy
from heapwright.recipes.pools import MAX_REACH, MAX_REQUEST, ROUNDED_UP, General
from heapwright.recipes.recipe import Recipe

FLAGS = ("-std=gnu11", "-O2", "-w")
"""Without sanitizers: shifts are looked at by the loop itself, and a sanitizer would take minutes."""

_PROPERTIES = 8


def has_bins(recipe: Recipe) -> bool:
    """Whether the recipe's one general pool has bins; where there are several, names of functions differ."""
    pools = [pool for pool in recipe.pools if isinstance(pool, General)]
    return len(pools) == 1 and pools[0].bins != "none" and not recipe.memory


def check_bins(recipe: Recipe, files: Mapping[str, str]) -> Harness:
    """Look at the bin of every block size, and at where a search for every one begins.

    Raises HeapwrightError without a C compiler, and where the loop ends badly.
    """
    began = time.monotonic()
    values = policy(recipe)
    (general,) = (one["general"] for one in values["pools"] if "general" in one)
    names = bin_names(recipe, general, int(values["reach"]))
    source = files["app_heap.c"]
    names["searches"] = "app_bin_above(" in source
    names["sized"] = "app_block_size_for(" in source
    sizes = (names["last"] - names["least"]) // names["step"] + 1
    bounds = (
        f"all {sizes:,} sizes of blocks from {names['least']:,} to {names['last']:,} bytes,"
        f" and all {names['most'] + 1:,} of requests"
    )
    compiler = find_compiler("a proof of bins")
    with temporary_folder("prove") as folder:
        text = template(PACKAGE, "bins.c").render(
            bounds=bounds, unchecked=align_unchecked("app"), threads=recipe.threads, **names
        )
        for file, content in (dict(files) | {"bins.c": text}).items():
            (folder / file).write_text(content, encoding="utf-8")
        failed = _run(compiler, folder)
    return Harness("bins", bounds, _PROPERTIES, failed, {}, None, round(time.monotonic() - began, 1))


def bin_names(recipe: Recipe, general: Mapping[str, Any], reach: int) -> dict[str, Any]:
    """What the template asks for: sizes of blocks in bytes, and what the recipe promises of its bins."""
    (pool,) = (pool for pool in recipe.pools if isinstance(pool, General))
    step = 1 << general["unit_shift"]
    largest = min(reach, MAX_REACH) - 1
    return {
        "step": step,
        "least": general["min_block"],
        "last": largest // step * step,
        "most": min(MAX_REQUEST, largest - general["overhead"] - step),
        "overhead": general["overhead"],
        "powers": bool(general["powers"]),
        "rounded_up": pool.bins in ROUNDED_UP,
        "bounded": bool(general["bin_last"]),
        "summary": general["bins"] > 32,
    }


def _run(compiler: str, folder: Path) -> dict[str, list[str]]:
    """What does not hold, each with the size that shows it."""
    built = run_tool([compiler, *FLAGS, "bins.c", "-o", "bins"], folder, cwd=folder, text=True)
    if built.returncode:
        raise HeapwrightError(f"{compiler}: cannot build the proof of bins: {' '.join(built.stderr.split())[:300]}")
    done = run_tool([str(folder / "bins")], folder, cwd=folder, text=True)
    failed: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        size, _, what = rest.partition(" ")
        if word == "failed":
            failed[what] = [f"size {size}"]
    if not failed and (done.returncode or "done" not in done.stdout):
        failed["bins: the functions return"] = [f"ended with {done.returncode}"]
    return failed

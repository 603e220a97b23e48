"""The arithmetic of bins, for every size that a block or a request can have: a loop over all of them, compiled."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heapwright._assure.proof.harness import PACKAGE, Harness
from heapwright._generate.emit import align_unchecked
from heapwright._recipes.policy import policy
from heapwright._recipes.pools import MAX_REACH, MAX_REQUEST
from heapwright._recipes.recipe import Recipe
from heapwright._support.errors import HeapwrightError
from heapwright._support.subprocesses import find_compiler, run_tool
from heapwright._support.templates import template
from heapwright._support.temporary import temporary_folder

FLAGS = ("-std=gnu11", "-O2", "-w")
"""Without sanitizers: shifts are looked at by the loop itself, and a sanitizer would take minutes."""

_PROPERTIES = 8


def has_bins(recipe: Recipe) -> bool:
    """Whether one pool has bins and no other might; where there are several, names of functions differ."""
    kinds = {pool.kind for pool in recipe.pools if pool.has_bins}
    return sum(pool.kind in kinds for pool in recipe.pools) == 1 and not recipe.memory


def check_bins(recipe: Recipe, files: Mapping[str, str]) -> Harness:
    """Look at the bin of every block size, and at where a search for every one begins.

    Raises HeapwrightError without a C compiler, and where the loop ends badly.
    """
    began = time.monotonic()
    values = policy(recipe)
    each = zip(recipe.pools, values["pools"], strict=True)
    (binned,) = (its[pool.kind] for pool, its in each if pool.has_bins)
    names = bin_names(binned, int(values["reach"]))
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


def bin_names(values: Mapping[str, Any], reach: int) -> dict[str, Any]:
    """What the template asks for, from a pool's policy: sizes of blocks in bytes, and what is promised of its bins."""
    step = 1 << values["unit_shift"]
    largest = min(reach, MAX_REACH) - 1
    return {
        "step": step,
        "least": values["min_block"],
        "last": largest // step * step,
        "most": min(MAX_REQUEST, largest - values["overhead"] - step),
        "overhead": values["overhead"],
        "powers": bool(values["powers"]),
        "rounded_up": bool(values["bin_round_up"]),
        "bounded": bool(values["bin_last"]),
        "summary": values["bins"] > 32,
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

"""Proves of a recipe's generated heap what holds after any few calls in a small arena."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heapwright.errors import HeapwrightError
from heapwright.files.temporary import temporary_folder
from heapwright.generate.emit import align_unchecked, generated_files
from heapwright.prove.cbmc import cbmc_path, cbmc_version, told_calls, verify
from heapwright.recipes.policy import policy
from heapwright.recipes.recipe import Recipe

if TYPE_CHECKING:
    from jinja2 import Template

    from heapwright.recipes.pools import Pool

ROOM = 96
"""Bytes for blocks, behind the control data, where no arena is asked for."""

LARGEST = 32
"""The largest request, in bytes, where none is asked for."""

_WORDS = ("nothing", "malloc", "free", "calloc", "realloc", "aligned_alloc", "free byte")


@dataclass(frozen=True)
class Harness:
    """One program that was checked.

    Attributes:
        name: "calls", "calloc", "realloc", "aligned_alloc" or "misuse".
        bounds: what it may do, in words; the proof says nothing beyond.
        properties: how many were checked.
        failures: what does not hold, with the calls that show it.
        unwinding: how often each loop was unwound; that it ends by then was proved, too.
        seconds: how long it took.
    """

    name: str
    bounds: str
    properties: int
    failures: Mapping[str, list[str]]
    unwinding: Mapping[str, int]
    seconds: float


@dataclass(frozen=True)
class Proof:
    """What was proved of a heap, harness by harness, and by which version of CBMC."""

    heap: str
    calls: int
    arena: int
    largest: int
    cbmc: str
    harnesses: list[Harness]

    @property
    def properties(self) -> int:
        """All properties that were checked."""
        return sum(one.properties for one in self.harnesses)

    @property
    def failed(self) -> int:
        """How many do not hold."""
        return sum(len(one.failures) for one in self.harnesses)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return round(sum(one.seconds for one in self.harnesses), 1)

    def as_json(self) -> dict[str, Any]:
        """What JSON tells of it."""
        return {
            "heap": self.heap,
            "calls": self.calls,
            "arena_bytes": self.arena,
            "largest_request_bytes": self.largest,
            "cbmc": self.cbmc,
            "properties": self.properties,
            "failed": self.failed,
            "seconds": self.seconds,
            "harnesses": [vars(one) for one in self.harnesses],
        }


def prove(
    recipe: Recipe,
    label: str,
    *,
    calls: int = 3,
    arena: int | None = None,
    largest: int = LARGEST,
    progress: Callable[[str], None] = lambda name: None,
) -> Proof:
    """Check the heap that is generated for a recipe.

    Args:
        recipe: the heap, as it is but for lists of blocks that the arena has no room for (`max_block`).
        label: its name.
        calls: how many allocations precede the check, with a free of any object after each, or none.
        arena: its bytes; None for the control data and 96 more.
        largest: the largest request in bytes.
        progress: told the name of each harness before it runs.

    Raises HeapwrightError without CBMC, for an arena that is too small, and for heaps that move their objects.
    """
    cbmc_path()
    if any(pool.kind == "compact" for pool in recipe.pools):
        raise HeapwrightError(f"{label}: moves its objects; prove takes heaps that leave them where they are")
    narrowed = narrow(recipe, arena or ROOM)
    values = policy(narrowed)
    least = int(values["fixed_end"])
    if arena is not None and arena < least:
        raise HeapwrightError(f"{label}: {arena} bytes of arena; its own data takes {least}", parameter="arena")
    size = arena or -(-least // 16) * 16 + ROOM
    names = ["calls", "calloc", "realloc", *(["aligned_alloc"] if _has_headers(recipe) else [])]
    names += ["misuse"] if values["checks"] else []
    harnesses = []
    for name in names:
        progress(name)
        harnesses.append(_check(narrowed, name, calls, size, largest))
    return Proof(label, calls, size, largest, cbmc_version(), harnesses)


def narrow(recipe: Recipe, room: int) -> Recipe:
    """The recipe without lists of blocks that an arena with `room` bytes for blocks never has: CBMC reads each list."""
    if not any(_bounded(pool) for pool in recipe.pools):
        return recipe
    for most in (1 << bits for bits in range(room.bit_length(), 31)):
        pools = [pool.model_copy(update={"max_block": most}) if _bounded(pool) else pool for pool in recipe.pools]
        found = recipe.model_copy(update={"pools": pools, "control_bytes": 0})
        try:
            values = policy(found)
        except HeapwrightError:  # its own data alone is beyond the reach
            continue
        if values["reach"] >= values["fixed_end"] + room + 16:
            return found
    return recipe


def _bounded(pool: Pool) -> bool:
    return "max_block" in type(pool).model_fields and getattr(pool, "bins", "") != "none"


def harness_text(recipe: Recipe, name: str, calls: int, arena: int, largest: int) -> str:
    """The program for one harness, beside which app_heap.c has to lie."""
    return _template().render(
        prefix="app",
        upper="APP",
        unchecked=align_unchecked("app"),
        threads=recipe.threads,
        last="" if name == "calls" else name,
        calls=calls,
        steps=_steps(name, calls),
        arena=arena,
        largest=largest,
        bounds=_bounds(recipe, name, calls, arena, largest),
    )


def _has_headers(recipe: Recipe) -> bool:
    return any(pool.kind == "general" for pool in recipe.pools)


def _steps(name: str, calls: int) -> int:
    return calls if name in ("calls", "misuse") else calls - 1


def _bounds(recipe: Recipe, name: str, calls: int, arena: int, largest: int) -> str:
    steps = _steps(name, calls)
    last = {
        "calls": "",
        "misuse": ", then a free of any byte of the arena that is no live object",
    }.get(name, f", then {name}")
    called = f"any {steps} mallocs, a free of any object after each{last}"
    blocks = [most for pool in recipe.pools if (most := getattr(pool, "max_block", 0))]
    within = f", lists for blocks up to {max(blocks)} bytes" if blocks else ""
    return f"an arena of {arena} bytes{within}; {called}; requests up to {largest} bytes"


def _check(recipe: Recipe, name: str, calls: int, arena: int, largest: int) -> Harness:
    began = time.monotonic()
    with temporary_folder("prove") as folder:
        return check_files(
            generated_files(recipe) | {"harness.c": harness_text(recipe, name, calls, arena, largest)},
            folder,
            name,
            _bounds(recipe, name, calls, arena, largest),
            calls + 2,
            began,
        )


def check_files(
    files: Mapping[str, str], folder: Path, name: str, bounds: str, iterations: int, began: float
) -> Harness:
    """Write a heap and its harness into `folder` and check them there."""
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    verdict = verify(folder / "harness.c", iterations)
    failures = {what: [_in_words(call) for call in told_calls(trace)] for what, trace in verdict.failed.items()}
    seconds = round(time.monotonic() - began, 1)
    return Harness(name, bounds, verdict.properties, failures, verdict.unwinding, seconds)


def _in_words(call: Mapping[str, int]) -> str:
    """One call of a counterexample; objects are numbered from 1."""
    word = _WORDS[call["call"]]
    number, size = f"#{call['object'] + 1}", call["size"]
    if word == "free":
        return f"free {number}"
    if word == "free byte":
        return f"free of byte {size} of the arena"
    aligned = f" at a multiple of {call['alignment']}" if word == "aligned_alloc" else ""
    return f"{word} {number} {size}{aligned}" if word == "realloc" else f"{word} {size}{aligned} -> {number}"


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("heapwright.prove", "templates"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    return environment.get_template("harness.c")

"""Proves what holds of a recipe's generated heap after any few calls, and at the edges of its sizes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heapwright._assure.proof.bins import check_bins, has_bins
from heapwright._assure.proof.cbmc import cbmc_path, cbmc_version, told_calls, verify
from heapwright._assure.proof.edges import edge_names
from heapwright._assure.proof.enumeration import MOST_PROGRAMS, compiler_version, run_all
from heapwright._assure.proof.harness import PACKAGE, Harness
from heapwright._assure.proof.unbounded import check_unbounded, versions
from heapwright._generate.core import core_directory
from heapwright._generate.emit import align_unchecked, generated_files
from heapwright._recipes.policy import policy
from heapwright._recipes.pools import MAX_REQUEST
from heapwright._recipes.recipe import Recipe
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._support.subprocesses import find_compiler
from heapwright._support.templates import template
from heapwright._support.temporary import temporary_folder

if TYPE_CHECKING:
    from heapwright._recipes.pools import Pool

ROOM = 96
"""Default bytes for blocks, behind the control data."""

LARGEST = 32
"""Default of the largest request, in bytes."""

METHODS = ("cbmc", "enumeration")
"""Who proves: the model checker, for all sizes at once, or a run of each program that the bounds allow."""

_WORDS = ("nothing", "malloc", "free", "calloc", "realloc", "aligned_alloc", "free byte")


@dataclass(frozen=True)
class Proof:
    """What was proved of a heap, harness by harness, by which method, and by which version of its tool."""

    heap: str
    calls: int
    arena: int
    largest: int
    method: str
    tool: str
    harnesses: list[Harness]

    @property
    def properties(self) -> int:
        """All properties that were checked."""
        return sum(harness.properties for harness in self.harnesses)

    @property
    def failed(self) -> int:
        """How many do not hold."""
        return sum(len(harness.failures) for harness in self.harnesses)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return round(sum(harness.seconds for harness in self.harnesses), 1)

    @property
    def verdict(self) -> str:
        """How it came out, in a line: that all holds, or what does not and the calls that show the first of it."""
        after = f"after any {self.calls} calls" if self.calls else "after any calls"
        if not self.failed:
            return f"ok {self.heap}: {self.properties} properties hold {after}"
        item = next(harness for harness in self.harnesses if harness.failures)
        what, shown = next(iter(item.failures.items()))
        more = f" (and {self.failed - 1} more)" * (self.failed > 1)
        return f"FAIL {self.heap} {item.name}: {what}{more}: {'; '.join(shown) or 'no call'}"

    def as_json(self) -> dict[str, Any]:
        """The values for JSON."""
        return {
            "heap": self.heap,
            "calls": self.calls,
            "arena_bytes": self.arena,
            "largest_request_bytes": self.largest,
            "method": self.method,
            "tool": self.tool,
            "properties": self.properties,
            "failed": self.failed,
            "seconds": self.seconds,
            "harnesses": [vars(harness) for harness in self.harnesses],
        }


def prove(
    recipe: Recipe,
    label: str,
    *,
    calls: int = 3,
    arena: int | None = None,
    largest: int = LARGEST,
    method: str | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> Proof:
    """Check the heap that is generated for a recipe.

    Args:
        recipe: the heap, as it is but for lists of blocks that the arena has no room for (`max_block`).
        label: its name.
        calls: how many allocations precede the check, with a free of any object after each, or none.
        arena: its bytes; None for the control data and 96 more.
        largest: the largest request in bytes.
        method: of METHODS; None for the one that `method_for` names.
        progress: called with the name of each harness before it runs.

    Raises HeapwrightError without the tool of the method, for an arena that is too small, for bounds that allow more
    programs than can be run, and for heaps that move their objects.
    """
    method = method or method_for(recipe)
    tool = _tool(method)
    if any(pool.moves_objects for pool in recipe.pools):
        raise HeapwrightError(f"{label}: moves its objects; prove takes heaps that leave them where they are")
    narrowed = narrow(recipe, arena or ROOM)
    values = policy(narrowed)
    least = int(values["fixed_end"])
    if arena is not None and arena < least:
        raise HeapwrightError(f"{label}: {arena} bytes of arena; its own data takes {least}", parameter="arena")
    size = arena or -(-least // 16) * 16 + ROOM
    names = ["calls", "calloc", "realloc", *(["aligned_alloc"] if _has_headers(recipe) else [])]
    names += ["misuse"] if values["checks"] else []
    most = max(programs_of(name, calls, size, largest) for name in names)
    if method == "enumeration" and most > MOST_PROGRAMS:
        raise HeapwrightError(
            f"{label}: up to {most:,} programs to run, at most {MOST_PROGRAMS:,} are; give fewer calls or a"
            " smaller largest request"
        )
    harnesses = []
    for name in names:
        progress(name)
        harnesses.append(_check(narrowed, name, method, calls, size, largest))
    progress("edges")
    harnesses.append(check_edges(recipe, generated_files(recipe)))
    if has_bins(recipe):
        progress("bins")
        harnesses.append(check_bins(recipe, generated_files(recipe)))
    return Proof(label, calls, size, largest, method, tool, harnesses)


def prove_unbounded(recipe: Recipe, label: str) -> Proof:
    """Prove contracts of the heap that is generated, which hold for any number of calls.

    Raises HeapwrightError without the tool, and for a heap that is not one fixed pool.
    """
    tool, proved = versions(), check_unbounded(recipe, label)
    return Proof(label, 0, int(policy(recipe)["fixed_end"]), MAX_REQUEST, "wp", tool, [proved])


def method_for(recipe: Recipe) -> str:
    """CBMC, but for bins and buddies: it would hold each of their lists open at each call, and ends without memory."""
    return "enumeration" if any(_bounded(pool) for pool in recipe.pools) else "cbmc"


def _tool(method: str) -> str:
    """Name and version of what proves. Raises HeapwrightError where it is missing."""
    if method not in METHODS:
        raise ParameterError(f"{method!r} is no method; valid: {', '.join(METHODS)}", parameter="method")
    if method == "enumeration":
        return compiler_version(find_compiler("a proof by enumeration"))
    cbmc_path()
    return f"CBMC {cbmc_version()}"


def programs_of(name: str, calls: int, arena: int, largest: int) -> int:
    """At most how many programs a harness allows.

    Each step allocates one of `largest` + 1 sizes or nothing, and frees one of the objects so far or nothing.
    """
    steps = _steps(name, calls)
    result = math.prod((largest + 2) * (step + 2) for step in range(steps))
    last = {"calloc": largest + 1, "realloc": steps * (largest + 1), "aligned_alloc": 6 * (largest + 1)}
    return result * (arena if name == "misuse" else last.get(name, 1))


def narrow(recipe: Recipe, room: int) -> Recipe:
    """The recipe without lists of blocks that an arena with `room` bytes for blocks never has: CBMC reads each list."""
    if not any(_bounded(pool) for pool in recipe.pools):
        return recipe
    for most in (1 << bits for bits in range(room.bit_length(), 31)):
        pools = tuple(pool.model_copy(update={"max_block": most}) if _bounded(pool) else pool for pool in recipe.pools)
        result = recipe.model_copy(update={"pools": pools, "control_bytes": 0})
        try:
            values = policy(result)
        except HeapwrightError:  # its own data alone is beyond the reach
            continue
        if values["reach"] >= values["fixed_end"] + room + 16:
            return result
    return recipe


def _bounded(pool: Pool) -> bool:
    return "max_block" in type(pool).model_fields and getattr(pool, "bins", "") != "none"


def harness_text(recipe: Recipe, name: str, method: str, calls: int, arena: int, largest: int) -> str:
    """The program for one harness, in whose folder app_heap.c has to lie."""
    return template(PACKAGE, "harness.c").render(
        by=method,
        second_content=not _needs_zeros(recipe, name),
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
    return any(pool.aligns for pool in recipe.pools)


def _steps(name: str, calls: int) -> int:
    return calls if name in ("calls", "misuse") else calls - 1


def _needs_zeros(recipe: Recipe, name: str) -> bool:
    """Whether what a program wrote may look like a header to a check that looks at one word alone."""
    return name == "misuse" and recipe.checks == "frees"


def _bounds(recipe: Recipe, name: str, calls: int, arena: int, largest: int) -> str:
    steps = _steps(name, calls)
    last = {
        "calls": "",
        "misuse": ", then a free of any byte of the arena that is no live object",
    }.get(name, f", then {name}")
    called = f"any {steps} mallocs, a free of any object after each{last}"
    blocks = [most for pool in recipe.pools if (most := getattr(pool, "max_block", 0))]
    within = f", lists for blocks up to {max(blocks)} bytes" if blocks else ""
    zeros = ", of zeros, in which objects hold zeros" if _needs_zeros(recipe, name) else ""
    return f"an arena of {arena} bytes{zeros}{within}; {called}; requests up to {largest} bytes"


def _check(recipe: Recipe, name: str, method: str, calls: int, arena: int, largest: int) -> Harness:
    harness = harness_text(recipe, name, method, calls, arena, largest)
    with temporary_folder("prove") as folder:
        return check_files(
            generated_files(recipe) | {"harness.c": harness},
            folder,
            name,
            method,
            _bounds(recipe, name, calls, arena, largest),
            calls + 2,
        )


def check_files(
    files: Mapping[str, str], folder: Path, name: str, method: str, bounds: str, iterations: int
) -> Harness:
    """Write a heap and its harness into `folder` and check them there."""
    began = time.monotonic()
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    if method == "enumeration":
        run = run_all(folder / "harness.c")
        return Harness(name, bounds, run.properties, _all_in_words(run.failed), {}, run.programs, _seconds(began))
    verdict = verify(folder / "harness.c", iterations)
    failures = _all_in_words({what: told_calls(trace) for what, trace in verdict.failed.items()})
    return Harness(name, bounds, verdict.properties, failures, verdict.unwinding, None, _seconds(began))


def check_edges(recipe: Recipe, files: Mapping[str, str], compared: bool = True) -> Harness:
    """Try a heap with sizes at the edges of the recipe's classes.

    Args:
        recipe: the heap.
        files: its generated text, by name.
        compared: whether the core runs the same programs, and must do the same.

    Raises HeapwrightError without a C compiler that has AddressSanitizer, and where the harness ends badly.
    """
    began = time.monotonic()
    names = edge_names(recipe, policy(recipe), compared)
    compared = bool(names["compared"])
    pairs, programs = f"{len(names['pairs']):,} of {names['all_pairs']:,}", f"{names['programs']:,}"
    bounds = (
        f"arenas of {', '.join(f'{arena:,}' for arena in names['arenas'])} bytes; {len(names['edges']):,} of"
        f" {names['all_edges']:,} sizes at edges of classes; {pairs} pairs of neighbouring sizes, and {programs}"
        " programs of 40 calls drawn by chance" + ("; compared with the core" if compared else "")
    )
    info = {"prefix": "app", "upper": "APP", "unchecked": align_unchecked("app"), "threads": recipe.threads}
    with temporary_folder("prove") as folder:
        texts = dict(files) | {"harness.c": template(PACKAGE, "edges.c").render(bounds=bounds, **info, **names)}
        if compared:
            texts["core.c"] = template(PACKAGE, "core.c").render()
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        run = run_all(folder / "harness.c", folder / "core.c" if compared else None, core_directory())
    return Harness("edges", bounds, run.properties, _all_in_words(run.failed), {}, run.programs, _seconds(began))


def _seconds(began: float) -> float:
    return round(time.monotonic() - began, 1)


def _all_in_words(failed: Mapping[str, Sequence[Mapping[str, int]]]) -> dict[str, list[str]]:
    return {what: [_in_words(call) for call in calls] for what, calls in failed.items()}


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

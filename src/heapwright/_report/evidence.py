"""The page of evidence for a generated heap: its properties and their sources, for a review of safety or security.

It says the same of the same heap, traces and tools: no date, no time that anything took.
"""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heapwright._recipes.worst_steps import worst_steps
from heapwright._recipes.zoo.facts import facts
from heapwright._replay.metrics import WORST_CALLS
from heapwright._support.names import printable
from heapwright._support.remote import local
from heapwright._support.version import __version__

if TYPE_CHECKING:
    from heapwright._assure.proof.prove import Proof
    from heapwright._recipes.recipe import Recipe
    from heapwright._replay.metrics import Value
    from heapwright._traces.trace import Trace


@dataclass(frozen=True)
class Evidence:
    """What was found out about a generated heap. Where a tool was missing, its line of error stands for the finding.

    Attributes:
        recipe: the heap.
        files: what was generated.
        traces, held_out: what it has to serve, and recordings that only the reserve was judged on.
        arenas: what `heapwright._api.Fit` holds, for each trace.
        metrics: of the replay of each trace, by its name.
        measured: the results of `heapwright._measure.boards.measure`, for each trace.
        attacked: the results of `heapwright._assure.attack.attack` at the recipe's own level of checks.
        proof: None if none was run.
    """

    recipe: Recipe
    files: Sequence[Path]
    traces: Sequence[Trace]
    held_out: Sequence[Trace]
    arenas: Sequence[Mapping[str, Any]]
    metrics: Mapping[str, Mapping[str, Value]]
    measured: Sequence[Mapping[str, Any]] | str
    attacked: Mapping[str, Any] | str
    proof: Proof | str | None

    def page(self) -> str:
        """The page, in Markdown."""
        sections = (
            self._heap(),
            self._traces(),
            self._arena(),
            self._worst_calls(),
            self._misuse(),
            self._proved(),
            self._tools(),
        )
        lines = [printable(line) for section in sections for line in (*section, "")]
        return "\n".join(lines).rstrip() + "\n"

    def _heap(self) -> list[str]:
        rows = [[f"`{path.name}`", _count(path.stat().st_size), f"`{_sha256(path)}`"] for path in self.files]
        return [
            f"# Evidence for {self.recipe.name or f'recipe {self.recipe.hash}'}",
            "",
            *_prose(
                "What is known of this heap, and from what. It was computed and measured as these files were "
                "generated, on the traces named below, and says nothing of other programs, targets or compilers."
            ),
            "",
            "## The heap",
            "",
            *_prose(f"Recipe {self.recipe.hash}: {self.recipe.summary()}."),
            "",
            *_table(("file", "bytes", "SHA-256"), rows),
            "",
            *(f"    {line}".rstrip() for line in self.recipe.to_toml().splitlines()),
        ]

    def _traces(self) -> list[str]:
        rows = [
            [
                trace.name,
                purpose,
                _count(len(trace)),
                _count(trace.peak_live_bytes),
                _count(trace.peak_live_objects),
                f"`{_sha256(local(trace.path))}`" if trace.path else "from no file",
            ]
            for purpose, traces in (("to be served", self.traces), ("held out", self.held_out))
            for trace in traces
        ]
        headings = ("trace", "for", "calls", "most live bytes", "most live objects", "SHA-256 of the file")
        return ["## Traces", "", *_table(headings, rows)]

    def _arena(self) -> list[str]:
        rows = [
            [
                arena["trace"],
                _count(arena["smallest_arena_bytes"]),
                _count(arena["safe_arena_bytes"]),
                _how_sure(arena),
                _count(arena["reserve_bytes"]),
                _count(arena["copies"]),
                _count(arena["worst_case_bytes"]),
            ]
            for arena in self.arenas
        ]
        headings = ("trace", "minimum", "monotone minimum", "guarantee", "recommended", "copies", "fragmentation bound")
        theorems = " and ".join(sorted({arena["worst_case_by"] for arena in self.arenas if arena["worst_case_by"]}))
        return [
            "## Arena",
            "",
            self._reserve(),
            "",
            *_table(headings, rows),
            "",
            *_prose(
                "In bytes, with control data. Minimum: completes the trace. Monotone minimum: every larger arena does, "
                "too. Recommended: a fifth more than the trace and all held-out traces need; it also completes these "
                "perturbed copies of the trace. Bound: suffices for any program with the same live memory and largest "
                + (f"block, by {theorems}." if theorems else "block, if a theorem gives one; none does here.")
            ),
            *(
                f"{arena['trace']}: requests fail in any arena: {', '.join(arena['refused'])}."
                for arena in self.arenas
                if arena["refused"]
            ),
        ]

    def _reserve(self) -> str:
        known = [arena["reserve_bytes"] for arena in self.arenas if arena["reserve_bytes"] is not None]
        if len(known) < len(self.arenas):
            return "**No arena completes** all traces and their copies."
        return f"**Reserve {max(known):,} bytes.**"

    def _worst_calls(self) -> list[str]:
        keys = WORST_CALLS.values()
        rows = [[name, *(_count(metrics[key]) for key in keys)] for name, metrics in self.metrics.items()]
        grows = "does not grow" if facts(self.recipe).bounded else "**grows**"
        steps = worst_steps(self.recipe)
        bound = steps.sentence()
        return [
            "## Worst-case calls",
            "",
            *_prose(
                f"By construction, the worst-case cost of a malloc or free {grows} with the number of blocks: "
                f"{bound}. The figures are the maxima of the traces, not bounds."
            ),
            "",
            *_table(("trace", "accesses of a malloc", "of a realloc", "of a free"), rows),
            "",
            *self._on_target(),
        ]

    def _on_target(self) -> list[str]:
        if isinstance(self.measured, str):
            return [f"Instructions and stack were not measured: {self.measured}"]
        rows = [
            [item["trace"], kind, _count(calls["count"]), *(_count(calls[key]) for key in _MEASURED)]
            for item in self.measured
            for kind, calls in item["calls"].items()
        ]
        first = self.measured[0]
        headings = ("trace", "call", "calls", "instructions, mean", "at most", "bytes of stack, at most")
        return [
            *_prose(
                f"On {first['cpu']}, {first['compiler']} -{first['level']}, {first['backend']}; the heap is "
                f"{first['code_bytes']['total']:,} bytes of code and constants."
            ),
            "",
            *_table(headings, rows),
        ]

    def _misuse(self) -> list[str]:
        level = f"The level of checks is `{self.recipe.checks}`; docs/hardening.md lists the checks of each level."
        if isinstance(self.attacked, str):
            return ["## Misuse", "", level, f"No faults were injected: {self.attacked}"]
        faults: Mapping[str, Mapping[str, int]] = self.attacked["faults"]
        headings = ["fault", *(key.replace("_", " ") for key in next(iter(faults.values())))]
        rows = [[name.replace("_", " "), *map(_count, counts.values())] for name, counts in faults.items()]
        info = _prose(f"{level} Runs on this host with each injected fault, by when the heap detected it:")
        return ["## Misuse", "", *info, "", *_table(headings, rows)]

    def _proved(self) -> list[str]:
        if self.proof is None or isinstance(self.proof, str):
            return ["## Proofs", "", "None was requested." if self.proof is None else f"None: {self.proof}"]
        rows = [
            [harness.name, harness.bounds, _count(harness.properties), _count(len(harness.failures))]
            for harness in self.proof.harnesses
        ]
        return [
            "## Proofs",
            "",
            *_prose(
                f"{self.proof.tool} checked the generated text, by {_METHODS[self.proof.method]}; docs/proofs.md "
                "says what that means. Nothing is proved beyond the bounds."
            ),
            "",
            *_table(("harness", "bounds", "properties", "failed"), rows),
        ]

    def _tools(self) -> list[str]:
        measured = () if isinstance(self.measured, str) else self.measured
        used = dict.fromkeys(item[key] for key in ("compiler", "backend") for item in measured)
        names = (f"Heapwright {__version__}", f"Python {platform.python_version()}", *used)
        return ["## Made with", "", *_prose(f"{', '.join(names)}.")]


_METHODS = {"cbmc": "model checking", "enumeration": "running every program within the bounds, with its sanitizers"}

_MEASURED = ("instructions_mean", "instructions_max", "stack_bytes_max")


def _sha256(path: Path) -> str:
    with Path(path).open("rb") as file:
        digest = sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _count(value: Value) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _how_sure(arena: Mapping[str, Any]) -> str:
    if arena["safe_proved"] is None:
        return "-"
    return "proved" if arena["safe_proved"] else f"{arena['safe_tried']:,} larger ones tried"


def _prose(text: str) -> list[str]:
    return textwrap.wrap(text, 120)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of Markdown; numbers stand at the right."""
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    numeric = [all(row[column][:1] in "-0123456789" for row in rows) for column in range(len(headings))]
    rule = ["---:" if is_number else "---" for is_number in numeric]
    return [f"| {' | '.join(row)} |" for row in (headings, rule, *escaped)]

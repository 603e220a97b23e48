"""CBMC as a tool: loops, bounds of unwinding, results, and the calls of a counterexample."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heapwright._support.errors import HeapwrightError
from heapwright._support.subprocesses import run_tool

_FLAGS = ("--unwinding-assertions", "--drop-unused-functions", "--json-ui")

# A loop that counts to a constant ends by itself.
_COUNTS_TO_CONSTANT = re.compile(r"for \(.*; \w+ < [A-Z][A-Z0-9_]*; .*\)")

_UNWINDING = re.compile(r"(.*)\.unwind\.(\d+)")


@dataclass(frozen=True)
class ProofVerdict:
    """What CBMC found: how many properties it checked, and for each that failed its text and the trace's steps."""

    properties: int
    failed: Mapping[str, Sequence[Mapping[str, Any]]]
    unwinding: Mapping[str, int]


def cbmc_path() -> str:
    """Where CBMC is. Raises HeapwrightError with how to get it."""
    result = shutil.which("cbmc")
    if result is None:
        raise HeapwrightError("cbmc: not installed; on Debian 13 or Ubuntu: apt-get install cbmc (docs/proofs.md)")
    return result


def cbmc_version() -> str:
    """CBMC's version, as 6.6.0."""
    return str(run_tool([cbmc_path(), "--version"], text=True).stdout).split()[0]


def verify(source: Path, iterations: int) -> ProofVerdict:
    """Check all properties of `source`; a loop that `iterations` are too few for is unwound as many times more.

    Raises HeapwrightError where CBMC is missing or cannot read the source.
    """
    command = [cbmc_path(), source.name, *_FLAGS]
    unwinding = dict.fromkeys(_searching_loops(command, source.parent), iterations)
    while True:
        results = _results(_run(command, source.parent, unwinding))
        failed = [result for result in results if result["status"] != "SUCCESS"]
        short = [match for item in failed if (match := _UNWINDING.fullmatch(item["property"]))]
        if not short:
            return ProofVerdict(len(results), {_name(item): item.get("trace", ()) for item in failed}, unwinding)
        for match in short:
            loop = f"{match[1]}.{match[2]}"
            unwinding[loop] = unwinding.get(loop, iterations) + iterations


def _searching_loops(command: Sequence[str], folder: Path) -> list[str]:
    """The loops whose number of iterations depends on data."""
    result = _messages([*command, "--show-loops"], folder)
    loops: list[Any] = next((message["loops"] for message in result if "loops" in message), [])
    return [loop["name"] for loop in loops if not _COUNTS_TO_CONSTANT.search(_line(loop["sourceLocation"], folder))]


def _line(place: Mapping[str, str], folder: Path) -> str:
    return (folder / place["file"]).read_text(encoding="utf-8").splitlines()[int(place["line"]) - 1]


def _run(command: Sequence[str], folder: Path, unwinding: Mapping[str, int]) -> list[Mapping[str, Any]]:
    bounds = ",".join(f"{loop}:{most}" for loop, most in unwinding.items())
    return _messages([*command, "--trace", *(["--unwindset", bounds] if bounds else [])], folder)


def _messages(command: Sequence[str], folder: Path) -> list[Mapping[str, Any]]:
    done = run_tool(command, folder, cwd=folder, text=True)
    try:
        messages: list[Mapping[str, Any]] = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise HeapwrightError(f"cbmc: failed ({done.returncode}): {' '.join(done.stderr.split())[:300]}") from None
    errors = [str(message["messageText"]) for message in messages if message.get("messageType") == "ERROR"]
    if errors:
        raise HeapwrightError(f"cbmc: {'; '.join(errors)}")
    return messages


def _results(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    result = next((message["result"] for message in messages if "result" in message), None)
    if result is None:
        raise HeapwrightError("cbmc: ended without a result; is there memory enough?")
    return list(result)


def _name(result: Mapping[str, Any]) -> str:
    place = result.get("sourceLocation", {})
    return f"{result['description']} ({place.get('file', '?')}:{place.get('line', '?')})"


def told_calls(trace: Sequence[Mapping[str, Any]]) -> list[dict[str, int]]:
    """The arguments of each call of the harness's `told`, in order."""
    calls: list[dict[str, int]] = []
    for step in trace:
        name = str(step.get("lhs", ""))
        if step.get("stepType") == "function-call" and step["function"]["displayName"] == "told":
            calls.append({})
        elif calls and step.get("assignmentType") == "actual-parameter" and _is_told(step):
            calls[-1][name.removeprefix("told::")] = int(step["value"]["binary"], 2)
    return calls


def _is_told(step: Mapping[str, Any]) -> bool:
    return step.get("lhs") in ("call", "object", "size", "alignment")

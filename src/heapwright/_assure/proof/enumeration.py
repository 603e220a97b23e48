"""Every program within a harness's bounds, run one after the other under the compiler's sanitizers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heapwright._support.errors import HeapwrightError
from heapwright._support.subprocesses import find_compiler, run_tool

FLAGS = ("-std=gnu11", "-O1", "-g", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

MOST_PROGRAMS = 20_000_000_000
"""Programs that are run at most: hours."""

_SANITIZER = re.compile(r"(?:ERROR: AddressSanitizer: ([\w-]+)|runtime error: (.+))")
_PLACE = re.compile(r"(app_\w*\.[ch]:\d+)")


@dataclass(frozen=True)
class Enumeration:
    """What came of it.

    Attributes:
        programs: how many were run to their end.
        properties: how many were looked at; the two sanitizers, independence and unwinding count as one each.
        failed: by property, the calls that violate it, each as arguments of the harness's `told`.
    """

    programs: int
    properties: int
    failed: Mapping[str, list[dict[str, int]]]


def compiler_version(compiler: str) -> str:
    """The compiler's first line about itself."""
    lines = str(run_tool([compiler, "--version"], text=True).stdout).splitlines()
    return lines[0] if lines else compiler


def run_all(source: Path, beside: Path | None = None, headers: Path | None = None) -> Enumeration:
    """Compile the harness `source` and run its programs.

    `beside` is another source that belongs to it, which no sanitizer watches; `headers` is where its headers lie.

    Raises HeapwrightError without a C compiler that has AddressSanitizer, and where the harness ends badly.
    """
    compiler = find_compiler("a proof by enumeration")
    program = source.with_suffix("")
    include = [] if headers is None else [f"-I{headers}"]
    steps = [[*FLAGS, *include, source.name, "-o", program.name]]
    if beside is not None:
        steps.insert(0, ["-std=gnu11", "-O1", "-w", *include, "-c", beside.name])
        steps[1].insert(-2, beside.with_suffix(".o").name)
    for step in steps:
        built = run_tool([compiler, *step], source.parent, cwd=source.parent, text=True)
        if built.returncode:
            raise HeapwrightError(f"{compiler}: cannot build with -fsanitize=address: {_first(built.stderr)}")
    done = run_tool([str(program)], source.parent, cwd=source.parent, text=True)
    programs, failed = _read(done.stdout)
    if "sanitizer" in failed:
        failed[_of_sanitizer(done.stderr)] = failed.pop("sanitizer")
    elif not failed and (done.returncode or not programs):
        raise HeapwrightError(f"the harness ended with {done.returncode}: {_first(done.stderr)}")
    properties = len(set(re.findall(r"\bprove\(.*?\"(.+?)\"\)", source.read_text(encoding="utf-8"), re.DOTALL))) + 4
    return Enumeration(programs, properties, failed)


def _first(text: str) -> str:
    return " ".join(text.split())[:300]


def _of_sanitizer(text: str) -> str:
    result = _SANITIZER.search(text)
    place = _PLACE.search(text)
    what = next((group for group in result.groups() if group), "?") if result else _first(text)
    return f"sanitizer: {what} ({place[1] if place else '?'})"


def _read(text: str) -> tuple[int, dict[str, list[dict[str, int]]]]:
    """The number of programs, and the calls for each failure."""
    programs = 0
    failed: dict[str, list[dict[str, int]]] = {}
    info: list[dict[str, int]] = []
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "programs":
            programs = int(rest)
        elif word == "failed":
            info = failed.setdefault(rest, [])
        elif word == "call":
            info.append(dict(zip(("call", "object", "size", "alignment"), map(int, rest.split()), strict=True)))
    return programs, failed

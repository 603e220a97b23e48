"""One program that is checked, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PACKAGE = "heapwright._assure.proof"
"""Where the templates of programs lie."""


@dataclass(frozen=True)
class Harness:
    """One program that was checked.

    Attributes:
        name: "calls", "calloc", "realloc", "aligned_alloc", "misuse", "edges", "bins" or "unbounded".
        bounds: what it may do, in words; the proof says nothing beyond.
        properties: how many were checked.
        failures: what does not hold, with the calls that show it.
        unwinding: how often the model checker unwound each loop; that it ends by then was proved, too.
        programs: how many were run; None where the model checker followed them.
        seconds: how long it took.
    """

    name: str
    bounds: str
    properties: int
    failures: Mapping[str, list[str]]
    unwinding: Mapping[str, int]
    programs: int | None
    seconds: float

"""One program that is checked: what came of it, and the template that it is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


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


@cache
def template(name: str) -> Template:
    """A program in C, to be filled in."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("heapwright.prove", "templates"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    return environment.get_template(name)

"""Futures and stress tests are shorter than users have them, so that explorations of tests take seconds.

All forms keep their bounds; what the real ones find is tested by `test_endurance.py`, which asks for them by name.
Other people's heaps, and programs that time heaps, are compiled as they stand: how fast they are says no test.
PNGs of plots have a quarter of the pixels: to draw and to compress those takes longer than the plot itself.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import run_length

from heapwright._heaps.foreign import build
from heapwright._measure.host import timing
from heapwright._traces.trace import Trace
from heapwright._traffic.workloads.made import future_of

ASKED = "HEAPWRIGHT_TESTS_BRIEF"
"""Set in the environment of commands that are to be brief, too (`forked_commands`)."""

CALLS: dict[tuple[str, str], dict[str, int]] = {
    ("stress_test", "SHORT"): {"calls": 5_000, "base": 1_500, "enough": 5_000, "cramped": 2_000, "objects": 150},
    ("stress_test", "LONG"): {"calls": 20_000, "base": 4_000, "enough": 20_000, "cramped": 6_000, "objects": 250},
}
"""By module of `heapwright._explore` and name of the form."""

FUTURE = 4_000
"""Calls of the futures that recipes are raced on, and that counts of pools are taken from, at most."""

OPTIMISED, LEVEL = "-O2", run_length.brief("-O0", "-O2")

CODE = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
import short_explorations
for module, form, value in short_explorations.forms():
    setattr(module, form, value)
for module, flags in short_explorations.flags().items():
    module.FLAGS = flags
"""
"""The same for another process."""


def command(script: Path) -> list[str]:
    """What runs a script so."""
    code = f"{CODE}import runpy\nsys.path.insert(0, {str(script.parent)!r})\n"
    return [sys.executable, "-c", f"{code}runpy.run_path({str(script)!r}, run_name='__main__')"]


def forms() -> list[tuple[ModuleType, str, Any]]:
    """What stands in these modules under these names while tests run."""
    places = [(import_module(f"heapwright._explore.{name}"), form, calls) for (name, form), calls in CALLS.items()]
    default_space, search = (import_module(f"heapwright._explore.{name}") for name in ("default_space", "search"))
    stress = [(module, form, replace(getattr(module, form), **calls)) for module, form, calls in places]
    return [*stress, (default_space, "COUNTED_CALLS", FUTURE), (search, "futures_of", few_calls)]


def few_calls(traces: Sequence[Trace], calls: int, seed: int) -> list[Trace]:
    """A future of each trace, of `FUTURE` calls at most."""
    return [future_of(trace, min(calls, FUTURE), seed) for trace in traces]


def flags() -> dict[ModuleType, tuple[str, ...]]:
    """What stands as `FLAGS` in these modules while tests run."""
    return {module: tuple(flag.replace(OPTIMISED, LEVEL) for flag in module.FLAGS) for module in (build, timing)}


@contextlib.contextmanager
def small_pictures() -> Iterator[None]:
    """While PNGs of plots are small, but in long runs."""
    from heapwright._report import figure  # which not all tests need, and takes half a second to import

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(figure, "SCALE", run_length.brief(1, figure.SCALE))
        yield

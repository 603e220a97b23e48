"""Whether heaps last is tried for fewer calls than users have it tried, so that explorations of tests take seconds.

All forms keep their bounds; what the real ones find is tested by `test_endurance.py`, which asks for them by name.
Other people's heaps, and programs that time heaps, are compiled as they stand: how fast they are says no test.
PNGs of plots have a quarter of the pixels: to draw and to compress those takes longer than the plot itself.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import effort
import pytest

from heapwright.heaps.foreign import build
from heapwright.measure.host import timing
from heapwright.replay.endurance import Effort

ASKED = "HEAPWRIGHT_TESTS_BRIEF"
"""Set in the environment of commands that are to be brief, too (`forked_commands`)."""

CALLS: dict[tuple[str, str], dict[str, int]] = {
    ("endurance", "SHORT"): {"calls": 5_000, "base": 1_500, "enough": 5_000, "cramped": 2_000, "objects": 150},
    ("endurance", "SIEVE"): {"calls": 10_000, "base": 2_500, "enough": 10_000, "cramped": 4_000, "objects": 200},
    ("suggest", "MIDDLE"): {"calls": 10_000, "base": 2_500, "enough": 10_000, "cramped": 4_000, "objects": 200},
    ("endurance", "LONG"): {"calls": 20_000, "base": 4_000, "enough": 20_000, "cramped": 6_000, "objects": 250},
}
"""By module of `heapwright.explore` and name of the form."""

OPTIMISED, LEVEL = "-O2", effort.brief("-O0", "-O2")

CODE = f"""
import dataclasses
import importlib
from heapwright.heaps.foreign import build
from heapwright.measure.host import timing
for (name, form), calls in {CALLS}.items():
    module = importlib.import_module("heapwright.explore." + name)
    setattr(module, form, dataclasses.replace(getattr(module, form), **calls))
for module in (build, timing):
    module.FLAGS = [flag.replace({OPTIMISED!r}, {LEVEL!r}) for flag in module.FLAGS]
"""
"""The same for another process."""


def command(script: Path) -> list[str]:
    """What runs a script so."""
    code = f"{CODE}import runpy, sys\nsys.path.insert(0, {str(script.parent)!r})\n"
    return [sys.executable, "-c", f"{code}runpy.run_path({str(script)!r}, run_name='__main__')"]


def forms() -> list[tuple[ModuleType, str, Effort]]:
    """What stands in these modules under these names while tests run."""
    places = [(import_module(f"heapwright.explore.{name}"), form, calls) for (name, form), calls in CALLS.items()]
    return [(module, form, replace(getattr(module, form), **calls)) for module, form, calls in places]


def flags() -> dict[ModuleType, tuple[str, ...]]:
    """What stands as `FLAGS` in these modules while tests run."""
    return {module: tuple(flag.replace(OPTIMISED, LEVEL) for flag in module.FLAGS) for module in (build, timing)}


@contextlib.contextmanager
def small_pictures() -> Iterator[None]:
    """While PNGs of plots are small, but in long runs."""
    from heapwright.report import figure  # which not all tests need, and takes half a second to import

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(figure, "SCALE", effort.brief(1, figure.SCALE))
        yield

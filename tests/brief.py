"""Whether heaps last is tried for fewer calls than users have it tried, so that explorations of tests take seconds."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from heapwright.replay.endurance import LONG, Effort

ASKED = "HEAPWRIGHT_TESTS_BRIEF"
"""Set in the environment of commands that are to be brief, too (`forked_commands`)."""

CALLS = {"calls": 80_000, "base": 10_000, "enough": 80_000, "cramped": 20_000, "objects": 500}

CODE = f"""
import dataclasses
from heapwright.explore import endurance
endurance.LONG = dataclasses.replace(endurance.LONG, **{CALLS})
"""
"""The same for another process."""


def command(script: Path) -> list[str]:
    """What runs a script so."""
    code = f"{CODE}import runpy, sys\nsys.path.insert(0, {str(script.parent)!r})\n"
    return [sys.executable, "-c", f"{code}runpy.run_path({str(script)!r}, run_name='__main__')"]


def brief() -> Effort:
    return replace(LONG, **CALLS)  # type: ignore[arg-type]

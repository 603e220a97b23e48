"""What host times depend on: the processor and the system."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


def machine() -> str:
    """The processor's name, how many there are, and the system, in words."""
    return _machine()


@cache
def _machine() -> str:
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return f"{processor_name()}, {os.cpu_count() or 1} processors, {system}"


def processor_name() -> str:
    """The processor as Linux calls it; elsewhere what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())

"""Workloads: the heap traffic of network applications, as traces.

One module each, with a function of its name: `drr.drr`, `easyport.easyport`, `priority.priority`, `url.url` and
`queue.queue` take a packet table, `modem.modem` and `poisson.poisson` none. ``docs/workloads.md`` lists the choices
that the papers leave open.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

NAMES = ("drr", "easyport", "priority", "url", "queue", "modem", "poisson")


def function(name: str) -> Callable[..., Trace]:
    """The workload of this name, one of NAMES, or of a Python file with a class Queue (`scheduled.queue_file`)."""
    if name.endswith(".py"):
        from heapwright._traffic.workloads.scheduled import queue_file

        return queue_file(Path(name))
    result: Callable[..., Trace] = getattr(importlib.import_module(f"heapwright._traffic.workloads.{name}"), name)
    return result

"""Workloads: the heap traffic of network applications, as traces.

One module each, with a function of its name: `drr.drr`, `easyport.easyport`, `url.url` and `queue.queue` take a packet
table, `modem.modem` and `poisson.poisson` none. ``docs/workloads.md`` lists the choices that the papers leave open.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

NAMES = ("drr", "easyport", "url", "queue", "modem", "poisson")


def function(name: str) -> Callable[..., Trace]:
    """The workload of this name, one of NAMES."""
    result: Callable[..., Trace] = getattr(importlib.import_module(f"heapwright._traffic.workloads.{name}"), name)
    return result

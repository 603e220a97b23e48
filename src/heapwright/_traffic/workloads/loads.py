"""Loads: a workload at several loads of its link, and the change of its peak with the load."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from heapwright._support.errors import ParameterError

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

STEP = 0.1
"""Relative change of the load at which peaks are reported."""


def at_loads(make: Callable[..., Trace], loads: Sequence[float]) -> list[Trace]:
    """The trace of each load, named after it. Raises ParameterError for no load, or one that comes twice."""
    if not loads or len({f"{load:g}" for load in loads}) < len(loads):
        raise ParameterError(f"{list(loads)}: give one load or more, each once", parameter="load")
    traces = [make(load=load) for load in loads]
    return [
        dataclasses.replace(trace, name=f"{trace.name}-{load:g}") for trace, load in zip(traces, loads, strict=True)
    ]


def peaks_around(make: Callable[..., Trace], load: float) -> dict[float, int]:
    """Load -> largest live bytes, for a tenth less load, the load and a tenth more."""
    around = [float(f"{load * (1 + share):.6g}") for share in (-STEP, 0, STEP)]
    return {item: make(load=item).peak_live_bytes for item in around}

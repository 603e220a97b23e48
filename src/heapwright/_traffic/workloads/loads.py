"""One workload at several loads of its link, or values of any option, and how steep its peak is there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from heapwright._support.errors import ParameterError

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

SWEPT = "swept"
"""The key of a trace's metadata that says which option it is one of several values of."""

STEP = 0.1
"""How much less and more load the peak is told for."""


def at_loads(make: Callable[..., Trace], loads: Sequence[float]) -> list[Trace]:
    """The trace of each load, named after it. Raises ParameterError for no load, or one that comes twice."""
    if not loads or len({f"{load:g}" for load in loads}) < len(loads):
        raise ParameterError(f"{list(loads)}: give one load or more, each once", parameter="load")
    traces = [make(load=load) for load in loads]
    return [
        dataclasses.replace(trace, name=f"{trace.name}-{load:g}") for trace, load in zip(traces, loads, strict=True)
    ]


def swept(make: Callable[..., Trace], option: str, values: Sequence[float]) -> list[Trace]:
    """The trace of each value of an option, named after it; its metadata say which option was `swept`.

    Values that are whole numbers are given as such. Raises ParameterError for no value, or one that comes twice.
    """
    if not values or len({f"{value:g}" for value in values}) < len(values):
        raise ParameterError(f"{list(values)}: give one value or more, each once", parameter=option)
    results = []
    for value in values:
        trace = make(**{option: int(value) if float(value).is_integer() else value})
        info = {**trace.metadata, SWEPT: option, option: f"{value:g}"}
        results.append(dataclasses.replace(trace, name=f"{trace.name}-{value:g}", metadata=info))
    return results


def peaks_around(make: Callable[..., Trace], load: float) -> dict[float, int]:
    """Load -> largest live bytes, for a tenth less load, the load and a tenth more."""
    around = [float(f"{load * (1 + share):.6g}") for share in (-STEP, 0, STEP)]
    return {item: make(load=item).peak_live_bytes for item in around}

"""Where a trace comes from, as far as it tells: the program that was recorded, or the packets that it was made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from heapwright._traces.trace import Trace

_NUMBERED = re.compile(r"(.+?)[-_.](?:[A-Za-z]|\d+(?:\.\d+)?)")
"""One of several files of a name: server_a and server_b, server-1 and server-2."""


def origin_of(trace: Trace) -> str | None:
    """The program that was recorded; else the workload and its packets; else what a numbered file is one of, or None.

    Numbered is what ends in a letter or a number behind a hyphen, an underscore or a dot: server_a, server-2.
    """
    info = trace.metadata
    if "program" in info:
        return Path(info["program"]).name
    if "workload" in info and "packets_from" in info:
        return f"{info['workload']} of {info['packets_from']}"
    numbered = _NUMBERED.fullmatch(trace.name.partition("~")[0])
    return numbered[1] if numbered else None


def common_origin(traces: Sequence[Trace]) -> str | None:
    """What all of the traces come from; None where they come from several, or one does not tell."""
    origins = {origin_of(trace) for trace in traces}
    return origins.pop() if len(origins) == 1 else None

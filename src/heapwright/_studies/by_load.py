"""Recommendation at each load of a workload: the load is an estimate, and decides how much memory is requested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heapwright._studies.robustness import Robustness

if TYPE_CHECKING:
    from heapwright._studies.analysis import Analysis
    from heapwright._studies.results import Results
    from heapwright._traces.trace import Trace

BESIDE = ("newlib-nano", "tlsf")
"""Reference allocators with which recommendations are compared."""


@dataclass(frozen=True)
class AtLoad:
    """Trace of a study, made at some load of its link.

    Attributes:
        load: share of time that the link is busy.
        trace: its name.
        requested_peak_bytes: largest sum of live requested bytes.
        pick: id of the balanced recommendation for this trace alone.
        footprint_bytes: its footprint on this trace.
        `beside`: footprints of reference allocators at the study's alignment, by name; None if one was not evaluated
            or failed a request.
    """

    load: float
    trace: str
    requested_peak_bytes: int
    pick: str
    footprint_bytes: int
    beside: dict[str, int | None]


def picks_by_load(study: Analysis, traces: Sequence[Trace]) -> list[AtLoad]:
    """The recommendation for each explored trace that was made at a load, in order of load; none if all have one load.

    A trace on which no recipe served every request is left out. None if recipes were pruned: the recommendation for a
    trace alone may be a recipe that cannot reach the front of all traces.
    """
    at = sorted(((float(trace.metadata["load"]), trace) for trace in traces if "load" in trace.metadata), key=_by_load)
    if len({load for load, _ in at}) < 2 or study.given_up:
        return []
    results = []
    for load, trace in at:
        alone = study.alone(trace.name)
        if (row := _balanced(study, alone)) is not None:
            beside = {name: _footprint(alone, name) for name in BESIDE}
            needed = int(alone.columns["footprint_bytes"][row])
            results.append(AtLoad(load, trace.name, trace.peak_live_bytes, alone.ids[row], needed, beside))
    return results


def _by_load(item: tuple[float, Trace]) -> tuple[float, str]:
    return item[0], item[1].name


def _balanced(study: Analysis, alone: Results) -> int | None:
    """Row of the balanced recommendation for one trace; None if the front is empty."""
    keys = study.objectives
    mask = alone.admitting(keys, alone.eligible(keys))
    front = alone.front_rows(keys, mask)
    if not len(front):
        return None
    robustness = Robustness(alone, {}, study.recipe_texts(), keys)
    return robustness.in_order("balanced", front, mask)[0]


def _footprint(alone: Results, name: str) -> int | None:
    """Footprint of a reference allocator at the study's alignment."""
    served = alone.ranked & (alone.columns["failed"] == 0)
    results = [row for row, zoo_name in enumerate(alone.zoo_names) if zoo_name == name and served[row]]
    return int(alone.columns["footprint_bytes"][results[0]]) if results else None

"""Allocators of sensor nodes: Table I and Figures 6 to 9.

Das, Singh, Singh and Kumar, "A low overhead dynamic memory management system for constrained memory embedded systems".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from heapwright import FREE, zoo
from heapwright_papers import sensor_runs
from heapwright_papers.case_study import mutants
from heapwright_papers.declared import constants, fill, page_of
from heapwright_papers.measuring import CPU, NO_TOOLS, code_bytes, replayed
from heapwright_papers.page import Page
from heapwright_papers.sensor_runs import (
    FIVE,
    HOLES,
    LEVELS,
    MOVING,
    RECORDED,
    SOS,
    ST,
    SYNTHETIC_CALLS,
    TABLE_1,
    Results,
    allocation_bytes,
    alone,
    descriptor_bytes,
    holes,
    largest,
    measure,
    served,
    traces,
    uses_holes,
)


def page(packets: Path | None, progress: Callable[[str], None], calls: int = SYNTHETIC_CALLS) -> Page:
    """Table I and Figures 6 to 9; no packets are needed. `calls` are those of the synthetic traces."""
    results = measure(traces(calls), progress)
    made = page_of("sensor")
    for name, some in results.traces.items():
        for seed, trace in enumerate(some, 1):
            made.traffic(f"{name}, seed {seed}" if len(some) > 1 else name, trace)
    names = _names(results)
    fill(made, names)
    made.judge(names)
    progress("sensor: other allocators in the places of the paper's")
    arena = largest(results)
    others = {name: alone({name: recipe}, results.traces, arena) for name, recipe in mutants("sensor").items()}
    made.mutate(others, lambda place, other: _names(results.with_other(place, other)))
    return made


def _names(results: Results) -> dict[str, Any]:
    """What the expressions see: the results, probes of single allocators, and the constants of the runs."""
    recipes = results.recipes
    sos = recipes[SOS]
    names = {
        "recorded": [name for name in results.traces if name in RECORDED],
        "random": [name for name in results.traces if name not in RECORDED],
    }
    random = [trace for name in names["random"] for trace in results.traces[name]]
    first = {name: some[0] for name, some in results.traces.items()}
    codes = {level: {heap: code_bytes(results.codes[heap], level) for heap in FIVE} for level in LEVELS}

    def ratios(heap: str, other: str, *kinds: str) -> list[float]:
        """Instructions of a call of each kind together, over the other's, on each trace."""
        both = [[results.mean_of(one, name, *kinds) for name in results.traces] for one in (heap, other)]
        return [ours / theirs for ours, theirs in zip(*both, strict=True)]

    return {
        **constants("sensor"),
        **{name: value for name, value in vars(sensor_runs).items() if name.isupper()},
        **vars(results),
        **{name: getattr(results, name) for name in ("memory", "instructions", "most")},
        "CPU": CPU,
        "no_tools": NO_TOOLS if results.most(ST, "free") is None else "",
        "no_codes": NO_TOOLS if any(None in of.values() for of in codes.values()) else "",
        "names": names,
        "known": {
            where: [
                {heap: results.found[heap][name][at].memory or 0 for heap in FIVE}
                for name in of
                for at in range(len(results.traces[name]))
            ]
            for where, of in names.items()
        },
        "codes": codes,
        "ratios": ratios,
        "zoo": zoo,
        "sos": sos,
        "served": lambda sizes: served(sizes, sos),
        "footprint": lambda recipe: int(replayed(holes(HOLES[-1]), recipe)["footprint_bytes"]),
        "requests": [int(size) for trace in random for size in trace.size[trace.op != FREE]],
        "refused": {
            name: int(replayed(trace, sos)["failed"]) / int((trace.op != FREE).sum()) for name, trace in first.items()
        },
        "descriptor": {heap: descriptor_bytes(recipes[heap]) for heap in TABLE_1},
        "loses": {heap: not uses_holes(recipes[heap]) for heap in TABLE_1},
        "whole": {heap: allocation_bytes(recipes[heap]) for heap in MOVING},
    }

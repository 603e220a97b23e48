"""A multi-channel modem concentrator: Tables 1 to 3, Figure 5, and what the paper leaves as future work.

Peintner, Bukhatwa and Patel, "Analysing dynamic memory allocation in embedded systems for multi-channel modems".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from heapwright import zoo
from heapwright_papers import modem_runs
from heapwright_papers.case_study import mutants
from heapwright_papers.declared import constants, fill, page_of
from heapwright_papers.measuring import NO_TOOLS, code_bytes
from heapwright_papers.modem_runs import (
    BEST_FAST,
    BEST_SLOW,
    CALLS,
    FIRST_FAST,
    FIRST_SLOW,
    FOUR,
    INSTANCES,
    LEVELS,
    SEEDS,
    Results,
    crucial,
    measure,
)
from heapwright_papers.page import Page


def page(packets: Path | None, progress: Callable[[str], None], calls: int = CALLS, most: int = INSTANCES[-1]) -> Page:
    """Tables 1 to 3, Figure 5, deferred coalescing, and search trees with up to `most` instances; no packets."""
    results = measure(progress, calls, most)
    made = page_of("modem")
    for seed, trace in zip(SEEDS, results.traces, strict=True):
        made.traffic(f"workload modem, seed {seed}", trace)
    names = _names(results)
    fill(made, {**names, "asked": calls})
    made.judge(names)
    progress("modem: other allocators in the places of the paper's")
    others = {name: modem_runs.other(recipe, results) for name, recipe in mutants("modem").items()}
    made.mutate(others, lambda place, one: _names(results.with_other(place, one)))
    return made


def _names(results: Results) -> dict[str, Any]:
    """What the expressions see: the results, and the constants of the paper and of the runs."""
    counts = list(dict.fromkeys(one.calls for one in results.lengths))
    instances = dict.fromkeys(one.instances for one in results.scaled)
    retrained = {"swap of a connected call": True} if results.swaps.connected.any() else {}
    return {
        **constants("modem"),
        **{name: value for name, value in vars(modem_runs).items() if name.isupper()},
        **vars(results),
        "length": results.length,
        "mean_share": results.mean_share,
        "PAIRS": ((FIRST_SLOW, FIRST_FAST), (BEST_SLOW, BEST_FAST)),
        "SWAPS": {"swap": False, **retrained},
        "reach": zoo(FOUR[FIRST_FAST]).reach or 1 << 31,
        "calls": min(max(counts), CALLS),
        "counts": counts,
        "crucial": crucial(results.traces[0]).mean(),
        "by_instances": [[one for one in results.scaled if one.instances == count] for count in instances],
        "no_times": NO_TOOLS if any(one.whole is None for one in results.responses.values()) else "",
        "no_codes": NO_TOOLS if any(one is None for one in results.codes.values()) else "",
        "sizes": results.codes,
        "codes": {level: {label: code_bytes(results.codes[label], level) for label in FOUR} for level in LEVELS},
        "dearest": {label: one.dearest_free() for label, one in results.responses.items()},
        "usual": {label: results.responses[label].instructions("free") for label in FOUR},
        "total": {label: results.responses[label].total() for label in FOUR},
    }

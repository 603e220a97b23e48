"""Heapwright tailors heaps: trace x recipe -> metrics, then C for the firmware.

    import heapwright as hw

    study = hw.explore("app.parquet", "app.duckdb")
    hw.generate(study.pick("balanced"), "heap/")

Names are loaded when they are first used; docs/api.md is the reference.
"""

from __future__ import annotations

from heapwright._support.errors import HeapwrightError
from heapwright._support.version import __version__

TYPE_CHECKING = False  # typing's own takes as long to import as all the rest
if TYPE_CHECKING:
    from typing import Any

    from heapwright._api import *

__all__ = [
    "CHECKS",
    "FREE",
    "HEAP_MAP_STATES",
    "MALLOC",
    "REALLOC",
    "RECOMMENDED",
    "ForeignHeap",
    "HeapwrightError",
    "PacketTable",
    "Recipe",
    "Session",
    "Space",
    "Study",
    "Trace",
    "WideSpace",
    "__version__",
    "attack",
    "births_and_deaths",
    "check",
    "compare_studies",
    "convert_log",
    "copies",
    "copy_kinds",
    "cut",
    "default_energy_table",
    "default_space",
    "diagnose",
    "diff",
    "explore",
    "export_trace",
    "extend_study",
    "figure",
    "find_heap",
    "find_worst",
    "fit",
    "fit_memories",
    "fit_regions",
    "generate",
    "generated_files",
    "heap_map",
    "held_requests",
    "hooks",
    "import_log",
    "import_packets",
    "import_recording",
    "labels",
    "live",
    "load_peaks",
    "machine",
    "map_sizes",
    "measure",
    "merge",
    "merge_studies",
    "network",
    "open_study",
    "pareto",
    "picks_by_load",
    "place_in_regions",
    "platforms",
    "pools",
    "portfolio",
    "profile",
    "prove",
    "pull_request",
    "read_recipe",
    "read_trace",
    "record",
    "region_contents",
    "repair_trace",
    "replay",
    "report",
    "reproduce",
    "resample",
    "sample_events",
    "scale",
    "schema",
    "size_table",
    "special_pools",
    "stress",
    "suggest",
    "synthesise",
    "timing",
    "trace_facts",
    "with_connections",
    "with_failed_life",
    "with_static",
    "workload",
    "worst_steps",
    "write_checked",
    "writing",
    "zoo",
]

RENAMED = {"endure": "stress", "families": "default_space", "taught": "portfolio"}
"""Names of 0.2 and earlier, each with today's; they warn, and go with the next release (docs/upgrading.md)."""

REMOVED = {
    "Admission": "replay pools of several counts, and read the metric admitted_fraction",
    "admit": "replay pools of several counts, and read the metric admitted_fraction",
    "sweep": "call workload once for each value",
}
"""Names of 0.2 that have no successor, each with what to do instead."""


def __getattr__(name: str) -> Any:
    import importlib

    if name in RENAMED:
        import warnings

        warnings.warn(f"heapwright.{name} is now heapwright.{RENAMED[name]}", DeprecationWarning, stacklevel=2)
        name = RENAMED[name]
    elif name in REMOVED:
        raise AttributeError(f"heapwright.{name} is gone: {REMOVED[name]}")
    elif name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("heapwright._api"), name)


def __dir__() -> list[str]:
    return __all__

"""Heapwright tailors heaps: trace x recipe -> metrics, then C for the firmware.

    import heapwright as hw

    study = hw.explore("app.parquet", "app.duckdb")
    hw.generate(study.pick("balanced"), "heap/")

Names are loaded when they are first used; docs/api.md is the reference.
"""

from __future__ import annotations

from heapwright.files.errors import HeapwrightError
from heapwright.files.rooms import answer_with
from heapwright.files.version import __version__

TYPE_CHECKING = False  # typing's own takes as long to import as all the rest
if TYPE_CHECKING:
    from typing import Any

    from heapwright.api import *

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
    "admit",
    "attack",
    "births_and_deaths",
    "check",
    "compare_studies",
    "convert_log",
    "copies",
    "copy_kinds",
    "cut",
    "default_energy_table",
    "diff",
    "endure",
    "explore",
    "export_trace",
    "extend_study",
    "families",
    "figure",
    "find_heap",
    "find_worst",
    "fit",
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
    "measure",
    "merge",
    "merge_studies",
    "open_study",
    "pareto",
    "picks_by_load",
    "platforms",
    "pools",
    "profile",
    "prove",
    "pull_request",
    "read_recipe",
    "read_trace",
    "record",
    "replay",
    "report",
    "reproduce",
    "resample",
    "sample_events",
    "scale",
    "schema",
    "size_table",
    "special_pools",
    "suggest",
    "sweep",
    "synthesise",
    "taught",
    "timing",
    "trace_facts",
    "workload",
    "worst_steps",
    "write_checked",
    "writing",
    "zoo",
]


_ROOMS = ("explore", "generate", "measure", "platforms", "replay", "report")
"""The functions of which a room bears the name; see `heapwright.files.rooms`."""


def _function(name: str) -> Any:
    import importlib

    return getattr(importlib.import_module("heapwright.api"), name)


answer_with(_function)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _ROOMS:
        import importlib

        return importlib.import_module(f"heapwright.{name}")
    return _function(name)


def __dir__() -> list[str]:
    return __all__

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

    from heapwright.api import (
        PacketTable,
        Recipe,
        Trace,
        admit,
        attack,
        check,
        convert_log,
        copies,
        cut,
        diff,
        endure,
        explore,
        export_trace,
        extend_study,
        find_worst,
        fit,
        generate,
        hooks,
        import_log,
        import_packets,
        import_recording,
        load_peaks,
        measure,
        merge,
        merge_studies,
        open_study,
        picks_by_load,
        platforms,
        profile,
        prove,
        read_recipe,
        read_trace,
        record,
        replay,
        report,
        reproduce,
        scale,
        sweep,
        trace_facts,
        workload,
        write_checked,
        zoo,
    )

__all__ = [
    "HeapwrightError",
    "PacketTable",
    "Recipe",
    "Trace",
    "__version__",
    "admit",
    "attack",
    "check",
    "convert_log",
    "copies",
    "cut",
    "diff",
    "endure",
    "explore",
    "export_trace",
    "extend_study",
    "find_worst",
    "fit",
    "generate",
    "hooks",
    "import_log",
    "import_packets",
    "import_recording",
    "load_peaks",
    "measure",
    "merge",
    "merge_studies",
    "open_study",
    "picks_by_load",
    "platforms",
    "profile",
    "prove",
    "read_recipe",
    "read_trace",
    "record",
    "replay",
    "report",
    "reproduce",
    "scale",
    "sweep",
    "trace_facts",
    "workload",
    "write_checked",
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

"""Heapwright tailors heaps: trace x recipe -> metrics, then C for the firmware.

    import heapwright as hw

    study = hw.explore("app.parquet", "app.duckdb")
    hw.generate(study.pick("balanced"), "heap/")

Names are loaded when they are first used; docs/api.md is the reference.
"""

from __future__ import annotations

import sys

from heapwright.errors import HeapwrightError
from heapwright.files.version import __version__

TYPE_CHECKING = False  # typing's own takes as long to import as all the rest
if TYPE_CHECKING:
    from typing import Any

    from heapwright.api import (
        attack,
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
        trace_facts,
        workload,
        zoo,
    )

__all__ = [
    "HeapwrightError",
    "__version__",
    "attack",
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
    "trace_facts",
    "workload",
    "zoo",
]


class _Face(type(sys)):  # type: ignore[misc]
    """This package, whose names are functions even where a folder bears the same one: `heapwright.replay`.

    Importing a folder would put the module in the function's place; the folder's own modules are reached all the same,
    as in `from heapwright.replay.metrics import METRICS`.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, type(sys))):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from heapwright import api

        return getattr(api, name)

    def __dir__(self) -> list[str]:
        return __all__


sys.modules[__name__].__class__ = _Face

"""The Python API: what every command does, in one call each; `heapwright` hands these names on.

A trace is a path or a `Trace`, packets a path or a `PacketTable`. A heap is a name as on the command line (a zoo NAME,
RECIPE.toml, STUDY:ID, lib:NAME, ...), a path, a `Recipe`, or a member of a study (`study["ID"]`, `study.pick()`).
What cannot be used raises `HeapwrightError` with one line that says what, where, and what would be valid.

A name is loaded when it is first used, so that a command loads what it needs and no more.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own takes as long to import as all the rest
if TYPE_CHECKING:
    from typing import Any

    from heapwright.api.explorations import (
        Study,
        Suggestion,
        compare_studies,
        explore,
        explore_with,
        extend_study,
        merge_studies,
        open_study,
        picks_by_load,
        space_for,
        study_in,
        suggest,
    )
    from heapwright.api.following import Lived, Moment, live
    from heapwright.api.gate import check, described, write_checked
    from heapwright.api.given import AnyHeap, AnyTrace, Member, PathLike, recipe_of
    from heapwright.api.heaps import (
        Fit,
        Replay,
        Worst,
        admit,
        endure,
        find_heap,
        find_worst,
        fit,
        is_heap,
        read_recipe,
        replay,
        schema,
        zoo,
        zoo_text,
    )
    from heapwright.api.shipping import (
        attack,
        generate,
        hooks,
        measure,
        measure_each,
        measure_front,
        platforms,
        prove,
        pull_request,
        report,
        reproduce,
    )
    from heapwright.api.traces import (
        convert_log,
        copies,
        cut,
        diff,
        export_trace,
        import_log,
        import_packets,
        import_recording,
        is_log,
        load_peaks,
        merge,
        profile,
        read_trace,
        record,
        resample,
        scale,
        sweep,
        trace_facts,
        workload,
    )
    from heapwright.assure.proof.prove import Proof as Proof
    from heapwright.decide import pareto
    from heapwright.explore import families, taught
    from heapwright.explore.options import Options
    from heapwright.explore.runner import Progress
    from heapwright.explore.space import Space, WideSpace
    from heapwright.explore.special_pools import SPECIAL_POOLS, special_pools
    from heapwright.files import writing
    from heapwright.generate import generated_files
    from heapwright.heaps.foreign.adapter import WordSize as WordSize
    from heapwright.heaps.foreign.heap import ForeignHeap
    from heapwright.heaps.names import picked_up
    from heapwright.measure.boards.measure import Session
    from heapwright.measure.host import timing
    from heapwright.measure.host.machine import machine
    from heapwright.platforms.catalogue import Platform as Platform
    from heapwright.recipes import pools
    from heapwright.recipes.recipe import CHECKS, Recipe
    from heapwright.recipes.worst_steps import worst_steps
    from heapwright.recipes.zoo.catalogue import RECOMMENDED
    from heapwright.recipes.zoo.facts import facts
    from heapwright.replay.admit import Admission
    from heapwright.replay.energy import default_energy_table
    from heapwright.replay.pictures import HEAP_MAP_STATES, heap_map
    from heapwright.report import figure, labels
    from heapwright.traces import copies as copy_kinds
    from heapwright.traces.profile import births_and_deaths, sample_events, size_table
    from heapwright.traces.trace import Trace
    from heapwright.traces.validation import FREE, MALLOC, REALLOC
    from heapwright.traffic.packets import PacketTable
    from heapwright.traffic.synthetic import synthesise
    from heapwright.traffic.workloads.poisson import held_requests

__all__ = [
    "CHECKS",
    "FREE",
    "HEAP_MAP_STATES",
    "MALLOC",
    "REALLOC",
    "RECOMMENDED",
    "SPECIAL_POOLS",
    "Admission",
    "AnyHeap",
    "AnyTrace",
    "Fit",
    "ForeignHeap",
    "Lived",
    "Member",
    "Moment",
    "Options",
    "PacketTable",
    "PathLike",
    "Progress",
    "Recipe",
    "Replay",
    "Session",
    "Space",
    "Study",
    "Suggestion",
    "Trace",
    "WideSpace",
    "Worst",
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
    "described",
    "diff",
    "endure",
    "explore",
    "explore_with",
    "export_trace",
    "extend_study",
    "facts",
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
    "is_heap",
    "is_log",
    "labels",
    "live",
    "load_peaks",
    "machine",
    "measure",
    "measure_each",
    "measure_front",
    "merge",
    "merge_studies",
    "open_study",
    "pareto",
    "picked_up",
    "picks_by_load",
    "platforms",
    "pools",
    "profile",
    "prove",
    "pull_request",
    "read_recipe",
    "read_trace",
    "recipe_of",
    "record",
    "replay",
    "report",
    "reproduce",
    "resample",
    "sample_events",
    "scale",
    "schema",
    "size_table",
    "space_for",
    "special_pools",
    "study_in",
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
    "zoo_text",
]

_NAMES = {
    "api.explorations": (
        "Study",
        "Suggestion",
        "compare_studies",
        "explore",
        "explore_with",
        "extend_study",
        "merge_studies",
        "open_study",
        "picks_by_load",
        "space_for",
        "study_in",
        "suggest",
    ),
    "api.following": ("Lived", "Moment", "live"),
    "api.gate": ("check", "described", "write_checked"),
    "api.given": ("AnyHeap", "AnyTrace", "Member", "PathLike", "recipe_of"),
    "api.heaps": (
        "Fit",
        "Replay",
        "Worst",
        "admit",
        "endure",
        "find_heap",
        "find_worst",
        "fit",
        "is_heap",
        "read_recipe",
        "replay",
        "schema",
        "zoo",
        "zoo_text",
    ),
    "api.shipping": (
        "attack",
        "generate",
        "hooks",
        "measure",
        "measure_each",
        "measure_front",
        "platforms",
        "prove",
        "pull_request",
        "report",
        "reproduce",
    ),
    "api.traces": (
        "convert_log",
        "copies",
        "cut",
        "diff",
        "export_trace",
        "import_log",
        "import_packets",
        "import_recording",
        "is_log",
        "load_peaks",
        "merge",
        "profile",
        "read_trace",
        "record",
        "resample",
        "scale",
        "sweep",
        "trace_facts",
        "workload",
    ),
    "explore.options": ("Options",),
    "explore.runner": ("Progress",),
    "explore.space": ("Space", "WideSpace"),
    "explore.special_pools": ("SPECIAL_POOLS", "special_pools"),
    "generate": ("generated_files",),
    "heaps.foreign.heap": ("ForeignHeap",),
    "heaps.names": ("picked_up",),
    "measure.boards.measure": ("Session",),
    "measure.host.machine": ("machine",),
    "recipes.recipe": ("CHECKS", "Recipe"),
    "recipes.worst_steps": ("worst_steps",),
    "recipes.zoo.catalogue": ("RECOMMENDED",),
    "recipes.zoo.facts": ("facts",),
    "replay.admit": ("Admission",),
    "replay.energy": ("default_energy_table",),
    "replay.pictures": ("HEAP_MAP_STATES", "heap_map"),
    "traces.profile": ("births_and_deaths", "sample_events", "size_table"),
    "traces.trace": ("Trace",),
    "traces.validation": ("FREE", "MALLOC", "REALLOC"),
    "traffic.packets": ("PacketTable",),
    "traffic.synthetic": ("synthesise",),
    "traffic.workloads.poisson": ("held_requests",),
}
"""The names of each module, which are loaded from there."""

_MODULES = {
    "copy_kinds": "traces.copies",
    "families": "explore.families",
    "figure": "report.figure",
    "labels": "report.labels",
    "pareto": "decide.pareto",
    "pools": "recipes.pools",
    "taught": "explore.taught",
    "timing": "measure.host.timing",
    "writing": "files.writing",
}
"""Names that are modules themselves."""

_HOME = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        found: Any = importlib.import_module(f"heapwright.{_MODULES[name]}")
    elif name in _HOME:
        found = getattr(importlib.import_module(f"heapwright.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__

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

    from heapwright._api.arguments import AnyHeap, AnyTrace, Member, PathLike, recipe_of
    from heapwright._api.diagnosis import diagnose, what_if_offer
    from heapwright._api.explorations import (
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
    from heapwright._api.gate import check, described, write_checked
    from heapwright._api.generation import (
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
    from heapwright._api.heaps import (
        Fit,
        Replay,
        Worst,
        find_heap,
        find_worst,
        fit,
        fit_memories,
        fit_regions,
        is_heap,
        place_in_regions,
        read_recipe,
        region_contents,
        replay,
        schema,
        stress,
        zoo,
        zoo_text,
    )
    from heapwright._api.live_program import FollowedProgram, Moment, live
    from heapwright._api.traces import (
        convert_log,
        copies,
        cut,
        diff,
        export_trace,
        import_log,
        import_packets,
        import_recording,
        is_log,
        is_trace,
        load_peaks,
        map_sizes,
        merge,
        no_pattern_error,
        profile,
        proposed_patterns,
        read_trace,
        record,
        repair_trace,
        resample,
        scale,
        trace_facts,
        with_connections,
        with_failed_life,
        with_static,
        workload,
    )
    from heapwright._assure.proof.prove import Proof as Proof
    from heapwright._explore import default_space, portfolio
    from heapwright._explore.options import Options
    from heapwright._explore.runner import Progress
    from heapwright._explore.space import Space, WideSpace
    from heapwright._explore.special_pools import SPECIAL_POOLS, special_pools
    from heapwright._generate import generated_files
    from heapwright._heaps.foreign.adapter import WordSize as WordSize
    from heapwright._heaps.foreign.heap import ForeignHeap
    from heapwright._heaps.names import picked_up
    from heapwright._heaps.regions import Placement as Placement
    from heapwright._heaps.regions import RegionPick as RegionPick
    from heapwright._heaps.regions import require_regions
    from heapwright._measure.boards.measure import Session
    from heapwright._measure.host import timing
    from heapwright._measure.host.machine import machine
    from heapwright._platforms.catalogue import Platform as Platform
    from heapwright._recipes import pools
    from heapwright._recipes.recipe import CHECKS, Recipe
    from heapwright._recipes.worst_steps import worst_steps
    from heapwright._recipes.zoo.catalogue import RECOMMENDED
    from heapwright._recipes.zoo.facts import facts
    from heapwright._replay.energy import default_energy_table
    from heapwright._replay.pictures import HEAP_MAP_STATES, heap_map
    from heapwright._report import figure, labels
    from heapwright._studies import pareto
    from heapwright._support import writing
    from heapwright._traces import copies as copy_kinds
    from heapwright._traces.profile import births_and_deaths, sample_events, size_table
    from heapwright._traces.trace import Trace
    from heapwright._traces.validation import FREE, MALLOC, REALLOC
    from heapwright._traffic.packets import PacketTable
    from heapwright._traffic.synthetic import synthesise
    from heapwright._traffic.workloads.poisson import held_requests

__all__ = [
    "CHECKS",
    "FREE",
    "HEAP_MAP_STATES",
    "MALLOC",
    "REALLOC",
    "RECOMMENDED",
    "SPECIAL_POOLS",
    "AnyHeap",
    "AnyTrace",
    "Fit",
    "FollowedProgram",
    "ForeignHeap",
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
    "described",
    "diagnose",
    "diff",
    "explore",
    "explore_with",
    "export_trace",
    "extend_study",
    "facts",
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
    "is_heap",
    "is_log",
    "is_trace",
    "labels",
    "live",
    "load_peaks",
    "machine",
    "map_sizes",
    "measure",
    "measure_each",
    "measure_front",
    "merge",
    "merge_studies",
    "no_pattern_error",
    "open_study",
    "pareto",
    "picked_up",
    "picks_by_load",
    "place_in_regions",
    "platforms",
    "pools",
    "portfolio",
    "profile",
    "proposed_patterns",
    "prove",
    "pull_request",
    "read_recipe",
    "read_trace",
    "recipe_of",
    "record",
    "region_contents",
    "repair_trace",
    "replay",
    "report",
    "reproduce",
    "require_regions",
    "resample",
    "sample_events",
    "scale",
    "schema",
    "size_table",
    "space_for",
    "special_pools",
    "stress",
    "study_in",
    "suggest",
    "synthesise",
    "timing",
    "trace_facts",
    "what_if_offer",
    "with_connections",
    "with_failed_life",
    "with_static",
    "workload",
    "worst_steps",
    "write_checked",
    "writing",
    "zoo",
    "zoo_text",
]

_NAMES = {
    "_api.explorations": (
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
    "_api.live_program": ("FollowedProgram", "Moment", "live"),
    "_api.diagnosis": ("diagnose", "what_if_offer"),
    "_api.gate": ("check", "described", "write_checked"),
    "_api.arguments": ("AnyHeap", "AnyTrace", "Member", "PathLike", "recipe_of"),
    "_api.heaps": (
        "Fit",
        "Replay",
        "Worst",
        "find_heap",
        "find_worst",
        "fit",
        "fit_memories",
        "fit_regions",
        "is_heap",
        "place_in_regions",
        "read_recipe",
        "region_contents",
        "replay",
        "schema",
        "stress",
        "zoo",
        "zoo_text",
    ),
    "_api.generation": (
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
    "_api.traces": (
        "convert_log",
        "copies",
        "cut",
        "diff",
        "export_trace",
        "import_log",
        "import_packets",
        "import_recording",
        "is_log",
        "is_trace",
        "load_peaks",
        "map_sizes",
        "merge",
        "no_pattern_error",
        "profile",
        "proposed_patterns",
        "read_trace",
        "record",
        "repair_trace",
        "resample",
        "scale",
        "trace_facts",
        "with_connections",
        "with_failed_life",
        "with_static",
        "workload",
    ),
    "_explore.options": ("Options",),
    "_explore.runner": ("Progress",),
    "_explore.space": ("Space", "WideSpace"),
    "_explore.special_pools": ("SPECIAL_POOLS", "special_pools"),
    "_generate": ("generated_files",),
    "_heaps.foreign.heap": ("ForeignHeap",),
    "_heaps.names": ("picked_up",),
    "_heaps.regions": ("require_regions",),
    "_measure.boards.measure": ("Session",),
    "_measure.host.machine": ("machine",),
    "_recipes.recipe": ("CHECKS", "Recipe"),
    "_recipes.worst_steps": ("worst_steps",),
    "_recipes.zoo.catalogue": ("RECOMMENDED",),
    "_recipes.zoo.facts": ("facts",),
    "_replay.energy": ("default_energy_table",),
    "_replay.pictures": ("HEAP_MAP_STATES", "heap_map"),
    "_traces.profile": ("births_and_deaths", "sample_events", "size_table"),
    "_traces.trace": ("Trace",),
    "_traces.validation": ("FREE", "MALLOC", "REALLOC"),
    "_traffic.packets": ("PacketTable",),
    "_traffic.synthetic": ("synthesise",),
    "_traffic.workloads.poisson": ("held_requests",),
}
"""The names of each module, which are loaded from there."""

_MODULES = {
    "copy_kinds": "_traces.copies",
    "default_space": "_explore.default_space",
    "figure": "_report.figure",
    "labels": "_report.labels",
    "pareto": "_studies.pareto",
    "pools": "_recipes.pools",
    "portfolio": "_explore.portfolio",
    "timing": "_measure.host.timing",
    "writing": "_support.writing",
}
"""Names that are modules themselves."""

_HOME = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        result: Any = importlib.import_module(f"heapwright.{_MODULES[name]}")
    elif name in _HOME:
        result = getattr(importlib.import_module(f"heapwright.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = result
    return result


def __dir__() -> list[str]:
    return __all__

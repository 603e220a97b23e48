"""The Python API: what every command does, in one call each; `heapwright` hands these names on.

A trace is a path or a `Trace`, packets a path or a `PacketTable`. A heap is a name as on the command line (a zoo NAME,
RECIPE.toml, STUDY:ID, lib:NAME, ...), a path, a `Recipe`, or a member of a study (`study["ID"]`, `study.pick()`).
What cannot be used raises `HeapwrightError` with one line that says what, where, and what would be valid.
"""

from __future__ import annotations

from heapwright.api.explorations import (
    Study,
    explore,
    explore_with,
    extend_study,
    merge_studies,
    open_study,
    picks_by_load,
    space_for,
    study_in,
)
from heapwright.api.gate import check, described, write_checked
from heapwright.api.given import AnyHeap, AnyTrace, Member, PathLike
from heapwright.api.heaps import (
    Fit,
    Replay,
    Worst,
    admit,
    endure,
    find_worst,
    fit,
    is_heap,
    read_recipe,
    replay,
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
    scale,
    sweep,
    trace_facts,
    workload,
)
from heapwright.heaps.heaps import picked_up
from heapwright.recipes.recipe import Recipe
from heapwright.recipes.worst_steps import worst_steps
from heapwright.recipes.zoo.catalogue import RECOMMENDED
from heapwright.recipes.zoo.facts import facts
from heapwright.replay.admit import Admission
from heapwright.traces.trace import Trace
from heapwright.traffic.packets import PacketTable

__all__ = [
    "RECOMMENDED",
    "Admission",
    "AnyHeap",
    "AnyTrace",
    "Fit",
    "Member",
    "PacketTable",
    "PathLike",
    "Recipe",
    "Replay",
    "Study",
    "Trace",
    "Worst",
    "admit",
    "attack",
    "check",
    "convert_log",
    "copies",
    "cut",
    "described",
    "diff",
    "endure",
    "explore",
    "explore_with",
    "export_trace",
    "extend_study",
    "facts",
    "find_worst",
    "fit",
    "generate",
    "hooks",
    "import_log",
    "import_packets",
    "import_recording",
    "is_heap",
    "is_log",
    "load_peaks",
    "measure",
    "measure_each",
    "measure_front",
    "merge",
    "merge_studies",
    "open_study",
    "picked_up",
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
    "space_for",
    "study_in",
    "sweep",
    "trace_facts",
    "workload",
    "worst_steps",
    "write_checked",
    "zoo",
    "zoo_text",
]

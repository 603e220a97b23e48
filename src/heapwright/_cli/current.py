"""The heap in use today, where it is no reference allocator: what the traces need on it and on the recommended one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heapwright._cli.output import print_sentences

if TYPE_CHECKING:
    from heapwright._studies.decision import Decision
    from heapwright._traces.trace import Trace


def measure_current(heap: str, traces: Sequence[Trace]) -> dict[str, int | None]:
    """Bytes that each trace needs on a heap in C, by the trace's name. Raises HeapwrightError if it cannot be built."""
    from heapwright import _api as api

    fits = [api.fit(trace, heap) for trace in traces]
    return {fit.trace: fit.smallest_arena_bytes for fit in fits}


def print_current(heap: str, needs: dict[str, int | None], decision: Decision | None) -> None:
    """A sentence for each trace."""
    shown = decision.needs if decision is not None else []
    recommended = {need.trace: need.bytes for need in shown if need.role == "explored"}
    sentences = []
    for name, need in needs.items():
        if need is None:
            sentences.append(f"{heap}, your current allocator, did not complete {name}.")
            continue
        pick = recommended.get(name)
        beside = "" if pick is None else f", the recommended heap {pick:,}"
        sentences.append(f"{heap}, your current allocator, needs {need:,} bytes for {name}{beside}.")
    print_sentences(sentences)


def is_file_of_heap(heap: str) -> bool:
    """Whether a heap is given by a file: C, a shared object, an adapter, or ADAPTER=PATH."""
    return heap.endswith((".c", ".so", ".toml")) or "=" in heap or heap.startswith("lib:")


def own_heap(settings: dict[str, Any]) -> str | None:
    """The current allocator if it is given by a file, taken out of the settings of an exploration.

    A system's name in the settings becomes its heap's name.
    """
    from heapwright._api.sizes import heap_of_system

    current = settings.get("current")
    if current is not None and not is_file_of_heap(current):
        settings["current"] = heap_of_system(current)
    return str(settings.pop("current")) if current is not None and is_file_of_heap(current) else None

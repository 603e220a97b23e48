"""Replays of recipes in several memories: which heap each call goes to, and what each of them does.

The heaps share nothing but the program, so each is measured by a replay of its own, on the calls that it gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.pools import MAX_REQUEST
from heapwright._replay.engine import arena_bytes_of, control_bytes, explain
from heapwright._replay.metrics import METRICS, Value
from heapwright._replay.replay import replay
from heapwright._support.errors import HeapwrightError
from heapwright._traces.calls import pointer
from heapwright._traces.trace import Trace

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe

_SUMS = ("allocated_peak_bytes", "footprint_bytes", "internal_bytes", "external_bytes", "header_bytes", "energy_nJ")
_COLUMNS = {"op": np.uint8, "slot": np.uint32, "size": np.uint32, "align": np.uint32, "call": np.uint64}


@dataclass(frozen=True)
class Routed:
    """Split of a trace's calls among memories.

    Attributes:
        traces: the calls of each memory's heap with any, by its name. A request that failed there is freed at once.
        where: uint32, one a call: the memory of its object after the call, from 1; 0 if it is not live.
        at: uint32: the object's address there, from the memory's first byte.
        found: the native engine's counts over all (`struct hw_metrics *`).
    """

    traces: dict[str, Trace]
    where: NDArray[np.uint32]
    at: NDArray[np.uint32]
    found: Any


def route(trace: Trace, recipe: Recipe) -> Routed:
    """Replay the trace on the heaps of a recipe in several memories. Raises HeapwrightError as `replay` does."""
    parts, sizes = recipe.parts(), dict(recipe.memory)
    calls, room = trace.calls, 2 * len(trace)
    memories = ffi.new("struct hw_memory[]", len(parts))
    columns = [{key: np.empty(max(room, 1), kind) for key, kind in _COLUMNS.items()} for _ in parts]
    kept = []
    for (name, part), memory, own in zip(parts.items(), memories, columns, strict=True):
        struct = policy_struct(part)
        memory.policy, memory.bytes = struct, arena_bytes_of(struct, sizes[name])
        memory.memory = reserved = _reserved(memory.bytes)
        kept.append((struct, reserved))
        memory.least, most = part.offered
        memory.most = most if most < MAX_REQUEST else 0xFFFFFFFF  # the heap itself fails requests that no memory serves
        for key, kind in _COLUMNS.items():
            setattr(memory, key, pointer(f"{np.dtype(kind).name}_t", own[key]))
    result = ffi.new("struct hw_metrics *")
    where, at = np.zeros(max(len(trace), 1), np.uint32), np.zeros(max(len(trace), 1), np.uint32)
    code = lib.hw_route(memories, len(parts), calls.struct, pointer("uint32_t", where), pointer("uint32_t", at), result)
    if code:
        for (name, part), memory in zip(parts.items(), memories, strict=True):
            if code == lib.HW_NO_MEMORY or memory.bytes < memory.policy.fixed_end:
                explain(int(code), part, memory.policy, sizes[name])
    return Routed(
        {
            name: _trace(trace, name, {key: column[: int(memory.count)] for key, column in own.items()})
            for name, memory, own in zip(parts, memories, columns, strict=True)
            if memory.count
        },
        where[: len(trace)],
        at[: len(trace)],
        result,
    )


def _trace(whole: Trace, name: str, own: dict[str, NDArray[Any]]) -> Trace:
    return Trace.from_columns(
        op=own["op"],
        id=own["slot"],
        size=own["size"],
        align=own["align"],
        ts_us=whole.ts_us[own["call"].astype(np.int64)],
        name=f"{whole.name}, {name}",
    )


def _reserved(size: int) -> Any:
    memory = lib.hw_reserve(0, size)
    if memory == ffi.NULL:
        raise HeapwrightError(f"cannot reserve {size:,} bytes of address space; give the recipe less memory")
    return ffi.gc(memory, lambda pointer: lib.hw_unreserve(pointer, 0, size))


def _metrics(trace: Trace | None, part: Recipe, arena: int) -> dict[str, Value]:
    """Every metric of one memory's heap; without calls its footprint is its control data, and all else is 0."""
    if trace is None:
        return {**dict.fromkeys(METRICS, 0), "footprint_bytes": control_bytes(policy_struct(part))}
    return dict(replay(trace, part, arena=arena))


def replay_memories(trace: Trace, recipe: Recipe) -> tuple[dict[str, Value], dict[str, dict[str, Value]]]:
    """Every metric of a recipe in several memories: over all, and of each memory by its name.

    Bytes over all are the sums of the memories', each at its own peak. `accesses_malloc_max` and similar metrics are of
    whole calls, which may have tried several memories. `failed` counts requests that failed in all memories, and for
    one memory also those that another one served.

    Raises HeapwrightError if a memory cannot hold its heap's control data.
    """
    routed, sizes = route(trace, recipe), dict(recipe.memory)
    memories = {
        name: _metrics(routed.traces.get(name), part, sizes[name]) | {"lower_bound_bytes": None}
        for name, part in recipe.parts().items()
    }
    result = routed.found
    whole: dict[str, Value] = dict.fromkeys(METRICS)
    whole |= {key: sum(memory[key] or 0 for memory in memories.values()) for key in _SUMS}
    requested, allocated = int(result.requested_peak), whole["allocated_peak_bytes"] or 0
    headers = whole["header_bytes"] or 0
    control = sum(control_bytes(policy_struct(part)) for part in recipe.parts().values())
    arenas = sum(sizes.values())
    return whole | {
        "requested_peak_bytes": requested,
        "fragmentation": allocated / requested - 1 if requested else None,
        "fragmentation_with_headers": (allocated + headers) / requested - 1 if requested else None,
        "accesses": int(result.reads + result.writes),
        "reads": int(result.reads),
        "writes": int(result.writes),
        "accesses_malloc_max": int(result.malloc_max),
        "accesses_malloc_p999": int(result.malloc_p999),
        "accesses_realloc_max": int(result.realloc_max),
        "accesses_free_max": int(result.free_max),
        "accesses_free_p999": int(result.free_p999),
        "moved_bytes": int(result.moved),
        "failed": int(result.failed),
        "admitted_fraction": result.admitted_bytes / result.requested_bytes if result.requested_bytes else None,
        "utilisation": result.mean_requested / arenas,
        "pool_utilisation": result.mean_requested / (arenas - control - headers),
        "lower_bound_bytes": trace.lower_bound(recipe.align),
    }, memories

"""What is measured on the target as metrics of a study: objectives of an exploration."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any

from heapwright._measure.boards.compilers import LEVELS, find_compiler
from heapwright._measure.boards.cpus import cpu
from heapwright._measure.boards.image import BoardHeap, Workshop
from heapwright._measure.boards.measure import DEFAULT_CPU, Session

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._replay.metrics import Value
    from heapwright._traces.trace import Trace

_sizes: dict[str, int] = {}
_sizes_lock = threading.Lock()


def metrics_of(measured: Mapping[str, Any]) -> dict[str, Value]:
    """The metrics of a study from what `measure` returned; None where the trace has no such call."""
    calls = measured["calls"]
    results: dict[str, Value] = {
        f"instructions_{kind}_max": calls[kind]["instructions_max"] if kind in calls else None
        for kind in ("malloc", "calloc", "realloc", "free")
    }
    malloc, free = (calls[kind]["instructions_mean"] for kind in ("malloc", "free"))
    both = malloc is not None and free is not None
    means = {"malloc": malloc, "free": free, "pair": malloc + free if both else None}
    results |= {f"instructions_{kind}_mean": mean for kind, mean in means.items()}
    return results | {"code_bytes": measured["code_bytes"]["total"]}


def target_metrics(trace: Trace, recipe: Recipe, keys: Set[str]) -> dict[str, Value]:
    """These target metrics of a recipe on a trace, on a Cortex-M3; errors as for `measure`.

    Code bytes alone take a compile, and none where a recipe with the same code was compiled before.
    """
    if keys == {"code_bytes"}:
        return {"code_bytes": code_bytes(recipe)}
    return metrics_of(Session().measure(recipe, [trace], LEVELS[:1])[0])


def code_bytes(recipe: Recipe, cpu_name: str = DEFAULT_CPU, compiler: str | None = None) -> int:
    """Bytes of code and constants of malloc, free and realloc at -Os, with what they call."""
    from heapwright._generate import generated_files

    result = find_compiler(cpu(cpu_name), compiler)
    files = generated_files(recipe, "target")
    code = re.sub(r"/\*.*?\*/", "", files["target_heap.c"], flags=re.DOTALL)
    key = hashlib.sha256(f"{result.version} {cpu_name} {code}".encode()).hexdigest()
    if key not in _sizes:
        with Workshop(BoardHeap.of_recipe(recipe), result, files) as workshop:
            size = workshop.total_bytes()
        with _sizes_lock:
            _sizes[key] = size
    return _sizes[key]

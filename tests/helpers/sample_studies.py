"""Studies with made-up metrics: two traces, eight recipes, and results for them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from heapwright._recipes.pools import General
from heapwright._recipes.recipe import Recipe
from heapwright._replay.energy import EnergyTable, default_energy_table
from heapwright._replay.metrics import LONG_RUN_METRICS, METRICS, SHIPPING_METRICS, Value
from heapwright._studies.analysis import Analysis
from heapwright._studies.records import Identity, Result
from heapwright._traces.trace import Trace

OBJECTIVES = ("footprint_bytes", "accesses")


def trace(name: str, size: int = 24) -> Trace:
    return Trace.from_columns(op=[0, 0, 3], id=[1, 2, 1], size=[size, 16, 0], name=name)


TRACES = (trace("busy"), trace("idle", 100))


def recipe(number: int) -> Recipe:
    return Recipe.unchecked((General(coalesce_from=64 * number),))


RECIPES = sorted((recipe(number) for number in range(1, 9)), key=lambda item: item.hash)


IDS = [item.hash for item in RECIPES]


def metrics(footprint: float, accesses: float, **others: float | None) -> dict[str, Value]:
    values: dict[str, Value] = {key: 0 if metric.integer else 0.5 for key, metric in METRICS.items()}
    values |= dict.fromkeys([*SHIPPING_METRICS, *LONG_RUN_METRICS])
    return {**values, "footprint_bytes": footprint, "accesses": accesses, "ns_per_event": None, **others}


def in_the_long_run(
    memory: float | None, accesses: float = 10.0, malloc: int = 90, free: int = 60, **others: float | None
) -> dict[str, Value]:
    """The metrics of a future: ``memory`` is None for a need without bound."""
    grown = 1.5 if memory is None else 1.01
    worst: dict[str, Value] = {"long_run_malloc_max": malloc, "long_run_free_max": free}
    return {
        "long_run_bytes": memory,
        "long_run_accesses": accesses,
        "long_run_growth": grown,
        "long_run_calls": 500_000,
        **worst,
        **others,
    }


def result(
    number: int, measured: dict[str, Value], where: str = "busy", zoo_name: str | None = None, ranked: bool = True
) -> Result:
    return Result(IDS[number], RECIPES[number], zoo_name, where, measured, ranked)


def identity(
    traces: Sequence[Trace] = TRACES[:1],
    objectives: Sequence[str] = OBJECTIVES,
    ids: Sequence[str] = IDS,
    table: EnergyTable | None = None,
    align: int = 8,
) -> Identity:
    space = sha256("".join(ids).encode()).hexdigest()
    return Identity.of(traces, objectives, space, len(ids), table or default_energy_table(), align)


def write_five(path: Path) -> Path:
    """Five recipes on one trace: 0, 1, 3 on the front, 2 (zoo) dominated by 1, 4 (zoo) refused a request."""
    with Analysis.create_or_resume(path, identity()) as study:
        study.add(
            [
                result(0, metrics(100, 1000)),
                result(1, metrics(200, 400), zoo_name="alpha"),
                result(2, metrics(220, 800), zoo_name="beta"),
                result(3, metrics(1000, 300)),
                result(4, metrics(50, 50, failed=3), zoo_name="gamma"),
            ]
        )
    return path

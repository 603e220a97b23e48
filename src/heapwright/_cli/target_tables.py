"""The table of `heapwright measure`: heaps side by side on one processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from heapwright._cli.output import print_sentences
from heapwright._cli.tables import print_table, short_names

_HEADINGS = (
    "heap",
    "trace",
    "call",
    "calls",
    "mean",
    "p99",
    "p99.9",
    "max",
    "worst call",
    "loads",
    "stores",
    "in arena",
    "stack",
    "cycles, mean",
    "arena bytes",
    "code bytes",
)

_LOCKS = {"scheduler": "the scheduler suspended", "critical": "a critical section"}


def print_measured(result: Sequence[dict[str, Any]]) -> None:
    """Print a section a measurement: instructions of each kind of call, accesses, stack, cycles, bytes."""
    if not result:
        click.echo("nothing was measured")
        return
    first = result[0]
    where = f"{first['cpu']}, {first['compiler']} -{first['level']}, {first['backend']}"
    if first.get("platform"):
        where += f", in {first['platform']} with {_LOCKS[first['lock']]}"
        where += f", as {first['config']} says" if first["config"] else ""
    names = short_names(item["heap"] for item in result)
    sections = [
        [_row(item, names[item["heap"]] if index == 0 else "", kind) for index, kind in enumerate(item["calls"])]
        for item in result
    ]
    print_table(f"Instructions a call on {where}", _HEADINGS, sections, left=_HEADINGS[:3])
    print_sentences(list(dict.fromkeys(item["note"] for item in result if item["note"])))
    print_sentences([_prediction(item) for item in result if item["prediction"] is not None])


def _row(item: dict[str, Any], heap: str, kind: str) -> list[str]:
    """A row of one kind of calls; of the first kind with the heap, its trace, and what is no call's."""
    calls = item["calls"][kind]
    keys = ("count", "instructions_mean", "instructions_p99", "instructions_p999", "instructions_max")
    rest = ("instructions_max_call", "loads_mean", "stores_mean", "arena_accesses_mean", "stack_bytes_max")
    cycles = calls["cycles"] and calls["cycles"]["mean"]
    interval = f"{cycles['minimum']:.1f} to {cycles['maximum']:.1f}" if cycles else "-"
    return [
        heap,
        item["trace"] if heap else "",
        kind,
        *(_number(calls[key]) for key in (*keys, *rest)),
        interval,
        _number(item["footprint_bytes"]) if heap else "",
        _number(item["code_bytes"]["total"]) if heap else "",
    ]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _prediction(item: dict[str, Any]) -> str:
    info = item["prediction"]
    equal = "equals the host's" if info["metadata_equal"] else "DIFFERS from the host's"
    ratio = "not counted" if info["ratio"] is None else f"{info['ratio']:.2f}"
    return (
        f"{item['heap']} on {item['trace']}: metadata ({info['metadata_bytes']:,} bytes) {equal}; "
        f"loads and stores in the arena / counted accesses: {ratio}"
    )

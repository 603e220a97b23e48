"""What a trace may change in a heap, and what it may not: docs/robustness.md has the table.

    .venv/bin/python bench/axes.py

From one design, one choice after the other is made in two ways. By the trace: the value that is best on one recording
of a program. Fixed: the value that is best on average over all other programs. Both are then judged on the program's
second recording; and again with the recordings exchanged. Pairs: bench/pairs and ../shared/data/pairs. First of the
values that last, then of all.

Best is by a price as that of picks: in steps, of which one is 15 % more memory, or twice the accesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray
from recommendations import pairs
from teach import traces

import heapwright as hw

ALIGN: Final = 8
ENDURED, CALLS = ("mosquitto_broker",), 1_000_000
"""Traces on which it is tried which values last, and calls of a loop."""

STEPS = np.log([1.15, 2.0])
"""What counts as one step of memory and of accesses."""

Make = Callable[[hw.default_space.Demand], hw.Recipe]
Floats = NDArray[np.float64]

BASE: dict[str, Any] = {"bins": "exact", "fit": "best", "linear_up_to": 2048, "search_most": 16}
VICTIM: dict[str, Any] = {"victim_up_to": 2000, "close_bins": 1}


def _general(**keys: Any) -> Make:
    def make(demand: hw.default_space.Demand) -> hw.Recipe:
        return hw.Recipe(pools=(hw.pools.General(**keys),), align=ALIGN)

    return make


def _listed(front: Callable[[Sequence[int]], dict[str, Any]], **empties: Any) -> Make:
    """Lists before the base; of no frequent size there is none."""

    def make(demand: hw.default_space.Demand) -> hw.Recipe:
        frequent = hw.default_space.Levels(demand, ALIGN).frequent
        quick = hw.pools.Quick(**front(frequent), **empties)
        return hw.Recipe(pools=(quick, hw.pools.General(**BASE, **VICTIM)), align=ALIGN)

    return make


def _most(count: int) -> Callable[[Sequence[int]], dict[str, Any]]:
    return lambda frequent: {"sizes": tuple(frequent[:count])}


def _up_to(size: int) -> Callable[[Sequence[int]], dict[str, Any]]:
    return lambda frequent: {"up_to": size}


GROWING: dict[str, Any] = {"flush": "before-growing"}
FEW: dict[str, Any] = {"limit_blocks": 4}

AXES: Mapping[str, Mapping[str, Make]] = {
    "merging": {
        "at once": _general(**BASE, **VICTIM),
        "forward": _general(**BASE, coalesce="forward"),
        "deferred": _general(**BASE, coalesce="deferred"),
        "from 64 B": _general(**BASE, coalesce_from=64),
        "from 256 B": _general(**BASE, coalesce_from=256),
        "never": _general(**BASE, coalesce="never"),
    },
    "search": {
        "exact bins": _general(**BASE),
        "exact to 512": _general(**BASE | {"linear_up_to": 512}),
        "Lea's bins": _general(bins="lea", fit="best", search_most=16),
        "good fit": _general(bins="two-level", linear_up_to=1024, bins_per_octave=16),
        "TLSF's": _general(bins="two-level"),
        "half-fit": _general(bins="half-fit"),
        "tree": _general(free_list="tree", fit="best"),
        "list, first fit": _general(fit="first"),
        "list, best fit": _general(fit="best"),
    },
    "split": {
        "always": _general(**BASE, **VICTIM),
        "from 32 B": _general(**BASE, split=32),
        "from 64 B": _general(**BASE, split=64),
        "from 256 B": _general(**BASE, split=256),
        "never": _general(**BASE, split="never"),
    },
    "last remainder up to": {
        "none": _general(**BASE),
        **{str(size): _general(**BASE, victim_up_to=size, close_bins=1) for size in (64, 256, 512, 1000, 2000, 4096)},
    },
    "close bins": {str(bins): _general(**BASE, victim_up_to=2000, close_bins=bins) for bins in (0, 1, 4, 8, 16, 30)},
    "unit of blocks": {str(unit): _general(**BASE, **VICTIM, unit=unit) for unit in (8, 16, 32)},
    "header": {str(header): _general(**BASE, **VICTIM, header=header) for header in (4, 8)},
    "lists of how many sizes": {
        "none": _general(**BASE, **VICTIM),
        **{f"{count} most frequent": _listed(_most(count), **GROWING) for count in (1, 2, 3, 6, 9)},
    },
    "lists up to": {
        "none": _general(**BASE, **VICTIM),
        **{str(size): _listed(_up_to(size), **GROWING) for size in (32, 64, 128, 256, 512, 1024)},
    },
    "lists are emptied": {
        "before refusing": _listed(_up_to(128)),
        "before growing": _listed(_up_to(128), **GROWING),
        "at 4 blocks": _listed(_up_to(128), limit_blocks=4),
        "at 16 blocks": _listed(_up_to(128), limit_blocks=16),
    },
    "lists of few blocks": {
        "none": _general(**BASE, **VICTIM),
        **{f"{count} most frequent": _listed(_most(count), **FEW) for count in (1, 3, 6, 9)},
        **{f"up to {size}": _listed(_up_to(size), **FEW) for size in (32, 128, 512)},
    },
}
"""The values of each choice, by their names."""


def measured(axis: Mapping[str, Make], tuned: hw.Trace, test: hw.Trace) -> Floats:
    """Logarithms of memory and accesses, float64[values, 2 traces, 2], of recipes made for the first."""
    demand, result = hw.default_space.Demand.of([tuned]), np.full((len(axis), 2, 2), np.inf)
    for at, make in enumerate(axis.values()):
        recipe = make(demand)
        for to, trace in enumerate((tuned, test)):
            metrics = hw.replay(trace, recipe).metrics
            if not metrics["failed"]:
                result[at, to] = np.log([float(metrics[key] or 0) for key in ("footprint_bytes", "accesses")])
    return result


def lasting(axis: Mapping[str, Make], read: Sequence[hw.Trace]) -> list[bool]:
    """Which values last on each of some traces, made for it."""

    def is_stable(make: Make) -> bool:
        made = ((trace, make(hw.default_space.Demand.of([trace]))) for trace in read)
        return all(hw.stress(trace, recipe, calls=CALLS)[0].stable for trace, recipe in made)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(is_stable, axis.values()))


class Judged(NamedTuple):
    """What values chosen by the trace gain over a fixed one on the second recording, by program.

    ``gains``: in steps; ``ratios``: logarithms of memory and accesses over those of the fixed value, float64[programs,
    2]; ``fixed``: that value's index, of the program that has no part in it.
    """

    gains: Floats
    ratios: Floats
    fixed: list[int]


def judged(result: Floats) -> Judged:
    """Judge a choice by what was measured, float64[programs, 2 ways, values, 2 traces, 2]."""
    price = (result / STEPS).sum(axis=-1)
    gains, ratios, fixed, ways = [], [], [], np.arange(2)
    for program in range(len(result)):
        others = np.delete(price, program, axis=0)[..., 0]
        usual = int(np.argmin((others - others.min(axis=2, keepdims=True)).mean(axis=(0, 1))))
        chosen = np.argmin(price[program, :, :, 0], axis=1)
        test = price[program, :, :, 1]
        gains.append((test[:, usual] - test[ways, chosen]).mean())
        ratios.append((result[program, ways, chosen, 1] - result[program, :, usual, 1]).mean(axis=0))
        fixed.append(usual)
    return Judged(np.array(gains), np.array(ratios), fixed)


def cells(result: Judged) -> str:
    """Memory and accesses over the fixed value's, and the gain with twice its standard error."""
    mean, most = np.exp(result.ratios.mean(axis=0)), np.exp(result.ratios.max(axis=0))
    error = 2 * result.gains.std(ddof=1) / np.sqrt(len(result.gains))
    costs = " | ".join(f"{item:.3f} ({worst:.2f})" for item, worst in zip(mean, most, strict=True))
    return f"{costs} | {result.gains.mean():+.2f} +- {error:.2f}"


def rows(only: str) -> Iterator[str]:
    """The table's rows."""
    both = [*pairs(False).values(), *pairs(True).values()]
    read = [(hw.read_trace(first), hw.read_trace(second)) for first, second in both]
    endured = [hw.read_trace(traces()[name][1]) for name in ENDURED]
    for name, axis in AXES.items():
        if only not in name:
            continue
        with ThreadPoolExecutor(2) as pool:
            result = np.stack(list(pool.map(partial(both_ways, axis), read)))
        stable = np.array(lasting(axis, endured))
        kept = [label for label, item in zip(axis, stable, strict=True) if item]
        rotting = ", ".join(label for label in axis if label not in kept) or "-"
        usual, of_kept = "-", " | ".join("-" * 3)
        if kept:
            held = judged(result[:, :, stable])
            usual, of_kept = kept[max(set(held.fixed), key=held.fixed.count)], cells(held)
        yield f"| {name} | {rotting} | {usual} | {of_kept} | {cells(judged(result))} |"


def both_ways(axis: Mapping[str, Make], both: tuple[hw.Trace, hw.Trace]) -> Floats:
    """What is measured with the first to choose by, and with the second."""
    return np.stack([measured(axis, *both), measured(axis, *both[::-1])])


@click.command()
@click.option("--only", default="", help="Choices whose name holds this.")
def main(only: str) -> None:
    """Print, for each choice, what the trace's value needs on another recording compared with the fixed one."""
    click.echo("| choice | not stable | fixed | memory | accesses | gain | of all: memory | accesses | gain |")
    click.echo("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows(only):
        click.echo(row)


if __name__ == "__main__":
    main()

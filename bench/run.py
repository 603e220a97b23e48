"""Speed and size side by side: generated heaps, the best allocators there are, and the core with its policy read at run
time, on the same traces in the same minutes. `make bench` runs it; bench/README.md says how to read what it prints.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from code_size import malloc_and_free_bytes
from contenders import FOLDED_AND_RUN_TIME, Contender, Pick, empty, explored_pick, generated, peers, recipes
from printing import print_results
from results import Measured, aims, ratios

import heapwright as hw
from heapwright.cli.output import print_json
from heapwright.host.machine import processor_name
from heapwright.host.timing import Bench
from heapwright.traces.trace import Trace
from heapwright.traces.validation import FREE, MALLOC, REALLOC

ROOT = Path(__file__).resolve().parent.parent
PICKED_ON = ROOT / "examples" / "mosquitto_broker.parquet"
EXAMPLES = (PICKED_ON, ROOT / "examples" / "lighttpd_server.parquet")
DEFAULT_TRACES = ROOT.parent / "shared" / "data"

MOST_CALLS = 300_000
"""Longer traces are cut here, so that one trace does not take most of the time."""

COLUMNS = ("ts_us", "tid", "op", "id", "size", "align")

TARGET_TRACES = "m3_"
"""Begins the names of traces that were made for measuring on a target, not for host time."""


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds over all heaps, passes of a heap in a round, recipes explored (None: all).

    Short traces get more passes, so that a heap makes at least `calls` calls in a round.
    """

    rounds: int
    passes: int
    calls: int
    explored: int | None

    def passes_on(self, trace: Trace) -> int:
        return max(self.passes, self.calls // len(trace))


FULL = Effort(rounds=5, passes=3, calls=100_000, explored=None)
QUICK = Effort(rounds=2, passes=1, calls=1, explored=100)


# ---- traces --------------------------------------------------------------------------------------------------------


def read_traces(folder: Path | None) -> list[tuple[str, Trace]]:
    """(set, trace): the shipped examples, then the Parquet files in a folder and its subfolders heap and synthetic."""
    found = [("real", cut(Trace.read(path))) for path in EXAMPLES]
    if folder is None:
        return found
    for name, paths in (("synthetic", folder / "synthetic"), ("real", folder), ("real", folder / "heap")):
        found += [(name, cut(Trace.read(path))) for path in trace_files(paths)]
    return found


def trace_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.parquet")) if not path.name.startswith(TARGET_TRACES)]


def cut(trace: Trace) -> Trace:
    """The first calls of a trace."""
    if len(trace) <= MOST_CALLS:
        return trace
    columns = {key: getattr(trace, key)[:MOST_CALLS] for key in COLUMNS}
    return Trace.from_columns(**columns, name=trace.name)


def without_realloc(trace: Trace) -> Trace:
    """The same with each realloc as a free and a malloc: not every allocator has one, and no two move as often."""
    twice = trace.op == REALLOC
    row = np.repeat(np.arange(len(trace)), np.where(twice, 2, 1))
    second = np.diff(row, prepend=-1) == 0
    columns = {key: getattr(trace, key)[row] for key in COLUMNS}
    columns["op"] = np.where(twice[row], np.where(second, MALLOC, FREE), columns["op"]).astype(trace.op.dtype)
    return Trace.from_columns(**columns, name=trace.name)


# ---- measuring -----------------------------------------------------------------------------------------------------


def measure(bench: Bench, name: str, trace: Trace, others: Sequence[Contender], pick: Pick, effort: Effort) -> Measured:
    """Smallest arenas and times of all heaps on one trace."""
    named, timed = dict(recipes(trace, pick)), without_realloc(trace)
    heaps = [*others, *(generated(name, recipe, bench.folder) for name, recipe in named.items())]
    built = {one.name: one.programs(bench, timed) for one in heaps}
    served = {name: programs for name, programs in built.items() if programs}
    rounds, passes = effort.rounds, effort.passes_on(timed)
    policies = {name: (bench.generated(named[name]), bench.with_policy(named[name])) for name in FOLDED_AND_RUN_TIME}
    return Measured(
        trace=trace.name,
        set=name,
        events=len(trace),
        peak_live_bytes=trace.peak_live_bytes,
        arena_bytes={one.name: one.smallest_arena(trace) for one in heaps if one.recipe or one.compact},
        ns=bench.measure({name: programs[0] for name, programs in served.items()}, timed, rounds, passes),
        ns_written=bench.measure({name: programs[1] for name, programs in served.items()}, timed, rounds, passes),
        ns_folded=bench.measure({name: programs[0] for name, programs in policies.items()}, timed, rounds, passes),
        ns_run_time=bench.measure({name: programs[1] for name, programs in policies.items()}, timed, rounds, passes),
    )


def machine(bench: Bench) -> dict[str, str | int]:
    """What the numbers depend on."""
    version = subprocess.run([bench.compiler, "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "processor": processor_name(),
        "processors": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}, {' '.join(platform.libc_ver())}",
        "compiler": f"{version.splitlines()[0]}, {' '.join(bench.flags)}",
    }


# ---- the run -------------------------------------------------------------------------------------------------------


def about(bench: Bench, effort: Effort, pick: Pick, missing: list[str]) -> dict[str, Any]:
    """Machine, effort, pick and exploration: what stands beside the numbers."""
    return {
        "machine": machine(bench),
        "rounds": effort.rounds,
        "passes": effort.passes,
        "missing": missing,
        "pick": {"id": pick.id, "trace": pick.trace, "recipe": pick.recipe.summary()},
        "exploration": {
            "trace": pick.trace,
            "recipes": pick.recipes,
            "seconds": round(pick.seconds, 3),
            "recipes_per_second": round(pick.recipes / pick.seconds, 1),
        },
    }


@click.command()
@click.option("--quick", is_flag=True, help="A smoke test: one shipped trace, few repeats, a small exploration.")
@click.option(
    "--traces",
    "folder",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Also the traces in DIR, DIR/heap and DIR/synthetic; default is ../shared/data, where that exists.",
)
@click.option(
    "--heap",
    "others",
    metavar="ADAPTER=PATH",
    multiple=True,
    help="Another allocator whose sources you have, as tlsf=FOLDER. Repeat the flag for more.",
)
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON on stdout.")
def main(quick: bool, folder: Path | None, others: tuple[str, ...], as_json: bool) -> None:
    """Measure generated heaps beside other allocators and print times, smallest arenas, ratios and aims."""
    effort = QUICK if quick else FULL
    if folder is None and not quick and DEFAULT_TRACES.is_dir():
        folder = DEFAULT_TRACES
    traces = [("real", cut(Trace.read(PICKED_ON)))] if quick and folder is None else read_traces(folder)
    heaps, missing = peers(others)
    pick = explored_pick(Trace.read(PICKED_ON), effort.explored)
    with Bench() as bench:
        heaps.append(empty(bench.folder))
        told = about(bench, effort, pick, missing)
        measured = []
        for name, trace in traces:
            click.echo(f"measuring on {trace.name}", err=True)
            measured.append(measure(bench, name, trace, heaps, pick, effort))
    found = aims(measured, malloc_and_free_bytes(hw.zoo("drr-proposed")))
    if as_json:
        every = {"traces": [asdict(one) for one in measured], "ratios": ratios(measured)}
        print_json(told | every | {"aims": [asdict(one) for one in found]})
        return
    print_results(told, measured, found)


if __name__ == "__main__":
    try:
        main()
    except hw.HeapwrightError as error:
        sys.exit(f"bench: {error}")

"""Speed and size side by side: generated heaps, the best allocators there are, and the core with its policy read at run
time, on the same traces in the same minutes. `make bench` runs it; bench/README.md says how to read what it prints.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from code_size import malloc_and_free_bytes
from contenders import FOLDED_AND_RUN_TIME, Contender, Pick, empty, explored_pick, generated, peers, recipes
from measuring import FULL, QUICK, Effort, arenas, times
from printing import print_results
from results import Measured, aims, ratios
from tables import print_json
from threads import THREADED_CALLS, threaded_programs
from traces import DEFAULT_TRACES, PICKED_ON, cut, read_traces, without_realloc

import heapwright as hw
from heapwright import Trace

# ---- measuring -----------------------------------------------------------------------------------------------------


class Measurement:
    """The heaps, compiled once, and what is measured with them on one trace after the other."""

    def __init__(self, bench: hw.timing.Bench, others: Sequence[Contender], pick: Pick, effort: Effort) -> None:
        self.bench = bench
        self.others = [*others, empty(bench.folder)]
        self.pick = pick
        self.effort = effort
        self.threaded = threaded_programs(bench)

    def recipes(self, trace: Trace) -> list[Contender]:
        """The recipes that are measured on a trace."""
        return [generated(name, recipe, self.bench.folder) for name, recipe in recipes(trace, self.pick)]

    def arenas(self, traces: Sequence[Trace]) -> list[dict[str, int | None]]:
        """The smallest arenas of all heaps that have one, by name, trace by trace."""
        jobs = [(other, list(traces)) for other in self.others if other.compact]
        by_trace = [self.recipes(trace) for trace in traces]
        jobs += [(item, [trace]) for trace, heaps in zip(traces, by_trace, strict=True) for item in heaps]
        results: list[dict[str, int | None]] = [{} for _ in traces]
        for (heap, on), sizes in zip(jobs, arenas(jobs), strict=True):
            for trace, size in zip(on, sizes, strict=True):
                results[traces.index(trace)][heap.name] = size
        return results

    def measure(self, name: str, trace: Trace, arena_bytes: dict[str, int | None]) -> Measured:
        """Times of all heaps on one trace."""
        bench, effort, timed = self.bench, self.effort, without_realloc(trace)
        heaps = [*self.others, *self.recipes(trace)]  # their programs go when they go
        built = {heap.name: heap.programs(bench, timed) for heap in heaps}
        served = {name: programs for name, programs in built.items() if programs}
        named = dict(recipes(trace, self.pick)) if len(trace) <= effort.folded_up_to else {}
        both = {name: named[name] for name in FOLDED_AND_RUN_TIME if named}
        folded = {name: bench.generated(recipe) for name, recipe in both.items()}
        run_time = {name: bench.with_policy(recipe) for name, recipe in both.items()}
        return Measured(
            trace=trace.name,
            set=name,
            events=len(trace),
            peak_live_bytes=trace.peak_live_bytes,
            arena_bytes=arena_bytes,
            ns=times(bench, {name: programs[0] for name, programs in served.items()}, timed, effort),
            ns_written=times(bench, {name: programs[1] for name, programs in served.items()}, timed, effort),
            ns_folded=times(bench, folded, timed, effort),
            ns_run_time=times(bench, run_time, timed, effort),
            ns_threads=times(bench, self.threaded, cut(timed, THREADED_CALLS), effort),
        )


def machine(bench: hw.timing.Bench) -> dict[str, str | int]:
    """What the numbers depend on."""
    version = subprocess.run([bench.compiler, "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "processor": hw.machine().rsplit(", ", 2)[0],
        "processors": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}, {' '.join(platform.libc_ver())}",
        "compiler": f"{version.splitlines()[0]}, {' '.join(bench.flags)}",
    }


# ---- the run -------------------------------------------------------------------------------------------------------


def about(bench: hw.timing.Bench, effort: Effort, pick: Pick, missing: list[str]) -> dict[str, Any]:
    """Machine, effort, pick and exploration: what stands next to the numbers."""
    return {
        "machine": machine(bench),
        "date": datetime.date.today().isoformat(),
        "rounds": effort.rounds,
        "milliseconds": effort.milliseconds,
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
    """Measure generated heaps and other allocators and print times, smallest arenas, ratios and aims."""
    effort = QUICK if quick else FULL
    if folder is None and not quick and DEFAULT_TRACES.is_dir():
        folder = DEFAULT_TRACES
    picked_on = cut(Trace.read(PICKED_ON), effort.calls)
    traces = [("real", picked_on)] if quick and folder is None else read_traces(folder)
    heaps, missing = peers(others, quick=quick)
    pick = explored_pick(picked_on, effort.explored)
    with hw.timing.Bench() as bench:
        measurement = Measurement(bench, heaps, pick, effort)
        info = about(bench, effort, pick, missing)
        click.echo(f"looking for smallest arenas on {len(traces)} traces", err=True)
        sizes = measurement.arenas([trace for _, trace in traces])
        measured = []
        for (name, trace), arena_bytes in zip(traces, sizes, strict=True):
            click.echo(f"measuring on {trace.name}", err=True)
            measured.append(measurement.measure(name, trace, arena_bytes))
    result = aims(measured, malloc_and_free_bytes(hw.zoo("drr-proposed")))
    if as_json:
        every = {"traces": [asdict(item) for item in measured], "ratios": ratios(measured)}
        print_json(info | every | {"aims": [asdict(item) for item in result]})
        return
    print_results(info, measured, result)


if __name__ == "__main__":
    try:
        main()
    except hw.HeapwrightError as error:
        sys.exit(f"bench: {error}")

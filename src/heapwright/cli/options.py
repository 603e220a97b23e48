"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from heapwright.foreign.adapter import WordSize
    from heapwright.heaps import Heap
    from heapwright.replay.energy import EnergyTable
    from heapwright.traces.trace import Trace


def _no_heaps(ctx: click.Context, _: click.Parameter, paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Tell a heap that lacks its flag from a trace that is missing."""
    from heapwright.heaps import is_heap

    for path in paths:
        if path.suffix != ".parquet" and is_heap(str(path)):
            raise click.UsageError(f"{path} is a heap and stands where a trace belongs; give every heap its own --heap")
    return paths


traces_argument = click.argument("traces", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
replayed_argument = click.argument(
    "traces", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path), callback=_no_heaps
)
repair_option = click.option(
    "--repair", is_flag=True, help="Drop the invalid calls of a trace and say so, rather than refuse it."
)
heap_option = click.option(
    "--heap",
    "heaps",
    metavar="HEAP",
    multiple=True,
    required=True,
    help="A zoo NAME, RECIPE.toml or STUDY:ID, or a foreign heap: lib:NAME, PATH.so, PATH.c, ADAPTER.toml, "
    "ADAPTER=PATH, RECIPE+FOREIGN. Repeat the flag for more.",
)
word_size_option = click.option(
    "--word-size",
    type=click.Choice(["32", "64"]),
    help="Bits of a pointer in foreign heaps built here; default what their adapter says, mostly 32.",
)
objectives_option = click.option("--objectives", metavar="KEY,KEY", help="Metrics to be Pareto-optimal in.")
energy_option = click.option(
    "--energy-table",
    metavar="CSV",
    type=click.Path(path_type=Path),
    help="Energy of an access by SRAM size (size_bytes, read_pJ, write_pJ), in place of the 90 nm table.",
)


def read_heaps(names: Sequence[str], word_size: str | None) -> dict[str, Heap]:
    """Find the heaps of these names, recipes and foreign ones."""
    from heapwright.heaps import resolve

    bits: WordSize | None = None if word_size is None else 32 if word_size == "32" else 64
    return {name: resolve(name, bits) for name in names}


def read_traces(paths: Sequence[Path], repair: bool) -> list[Trace]:
    """Read traces, and say on stderr what was repaired."""
    from heapwright.traces.trace import Trace

    traces = [Trace.read(path, repair=repair) for path in paths]
    for trace in traces:
        for repaired in trace.repairs:
            click.echo(f"{trace.path}: {repaired}", err=True)
    return traces


def read_energy_table(path: Path | None) -> EnergyTable | None:
    """The energy table that was asked for, if one was."""
    from heapwright.replay.energy import EnergyTable

    return None if path is None else EnergyTable.read(path)

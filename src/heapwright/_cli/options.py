"""Arguments and options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from heapwright._cli import completion
from heapwright._cli.output import note
from heapwright._cli.pipes import from_stdin, recipe_from_stdin, to_stdout
from heapwright._cli.renamed import repairs_requested
from heapwright._replay.metrics import METRICS
from heapwright._support.units import number_of

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace


Command = TypeVar("Command", bound=Callable[..., Any])


def _reject_heaps(ctx: click.Context, _: click.Parameter, paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Distinguish a heap without its flag from a missing trace."""
    from heapwright._api import is_heap

    for path in paths:
        if path.suffix != ".parquet" and is_heap(str(path)):
            raise click.UsageError(f"{path} is a heap and stands where a trace belongs; give every heap its own --heap")
    result: tuple[Path, ...] = from_stdin(ctx, _, paths)
    return result


def _note_adapters(ctx: click.Context, _: click.Parameter, heaps: tuple[str, ...]) -> tuple[str, ...]:
    """Note the adapters that are found next to a heap's file."""
    from heapwright._api import picked_up

    for heap in heaps:
        for adapter, place in picked_up(heap):
            note(f"{adapter}: the adapter next to {place} is used")
    result: tuple[str, ...] = recipe_from_stdin(ctx, _, heaps)
    return result


def _word_size(ctx: click.Context, _: click.Parameter, bits: str | None) -> int | None:
    return int(bits) if bits else None


class Numbers(click.ParamType[tuple[float, ...]]):
    """Numbers above 0, each once, separated by commas, or FIRST:LAST:STEP; `valid` ends the error about others."""

    name = "numbers"

    def __init__(self, valid: str) -> None:
        self._valid = valid

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """Read them."""
        if isinstance(value, tuple):
            return value
        try:
            if ":" not in value:
                numbers = tuple(float(part) for part in value.split(","))
            else:
                first, last, step = (float(part) for part in value.split(":"))
                numbers = tuple(float(f"{first + i * step:.6g}") for i in range(int((last - first) / step + 1e-6) + 1))
        except (ValueError, ArithmeticError):
            numbers = ()
        if not numbers or len(set(numbers)) < len(numbers) or not all(0 < number < math.inf for number in numbers):
            self.fail(f"{value!r}: valid: {self._valid}", param, ctx)
        return numbers


class Bytes(click.ParamType[int]):
    """Number of bytes, `least` or more: 131072, 128K, 1.5M."""

    name = "bytes"

    def __init__(self, least: int = 1) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read them."""
        if isinstance(value, int):
            return value
        try:
            result = number_of(value)
        except ValueError:
            result = -1.0
        if result < self._least or result != int(result):
            self.fail(
                f"{value!r}: valid: {self._least:,} byte{'s' * (self._least != 1)} or more, as 131072, 128K or 1.5M",
                param,
                ctx,
            )
        return int(result)


class ByteList(click.ParamType[tuple[int, ...]]):
    """Numbers of bytes, separated by commas: 80K,112K."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Read them."""
        if isinstance(value, tuple):
            return value
        return tuple(Bytes().convert(part, param, ctx) for part in value.split(","))


traces_argument = click.argument(
    "traces", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path), callback=from_stdin
)
heap_argument = click.argument("heap", metavar="HEAP", callback=recipe_from_stdin, shell_complete=completion.heaps)
against_option = click.option(
    "--against",
    metavar="HEAP",
    shell_complete=completion.heaps,
    help="Your current heap: an id or zoo name of the study.",
)


replayed_argument = click.argument(
    "traces",
    metavar="TRACE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    callback=_reject_heaps,
)
recordings_argument = click.argument(
    "traces", metavar="[TRACE...]", nargs=-1, type=click.Path(path_type=Path), callback=_reject_heaps
)
align_option = click.option(
    "--align",
    type=click.Choice(["1", "2", "4", "8", "16"]),
    callback=lambda ctx, option, text: int(text) if text else None,
    help="Alignment of all recipes in bytes; default that of the space, or 8.",
)
explored_for_option = click.option(
    "--platform",
    metavar="NAME",
    shell_complete=completion.platforms,
    help="Try recipes as they are generated for this platform: its alignment, counters and resizing count.",
)
CPUS = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "rv32imac")
cpu_option = click.option(
    "--cpu",
    type=click.Choice(CPUS),
    default="cortex-m3",
    show_default=True,
    help="The processor.",
)
reserved_for_option = click.option(
    "--held-out",
    metavar="TRACE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Another recording that the recommended arena must complete. Repeat the flag for more.",
)
growth_option = click.option(
    "--growth",
    type=click.FloatRange(0, min_open=True),
    metavar="FACTOR",
    default=1.0,
    show_default=True,
    help="Load factor of what depends on the load; permanent objects are not scaled.",
)


live_option = click.option(
    "--live",
    type=Bytes(),
    metavar="BYTES",
    help="Expected peak of live bytes, as 400K: the load is scaled to it.",
)
heap_option = click.option(
    "--heap",
    "heaps",
    metavar="HEAP",
    multiple=True,
    required=True,
    callback=_note_adapters,
    shell_complete=completion.heaps,
    help="A zoo NAME, RECIPE.toml or STUDY:ID, or a foreign heap: lib:NAME, PATH.so, PATH.c, ADAPTER.toml, "
    "ADAPTER=PATH, RECIPE+FOREIGN. Repeat the flag for more.",
)
word_size_option = click.option(
    "--word-size",
    type=click.Choice(["32", "64"]),
    callback=_word_size,
    help="Pointer width of foreign heaps that are built here; default that of their adapter, mostly 32.",
)
arena_option = click.option(
    "--arena",
    type=Bytes(),
    metavar="BYTES",
    help="Size of the arena, as 131072 or 128K; default the maximum heap size.",
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", default=0, show_default=True, help="Seed of the random numbers."
)
moved_option = click.option(
    "--moved",
    "moved",
    metavar="TRACE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="New place of a trace of the study. Repeat the flag for more.",
)
trace_output_option = click.option(
    "-o",
    "--output",
    metavar="TRACE",
    required=True,
    type=click.Path(path_type=Path),
    callback=to_stdout,
    help="The trace to write, a Parquet file; - is stdout.",
)
_WIDTH = 2 + max(map(len, METRICS))
OBJECTIVES = "\b\nObjectives:\n" + "\n".join(
    f"  {metric.key:{_WIDTH}}{metric.meaning}{' (more is better)' if metric.direction == 'max' else ''}"
    for metric in METRICS.values()
)
"""The end of the help of a command with --objectives."""


def objectives_option(default: str) -> Callable[[Command], Command]:
    """--objectives, with what it is if not given; the command's epilog is OBJECTIVES."""
    return click.option(
        "--objectives",
        metavar="KEY,KEY",
        shell_complete=completion.metrics,
        help=f"Metrics to be Pareto-optimal in, as listed below, or arithmetic as accesses / calls; default {default}.",
    )


def read_traces(paths: Sequence[Path]) -> list[Trace]:
    """Read traces, and note their repairs."""
    from heapwright import _api as api

    traces = [api.read_trace(path, repair=repairs_requested()) for path in paths]
    for trace in traces:
        for repaired in trace.repairs:
            note(f"{trace.path}: {repaired}")
    return traces


class Duration(click.ParamType[float]):
    """A time as 90s, 5m or 1h, in seconds."""

    name = "time"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number and its unit."""
        if not isinstance(value, str):
            return value
        try:
            seconds = float(value[:-1]) * {"s": 1, "m": 60, "h": 3600}[value[-1:]]
        except (KeyError, ValueError):
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            self.fail(f"{value!r} is no time; write one as 90s, 5m or 1h", param, ctx)
        return seconds

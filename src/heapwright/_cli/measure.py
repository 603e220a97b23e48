"""`heapwright measure`: instructions, accesses and code bytes on a target processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from heapwright._cli.options import (
    OBJECTIVES,
    arena_option,
    cpu_option,
    heap_argument,
    objectives_option,
    read_traces,
    repair_option,
)
from heapwright._cli.output import json_option, note, note_partial, print_json
from heapwright._cli.pipes import from_stdin

BACKENDS = ("unicorn", "qemu")
LEVELS = ("Os", "O0", "O2", "O3")


@click.command(epilog=OBJECTIVES)
@heap_argument
@click.argument("traces", metavar="[TRACE...]", nargs=-1, type=click.Path(path_type=Path), callback=from_stdin)
@cpu_option
@click.option("--backend", type=click.Choice(BACKENDS), help="The emulator; default is what is installed.")
@click.option("--compiler", type=click.Choice(("gcc", "zig")), help="The cross compiler; default is what is installed.")
@click.option("--level", type=click.Choice(LEVELS), default="Os", show_default=True, help="Optimisation.")
@arena_option
@click.option(
    "--platform",
    metavar="NAME",
    help="The heap in a kernel, called by a task, lock included: freertos, on qemu.",
)
@click.option(
    "--kernel",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The kernel's sources, where tasks.c is; default is what FREERTOS_KERNEL_PATH says.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The application's FreeRTOSConfig.h: its asserts and trace macros then are in what is counted.",
)
@click.option(
    "--lock",
    type=click.Choice(("scheduler", "critical")),
    default="scheduler",
    show_default=True,
    help="Of a call in the kernel: the scheduler suspended, or a critical section.",
)
@click.option(
    "--front",
    is_flag=True,
    help="HEAP is a study: measure its picks, front and zoo, and keep the results in it.",
)
@click.option(
    "--beside", multiple=True, metavar="HEAP", help="With --front: measure this heap too. Repeat the flag for more."
)
@objectives_option("those of the study; with --front")
@repair_option
@json_option
def command(
    heap: str,
    traces: tuple[Path, ...],
    cpu: str,
    backend: str | None,
    compiler: str | None,
    level: str,
    arena: int | None,
    platform: str | None,
    kernel: Path | None,
    config: Path | None,
    lock: str,
    front: bool,
    beside: tuple[str, ...],
    objectives: str | None,
    repair: bool,
    as_json: bool,
) -> None:
    """Replay a trace on a heap on an emulated processor and count instructions and accesses of its calls.

    HEAP is a zoo NAME, a RECIPE.toml, STUDY:ID, lib:newlib-nano, lib:newlib, lib:picolibc, or a C file that defines
    heap_init, heap_malloc and heap_free; with --platform a recipe, or the kernel's own lib:freertos-heap4. With --front
    it is a study, whose own traces are replayed unless others are given.
    """
    if beside and not front:
        raise click.UsageError("--beside goes with --front: without it, give the other heap a command of its own")
    if objectives is not None and not front:
        raise click.UsageError("--objectives goes with --front: one heap has none")
    if platform is None and (kernel is not None or config is not None or lock != "scheduler"):
        raise click.UsageError("--kernel, --config and --lock go with --platform: without it, the heap is alone")
    if platform is not None and front:
        raise click.UsageError("--platform goes without --front: measure one member in the kernel as STUDY:ID")
    if not traces and not front:
        raise click.UsageError("Missing argument 'TRACE...': only --front takes the study's own traces.")
    from heapwright import _api as api
    from heapwright._cli.target_tables import print_measured

    options: dict[str, Any] = {"backend": backend, "compiler": compiler, "level": level, "arena": arena}
    if front:
        study = api.open_study(heap)
        note_partial(study)
        options |= {"objectives": objectives, "repair": repair, "progress": note}
        result = api.measure_front(study, traces, beside=beside, cpu=cpu, **options)
    else:
        options |= {"platform": platform, "kernel": kernel, "config": config, "lock": lock}
        result = api.measure_each(heap, read_traces(traces, repair), cpu=cpu, **options)
    if as_json:
        print_json(result)
    else:
        print_measured(result)

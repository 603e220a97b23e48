"""`heapwright measure`: instructions, accesses and code bytes on a target processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from heapwright._cli.options import (
    arena_option,
    cpu_option,
    heap_argument,
    read_traces,
)
from heapwright._cli.output import json_option, note_partial, print_json
from heapwright._cli.pipes import from_stdin
from heapwright._cli.progress import steps
from heapwright._cli.renamed import repairs_requested

LEVELS = ("Os", "O0", "O2", "O3")


@click.command()
@heap_argument
@click.argument("traces", metavar="[TRACE...]", nargs=-1, type=click.Path(path_type=Path), callback=from_stdin)
@cpu_option
@click.option("--level", type=click.Choice(LEVELS), default="Os", show_default=True, help="Optimisation level.")
@arena_option
@click.option(
    "--platform",
    metavar="NAME",
    help="Measure in this kernel, called by a task, lock included: freertos, on QEMU; sources in FREERTOS_KERNEL_PATH.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The application's FreeRTOSConfig.h: then its asserts and trace macros are counted, too.",
)
@click.option(
    "--lock",
    type=click.Choice(("scheduler", "critical")),
    default="scheduler",
    show_default=True,
    help="Lock around a call in the kernel: scheduler suspended, or a critical section.",
)
@click.option(
    "--beside", multiple=True, metavar="HEAP", help="Of a study: measure this heap, too. Repeat the flag for more."
)
@json_option
def command(
    heap: str,
    traces: tuple[Path, ...],
    cpu: str,
    level: str,
    arena: int | None,
    platform: str | None,
    config: Path | None,
    lock: str,
    beside: tuple[str, ...],
    as_json: bool,
) -> None:
    """Replay a trace on a heap on an emulated processor and count instructions and accesses of its calls.

    HEAP is a zoo NAME, a RECIPE.toml, STUDY:ID, lib:newlib-nano, lib:newlib, lib:picolibc, or a C file that defines
    heap_init, heap_malloc and heap_free; with --platform a recipe, or the kernel's own lib:freertos-heap4. Of a STUDY
    without an ID the picks, the Pareto front and the zoo are measured, and the results are kept in it; its own traces
    are replayed unless others are given.
    """
    from heapwright import _api as api
    from heapwright._cli.target_tables import print_measured

    of_study = not traces or (Path(heap).is_file() and api.study_in(Path(heap)) is not None)
    if not of_study and beside:
        raise click.UsageError("--beside is for a study; give another heap a command of its own")
    if platform is None and (config is not None or lock != "scheduler"):
        raise click.UsageError("--config and --lock need --platform: without it there is no kernel")
    if of_study:
        if platform is not None:
            raise click.UsageError("--platform measures one heap: give one of the study as STUDY:ID")
        result = _measured_study(heap, traces, beside, cpu=cpu, level=level, arena=arena)
    else:
        result = api.measure_each(
            heap,
            read_traces(traces),
            cpu=cpu,
            level=level,
            arena=arena,
            platform=platform,
            config=config,
            lock=lock,
        )
    if as_json:
        print_json(result)
    else:
        print_measured(result)


def _measured_study(
    path: str, traces: tuple[Path, ...], beside: tuple[str, ...], **options: Any
) -> list[dict[str, Any]]:
    from heapwright import _api as api

    if api.study_in(Path(path)) is None:
        raise click.UsageError("Missing argument 'TRACE...': only a study has traces of its own")
    study = api.open_study(path)
    note_partial(study)
    with steps() as report:
        return api.measure_front(
            study,
            traces,
            beside=beside,
            repair=repairs_requested(),
            progress=report,
            **options,
        )

"""`heapwright measure`: instructions, accesses and code bytes on a target processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from heapwright.cli.options import objectives_option, repair_option
from heapwright.cli.output import json_option, note_partial, print_json

_CPUS = ("cortex-m0plus", "cortex-m3", "cortex-m4", "rv32imac")


@click.command()
@click.argument("heap")
@click.argument("traces", metavar="[TRACE...]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--cpu", type=click.Choice(_CPUS), default="cortex-m3", show_default=True, help="The processor.")
@click.option("--backend", type=click.Choice(("unicorn", "qemu")), help="The emulator; default is what is installed.")
@click.option("--compiler", type=click.Choice(("gcc", "zig")), help="The cross compiler; default is what is installed.")
@click.option(
    "--level", type=click.Choice(("Os", "O0", "O2", "O3")), default="Os", show_default=True, help="Optimisation."
)
@click.option("--arena", type=click.IntRange(min=1), metavar="BYTES", help="Size of the arena; default is ample.")
@click.option("--front", is_flag=True, help="HEAP is a study: measure its front and keep the results in it.")
@click.option(
    "--beside", multiple=True, metavar="HEAP", help="With --front: measure this heap too. Repeat the flag for more."
)
@objectives_option
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
    front: bool,
    beside: tuple[str, ...],
    objectives: str | None,
    repair: bool,
    as_json: bool,
) -> None:
    """Replay a trace on a heap on an emulated processor and count instructions and accesses of its calls.

    HEAP is a zoo NAME, a RECIPE.toml, STUDY:ID, lib:newlib-nano, lib:newlib, lib:picolibc, or a C file that defines
    heap_init, heap_malloc and heap_free. With --front it is a study, whose own traces are replayed unless others are
    given.
    """
    options = {"cpu_name": cpu, "backend": backend, "compiler": compiler, "level": level, "arena": arena}
    if beside and not front:
        raise click.UsageError("--beside goes with --front: without it, give the other heap a command of its own")
    if front:
        from heapwright.explore.on_target import measure_front
        from heapwright.explore.study import Study
        from heapwright.heaps import resolve_on_target

        with Study.open(heap) as study:
            note_partial(study)
        found = measure_front(
            heap,
            traces,
            beside=[resolve_on_target(name) for name in beside],
            objectives=objectives,
            repair=repair,
            progress=_say,
            **options,
        )
    else:
        found = _measure(heap, traces, repair, options)
    if as_json:
        print_json(found if front or len(found) > 1 else found[0])
        return
    from heapwright.cli.target_tables import print_measured

    print_measured(found)


def _measure(heap: str, traces: tuple[Path, ...], repair: bool, options: dict[str, Any]) -> list[dict[str, Any]]:
    from heapwright.cli.options import read_traces
    from heapwright.heaps import resolve_on_target
    from heapwright.target import measure

    if not traces:
        raise click.UsageError("Missing argument 'TRACE...': only --front takes the study's own traces.")
    found = resolve_on_target(heap)
    return [measure(found, trace, **options) for trace in read_traces(traces, repair)]


def _say(what: str) -> None:
    click.echo(what, err=True)

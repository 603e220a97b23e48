"""`heapwright generate`: write a heap as C for firmware."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright._cli.completion import platforms
from heapwright._cli.options import cpu_option, heap_argument, read_traces, repair_option, reserved_for_option
from heapwright._cli.output import json_option, note, print_json


@click.command()
@heap_argument
@click.option(
    "--platform",
    metavar="NAME",
    shell_complete=platforms,
    help="Also write what binds it there; `heapwright platforms` lists them.",
)
@click.option("--prefix", default="app", show_default=True, metavar="NAME", help="What names in the C begin with.")
@click.option(
    "-o", "--output", metavar="DIR", required=True, type=click.Path(path_type=Path), help="Where to write it."
)
@click.option(
    "--watched", is_flag=True, help="Also write NAME_heap_watched.c, for AddressSanitizer and Valgrind to see objects."
)
@click.option(
    "--package",
    is_flag=True,
    help="Also write what makes DIR a library of CMake and PlatformIO, a component of ESP-IDF, a module of Zephyr.",
)
@click.option(
    "--behind",
    metavar="MALLOC",
    help="Stand in front of another allocator, named by its malloc, which gets what the pools do not serve.",
)
@click.option("--inline", is_flag=True, help="Also write NAME_heap_inline.h: macros for calls of constant sizes.")
@click.option(
    "--evidence",
    metavar="TRACE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Also write what is known of the heap on this trace, as a page. Repeat the flag for more.",
)
@reserved_for_option
@cpu_option
@click.option(
    "--prove", "prove_calls", type=click.IntRange(2, 8), metavar="N", help="As prove --calls, for the evidence."
)
@repair_option
@json_option
def command(
    heap: str,
    platform: str | None,
    prefix: str,
    output: Path,
    watched: bool,
    package: bool,
    behind: str | None,
    inline: bool,
    evidence: tuple[Path, ...],
    held_out: tuple[Path, ...],
    cpu: str,
    prove_calls: int | None,
    repair: bool,
    as_json: bool,
) -> None:
    """Write a heap as C for firmware: source, header and a small test, freestanding and without dependencies.

    HEAP is a zoo NAME, a RECIPE.toml, or STUDY:ID; for the last the comments say what it was tuned for. Where it aligns
    objects to less than the platform needs, it is generated at the platform's alignment, which is said.

    With --behind malloc the recipe's pools, which need bounds, are asked first, and what they do not take or have no
    room for goes on to malloc; --behind mi_malloc goes on to mi_malloc, mi_realloc and mi_free.

    With --evidence a page says what is known of it, for a review: recipe, traces and their digests, the arena to
    reserve, the dearest calls on the target, what misuse it notices, what was proved, and by which tools.
    """
    from heapwright import _api as api

    files = api.generate(
        heap,
        output,
        prefix=prefix,
        platform=platform,
        watched=watched,
        package=package,
        behind=behind,
        inline=inline,
        evidence=read_traces(evidence, repair),
        held_out=read_traces(held_out, repair),
        cpu=cpu,
        prove_calls=prove_calls,
        progress=lambda step: note(f"{step} ..."),
        notes=note,
    )
    if as_json:
        print_json({"files": [str(file) for file in files]})
        return
    for file in files:
        click.echo(str(file))

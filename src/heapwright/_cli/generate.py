"""`heapwright generate`: a heap as C for firmware."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright._cli.completion import platforms
from heapwright._cli.options import cpu_option, heap_argument, read_traces, reserved_for_option
from heapwright._cli.output import json_option, note, print_json
from heapwright._cli.progress import steps


@click.command()
@heap_argument
@click.option(
    "--platform",
    metavar="NAME",
    shell_complete=platforms,
    help="Also write the port to this platform (heapwright platforms); default: the study's, or none.",
)
@click.option("--prefix", default="app", show_default=True, metavar="NAME", help="Prefix of all names in the C code.")
@click.option(
    "-o", "--output", metavar="DIR", required=True, type=click.Path(path_type=Path), help="The folder to write to."
)
@click.option(
    "--also",
    multiple=True,
    type=click.Choice(["field", "inline", "package", "watched"]),
    help="More to write. field: count blocks by size for `check --field`. inline: NAME_heap_inline.h, macros for calls "
    "of constant sizes. package: files for CMake, PlatformIO, ESP-IDF and Zephyr. watched: NAME_heap_watched.c, which "
    "reports objects to AddressSanitizer and Valgrind. Repeat the flag for more.",
)
@click.option(
    "--behind",
    metavar="MALLOC",
    help="Fall back to another allocator, named by its malloc, for requests that the pools do not serve.",
)
@click.option(
    "--evidence",
    metavar="TRACE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Also write a page of evidence about the heap on this trace. Repeat the flag for more.",
)
@reserved_for_option
@cpu_option
@click.option(
    "--prove",
    "prove_calls",
    type=click.IntRange(2, 8),
    metavar="N",
    help="For the evidence: bounded model checking of sequences of N allocations, as prove --calls.",
)
@click.option(
    "--memp",
    metavar="TRACE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="For lwip: also write NAME_lwip_pools.h, the sizes of lwIP's own heap and pools for this trace.",
)
@json_option
def command(
    heap: str,
    platform: str | None,
    prefix: str,
    output: Path,
    also: tuple[str, ...],
    behind: str | None,
    evidence: tuple[Path, ...],
    held_out: tuple[Path, ...],
    cpu: str,
    prove_calls: int | None,
    memp: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Write a heap as C for firmware: source, header and a small test, freestanding and without dependencies.

    HEAP is a zoo NAME, a RECIPE.toml, or STUDY:ID; of the last the comments state the traces that it was tuned for. If
    the platform needs a larger alignment than the heap's, the C has the platform's, and a note says so.

    With --behind malloc the recipe's pools, which must be limited in size, are tried first. Requests that they do not
    serve go to malloc; --behind mi_malloc uses mi_malloc, mi_realloc and mi_free.

    With --evidence a page documents the heap for a review: recipe, traces and their digests, the recommended arena
    size, the worst-case calls on the target, the misuse that it detects, the proofs, and the versions of the tools.
    """
    from heapwright import _api as api

    with steps() as report:
        files = api.generate(
            heap,
            output,
            prefix=prefix,
            platform=platform,
            watched="watched" in also,
            package="package" in also,
            behind=behind,
            inline="inline" in also,
            field="field" in also,
            evidence=read_traces(evidence),
            held_out=read_traces(held_out),
            cpu=cpu,
            prove_calls=prove_calls,
            memp=read_traces(memp),
            progress=lambda step: report(f"{step} ..."),
            notes=note,
        )
    if as_json:
        print_json({"files": [str(file) for file in files]})
        return
    for file in files:
        click.echo(str(file))

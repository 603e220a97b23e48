"""`heapwright hooks`: tracing shims that record heap calls of a board, or of a program on Linux."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright._cli.output import json_option, print_json


@click.command()
@click.argument("platform", metavar="PLATFORM")
@click.option(
    "-o", "--output", metavar="DIR", required=True, type=click.Path(path_type=Path), help="The folder to write to."
)
@click.option("--prefix", default="app", show_default=True, help="Prefix of all names in the files.")
@json_option
def command(platform: str, output: Path, prefix: str, as_json: bool) -> None:
    """Write tracing shims for your current heap; `heapwright import` makes a trace of what they record.

    For a PLATFORM that `heapwright platforms` lists this is C, which keeps the calls of the firmware in a ring buffer
    that a debugger dumps or the firmware prints as lines. For bpftrace or perf it is a script that records any program
    on Linux.
    """
    from heapwright import _api as api

    written = api.hooks(platform, output, prefix=prefix)
    if as_json:
        print_json({"files": [str(path) for path in written]})
        return
    for path in written:
        click.echo(path)

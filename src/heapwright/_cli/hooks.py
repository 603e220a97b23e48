"""`heapwright hooks`: what makes a board, or a program on Linux, tell its heap calls."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright._cli.output import json_option, print_json


@click.command()
@click.argument("platform", metavar="PLATFORM")
@click.option(
    "-o", "--output", metavar="DIR", required=True, type=click.Path(path_type=Path), help="The folder to write to."
)
@click.option("--prefix", default="app", show_default=True, help="What every name in the files begins with.")
@json_option
def command(platform: str, output: Path, prefix: str, as_json: bool) -> None:
    """Write what records heap calls, of whatever heap there is now; `heapwright import` makes a trace of the record.

    PLATFORM is one that `heapwright platforms` lists: then it is C that keeps the calls of firmware in a ring of RAM,
    which a debugger dumps or the firmware prints as lines. Or it is bpftrace or perf: then it is a script that records
    any program on Linux.
    """
    from heapwright import _api as api

    written = api.hooks(platform, output, prefix=prefix)
    if as_json:
        print_json({"files": [str(path) for path in written]})
        return
    for path in written:
        click.echo(path)

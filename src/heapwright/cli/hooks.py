"""`heapwright hooks`: the C that makes a board tell its heap calls."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright.cli.output import json_option, print_json


@click.command()
@click.argument("platform", metavar="PLATFORM")
@click.option(
    "-o", "--output", metavar="DIR", required=True, type=click.Path(path_type=Path), help="The folder to write to."
)
@click.option("--prefix", default="app", show_default=True, help="What every name in the C begins with.")
@json_option
def command(platform: str, output: Path, prefix: str, as_json: bool) -> None:
    """Write C that records the heap calls of firmware, whatever heap it has now, in a ring of RAM.

    A debugger dumps the ring, or the firmware prints it as lines; `heapwright import` makes a trace of either. PLATFORM
    is one that `heapwright platforms` lists.
    """
    from heapwright import api

    written = api.hooks(platform, output, prefix=prefix)
    if as_json:
        print_json({"files": [str(path) for path in written]})
        return
    for path in written:
        click.echo(path)

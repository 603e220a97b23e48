"""`heapwright generate`: write a heap as C for firmware."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright.cli.output import json_option, note_partial, print_json


@click.command()
@click.argument("heap", metavar="HEAP")
@click.option("--platform", metavar="NAME", help="Also write what binds it there; `heapwright platforms` lists them.")
@click.option("--prefix", default="app", show_default=True, metavar="NAME", help="What names in the C begin with.")
@click.option(
    "-o", "--output", metavar="DIR", required=True, type=click.Path(path_type=Path), help="Where to write it."
)
@json_option
def command(heap: str, platform: str | None, prefix: str, output: Path, as_json: bool) -> None:
    """Write a heap as C for firmware: source, header and a small test, freestanding and without dependencies.

    HEAP is a zoo NAME, a RECIPE.toml, or STUDY:ID; for the last the comments say what it was tuned for.
    """
    from heapwright import api

    files = api.generate(heap, output, prefix=prefix, platform=platform)
    if study := api.study_in(heap):
        note_partial(study)
    if as_json:
        print_json({"files": [str(file) for file in files]})
        return
    for file in files:
        click.echo(str(file))

"""`heapwright report`: write one HTML page that shows a study or a trace."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright.cli.output import json_option, note_partial, print_json


@click.command()
@click.argument("source", metavar="STUDY|TRACE", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="FILE.html",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The page to write.",
)
@click.option("--heap", "heaps", multiple=True, metavar="HEAP", help="Draw this heap. Repeat the flag for more.")
@click.option("--against", metavar="HEAP", help="What you have today: an id or zoo name of the study.")
@click.option(
    "--plots",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for PNG and SVG of each plot.",
)
@click.option("--no-plots", is_flag=True, help="Write the page alone.")
@json_option
def command(
    source: Path,
    output: Path,
    heaps: tuple[str, ...],
    against: str | None,
    plots: Path | None,
    no_plots: bool,
    as_json: bool,
) -> None:
    """Write one HTML page that shows a study or a trace.

    The page needs no network and no other file. Each plot is also written as PNG and SVG, into the folder
    OUTPUT_plots beside the page unless --plots names another.

    For each --heap the page draws memory over time and a map of the heap: a recipe's id in the study, a zoo NAME,
    RECIPE.toml or STUDY:ID. Without it these are the study's balanced pick and the best allocator of the zoo.
    """
    if plots and no_plots:
        raise click.UsageError("--plots and --no-plots exclude each other")
    from heapwright import api

    folder = None if no_plots else plots or output.with_name(f"{output.stem}_plots")
    page, *drawn = api.report(source, output, heaps=heaps, against=against, plots=folder)
    if study := api.study_in(source):
        note_partial(study)
    if as_json:
        print_json({"page": str(page), "plots": [str(path) for path in drawn]})
        return
    click.echo(f"{page}: {page.stat().st_size / 1e6:.1f} MB" + (f"; {len(drawn)} plots in {folder}" if drawn else ""))

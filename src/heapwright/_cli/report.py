"""`heapwright report`: show a study or a trace, as an HTML page or as Markdown for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from heapwright._cli.options import against_option, moved_option, repair_option
from heapwright._cli.output import json_option, note_partial, print_json
from heapwright._cli.pipes import from_stdin


@click.command()
@click.argument(
    "sources",
    metavar="[OLD] STUDY|TRACE",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    callback=from_stdin,
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="What to write: a page in .html, or Markdown in .md with its picture in .svg beside it.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["html", "github"]),
    default="html",
    show_default=True,
    help="A page, or as github Markdown of at most 40 lines; that is printed without --output.",
)
@click.option(
    "--baseline",
    metavar="OLD",
    type=click.Path(path_type=Path),
    help="An older study: then it is told what changed. The same as OLD before STUDY.",
)
@click.option("--heap", "heaps", multiple=True, metavar="HEAP", help="Draw this heap. Repeat the flag for more.")
@against_option
@click.option(
    "--plots",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for PNG and SVG of each plot.",
)
@click.option("--no-plots", is_flag=True, help="Write the page alone.")
@moved_option
@repair_option
@json_option
def command(
    sources: tuple[Path, ...],
    output: Path | None,
    format_name: Literal["html", "github"],
    baseline: Path | None,
    heaps: tuple[str, ...],
    against: str | None,
    plots: Path | None,
    no_plots: bool,
    moved: tuple[Path, ...],
    repair: bool,
    as_json: bool,
) -> None:
    """Show a study or a trace as one HTML page, or a study as Markdown for a pull request.

    The page needs no network and no other file. Each plot is also written as PNG and SVG, into the folder
    OUTPUT_plots beside the page unless --plots names another.

    For each --heap the page draws memory over time and a map of the heap: a recipe's id in the study, a zoo NAME,
    RECIPE.toml or STUDY:ID. Without it these are the study's balanced pick and the heap of --against, else TLSF.

    Beside an older study, it is told what changed, and what of that is noise: what another recording moves, too.
    """
    if len(sources) > 2 or (len(sources) == 2 and baseline):
        raise click.UsageError("give one study or trace, and at most one older study")
    *before, source = sources
    baseline = before[0] if before else baseline
    if format_name == "github":
        if plots or no_plots or heaps or against or repair:
            raise click.UsageError(
                "--heap, --against, --repair and plots are for pages; leave them out, or --format github"
            )
        _markdown(source, output, baseline, moved, as_json)
        return
    if plots and no_plots:
        raise click.UsageError("--plots and --no-plots exclude each other")
    if output is None:
        raise click.UsageError("Missing option '-o' / '--output': a page is written to a file")
    from heapwright import _api as api

    folder = None if no_plots else plots or output.with_name(f"{output.stem}_plots")
    page, *drawn = api.report(
        source, output, heaps=heaps, against=against, plots=folder, baseline=baseline, moved=moved, repair=repair
    )
    if study := api.study_in(source):
        note_partial(study)
    if as_json:
        print_json({"page": str(page), "plots": [str(path) for path in drawn]})
        return
    click.echo(f"{page}: {page.stat().st_size / 1e6:.1f} MB" + (f"; {len(drawn)} plots in {folder}" if drawn else ""))


def _markdown(source: Path, output: Path | None, baseline: Path | None, moved: tuple[Path, ...], as_json: bool) -> None:
    from heapwright import _api as api

    text, files = api.pull_request(source, output, baseline=baseline, moved=moved)
    note_partial(api.open_study(source))
    if as_json:
        print_json({"markdown": text, "files": [str(path) for path in files]})
    elif output is None:
        click.echo(text, nl=False)
    else:
        click.echo(", ".join(map(str, files)))

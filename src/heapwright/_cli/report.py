"""`heapwright report`: show a study or a trace, as an HTML page or as Markdown for a pull request."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright._cli.options import against_option, moved_option
from heapwright._cli.output import json_option, note_partial, print_json
from heapwright._cli.pipes import from_stdin
from heapwright._cli.renamed import repairs_requested

PAGE_SUFFIXES = (".html", ".htm")


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
    help="The file: PAGE.html, or GitHub's Markdown in .md with a picture in .svg. Default: print Markdown.",
)
@click.option("--heap", "heaps", multiple=True, metavar="HEAP", help="Draw this heap. Repeat the flag for more.")
@against_option
@click.option("--no-plots", is_flag=True, help="Write the page alone, without PNG and SVG files of its plots.")
@moved_option
@json_option
def command(
    sources: tuple[Path, ...],
    output: Path | None,
    heaps: tuple[str, ...],
    against: str | None,
    no_plots: bool,
    moved: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Show a study or a trace as one HTML page, or a study as Markdown for a pull request.

    The file's suffix decides: .md is Markdown of at most 40 lines, which is printed without --output; any other file is
    a page. The page needs no network and no other file. Each plot is also written as PNG and SVG, into the folder
    OUTPUT_plots next to the page.

    For each --heap the page draws memory over time and a map of the heap: a recipe's id in the study, a zoo NAME,
    RECIPE.toml or STUDY:ID. The default is the study's balanced pick and the heap of --against, else TLSF.

    With an older study OLD it reports the changes, and which of them are noise: another recording of the same build
    would change as much.
    """
    if len(sources) > 2:
        raise click.UsageError("give one study or trace, and at most one older study before it")
    *before, source = sources
    baseline = before[0] if before else None
    if output is None or output.suffix == ".md":
        if no_plots or heaps or against:
            raise click.UsageError("--heap, --against and --no-plots are for pages; give -o PAGE.html")
        _write_markdown(source, output, baseline, moved, as_json)
        return
    if output.suffix.lower() not in PAGE_SUFFIXES:
        raise click.UsageError(f"{output}: a report is a page, FILE.html, or Markdown, FILE.md")
    from heapwright import _api as api

    page, *plots = api.report(
        source,
        output,
        heaps=heaps,
        against=against,
        plots=None if no_plots else output.with_name(f"{output.stem}_plots"),
        baseline=baseline,
        moved=moved,
        repair=repairs_requested(),
    )
    if study := api.study_in(source):
        note_partial(study)
    if as_json:
        print_json({"page": str(page), "plots": [str(path) for path in plots]})
    else:
        size = f"{page}: {page.stat().st_size / 1e6:.1f} MB"
        click.echo(f"{size}; {len(plots)} plots in {plots[0].parent}" if plots else size)


def _write_markdown(
    source: Path, output: Path | None, baseline: Path | None, moved: tuple[Path, ...], as_json: bool
) -> None:
    from heapwright import _api as api

    if output is None and api.study_in(source) is None:
        raise click.UsageError("Missing option '-o' / '--output': the page of a trace is written to a file")
    text, files = api.pull_request(source, output, baseline=baseline, moved=moved)
    note_partial(api.open_study(source))
    if as_json:
        print_json({"markdown": text, "files": [str(path) for path in files]})
    elif output is None:
        click.echo(text, nl=False)
    else:
        click.echo(", ".join(map(str, files)))

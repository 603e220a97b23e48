"""`heapwright reproduce`: the source papers' tables and figures, compared with our own."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright._cli.output import json_option, print_json
from heapwright._cli.progress import steps

PAGES = ("drr", "easyport", "url", "techniques", "modem", "wifi", "pools", "sensor")


@click.command()
@click.argument("what", metavar="[WHAT]", type=click.Choice((*PAGES, "all")), default="all")
@click.option(
    "--packets",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of packet tables; without it, claims about real networks are not tested.",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default="papers",
    show_default=True,
    help="Folder to write to.",
)
@click.option(
    "--reading",
    metavar="NAME",
    help="Another reading of one of the paper's sentences, as the page lists them; all: test the claims under each.",
)
@json_option
def command(what: str, packets: Path | None, output: Path, reading: str | None, as_json: bool) -> None:
    """Run the experiments of the source papers and write a page for each, with its claims checked.

    WHAT is one of these, or all of them, which is the default. drr, easyport, url: packet scheduling, packet buffers,
    URL switching; techniques: what splitting, coalescing, fit and freelists do (Mamagkakis et al. 2006). wifi: a
    transmit queue (Mamagkakis et al. 2007). pools: pools of partitions and of buffers under Poisson load (Elsayed and
    Galal). modem: a modem concentrator (Peintner et al.). sensor: allocators of sensor nodes (Das et al.).

    Sentences behind drr, easyport and url can be read in several ways. The pages lead with the readings under which
    their tables are likest to the paper's.
    """
    from heapwright import _api as api

    every = reading == "all"
    with steps() as report:
        result = api.reproduce(
            what, output, packets=packets, reading=None if every else reading, readings=every, progress=report
        )
    if as_json:
        print_json(result)
        return
    for page in result["pages"]:
        click.echo(page)
    for claim in result["claims"]:
        on = f"{claim['on']}: " if claim.get("on") else ""
        larger = claim.get("verdict") == "larger than stated"
        verdict = "holds" if claim["holds"] else "LARGER THAN STATED" if larger else "DOES NOT HOLD"
        because = f"; {claim['cause']}: {claim['why']}" if claim.get("cause") else ""
        values = f"paper: {claim['paper_value']}; here: {on}{claim['our_value']}"
        click.echo(f"{verdict}: {claim['claim']} ({values}){because}")
    for item in result.get("readings", ()):
        click.echo(f"{item['page']}, read as {item['reading']}: {item['id']}, {item['on']}: {item['verdict']}")

"""`heapwright reproduce`: the source papers' tables and figures, theirs beside ours."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright.cli.output import json_option, note, print_json

PAGES = ("drr", "easyport", "url", "techniques", "modem", "wifi", "pools", "sensor")


@click.command()
@click.argument("what", metavar="WHAT", type=click.Choice((*PAGES, "all")))
@click.option(
    "--packets",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of packet tables; modem, pools and sensor need none.",
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
@json_option
def command(what: str, packets: Path | None, output: Path, as_json: bool) -> None:
    """Run the experiments of the source papers and write a page for each, with its claims checked.

    WHAT is one of these, or all. drr, easyport, url: packet scheduling, packet buffers, URL switching; techniques: what
    splitting, coalescing, fit and freelists do (Mamagkakis et al. 2006). wifi: a transmit queue (Mamagkakis et al.
    2007). pools: pools of partitions and of buffers under Poisson load (Elsayed and Galal). modem: a modem concentrator
    (Peintner et al.). sensor: allocators of sensor nodes (Das et al.).
    """
    from heapwright import api

    result = api.reproduce(what, output, packets=packets, progress=note)
    if as_json:
        print_json(result)
        return
    for page in result["pages"]:
        click.echo(page)
    for claim in result["claims"]:
        on = f"{claim['on']}: " if claim.get("on") else ""
        verdict = "holds" if claim["holds"] else "DOES NOT HOLD"
        because = f"; {claim['cause']}: {claim['why']}" if claim.get("cause") else ""
        values = f"paper: {claim['paper_value']}; here: {on}{claim['our_value']}"
        click.echo(f"{verdict}: {claim['claim']} ({values}){because}")

"""`heapwright platforms`: list what a heap can be generated for, or print the page of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from heapwright._cli.completion import platforms
from heapwright._cli.output import json_option, print_json

if TYPE_CHECKING:
    from heapwright._api import Platform


@click.command()
@click.argument("name", required=False, shell_complete=platforms)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the platforms that `generate --platform NAME` knows, or print the page that comes with one of them.

    In the page, app stands for the prefix.
    """
    from heapwright import _api as api

    result = [api.platforms(name)] if name else api.platforms()
    if as_json:
        print_json([_data(platform) for platform in result])
    elif name:
        click.echo(result[0].readme, nl=False)
    else:
        _show(result)


def _data(platform: Platform) -> dict[str, Any]:
    return {
        "name": platform.name,
        "title": platform.title,
        "align": platform.align,
        "lock": platform.lock,
        "threads": platform.threads,
        "writes": platform.files,
        "hooks": list(platform.hooks),
        "sources": platform.sources,
        "run_on": platform.run_on,
    }


def _show(result: list[Platform]) -> None:
    from heapwright._cli.tables import print_table

    rows = [(platform.name, str(platform.align), platform.title, platform.run_on) for platform in result]
    print_table("", ("name", "align", "what it is", "run on"), [rows], left=("name", "what it is", "run on"))

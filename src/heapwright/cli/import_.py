"""`heapwright import`: a file of packets becomes a packet table."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright.cli.options import seed_option
from heapwright.cli.output import json_option, note, print_json

FORMATS = ("capture", "tsh", "csv", "profile")


@click.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--format", "format_name", type=click.Choice(FORMATS), help="The format of FILE; found without it.")
@click.option(
    "--count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of a profile: how many packets; default, as many as it saw.",
)
@seed_option
@click.option(
    "-o",
    "--output",
    metavar="PACKETS",
    required=True,
    type=click.Path(path_type=Path),
    help="The packet table to write, a Parquet file.",
)
@json_option
def command(file: Path, format_name: str | None, count: int | None, seed: int, output: Path, as_json: bool) -> None:
    """Turn FILE into a packet table.

    FILE is a capture (pcap, pcapng), TSH (44 bytes a packet), CSV with a time and a length column, or a profile, as
    `heapwright profile PACKETS --json` prints it: then the packets are synthetic, --count and --seed say which, and
    the table says so.
    """
    from heapwright import api

    table = api.import_packets(file, format=format_name, count=count, seed=seed)
    table.write(output)
    warning = table.metadata.get("warning")
    if warning:
        note(f"{file}: {warning}")
    if as_json:
        print_json({"path": str(output), "packets": len(table), "warning": warning})
        return
    synthetic = " (synthetic)" if table.metadata.get("synthetic") == "true" else ""
    click.echo(f"{output}: {len(table):,} packets over {table.ts_us[-1] / 1e6:.1f} s{synthetic}")

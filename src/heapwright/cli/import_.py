"""heapwright import: a file of packets becomes a packet table."""

from __future__ import annotations

import click

from heapwright.cli.output import json_option, print_json


@click.command("import")
@click.argument("file", type=click.Path())
@click.option(
    "--format",
    "format_name",
    metavar="NAME",
    help="Format of FILE: capture (pcap, pcapng), tsh, csv or profile. Found by itself.",
)
@click.option(
    "--packets", type=click.IntRange(min=1), help="Of a profile: how many packets; default, as many as it saw."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of a profile: another draw.")
@click.option("-o", "--output", required=True, type=click.Path(), help="The Parquet file to write.")
@json_option
def command(file: str, format_name: str | None, packets: int | None, seed: int, output: str, as_json: bool) -> None:
    """Turn FILE into a packet table.

    FILE is a capture (pcap, pcapng), TSH (44 bytes a packet), CSV with a time and a length column, or a profile, as
    `heapwright profile PACKETS --json` prints it: then the packets are synthetic, and the table says so.
    """
    from heapwright.traffic import import_packets

    table = import_packets(file, format_name, packets, seed)
    table.write(output)
    warning = table.metadata.get("warning")
    if warning:
        click.echo(f"heapwright: {file}: {warning}", err=True)
    if as_json:
        print_json({"packets": len(table), "output": output, "warning": warning})
    else:
        synthetic = " (synthetic)" if table.metadata.get("synthetic") == "true" else ""
        click.echo(f"{output}: {len(table)} packets over {table.ts_us[-1] / 1e6:.1f} s{synthetic}", err=True)

"""heapwright import: a packet capture becomes a packet table."""

from __future__ import annotations

import click

from heapwright.cli.output import json_option, print_json
from heapwright.errors import HeapwrightError

FORMATS = ("capture",)


@click.command("import")
@click.argument("file", type=click.Path())
@click.option(
    "--format", "format_name", metavar="NAME", help="Format of FILE: capture (pcap, pcapng). Found by itself."
)
@click.option("-o", "--output", required=True, type=click.Path(), help="The Parquet file to write.")
@json_option
def command(file: str, format_name: str | None, output: str, as_json: bool) -> None:
    """Turn FILE, a pcap or pcapng capture of Ethernet frames, into a packet table."""
    if format_name is not None and format_name not in FORMATS:
        raise HeapwrightError(f"--format {format_name}: only captures can be imported; valid: {', '.join(FORMATS)}")
    from heapwright.packets import import_capture

    table = import_capture(file)
    table.write(output)
    warning = table.metadata.get("warning")
    if warning:
        click.echo(f"heapwright: {file}: {warning}", err=True)
    if as_json:
        print_json({"packets": len(table), "output": output, "warning": warning})
    else:
        click.echo(f"{output}: {len(table)} packets over {table.ts_us[-1] / 1e6:.1f} s", err=True)

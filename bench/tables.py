"""Results on stdout: as a table of text, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

GAP = "  "


def print_table(
    title: str, headings: Sequence[str], sections: Sequence[Sequence[Sequence[str]]], left: Sequence[str] = ()
) -> None:
    """Print rows in sections under headings; the first column and those named in `left` are aligned to the left."""
    rows = [row for section in sections for row in section]
    widths = [max(len(str(row[at])) for row in (headings, *rows)) for at in range(len(headings))]
    aligned = [at == 0 or heading in left for at, heading in enumerate(headings)]

    def line(row: Sequence[str]) -> str:
        cells = zip(row, widths, aligned, strict=True)
        return GAP.join(f"{cell:{'<' if to_left else '>'}{width}}" for cell, width, to_left in cells).rstrip()

    rule = "-" * (sum(widths) + len(GAP) * (len(widths) - 1))
    click.echo("\n".join([title, line(headings)]))
    for section in filter(None, sections):
        click.echo("\n".join([rule, *map(line, section)]))


def print_json(value: Any) -> None:
    """Print one JSON document; numpy's numbers become plain ones."""
    click.echo(json.dumps(value, default=lambda number: number.tolist()))

"""Tables on stdout, as wide as the terminal: styled there, plain elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from heapwright._cli.cells import ASCII, GAP, Column, Rules, cell_len, table, wrapped
from heapwright._cli.output import stdout_columns
from heapwright._support.names import printable

if TYPE_CHECKING:
    from heapwright._replay.metrics import Value
    from heapwright._studies.by_load import AtLoad
    from heapwright._studies.comparison import HeapComparison
    from heapwright._studies.decision import Decision

LEAST_WRAPPED = 24
"""A last column of text is wrapped to no less."""
_PERCENT = ("fragmentation", "fragmentation_with_headers")


def print_table(
    title: str,
    headings: Sequence[str],
    sections: Sequence[Sequence[Sequence[str]]],
    left: Sequence[str] = (),
    strong: Collection[str] = (),
    least_wrapped: int = LEAST_WRAPPED,
) -> None:
    """Print rows in sections under headings; columns named in ``left`` are aligned to the left.

    The leading columns in ``left``, or the first, identify a row. If a line (`stdout_columns`) is too narrow for all
    other columns, they are printed in parts, one below the other, each with the identifying columns. Only a last column
    in ``left`` wraps, to no less than ``least_wrapped``. Rows that begin with a cell in ``strong`` are highlighted. No
    line ends with blanks.
    """
    width = stdout_columns()
    _print_title(title, width)
    rows = [row for section in sections for row in section]
    keys = _key_columns(headings, left)
    columns = _columns(headings, rows, left, keys, least_wrapped)
    bold_rows = {number for number, row in enumerate(rows, 1) if row[0] in strong}
    for part in _parts(keys, [column.least for column in columns], width):
        heads = [_lines(headings[at]) for at in part]
        cells = [[[printable(row[at]) for at in part] for row in section] for section in sections]
        for line, row in table(heads, cells, [columns[at] for at in part], width, _rules()):
            click.echo(styled(line, bold=row == 0 or row in bold_rows, green=row in bold_rows))
        click.echo()


def _print_title(title: str, width: int) -> None:
    for line in wrapped(_lines(title), width, fold=True) if title else ():
        click.echo(styled(line.rstrip(), bold=True))


def _columns(
    headings: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str], keys: int, least_wrapped: int
) -> list[Column]:
    """Alignment and least width of each column; the first `keys` identify a row and do not wrap."""
    columns = []
    for at, width in enumerate(_widths(headings, rows)):
        wraps = headings[at] in left and at >= keys
        columns.append(Column(headings[at] in left, wraps, min(width, least_wrapped) if wraps else width))
    return columns


def styled(line: str, bold: bool = False, green: bool = False, dim: bool = False) -> str:
    """The line in that style, where the terminal knows any; `click.echo` leaves it out where there is no terminal."""
    codes = ["1"] * (bold or green) + ["2"] * dim + ["32"] * (green and not os.environ.get("NO_COLOR"))
    if not codes or os.environ.get("TERM", "").lower() in ("dumb", "unknown"):
        return line
    return f"\x1b[{';'.join(codes)}m{line}\x1b[0m"


def _rules() -> Rules:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return Rules() if encoding.lower().startswith("utf") else ASCII


def _key_columns(headings: Sequence[str], left: Sequence[str]) -> int:
    """The number of leading columns that identify a row: at least one, and never all."""
    count = next((at for at, heading in enumerate(headings) if heading not in left), len(headings))
    return min(max(count, 1), len(headings) - 1)


def _widths(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    columns = zip(headings, *rows, strict=True)
    return [max(cell_len(printable(line)) for cell in column for line in cell.split("\n")) for column in columns]


def _parts(keys: int, widths: Sequence[int], width: int) -> list[list[int]]:
    """The columns of each part of a table, the first `keys` in each, that is to be no wider than `width`."""
    room = width - sum(item + GAP for item in widths[:keys])
    parts: list[list[int]] = []
    used = room + 1
    for at in range(keys, len(widths)):
        if used + widths[at] > room:
            parts.append([*range(keys)])
            used = 0
        parts[-1].append(at)
        used += widths[at] + GAP
    return parts


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def short_names(heaps: Iterable[str]) -> dict[str, str]:
    """Names of heaps in a table: without their folders if they stay distinct."""
    names = list(dict.fromkeys(heaps))
    short = [name.rpartition("/")[2] for name in names]
    return dict(zip(names, short if len(set(short)) == len(names) else names, strict=True))


def print_metrics(title: str, heaps: Mapping[str, Mapping[str, Value]]) -> None:
    """Print metrics with units, one column per heap; the metrics that only studies have if any heap has them."""
    from heapwright._replay.metrics import LONG_RUN_METRICS, METRICS, SHIPPING_METRICS

    optional = {*SHIPPING_METRICS, *LONG_RUN_METRICS}
    rows = [
        [key, *(number(key, metrics.get(key)) for metrics in heaps.values()), metric.unit, metric.meaning]
        for key, metric in METRICS.items()
        if key not in optional or any(metrics.get(key) is not None for metrics in heaps.values())
    ]
    print_table(printable(title), ["metric", *heaps, "unit", "meaning"], [rows], left=("metric", "unit", "meaning"))


def number(key: str, value: Value) -> str:
    """A metric as text: thousands separated, fragmentation in per cent, a dash if not measured."""
    if value is None:
        return "-"
    if key in _PERCENT:
        return f"{value:.1%}"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def print_side_by_side(decision: Decision) -> None:
    """Print the recommendation and its alternatives: one column per heap, one row per figure."""
    from heapwright._studies.comparison import side_by_side

    comparison = side_by_side(decision)
    names = [f"{heap.candidate.label}{' (current)' if heap.role == 'yours' else ''}" for heap in comparison.heaps]
    print_heaps("Compared with alternatives", names, comparison)


def print_heaps(title: str, names: Sequence[str], comparison: HeapComparison) -> None:
    """Print heaps side by side under these names."""
    rows = [[row.words, *(f"{cell.text} {cell.against}".rstrip() for cell in row.cells)] for row in comparison.rows]
    units = " and ".join(dict.fromkeys(row.unit for row in comparison.rows if row.unit))
    print_table(f"{title}, in {units}", ["", *names], [rows], left=("",))


def print_by_load(result: Sequence[AtLoad]) -> None:
    """Print the recommendation at each load, if there are several."""
    if not result:
        return
    headings = ["load", "live peak", "pick", "footprint", *result[0].beside]
    rows = [
        [
            f"{item.load:g}",
            f"{item.requested_peak_bytes:,}",
            item.pick,
            f"{item.footprint_bytes:,}",
            *("-" if size is None else f"{size:,}" for size in item.beside.values()),
        ]
        for item in result
    ]
    click.echo()
    print_table("Balanced picks by load, each for its own trace, in bytes", headings, [rows], left=("pick",))


def growth(ratio: float | None, bounded: bool | None) -> str:
    """Long-run growth of a heap in per cent; marked ! if it is unbounded."""
    return "-" if ratio is None else f"{ratio - 1:.1%}{'' if bounded else '!'}"

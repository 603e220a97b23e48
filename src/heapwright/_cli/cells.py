"""Text in terminal cells: measured, wrapped and cut as a terminal shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

GAP = 2
"""Cells between columns."""


class Rules(NamedTuple):
    """The rules of a table: between columns, under the headings, and between sections."""

    gap: str = "  "
    head: str = "─"
    head_gap: str = "──"
    section: str = " "
    section_gap: str = "  "


ASCII = Rules(" |", "-", "-+", "-", "-+")
"""Rules for an output without line-drawing characters."""

_ONE_CELL = re.compile("[ -~\u2500-\u25fc\xa1-\xac\xae-\u02ff≥…]*")
"""Letters, lines and bars that take a cell each; rich, which takes long to import, measures all others."""

_WORD = re.compile(r"\s*\S+\s*")


@lru_cache(maxsize=4096)
def cell_len(text: str) -> int:
    """Width in cells of a text without line breaks."""
    if _ONE_CELL.fullmatch(text):
        return len(text)
    from rich import cells

    return cells.cell_len(text)


def cut(text: str, width: int) -> str:
    """The text, ended by an ellipsis where it takes more than `width` cells."""
    if cell_len(text) <= width:
        return text
    return _first_cells(text, width - 1) + "…"


def wrapped(text: str, width: int, fold: bool) -> list[str]:
    """The lines of a text, broken between words, none wider than `width` cells.

    A longer word goes on in the next line, if asked to `fold`, and else is cut (`cut`).
    """
    lines = []
    for line in text.split("\n"):
        for start, end in pairwise((0, *_breaks(line, width, fold), len(line))):
            blanks = end - len(line[start:end].rstrip()) - start
            part = line[start : end - min(blanks, max(0, end - start - width))]
            lines.append(_first_cells(part, width) if fold else cut(part, width))
    return lines


def _breaks(line: str, width: int, fold: bool) -> list[int]:
    """Start of each line but the first; lines are filled with as many words as fit."""
    results: list[int] = []
    used = 0
    for word in _WORD.finditer(line):
        start, text = word.start(), word[0]
        needed = cell_len(text.rstrip())
        if needed <= width - used:
            used += cell_len(text)
            continue
        for part in _chopped(text, width) if needed > width and fold else (text,):
            if start:
                results.append(start)
            start, used = start + len(part), cell_len(part)
    return results


def _chopped(word: str, width: int) -> list[str]:
    """A word in parts of at most `width` cells."""
    if _ONE_CELL.fullmatch(word):
        return [word[at : at + width] for at in range(0, len(word), width)]
    from rich import cells

    return cells.chop_cells(word, width)


def _first_cells(text: str, width: int) -> str:
    """The first of a text that take at most `width` cells."""
    if _ONE_CELL.fullmatch(text):
        return text[: max(0, width)]
    from rich import cells

    return cells.set_cell_size(text, width) if cell_len(text) > width else text


class Column(NamedTuple):
    """Format of a column: aligned left or right, whether lines wrap, and the least width in cells."""

    left: bool
    wraps: bool
    least: int


class Line(NamedTuple):
    """A line of a table, and the number of the row that it belongs to: 0 for the headings, -1 between rows."""

    text: str
    row: int


def table(
    headings: Sequence[str],
    sections: Sequence[Sequence[Sequence[str]]],
    columns: Sequence[Column],
    width: int,
    rules: Rules,
) -> Iterator[Line]:
    """The lines of a table: headings and a rule under them, rows, and a rule between sections.

    Columns that wrap give way until it is `width` wide, then all do; lines are wider where the columns' `least` are.
    Blanks at their ends are left out.
    """
    rows = [row for rows in sections for row in rows]
    widths = _column_widths([headings, *rows], columns, width)
    yield from (Line(text, 0) for text in _row(headings, columns, widths, rules.gap, below=True))
    yield Line(rules.head_gap.join(rules.head * item for item in widths), -1)
    done = 0
    for section in sections:
        if section and done:
            yield Line(rules.section_gap.join(rules.section * item for item in widths).rstrip(), -1)
        for number, row in enumerate(section, done + 1):
            yield from (Line(text, number) for text in _row(row, columns, widths, rules.gap, below=False))
        done += len(section)


def _row(
    cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], gap: str, below: bool
) -> Iterator[str]:
    """The lines of a row, whose cells begin at the same line, or end there where they stand `below` others."""
    shown: list[list[str]] = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        lines = wrapped(cell, width, fold=False) if column.wraps else [cut(line, width) for line in cell.split("\n")]
        if column.left:
            shown.append([line + " " * (width - cell_len(line)) for line in lines])
        else:
            shown.append([" " * (width - cell_len(line.rstrip())) + line.rstrip() for line in lines])
    height = max(map(len, shown))
    for lines, width in zip(shown, widths, strict=True):
        empty = [" " * width] * (height - len(lines))
        lines[:] = [*empty, *lines] if below else [*lines, *empty]
    for parts in zip(*shown, strict=True):
        yield gap.join(parts).rstrip()


def _column_widths(rows: Sequence[Sequence[str]], columns: Sequence[Column], width: int) -> list[int]:
    """Width of each column in cells: the widest wrapping columns are narrowed until the table is `width` wide."""
    texts = [[line for row in rows for line in row[at].split("\n")] for at in range(len(columns))]
    widths = [max(item.least, *map(cell_len, lines)) for item, lines in zip(columns, texts, strict=True)]
    last = len(columns) - 1
    room = max(width, sum(column.least for column in columns) + GAP * last) - last
    pads = [int(at < last) for at in range(len(columns))]  # one blank of each gap belongs to the column before it
    padded = [min(item + pad, room) for item, pad in zip(widths, pads, strict=True)]
    _narrow(padded, [at for at, column in enumerate(columns) if column.wraps], room)
    _give(padded, range(len(padded)), max(0, sum(padded) - room), room)
    return [item - pad for item, pad in zip(padded, pads, strict=True)]


def _narrow(widths: list[int], wrapping: Sequence[int], room: int) -> None:
    """Narrow the widest of the wrapping columns, step by step, until all columns fit or these are equally wide."""
    while (excess := sum(widths) - room) > 0:
        widest = max((widths[at] for at in wrapping), default=0)
        step = widest - max((widths[at] for at in wrapping if widths[at] < widest), default=0)
        if not step:
            break
        _give(widths, [at for at in wrapping if widths[at] == widest], excess, step)


def _give(widths: list[int], places: Sequence[int], excess: int, most: int) -> None:
    """Take `excess` cells from columns in equal parts, `most` from each."""
    for remaining, at in zip(range(len(places), 0, -1), places, strict=True):
        taken = min(most, widths[at], round(excess / remaining))
        widths[at] -= taken
        excess -= taken

"""Tables as text: as rich sets them, which is tested here and no longer with each command that prints one."""

from __future__ import annotations

import random
from io import BytesIO, TextIOWrapper

import pytest
from case_tables import each
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len as cells_by_rich
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heapwright._cli.cells import ASCII, Column, Rules, cell_len, table, wrapped

MANY = "of many words " * 6
WORDS = ("a", "bb", "ccc dd", "", "漢字", "é", "a  b", "ends ", "é漢" * 5, " begins", "x" * 30, "▁█│", MANY)
NUMBERS = ("1", "1,234", "12.5%", "t ", "漢")
HEADS = ("head", "two\nlines", "漢", "of two")

Drawn = tuple[list[str], list[list[list[str]]], list[Column], int]


def drawn(chosen: random.Random) -> Drawn:
    lefts = [chosen.random() < 0.6 for _ in range(chosen.randint(1, 6))]
    columns = [Column(remaining, remaining and chosen.random() < 0.7, 0) for remaining in lefts]
    heads = [f"{chosen.choice(HEADS)}{at}" for at in range(len(columns))]
    sections = [
        [
            [chosen.choice(WORDS if remaining else NUMBERS) for remaining in lefts[1:]]
            for _ in range(chosen.randint(1, 3))
        ]
        for _ in range(chosen.randint(1, 3))
    ]
    shown = [[[f"row {at}", *row] for at, row in enumerate(rows)] for rows in sections]
    aligned = []
    for at, item in enumerate(columns):
        cells = (heads[at], *(row[at] for rows in shown for row in rows))
        longest = max(cell_len(line) for text in cells for line in text.split("\n"))
        aligned.append(item._replace(least=min(longest, 4) if item.wraps else longest))
    return heads, shown, aligned, chosen.choice((30, 60, 80, 100, 200))


def by_rich(heads: list[str], sections: list[list[list[str]]], columns: list[Column], width: int, ascii: bool) -> str:
    drawing = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for head, item in zip(heads, columns, strict=True):
        drawing.add_column(Text(head), justify="left" if item.left else "right", no_wrap=not item.wraps)
    for rows in sections:
        for row in rows:
            drawing.add_row(*map(Text, row))
        drawing.add_section()
    file = TextIOWrapper(BytesIO(), "ascii" if ascii else "utf-8")
    console = Console(file=file, highlight=False, width=width)
    with console.capture() as captured:
        console.print(drawing)
    return "\n".join(line.rstrip() for line in captured.get().split("\n")).rstrip()


@each("seed", range(40))
def test_tables_are_set_as_rich_sets_them(seed: int) -> None:
    heads, sections, columns, width = drawn(random.Random(seed))
    least = sum(column.least for column in columns) + 2 * (len(columns) - 1)
    width = max(width, least)  # rich cuts what fits no line
    for rules in (Rules(), ASCII):
        lines = [line.text for line in table(heads, sections, columns, width, rules)]
        assert "\n".join(lines).rstrip() == by_rich(heads, sections, columns, width, rules is ASCII)


def test_lines_tell_the_row_that_they_belong_to() -> None:
    columns = [Column(True, False, 1), Column(True, True, 3)]
    lines = [*table(["a", "b\nc"], [[["1", "one two"]], [], [["2", "x"]]], columns, 6, Rules())]
    assert lines == [("   b", 0), ("a  c", 0), ("──────", -1), ("1  one", 1), ("   two", 1), ("", -1), ("2  x", 2)]


def test_columns_that_have_given_all_they_can_make_lines_longer() -> None:
    columns = [Column(True, False, 10), Column(True, True, 4)]
    lines = [line.text for line in table(["h" * 10, "i"], [[["k", "one two"]]], columns, 8, Rules())]
    assert lines == ["hhhhhhhhhh  i", "─" * 16, "k           one", "            two"]


@pytest.mark.parametrize("width", [1, 5, 9, 30])
def test_text_is_wrapped_as_rich_wraps_it(width: int) -> None:
    console = Console(width=width)
    for text in (*WORDS, "a word, " * 9, "two\nlines\n", "long" * 9 + " b", "a " + "漢" * 9, "b " + "x" * 30):
        for fold in (False, True):
            by_rich = Text(text).wrap(console, width, overflow="fold" if fold else "ellipsis")
            assert [*map(str.rstrip, wrapped(text, width, fold))] == [line.plain.rstrip() for line in by_rich]


def test_cells_are_counted_as_rich_counts_them() -> None:
    for code in (*range(32, 127), *range(160, 0x3000, 7), *map(ord, "≥…漢"), 0x1F600):
        assert cell_len(chr(code)) == cells_by_rich(chr(code))

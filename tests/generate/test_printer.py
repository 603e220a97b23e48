"""Where lines of generated code are broken that are too wide."""

from __future__ import annotations

from textwrap import dedent

import pytest

from heapwright._generate.printer import WIDTH, broken, commented_lines

LONG = "a_name_that_is_rather_long"
ROW = f"{LONG}(a, b) + {LONG}"
BROKEN = {
    "fits": ("x = 1;", "x = 1;"),
    "arguments": (
        f"return {LONG}({ROW}, b, {ROW});",
        f"""
        return {LONG}({ROW}, b,
                                          {ROW});
        """,
    ),
    "loosest operator": (
        f"const int x = {ROW} < {ROW} && ({LONG} || {LONG});",
        f"""
        const int x = {ROW} <
                      {ROW} &&
                      ({LONG} || {LONG});
        """,
    ),
    "choice": (
        f"x = {LONG} ? ({LONG} ? {LONG} : {LONG}) : {LONG};",
        f"""
        x = {LONG} ? ({LONG} ? {LONG} : {LONG})
                                       : {LONG};
        """,
    ),
    "choice in brackets": (
        f"if (({LONG} ? a : b) > ({LONG} ? {LONG} : c) + {LONG}) {{",
        f"""
        if (({LONG} ? a : b) >
            ({LONG} ? {LONG} : c) + {LONG}) {{
        """,
    ),
    "head of a loop": (
        f"for (uint32_t i = {LONG}; i < {LONG}({LONG}); i += {LONG}) {{",
        f"""
        for (uint32_t i = {LONG};
             i < {LONG}({LONG});
             i += {LONG}) {{
        """,
    ),
}


@pytest.mark.parametrize(("line", "lines"), BROKEN.values(), ids=BROKEN)
def test_a_line_is_broken_where_it_is_loosest(line: str, lines: str) -> None:
    assert broken(line, 0) == dedent(lines).strip("\n")


@pytest.mark.parametrize("column", [0, 8])
def test_what_stands_in_a_column_goes_on_there(column: int) -> None:
    first, *others = broken(f"{ROW} + {ROW} + {ROW};", column).split("\n")
    assert others and max(map(len, (" " * column + first, *others))) <= WIDTH
    assert all(len(line) - len(line.lstrip()) == column for line in others)


def test_comments_behind_lines_are_aligned_where_all_of_them_fit() -> None:
    assert commented_lines([("int a;", "one"), ("int;", ""), ("int more;", "two")]) == (
        "int a;    /* one */\nint;\nint more; /* two */\n"
    )
    most = "w" * (WIDTH - len("int more;") - 7)
    assert commented_lines([("int a;", "one"), ("int more;", most)]) == f"int a;    /* one */\nint more; /* {most} */\n"
    wide = f"{most}w"
    assert commented_lines([("int a;", "one"), ("int more;", wide)]) == f"int a; /* one */\n/* {wide} */\nint more;\n"

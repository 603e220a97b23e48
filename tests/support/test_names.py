"""Names made of other names, and names as a person may see them."""

import pytest

from heapwright._cli.tables import print_table
from heapwright._support.names import printable, shortened


def test_a_name_that_fits_stays() -> None:
    assert shortened("ä" * 5, 10) == "ä" * 5
    assert len(shortened("x" * 300, ending=".c")) == 255
    assert shortened("a" * 247, ending=".parquet") == "a" * 247 + ".parquet"


def test_a_name_that_does_not_fit_ends_in_a_hash_of_all_of_it() -> None:
    item, other = shortened("ä" * 200 + "1", ending=".parquet"), shortened("ä" * 200 + "2", ending=".parquet")
    assert item != other
    assert item.startswith("ä" * 119 + "-") and item.endswith(".parquet")
    assert len(item.encode()) <= 255


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä → 字", "plain ä → 字"),
        ("no\u00a0break", "no\u00a0break"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("two\nlines\r\t", "two\\nlines\\r\\t"),
        ("\x9b2J\x00\x7f", "\\x9b2J\\x00\\x7f"),
        ("turned\u202e\u2028", "turned\\u202e\\u2028"),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_steers_a_terminal_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_table_prints_names_as_they_are_and_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("T\x1b[2J\n", ["[bold]h", "two\nlines\x07"], [[["[/]a\x1b]0;x", "1\n2"]]])
    printed = capsys.readouterr().out
    assert "\x1b" not in printed and "\x07" not in printed
    for shown in ("T\\x1b[2J", "[bold]h", "lines\\x07", "[/]a\\x1b]0;x", "1\\n2"):
        assert shown in printed

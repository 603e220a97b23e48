"""What pages and pictures show of inputs that never change: see `tests/drawn.py`."""

from __future__ import annotations

from drawn import TABLE, table
from each import each

from heapwright.report.figure import quantity


def test_pages_and_pictures_look_as_before() -> None:
    found, before = (
        dict(line.split("  ", 1)[::-1] for line in text.splitlines()) for text in (table(), TABLE.read_text())
    )
    assert sorted(found) == sorted(before)
    assert [name for name in found if found[name] != before[name]] == [], "tests/drawn.py says what to do"


@each(
    ("size", "words"),
    [(0, "0 B"), (9_999, "9,999 B"), (10_000, "10 KB"), (999_499, "999 KB"), (999_500, "1,000 KB"),
     (1_000_000, "1 MB"), (1_234_567, "1.23 MB"), (10**9, "1 GB")],
)  # fmt: skip
def test_bytes_have_three_digits_and_the_prefix_of_the_axes(size: int, words: str) -> None:
    assert quantity(size) == words

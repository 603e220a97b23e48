"""What tests/helpers/doc_commands.py takes for the same, and what for stale."""

from __future__ import annotations

import pytest
from doc_commands import Command, abridged, commands, differs, masked

SHOWN = """\
Ship 3b0833c51567: reserve 426,748 bytes.
It makes 6.4 loads and stores a call.
13,105 replays in 25.9 s"""


def command(shown: str, mark: str = "", why: str = "") -> Command:
    return Command("heapwright", shown.split("\n"), 0, 0, mark, why)


def test_what_is_printed_as_shown_is_the_same() -> None:
    assert not differs(command(SHOWN), SHOWN.split("\n"))
    assert not differs(command(SHOWN + "\n\n"), [*SHOWN.split("\n"), ""])
    assert not differs(command(""), [])


@pytest.mark.parametrize(
    ("now", "before"),
    [("426,748", "426,752"), ("6.4", "6.5"), ("3b0833c51567", "3b0833c51568"), ("13,105", "13,106"), ("Ship", "Use")],
)
def test_a_number_or_word_that_went_stale_differs(now: str, before: str) -> None:
    assert differs(command(SHOWN.replace(now, before)), SHOWN.split("\n"))


def test_a_line_too_few_or_too_many_differs() -> None:
    lines = SHOWN.split("\n")
    assert differs(command(SHOWN), lines[:-1])
    assert differs(command(SHOWN), [*lines, "more"])
    assert differs(command(SHOWN), [])
    assert differs(command(""), lines)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("13,105 replays in 25.9 s", "13,105 replays in 1,031.4 s"),
        ("calls of sort (process 15081, threads: 1)", "calls of sort (process 7, threads: 1)"),
        ("196 ns a call, 2.5 % of the run's processor time", "9 ns a call, 12 % of the run's processor time"),
        ('{"pid": 15134, "run_seconds": 0.06, "cost_ns": 117.0}', '{"pid": 1, "run_seconds": 1e-05, "cost_ns": 8.0}'),
    ],
)
def test_times_and_process_numbers_are_masked(one: str, other: str) -> None:
    assert masked(one) == masked(other) != one


def test_counts_beside_times_are_not_masked() -> None:
    assert masked("12,620 calls, 1 thread, 12 s") == "12,620 calls, 1 thread, # s"
    assert masked("85 sizes, 3 seeds, 12 spaces") == "85 sizes, 3 seeds, 12 spaces"
    assert masked('{"seconds": null, "events": 290}') == '{"seconds": null, "events": 290}'


def test_dots_stand_for_what_is_left_out() -> None:
    assert not differs(command("first\n...\nlast"), ["first", "1", "2", "last"])
    assert not differs(command("first\n...\nlast"), ["first", "last"])
    assert differs(command("first\n...\nlast"), ["first", "1", "2"])
    assert not differs(command('{"a": 1, ..., "c": 3}'), ['{"a": 1, "b": 2, "c": 3}'])
    assert differs(command('{"a": 1, ..., "c": 3}'), ['{"a": 1, "b": 2, "c": 4}'])


def test_where_numbers_vary_words_still_count() -> None:
    output = command("demo/sort.parquet: 290 calls, peak 100,492 B", "numbers vary", "another sort")
    assert not differs(output, ["demo/sort.parquet: 1,290 calls, peak 9 B"])
    assert differs(output, ["demo/sort.parquet: 290 frees, peak 100,492 B"])


PAGE = """\
# A page

    $ first --flag \\
          more
    shown

    with a gap
    $ second "SELECT
          x"

<!-- not run: takes minutes -->

    $ third
    $ fourth

Text.

    no commands here
"""


def test_a_page_is_taken_apart() -> None:
    result = commands(PAGE)
    assert [item.text for item in result] == [
        "first --flag \\\n      more",
        'second "SELECT\n      x"',
        "third",
        "fourth",
    ]
    assert result[0].shown == ["shown", "", "with a gap"]
    assert [(item.mark, item.why) for item in result] == [("", ""), ("", "")] + 2 * [("not run", "takes minutes")]


@pytest.mark.parametrize(
    "page",
    [
        "    code\n    $ hidden\n",
        "```\n$ fenced\n```\n",
        "<!-- not run: why -->\n\nText.\n",
        "- item\n\n        $ deep\n",
    ],
)
def test_commands_that_nothing_would_run_are_an_error(page: str) -> None:
    with pytest.raises(ValueError, match="line "):
        commands(page)


def test_what_was_left_out_stays_left_out() -> None:
    assert abridged(["a", "...", "z"], ["a", "b", "c", "y"]) == ["a", "...", "y"]
    assert abridged(["a", "z"], ["a", "b", "c"]) == ["a", "b", "c"]
    assert abridged(["..."], ["a", "b"]) == ["..."]

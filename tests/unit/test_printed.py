"""What commands print of inputs that never change: see `tests/printed.py`; `tests/printed.txt` has it."""

from __future__ import annotations

from pathlib import Path

from printed import HELPS, TEXT, helps, printed


def by_command(text: str) -> dict[str, str]:
    parts = ("\n" + text).split("\n$ heapwright ")[1:]
    return dict(part.split("\n", 1) for part in parts)


def test_commands_print_what_they_printed(tmp_path: Path) -> None:
    found, before = by_command(printed(tmp_path)), by_command(TEXT.read_text(encoding="utf-8"))
    assert list(found) == list(before)
    for command, told in found.items():
        assert told == before[command], f"{command}: python tests/printed.py writes what it prints now"


def test_the_words_of_help_are_those_that_were_read() -> None:
    found, before = ({line[18:]: line[:16] for line in text.splitlines()} for text in (helps(), HELPS.read_text()))
    assert [name for name in {**found, **before} if found.get(name) != before.get(name)] == [], "see tests/printed.py"

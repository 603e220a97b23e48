"""The texts speak the field's language: no word of the project's old dialect occurs in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from dialect import Finding, c, findings, markdown, python, scan

from heapwright import _cli as cli

ROOT = Path(__file__).resolve().parents[2]

CLEAN = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "changes",
    "docs",
    "examples",
    "csrc",
    "native",
    "recorder",
    "src/heapwright/_api",
    "src/heapwright/_assure",
    "src/heapwright/_cli",
    "src/heapwright/_diagnose",
    "src/heapwright/_generate",
    "src/heapwright/_heaps",
    "src/heapwright/_measure",
    "src/heapwright/_platforms",
    "src/heapwright/_recipes",
    "src/heapwright/_report",
    "src/heapwright/_support",
    "src/heapwright/_traces",
    "src/heapwright/_traffic",
    "src/heapwright/_explore",
    "src/heapwright/_replay",
    "src/heapwright/_studies",
    "tests",
    "bench",
    "papers",
    "research",
)
"""Files and folders without a word of the dialect."""

EXEMPT = ("tests/docs/dialect.py", "tests/docs/test_words.py")
"""Files that have the words as data: their list, and these tests."""

KEPT = {"tests/replay/test_metrics.py": "lasts", "papers/heapwright_papers/answers.py": "beside"}
"""A word that a file may have: the name of a metric; of a sentence on pages of papers, whose digests are promised."""


NAMES = ("lasts  ",)
"""Names that `--help` lists in a column of their own: `lasts` is an objective."""


@pytest.mark.parametrize("path", CLEAN)
def test_no_word_of_the_dialect_occurs(path: str) -> None:
    assert (ROOT / path).exists()
    assert [str(item) for item in scan([ROOT / path]) if not is_data(item)] == []


def is_data(item: Finding) -> bool:
    """Whether a word is data of a file rather than its language."""
    path = Path(item.path).relative_to(ROOT).as_posix()
    return path in EXEMPT or KEPT.get(path) == item.word


def test_no_exemption_is_left_over() -> None:
    data = {
        Path(item.path).relative_to(ROOT).as_posix()
        for item in scan(ROOT / path for path in (*EXEMPT, *KEPT))
        if is_data(item)
    }
    assert data == {*EXEMPT, *KEPT}


def test_every_folder_of_sources_is_scanned() -> None:
    packages = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("src/heapwright/*/__init__.py")}
    assert packages | {"csrc", "native", "recorder"} <= {*CLEAN}


def helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """What `--help` prints for a command and those below it."""
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for item in command.list_commands(context):
            below = command.get_command(context, item)
            assert below is not None
            yield from helps(below, item, context)


def test_no_word_of_the_dialect_occurs_in_help() -> None:
    shown = dict(helps(cli.heapwright, "heapwright"))
    assert len(shown) > 40
    results = [item for name, text in shown.items() for item in findings(text, name)]
    assert [str(item) for item in results if not item.text.strip().startswith(NAMES)] == []


def test_no_word_of_the_dialect_occurs_in_a_picture() -> None:
    shown = {
        path.name: "\n".join(re.findall(r">([^<>{}]+)<", path.read_text(encoding="utf-8")))
        for path in (ROOT / "docs" / "images").glob("*.svg")
        if path.name != "answer.svg"  # it shows a recipe's summary, with the key "victim"
    }
    assert len(shown) > 25
    assert [str(item) for name, text in shown.items() for item in findings(text, name)] == []


def words(text: str) -> list[tuple[int, str]]:
    return [(item.line, item.word) for item in findings(text)]


def test_words_are_found_with_their_lines() -> None:
    assert words("no victim\n") == [(1, "victim")]
    assert words("The dearest malloc.\nIt\nlasts; so\nmany do not last. Those of it.") == [
        (1, "dearest"),
        (3, "lasts"),
        (3, "so many"),
        (4, "do not last"),
        (4, "Those of"),
    ]
    assert words("The last call; victim 1004; besieged; film-like; an engine of those of us") == []


def test_code_of_a_page_is_not_scanned() -> None:
    page = (
        "It `tells`.\n\n    $ tell\n    told\n\n```c\nfilm\n```\n[text](film.md) <!-- film -->\n\n- item\n    twins\n"
    )
    assert words(markdown(page)) == [(12, "twins")]


def test_comments_docstrings_and_messages_are_scanned_and_names_are_not() -> None:
    source = 'told = "told"\n"""It\ntells."""\nraise E(f"{told} is told")  # a film of so\n# many\n'
    assert words(python(source)) == [(3, "tells"), (4, "told"), (4, "film"), (4, "so many")]
    assert words(c('int told; /* It\n * tells. */ p("is told", "told"); // a film\n')) == [
        (2, "tells"),
        (2, "told"),
        (2, "film"),
    ]

"""What the manual explains is what the tool says: every word of summaries and tables, every message that is quoted."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from doc_commands import commands

import heapwright
from heapwright._cli import fit, front
from heapwright._recipes.kinds.base import BasePool, sizes_summary
from heapwright._recipes.pools import KINDS, General
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._studies.recommendations import PICKS

SOURCE = Path(heapwright.__file__).parent
DOCS = Path(__file__).resolve().parents[2] / "docs"
TROUBLE = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{2,}", text.lower()))


_ROWS = re.findall(r"^\| ([^|]+) \|", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
GLOSSARY = words(" ".join(_ROWS))


def texts(tree: ast.AST) -> Iterator[str]:
    """What stands between quotes in code, docstrings aside; what is put in stands as NUL."""
    documented = (ast.FunctionDef, ast.ClassDef, ast.Module)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(value.value) if isinstance(value, ast.Constant) else "\0" for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def values(annotation: Any) -> Iterator[str]:
    """The words that a key of a pool takes."""
    if get_origin(annotation) is Literal:
        yield from (item for item in get_args(annotation) if isinstance(item, str))
    else:
        for item in get_args(annotation):
            yield from values(item)


# ---- the glossary ----------------------------------------------------------------------------------------------------


MOST_ROWS = 60
RECIPES = (DOCS / "recipes.md").read_text(encoding="utf-8")
_CODE = re.findall(r"`[^`\n]*`|\"[^\"\n]*\"|^\|.*", RECIPES, re.MULTILINE)
EXPLAINED = GLOSSARY | words(" ".join(_CODE).replace("_", " "))
"""Words of the glossary, and of the keys and values that the page on recipes explains."""


def test_the_glossary_has_at_most_sixty_rows() -> None:
    rows = [row for row in _ROWS if row not in ("word", "---")]
    assert 30 <= len(rows) <= MOST_ROWS
    assert len(set(rows)) == len(rows)


def test_every_word_of_a_summary_is_explained() -> None:
    shared = (General._free_list_summary, BasePool.range_summary, sizes_summary, Recipe.summary)
    output: list[Callable[..., Any]] = [*(kind.summary for kind in KINDS.values()), *shared]
    trees = [ast.parse(textwrap.dedent(inspect.getsource(item))) for item in output]
    code = words(" ".join(text for tree in trees for text in texts(tree)))
    fields = [field for model in KINDS.values() for field in model.model_fields.values()]
    keys = {item for field in fields for item in values(field.annotation)}
    assert (code | words(" ".join(keys))) - EXPLAINED == set()
    assert sorted(key for key in keys if f'"{key}"' not in RECIPES) == []


def test_so_is_every_word_of_the_zoo_as_it_is_printed() -> None:
    assert words(" ".join(zoo.load(name).summary() for name in zoo.names())) - EXPLAINED == set()


def test_so_is_every_heading_and_pick() -> None:
    of_fit = [column.heading for column in fit._COLUMNS]
    headings = [*front._HEADINGS.values(), *front._WORST.values(), *PICKS, *of_fit]
    assert words(" ".join(headings)) - GLOSSARY == set()


# ---- numbers -------------------------------------------------------------------------------------------------------

CHOSEN = {"10,000", "1,300,000", "200,000", "500,000"}
"""What the tutorial rounds, or asks for itself."""


def numbers(text: str) -> set[str]:
    """The ids of recipes and the numbers with commas."""
    return set(re.findall(r"\b[0-9a-f]{12}\b|\b\d{1,3}(?:,\d{3})+\b", text))


def test_the_tutorial_talks_of_what_it_prints() -> None:
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    shown = "\n".join("\n".join(command.shown) for command in commands(page) if command.mark != "not run")
    prose = "\n".join(line for line in page.split("\n") if not line.startswith("    "))
    assert numbers(prose) - numbers(shown) == CHOSEN


def test_the_readme_compares_by_numbers_that_the_pages_show() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    table = readme[readme.index("## Compared with common allocators") : readme.index("- *Long-run need*")]
    table = "\n".join(
        line for line in table.splitlines() if " behind " not in line
    )  # of them test_readme_table measures all
    shown = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("tutorial.md", "choosing.md"))
    assert len(numbers(table)) > 6
    assert numbers(table) - numbers(shown) == set()


BENCHMARKED = {
    "all-round": "all-round",
    "tcmalloc": "tcmalloc",
    "mimalloc": "mimalloc",
    "jemalloc": "jemalloc",
    "o1heap": "o1heap",
    "TLSF": "tlsf, original",
    "heap_4": "freertos-heap4",
}
"""Heaps as the alternatives are called, and as the benchmark does."""


def rows(path: Path) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]


def test_times_and_arenas_are_those_of_the_benchmark() -> None:
    measured = {cells[0]: cells for cells in reversed(rows(DOCS / "benchmark.md")) if len(cells) == 8}
    for name, benchmarked in BENCHMARKED.items():
        row = next(cells for cells in rows(DOCS / "alternatives.md") if name in cells[0])
        time, arena = measured[benchmarked][3], measured[benchmarked][6]
        assert f"{float(time):.2f}" in row[1], (name, time)
        assert arena == "-" or f"{float(arena):.2f}" == row[2], (name, arena)


def test_instructions_and_code_are_those_measured_on_the_target() -> None:
    measured = {cells[0].strip("`"): cells for cells in rows(DOCS / "target.md") if len(cells) == 7}
    shown = rows(DOCS / "alternatives.md")
    for name, key in {"all-round": "all-round", "dlmalloc": "dlmalloc", "TLSF": "tlsf", "o1heap": "o1heap"}.items():
        row = next(cells for cells in shown if name in cells[0])
        assert row[3:5] == [measured[key][2], f"{measured[key][5]}, {measured[key][6]}"]


# ---- messages --------------------------------------------------------------------------------------------------------

QUOTED = re.findall(r"^- `([^`]+)`:$", TROUBLE, re.MULTILINE)


@cache
def messages() -> str:
    """Everything that the tool and what it generates can say."""
    said = [text for path in SOURCE.rglob("*.py") for text in texts(ast.parse(path.read_text(encoding="utf-8")))]
    for pattern in ("*.c", "*.h"):
        for path in SOURCE.rglob(pattern):
            text = re.sub(r'"\s*\n\s*"', "", path.read_text(encoding="utf-8"))
            said.append(re.sub(r"\{\{.*?\}\}", "\0", text))
    return "\n".join(said)


def test_every_message_that_is_quoted_is_said() -> None:
    said = messages()
    assert len(QUOTED) > 30
    pieces = {(quoted, item.strip(" ;:,()")) for quoted in QUOTED for item in quoted.split("...")}
    assert [(quoted, item) for quoted, item in sorted(pieces) if item not in said] == []


@pytest.mark.parametrize("message", ["the zoo has no such alligator", "no emulator of "])
def test_a_message_that_is_not_said_is_found_out(message: str) -> None:
    assert message not in messages()

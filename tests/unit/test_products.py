"""What the package makes of the same inputs is what it made before: numbers, words, files, pictures and C."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import products
import pytest
from needed import missing
from products import COMMANDS, GROUPS, digest, table

ANEW = "not as before: python tests/products.py FOLDER writes it, here and at an older commit; without, the table"


@pytest.fixture(autouse=True, scope="module")
def versions() -> None:
    if products.versions() != products.made_with():
        missing(f"products are compared with what {products.made_with()} make")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("products")
    products.made(made)
    return made


@cache
def digests(group: str) -> dict[str, str]:
    return {name: digest(product) for name, product in GROUPS[group]()}


def others(found: Mapping[str, str]) -> list[str]:
    kept = table()
    return [name for name, made in found.items() if kept.get(name) != made]


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_made_of_recipes_is_as_before(group: str) -> None:
    assert others(digests(group)) == [], ANEW


def test_what_is_imported_is_as_before(tmp_path: Path) -> None:
    assert others({name: digest(product) for name, product in products.imported(tmp_path)}) == [], ANEW


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_says_and_writes_is_as_before(command: str, folder: Path) -> None:
    assert others({command: digest(products.commanded(folder, command))}) == [], ANEW


def test_the_table_has_nothing_else() -> None:
    made = {*COMMANDS, *(name for group in GROUPS for name in digests(group))}
    assert [name for name in table() if name not in made and not re.match(r"(log|packets) ", name)] == []


def test_numbers_words_and_moments_of_a_run_are_left_out() -> None:
    first = {"seconds": 1.2, "size": 0.1 + 0.2, "said": "made in 3.1 s, at 2026-01-02T03:04:05+00:00", "made": 3}
    assert products.plain(first) == {"size": 0.3, "said": "made in TIME, at TIME"}
    assert digest(first) == digest({**first, "seconds": 7, "size": 0.3}) != digest({**first, "size": 0.31})

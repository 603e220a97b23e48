"""A kind of pool has one file: who else names a kind is counted, so that it does not come to stand everywhere again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import heapwright
from heapwright._recipes.kinds.base import BasePool
from heapwright._recipes.pools import KINDS, KINDS_BY_NUMBER

ROOT = Path(heapwright.__file__).parent

MOST_FILES = 12
"""Source files that name a kind, its own home counted once."""

NOT_COUNTED = ("papers",)
"""Rooms that speak of what the papers had."""


def sources() -> list[Path]:
    results = [path for pattern in ("*.py", "*.c", "*.h") for path in ROOT.rglob(pattern)]
    return [path for path in results if path.relative_to(ROOT).parts[0] not in NOT_COUNTED]


def naming(kind: str) -> re.Pattern[str]:
    """Code that means the kind; the words fixed, general and partition have other uses, in prose and in Python."""
    model = KINDS[kind].__name__
    marks = (
        rf'"{kind}"',
        rf"\b{model}(?:Keys)?\b(?! pool)",
        rf"\b(?:HW|hw|pool|make_up|is)_{kind}\b",
        rf"\bHW_{kind.upper()}\b",
        rf"(?:->|\.){kind}\b(?!\()",
        rf"\b{kind}_(?:pool|word|head|order|class)",
        rf"\bpool_{kind}\.h",
    )
    return re.compile("|".join(marks))


def homes(kind: str, path: Path) -> str:
    """The file, or the folder of the kind that it lies in."""
    parts = path.relative_to(ROOT).parts
    if parts[:2] == ("_recipes", "kinds") and Path(parts[2]).stem == kind:
        return f"_recipes/kinds/{kind}"
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_stands_in_few_files(kind: str) -> None:
    mark = naming(kind)
    results = {homes(kind, path) for path in sources() if mark.search(path.read_text(encoding="utf-8"))}
    assert f"_recipes/kinds/{kind}" in results
    assert "_recipes/pools.py" in results
    assert len(results) <= MOST_FILES, sorted(results)


def test_every_kind_has_a_file_of_its_name() -> None:
    folder = ROOT / "_recipes" / "kinds"
    assert all((folder / f"{kind}.py").is_file() or (folder / kind / "pool.py").is_file() for kind in KINDS)


def test_the_core_has_a_number_for_each_kind() -> None:
    assert len(KINDS_BY_NUMBER) == len(KINDS)
    assert [KINDS[kind].__name__.lower() for kind in KINDS] == list(KINDS)


def test_questions_are_no_keys() -> None:
    """A key with the name of a question would answer it with its value."""
    questions = {name for name in vars(BasePool) if not name.startswith("_")} - set(BasePool.model_fields)
    assert [key for model in KINDS.values() for key in model.model_fields if key in questions] == []

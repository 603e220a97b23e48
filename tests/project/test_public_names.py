"""A class name leads to one definition, and a docstring can be read alone."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import heapwright

ROOT = Path(heapwright.__file__).parent

LEANING = ("Those ", "That ", "The same ", "As ", "So ", "It ", "Of ")
"""First words that point at what stands before the definition, which a reader who comes by search has not seen."""


@cache
def modules() -> dict[str, ast.Module]:
    """The syntax tree of every module of the package, by its path."""
    paths = sorted(ROOT.rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def leaning(tree: ast.Module) -> Iterator[str]:
    """First lines of docstrings of a module, its classes and functions that begin with one of `LEANING`."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node) or ""
            if text.startswith(LEANING):
                yield f"{getattr(node, 'name', 'module')}: {text.splitlines()[0]}"


def shared(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """The modules of each public class name that several of them define."""
    homes: dict[str, set[str]] = defaultdict(set)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(module)
    return {name: sorted(result) for name, result in homes.items() if len(result) > 1}


def test_no_public_class_name_is_defined_in_two_modules() -> None:
    assert len(modules()) > 300
    assert shared(modules()) == {}


def test_no_docstring_begins_with_a_word_that_needs_its_neighbour() -> None:
    assert [f"{module}: {line}" for module, tree in modules().items() for line in leaning(tree)] == []


def test_a_name_in_two_modules_and_a_leaning_docstring_are_found() -> None:
    item = ast.parse('class Load:\n    class Inner:\n        """Of a load."""\nclass _Own: ...')
    other = ast.parse('class Load: ...\nclass _Own: ...\ndef size() -> int:\n    """As `Load`."""')
    assert shared({"a.py": item, "b.py": other, "c.py": ast.parse("class Inner: ...")}) == {
        "Load": ["a.py", "b.py"],
        "Inner": ["a.py", "c.py"],
    }
    assert [*leaning(item), *leaning(other)] == ["Inner: Of a load.", "size: As `Load`."]
    assert list(leaning(ast.parse('"""Assets, offsets: Thatched."""'))) == []

"""Generated C compared with what one would have written by hand: length, helpers, assertions, and MISRA C:2012."""

from __future__ import annotations

import re
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from c_programs import ROOT

import heapwright as hw

FEWEST_ASSERTIONS = 15
MOST_FINDINGS, MOST_RULES = 37, 8
MOST_LINES = 832
"""Of half-fit's app_heap.c, its opening comment and the platform's section included."""
MOST_HELPERS = 22
"""Helpers that are a single statement, one that is written for each compiler counted once."""
DEEPEST = {"malloc": 6, "calloc": 7, "realloc": 7, "free": 6}
"""Functions of half-fit on the longest way down from what a program calls, that included; calloc calls malloc."""


def written(name: str, folder: Path) -> str:
    hw.generate(name, folder)
    return (folder / "app_heap.c").read_text()


@pytest.mark.needs("cppcheck")
def test_half_fit_deviates_from_few_rules(tmp_path: Path) -> None:
    written("half-fit", tmp_path)
    command = ["cppcheck", "-q", "--addon=misra", "--std=c11", "--template={file}:{line}:{id}", "app_heap.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    results = set(re.findall(r"^app_heap\.c:(\d+):misra-c2012-([\d.]+)$", done.stderr, re.MULTILINE))
    assert results, done.stderr
    rules = {rule for _, rule in results}
    counted = Counter(rule for _, rule in results)
    page = (ROOT / "docs" / "misra.md").read_text(encoding="utf-8")
    assert {
        rule: int(count) for rule, count in re.findall(r"^\| ([\d.]+) .*? \| (\d+) \|", page, re.MULTILINE)
    } == counted
    guide = (ROOT / "docs" / "generated-code.md").read_text(encoding="utf-8")
    assert f"finds {len(results)} deviations from" in guide
    assert len(results) <= MOST_FINDINGS
    assert len(rules) <= MOST_RULES, rules


def test_half_fit_is_as_long_as_it_was(tmp_path: Path) -> None:
    text = written("half-fit", tmp_path)
    assert len(text.splitlines()) <= MOST_LINES
    assert not re.search("ASAN|VALGRIND|sanitiz", text)
    helper = r"^(?:static|APP_HOT|APP_COLD)[^;{}]*?(\w+)\([^;{}]*?\n\{\n(.*?)^\}"
    bodies = re.findall(helper, text, re.MULTILINE | re.DOTALL)
    single = {name for name, body in bodies if body.count(";\n") == 1 and not re.search(r"\b(if|for|while) \(", body)}
    assert "app_load4" in single
    assert len(single) <= MOST_HELPERS


def test_the_worst_path_is_short(tmp_path: Path) -> None:
    text = re.sub(r"/\*.*?\*/", "", written("half-fit", tmp_path), flags=re.DOTALL)
    bodies: dict[str, str] = defaultdict(str)
    for result in re.finditer(
        r"^[a-zA-Z][^\n;{}#]*?\bapp_(\w+)\([^;{}]*\)\s*\{(.*?)^\}", text, re.MULTILINE | re.DOTALL
    ):
        bodies[result[1]] += result[2]
    calls = {name: set(re.findall(r"\bapp_(\w+)\(", output)) & bodies.keys() for name, output in bodies.items()}

    def depth(name: str) -> int:
        return 1 + max((depth(callee) for callee in calls[name] - {name}), default=0)

    assert {name: depth(name) for name in DEEPEST} == DEEPEST


@pytest.mark.parametrize("name", ["half-fit", "tlsf"])
def test_what_a_program_calls_comes_first(name: str, tmp_path: Path) -> None:
    text = written(name, tmp_path)
    defined = re.findall(r"^(static|APP_HOT|APP_COLD|\w[\w ]*?)[ *]+(\w+)\([^;{}]*\)\n\{", text, re.MULTILINE)
    behind = text[text.index("app_init(void *arena, size_t bytes)\n{") :]
    assert behind.index("void *app_malloc(") < behind.index("void app_free(") < behind.index("\nstatic ")
    assert defined


@pytest.mark.parametrize("name", ["half-fit", "tlsf", "victim-bins", "lea-2.7.2"])
def test_a_heap_asserts_what_it_believes(name: str, tmp_path: Path) -> None:
    text = written(name, tmp_path) + (tmp_path / "app_heap_checks.h").read_text()
    assert len(re.findall(r"APP_ASSERT\((?!condition)", text)) >= FEWEST_ASSERTIONS

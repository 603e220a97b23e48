"""What a test needs and a machine may lack is requested by one rule, and nothing that a test started stays."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import tool_requirements

TESTS = Path(__file__).resolve().parents[1]
MAY = {"tool_requirements.py", Path(__file__).name, "partial_toolchains.py", "test_partial_toolchains.py"}
"""The last two play machines without a tool, and look whether tests skip there."""
SKIPS = {"skip", "skipif", "importorskip", "SkipTest", "which"}


def asked(source: str) -> Iterator[str]:
    """Each place of a source that looks for a program, or skips, itself."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in SKIPS:
            yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "") in ("pytest", "shutil", "unittest"):
            yield from (f"{node.lineno}: {name.name}" for name in node.names if name.name in SKIPS)


@pytest.mark.parametrize(
    "source",
    [
        'pytest.skip("no")',
        "@pytest.mark.skipif(True, reason='no')\ndef test(): pass",
        'pytest.importorskip("dask")',
        'shutil.which("cc")',
        'from shutil import which\nwhich("cc")',
        "from pytest import skip",
        'unittest.SkipTest("no")',
    ],
)
def test_a_rule_of_its_own_is_found(source: str) -> None:
    assert len(list(asked(source))) == 1


def test_one_file_asks_and_skips() -> None:
    files = [path for path in TESTS.rglob("*.py") if path.name not in MAY]
    assert len(files) > 100
    results = [f"{path.relative_to(TESTS)}:{place}" for path in files for place in asked(path.read_text())]
    assert not results, f"use tests/tool_requirements.py: {results}"


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)


@pytest.mark.usefixtures("nothing")
def test_what_is_absent_skips_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.skip.Exception, match="valgrind is absent: it is not installed"):
        tool_requirements.needs("valgrind")
    assert tool_requirements.compilers() == []
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="valgrind is absent"):
        tool_requirements.needs("valgrind")
    assert tool_requirements.compilers() == ["gcc", "clang"]
    with pytest.raises(pytest.fail.Exception, match="no real traces"):
        tool_requirements.missing("no real traces")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    with pytest.raises(pytest.skip.Exception, match="no real traces"):
        tool_requirements.missing("no real traces")

"""Errors: one line that a person can act on, which names a parameter of the library and no flag of the command line."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import heapwright
import heapwright_papers
from heapwright._cli import heapwright as command_line
from heapwright._cli import main
from heapwright._support.errors import HeapwrightError, ParameterError

ROOT = Path(heapwright.__file__).parent


def commands(group: click.Group) -> Iterator[click.Command]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from commands(command) if isinstance(command, click.Group) else (command,)


FLAGS = {flag for command in commands(command_line) for one in command.params for flag in one.opts if flag[:1] == "-"}


QUOTING = {
    "_diagnose/offers.py",
    "_heaps/lwip_pools.py",
    "_heaps/system_sizes.py",
    "_platforms/size_options.py",
    "_traces/failures.py",
}
"""Files whose texts quote a command as the step to take, for files and answers that people of any interface read."""


def test_an_error_names_the_parameter_that_would_help() -> None:
    plain, wrong = HeapwrightError("too small", parameter="arena"), ParameterError("-1: too small", parameter="arena")
    assert (str(plain), plain.parameter) == ("too small", "arena")
    assert (str(wrong), wrong.parameter) == ("arena: -1: too small", "arena")
    assert HeapwrightError("no such file").parameter is None


def texts(tree: ast.AST) -> Iterator[str]:
    """Every text in the code but its docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_the_library_names_no_flag_of_the_command_line() -> None:
    """In messages: what stands alone is a word for a compiler, and pages of the papers quote commands."""
    assert {"--arena", "--live", "-o", "--held-out"} <= FLAGS
    flag = re.compile("|".join(rf"(?<![\w-]){re.escape(item)}(?![\w-])" for item in sorted(FLAGS)))
    wrong = []
    papers = Path(heapwright_papers.__file__).parent
    for path in (*ROOT.rglob("*.py"), *papers.rglob("*.py")):
        place = path.relative_to(ROOT if path.is_relative_to(ROOT) else papers.parent)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        raises = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
        is_command = place.parts[0] == "_cli" or place.as_posix() in QUOTING
        for part in raises if place.parts[0] == papers.name else [] if is_command else [tree]:
            wrong += [f"{place}: {text}" for text in texts(part) if " " in text and flag.search(text)]
    assert wrong == []


@pytest.mark.parametrize(
    ("error", "exit_code", "says"),
    [
        (HeapwrightError("too small; give more", parameter="arena"), 1, "heapwright: too small; give more (--arena)\n"),
        (HeapwrightError("no such trace", parameter="held_out"), 1, "heapwright: no such trace\n"),
        (HeapwrightError("no such trace"), 1, "heapwright: no such trace\n"),
        (ParameterError("-1: too small", parameter="arena"), 2, "Error: Invalid value for '--arena': -1: too small\n"),
    ],
)
def test_the_command_line_adds_the_flag_that_the_command_has(
    error: HeapwrightError,
    exit_code: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("heapwright._traces.trace.Trace.read", fail)
    monkeypatch.setattr("sys.argv", ["heapwright", "replay", "a.parquet", "--heap", "tlsf"])
    with pytest.raises(SystemExit) as remaining:
        main()
    assert remaining.value.code == exit_code
    assert capsys.readouterr().err.endswith(says)

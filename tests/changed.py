"""Runs tests against a changed module: in a fork that imports the change in place of what is on disk."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import resource
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_loader
from pathlib import Path
from types import CodeType
from typing import Any, Protocol

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "heapwright"
ROOT = PACKAGE.parents[1]
SCRATCH = ROOT / "build" / "mutate"
WARM = ("altair", "click", "duckdb", "hypothesis.extra.numpy", "numpy.ma", "pydantic.main", "rich.progress")
"""What the forks need not import again."""


class Change(Protocol):
    """A module of the package as it is not."""

    @property
    def path(self) -> Path:
        """Its file."""

    def code(self) -> CodeType:
        """What is run in place of it."""


class Chosen:
    """A pytest plugin that runs these tests alone, in this order."""

    def __init__(self, tests: list[str]) -> None:
        self.tests = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((x for x in items if x.nodeid in self.tests), key=lambda x: self.tests[x.nodeid])


def warm() -> None:
    """Import what every fork would import again, and make the folder for what they print."""
    for name in WARM:
        importlib.import_module(name)
    SCRATCH.mkdir(parents=True, exist_ok=True)


def run(files: list[str], *plugins: object) -> int:
    options = ["-qx", "-pno:cacheprovider", "-Wignore::pytest.PytestAssertRewriteWarning", "--hypothesis-seed=0"]
    return int(pytest.main([*options, f"--basetemp={SCRATCH / 'tmp'}", *files], plugins=plugins))


def forked(log: str, cpu_seconds: int, work: Callable[..., int], *arguments: Any) -> int:
    """What `work` returns in a process of its own, or minus the signal that ended it."""

    def child() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        with (SCRATCH / log).open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.exit(work(*arguments))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    return int(process.exitcode or 0)


def noticed(change: Change, files: list[list[str]]) -> int:
    """Not 0 where one of these tests, file by file, fails, or none can be imported."""

    class Loader(SourceFileLoader):
        def get_code(self, _: str) -> CodeType:
            return change.code()

    class Finder:
        def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
            return spec_from_loader(name, Loader(name, str(change.path))) if name == module else None

    module = ".".join(change.path.relative_to(PACKAGE.parent).with_suffix("").parts)
    sys.meta_path.insert(0, Finder())
    codes = (run([tests[0].partition("::")[0]], Chosen(tests)) for tests in files)
    return next((code for code in codes if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)), 0)

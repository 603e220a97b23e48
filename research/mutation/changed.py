"""Runs tests against a changed module: in a fork that imports the change in place of what is on disk.

Processes that the tests start import the change, too; commands of `forked_commands` are forks of one that has.
"""

from __future__ import annotations

import contextlib
import dis
import gc
import importlib
import inspect
import multiprocessing
import os
import pkgutil
import resource
import shutil
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any, Protocol

import changed_processes
import pytest
from changed_processes import CHANGED
from changed_processes import PACKAGE as PACKAGE

ROOT = PACKAGE.parents[1]
SCRATCH = ROOT / "build" / "mutate"
HELPERS = ROOT / "tests" / "helpers"
WARM = ("altair", "click", "duckdb", "hypothesis.extra.numpy", "numpy.ma", "pydantic.main", "rich.progress")
"""What the forks need not import again."""

LOOKED_UP = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
"""Instructions by which what is imported looks up a name of its module."""

PATIENCE = 600
"""Seconds that a fork is waited for, however little of the processor it takes."""

FORKS = ("forks", "HEAPWRIGHT")
"""What tests say that start commands as forks."""


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
    sys.path.append(str(HELPERS))
    for name in WARM:
        importlib.import_module(name)
    for module in pkgutil.walk_packages([str(PACKAGE)], "heapwright."):
        if not module.name.startswith("heapwright.recorder"):
            importlib.import_module(module.name)
    SCRATCH.mkdir(parents=True, exist_ok=True)


def mine(name: str) -> Path:
    """A file or folder of this process alone."""
    return SCRATCH / f"{name}-{os.getpid()}"


def run(files: list[str], *plugins: object) -> int:
    options = ["-qx", "-pno:cacheprovider", "-Wignore::pytest.PytestAssertRewriteWarning", "--hypothesis-seed=0"]
    return int(pytest.main([*options, f"--basetemp={mine('tmp')}", *files], plugins=plugins))


def forked(log: str, cpu_seconds: int, work: Callable[..., int], *arguments: Any) -> int:
    """What `work` returns in a process of its own, or minus the signal that ended it: for one that waits, too."""

    def child() -> None:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        with (SCRATCH / log).open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.exit(work(*arguments))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    try:
        process.join(PATIENCE)
    finally:
        if process.pid and process.is_alive():  # it waits for what a change let run on, or this is ended
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
    return int(process.exitcode or 0)


def noticed(change: Change, batches: list[list[str]]) -> int:
    """Not 0 where one of these tests, batch by batch, fails, or none can be imported."""
    with applied(change), forking(batches):
        for tests in batches:
            files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
            ended = run(files, Chosen(tests))
            if ended not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                return ended
    return 0


def failing(change: Change, files: list[str]) -> int:
    """The exit code of pytest on all tests of these files, which ends at the first failure."""
    with applied(change), forking([files]):
        return run(files)


@contextlib.contextmanager
def applied(change: Change) -> Iterator[None]:
    """While this process, and those that it starts, import the changed module."""
    code, written = change.code(), mine("change")
    SCRATCH.mkdir(parents=True, exist_ok=True)
    changed_processes.write(written, change.path, code)
    if not swapped(change.path, code):
        ours = [
            module for module in sys.modules if module.split(".")[0] == "heapwright" and not module.endswith("._native")
        ]
        for name in ours:
            del sys.modules[name]
        changed_processes.change(change.path, code)
    os.environ.update(changed_processes.in_processes(SCRATCH / "processes", CHANGED, written))
    try:
        yield
    finally:
        written.unlink()
        shutil.rmtree(mine("tmp"), ignore_errors=True)


def swapped(path: Path, code: CodeType) -> bool:
    """Whether the changed functions could be changed where they are; any other module must run again."""
    before = compile(path.read_bytes(), path, "exec")
    old, new = list(functions(before)), list(functions(code))
    if len(old) != len(new) or [*map(outside, bodies(before))] != [*map(outside, bodies(code))]:
        return False
    changed = {item: other for item, other in zip(old, new, strict=True) if item != other}
    if while_imported(before) & {item.co_name for item in changed}:
        return False
    results = [item for item in gc.get_objects() if isinstance(item, FunctionType) and item.__code__ in changed]
    results = [item for item in results if item.__code__.co_filename == str(path)]
    if not results or any(item.__code__.co_freevars != changed[item.__code__].co_freevars for item in results):
        return False
    for item in results:
        item.__code__ = changed[item.__code__]
    return True


def bodies(code: CodeType) -> Iterator[CodeType]:
    """The code of a module and of the classes in it."""
    yield code
    for co_const in code.co_consts:
        if isinstance(co_const, CodeType) and not co_const.co_flags & inspect.CO_OPTIMIZED:
            yield from bodies(co_const)


def functions(code: CodeType) -> Iterator[CodeType]:
    """The code of the functions of a module and of its classes; those within them are theirs."""
    for body in bodies(code):
        yield from (
            co_const
            for co_const in body.co_consts
            if isinstance(co_const, CodeType) and co_const.co_flags & inspect.CO_OPTIMIZED
        )


def while_imported(code: CodeType) -> set[str]:
    """Names that are used while a module is imported, by itself, its classes, or functions of such names."""
    named = defaultdict[str, list[CodeType]](list)
    for item in functions(code):
        named[item.co_name].append(item)
    results = {
        str(step.argval) for body in bodies(code) for step in dis.get_instructions(body) if step.opname in LOOKED_UP
    }
    within = [
        item for name in ("<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>") for item in named[name]
    ]
    waiting = [*within, *(item for name in results for item in named[name])]
    while waiting:
        item = waiting.pop()
        waiting += [inner for inner in item.co_consts if isinstance(inner, CodeType)]
        for name in {*item.co_names} - results:
            results.add(name)
            waiting += named[name]
    return results


def outside(code: CodeType) -> tuple[object, ...]:
    """What a module or class does itself."""
    return (
        code.co_code,
        code.co_names,
        [repr(co_const) for co_const in code.co_consts if not isinstance(co_const, CodeType)],
    )


@contextlib.contextmanager
def forking(batches: list[list[str]]) -> Iterator[None]:
    """While commands are answered by a fork of this process, which has imported what they need, but for the package."""
    files = {test.partition("::")[0] for tests in batches for test in tests}
    if not any(word in Path(file).read_text(encoding="utf-8") for file in files for word in FORKS):
        yield
        return
    commands, requested, output = importlib.import_module("forked_commands"), os.pipe(), os.pipe()
    if os.fork() == 0:  # before pytest has changed anything
        os.close(requested[1])
        while os.read(requested[0], 1):
            if server := os.fork():
                os.write(output[1], server.to_bytes(8, "little"))
            else:
                os.setsid()
                importlib.import_module("fork_server").main(str(commands._SOCKET))
        os._exit(0)

    class Server:
        """In place of `subprocess.Popen` there."""

        def __init__(self, *_: object, **__: object) -> None:
            os.write(requested[1], b"!")
            self.id = int.from_bytes(os.read(output[0], 8), "little")

        def poll(self) -> int | None:
            state = Path(f"/proc/{self.id}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]
            return 1 if state == "Z" else None

        def kill(self) -> None:
            os.kill(self.id, signal.SIGKILL)

        def __enter__(self) -> Server:
            return self

        def __exit__(self, *_: object) -> None:
            self.kill()

    vars(commands)["subprocess"] = SimpleNamespace(Popen=Server)
    try:
        yield
    finally:
        os.close(requested[1])

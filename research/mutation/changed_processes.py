"""What every process of the tests does as it starts, if requested: import a changed module, or record lines.

Python imports `sitecustomize` at its start: `in_processes` makes one that calls `started`, and puts it on PYTHONPATH.
Processes started with -I or with an environment of their own do neither.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import marshal
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_loader
from pathlib import Path
from types import CodeType
from typing import Any

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "heapwright"

CHANGED, RECORD = "HEAPWRIGHT_TESTS_CHANGED", "HEAPWRIGHT_TESTS_RECORD"
"""In the environment: a file that `write` made, and the folder that takes what each process ran."""

PYTEST = "PYTEST_CURRENT_TEST"
"""What pytest sets: the test whose process this is."""


def in_processes(folder: Path, variable: str, value: Path) -> dict[str, str]:
    """What to add to the environment, so that processes do what the variable asks."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import changed_processes\ndel sys.path[0]\nchanged_processes.started()\n",
        encoding="utf-8",
    )
    return {variable: str(value), "PYTHONPATH": str(folder)}


def started() -> None:
    """What is requested of this process."""
    if file := os.environ.get(CHANGED):
        path, code = marshal.loads(Path(file).read_bytes())
        change(Path(path), code)
    if folder := os.environ.get(RECORD):
        Recording(Path(folder))


def write(file: Path, path: Path, code: CodeType) -> None:
    """Keep a change for the processes that the tests start."""
    file.write_bytes(marshal.dumps((str(path), code)))


def change(path: Path, code: CodeType) -> None:
    """Import this code in place of the module of that file."""

    class Loader(SourceFileLoader):
        def get_code(self, _: str) -> CodeType:
            return code

    class Finder:
        def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
            return spec_from_loader(name, Loader(name, str(path))) if name == module else None

    module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    sys.meta_path.insert(0, Finder())


class Recording:
    """Which lines of the package each test runs in this process, and how long it takes; kept when the process ends."""

    now: Recording | None = None
    """The recording of this process."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self.folder, self.seconds, self.since = folder, defaultdict[str, float](float), cpu_seconds()
        self.lines = coverage.Coverage(data_file=None, source=[str(PACKAGE)], config_file=False)
        quiet = ["module-not-imported", "module-not-measured", "no-data-collected", "trace-changed"]
        self.lines.set_option("run:disable_warnings", quiet)
        self.lines.start()
        Recording.now, self.test, self.forked = self, "", False
        atexit.register(self.keep)
        before_leaving(lambda: None if self.forked else self.keep())
        os.register_at_fork(before=self.lines.get_data, after_in_child=self.begin)  # what was imported is the parent's

    def begin(self) -> None:
        """In a fork nothing has run yet."""
        self.seconds.clear()
        self.forked = True
        self.since = cpu_seconds()

    def switch(self, test: str) -> None:
        """What runs from now on belongs to that test."""
        self.seconds[self.test] += cpu_seconds() - self.since
        self.test, self.since = test, cpu_seconds()
        self.lines.switch_context(test)

    def keep(self) -> None:
        """When the process ends, write what was recorded into a file of the folder; once."""
        if Recording.now is None:
            return
        Recording.now = None
        self.switch("")
        self.lines.stop()
        self.write(os.environ.get(PYTEST, "").rpartition(" ")[0])

    def write(self, mine: str = "", file: str = "") -> None:
        """Write what tests of that file did, or those of all; what no test is known to have done is that of `mine`."""
        data = self.lines.get_data()
        data.set_query_contexts([f"^{re.escape(file)}::"] if file else None)
        ran: dict[str, dict[str, list[int]]] = defaultdict(dict)
        for path in (item for item in data.measured_files() if item.endswith(".py")):
            by_test = defaultdict[str, list[int]](list)
            for line, tests in data.contexts_by_lineno(path).items():
                for test in tests:
                    by_test[test or mine].append(line)
            for test, lines in by_test.items():
                ran[test][path] = lines
        seconds = defaultdict[str, float](float)
        for test in [test for test in self.seconds if test.startswith(file)]:
            if test or self.forked:  # what a test starts itself it waits for, and counts
                seconds[test or mine] += self.seconds.pop(test)
        kept: dict[str, Any] = {"lines": ran, "seconds": seconds, "whole": file}
        whole = self.folder / f"{os.getpid()}-{time.time_ns()}.json"
        with contextlib.suppress(OSError):  # a process that a test lets write little is not recorded
            whole.with_suffix(".part").write_text(json.dumps(kept), encoding="utf-8")
            whole.with_suffix(".part").replace(whole)


def before_leaving(keep: Callable[[], None]) -> None:
    """Call this before the process ends at once, by `os._exit`: commands that loaded DuckDB do, and skip `atexit`."""
    leave = os._exit

    def left(code: int) -> None:
        keep()
        leave(code)

    vars(os)["_exit"] = left


def cpu_seconds() -> float:
    """Of this process, and of those that it waited for."""
    return sum(os.times()[:4])

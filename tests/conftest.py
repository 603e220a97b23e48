"""Fixtures that several test modules share."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import forked_commands
import kept_builds
import originals
import processes
import pytest
import shared_database
import short_explorations
from behaviour import build_script
from chromium import Chromium, chromium
from hypothesis import settings
from platform_builds import fetched
from tool_requirements import missing, needs

from heapwright._support import gc_tuning, temporary

# Machines are shared and noisy: how long an example takes says nothing.
settings.register_profile("heapwright", deadline=None)
settings.load_profile("heapwright")

gc.set_threshold(gc_tuning.OBJECTS)  # as the command line has it


def pytest_collection_finish() -> None:
    """What stands for all tests is no garbage before the end: each look through it takes half a second."""
    gc.freeze()
    atexit.register(gc.unfreeze)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Processes of pytest-xdist end without what is done at exit."""
    temporary.remove_living()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The mark `needs`, before any fixture is made."""
    for mark in item.iter_markers("needs"):
        needs(*mark.args)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """What tests of this process started has ended when the last of them has."""
    mark = str(os.getpid())
    os.environ[processes.MARK] = mark
    yield
    if remaining := processes.left_running(mark):
        processes.end(remaining)
        pytest.fail("left running: " + "; ".join(f"{process}: {command}" for process, command in remaining.items()))


@pytest.fixture(scope="session", autouse=True)
def briefly() -> Iterator[None]:
    """What explorations of this process may pick is tried for fewer calls, and what it times compiles faster."""
    with pytest.MonkeyPatch.context() as patched:
        for place, form, effort in short_explorations.forms():
            patched.setattr(place, form, effort)
        for module, flags in short_explorations.flags().items():
            patched.setattr(module, "FLAGS", flags)
        yield


@pytest.fixture(scope="session", autouse=True)
def tables_are_read_by_one() -> Iterator[None]:
    """One database of this process reads and writes what is Parquet."""
    with shared_database.shared():
        yield


@pytest.fixture(scope="session", autouse=True)
def objects_are_kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What was written for a recipe, or compiled for a target or a proof, is not made again in this run."""
    with kept_builds.keeping(tmp_path_factory.getbasetemp()):
        yield


@pytest.fixture(scope="module")
def brief_proofs() -> Iterator[None]:
    """Proofs of this module take less time, but in long runs."""
    with kept_builds.brief_proofs():
        yield


@pytest.fixture(scope="module")
def small_pictures() -> Iterator[None]:
    """PNGs of this module are small, but in long runs."""
    with short_explorations.small_pictures():
        yield


@pytest.fixture(scope="session")
def forks() -> Iterator[None]:
    """Commands that `forked_commands.HEAPWRIGHT` starts are forks of one process, and brief as this one is."""
    with forked_commands.forking(), pytest.MonkeyPatch.context() as patched:
        patched.setenv(short_explorations.ASKED, "1")
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real traces and packet tables kept next to the repository; they are not part of it.

    Where they are, CI has to find them. The public host cannot have them.
    """
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        missing(f"{folder} is absent: it holds the real traces this test reads")
    return folder


@pytest.fixture(scope="session")
def kernel() -> Path:
    """FreeRTOS's sources."""
    return fetched(originals.freertos).parents[1]


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    """One for all modules, as it takes a second to start; how it shows a page is set before each."""
    with chromium() as result:
        yield result


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that plays behaviour tables."""
    return build_script(tmp_path_factory.mktemp("script"))

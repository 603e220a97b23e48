"""Unit tests run in seconds on a machine without tools."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def no_process() -> Iterator[None]:
    """What starts a compiler, an emulator, a browser or another Python is an integration test."""

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a unit test starts a process; move it to tests/integration")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", refuse)
        yield


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cross compiler and no emulator for the pages of papers: looking for them starts processes."""
    from heapwright_papers import measuring

    monkeypatch.setattr(measuring, "session", lambda: None)

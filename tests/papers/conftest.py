"""Fixtures of the tests of the source papers."""

from __future__ import annotations

import pytest

from heapwright_papers import measuring


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """No compiler or emulator: nothing can be measured."""
    monkeypatch.setattr(measuring, "session", lambda: None)

"""Fixtures that several test modules share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Machines are shared and noisy: how long an example takes says nothing.
settings.register_profile("heapwright", deadline=None)
settings.load_profile("heapwright")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real traces and packet tables kept beside the repository; they are not part of it.

    Where they are, CI has to find them. The public host cannot have them.
    """
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        message = f"{folder} is absent: it holds the real traces this test reads"
        if os.environ.get("CI") and not os.environ.get("GITHUB_ACTIONS"):
            pytest.fail(message)
        pytest.skip(message)
    return folder

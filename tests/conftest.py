"""Fixtures that several test modules share."""

from __future__ import annotations

from pathlib import Path

import originals
import pytest
from hypothesis import settings
from platform_builds import fetched, missing

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
        missing(f"{folder} is absent: it holds the real traces this test reads")
    return folder


@pytest.fixture(scope="session")
def kernel() -> Path:
    """FreeRTOS's sources."""
    return fetched(originals.freertos).parents[1]

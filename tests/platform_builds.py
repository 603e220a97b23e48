"""What the tests of platforms share: programs that may not be installed."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skip for something that is not installed, but fail in CI, which promises it; the public host does not."""
    if os.environ.get("CI") and not os.environ.get("GITHUB_ACTIONS"):
        pytest.fail(what)
    pytest.skip(what)

"""Faults that once went through are planted one by one, and the test written against each fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def test_no_planted_fault_goes_through() -> None:
    done = subprocess.run([sys.executable, TESTS / "planted.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

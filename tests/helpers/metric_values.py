"""Metrics that a test computes with."""

from __future__ import annotations

from heapwright._replay.metrics import Value


def known(value: Value) -> int | float:
    """A metric that is there."""
    assert value is not None
    return value

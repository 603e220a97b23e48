"""How long random campaigns are, and what else the usual run does briefly: docs/developing/tests.md, "Fast tests"."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

EFFORT = int(os.environ.get("HEAPWRIGHT_FUZZ", "1"))
"""Random campaigns are this many times the usual length; from 2 on nothing is brief."""

SEED = int(os.environ.get("HEAPWRIGHT_SEED", "0"))
"""Which random inputs: long runs have others each time."""

LONG = EFFORT > 1


def brief(short: Item, whole: Item) -> Item:
    """The first in the usual run, the second in long ones."""
    return whole if LONG else short


def some(items: Sequence[Item], step: int, start: int = 0) -> list[Item]:
    """One in `step` of them in the usual run, all in long ones."""
    return list(items) if LONG else list(items[start::step])


def by_turns(items: Sequence[Item], turn: int) -> list[Item]:
    """One of them in the usual run, another for the next turn; all in long ones."""
    return list(items) if LONG or not items else [items[turn % len(items)]]


def tell(what: str, count: int) -> None:
    """Add to what `make nightly` says, at its end, that it tried."""
    if output := os.environ.get("HEAPWRIGHT_OPERATIONS"):
        with open(output, "a", encoding="utf-8") as file:
            file.write(f"{count} {what}\n")

"""Ahead: the zoo is tried while the space is still being made, so that replays begin at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from heapwright._explore.evaluation import Evaluator, SearchCandidate

MOST_CALLS = 50_000
"""On longer traces a space is made in the time of a few replays, and these could not be broken off."""


@contextmanager
def trying_ahead(trier: Evaluator, zoo: Iterable[SearchCandidate]) -> Iterator[None]:
    """Have a thread try recipes until the context is left; ``trier`` keeps what came of them for their turn.

    Nothing is tried where what is measured takes a machine that does nothing else.
    """
    remaining = threading.Event()

    def work() -> None:
        with suppress(Exception):  # raised again where the recipe has its turn
            for item in zoo:
                if remaining.is_set():
                    break
                trier.try_ahead(item)

    worker = threading.Thread(target=work)
    if trier.objectives and sum(map(len, trier.traces)) <= MOST_CALLS:
        worker.start()
    try:
        yield
    finally:
        remaining.set()
        if worker.is_alive():
            worker.join()

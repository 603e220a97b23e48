"""Progress on stderr: bars and steps on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from heapwright._cli.output import note

if TYPE_CHECKING:
    from heapwright._api import Progress

PLAIN_SECONDS = 10


@contextmanager
def exploration_progress() -> Iterator[Callable[[Progress], None]]:
    """A bar where stderr is a terminal, a line every ten seconds elsewhere."""
    if not sys.stderr.isatty():
        yield _plain_progress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]:,.0f} replays/s, {task.fields[left]} left{task.fields[aim]}"),
    )
    with Bars(*columns, console=Console(stderr=True)) as bars:
        tasks = {}

        def show(progress: Progress) -> None:
            if progress.what not in tasks:
                tasks[progress.what] = bars.add_task(progress.what, rate=0.0, left="-", aim="")
            remaining = _duration(progress.seconds_left)
            task = tasks[progress.what]
            done, total = progress.finished, progress.total
            bars.update(task, completed=done, total=total, rate=progress.rate, left=remaining, aim=_aim(progress))

        yield show


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """A function that notes each step of a long command: all steps on a terminal, elsewhere those due.

    Elsewhere the first step is due, then one every ten seconds, and the last one at the end.
    """
    if sys.stderr.isatty():
        yield note
        return
    noted_at: float | None = None
    pending: str | None = None

    def report(step: str) -> None:
        nonlocal noted_at, pending
        now = time.monotonic()
        pending = step
        if noted_at is None or now - noted_at >= PLAIN_SECONDS:
            note(step)
            noted_at, pending = now, None

    yield report
    if pending is not None:
        note(pending)


def _plain_progress() -> Callable[[Progress], None]:
    shown = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal shown
        if time.monotonic() - shown >= PLAIN_SECONDS:
            shown = time.monotonic()
            note(
                f"{progress.what}: {progress.finished:,} of {progress.total:,} replays, "
                f"{progress.rate:,.0f} a second, {_duration(progress.seconds_left)} left{_aim(progress)}"
            )

    return show


def _aim(progress: Progress) -> str:
    """The tolerance of the Pareto front, if recipes are pruned."""
    if progress.tolerance is None:
        return ""
    from heapwright._studies.analysis import nearness

    return f"; {nearness(progress.tolerance)}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"

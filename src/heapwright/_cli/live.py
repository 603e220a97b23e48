"""`heapwright live`: the heap of a running board on the terminal, and its trace at the end."""

from __future__ import annotations

import dataclasses
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heapwright._cli.options import Duration, arena_option
from heapwright._cli.output import json_option, note, print_json, print_sentences

if TYPE_CHECKING:
    from heapwright._api import FollowedProgram, Moment

FORMATS = ("text", "board")


@click.command()
@click.argument("source", metavar="SOURCE")
@click.option(
    "-o",
    "--output",
    metavar="TRACE",
    required=True,
    type=click.Path(path_type=Path),
    help="The trace to write at the end, a Parquet file.",
)
@click.option(
    "--heap",
    "heaps",
    metavar="HEAP",
    multiple=True,
    default=("all-round",),
    show_default=True,
    help="A recipe to replay the calls on: a zoo NAME, RECIPE.toml or STUDY:ID. Repeat the flag for more.",
)
@arena_option
@click.option("--format", "format_name", type=click.Choice(FORMATS), help="The format of the log; detected by default.")
@click.option(
    "--baud", type=click.IntRange(min=1), metavar="N", default=115200, show_default=True, help="Speed of a serial port."
)
@click.option("--elf", type=click.Path(path_type=Path), metavar="ELF", help="The board's program, which names sites.")
@click.option("--for", "seconds", type=Duration(), metavar="TIME", help="End after this time: 90s, 5m, 1h.")
@json_option
def command(
    source: str,
    output: Path,
    heaps: tuple[str, ...],
    arena: int | None,
    format_name: str | None,
    baud: int,
    elf: Path | None,
    seconds: float | None,
    as_json: bool,
) -> None:
    """Show the heap calls of a running program, and the memory that heaps need for them; write a trace at the end.

    SOURCE is the output of its tracing shims or prints (docs/logs.md): a serial port, a pseudo-terminal, a file that
    grows, a pipe, HOST:PORT or a listening socket, or - for standard input. A terminal shows a page; other outputs get
    a line per second.

    Ctrl-C, --for and the end of the input end it. The trace is the one that `heapwright import` makes of the same log,
    which is kept as TRACE.log until the trace is written.
    """
    from heapwright import _api as api

    end = _End(seconds)
    with end.on_signals(), _showing(source, arena, as_json) as draw:

        def show(moment: Moment) -> None:
            try:
                draw(moment)
            except OSError:  # the terminal is gone
                end.requested = True

        lived = api.live(
            source,
            output,
            heaps,
            arena=arena,
            format=format_name,
            baud=baud,
            elf=elf,
            show=show,
            going_on=end.is_far,
        )
        show(lived.last)
    for info in (*lived.trace.repairs, *lived.trace.caveats):
        note(f"{source}: {info}")
    if lived.trace.failures:
        note(f"{source}: {lived.trace.failures}")
    if as_json:
        print_json(_data(lived, output))
        return
    trace = lived.trace
    peak = f"peak {trace.requested_peak_bytes:,} B in {trace.live_objects_peak:,} objects"
    print_sentences([f"{output}: {trace.calls:,} calls of a {trace.format} log, {peak}"])


def _data(lived: FollowedProgram, output: Path) -> dict[str, object]:
    last = lived.last
    return dataclasses.asdict(lived.trace) | {
        "path": str(output),
        "seconds": last.seconds,
        "live_bytes": last.live_bytes,
        "live_objects": last.live_objects,
        "at_peak": [{"size": size, "objects": objects} for size, objects in last.at_peak],
        "holders": [{"site": site, "bytes": held} for site, held in last.holders],
        "heaps": [{"heap": name, **standing._asdict()} for name, standing in last.heaps.items()],
    }


class _End:
    """The end of a session: some seconds after the first call of `is_far`, or once it is `requested`."""

    def __init__(self, seconds: float | None) -> None:
        self.requested = False
        self._seconds = seconds
        self._began: float | None = None

    def is_far(self) -> bool:
        now = time.monotonic()
        self._began = self._began or now
        return not self.requested and (self._seconds is None or now < self._began + self._seconds)

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Let Ctrl-C, SIGTERM and SIGHUP ask for it; a second Ctrl-C does not wait for the trace."""
        ours = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        in_main = threading.current_thread() is threading.main_thread()
        before = {our: signal.signal(our, self._ask) for our in ours} if in_main else {}
        try:
            yield
        finally:
            for our, handler in before.items():
                signal.signal(our, handler)

    def _ask(self, number: int, _: object) -> None:
        if number == signal.SIGINT and self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def _showing(source: str, arena: int | None, as_json: bool) -> Iterator[Callable[[Moment], None]]:
    """A page on a terminal; elsewhere a line whenever calls arrived; nothing with --json."""
    if as_json:
        yield lambda moment: None
    elif sys.stdout.isatty():
        from heapwright._cli.live_page import page

        with page(source, arena) as show:
            yield show
    else:
        yield _plain()


def _plain() -> Callable[[Moment], None]:
    shown = 0

    def show(moment: Moment) -> None:
        nonlocal shown
        if moment.calls == shown:
            return
        shown = moment.calls
        lives = f"live {moment.live_bytes:,} B in {moment.live_objects:,} objects (peak {moment.peak_bytes:,} B)"
        failed = f"; {moment.failed}" if moment.failed else ""
        click.echo(f"{moment.seconds:.0f} s: {moment.calls:,} calls, {lives}{failed}")
        for name, heap in moment.heaps.items():
            text = f"used {heap.used_bytes:,} B, largest free {heap.largest_free_bytes:,} B, failed {heap.refused:,}"
            click.echo(f"  {name}: {text}")
        sys.stdout.flush()

    return show

"""The page of `heapwright live`: live bytes over the calls, heaps side by side, live objects at the peak."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from heapwright._support.names import printable

if TYPE_CHECKING:
    from heapwright._api import Moment

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_CHART_ROWS = 6
_MOST_SIZES = 8
_BAR = 24
"""Characters of the longest bar."""


@contextmanager
def page(source: str, arena: int | None, console: Console | None = None) -> Iterator[Callable[[Moment], None]]:
    """A page on the terminal that is updated with each moment; the last state stays."""
    drawn = Page(source, arena)
    with Live(drawn, console=console, auto_refresh=False, vertical_overflow="crop") as live:

        def show(moment: Moment) -> None:
            drawn.add(moment)
            live.refresh()

        yield show


class Page:
    """The page, as wide as the terminal."""

    def __init__(self, source: str, arena: int | None) -> None:
        self._source, self._arena = source, arena
        self._moment: Moment | None = None
        self._rate = 0.0

    def add(self, moment: Moment) -> None:
        """Show this moment."""
        before = self._moment
        if before is not None and moment.seconds > before.seconds:
            self._rate = (moment.calls - before.calls) / (moment.seconds - before.seconds)
        self._moment = moment

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        moment = self._moment
        if moment is None or not moment.calls:
            yield Text(f"{printable(self._source)}: waiting for calls; Ctrl-C ends")
            return
        width = min(options.max_width, console.width)
        yield Group(
            self._head(moment),
            *self._chart(moment, width),
            Text(),
            self._heaps(moment),
            Text(),
            self._holders(moment) if moment.holders else self._at_peak(moment),
            *([Text(moment.failed, style="red", no_wrap=True, overflow="ellipsis")] if moment.failed else []),
            *(Text(info, style="yellow", no_wrap=True, overflow="ellipsis") for info in moment.repairs),
        )

    def _head(self, moment: Moment) -> Text:
        minutes, seconds = divmod(int(moment.seconds), 60)
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append(printable(self._source), style="bold")
        head.append(
            f"  {minutes // 60}:{minutes % 60:02}:{seconds:02}  {moment.calls:,} calls, {self._rate:,.0f} a second"
        )
        head.append("  Ctrl-C ends, and writes the trace", style="dim")
        return head

    def _chart(self, moment: Moment, width: int) -> list[Text]:
        """Live bytes over the calls in the whole width; each column is the maximum of its calls."""
        lives = f"{moment.live_bytes:,} B live in {moment.live_objects:,} objects"
        title = Text(f"{lives}; peak {moment.peak_bytes:,} B in {moment.peak_objects:,}", no_wrap=True)
        columns = [max(part) for part in _parts(moment.curve, width)]
        most = max(moment.peak_bytes, 1)
        eighths = [-(-value * 8 * _CHART_ROWS // most) for value in columns]
        rows = [
            "".join(_EIGHTHS[min(max(value - 8 * row, 0), 8)] for value in eighths)
            for row in reversed(range(_CHART_ROWS))
        ]
        return [title, *(Text(row, style="green", no_wrap=True) for row in rows)]

    def _heaps(self, moment: Moment) -> Table:
        place = f"heap, of {self._arena:,} B" if self._arena else "heap, in bytes"
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(place, overflow="ellipsis", no_wrap=True)
        for heading in ("peak, B", "recommended arena, B", "largest free, B", "failed"):
            table.add_column(heading, justify="right")
        for name, heap in moment.heaps.items():
            reserve = "-" if heap.reserve_bytes is None else f"{heap.reserve_bytes:,}"
            cells = (f"{heap.used_bytes:,}", reserve, f"{heap.largest_free_bytes:,}", f"{heap.refused:,}")
            table.add_row(printable(name), *cells, style="red" if heap.refused else "")
        return table

    def _holders(self, moment: Moment) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column("bytes at the peak", justify="right")
        table.add_column("of", overflow="ellipsis", no_wrap=True)
        for site, held in moment.holders[:_MOST_SIZES]:
            table.add_row(f"{held:,}", printable(site) or "no site")
        if others := moment.holders[_MOST_SIZES:]:
            table.add_row(f"{sum(held for _, held in others):,}", f"{len(others):,} more")
        return table

    def _at_peak(self, moment: Moment) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for heading in ("size, B", "objects", "bytes at the peak"):
            table.add_column(heading, justify="right")
        table.add_column("")
        most = max((size * count for size, count in moment.at_peak), default=0)
        for size, count in moment.at_peak[:_MOST_SIZES]:
            bar = "█" * max(1, round(_BAR * size * count / max(most, 1)))
            table.add_row(f"{size:,}", f"{count:,}", f"{size * count:,}", Text(bar, style="cyan"))
        if others := moment.at_peak[_MOST_SIZES:]:
            objects, bytes_ = sum(count for _, count in others), sum(size * count for size, count in others)
            table.add_row(f"{len(others):,} more", f"{objects:,}", f"{bytes_:,}", "")
        return table


def _parts(values: list[int], most: int) -> list[list[int]]:
    """The values in order, in at most `most` parts of about equal length, none of them empty."""
    count = min(len(values), most)
    ends = [len(values) * part // count for part in range(count + 1)]
    return [values[start:end] for start, end in pairwise(ends)]

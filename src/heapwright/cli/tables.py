"""Tables on stdout: styled on a terminal, plain and uncut elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import click

from heapwright.files.names import printable

if TYPE_CHECKING:
    from heapwright.explore.by_load import AtLoad
    from heapwright.explore.results import Candidate, Standing
    from heapwright.explore.study import Study
    from heapwright.replay.metrics import Value

_UNBOUNDED = 10_000
_REMARKS_BESIDE = 140
_ALWAYS = ("footprint_bytes", "fragmentation", "accesses", "accesses_malloc_max", "accesses_free_max", "failed")
_HEADINGS = {
    "footprint_bytes": "footprint",
    "fragmentation": "frag.",
    "accesses": "accesses",
    "accesses_malloc_max": "worst\nmalloc",
    "accesses_free_max": "worst\nfree",
    "failed": "refused",
}
_WORST = {"copy": "copies,\nworst", "held out": "held out,\nworst"}
_PERCENT = ("fragmentation", "fragmentation_with_headers")


def print_table(
    title: str, headings: Sequence[str], sections: Sequence[Sequence[Sequence[str]]], left: Sequence[str] = ()
) -> None:
    """Print rows in sections under headings; columns named in ``left`` are aligned to the left.

    Only the last column wraps. Where even that is not enough, lines run over the terminal's edge: no number is cut.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    for heading in headings:
        justify: Literal["left", "right"] = "left" if heading in left else "right"
        table.add_column(Text(_lines(heading)), justify=justify, no_wrap=heading != headings[-1])
    for section in sections:
        for row in section:
            table.add_row(*(Text(printable(cell)) for cell in row))
        table.add_section()
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _UNBOUNDED)
    console.print(Text(_lines(title), style="bold"), soft_wrap=True)
    console.width = max(console.width, console.measure(table, options=console.options.update(width=_UNBOUNDED)).minimum)
    console.print(table)


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def _narrow() -> bool:
    """Whether stdout is a terminal too narrow for remarks beside numbers."""
    return sys.stdout.isatty() and shutil.get_terminal_size().columns < _REMARKS_BESIDE


def print_metrics(title: str, heaps: Mapping[str, Mapping[str, Value]]) -> None:
    """Print one column of metrics a heap, a row a metric, with units."""
    from heapwright.replay.metrics import METRICS

    rows = [
        [key, *(number(key, metrics.get(key)) for metrics in heaps.values()), metric.unit, metric.meaning]
        for key, metric in METRICS.items()
    ]
    print_table(printable(title), ["metric", *heaps, "unit", "meaning"], [rows], left=("metric", "unit", "meaning"))


def number(key: str, value: Value) -> str:
    """A metric for people: thousands marked, fragmentation in per cent, a dash for what was not measured."""
    if value is None:
        return "-"
    if key in _PERCENT:
        return f"{value:.1%}"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def print_front(study: Study, objectives: Sequence[str], most: int | None = None, where: Sequence[str] = ()) -> None:
    """Print the front, or about ``most`` members of it, the picks, and the zoo with how far each is from the front.

    On copies, and on traces held out, the worst ratio to the best there is shown. Zoo allocators at an alignment of
    their own come last, for comparison.
    """
    from heapwright.replay.metrics import TARGET_METRICS

    front = study.front(objectives, where)
    picks = _picks(study, objectives, where) if front else {}
    standings = study.zoo_standings(objectives)
    robustness = study.robustness(objectives)
    shown = _thinned(front, most, {*picks, *(standing.dominated_by for standing in standings)})
    beside = [study.candidate(id) for id in picks if id not in {one.id for one in front}]
    keys = [*objectives, *(key for key in _ALWAYS if key not in objectives)]
    apart = [(role, key) for role in study.elsewhere for key in objectives if key not in TARGET_METRICS]

    def row(candidate: Candidate, remark: str) -> list[str]:
        here = [number(key, candidate.metrics[key]) for key in keys]
        worst = robustness.worst(candidate.id)
        there = [_ratio(worst[role].ratios.get(key)) if role in worst else "-" for role, key in apart]
        return [candidate.label, *here, *there, remark]

    def member(one: Candidate) -> list[str]:
        summary = study.recipe(one.id).summary(study.align)
        return row(one, _remark(picks.get(one.id, []), summary, robustness.why_not(one.id)))

    zoo = [row(one.candidate, _standing(one)) for one in standings if one.ranked]
    unranked = [row(one.candidate, _standing(one)) for one in standings if not one.ranked]
    traces = printable(", ".join(trace.name for trace in study.traces()))
    size = f"{len(front):,} members" + (f", {len(shown)} shown" if len(shown) < len(front) else "")
    title = f"Front ({size}){', picks near it' if beside else ''}{' and zoo' if zoo else ''}: {study.tried} recipes of "
    headings = ["heap", *map(_heading, keys), *(f"{_WORST[role]}\n{_heading(key)}" for role, key in apart)]
    sections = [[member(one) for one in shown], [member(one) for one in beside], zoo, unranked]
    last = "recipe; zoo: against the front" if zoo else "recipe"
    told = f"{title}alignment {study.align} on {traces}\n"
    _print_with_remarks(told, [*headings, last], [rows for rows in sections if rows])


def print_by_load(found: Sequence[AtLoad]) -> None:
    """Print the pick at each load, if there are several."""
    if not found:
        return
    headings = ["load", "live peak", "pick", "footprint", *found[0].beside]
    rows = [
        [
            f"{one.load:g}",
            f"{one.requested_peak_bytes:,}",
            one.pick,
            f"{one.footprint_bytes:,}",
            *("-" if size is None else f"{size:,}" for size in one.beside.values()),
        ]
        for one in found
    ]
    click.echo()
    print_table("Balanced picks along the load, each for its trace alone, in bytes", headings, [rows], left=("pick",))


def _print_with_remarks(title: str, headings: list[str], sections: list[list[list[str]]]) -> None:
    """Print a table whose last column holds remarks; below it, where the terminal is too narrow."""
    if not _narrow():
        print_table(title, headings, sections, left=(headings[0], headings[-1]))
        return
    print_table(title, headings[:-1], [[row[:-1] for row in rows] for rows in sections], left=headings[:1])
    for rows in sections:
        click.echo()
        for row in rows:
            click.echo(printable(f"{row[0]}: {row[-1]}"))


def _heading(key: str) -> str:
    return _HEADINGS.get(key, key)


def _ratio(value: float | None) -> str:
    """How many times the best a value is, for people."""
    if value is None:
        return "-"
    return "refused" if value == float("inf") else f"{value:,.2f} x"


def _remark(picks: Sequence[str], summary: str, why_not: str | None) -> str:
    """The picks a member is, its recipe, and why it is none though it may look like one."""
    told = f"{', '.join(picks).upper()}: {summary}" if picks else summary
    return f"{told}; does not hold: {why_not}" if why_not else told


def _picks(study: Study, objectives: Sequence[str], where: Sequence[str]) -> dict[str, list[str]]:
    """Which picks a recipe is, by id."""
    from heapwright.explore.picks import PICKS

    found: dict[str, list[str]] = {}
    for how in PICKS:
        found.setdefault(study.pick(how, objectives, where).id, []).append(how)
    return found


def _thinned(front: Sequence[Candidate], most: int | None, always: set[str | None]) -> list[Candidate]:
    """About so many members, evenly spaced along the front, with those that are always shown."""
    if most is None or len(front) <= most:
        return list(front)
    room = max(most - len(always), 2)
    even = {round(step * (len(front) - 1) / (room - 1)) for step in range(room)}
    return [one for at, one in enumerate(front) if at in even or one.id in always]


def _standing(standing: Standing) -> str:
    """A zoo allocator's place against the front, in words."""
    if standing.on_front:
        return "on the front"
    if not standing.ranked:
        return "not ranked: at its own alignment"
    if standing.dominated_by is None:
        refused = standing.candidate.metrics["failed"]
        return f"not ranked: refused {number('failed', refused)} requests" if refused else "not ranked: not measured"
    worse = {key: ratio for key, ratio in standing.ratios.items() if ratio > 1}
    if not worse:
        return f"equal to {standing.dominated_by}"
    by = ", ".join(f"{' '.join(_heading(key).split())} {_difference(key, ratio)}" for key, ratio in worse.items())
    return f"dominated by {standing.dominated_by}: {by}"


def _difference(key: str, ratio: float) -> str:
    """How far a value is from one that it is so many times worse than, with its sign."""
    from heapwright.replay.metrics import METRICS

    if ratio >= 10:
        return f"{ratio:,.0f} x worse"
    percent = 100 * (ratio - 1 if METRICS[key].direction == "min" else 1 / ratio - 1)
    return f"{percent:+.1f} %" if abs(percent) >= 0.1 else f"{percent:+.1g} %"

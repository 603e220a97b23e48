"""Tables on stdout: styled on a terminal, plain and uncut elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import click

from heapwright.cli.output import print_sentences
from heapwright.files.names import printable

if TYPE_CHECKING:
    from heapwright.decide.by_load import AtLoad
    from heapwright.decide.candidate import Candidate
    from heapwright.decide.decision import Decision
    from heapwright.decide.results import Standing
    from heapwright.decide.side_by_side import SideBySide
    from heapwright.decide.study import Study
    from heapwright.replay.metrics import Value

_UNBOUNDED = 10_000
_GAP = 2
"""Blanks between columns."""
_LEAST_WRAPPED = 40
"""A last column of text is wrapped to no less."""
SHOWN_MEMBERS = 16
"""About so many of a front are shown where nobody asks for all."""
_WORST_CALLS = ("accesses_malloc_max", "accesses_free_max")
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
    title: str,
    headings: Sequence[str],
    sections: Sequence[Sequence[Sequence[str]]],
    left: Sequence[str] = (),
    strong: Collection[str] = (),
) -> None:
    """Print rows in sections under headings; columns named in ``left`` are aligned to the left.

    The leading columns in ``left``, or the first, tell rows apart. On a terminal too narrow for all others these are
    printed one part below the other, each beside those that tell apart. Only a last column in ``left`` wraps. Rows that
    begin with a cell in ``strong`` stand out. Elsewhere a row is a line, however long, without trailing blanks.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _UNBOUNDED)
    if title:
        console.print(Text(_lines(title), style="bold"), soft_wrap=not sys.stdout.isatty())
    keys = range(_telling(headings, left))
    widths = _widths(headings, [row for rows in sections for row in rows])
    least = [
        min(width, _LEAST_WRAPPED) if heading in left else width
        for heading, width in zip(headings, widths, strict=True)
    ]
    for columns in _parts(len(keys), [*widths[: len(keys)], *least[len(keys) :]], console.width):
        table = Table(box=SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False)
        for at in columns:
            justify: Literal["left", "right"] = "left" if headings[at] in left else "right"
            wraps = at not in keys and headings[at] in left
            table.add_column(
                Text(_lines(headings[at])), justify=justify, no_wrap=not wraps, min_width=None if wraps else widths[at]
            )
        for section in sections:
            for row in section:
                style = "bold green" if row[0] in strong else ""
                table.add_row(*(Text(printable(row[at])) for at in columns), style=style)
            table.add_section()
        needed = console.measure(table, options=console.options.update(width=_UNBOUNDED)).minimum
        with console.capture() as captured:
            console.print(table, width=max(console.width, needed))
        for line in captured.get().rstrip().split("\n"):
            click.echo(line.rstrip())
        click.echo()


def _telling(headings: Sequence[str], left: Sequence[str]) -> int:
    """How many leading columns tell rows apart: at least one, and never all."""
    count = next((at for at, heading in enumerate(headings) if heading not in left), len(headings))
    return min(max(count, 1), len(headings) - 1)


def _widths(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    columns = zip(headings, *rows, strict=True)
    return [max(cell_len(printable(line)) for cell in column for line in cell.split("\n")) for column in columns]


def _parts(keys: int, widths: Sequence[int], width: int) -> list[list[int]]:
    """The columns of each part of a table, the first `keys` in each, that is to be no wider than `width`."""
    room = width - sum(one + _GAP for one in widths[:keys])
    parts: list[list[int]] = []
    used = room + 1
    for at in range(keys, len(widths)):
        if used + widths[at] > room:
            parts.append([*range(keys)])
            used = 0
        parts[-1].append(at)
        used += widths[at] + _GAP
    return parts


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def print_metrics(title: str, heaps: Mapping[str, Mapping[str, Value]]) -> None:
    """Print one column of metrics a heap, a row a metric, with units; what is known of studies alone where it is."""
    from heapwright.replay.metrics import METRICS, SHIPPING_METRICS

    rows = [
        [key, *(number(key, metrics.get(key)) for metrics in heaps.values()), metric.unit, metric.meaning]
        for key, metric in METRICS.items()
        if key not in SHIPPING_METRICS or any(metrics.get(key) is not None for metrics in heaps.values())
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


def print_front(
    study: Study,
    objectives: Sequence[str],
    where: Sequence[str] = (),
    *,
    against: str | None = None,
    everything: bool = False,
) -> None:
    """Print what to ship, the front with the picks, and rivals from the zoo.

    On copies, and on traces held out, the worst ratio to the best there is shown. With ``everything`` all members of
    the front and all of the zoo are shown, with how far each is from the front, and more metrics. Zoo allocators at an
    alignment of their own come last, for comparison.
    """
    from heapwright.api import worst_steps
    from heapwright.decide.decision import decide
    from heapwright.decide.picks import RIVALS, NoPickError
    from heapwright.replay.metrics import TARGET_METRICS

    front = study.front(objectives, where)
    if front:
        try:
            decision = decide(study, "balanced", objectives, where, against)
        except NoPickError as error:
            print_sentences([str(error)])
        else:
            print_sentences(decision.sentences())
            click.echo()
            print_side_by_side(decision)
    picks = _picks(study, objectives, where) if front else {}
    standings = study.zoo_standings(objectives)
    beside = {*RIVALS, against, study.resolve(against) if against else None}
    shown = [one for one in standings if everything or {one.candidate.label, one.candidate.id} & beside]
    robustness = study.robustness(objectives)
    endured = robustness.endured
    always = {*picks, *(standing.dominated_by for standing in shown)}
    members = _thinned(front, None if everything else SHOWN_MEMBERS, always)
    others = [study.candidate(id) for id in picks if id not in {one.id for one in front}]
    keys = [*objectives, *(key for key in (_ALWAYS if everything else _WORST_CALLS) if key not in objectives)]
    apart = [(role, key) for role in study.elsewhere for key in objectives if key not in TARGET_METRICS]

    def row(candidate: Candidate, remark: str) -> list[str]:
        here = [number(key, candidate.metrics[key]) for key in keys]
        if everything:
            here.append(worst_steps(study.recipe(candidate.id)).short())
        if endured:
            here.append(growth(candidate.metrics["growth_ratio"], robustness.lasts(candidate.id)))
        worst = robustness.worst(candidate.id)
        there = [_ratio(worst[role].ratios.get(key)) if role in worst else "-" for role, key in apart]
        return [candidate.label, *here, *there, remark]

    def member(one: Candidate) -> list[str]:
        summary = study.recipe(one.id).summary(study.align)
        why_not, doubt = robustness.why_not(one.id), robustness.doubt(one.id)
        told = f"does not hold: {why_not}" if why_not else f"doubted: {doubt}" if doubt else None
        return row(one, _remark(picks.get(one.id, []), summary, told))

    def of_zoo(one: Standing) -> list[str]:
        why_not = robustness.why_not_lasting(one.candidate.id)
        return row(one.candidate, _standing(one) + (f"; does not last: {why_not}" if why_not else ""))

    zoo = [of_zoo(one) for one in shown if one.ranked]
    unranked = [of_zoo(one) for one in shown if not one.ranked]
    traces = printable(", ".join(trace.name for trace in study.traces()))
    question = f"; {study.question}" if study.question else ""
    size = f"{len(front):,} members" + (f", {len(members)} shown" if len(members) < len(front) else "")
    title = f"Front ({size}){', picks near it' if others else ''}{' and zoo' if zoo else ''}: {study.tried} recipes of "
    bound = ["worst\nsteps"] if everything else []
    bound += ["grows"] if endured else []
    headings = ["heap", *map(_heading, keys), *bound, *(f"{_WORST[role]}\n{_heading(key)}" for role, key in apart)]
    sections = [[member(one) for one in members], [member(one) for one in others], zoo, unranked]
    last = "recipe; zoo: against the front" if zoo else "recipe"
    print_table(
        f"{title}alignment {study.align} on {traces}{question}\n",
        [*headings, last],
        [rows for rows in sections if rows],
        left=(headings[0], last),
        strong={study.candidate(id).label for id in picks},
    )
    hidden = len(front) - len(members) + len(standings) - len(shown)
    if hidden:
        click.echo(f"{hidden:,} more of the front and the zoo: heapwright pareto {printable(str(study.path))} --all")


def print_side_by_side(decision: Decision) -> None:
    """Print the pick beside what one could take instead: a column a heap, a row a figure."""
    from heapwright.decide.side_by_side import side_by_side

    told = side_by_side(decision)
    names = [f"{one.candidate.label}{' (yours)' if one.role == 'yours' else ''}" for one in told.heaps]
    print_heaps("Beside what else one could take", names, told)


def print_heaps(title: str, names: Sequence[str], told: SideBySide) -> None:
    """Print heaps side by side under these names."""
    rows = [[row.words, *(f"{cell.text} {cell.against}".rstrip() for cell in row.cells)] for row in told.rows]
    units = " and ".join(dict.fromkeys(row.unit for row in told.rows if row.unit))
    print_table(f"{title}, in {units}", ["", *names], [rows], left=("",))


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


def _heading(key: str) -> str:
    return _HEADINGS.get(key, key)


def growth(ratio: float | None, lasts: bool | None) -> str:
    """How much a heap grows at constant live bytes; marked where it does not last."""
    return "-" if ratio is None else f"{ratio - 1:.1%}{'' if lasts else '!'}"


def _ratio(value: float | None) -> str:
    """How many times the best a value is, for people."""
    if value is None:
        return "-"
    return "refused" if value == float("inf") else f"{value:,.2f} x"


def _remark(picks: Sequence[str], summary: str, why_not: str | None) -> str:
    """The picks a member is, its recipe, and why it is none though it may look like one."""
    told = f"{', '.join(picks).upper()}: {summary}" if picks else summary
    return f"{told}; {why_not}" if why_not else told


def _picks(study: Study, objectives: Sequence[str], where: Sequence[str]) -> dict[str, list[str]]:
    """Which picks a recipe is, by id."""
    from heapwright.decide.picks import PICKS, NoPickError

    found: dict[str, list[str]] = {}
    for how in PICKS:
        with suppress(NoPickError):
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

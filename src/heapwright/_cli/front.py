"""The front of a study, with the picks on it and what everybody knows beside it, as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from heapwright._cli.output import print_sentences
from heapwright._cli.tables import LEAST_WRAPPED, growth, number, print_side_by_side, print_table
from heapwright._support.names import printable

if TYPE_CHECKING:
    from heapwright._studies.analysis import Analysis
    from heapwright._studies.decision import Decision
    from heapwright._studies.recommendations import Pick
    from heapwright._studies.results import Candidate, Ranking
    from heapwright._studies.robustness import Robustness

SHOWN_MEMBERS = 16
"""About so many of a front are shown where nobody asks for all."""
_ALWAYS = ("footprint_bytes", "fragmentation", "accesses", "accesses_malloc_max", "accesses_free_max", "failed")
_HEADINGS = {
    "reserve": "reserve",
    "long_run_bytes": "long-run\nneed",
    "long_run_accesses": "accesses\na call",
    "long_run_malloc_max": "worst\nmalloc",
    "long_run_free_max": "worst\nfree",
    "footprint_bytes": "footprint",
    "fragmentation": "frag.",
    "accesses": "accesses",
    "instructions_pair_mean": "instr.\na pair",
    "accesses_malloc_max": "worst\nmalloc",
    "accesses_free_max": "worst\nfree",
    "failed": "refused",
    "role": "role",
}
_WORST = {"copy": "copies,\nworst", "held out": "held out,\nworst"}
_LEAST_ROLE = 8
"""The column of roles is wrapped to no less."""

Column = tuple[str, "Callable[[Candidate], str]"]
"""A heading, and what stands below it for a heap."""


@dataclass(frozen=True)
class _Shown:
    """What of a study stands in the table: members of its front, picks near it, and heaps of the zoo."""

    study: Analysis
    objectives: Sequence[str]
    picks: dict[str, list[Pick]]
    members: list[Candidate]
    others: list[Candidate]
    zoo: list[Ranking]
    yours: str | None
    robustness: Robustness

    def every(self) -> list[Candidate]:
        """Each of them once, the front first."""
        results = [*self.members, *self.others, *(item.candidate for item in self.zoo)]
        return list({item.id: item for item in results}.values())


def print_front(
    study: Analysis,
    objectives: Sequence[str],
    where: Sequence[str] = (),
    *,
    against: str | None = None,
    everything: bool = False,
) -> Decision | None:
    """Print what to ship, the front with the picks, and rivals from the zoo, each heap with what it is.

    Returns the decision that it told; None where there is none.

    With ``everything`` all members of the front and all of the zoo are shown, with their recipes, more metrics, the
    worst ratio to the best on copies and on traces held out, and how far each is from the front. Zoo allocators at an
    alignment of their own come last, for comparison.
    """
    from heapwright._studies.decision import decide
    from heapwright._studies.recommendations import RIVALS, NoPickError

    front = study.front(objectives, where)
    decision = None
    if front:
        try:
            decision = decide(study, "balanced", objectives, where, against)
        except NoPickError as error:
            print_sentences([str(error)])
        else:
            print_sentences(decision.sentences())
            click.echo()
            print_side_by_side(decision)
    picks = study.picks(objectives, where) if front else {}
    standings = study.zoo_standings(objectives)
    yours = study.resolve(against) if against else None
    beside = {*RIVALS, against, yours}
    zoo = [item for item in standings if everything or {item.candidate.label, item.candidate.id} & beside]
    always = {*picks, *(standing.dominated_by for standing in zoo)}
    members = _thinned(front, None if everything else SHOWN_MEMBERS, always)
    others = [study.candidate(id) for id in picks if id not in {item.id for item in front}]
    shown = _Shown(study, objectives, picks, members, others, zoo, yours, study.robustness(objectives))
    traces = printable(", ".join(trace.name for trace in study.traces()))
    question = f"; {study.question}" if study.question else ""
    size = f"{len(front):,} members" + (f", {len(members)} shown" if len(members) < len(front) else "")
    title = f"Front ({size}){', picks near it' if others else ''}{' and zoo' if zoo else ''}: {study.tried} recipes of "
    title += f"alignment {study.align} on {traces}{question}\n"
    if everything:
        _print_whole(title, shown)
        return decision
    _print_short(title, shown)
    hidden = len(front) - len(members) + len(standings) - len(zoo)
    more = f"{hidden:,} more, and all recipes" if hidden else "All recipes"
    print_sentences([f"{more}: heapwright pareto {printable(str(study.path))} --all"])
    return decision


def _print_short(title: str, shown: _Shown) -> None:
    """One line a heap, with what decides, and the recipes of the picks below it."""
    from heapwright._studies.results import ADMITTED

    study, picks = shown.study, shown.picks
    refusing = ADMITTED in shown.objectives
    keys = [key for key in shown.objectives if refusing or key != "footprint_bytes"]
    first = [] if refusing else [_reserve(study)]
    columns = [*first, *map(_metric, dict.fromkeys([*keys, *_measured(shown), *_worst_calls(shown)])), *_grows(shown)]
    zoo = {item.candidate.id for item in shown.zoo}
    front = {member.id for member in shown.members}
    competing = front | picks.keys()

    def role(item: Candidate) -> str:
        known = ["front"] if item.id in front else ["zoo"] if item.id in zoo else []
        info = [", ".join(picks[item.id]).upper()] if item.id in picks else known
        info += ["yours"] * (item.id == shown.yours)
        if refused := item.metrics["failed"]:
            info.append(f"refused {refused:,}")
        elif shown.robustness.foreseen and (shown.robustness.why_not_lasting(item.id)):
            info.append("grows")
        elif item.id in competing and shown.robustness.why_not(item.id):
            info.append("not fit")
        return ", ".join(info)

    columns.append((_HEADINGS["role"], role))
    every = shown.every()
    sections = [shown.members, shown.others, every[len(shown.members) + len(shown.others) :]]
    _print(title, columns, sections, picks, _LEAST_ROLE)
    for id, roles in picks.items():
        item = study.candidate(id)
        named = "" if item.zoo_name else f" {item.id}"
        print_sentences([f"{', '.join(roles).upper()}{named}: {study.recipe(id).summary(study.align)}"])


def _print_whole(title: str, shown: _Shown) -> None:
    """All that is known of each heap, its recipe or how far it is from the front, and why it is no pick."""
    from heapwright._api import worst_steps
    from heapwright._replay.metrics import TARGET_METRICS

    study, robustness = shown.study, shown.robustness
    keys = dict.fromkeys([*shown.objectives, *_measured(shown), *_ALWAYS])
    columns = [_reserve(study), *map(_metric, keys)]
    columns.append(("worst\nsteps", lambda item: worst_steps(study.recipe(item.id)).short()))
    columns += _grows(shown)
    for role in study.elsewhere:
        for key in shown.objectives:
            if key not in TARGET_METRICS:
                columns.append((f"{_WORST[role]}\n{_heading(key)}", _elsewhere(shown, role, key)))
    standings = {item.candidate.id: item for item in shown.zoo}
    competing = {item.id for item in [*shown.members, *shown.others]}

    def remark(item: Candidate) -> str:
        roles = f"{', '.join(shown.picks[item.id]).upper()}: " if item.id in shown.picks else ""
        what = f"{roles}{study.recipe(item.id).summary(study.align)}" if item.id in competing else ""
        standing = _standing(standings[item.id]) if item.id in standings else ""
        why_not = robustness.why_not_lasting(item.id)
        if item.id in competing:  # of what failed requests nothing else is known
            why_not = robustness.why_not(item.id)
        info = f"not fit to ship: {why_not}" if why_not else ""
        return "; ".join(filter(None, [what, standing, info]))

    columns.append(("recipe; zoo: against the front", remark))
    zoo = shown.every()[len(competing) :]
    ranked = [item for item in zoo if standings[item.id].ranked]
    _print(
        title, columns, [shown.members, shown.others, ranked, [item for item in zoo if item not in ranked]], shown.picks
    )


def _print(
    title: str,
    columns: Sequence[Column],
    sections: Sequence[Sequence[Candidate]],
    picks: Mapping[str, Sequence[str]],
    least_wrapped: int = LEAST_WRAPPED,
) -> None:
    rows = [[[heap.label, *(show(heap) for _, show in columns)] for heap in heaps] for heaps in sections if heaps]
    strong = {heap.label for heaps in sections for heap in heaps if heap.id in picks}
    headings = ["heap", *(heading for heading, _ in columns)]
    print_table(title, headings, rows, (headings[0], headings[-1]), strong, least_wrapped)


def _metric(key: str) -> Column:
    return _heading(key), lambda item: number(key, item.metrics[key])


def _reserve(study: Analysis) -> Column:
    from heapwright._studies.analysis import reserve_for

    return _HEADINGS["reserve"], lambda item: number("reserve_bytes", reserve_for(study.needs(item.id)))


def _measured(shown: _Shown) -> list[str]:
    """Instructions of a malloc and a free, where they were measured for any."""
    key = "instructions_pair_mean"
    return [key] if any(item.metrics[key] is not None for item in shown.every()) else []


def _worst_calls(shown: _Shown) -> tuple[str, str]:
    """The metrics of worst-case calls: on the future, if there was one."""
    if shown.robustness.foreseen:
        return "long_run_malloc_max", "long_run_free_max"
    return "accesses_malloc_max", "accesses_free_max"


def _grows(shown: _Shown) -> list[Column]:
    """Growth over the last nine tenths of the future, if there was one."""
    if not shown.robustness.foreseen:
        return []
    return [
        ("growth", lambda item: growth(item.metrics["long_run_growth"], item.metrics["long_run_bytes"] is not None))
    ]


def _elsewhere(shown: _Shown, role: str, key: str) -> Callable[[Candidate], str]:
    def show(item: Candidate) -> str:
        worst = shown.robustness.worst(item.id)
        return _ratio(worst[role].ratios.get(key)) if role in worst else "-"

    return show


def _heading(key: str) -> str:
    """What stands above a metric: a few words, or its key, a word a line."""
    return _HEADINGS.get(key, key.replace("_", "\n"))


def _ratio(value: float | None) -> str:
    """How many times the best a value is, for people."""
    if value is None:
        return "-"
    return "refused" if value == float("inf") else f"{value:,.2f} x"


def _thinned(front: Sequence[Candidate], most: int | None, always: set[str | None]) -> list[Candidate]:
    """About so many members, evenly spaced along the front, with those that are always shown."""
    if most is None or len(front) <= most:
        return list(front)
    room = max(most - len(always), 2)
    even = {round(step * (len(front) - 1) / (room - 1)) for step in range(room)}
    return [item for at, item in enumerate(front) if at in even or item.id in always]


def _standing(standing: Ranking) -> str:
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
    from heapwright._replay.metrics import METRICS

    if ratio >= 10:
        return f"{ratio:,.0f} x worse"
    percent = 100 * (ratio - 1 if METRICS[key].direction == "min" else 1 / ratio - 1)
    return f"{percent:+.1f} %" if abs(percent) >= 0.1 else f"{percent:+.1g} %"

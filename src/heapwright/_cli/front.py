"""The Pareto front of a study as one table, with the picks on it and common allocators."""

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
"""Members of a Pareto front that are shown by default, about."""
_ALWAYS = ("footprint_bytes", "fragmentation", "accesses", "accesses_malloc_max", "accesses_free_max", "failed")
_HEADINGS = {
    "reserve": "recommended\narena, B",
    "long_run_bytes": "long-run\narena, B",
    "long_run_accesses": "accesses\nper call",
    "long_run_malloc_max": "worst-case\nmalloc,\naccesses",
    "long_run_free_max": "worst-case\nfree,\naccesses",
    "footprint_bytes": "footprint,\nB",
    "fragmentation": "frag.",
    "accesses": "accesses",
    "instructions_pair_mean": "instr.\nper pair",
    "accesses_malloc_max": "worst-case\nmalloc,\naccesses",
    "accesses_free_max": "worst-case\nfree,\naccesses",
    "failed": "failed\nrequests",
    "role": "status",
}
_WORST = {"copy": "perturbed,\nworst", "held out": "held out,\nworst"}
_LEAST_STATUS = 8
"""Least width of the column of statuses."""

Column = tuple[str, "Callable[[Candidate], str]"]
"""A heading, and the function that returns a heap's cell."""


@dataclass(frozen=True)
class _Contents:
    """The rows of the table: members of the Pareto front, recommendations near it, and heaps of the zoo."""

    study: Analysis
    objectives: Sequence[str]
    picks: dict[str, list[Pick]]
    members: list[Candidate]
    others: list[Candidate]
    zoo: list[Ranking]
    current: str | None
    robustness: Robustness

    def every(self) -> list[Candidate]:
        """Each heap once, the front first."""
        results = [*self.members, *self.others, *(ranking.candidate for ranking in self.zoo)]
        return list({candidate.id: candidate for candidate in results}.values())

    def title(self, front_size: int) -> str:
        """The title of the table."""
        study = self.study
        size = f"{front_size:,} members" + (f", {len(self.members)} shown" if len(self.members) < front_size else "")
        parts = f"{', picks near it' if self.others else ''}{' and zoo' if self.zoo else ''}"
        traces = printable(", ".join(trace.name for trace in study.traces()))
        question = f"; {study.question}" if study.question else ""
        return f"Pareto front ({size}){parts}: {study.tried} recipes of alignment {study.align} on {traces}{question}\n"


def print_front(
    study: Analysis,
    objectives: Sequence[str],
    where: Sequence[str] = (),
    *,
    against: str | None = None,
    everything: bool = False,
) -> Decision | None:
    """Print the recommendation, the Pareto front with its picks, and common allocators, each with its status.

    Returns the decision behind the recommendation; None if there is none.

    With ``everything`` the whole front and the whole zoo are shown, with their recipes, more metrics, the worst ratio
    to the best on perturbed and held-out traces, and their distance from the front. Zoo allocators at an alignment of
    their own come last, for comparison.
    """
    front = study.front(objectives, where)
    decision = _print_decision(study, objectives, where, against) if front else None
    contents = _contents(study, front, objectives, where, against, everything)
    title = contents.title(len(front))
    if everything:
        _print_whole(title, contents)
        return decision
    _print_short(title, contents)
    hidden = len(front) - len(contents.members) + len(study.zoo_standings(objectives)) - len(contents.zoo)
    more = f"{hidden:,} more, and all recipes" if hidden else "All recipes"
    print_sentences([f"{more}: heapwright pareto {printable(str(study.path))} --all"])
    return decision


def _print_decision(
    study: Analysis, objectives: Sequence[str], where: Sequence[str], against: str | None
) -> Decision | None:
    from heapwright._studies.decision import decide
    from heapwright._studies.recommendations import NoPickError

    try:
        decision = decide(study, "balanced", objectives, where, against)
    except NoPickError as error:
        print_sentences([str(error)])
        return None
    print_sentences(decision.sentences())
    _print_option(study.platform, decision)
    click.echo()
    print_side_by_side(decision)
    return decision


def _print_option(platform: str | None, decision: Decision) -> None:
    """Print the reserve as an option of the platform, or of the system whose heap is the current one, if known."""
    current = next((other.heap.label for other in decision.others if other.why == "yours"), None)
    if decision.reserve_bytes is None:
        return
    from heapwright._api.sizes import option_lines

    heap = current if decision.keep and current else decision.pick.label
    part = option_lines(platform, current, heap, decision.reserve_bytes)
    if part is not None:
        print_sentences([f"{part.file}: {' '.join(part.lines)} ({part.includes})."])


def _contents(
    study: Analysis,
    front: Sequence[Candidate],
    objectives: Sequence[str],
    where: Sequence[str],
    against: str | None,
    everything: bool,
) -> _Contents:
    from heapwright._studies.recommendations import WELL_KNOWN

    picks = study.picks(objectives, where) if front else {}
    current = study.resolve(against) if against else None
    compared = {*WELL_KNOWN, against, current}
    zoo = [
        ranking
        for ranking in study.zoo_standings(objectives)
        if everything or {ranking.candidate.label, ranking.candidate.id} & compared
    ]
    always = {*picks, *(ranking.dominated_by for ranking in zoo)}
    members = _thinned(front, None if everything else SHOWN_MEMBERS, always)
    others = [study.candidate(id) for id in picks if id not in {candidate.id for candidate in front}]
    return _Contents(study, objectives, picks, members, others, zoo, current, study.robustness(objectives))


def _print_short(title: str, contents: _Contents) -> None:
    """Print one line per heap, with the deciding metrics, and the recipes of the picks below the table."""
    from heapwright._studies.results import ADMITTED

    study, picks = contents.study, contents.picks
    partial = ADMITTED in contents.objectives
    keys = [key for key in contents.objectives if partial or key != "footprint_bytes"]
    columns = [] if partial else [_recommended_arena(study)]
    columns += map(_metric, dict.fromkeys([*keys, *_measured(contents), *_worst_calls(contents)]))
    columns += _growth_column(contents)
    columns.append((_HEADINGS["role"], _statuses(contents)))
    every = contents.every()
    sections = [contents.members, contents.others, every[len(contents.members) + len(contents.others) :]]
    _print(title, columns, sections, picks, _LEAST_STATUS)
    for id, roles in picks.items():
        id_text = "" if study.candidate(id).zoo_name else f" {id}"
        print_sentences([f"{', '.join(roles).upper()}{id_text}: {study.recipe(id).summary(study.align)}"])


def _statuses(contents: _Contents) -> Callable[[Candidate], str]:
    """The function that returns a heap's status: pick, front or zoo, and why it is no pick."""
    zoo = {ranking.candidate.id for ranking in contents.zoo}
    front = {member.id for member in contents.members}
    robustness = contents.robustness

    def status(heap: Candidate) -> str:
        if heap.id in contents.picks:
            words = [", ".join(contents.picks[heap.id]).upper()]
        else:
            words = ["front"] if heap.id in front else ["zoo"] if heap.id in zoo else []
        words += ["current"] * (heap.id == contents.current)
        if failed := heap.metrics["failed"]:
            words.append(f"{failed:,} failed")
        elif robustness.foreseen and robustness.why_not_stable(heap.id):
            words.append("unstable")
        elif heap.id in front | contents.picks.keys() and robustness.why_not(heap.id):
            words.append("not robust")
        return ", ".join(words)

    return status


def _print_whole(title: str, contents: _Contents) -> None:
    """Print all metrics of each heap, its recipe or its distance from the front, and why it is not recommended."""
    from heapwright._api import worst_steps
    from heapwright._replay.metrics import TARGET_METRICS

    study = contents.study
    keys = dict.fromkeys([*contents.objectives, *_measured(contents), *_ALWAYS])
    columns = [_recommended_arena(study), *map(_metric, keys)]
    columns.append(("accesses,\nbound", lambda heap: worst_steps(study.recipe(heap.id)).short()))
    columns += _growth_column(contents)
    for role in study.elsewhere:
        for key in contents.objectives:
            if key not in TARGET_METRICS:
                columns.append((f"{_WORST[role]}\n{_heading(key)}", _worst_ratio(contents, role, key)))
    columns.append(("recipe; zoo: distance from the front", _remarks(contents)))
    standings = {ranking.candidate.id: ranking for ranking in contents.zoo}
    zoo = contents.every()[len(contents.members) + len(contents.others) :]
    ranked = [heap for heap in zoo if standings[heap.id].ranked]
    unranked = [heap for heap in zoo if not standings[heap.id].ranked]
    _print(title, columns, [contents.members, contents.others, ranked, unranked], contents.picks)


def _remarks(contents: _Contents) -> Callable[[Candidate], str]:
    """The function that returns a heap's recipe, its distance from the front, and why it is not recommended."""
    study, robustness = contents.study, contents.robustness
    standings = {ranking.candidate.id: ranking for ranking in contents.zoo}
    candidates = {heap.id for heap in [*contents.members, *contents.others]}

    def remark(heap: Candidate) -> str:
        recipe = ""
        if heap.id in candidates:
            roles = f"{', '.join(contents.picks[heap.id]).upper()}: " if heap.id in contents.picks else ""
            recipe = f"{roles}{study.recipe(heap.id).summary(study.align)}"
            why_not = robustness.why_not(heap.id)
        else:  # only the long run of a heap with failed requests is known
            why_not = robustness.why_not_stable(heap.id)
        standing = _standing(standings[heap.id]) if heap.id in standings else ""
        return "; ".join(filter(None, [recipe, standing, f"not robust: {why_not}" if why_not else ""]))

    return remark


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


def _recommended_arena(study: Analysis) -> Column:

    return _HEADINGS["reserve"], lambda item: number("reserve_bytes", study.reserve(item.id))


def _measured(contents: _Contents) -> list[str]:
    """The metric of instructions per pair of malloc and free, if it was measured for any heap."""
    key = "instructions_pair_mean"
    return [key] if any(item.metrics[key] is not None for item in contents.every()) else []


def _worst_calls(contents: _Contents) -> tuple[str, str]:
    """The metrics of worst-case calls: of the long run, if there was one."""
    if contents.robustness.foreseen:
        return "long_run_malloc_max", "long_run_free_max"
    return "accesses_malloc_max", "accesses_free_max"


def _growth_column(contents: _Contents) -> list[Column]:
    """Growth over the last nine tenths of the long run, if there was one."""
    if not contents.robustness.foreseen:
        return []
    return [
        (
            "long-run\ngrowth",
            lambda item: growth(item.metrics["long_run_growth"], item.metrics["long_run_bytes"] is not None),
        )
    ]


def _worst_ratio(contents: _Contents, role: str, key: str) -> Callable[[Candidate], str]:
    def show(item: Candidate) -> str:
        worst = contents.robustness.worst(item.id)
        return _ratio(worst[role].ratios.get(key)) if role in worst else "-"

    return show


def _heading(key: str) -> str:
    """The heading of a metric: a few words, or its key, one word per line."""
    return _HEADINGS.get(key, key.replace("_", "\n"))


def _ratio(value: float | None) -> str:
    """The ratio of a value to the best one, as text."""
    if value is None:
        return "-"
    return "failed" if value == float("inf") else f"{value:,.2f} x"


def _thinned(front: Sequence[Candidate], most: int | None, always: set[str | None]) -> list[Candidate]:

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
        failed = standing.candidate.metrics["failed"]
        return f"not ranked: {number('failed', failed)} requests failed" if failed else "not ranked: not measured"
    worse = {key: ratio for key, ratio in standing.ratios.items() if ratio > 1}
    if not worse:
        return f"equal to {standing.dominated_by}"
    by = ", ".join(f"{' '.join(_heading(key).split())} {_difference(key, ratio)}" for key, ratio in worse.items())
    return f"dominated by {standing.dominated_by}: {by}"


def _difference(key: str, ratio: float) -> str:
    """The difference of a value from the best one, from their ratio, with its sign."""
    from heapwright._replay.metrics import METRICS

    if ratio >= 10:
        return f"{ratio:,.0f} x worse"
    percent = 100 * (ratio - 1 if METRICS[key].direction == "min" else 1 / ratio - 1)
    return f"{percent:+.1f} %" if abs(percent) >= 0.1 else f"{percent:+.1g} %"

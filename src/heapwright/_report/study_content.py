"""What a page says of a study: the choice among its recipes, and how the chosen ones treat the traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from heapwright._heaps.names import parse, resolve_recipe
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.metrics import METRICS, TARGET_METRICS, Value, words
from heapwright._report import trade_off
from heapwright._report.answer import reserve_by_load, served_by_arena
from heapwright._report.figure import Figure, counted
from heapwright._report.growth import growth
from heapwright._report.page import Choice, Content, Fact, ReportTable, TraceSection
from heapwright._report.target_content import measured_ids, target_sections
from heapwright._report.trace_content import NamedHeap, section
from heapwright._studies import pareto
from heapwright._studies.analysis import Analysis
from heapwright._studies.by_budget import budgets
from heapwright._studies.comparison import side_by_side
from heapwright._studies.decision import Deciding
from heapwright._studies.originals import place
from heapwright._studies.proofs import proofs_of
from heapwright._studies.records import TraceInfo
from heapwright._studies.results import Candidate, Ranking, Results
from heapwright._studies.robustness import AMONG, WorstRatios
from heapwright._support.version import __version__
from heapwright._traces.profile import profile
from heapwright._traces.trace import Trace

TABLE_METRICS = (
    "footprint_bytes",
    "fragmentation",
    "accesses",
    "accesses_malloc_max",
    "accesses_realloc_max",
    "accesses_free_max",
    "energy_nJ",
    "growth_ratio",
)
SAME_SPOT, SAME_SMALL_SPOT = 5.0, 10.0
"""Pixels within which two recipes off the front are drawn as one point: where the choice is made, and elsewhere."""
PLOTTED_PAIRS = 3
USUAL = "tlsf"
"""The heap that is compared with the pick if the reader named none."""

UNCHOSEN = ("requested_peak_bytes", "lower_bound_bytes", "failed", "lasts")
"""What a trace or a refusal makes, not a recipe that served all, and yes or no: no axis of a plot."""
WORTH_TELLING = 1.0005
"""From this ratio on, four digits show that one value is larger."""


def study_content(study: Analysis, heaps: Sequence[str], against: str | None) -> Content:
    """The page of a study.

    `heaps`: recipes to draw (ids of the study, zoo names, or as on the command line); by default the balanced pick
    and `against`, the heap of the study that the reader has today, or else TLSF, or the zoo's best without it. Raises
    HeapwrightError where no recipe of the study serves every request.
    """
    pick = study.pick("balanced")
    deciding = Deciding(study, study.objectives, against=against)
    decision = deciding.on(pick)
    front, balanced, standings = study.front(), decision.pick, study.zoo_standings()
    drawn = heaps or _drawn_over_time(study, deciding, balanced.id, _best_of_zoo(standings, front, study.objectives))
    named = [_named_heap(study, heap, balanced.id) for heap in drawn]
    choice = _choice(study, deciding, front, standings, balanced.id)
    infos = study.traces()
    names = _listed([info.name for info in infos])
    ranked = sum(standing.ranked for standing in standings)
    admitted = len(_admitted(study))
    results = study.combined
    refusing = int(np.count_nonzero(results.columns["failed"][results.ranked] > 0))
    refused = f"{refusing:,} of them failed requests" if refusing else "all completed every request"
    return Content(
        title=names,
        lead=f"{study.tried} allocators of alignment {study.align} tried on {names}, judged by "
        f"{_listed(list(map(words, study.objectives)))}{f' ({study.question})' if study.question else ''}. "
        f"{len(front):,} of them form the Pareto front: what beats one of these in one respect loses in another.",
        facts=[
            Fact("Recipes tried", study.tried, refused),
            Fact(
                "On the Pareto front",
                f"{len(front):,}",
                f"compared with {ranked} reference allocators" if ranked else "",
            ),
        ],
        traces=[_section(study, info, named, len(infos)) for info in infos],
        answer=decision.evidence(),
        beside=[*decision.remarks(), *(proof.sentence() for proof in proofs_of(study, balanced.id))],
        beside_others=side_by_side(decision),
        reserve=reserve_by_load(decision),
        arena=served_by_arena(study, balanced),
        choice=choice,
        trade_offs=_trade_offs(study, choice.recipes, choice.rivals, admitted),
        growth=growth(study),
        front=_front(study, front, balanced.id),
        zoo=_zoo(study, standings, balanced.id) if standings else None,
        held_out=_held_out(study, balanced.id),
        target=target_sections(study, front, balanced.id),
        origin=_origin(study, admitted, len(choice.recipes)),
    )


def _choice(
    study: Analysis, deciding: Deciding, front: Sequence[Candidate], standings: Sequence[Ranking], balanced: str
) -> Choice:
    """What the page's reader may choose among."""
    bounds = budgets(study)
    offered = _offered(study)
    x, y, *_ = _plotted(study.objectives)
    kinds = _standing_out(study, front, standings, {*bounds.ids, balanced})
    rivals = [id for id in (*deciding.well_known, deciding.yours) if id in kinds]
    recipes = _drawn_recipes(study, kinds, offered, rivals, balanced)
    info = {recipe["id"]: deciding.on(study.candidate(recipe["id"])) for recipe in recipes if recipe["id"] in kinds}
    return Choice(
        recipes=recipes,
        admitted=len(_admitted(study)),
        objectives=study.objectives,
        axes=(x, y),
        offered=offered,
        rivals=rivals,
        selected=balanced,
        says={id: recipe.sentences() for id, recipe in info.items()},
        tables={id: side_by_side(recipe) for id, recipe in info.items()},
        reserves={id: (recipe.reserve_bytes, recipe.more_bytes) for id, recipe in info.items()},
        budgets=bounds,
        source=study.path.name,
    )


def _offered(study: Analysis) -> list[str]:
    """The metrics in which recipes differ, those of the objectives first."""
    rows = _admitted(study)
    differing = [
        key for key in METRICS if key not in UNCHOSEN and len(np.unique(_known(study.combined.columns[key][rows]))) > 1
    ]
    return list(dict.fromkeys([*_plotted(study.objectives), *differing]))


def _known(column: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return column[~np.isnan(column)]


def overview(study: Analysis) -> Figure:
    """Every recipe of the study by its first two objectives; the front, the zoo and the balanced pick stand out."""
    pick, deciding = study.pick("balanced"), Deciding(study, study.objectives)
    kinds = _standing_out(study, study.front(), study.zoo_standings(), {pick.id})
    recipes = _drawn_recipes(study, kinds, _plotted(study.objectives)[:2], deciding.well_known, pick.id)
    return _trade_offs(study, recipes, deciding.well_known, len(_admitted(study)))[0]


def _admitted(study: Analysis) -> npt.NDArray[np.intp]:
    """Rows of the recipes that may be on a front; see `Results.front_rows`."""
    return np.flatnonzero(study.combined.eligible(study.objectives))


def _drawn_over_time(study: Analysis, deciding: Deciding, pick: str, best: Candidate | None) -> list[str]:
    """The pick, and with it the reader's current allocator, else a usual choice, else the best of the zoo."""
    usual = [id for id in deciding.well_known if study.candidate(id).zoo_name == USUAL]
    beside = [id for id in (deciding.yours, *usual, best.id if best else None) if id and id != pick]
    return [pick, *beside[:1]]


def _best_of_zoo(
    standings: Sequence[Ranking], front: Sequence[Candidate], objectives: Sequence[str]
) -> Candidate | None:
    """The zoo allocator with the best balance of the objectives, among those that served every request."""
    named = [standing.candidate for standing in standings if standing.on_front or standing.dominated_by]
    if not named:
        return None
    points = np.array([[float(item.metrics[key] or 0) for key in objectives] for item in [*named, *front]])
    ratios = pareto.ratios_to_best(points, [METRICS[key].direction for key in objectives])
    return named[int(np.log(ratios[: len(named)]).mean(axis=1).argmin())]


def _named_heap(study: Analysis, heap: str, balanced: str) -> NamedHeap:
    """A heap by an id or zoo name of the study, else as on the command line."""
    elsewhere = parse(heap).kind != "zoo" or heap in set(zoo.names()) - set(study.combined.zoo_names)
    if elsewhere:
        return NamedHeap(heap, resolve_recipe(heap))
    identifier = study.resolve(heap)
    name = "Balanced pick" if identifier == balanced else study.candidate(identifier).label
    return NamedHeap(name, study.recipe(identifier))


def _standing_out(
    study: Analysis, front: Sequence[Candidate], standings: Sequence[Ranking], picks: set[str]
) -> dict[str, str]:
    """What stands out among the recipes, by id: the front, the zoo as far as it is ranked, picks, what was measured."""
    kinds = dict.fromkeys(sorted(picks | measured_ids(study)), "cloud")
    kinds |= {standing.candidate.id: "zoo" for standing in standings if standing.on_front or standing.dominated_by}
    return kinds | {candidate.id: "front" for candidate in front}


def _drawn_recipes(
    study: Analysis, kinds: dict[str, str], offered: Sequence[str], rivals: Sequence[str], balanced: str
) -> list[dict[str, Any]]:
    """The recipes that the page holds.

    What stands out, the front of any two of the metrics `offered`, and of the others one for each spot of the plot of
    the objectives, and for each of its part where the choice is made.
    """
    rows = _admitted(study)
    at = {study.combined.ids[row]: int(row) for row in rows}
    shown = {*(at[id] for id in kinds if id in at), *_fronts_of_pairs(study, offered, rows)}
    points = study.combined.values(_plotted(study.objectives))
    fitted = {balanced, *rivals, *(id for id, kind in kinds.items() if kind == "front")}
    limits = points[[at[id] for id in fitted if id in at]].max(axis=0)
    others = np.array([row for row in rows if row not in shown], dtype=np.intp)
    near = others[(points[others] <= limits).all(axis=1)]
    shown |= {*_spots(points, others, SAME_SMALL_SPOT).tolist(), *_spots(points, near, SAME_SPOT).tolist()}
    texts = study.recipe_texts()
    candidates = [study.combined.candidate(row) for row in sorted(shown)]
    recipes = [_recipe(study, candidate, texts[candidate.id], kinds, offered, balanced) for candidate in candidates]
    return sorted(recipes, key=lambda recipe: _ORDER.index(recipe["kind"]))


_ORDER = ("cloud", "zoo", "front")


def _fronts_of_pairs(study: Analysis, keys: Sequence[str], rows: npt.NDArray[np.intp]) -> set[int]:
    """Rows of what no other row beats in some two of the metrics."""
    results: set[int] = set()
    for pair in combinations(keys, 2):
        values = study.combined.values(pair)[rows]
        known = ~np.isnan(values).any(axis=1)
        best = pareto.front(values[known], [METRICS[key].direction for key in pair])
        results.update(rows[known][best].tolist())
    return results


def _recipe(
    study: Analysis, candidate: Candidate, toml: str, kinds: dict[str, str], offered: Sequence[str], balanced: str
) -> dict[str, Any]:
    keys = METRICS if candidate.id in kinds else dict.fromkeys([*offered, *TABLE_METRICS])
    return {
        "id": candidate.id,
        "kind": kinds.get(candidate.id, "cloud"),
        "name": candidate.zoo_name or "",
        "balanced": candidate.id == balanced,
        "summary": Recipe.parse_stored(toml, candidate.id).summary(study.align),
        "toml": toml,
        "metrics": {key: candidate.metrics[key] for key in keys if candidate.metrics[key] is not None},
    }


def _spots(points: npt.NDArray[np.float64], rows: npt.NDArray[np.intp], pixels: float) -> npt.NDArray[np.intp]:
    """The first of the rows in each square of the plot, `pixels` wide: one row for points that would overlap."""
    if not len(rows):
        return rows
    scaled = np.where((points > 0).all(axis=0), np.log(np.maximum(points, 1e-9)), points)[rows]
    low, high = scaled.min(axis=0), scaled.max(axis=0)
    spots = ((scaled - low) / np.where(high > low, high - low, 1) * trade_off.INSIDE / pixels).astype(np.int64)
    return rows[np.unique(spots, axis=0, return_index=True)[1]]


def _plotted(objectives: Sequence[str]) -> tuple[str, ...]:
    """The metrics on the axes: the objectives; for a single one, also the metric that it most likely costs."""
    if len(objectives) > 1:
        return tuple(objectives)
    return (*objectives, "footprint_bytes" if objectives[0] == "accesses" else "accesses")


def _trade_offs(
    study: Analysis, recipes: Sequence[Mapping[str, Any]], rivals: Sequence[str], admitted: int
) -> list[Figure]:
    """A plot for every pair of objectives, and of what was measured on the target against memory."""
    keys = _plotted(study.objectives)
    pairs = list(combinations(keys, 2))[:PLOTTED_PAIRS]
    figures: list[Figure] = []
    for x, y in pairs:
        short = (key.removesuffix("_bytes").removesuffix("_nJ").replace("_", "-") for key in (x, y))
        stem = "trade-off" if len(figures) == 0 else "-".join(("trade-off", *short))
        title = f"{counted(admitted, 'recipe')}: {words(x)} against {words(y)}"
        figures.append(trade_off.trade_off(stem, title, _points(recipes, (x, y)), x, y, rivals))
    target = ("footprint_bytes", "instructions_pair_mean")
    measured = _points(recipes, target)
    if len(measured) >= 2 and not set(keys) & set(TARGET_METRICS):
        count = counted(len(measured), "recipe")
        title = f"{count} measured on the target: footprint against {words(target[1])}"
        figures.append(trade_off.trade_off("trade-off-target", title, measured, *target, rivals))
    return figures


def _points(recipes: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """The recipes that have these metrics as the plots want them."""
    return [
        {
            **{key: recipe[key] for key in ("id", "kind", "name", "balanced")},
            **{key: recipe["metrics"][key] for key in keys},
        }
        for recipe in recipes
        if all(key in recipe["metrics"] for key in keys)
    ]


# --- tables -----------------------------------------------------------------------------------------------------------


def _front(study: Analysis, front: Sequence[Candidate], balanced: str) -> ReportTable:
    keys = list(dict.fromkeys([*study.objectives, *TABLE_METRICS]))
    robustness = study.robustness()
    order = f"In the order of {words(study.objectives[0])}."
    members = {item.id: "front" for item in front}
    shown = list(front)
    if balanced not in members:
        shown.insert(0, study.candidate(balanced))
        order = f"First the balanced pick, which lies near the front. {order}"
    rows = []
    for item in shown:
        worst = robustness.worst(item.id)
        there = [_times(worst[role]) if role in worst else "\u2013" for role in study.elsewhere]
        cells = [*(_cell(key, item.metrics[key]) for key in keys), *there]
        rows.append(_row(study, item, members.get(item.id, "cloud"), balanced, cells))
    apart = [
        (f"memory, worst on {AMONG[role]}", "\u00d7", "footprint over the least that any recipe tried there needs")
        for role in study.elsewhere
    ]
    return ReportTable([*map(_column, keys), *apart], rows, order)


def _times(worst: WorstRatios) -> str:
    return "failed" if worst.refused else f"{worst.ratios['footprint_bytes']:.2f}"


def _zoo(study: Analysis, standings: Sequence[Ranking], balanced: str) -> ReportTable:
    """The zoo, and how far each of its allocators is behind the front."""
    keys = list(dict.fromkeys([*study.objectives, *TABLE_METRICS]))
    rows = []
    for standing in standings:
        item = standing.candidate
        cells = [*(_cell(key, item.metrics[key]) for key in keys), _behind(standing)]
        rows.append(_row(study, item, "front" if standing.on_front else "zoo", balanced, cells))
    columns = [*map(_column, keys), ("against the front", "", "the member that beats it most, and by how much")]
    return ReportTable(columns, rows, "Ratios say how many times more it costs than that member of the front.")


def _behind(standing: Ranking) -> str:
    if standing.on_front:
        return "on it"
    if not standing.ranked:
        return "at its own alignment, for comparison"
    if standing.dominated_by is None:
        return f"{standing.candidate.metrics['failed'] or 0:,} requests failed"
    worse = {key: ratio for key, ratio in standing.ratios.items() if ratio >= WORTH_TELLING}
    if not worse:
        return f"equal to {standing.dominated_by[:6]}"
    ratios = " · ".join(f"{ratio:.4g}\u00d7 {words(key)}" for key, ratio in worse.items())
    return f"{ratios} of {standing.dominated_by[:6]}"


def _held_out(study: Analysis, balanced: str) -> ReportTable | None:
    """The recipes replayed on the traces held out: how much more they cost there than the best on each trace."""
    results = study.elsewhere.get("held out")
    if results is None or not results.ids:
        return None
    columns = [
        (f"{words(key)}, {where}", "", f"{METRICS[key].meaning}: more than the best of all on the same trace, at worst")
        for key in study.objectives
        for where in ("explored", "held out")
    ]
    columns.append(("best there", "", "on the Pareto front of these recipes over the traces held out"))
    names = _listed([info.name for info in study.traces("held out")])
    note = (
        f"Held out: {names}. The front was made without them; a pick has to hold on them. In per cent: how much worse "
        "than the best tried on the same trace, on the trace where that is most."
    )
    return ReportTable(columns, _held_out_rows(study, results, balanced), note)


def _held_out_rows(study: Analysis, results: Results, balanced: str) -> list[dict[str, Any]]:
    """A row per recipe that was replayed on the hold-out set: the balanced pick, the front, then the others."""
    best = {results.ids[row] for row in results.front_rows(study.objectives)}
    order = {candidate.id: at for at, candidate in enumerate(study.front())}
    place = order | {balanced: -1}
    both = (study.combined, results)
    ratios = {key: [part.ratios(key) for part in both] for key in study.objectives}

    def row(candidate: Candidate) -> dict[str, Any]:
        at = [part.row(candidate.id) for part in both]
        cells = [_regret(ratio[row]) for key in study.objectives for ratio, row in zip(ratios[key], at, strict=True)]
        kind = "front" if candidate.id in order else "zoo" if candidate.zoo_name else "cloud"
        return _row(study, candidate, kind, balanced, [*cells, "yes" if candidate.id in best else "no"])

    candidates = map(results.candidate, range(len(results.ids)))
    return [row(item) for item in sorted(candidates, key=lambda item: place.get(item.id, len(order)))]


def _regret(ratios: npt.NDArray[np.float64]) -> str:
    """How much worse than the best on the worst of the traces, in per cent."""
    worst = float(ratios.max())
    if np.isnan(worst):
        return "\u2013"
    return "failed" if np.isinf(worst) else f"{100 * (worst - 1):+,.1f} %"


def _row(study: Analysis, candidate: Candidate, kind: str, balanced: str, cells: Sequence[str]) -> dict[str, Any]:
    marks = ["balanced pick"] if candidate.id == balanced else []
    if study.robustness().stable(candidate.id) is False:
        marks.append("unstable")
    return {
        "id": candidate.id,
        "label": candidate.label,
        "kind": kind,
        "mark": " \u00b7 ".join(marks),
        "summary": study.recipe(candidate.id).summary(study.align),
        "cells": cells,
    }


def _column(key: str) -> tuple[str, str, str]:
    return words(key), METRICS[key].unit.replace("count", "").replace("ratio", ""), METRICS[key].meaning


def _cell(key: str, value: Value | None) -> str:
    if value is None:
        return "\u2013"
    return f"{value:,.0f}" if isinstance(value, int) or value >= 1000 else f"{value:.4g}"


# --- traces and origin ------------------------------------------------------------------------------------------------


def _section(study: Analysis, info: TraceInfo, heaps: Sequence[NamedHeap], traces: int) -> TraceSection:
    """The figures of one of the study's `traces` traces, or why its file cannot give them any more."""
    path = place(study, info)
    if path is None:
        return TraceSection(
            info.name, missing=f"{info.path or 'It came from no file'}: not found, so there are no plots of it."
        )
    trace = Trace.read(path, repair=True)
    if TraceInfo.of(trace).digest != info.digest:
        return TraceSection(
            info.name, missing=f"{path} has changed since the exploration, so there are no plots of it."
        )
    return section(trace, profile(trace), heaps, everything=False, traces=traces)


def _origin(study: Analysis, admitted: int, drawn: int) -> list[str]:
    traces = ", ".join(f"{info.name} ({counted(info.events, 'call')})" for info in study.traces())
    day, version = study.meta["created"][:10], study.meta["heapwright"]
    lines = [
        f"Study {study.path.name}, explored on {day} with Heapwright {version}. "
        f"Page by Heapwright {__version__}. Traces: {traces}.",
        "Metrics are of the whole traces, replayed in the allocator's own C. On the axes 1 MB is 1,000,000 bytes; "
        "calls are counted from 0.",
    ]
    if study.tolerance is None:
        lines.append(f"The exploration is not finished: {study.tried} recipes of its space were tried.")
    elif not study.complete:
        lines.append(
            f"{study.given_up:,} recipes were pruned and are not drawn: none of them can be on "
            + ("the front." if not study.tolerance else f"a front within {100 * study.tolerance:g} % of the best.")
        )
    if drawn < admitted:
        lines.append(f"{drawn:,} of {admitted:,} recipes are drawn: where points would cover each other, only one is.")
    return lines


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

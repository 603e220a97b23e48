"""Learn from the fronts of all traces there are which recipes to try first on any other, and how good that is.

Every recipe of the default space is replayed on the beginning of every trace. The members of the exact fronts become
recipes without sizes (`heapwright._explore.portfolio`), and these are ranked: next is always the one that adds most
hypervolume, averaged over programs. Its result is reported for each trace by a list learnt without its program.
docs/spaces.md shows it.
"""

from __future__ import annotations

import heapq
import json
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

import heapwright as hw

HERE = Path(__file__).resolve().parent
FOLDERS = (
    HERE / "pairs",
    HERE.parent / "examples",
    HERE.parents[1] / "shared" / "data" / "pairs",
    HERE.parents[1] / "shared" / "data" / "heap",
)
CALLS = 8_000
"""The share of each trace that is replayed: its beginning."""

LONGEST = 200
"""Recipes that a list has."""

AFTER = (5, 10, 20, 50, 100, 200)
"""Replays after which hypervolumes are printed."""

FIRST = 20
"""The number of recipes chosen with hindsight, too, to show what an order could reach."""

PROGRAMS = {"mosquitto_broker": "mosquitto", "lighttpd_server": "lighttpd", "coapserver": "coap"}
"""Of traces whose name does not have it."""

OBJECTIVES = ("footprint_bytes", "accesses")


def traces() -> dict[str, tuple[str, Path]]:
    """The program and the file of every trace, by its name."""
    results = {}
    for path in sorted(path for folder in FOLDERS for path in folder.glob("*.parquet")):
        if "op" in parquet.read_schema(path).names:  # packet tables have none
            name = re.sub(r"^(rec|wee)_|_[ab]$|(?<=^kmem)_.*", "", path.stem)
            results[path.stem] = PROGRAMS.get(name, name), path
    return results


@dataclass
class Staircase:
    """The least costs found so far on a trace, float pairs, as far as a reference."""

    reference: tuple[float, float]
    xs: list[float] = field(default_factory=list)
    ys: list[float] = field(default_factory=list)

    def gain(self, x: float, y: float) -> float:
        """The hypervolume that a point adds."""
        most_x, most_y = self.reference
        at = bisect_left(self.xs, x)
        height = min(self.ys[at - 1], most_y) if at else most_y
        gained = 0.0
        while height > y and x < most_x:
            right = self.xs[at] if at < len(self.xs) else most_x
            gained += (right - x) * (height - y)
            if at == len(self.xs):
                break
            x, height, at = right, self.ys[at], at + 1
        return gained

    def add(self, x: float, y: float) -> float:
        """Take a point in; the hypervolume that it added."""
        gained = self.gain(x, y)
        if gained > 0:
            at = bisect_left(self.xs, x)
            end = at
            while end < len(self.xs) and self.ys[end] >= y:
                end += 1
            self.xs[at:end], self.ys[at:end] = [x], [y]
        return gained


@dataclass
class Trace:
    """What is known on one trace: its program, what every recipe of the list to be needs, and the exact front.

    ``costs`` are logarithms, float64[recipes, 2], infinite where requests were refused or there is no such recipe;
    hypervolumes reach as far as the ``reference``, the worst of the zoo.
    """

    program: str
    trace: hw.Trace
    study: Path
    own: set[str]
    trusted: NDArray[np.bool_]
    costs: NDArray[np.float64]
    reference: tuple[float, float]
    whole: float
    whole_trusted: float

    def of(self, may_ship: NDArray[np.bool_]) -> Trace:
        """The same with nothing but what may ship, before the front of what has no low confidence."""
        return replace(self, costs=np.where(may_ship[:, np.newaxis], self.costs, np.inf), whole=self.whole_trusted)

    def reached(self, ranked: Sequence[int]) -> list[float]:
        """Shares of the exact front's hypervolume after each of these recipes."""
        stairs = Staircase(self.reference)
        return list(np.cumsum([stairs.add(*self.costs[at]) for at in ranked]) / self.whole)


def explored(path: Path, cache: Path, jobs: int) -> tuple[hw.Trace, Path]:
    """The beginning of a trace, and the study of all of its default space; kept in the cache."""
    trace = hw.read_trace(path)
    study = cache / f"{path.stem}.duckdb"
    if len(trace) > CALLS:
        trace = hw.cut(trace, first=CALLS)
    if not study.exists():
        begun = study.with_suffix(".part")
        hw.explore(trace, begun, complete=True, copies=0, stress_test=False, jobs=jobs)
        begun.rename(study)
    return trace, study


def names_of(study: hw.Study, trace: hw.Trace, levels: hw.default_space.Levels) -> set[str]:
    """What lies on a front or nearly there, without sizes, as JSON: of many equal ones, which holds elsewhere?

    Of all recipes, and of those whose design has no low confidence.
    """
    combined = study.combined
    texts, result = study.recipe_texts(), set()
    for mask in (np.ones(len(combined.ids), np.bool_),):
        rows = np.flatnonzero(combined.eligible(OBJECTIVES) & mask)
        points = np.stack([combined.columns[key][rows] for key in OBJECTIVES], axis=1)
        ratios = hw.pareto.ratios_to_best(points, ["min", "min"])
        distance = hw.pareto.distances(ratios, ratios[np.isin(rows, combined.front_rows(OBJECTIVES, mask))])
        nearest = [at for at in np.argsort(distance, kind="stable")[:MOST_NEAR] if distance[at] <= np.log(NEAR)]
        for row in rows[nearest]:
            name, recipe = combined.zoo_names[row], hw.Recipe.parse(texts[combined.ids[row]], "study")
            info = {"zoo": name} if name else hw.portfolio.abstracted(recipe, levels)
            if info is not None:
                result.add(json.dumps(info))
    return result


NEAR = 1.005
"""What needs this many times what a member of the front does is nearly there."""

MOST_NEAR = 100
"""The nearest of a front that are candidates for the list."""


def known_of(
    program: str, trace: hw.Trace, path: Path, own: set[str], every: Sequence[str], levels: hw.default_space.Levels
) -> Trace:
    """What every recipe without sizes needs on a trace."""
    study = hw.open_study(path)
    combined = study.combined
    values = np.log(np.stack([combined.columns[key] for key in OBJECTIVES], axis=1))
    values[~combined.eligible(OBJECTIVES)] = np.inf
    row = {id: at for at, id in enumerate(combined.ids)}
    costs, trusted = np.full((len(every), 2), np.inf), np.zeros(len(every), np.bool_)
    for at, text in enumerate(every):
        recipe = hw.portfolio.tailored_to(json.loads(text), levels)
        trusted[at] = recipe is not None
        if recipe is not None and recipe.hash in row:
            costs[at] = values[row[recipe.hash]]
        elif recipe is not None:
            metrics = hw.replay(trace, recipe).metrics
            if not metrics["failed"]:
                costs[at] = np.log([float(metrics[key] or 0) for key in OBJECTIVES])
    of_zoo = np.array([name is not None for name in combined.zoo_names]) & combined.ranked
    worst = values[of_zoo & combined.eligible(OBJECTIVES)].max(axis=0)
    wholes = [hw.pareto.hypervolume(values[combined.front_rows(OBJECTIVES, mask)], worst) for mask in (None, None)]
    return Trace(program, trace, path, own, trusted, costs, (float(worst[0]), float(worst[1])), *wholes)


def ranked(known: Sequence[Trace], candidates: Sequence[int], most: int) -> list[int]:
    """Recipes, the next always the one that adds most; what each adds only ever falls, and few are looked at again."""
    programs = [item.program for item in known]
    weights = [1 / (item.whole * programs.count(item.program)) for item in known]
    stairs = [Staircase(item.reference) for item in known]

    def gain(at: int) -> float:
        return sum(
            weight * stair.gain(*item.costs[at]) for weight, stair, item in zip(weights, stairs, known, strict=True)
        )

    alone = sum(  # nothing is found yet: the box between a point and the reference
        weight * np.clip(np.array(item.reference) - item.costs, 0, None).prod(axis=1)
        for weight, item in zip(weights, known, strict=True)
    )
    waiting = [(-float(alone[at]), at) for at in candidates]
    heapq.heapify(waiting)
    results: list[int] = []
    while waiting and len(results) < most:
        _, at = heapq.heappop(waiting)
        now = gain(at)
        if waiting and now < -waiting[0][0]:
            heapq.heappush(waiting, (-now, at))
            continue
        results.append(at)
        for stair, item in zip(stairs, known, strict=True):
            stair.add(*item.costs[at])
    return results


def near_of(study: Path, trace: hw.Trace, levels: hw.default_space.Levels) -> set[str]:
    """The same, kept next to the study."""
    kept = study.with_suffix(".json")
    if not kept.exists():
        kept.write_text(json.dumps(sorted(names_of(hw.open_study(study), trace, levels))), encoding="utf-8")
    return set(json.loads(kept.read_text(encoding="utf-8")))


def programs_with(own: Mapping[str, set[str]], program_of: Mapping[str, str]) -> dict[str, int]:
    """On or near the fronts of how many programs each recipe is."""
    results: dict[str, set[str]] = {}
    for name, texts in own.items():
        for text in texts:
            results.setdefault(text, set()).add(program_of[name])
    return {text: len(programs) for text, programs in results.items()}


FEWEST = 2
"""What is on or near the fronts of fewer programs was luck."""


def picked(item: Trace, told: Sequence[hw.portfolio.Template], scratch: Path) -> tuple[float, float]:
    """What the balanced pick of a list needs, over that of all recipes, both as explored: memory and accesses."""
    scratch.unlink(missing_ok=True)
    space = hw.portfolio.portfolio_space([item.trace], templates=told)
    short = hw.explore(item.trace, scratch, space=space, complete=True, copies=0, stress_test=False, jobs=1).pick()
    whole = hw.open_study(item.study).pick()
    memory, accesses = (float(short.metrics[key] or 0) / float(whole.metrics[key] or 1) for key in OBJECTIVES)
    return memory, accesses


def toml(told: Sequence[Mapping[str, Any]], kept_out: hw.portfolio.HeldOutScore) -> str:
    """The file that ships."""
    facts = [f"{key} = {value}" for key, value in asdict(kept_out).items()]
    recipes = [f"    {inline(item)}," for item in told]
    head = "# Learnt from the fronts of other programs' traces, the best first; written by bench/teach.py."
    return "\n".join([head, "recipes = [", *recipes, "]", "", "[kept_out]", *facts, ""])


def inline(value: Any) -> str:
    """A value in TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {inline(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    return json.dumps(value)


@dataclass
class Learning:
    """What a list is learnt from: recipes without sizes, which have no low confidence, which fragment; traces."""

    every: list[str]
    trusted: NDArray[np.bool_]
    fragments: NDArray[np.bool_]
    known: dict[str, Trace]

    def learnt(self, without: str | None = None) -> list[int]:
        """The list, of all programs but one."""
        may_ship = self.trusted & ~self.fragments
        of_all = [item for item in self.known.values() if item.program != without]
        return ranked([*of_all, *(item.of(may_ship) for item in of_all)], self.candidates(without), LONGEST)

    def candidates(self, without: str | None = None) -> list[int]:
        """What may come on the list."""
        known = {name: item for name, item in self.known.items() if item.program != without}
        counts = programs_with(
            {name: item.own for name, item in known.items()}, {name: item.program for name, item in known.items()}
        )
        return [at for at, text in enumerate(self.every) if counts.get(text, 0) >= FEWEST]

    def best(self, item: Trace, count: int) -> float:
        """The share that `count` of the same candidates reach, chosen on the trace itself: no order does better."""
        return item.reached(ranked([item], self.candidates(item.program), count))[-1]

    def stress(self, kept: Path) -> None:
        """Try which recipes of the list last, and of what takes the place of those that do not; kept in a file."""
        stable: dict[str, list[bool]] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
        levels = {
            name: hw.default_space.Levels(hw.default_space.Demand.of([self.known[name].trace]), ALIGN)
            for name in ENDURED
        }
        for turn in range(ROUNDS + 1):
            for text, info in stable.items():
                if text in self.every:
                    self.fragments[self.every.index(text)] = 2 * sum(info) < len(info)
            remaining = [at for at in self.learnt() if self.trusted[at] and self.every[at] not in stable]
            if not remaining or turn == ROUNDS:
                return
            for at in remaining:
                made = ((name, hw.portfolio.tailored_to(json.loads(self.every[at]), levels[name])) for name in ENDURED)
                ended = [hw.stress(self.known[name].trace, item, calls=YEARS)[0] for name, item in made if item]
                stable[self.every[at]] = [item.stable for item in ended]
            kept.write_text(json.dumps(stable), encoding="utf-8")

    def told(self, order: Sequence[int]) -> list[dict[str, Any]]:
        """The list as it ships."""
        return [{**json.loads(self.every[at]), **({"fragments": True} if self.fragments[at] else {})} for at in order]


ENDURED = ("dnsmasq_a",)
"""Traces on which it is tried which recipes last."""

ROUNDS = 3
"""How often what came into the list is tried in the place of what did not."""

YEARS = 100_000
"""Calls of a loop."""


def judged(learning: Learning, picks: int, scratch: Path) -> tuple[list[list[float]], list[tuple[float, float]]]:
    """By lists that a trace's program had no part in: hypervolumes after `AFTER`, and of `picks` picks what they need.

    The last hypervolume is of the best `FIRST` of the same recipes, chosen with hindsight.
    """
    shares, needed = [], []
    step = max(len(learning.known) // picks, 1) if picks else 0
    for program in sorted({item.program for item in learning.known.values()}):
        order = learning.learnt(without=program)
        for at, (name, item) in enumerate(learning.known.items()):
            if item.program != program:
                continue
            reached = item.reached(order)
            shares.append([float(reached[min(after, len(reached)) - 1]) for after in AFTER])
            shares[-1].append(learning.best(item, FIRST))
            row = [f"{share:.3f}" for share in shares[-1]]
            if step and at % step == step // 2:
                needed.append(picked(item, learning.told(order), scratch))
                row += [f"{needed[-1][0]:.3f}", f"{needed[-1][1]:.3f}"]
            else:
                row += ["", ""]
            click.echo(f"| {name} | {' | '.join(row)} |")
    return shares, needed


def summary(shares: Sequence[Sequence[float]], needed: Sequence[tuple[float, float]]) -> None:
    """Print what that comes to over all traces."""
    table, picks = np.array(shares), np.array(needed or [(np.nan, np.nan)])
    for words, share in (("median", 50), ("nine in ten", 10), ("worst", 0)):
        info = [f"{value:.3f}" for value in np.percentile(table, share, axis=0)]
        info += [f"{value:.3f}" for value in np.percentile(picks, 100 - share, axis=0)]
        click.echo(f"| **{words}** | {' | '.join(info)} |")
    good = " | ".join(f"{value:.0%}" for value in (table >= GOOD).mean(axis=0))
    click.echo(f"| **at least {GOOD}** | {good} | | |")


def kept_out_of(
    shares: Sequence[Sequence[float]], needed: Sequence[tuple[float, float]], known: Mapping[str, Trace]
) -> hw.portfolio.HeldOutScore:
    """What is reported of answers on traces kept out."""
    middle, high = (np.percentile(np.array(needed), share, axis=0).round(4).tolist() for share in (50, 90))
    reached = np.array(shares)[:, len(AFTER) - 1]
    return hw.portfolio.HeldOutScore(
        traces=len(known),
        programs=len({item.program for item in known.values()}),
        hypervolume=round(float(np.median(reached)), 4),
        hypervolume_low=round(float(np.percentile(reached, 10)), 4),
        picks=len(needed),
        memory=middle[0],
        memory_high=high[0],
        accesses=middle[1],
        accesses_high=high[1],
    )


GOOD = 0.99
"""Such a share of the exact front's hypervolume is good."""


@click.command()
@click.option("--cache", type=click.Path(path_type=Path), required=True, help="Keep studies here.")
@click.option("--only", default="", help="Traces whose name holds this.")
@click.option("--cached", is_flag=True, help="Only traces whose study is in the cache.")
@click.option("--picks", type=click.IntRange(min=0), default=20, show_default=True, help="Judge this number of picks.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the list, learnt on all traces, here.")
def main(cache: Path, only: str, cached: bool, picks: int, jobs: int, output: Path | None) -> None:
    """Print hypervolumes and needs of picks as shares of those of all recipes, for traces kept out of the learning."""
    cache.mkdir(parents=True, exist_ok=True)
    read: dict[str, tuple[str, hw.Trace, Path, hw.default_space.Levels]] = {}
    own: dict[str, set[str]] = {}
    for name, (program, path) in traces().items():
        if only in name and (not cached or (cache / f"{name}.duckdb").exists()):
            trace, study = explored(path, cache, jobs)
            levels = hw.default_space.Levels(hw.default_space.Demand.of([trace]), ALIGN)
            read[name], own[name] = (program, trace, study, levels), near_of(study, trace, levels)
    programs = {name: program for name, (program, *_) in read.items()}
    every = sorted(text for text, count in programs_with(own, programs).items() if count >= FEWEST)
    known = {
        name: known_of(program, trace, study, own[name], every, levels)
        for name, (program, trace, study, levels) in read.items()
    }
    trusted = np.any([item.trusted for item in known.values()], axis=0)
    learning = Learning(every, trusted, np.zeros(len(every), np.bool_), known)
    learning.stress(cache / "lasts.json")
    click.echo(f"{len(every)} recipes near the fronts of {len(known)} traces\n")
    click.echo(
        f"| trace | {' | '.join(f'after {after}' for after in AFTER)} | best {FIRST} | pick: memory | accesses |"
    )
    click.echo(f"| --- |{' ---: |' * (len(AFTER) + 3)}")
    shares, needed = judged(learning, picks, cache / "scratch.duckdb")
    summary(shares, needed)
    if output is not None and needed:
        info = learning.told(learning.learnt())
        output.write_text(toml(info, kept_out_of(shares, needed, known)), encoding="utf-8")


ALIGN = 8
"""Alignment at which the list is learnt."""


if __name__ == "__main__":
    main()

"""Which untuned recipes are best, and is the zoo's advice among them? bench/robustness.md has the answer.

    .venv/bin/python bench/universal.py learn --cache FOLDER    # the universal front: an hour or two
    .venv/bin/python bench/universal.py judge --cache FOLDER    # on recordings that had no part in it

Every recipe of a default space made for all learning traces at once, its relatives whose searches are bounded, and a
grid around the zoo's own heaps are replayed on each of them. A recipe counts by geometric means over programs: its
footprint over the least there, and its accesses over the fewest. Of those that are bounded the front is made, and what
is not stable is removed until all of it is stable.

The split was fixed before anything was replayed. Learning: first recordings in bench/pairs, but those of every fourth
program by name, and examples/. Judging: the second recordings of these programs, and of ../shared/data/pairs and
../shared/data/heap all whose programs have no part in learning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from numpy.typing import NDArray
from robustness import DATA, carried
from teach import traces

import heapwright as hw

HERE = Path(__file__).resolve().parent
ALIGN: Final = 8
MOST = 16
"""Blocks of a bin that a search looks at in bounded relatives, as in the zoo's own heaps."""

EVERY = 4
"""Every fourth program of bench/pairs is for judging."""

BESIDE = (
    "small-lists",
    "all-round",
    "victim-bins",
    "exact-bins",
    "small",
    "lea-2.7.2",
    "tlsf",
    "half-fit",
)
"""The zoo's that are printed as well: what is recommended, and what others would take."""

ENDURED = ("mosquitto_broker", "dnsmasq_a", "lua_a")
"""Learning traces whose sizes stress tests draw from."""

NEEDS = ("footprint_bytes", "accesses")
WORKLOADS = ("drr", "easyport")
HASH = re.compile("[0-9a-f]{12}")
SEEDS = (0, 1, 2)
CALLS = 1_000_000
"""Calls of a loop of the stress test."""

Floats = NDArray[np.float64]


# ---- traces --------------------------------------------------------------------------------------------------------


def split() -> tuple[dict[str, str], dict[str, str]]:
    """The programs of the traces to learn on and of those to judge on, by the traces' names."""
    every = traces()
    ours = {name: item for name, item in every.items() if item[1].is_relative_to(HERE / "pairs")}
    judging = sorted({program for program, _ in ours.values()})[EVERY - 1 :: EVERY]
    learnt = {
        name: program
        for name, (program, path) in every.items()
        if path.is_relative_to(HERE.parent / "examples")
        or (name in ours and path.stem.endswith("_a") and program not in judging)
    }
    known = {*learnt.values(), *(program for program, _ in ours.values() if program not in judging)}
    judged = {
        name: program
        for name, (program, path) in every.items()
        if program not in known and not (name in ours and path.stem.endswith("_a"))
    }
    return learnt, judged


def carried_by() -> dict[str, str]:
    """What networks carried, as packet queues and as frames of a modem, by a name: the capture."""
    captures = sorted(path.stem for path in (DATA / "packets").glob("*.parquet"))
    return {f"{workload} {name}": name for workload in WORKLOADS for name in captures}


def read(name: str) -> hw.Trace:
    """A recording, or what a workload makes of a capture's first packets."""
    workload, _, packets = name.partition(" ")
    return carried(workload, packets) if packets else hw.read_trace(traces()[name][1])


def weights(programs: Sequence[str]) -> Floats:
    """Each program has the same weight, float64[traces]."""
    result = np.array([1 / programs.count(program) for program in programs])
    return np.asarray(result / result.sum())


# ---- recipes -------------------------------------------------------------------------------------------------------


def recipes(demand: hw.default_space.Demand) -> Iterator[hw.Recipe]:
    """The default space, its relatives whose searches are bounded, and a grid around the zoo's own heaps."""
    default = list(hw.Space.tailored(demand, ALIGN).recipes())
    yield from default
    for recipe in default:
        *front, last = recipe.pools
        if isinstance(last, hw.pools.General) and last.fit == "best" and last.bins != "none":
            yield from _made(*front, last.model_copy(update={"search_most": MOST}))
    frequent = hw.default_space.Levels(demand, ALIGN).frequent
    for general in _generals():
        yield from _made(general)
    for front, general in product(_fronts(frequent), _generals(few=True)):
        yield from _made(front, general)


def _made(*pools: Any) -> Iterator[hw.Recipe]:
    with suppress(hw.HeapwrightError):
        yield hw.Recipe(pools=pools, align=ALIGN)


SHAPES = [(64, 2, 0), (128, 1, 0), (128, 2, 0), (128, 2, 32), (256, 1, 0), (256, 2, 64), (512, 2, 0), (512, 4, 0)]
SHAPES += [(1024, 4, 0), (2048, 4, 0)]
"""Exact bins: up to which size each has its own, how many an octave are above, and how many there are at most."""


def _generals(few: bool = False) -> Iterator[Any]:
    """Best fit through exact bins with and without a last remainder, and good fit."""
    exact: dict[str, Any] = {"bins": "exact", "fit": "best", "search_most": MOST}
    victims, closes = ((256, 2000), (0, 1)) if few else ((64, 128, 256, 512, 1000, 2000), (0, 1, 2, 4, 8, 30))
    for linear, steps, most in SHAPES[3::4] if few else SHAPES:
        shape = exact | {"linear_up_to": linear, "bins_per_octave": steps, "most_bins": most}
        yield hw.pools.General(**shape)
        for victim, close in product(victims, closes):
            yield hw.pools.General(**shape, victim_up_to=victim, close_bins=close)
    for linear, steps in product((1024,) if few else (256, 512, 1024, 2048), (16,) if few else (8, 16, 32)):
        shape = {"bins": "two-level", "linear_up_to": linear, "bins_per_octave": steps}
        yield hw.pools.General(**shape)
        for victim in () if few else (64, 256, 2000):
            yield hw.pools.General(**shape, victim_up_to=victim)


def _fronts(frequent: Sequence[int]) -> Iterator[Any]:
    """Lists that hold few blocks each, and are emptied at different times."""
    lists: list[dict[str, Any]] = [{"sizes": tuple(frequent[:count])} for count in (1, 2, 3, 6, 9)]
    lists += [{"up_to": size} for size in (32, 64, 128, 256, 512)]
    empties: list[dict[str, Any]] = [{}, {"flush": "over-limit"}]
    empties += [{"flush": "before-growing"}]
    for kept, blocks, empty in product(lists, (1, 2, 4, 8, 16), empties):
        yield hw.pools.Quick(**kept, limit_blocks=blocks, **empty)


# ---- learning ------------------------------------------------------------------------------------------------------


@dataclass
class Front:
    """Recipes of a study, by id, and what each costs over the best: memory and accesses, float64[n, 2]."""

    recipes: list[hw.Recipe]
    costs: Floats
    beside: dict[str, Floats]


def learnt(cache: Path, jobs: int) -> Front:
    """Every recipe that serves all learning traces and is bounded; the study is kept."""
    programs, _ = split()
    read = [hw.read_trace(traces()[name][1]) for name in programs]
    study = cache / "universal.duckdb"
    if not study.exists():
        demand = hw.default_space.Demand.of(read)
        bounded = (recipe for recipe in recipes(demand) if hw.worst_steps(recipe).most is not None)
        space = hw.Space([bounded], align=ALIGN)
        click.echo(f"{len(space):,} recipes, {len(read)} traces, {sum(map(len, read)):,} calls", err=True)
        begun = study.with_suffix(".part")
        hw.explore(read, begun, space=space, complete=True, copies=0, stress_test=False, same_device=False, jobs=jobs)
        begun.rename(study)
    opened = hw.open_study(study)
    known = opened.combined
    share = weights([programs[name] for name in known.traces])
    costs = np.stack([_mean(known.each[key], known.each["failed"], share) for key in NEEDS], 1)
    texts = opened.recipe_texts()
    results = [hw.Recipe.parse(texts[id], id) for id in known.ids]
    beside = {name: costs[row] for row, name in enumerate(known.zoo_names) if name in BESIDE and known.ranked[row]}
    may = [
        row
        for row, recipe in enumerate(results)
        if known.ranked[row] and np.isfinite(costs[row]).all() and hw.worst_steps(recipe).most is not None
    ]
    click.echo(f"{len(may):,} of {len(results):,} serve all and are bounded", err=True)
    return Front([results[row] for row in may], costs[may], beside)


def _mean(values: Floats, failed: Floats, share: Floats) -> Floats:
    """The geometric mean of each recipe's value over the least there, float64[n]; infinite where it refused."""
    served = np.where(failed == 0, values, np.inf)
    return np.asarray(np.exp(np.log(served / served.min(axis=0)) @ share))


def lasting(front: Front, kept: Path, near: float) -> list[int]:
    """The members of the front once all that fragments is taken out, rows of the recipes; what was tried is kept."""
    info: dict[str, bool] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    read = [hw.read_trace(traces()[name][1]) for name in ENDURED]
    remaining = front.costs[:, 0] <= LITTLE * front.costs[:, 0].min()
    while True:
        for row, recipe in enumerate(front.recipes):
            remaining[row] &= info.get(recipe.hash, True)
        members = members_of(front.costs, remaining, near)
        waiting = [row for row in members if front.recipes[row].hash not in info]
        if not waiting:
            return members
        click.echo(
            f"{len(members)} members, {len(waiting)} to try, {sum(not item for item in info.values())} fragment",
            err=True,
        )
        with ThreadPoolExecutor(2) as pool:
            for row, stable in zip(
                waiting, pool.map(lambda row: _lasts(front.recipes[row], read), waiting), strict=True
            ):
                info[front.recipes[row].hash] = stable
        kept.write_text(json.dumps(info), encoding="utf-8")


def _lasts(recipe: hw.Recipe, read: Sequence[hw.Trace]) -> bool:
    """Whether it is stable on all traces with all seeds."""
    return all(hw.stress(trace, recipe, calls=CALLS, seed=seed)[0].stable for seed in SEEDS for trace in read)


def members_of(costs: Floats, left: NDArray[np.bool_], near: float) -> list[int]:
    """Rows that no other beats by this factor in both."""
    rows = np.flatnonzero(left)
    rows = rows[np.lexsort((costs[rows, 1], costs[rows, 0]))]
    result, fewest = [], np.inf
    for row in rows:
        if costs[row, 1] * near < fewest:
            result.append(int(row))
            fewest = costs[row, 1]
    return result


def three_of(costs: Floats, members: Sequence[int]) -> dict[str, int]:
    """Least memory, compromise and fewest accesses; of the compromise 15 % of memory is worth half of the accesses."""
    steps = np.log(costs[members]) / np.log([1.15, 2.0])
    steps -= steps.min(axis=0)
    return {
        "least memory": members[int(np.argmin(costs[members, 0]))],
        "compromise": members[int(np.argmin(steps.max(axis=1)))],
        "fewest accesses": members[int(np.argmin(costs[members, 1]))],
    }


# ---- judging -------------------------------------------------------------------------------------------------------


def contenders(cache: Path) -> dict[str, hw.Recipe]:
    """The learnt front, and the zoo's heaps at the same alignment and at their own, by name."""
    kept: dict[str, str] = json.loads((cache / "front.json").read_text(encoding="utf-8"))
    heaps = {id: hw.Recipe.parse(text, id) for id, text in kept.items()}
    for name in BESIDE:
        own = hw.zoo(name)
        heaps[name] = own.at_alignment(ALIGN)
        if own.align < ALIGN:
            heaps[f"{name}@{own.align}"] = own
    return heaps


def needs(heaps: Mapping[str, hw.Recipe], programs: Mapping[str, str], kept: Path) -> Floats:
    """Footprint in bytes and accesses of each heap on each trace, float64[heaps, traces, 2]; kept in a file.

    Infinite where a request was refused.
    """
    info: dict[str, list[float]] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    with ThreadPoolExecutor(2) as pool:
        for name in programs:
            waiting = [heap for heap in heaps.values() if f"{name} {heap.hash}" not in info]
            if waiting:
                trace = read(name)
                result = pool.map(partial(_needs, trace), waiting)
                info |= {f"{name} {heap.hash}": item for heap, item in zip(waiting, result, strict=True)}
                kept.write_text(json.dumps(info), encoding="utf-8")
    return np.array([[info[f"{name} {heap.hash}"] for name in programs] for heap in heaps.values()])


def _needs(trace: hw.Trace, recipe: hw.Recipe) -> list[float]:
    metrics = hw.replay(trace, recipe).metrics
    return [np.inf, np.inf] if metrics["failed"] else [float(metrics[key] or 0) for key in NEEDS]


@click.group()
def main() -> None:
    """Learn the universal front, and judge it."""


CACHE = click.option("--cache", type=click.Path(path_type=Path), required=True, help="Keep studies here.")
JOBS = click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True)


@main.command()
@CACHE
@JOBS
def learn(cache: Path, jobs: int) -> None:
    """Print the universal front, and write its recipes to CACHE/front.json."""
    cache.mkdir(parents=True, exist_ok=True)
    front = learnt(cache, jobs)
    members = lasting(front, cache / "lasts.json", NEAR)
    three = {row: words for words, row in three_of(front.costs, members).items()}
    click.echo("| recipe | memory | accesses | worst | |\n| --- | ---: | ---: | ---: | --- |")
    for row in members:
        recipe, (memory, accesses) = front.recipes[row], front.costs[row]
        needed = f"{memory:.3f} | {accesses:.2f} | {hw.worst_steps(recipe).short()}"
        click.echo(f"| {recipe.summary()} | {needed} | {three.get(row, '')} |")
    for name, (memory, accesses) in front.beside.items():
        click.echo(f"| **{name}** | {memory:.3f} | {accesses:.2f} | {hw.worst_steps(hw.zoo(name)).short()} | |")
    kept = {front.recipes[row].hash: front.recipes[row].to_toml() for row in members}
    (cache / "front.json").write_text(json.dumps(kept), encoding="utf-8")


@main.command()
@CACHE
def judge(cache: Path) -> None:
    """Print what the front's members and the zoo's heaps need where nothing was learnt."""
    heaps, (_, recordings) = contenders(cache), split()
    for words, programs in (("recordings", recordings), ("networks", carried_by())):
        result = np.log(needs(heaps, programs, cache / "needs.json"))
        served = np.asarray(np.isfinite(result).all(axis=(0, 2)))
        kept = {name: program for (name, program), item in zip(programs.items(), served, strict=True) if item}
        click.echo(f"{len(kept)} of {len(programs)} {words}, of {len(set(kept.values()))}, are served by all\n")
        for line in table(heaps, result[:, served], kept):
            click.echo(line)


def table(heaps: Mapping[str, hw.Recipe], result: Floats, programs: Mapping[str, str]) -> Iterator[str]:
    """What each heap needs over the least of all, and over the recommended one, by memory."""
    share, known = weights(list(programs.values())), list(heaps)
    ratios = result - result.min(axis=0)
    reference = result[known.index(hw.RECOMMENDED)]
    yield "| heap | memory | at most | accesses | at most | memory over all-round | accesses over all-round |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in np.argsort(np.tensordot(ratios[:, :, 0], share, 1)):
        mean, most = np.exp(share @ ratios[row]), np.exp(ratios[row].max(axis=0))
        beside = " | ".join(_with_error(result[row, :, at] - reference[:, at], programs) for at in (0, 1))
        name = known[row] if not HASH.fullmatch(known[row]) else heaps[known[row]].summary()
        yield f"| {name} | {mean[0]:.3f} | {most[0]:.2f} | {mean[1]:.2f} | {most[1]:.1f} | {beside} |"
    yield ""


def _with_error(differences: Floats, programs: Mapping[str, str]) -> str:
    """The geometric mean over programs, and twice its standard error."""
    of = list(programs.values())
    each = np.array(
        [differences[[at for at, item in enumerate(of) if item == name]].mean() for name in dict.fromkeys(of)]
    )
    return f"{np.exp(each.mean()):.3f} +- {2 * each.std(ddof=1) / np.sqrt(len(each)):.3f}"


LITTLE = 1.15
"""What needs this many times the least memory is on no front."""

NEAR = 1.02
"""A member of the front has this many times fewer accesses than one with less memory."""


if __name__ == "__main__":
    main()

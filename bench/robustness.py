"""Which copies of a trace predict a second recording of the same program? bench/robustness.md shows what this prints.

Of each pair, recipes are tuned on one trace, and tried on copies of it and on the other trace, which stands for
another day. The pairs, and which of them the kinds and parameters were chosen on, were fixed before the first run.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

import heapwright as hw
from heapwright import Space, Trace, cut

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
LIGHTTPD = ROOT / "examples" / "lighttpd_server.parquet"
BUT = ("but_wifi_probe_2023", "but_wifi_probe_2024")
PACKETS = 20_000

Floats = npt.NDArray[np.float64]


# ---- pairs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """A trace to tune on, and another recording of the same program; `choosing`: kinds were chosen on it."""

    name: str
    choosing: bool
    make: Callable[[], tuple[Trace, Trace]]


def heap(name: str) -> Trace:
    return hw.read_trace(DATA / "heap" / f"{name}.parquet")


def halves(name: str) -> tuple[Trace, Trace]:
    return in_halves(heap(name))


def in_halves(trace: Trace) -> tuple[Trace, Trace]:
    half = len(trace) // 2
    return cut(trace, first=half), cut(trace, last=half)


@cache
def carried(workload: str, packets: str) -> Trace:
    """What the workload makes of the first packets; blocks of drr are IP packets less 40 bytes."""
    size: Any = {"size": "ip"} if workload == "drr" else {}
    trace = hw.workload(workload, DATA / "packets" / f"{packets}.parquet", count=PACKETS, **size)
    named: Trace = replace(trace, name=f"{workload}-{packets}")
    return named


PAIRS = (
    Pair("rec_coapserver halves", True, lambda: halves("rec_coapserver")),
    Pair("rec_lua halves", False, lambda: halves("rec_lua")),
    Pair("rec_jq halves", False, lambda: halves("rec_jq")),
    Pair("rec_sqlite halves", True, lambda: halves("rec_sqlite")),
    Pair("rec_tcpdump halves", False, lambda: halves("rec_tcpdump")),
    Pair("lighttpd, another load", True, lambda: (heap("rec_lighttpd"), hw.read_trace(LIGHTTPD))),
    Pair(
        "drr, lbnl 11 to 14",
        True,
        lambda: (carried("drr", "lbnl_ftp_2003_01_11"), carried("drr", "lbnl_ftp_2003_01_14")),
    ),
    Pair(
        "drr, lbnl 11 to 18",
        True,
        lambda: (carried("drr", "lbnl_ftp_2003_01_11"), carried("drr", "lbnl_ftp_2003_01_18")),
    ),
    Pair("easyport, but_wifi 2023 to 2024", False, lambda: (carried("easyport", BUT[0]), carried("easyport", BUT[1]))),
    Pair("drr, westermo halves", True, lambda: in_halves(carried("drr", "westermo_ind_2023"))),
    Pair("drr, auckland halves", False, lambda: in_halves(carried("drr", "auckland_atm_2000"))),
)


# ---- what is tried -------------------------------------------------------------------------------------------------

COPIES = 3
"""Of each kind; the worst counts."""

KINDS: tuple[hw.copy_kinds.Kind, ...] = (
    *(hw.copy_kinds.Sizes(spread) for spread in (0.1, 0.3, 0.5)),
    *(hw.copy_kinds.Lifetimes(share, stretch) for share, stretch in ((0.25, 1.0), (0.25, 4.0), (1.0, 1.0))),
    *(hw.copy_kinds.Streams(shift) for shift in (0.005, 0.02, 0.1)),
    *(hw.copy_kinds.Blocks(blocks, 4) for blocks in (8, 32, 128)),
    *(hw.copy_kinds.Load(times, shift) for times, shift in ((2, 0.05), (2, 0.25), (4, 0.25))),
)


TOGETHER = tuple(
    hw.copy_kinds.Together(hw.copy_kinds.Sizes(), other)
    for other in KINDS
    if other
    in (
        hw.copy_kinds.Lifetimes(0.25, 4.0),
        hw.copy_kinds.Lifetimes(1.0, 1.0),
        hw.copy_kinds.Streams(0.02),
        hw.copy_kinds.Blocks(32, 4),
        hw.copy_kinds.Load(2, 0.05),
        hw.copy_kinds.Load(4, 0.25),
    )
)


def title(kind: hw.copy_kinds.Kind) -> str:
    if isinstance(kind, hw.copy_kinds.Together):
        return f"{title(kind.sizes)} + {title(kind.other)}"
    return f"{kind.name} {' '.join(f'{value:g}' for value in asdict(kind).values())}"


# ---- measuring -----------------------------------------------------------------------------------------------------

MEMBERS, FEW = 90, 40
LIMIT = 1500
NEAR = 1.5


def members(trace: Trace, most: int, jobs: int) -> list[hw.Recipe]:
    """The recipes nearest the front, at most NEAR times a member of it in both needs, of a random part of the default
    space and the zoo.
    """
    recipes = list(Space.default([trace], 4, move_zoo=False).recipes())
    recipes = [item for item in recipes if item.name] + random.Random(0).sample(recipes, min(LIMIT, len(recipes)))
    trace.calls  # noqa: B018 - made once, not by every thread
    needs: dict[str, tuple[int, int]] = {}

    def item(recipe: hw.Recipe) -> None:
        metrics = hw.replay(trace, recipe).metrics
        if metrics["failed"] == 0:
            needs[recipe.hash] = int(metrics["footprint_bytes"] or 0), int(metrics["accesses"] or 0)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(item, recipes))
    points = np.array([needs.get(recipe.hash, (np.inf, np.inf)) for recipe in recipes])
    distance = (points[:, None, :] / np.array(front(list(needs.values())), float)).max(axis=2).min(axis=1)
    nearest = {recipes[row].hash: recipes[row] for row in np.argsort(distance, kind="stable") if distance[row] <= NEAR}
    return list(nearest.values())[:most]


def front(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The points that no other beats, footprints rising and accesses falling."""
    kept: list[tuple[int, int]] = []
    for point in sorted(points):
        if not kept or point[1] < kept[-1][1]:
            kept.append(point)
    return kept


def measure(trace: Trace, recipes: Sequence[hw.Recipe], jobs: int) -> Floats:
    """Footprint in bytes, accesses, refused requests: float64 of shape (recipes, 3)."""
    trace.calls  # noqa: B018 - made once, not by every thread

    def one(recipe: hw.Recipe) -> tuple[Any, ...]:
        metrics = hw.replay(trace, recipe).metrics
        return metrics["footprint_bytes"], metrics["accesses"], metrics["failed"]

    with ThreadPoolExecutor(jobs) as pool:
        return np.array(list(pool.map(one, recipes)), float)


def measured(pair: Pair, cache: Path, jobs: int) -> dict[str, Any]:
    """Needs of the pair's members on the tuning trace, the test trace and every copy; kept in a folder.

    Pairs with the same tuning trace share what was measured on it and its copies.
    """
    tuned, test = pair.make()
    folder = cache / tuned.name
    folder.mkdir(parents=True, exist_ok=True)
    chosen = folder / "members.json"
    if not chosen.exists():
        few = "drr" in pair.name or "easyport" in pair.name
        texts = [item.to_toml() for item in members(tuned, FEW if few else MEMBERS, jobs)]
        chosen.write_text(json.dumps(texts))
        click.echo(f"{pair.name}: {len(texts)} members", err=True)
    recipes = [hw.Recipe.parse(text) for text in json.loads(chosen.read_text())]

    def kept(name: str, trace: Trace) -> Floats:
        path = folder / f"{name}.npy"
        if not path.exists():
            np.save(path, measure(trace, recipes, jobs))
        return np.asarray(np.load(path))

    def on_copies(kind: hw.copy_kinds.Kind) -> list[Floats]:
        made = hw.copies(tuned, COPIES, kinds=[kind])
        return [kept(f"{title(kind)}-{number}", item) for number, item in enumerate(made, 1)]

    tried: dict[str, list[Floats]] = {}
    for kind in (*TOGETHER, *KINDS):
        tried[title(kind)] = on_copies(kind)
        click.echo(f"{pair.name}: {title(kind)}", err=True)
    return {"tuned": kept("tuned", tuned), "test": kept(f"test-{test.name}", test), "copies": tried}


# ---- what it says --------------------------------------------------------------------------------------------------

FALLS_OFF = {"footprint_bytes": 1.3, "accesses": 1.5}
"""A member falls off where its ratio to the best is this many times that on the tuning trace."""


@dataclass(frozen=True)
class Score:
    """How well the worst of some copies predicts a test trace; counts are of members.

    Attributes:
        rank: Spearman's correlation of the worst ratio on copies with the ratio on the test trace, by need.
        fell, predicted: members that fell off on the test trace, and how many of them did on a copy.
        held, alarms: members that held, and those of them that fell off on a copy.
        refused, foreseen, other_refused: members that refused a request on the test trace; those of them that did on a
            copy; and members that did only there.
    """

    pair: str
    choosing: bool
    kind: str
    rank: dict[str, float | None]
    fell: dict[str, int]
    predicted: dict[str, int]
    held: dict[str, int]
    alarms: dict[str, int]
    refused: int
    foreseen: int
    other_refused: int


def scores(pair: Pair, result: Mapping[str, Any]) -> list[Score]:
    """Score nothing but the tuning trace, every kind by itself, and all of the standard kinds together."""
    of = result["copies"]
    standard = [needs for kind in hw.copy_kinds.STANDARD for needs in of[title(kind)]]
    shown = {"the tuning trace itself": [result["tuned"]], **of, "the standard set": standard}
    return [score(pair, kind, result["tuned"], result["test"], needs) for kind, needs in shown.items()]


def score(pair: Pair, kind: str, tuned: Floats, test: Floats, on_copies: Sequence[Floats]) -> Score:
    refused = test[:, 2] > 0
    refused_before = np.any([needs[:, 2] > 0 for needs in on_copies], axis=0)
    served = ~refused
    rank, fell, predicted, held, alarms = {}, {}, {}, {}, {}
    for column, (key, limit) in enumerate(FALLS_OFF.items()):
        before, after = ratios(tuned, column), ratios(test, column)
        worst = np.max([ratios(needs, column) for needs in on_copies], axis=0)
        falls, warned = served & (after > limit * before), worst > limit * before
        rank[key] = spearman(worst[served], after[served])
        fell[key], predicted[key] = int(falls.sum()), int((falls & warned).sum())
        held[key], alarms[key] = int((served & ~falls).sum()), int((served & ~falls & warned).sum())
    foreseen, other = int((refused & refused_before).sum()), int((served & refused_before).sum())
    return Score(
        pair.name, pair.choosing, kind, rank, fell, predicted, held, alarms, int(refused.sum()), foreseen, other
    )


def ratios(needs: Floats, column: int) -> Floats:
    """A need over the least of those that serve; infinite where a request is refused."""
    served = needs[:, 2] == 0
    least = needs[served, column].min(initial=np.inf)
    return np.where(served, needs[:, column] / least, np.inf)


def spearman(item: Floats, other: Floats) -> float | None:
    """Rank correlation, equal values sharing their mean rank; None where all of one are equal."""
    ranks = np.stack([mean_ranks(item), mean_ranks(other)])
    return None if ranks.std(axis=1).min() == 0 else float(np.asarray(np.corrcoef(ranks))[0, 1])


def mean_ranks(values: Floats) -> Floats:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place], float)


def pooled(result: Sequence[Score], choosing: bool) -> list[dict[str, Any]]:
    """One row a kind over the pairs of one half: shares of all members, means of correlations."""
    rows = []
    for kind in dict.fromkeys(item.kind for item in result):
        of = [item for item in result if item.kind == kind and item.choosing == choosing]
        row: dict[str, Any] = {"kind": kind, "choosing": choosing, "pairs": len(of)}
        for key in FALLS_OFF:
            known = [value for item in of if (value := item.rank[key]) is not None]
            row[f"{key}_rank"] = sum(known) / len(known) if known else None
            for part in ("fell", "predicted", "held", "alarms"):
                row[f"{key}_{part}"] = sum(getattr(item, part)[key] for item in of)
        for part in ("refused", "foreseen", "other_refused"):
            row[part] = sum(getattr(item, part) for item in of)
        rows.append(row)
    return rows


def table(rows: Sequence[Mapping[str, Any]], first: str) -> str:
    """The rows as Markdown."""
    lines = [
        f"| {first} | rank, memory | fell off: predicted | held: alarms | rank, accesses | fell off: predicted "
        "| held: alarms | refused: foreseen | only on copies |",
        "| --- |" + " ---: |" * 8,
    ]
    for row in rows:
        cells = [str(row["kind"])]
        for key in FALLS_OFF:
            rank = row[f"{key}_rank"]
            cells.append("" if rank is None else f"{rank:.2f}")
            cells.append(f"{row[f'{key}_fell']}: {row[f'{key}_predicted']}")
            cells.append(f"{row[f'{key}_held']}: {row[f'{key}_alarms']}")
        cells += [f"{row['refused']}: {row['foreseen']}", str(row["other_refused"])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


@click.command()
@click.option(
    "--cache", "folder", type=click.Path(path_type=Path), required=True, help="Keep studies and replays here."
)
@click.option("--only", default="", metavar="REGEX", help="Pairs whose name matches.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True)
def main(folder: Path, only: str, jobs: int) -> None:
    """Print how well each kind of copy predicts each test trace, and all of them."""
    results = [
        item for pair in PAIRS if re.search(only, pair.name) for item in scores(pair, measured(pair, folder, jobs))
    ]
    halves = [row for choosing in (True, False) for row in pooled(results, choosing)]
    for choosing, words in ((True, "Pairs chosen on"), (False, "Pairs kept back")):
        click.echo(f"## {words}\n\n{table([row for row in halves if row['choosing'] == choosing], 'kind')}\n")
    for pair in dict.fromkeys(item.pair for item in results):
        rows = pooled(
            [item for item in results if item.pair == pair], next(p.choosing for p in PAIRS if p.name == pair)
        )
        click.echo(f"### {pair}\n\n{table(rows, 'kind')}\n")


if __name__ == "__main__":
    main()

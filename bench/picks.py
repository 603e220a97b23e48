"""Do picks hold on another recording? docs/robustness.md says what came of it.

Each pair's first trace is explored as a user would, its picks are replayed on the second, which had no part in it.
What a pick needs there is compared with the best of all that the exploration tried on copies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click
import numpy as np
import numpy.typing as npt
from robustness import PAIRS, Pair, carried, halves, measure, ratios

import heapwright as hw
from heapwright import pareto

KEPT_BACK = (
    Pair("wee_gcc-hello halves", False, lambda: halves("wee_gcc-hello")),
    Pair("rec_xmllint halves", False, lambda: halves("rec_xmllint")),
    Pair("kmem_loopback_net halves", False, lambda: halves("kmem_loopback_net")),
    Pair("rec_tshark halves", False, lambda: halves("rec_tshark")),
    Pair(
        "easyport, lbnl 11 to 14",
        False,
        lambda: (carried("easyport", "lbnl_ftp_2003_01_11"), carried("easyport", "lbnl_ftp_2003_01_14")),
    ),
    Pair(
        "easyport, lbnl 11 to 18",
        False,
        lambda: (carried("easyport", "lbnl_ftp_2003_01_11"), carried("easyport", "lbnl_ftp_2003_01_18")),
    ),
)
"""Pairs on which neither kinds of copies nor rules of picks were chosen; fixed before the first run."""

LONG, FEW = 20_000, 1500
"""Size of the random sample of recipes for traces of more calls."""

PICKS: tuple[Literal["balanced", "smallest", "fastest"], ...] = ("balanced", "smallest", "fastest")
BEFORE = ("balanced before", "smallest before")
"""Picks of the front alone: the least geometric mean of both needs, as `balanced` was until copies came, and the least
memory.
"""


def studied(pair: Pair, cache: Path) -> tuple[hw.Study, hw.Trace]:
    """The exploration of a pair's first trace, kept in a folder, and the second trace."""
    tuned, test = pair.make()
    few = {"strategy": "random", "limit": FEW} if len(tuned) > LONG else {}
    return hw.explore(tuned, cache / f"{tuned.name}.duckdb", **few), test  # type: ignore[arg-type]


def picked(study: hw.Study) -> dict[str, str]:
    """The id of every pick."""
    front = study.front()
    needs = np.array([[item.metrics["footprint_bytes"], item.metrics["accesses"]] for item in front], float)
    means = pareto.ratios_to_best(needs, ["min", "min"]).prod(axis=1)
    return {how: study.pick(how).id for how in PICKS} | {
        BEFORE[0]: front[int(means.argmin())].id,
        BEFORE[1]: front[0].id,
    }


def near_least_memory(study: hw.Study) -> str:
    """The memory of the balanced pick over the front's least, and whether little more is enough for twice the least
    accesses.
    """
    needs = np.array([[item.metrics["footprint_bytes"], item.metrics["accesses"]] for item in study.front()], float)
    least = needs.min(axis=0)
    within = ((needs[:, 0] <= 1.15 * least[0]) & (needs[:, 1] <= 2 * least[1])).any()
    return f"{(study.pick('balanced').metrics['footprint_bytes'] or 0) / least[0]:.3f} ({'yes' if within else 'no'})"


def row(pair: Pair, study: hw.Study, test: hw.Trace, jobs: int) -> str:
    """One line of the table."""
    ids = study.elsewhere["copy"].ids
    there = measure(test, [study[id].recipe for id in ids], jobs)
    cells = [f"{pair.name}{'' if pair.choosing else ' (kept back)'}", near_least_memory(study)]
    cells += [cell(ids, there, id) for id in picked(study).values()]
    return f"| {' | '.join(cells)} |"


def cell(ids: list[str], needs: npt.NDArray[np.float64], id: str) -> str:
    """Memory and accesses of a recipe over the best; or how many requests it refused."""
    at = ids.index(id)
    if needs[at, 2]:
        return f"refuses {needs[at, 2]:,.0f}"
    return " / ".join(f"{ratios(needs, column)[at]:.2f}" for column in (0, 1))


@click.command()
@click.option("--cache", type=click.Path(path_type=Path), required=True, help="Keep studies here.")
@click.option("--only", default="", help="Pairs whose name holds this.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True)
def main(cache: Path, only: str, jobs: int) -> None:
    """Print what the picks of each pair's first trace need on the second: memory / accesses over the best there."""
    cache.mkdir(parents=True, exist_ok=True)
    columns = [*PICKS, *BEFORE]
    click.echo(f"| pair | balanced, memory here (little is enough) | {' | '.join(columns)} |")
    click.echo("| --- | ---: |" + " ---: |" * len(columns))
    for pair in (*PAIRS, *KEPT_BACK):
        if only in pair.name:
            click.echo(row(pair, *studied(pair, cache), jobs))


if __name__ == "__main__":
    main()

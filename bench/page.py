"""The benchmark's results as a page of the manual.

.venv/bin/python bench/run.py --json > build/bench.json
.venv/bin/python bench/page.py build/bench.json > docs/benchmark.md
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from printing import most, quantity, ratio_text
from results import Aim, Measured, Ratio, arena_ratio, by_set, sets_of, time_ratio
from threads import LOCKED, THREADED

REFERENCE = "dlmalloc"

_PAGE = """\
# Benchmark results

![Time and arena of heaps over dlmalloc's](images/benchmark.svg)

`make bench` repeats it; [bench/README.md](../bench/README.md) describes the method and the names. This page
was written by `bench/page.py` from a run on {date}: {machine[processor]}, {machine[processors]} processors,
{machine[system]}, {machine[compiler]}. Ratios were measured side by side, in CPU time, on {traces} traces.

## Time and arena

Ratios to dlmalloc, geometric means: CPU time of a call with the payload untouched, by set of traces; the same without
the replay loop; with the payload written; the smallest arena for 32-bit pointers, and its maximum over the traces.
Below 1 is faster or smaller.

{over_reference}

## Several threads

`{threaded}` as generated, and the libraries: ratio of the CPU time of a call to that of two threads with
`threads = "lock"`: geometric mean, minimum and maximum over the traces. [Thread caches](#thread-caches) has the design.

{threads}

## Targets

{met} of {aimed} targets were met; these were not:

{aims}
"""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(told: dict[str, Any]) -> str:
    """The text of the page, from what `run.py --json` prints."""
    measured = [Measured(**item) for item in told["traces"]]
    aims = [Aim(**item) for item in told["aims"]]
    return _PAGE.format(
        date=told["date"],
        machine=told["machine"],
        traces=len(measured),
        over_reference=_over_reference(measured),
        threaded=THREADED,
        threads=_threads(measured),
        met=sum(aim.met is True for aim in aims),
        aimed=len(aims),
        aims=_missed(aims),
    )


def _over_reference(measured: Sequence[Measured]) -> str:
    sets = sets_of(measured)
    rows = []
    for name in dict.fromkeys([*measured[0].ns, *measured[0].arena_bytes]):
        arena = arena_ratio(name, REFERENCE)
        times = [by_set(measured, time_ratio(name, REFERENCE))[key] for key in sets]
        others = [_all(measured, time_ratio(name, REFERENCE, loop=False))]
        others += [_all(measured, time_ratio(name, REFERENCE, written=True)), _all(measured, arena)]
        numbers = [*times, *others, most(arena(item) for item in measured)]
        rows.append([name, *(ratio_text(number) for number in numbers)])
    headings = ["heap", *(f"time, {key}" for key in sets), "without loop", "written", "arena", "at most"]
    return table(headings, rows)


def _all(measured: Sequence[Measured], ratio: Ratio) -> float | None:
    return by_set(measured, ratio)["all"]


def _threads(measured: Sequence[Measured]) -> str:
    def over_lock(name: str) -> Callable[[Measured], float | None]:
        return lambda item: item.ns_threads[name] / item.ns_threads[LOCKED] if name in item.ns_threads else None

    rows = []
    for name in measured[0].ns_threads:
        known = [ratio for item in measured if (ratio := over_lock(name)(item)) is not None]
        rows.append(
            [name, *(ratio_text(number) for number in (_all(measured, over_lock(name)), min(known), max(known)))]
        )
    return table(["heap, threads", "mean", "minimum", "maximum"], rows)


def _missed(aims: Sequence[Aim]) -> str:
    rows = [[aim.aim, quantity(aim.limit, aim), quantity(aim.measured, aim)] for aim in aims if not aim.met]
    return table(["target", "at most", "measured"], rows)


@click.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(path: Path) -> None:
    """Print the page of a run whose JSON is in PATH."""
    click.echo(page(json.loads(path.read_text())), nl=False)


if __name__ == "__main__":
    main()

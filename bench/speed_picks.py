"""Is the fastest pick of an exploration as fast as the best allocator of a host, and still on another recording?

Of each pair the first trace is explored twice: the default space by memory and accesses, and examples/speed_space.toml
by time and memory. The picks, as generated code, and mimalloc are timed in turn on both traces; the second had no part
in the choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

import click
import contenders
from measuring import Effort, times
from picks import FEW, KEPT_BACK, LONG
from robustness import PAIRS, ROOT, Pair, halves
from traces import cut, without_realloc

import heapwright as hw

PEER = "mimalloc"
SPACE = ROOT / "examples" / "speed_space.toml"
OBJECTIVES = "ns_per_event,footprint_bytes"
COPIES = 2
"""Of each trace that is explored by time: one of each kind."""

OWN, HELD_OUT = 0.65, 1.10
"""The aims, over mimalloc with the replay loop included: on the trace explored on, and on the other."""

EFFORT = Effort(rounds=9, milliseconds=10, passes=300, explored=None, folded_up_to=0)
MOST_CALLS = 100_000

SHORT = Pair("wee_find halves", False, lambda: halves("wee_find"))
"""A program of a thousand calls; not among the pairs that picks were judged by."""


@dataclass(frozen=True)
class Row:
    """One pair: CPU time over mimalloc's, on the trace explored on and on the other.

    Attributes:
        by_accesses, by_time: the fastest pick of the default space, and of the space that was timed.
        empty: the replay loop alone.
        memory: footprints of the two picks over the least in the default space.
    """

    pair: str
    by_accesses: tuple[float, float]
    by_time: tuple[float, float]
    empty: tuple[float, float]
    memory: tuple[float, float]

    def verdict(self) -> str:
        own, there = self.by_time
        if own <= OWN and there <= HELD_OUT:
            return "met"
        short = [name for name, missed in (("own", own > OWN), ("held out", there > HELD_OUT)) if missed]
        bound = ", the loop alone is above" if self.empty[0] > OWN else ""
        return f"not met: {', '.join(short)}{bound}"

    def cells(self) -> list[str]:
        figures = [
            f"{at[0]:.3f} / {at[1]:.3f}" for at in (self.by_accesses, self.by_time, self._own_work(), self.empty)
        ]
        return [self.pair, *figures, " / ".join(f"{item:.2f}" for item in self.memory), self.verdict()]

    def _own_work(self) -> tuple[float, float]:
        """Of the pick by time, less what the loop takes."""
        own, there = ((time - loop) / (1 - loop) for time, loop in zip(self.by_time, self.empty, strict=True))
        return own, there


def explored(trace: hw.Trace, cache: Path) -> tuple[hw.Study, hw.Study]:
    """The exploration of the default space, as bench/picks.py makes it, and the one by time; kept in a folder."""
    few = {"strategy": "random", "limit": FEW} if len(trace) > LONG else {}
    default = hw.explore(trace, cache / f"{trace.name}.duckdb", **few)  # type: ignore[arg-type]
    calls, path = without_realloc(trace), cache / f"{trace.name}-time.duckdb"
    return default, hw.explore(calls, path, space=SPACE, objectives=OBJECTIVES, copies=COPIES, jobs=1)


def measured(bench: hw.timing.Bench, others: Sequence[contenders.Contender], pair: Pair, cache: Path) -> Row:
    """Explore and time one pair."""
    own, there = (cut(item, MOST_CALLS) for item in pair.make())
    default, timed = explored(own, cache)
    picks = {"accesses": default.pick("fastest"), "time": timed.pick("fastest")}
    heaps = [*others, *(contenders.generated(name, item.recipe, bench.folder) for name, item in picks.items())]
    ratios = [over_peer(bench, heaps, trace) for trace in (own, there)]
    least = min(item.metrics["footprint_bytes"] or 0 for item in default.front())
    accesses, time, empty = ((ratios[0][name], ratios[1][name]) for name in ("accesses", "time", contenders.EMPTY))
    memory = [(pick.metrics["footprint_bytes"] or 0) / least for pick in picks.values()]
    return Row(pair.name, accesses, time, empty, (memory[0], memory[1]))


def over_peer(bench: hw.timing.Bench, heaps: Sequence[contenders.Contender], trace: hw.Trace) -> dict[str, float]:
    """CPU time of each heap over the peer's; infinite for one that cannot serve the trace."""
    calls = without_realloc(trace)
    built = {heap.name: heap.programs(bench, calls) for heap in heaps}
    result = times(bench, {name: programs[0] for name, programs in built.items() if programs}, calls, EFFORT)
    return {heap.name: result.get(heap.name, float("inf")) / result[PEER] for heap in heaps}


def mean_of(rows: Sequence[Row]) -> Row:
    """Geometric means."""

    def over(key: str) -> tuple[float, float]:
        first, second = (geometric_mean(getattr(row, key)[at] for row in rows) for at in (0, 1))
        return first, second

    return Row("geometric mean", over("by_accesses"), over("by_time"), over("empty"), over("memory"))


@click.command()
@click.option("--cache", type=click.Path(path_type=Path), required=True, help="Keep studies here.")
@click.option("--only", default="", help="Pairs whose name holds this.")
def main(cache: Path, only: str) -> None:
    """Print CPU time over mimalloc's, own trace / held out, and whether that meets the aims."""
    cache.mkdir(parents=True, exist_ok=True)
    click.echo(
        f"Aims for the pick by time: {OWN:.2f} x {PEER} on its own trace, {HELD_OUT:.2f} x on the one held out.\n"
    )
    click.echo("| pair | by accesses | by time | by time, without loop | loop alone | memory | aims |")
    click.echo("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    rows: list[Row] = []
    with hw.timing.Bench() as bench:
        peer = next(item for item in contenders.libraries()[0] if item.name == PEER)
        others = [peer, contenders.empty(bench.folder)]
        for pair in (*PAIRS, *KEPT_BACK, SHORT):
            if only in pair.name:
                rows.append(measured(bench, others, pair, cache))
                click.echo(f"| {' | '.join(rows[-1].cells())} |")
    if len(rows) > 1:
        click.echo(f"| {' | '.join(mean_of(rows).cells())} |")
        met = [sum(row.by_time[at] <= aim for row in rows) for at, aim in enumerate((OWN, HELD_OUT))]
        click.echo(f"\nOwn trace: met on {met[0]} of {len(rows)}; held out: met on {met[1]} of {len(rows)}.")


if __name__ == "__main__":
    main()

"""Recordings of a heap that was too small: does the recommended size of the cut recording serve the whole one?

Each of `RECORDINGS` is replayed on a heap of `SHARES` of its need, which refuses some requests. A program whose request
is refused goes on without the object: its later reallocs and frees do not happen, and a refused realloc leaves the
object as it was. The log of that is imported, fitted and explored, and the whole recording is replayed in what is
recommended. `python bench/cut_recordings.py` prints the table of bench/robustness.md.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

import heapwright as hw
from heapwright import Recipe, Trace

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "heap"
EXAMPLES = ("mosquitto_broker", "lighttpd_server")
RECORDINGS = (
    *EXAMPLES,
    "rec_coapserver",
    "rec_jq",
    "rec_lighttpd",
    "rec_lua",
    "rec_sqlite",
    "rec_tcpdump",
    "wee_ffmpeg",
    "wee_find",
    "wee_gcc-hello",
    "kmem_loopback_net",
)
SHARES = (0.70, 0.80, 0.90, 0.99)
FITTED = ("all-round", "victim-bins")
HEADER, UNIT = 8, 8


class FirstFit:
    """A heap of first fit by address that merges free blocks at once, as FreeRTOS's heap_4."""

    def __init__(self, size: int) -> None:
        self._starts, self._holes = [0], {0: size // UNIT * UNIT}
        self._sizes: dict[int, int] = {}
        self.used = 0  # bytes up to the highest block so far

    def malloc(self, requested: int) -> int | None:
        """The address of a block, None if no hole is large enough. O(holes)."""
        size = -(-(requested + HEADER) // UNIT) * UNIT
        for at, start in enumerate(self._starts):
            if (hole := self._holes[start]) >= size:
                del self._starts[at], self._holes[start]
                if hole - size >= 2 * HEADER:
                    self._starts.insert(at, start + size)
                    self._holes[start + size] = hole - size
                    hole = size
                self._sizes[start] = hole
                self.used = max(self.used, start + hole)
                return start
        return None

    def free(self, start: int) -> None:
        """Make a block a hole, merged with its neighbours."""
        size = self._sizes.pop(start)
        at = bisect_left(self._starts, start)
        if at < len(self._starts) and self._starts[at] == start + size:
            size += self._holes.pop(self._starts.pop(at))
        if at and (before := self._starts[at - 1]) + self._holes[before] == start:
            self._holes[before] += size
            return
        insort(self._starts, start)
        self._holes[start] = size


def cut_log(trace: Trace, heap: FirstFit) -> Iterator[str]:
    """The lines that a program would print which makes the calls of a trace on this heap."""
    place = dict[int, int]()
    objects = trace.objects()[0].tolist()
    for op, number, size, at in zip(trace.op.tolist(), objects, trace.size.tolist(), trace.ts_us.tolist(), strict=True):
        time = f" {at}" if at >= 0 else ""
        if op <= 1:
            address = heap.malloc(size)
            if address is not None:
                place[number] = address
            yield f"hw+ 0x{0 if address is None else address + 4096:x} {size}{time}\n"
        elif number not in place:
            continue
        elif op == 3:
            yield f"hw- 0x{place[number] + 4096:x}{time}\n"
            heap.free(place.pop(number))
        else:
            old = place[number]
            address = heap.malloc(size)
            yield f"hw= 0x{old + 4096:x} 0x{0 if address is None else address + 4096:x} {size}{time}\n"
            if address is not None:
                heap.free(old)
                place[number] = address


def cut_recording(trace: Trace, share: float, folder: Path) -> Trace:
    """The recording of a trace on a heap of a share of its need, as `heapwright import` reads it."""
    ample = FirstFit(1 << 31)
    for _ in cut_log(trace, ample):
        pass
    log = folder / f"{trace.name}.log"
    log.write_text("".join(cut_log(trace, FirstFit(int(share * ample.used)))))
    return hw.import_log(log)


@dataclass(frozen=True)
class Outcome:
    """How the recommended size of a cut recording serves the whole one.

    Attributes:
        name: of the recording.
        share: of its need that the heap had.
        failed: requests that failed.
        ratio: the least recommended size of `FITTED`, and of the recommendation of `explore` if there is one, over the
            need of the whole recording on the same heap.
        refused: requests of the whole recording that the recommended sizes refuse, the most of all heaps.
    """

    name: str
    share: float
    failed: int
    ratio: float
    refused: int


def judged(trace: Trace, share: float, folder: Path, limit: int = 0) -> Outcome:
    """Cut a recording, size heaps for what is left, and replay the whole one in them; `limit`: recipes to explore."""
    cut = cut_recording(trace, share, folder)
    sized: list[tuple[str | Recipe, int]] = []
    fits = hw.fit(cut, list(FITTED))
    assert isinstance(fits, list)
    for fit in fits:
        assert fit.reserve_bytes is not None
        sized.append((fit.heap, fit.reserve_bytes))
    if limit:
        study = hw.explore(
            cut, folder / f"{trace.name}-{share:.2f}.duckdb", strategy="random", limit=limit, future=20_000
        )
        pick = study.pick("balanced")
        row = study.combined.row(pick.id)
        assert row is not None
        sized.append((pick.recipe, int(study.reserves[row])))
    ratios, refused = [], []
    for heap, arena in sized:
        need = hw.fit(trace, heap).smallest_arena_bytes
        ratios.append(arena / (need or 1))
        refused.append(int(hw.replay(trace, heap, arena=arena).metrics["failed"] or 0))
    return Outcome(trace.name, share, int(cut.failed.sum()), min(ratios), max(refused))


def recordings(names: Sequence[str] = RECORDINGS) -> Iterator[Trace]:
    """The recordings that are there; a name may be a path."""
    for name in names:
        path = (ROOT / "examples" if name in EXAMPLES else DATA) / f"{name}.parquet"
        if path.is_file() or Path(name).is_file():
            yield hw.read_trace(path if path.is_file() else Path(name))


@click.command()
@click.argument("traces", nargs=-1)
@click.option("--limit", default=0, help="Recipes that explore tries; 0 for fit alone.")
def main(traces: tuple[str, ...], limit: int) -> None:
    """Print the table, of `RECORDINGS` or of these recordings."""
    served = total = 0
    print("| recording | heap | failed | recommended / need, least | refused |\n| --- | ---: | ---: | ---: | ---: |")
    with TemporaryDirectory() as folder:
        for trace in recordings(traces or RECORDINGS):
            outcomes = [judged(trace, share, Path(folder), limit) for share in SHARES]
            for item in outcomes:
                cells = (item.name, f"{item.share:.0%}", f"{item.failed:,}", f"{item.ratio:.2f}", f"{item.refused:,}")
                print(f"| {' | '.join(cells)} |", flush=True)
            served, total = served + all(not item.refused for item in outcomes), total + 1
    print(f"\n{served} of {total} recordings served at every share")


if __name__ == "__main__":
    main()

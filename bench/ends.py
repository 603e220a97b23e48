"""Whether a heap from both ends of the arena holds: learnt on one recording of a program, judged on another.

    .venv/bin/python bench/ends.py bench/pairs [../shared/data/pairs]
    .venv/bin/python bench/ends.py bench/pairs/sites

For each NAME_a.parquet of the folders: best fit with 32 bins at alignment 8, as one heap and with a part of the
requests at the far end (`place = "ends"`). What part is learnt there, by the least footprint, and kept where that is
less than of one heap; then it is tried on NAME_b.parquet. The last lines sum up arenas over those of one heap, and of
untuned heaps.

    threshold   one side of a size
    classes     any set of size classes, 8 to an octave: no key of a recipe says so, calls are named by them here
    short, long the call sites of that class, as `site_class` of a space finds them
    sites       any set of call sites

Sets are found by turns: those with the most bytes first, each is moved to the other end where that is less. Classes
that a recipe cannot say are tried as call sites, so an object that is resized keeps the end where it was allocated.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from by_site import learnt as pools_of_class

import heapwright as hw

POOL = {"kind": "general", "bins": "exact", "fit": "best", "linear_up_to": 128, "bins_per_octave": 2, "most_bins": 32}
POWERS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 16384, 65536]
BLIND = ("all-round@8", "victim-bins@8", "lea-2.7.2@8")
MOST_SITES = 256
STEPS = 8
"""Size classes in an octave."""
ROUNDS = 3

Part = dict[str, Any]
"""Keys of the pool at the far end; none for one heap."""


def heap(**far: Any) -> hw.Recipe:
    """Best fit: one heap, or two of which the far one takes these sizes, or sites."""
    pools = [POOL | {"place": "ends"} | far, POOL] if far else [POOL]
    return hw.Recipe.from_dict({"align": 8, "pool": pools})


def bytes_of(trace: hw.Trace, tried: Any) -> int:
    """The footprint, which is the arena to reserve for this recording."""
    return int(hw.replay(trace, tried).metrics["footprint_bytes"])


# ---- parts of the requests ---------------------------------------------------------------------------------------


def sides(trace: hw.Trace) -> Iterator[Part]:
    """Sizes below or above some thresholds: quantiles of the requests, and powers of two."""
    sizes = trace.size[trace.op != hw.FREE]
    quantiles = np.quantile(sizes, np.linspace(0.02, 0.999, 14)).astype(int) // 8 * 8
    for size in sorted({*map(int, quantiles[quantiles >= 8]), *(power for power in POWERS if power < sizes.max())}):
        yield {"min_size": size + 1}
        yield {"max_size": size}


def by_class(trace: hw.Trace) -> hw.Trace:
    """The trace with the size class of each request in place of its call site."""
    size = np.maximum(trace.size.astype(np.int64), 8)
    octave = np.floor(np.log2(size)).astype(np.int64)
    of = octave * STEPS + ((size - (np.int64(1) << octave)) * STEPS >> octave)
    names = ("", *(f"class {number}" for number in range(1, 32 * STEPS)))
    return hw.Trace.from_columns(
        op=trace.op, id=trace.id, size=trace.size, align=trace.align, site=of, sites=names, name=trace.name
    )


def shared(trace: hw.Trace, names: Iterable[str]) -> Part:
    """The far end for those of the sites that a recording has; if it has none, a far end that no request uses."""
    here = sorted(set(names) & set(trace.sites))
    return {"sites": here} if here else {"min_size": 1 << 30}


def best_side(trace: hw.Trace) -> Part:
    return min(sides(trace), key=lambda far: bytes_of(trace, heap(**far)))


def sites_of(kind: str) -> Callable[[hw.Trace], Part]:
    """The sites of a class that `site_class` finds."""

    def learn(trace: hw.Trace) -> Part:
        result = pools_of_class(trace, kind, region=1 << 16)
        return {"sites": list(result.sites[0])} if result else {}

    return learn


def best_set(trace: hw.Trace) -> Part:
    """Any set of sites: begun with a class or none, each site changes ends where that is less, until none is."""
    requested = np.bincount(trace.site, np.where(trace.op != hw.FREE, trace.size, 0), len(trace.sites))
    names = [trace.sites[number] for number in np.argsort(-requested, kind="stable") if requested[number] and number]
    begun = [set(sites_of(kind)(trace).get("sites", ())) for kind in ("short", "long")]
    least, far = min(((_bytes_apart(trace, item), item) for item in (set[str](), *begun)), key=lambda pair: pair[0])
    for _ in range(ROUNDS):
        had = least
        for name in names:
            other = far ^ {name}
            needed = _bytes_apart(trace, other) if len(other) <= MOST_SITES else least
            least, far = (needed, other) if needed < least else (least, far)
        if least == had:
            break
    return {"sites": sorted(far)} if far else {}


def _bytes_apart(trace: hw.Trace, names: set[str]) -> int:
    return bytes_of(trace, heap(**({"sites": sorted(names)} if names else {})))


# ---- learnt and judged -------------------------------------------------------------------------------------------


Way = tuple[Callable[[hw.Trace], hw.Trace], Callable[[hw.Trace], Part]]
"""What a recording is made into, and how a part is learnt on it."""

SIZES: dict[str, Way] = {"threshold": (lambda trace: trace, best_side), "classes": (by_class, best_set)}
SITES: dict[str, Way] = {
    "short": (lambda trace: trace, sites_of("short")),
    "long": (lambda trace: trace, sites_of("long")),
    "sites": (lambda trace: trace, best_set),
}


def judged(first: hw.Trace, other: hw.Trace, way: Way) -> tuple[float, int]:
    """What was learnt needs of one heap's arena, and bytes on the other recording."""
    made, learn = way
    first, other = made(first), made(other)
    item, far = bytes_of(first, heap()), learn(first)
    two = bytes_of(first, heap(**far)) if far else item
    if two >= item:
        return 1.0, bytes_of(other, heap())
    return two / item, bytes_of(other, heap(**(shared(other, far["sites"]) if "sites" in far else far)))


def told(name: str, ratios: Iterable[float]) -> str:
    results = list(ratios)
    mean = statistics.geometric_mean(results)
    least, median, most = min(results), statistics.median(results), max(results)
    less, more = sum(ratio < 1 for ratio in results), sum(ratio > 1 for ratio in results)
    return (
        f"{name:32} least {least:.3f} median {median:.3f} mean {mean:.3f} largest {most:.3f} smaller {less} "
        f"larger {more}"
    )


def main(folders: list[str]) -> None:
    rows: dict[str, list[float]] = {}
    for path in sorted(path for folder in folders for path in Path(folder).glob("*_a.parquet")):
        first, other = hw.read_trace(path), hw.read_trace(path.with_name(path.name.replace("_a.", "_b.")))
        item = bytes_of(other, heap())
        line = []
        for name, way in (SIZES | (SITES if first.sites != ("",) else {})).items():
            learnt, there = judged(first, other, way)
            line.append(f"{name} {learnt:.3f} {there / item:.3f}")
            rows.setdefault(f"{name}: learnt on", []).append(learnt)
            rows.setdefault(f"{name}: another recording", []).append(there / item)
            for blind in BLIND:
                rows.setdefault(f"{name}: over {blind}", []).append(there / bytes_of(other, blind))
        print(f"{path.name[:-10]:14} {', '.join(line)}", flush=True)
    for name, ratios in rows.items():
        print(told(name, ratios))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Whether a heap from both ends of the arena holds: learnt on one recording of a program, judged on another.

    .venv/bin/python bench/ends.py bench/pairs [../shared/data/pairs]

For each NAME_a.parquet of the folders: best fit with 32 bins at alignment 8, as one heap and with one side of a
threshold at the far end (`place = "ends"`). The threshold with the least footprint there, if that is less than that of
one heap, is tried on NAME_b.parquet. The last lines sum up arenas over those of one heap, and of heaps taken blind.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import heapwright as hw

POOL = {"kind": "general", "bins": "exact", "fit": "best", "linear_up_to": 128, "bins_per_octave": 2, "most_bins": 32}
POWERS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 16384, 65536]
BLIND = ("all-round@8", "victim-bins@8", "lea-2.7.2@8")


def heap(**far: int) -> hw.Recipe:
    """Best fit: one heap, or two of which the far one takes these sizes."""
    pools = [POOL | {"place": "ends"} | far, POOL] if far else [POOL]
    return hw.Recipe.from_dict({"align": 8, "pool": pools})


def bytes_of(trace: hw.Trace, tried: Any) -> int:
    """The footprint, which is the arena to reserve for this recording."""
    return int(hw.replay(trace, tried).metrics["footprint_bytes"])


def sides(trace: hw.Trace) -> Iterator[dict[str, int]]:
    """Sizes below or above some thresholds: quantiles of the requests, and powers of two."""
    sizes = trace.size[trace.op != hw.FREE]
    quantiles = np.quantile(sizes, np.linspace(0.02, 0.999, 14)).astype(int) // 8 * 8
    for size in sorted({*map(int, quantiles[quantiles >= 8]), *(power for power in POWERS if power < sizes.max())}):
        yield {"min_size": size + 1}
        yield {"max_size": size}


def told(name: str, ratios: Iterable[float]) -> str:
    found = list(ratios)
    least, median, most = min(found), statistics.median(found), max(found)
    less, more = sum(ratio < 1 for ratio in found), sum(ratio > 1 for ratio in found)
    return f"{name:28} least {least:.3f} median {median:.3f} largest {most:.3f} smaller {less} larger {more}"


def main(folders: list[str]) -> None:
    learnt, judged, blind = [], [], {name: list[float]() for name in BLIND}
    for path in sorted(path for folder in folders for path in Path(folder).glob("*_a.parquet")):
        first, other = hw.read_trace(path), hw.read_trace(path.with_name(path.name.replace("_a.", "_b.")))
        one = bytes_of(first, heap())
        two, side = min(((bytes_of(first, heap(**far)), far) for far in sides(first)), key=lambda pair: pair[0])
        kept = side if two < one else {}
        there = bytes_of(other, heap(**kept))
        learnt.append(min(two, one) / one)
        judged.append(there / bytes_of(other, heap()))
        for name in BLIND:
            blind[name].append(there / bytes_of(other, name))
        print(f"{path.name[:-10]:14} learnt {learnt[-1]:.4f} judged {judged[-1]:.4f} {kept}", flush=True)
    print(told("learnt on", learnt))
    print(told("another recording", judged))
    for name, ratios in blind.items():
        print(told(f"another, over {name}", ratios))


if __name__ == "__main__":
    main(sys.argv[1:])

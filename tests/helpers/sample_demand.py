"""The demand of traces on a heap, for spaces made to measure."""

from __future__ import annotations

import numpy as np

from heapwright._explore.default_space import Demand

SIZES = (16, 1476, 40, 576, 128, 256, 64, 512, 1024, 90, 200)


def demand(sizes: tuple[int, ...] = SIZES, peak: int = 200_000) -> Demand:
    shares = np.geomspace(1, 0.01, len(sizes))
    return Demand(tuple(zip(sizes, (shares / shares.sum()).tolist(), strict=True)), max(sizes), peak)

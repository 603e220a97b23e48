"""Traffic with the paper's own mix of sizes, and with the forms of memory use that its Figure 3 shows.

Mamagkakis et al. 2006 publish which sizes dominate, their share, how many others there are, and five forms of memory
use. `heapwright._traffic.synthetic` draws the packets; only their times are set again, by how busy the link is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heapwright import PacketTable, synthesise
from heapwright_papers.documents import tables

SEEDS = (1, 2, 3)
RATE = 5e6
"""Bits a second that the link sends: what 802.11b carries of its 11 Mbit/s. It scales time, not memory."""
FIRST_OF_TWO = 0.62
"""Share of the smaller size among the two dominant ones: 43 of 69 %, in the statistics that the same authors give of
the Dartmouth networks in 2007."""

Stage = tuple[float, float]
"""A share of the packets, and their load: bits that arrive over bits that the link can send."""


@dataclass(frozen=True)
class Mix:
    """A network of the paper as it describes it.

    Attributes:
        name: the form of its memory use.
        dominant: bytes of the two most frequent sizes.
        two: their share of all packets; the paper: 30 to 70 %.
        others: how many other sizes there are, evenly spread between the two; the paper: 700 to 1500.
        stages: the loads that the link goes through, in order.
        repeats: how often.
        flows: how many; the paper does not say.
    """

    name: str
    dominant: tuple[int, int]
    two: float
    others: int
    stages: Sequence[Stage]
    repeats: int
    flows: int = 2000

    def packets(self, count: int, seed: int) -> PacketTable:
        """`count` packets; the same for the same seed."""
        small, large = self.dominant
        random = np.random.default_rng(seed)
        between = np.sort(random.choice(np.arange(small + 1, large), self.others, replace=False))
        shares = {small: self.two * FIRST_OF_TWO, large: self.two * (1 - FIRST_OF_TWO)}
        shares |= dict.fromkeys(map(int, between), (1 - self.two) / self.others)
        profile = {
            "name": self.name,
            "packets": count,
            "size_column": "ip_len",
            "sizes": [{"size": size, "share": share} for size, share in shares.items()],
            "seconds": count / 1e3,
            "flows": self.flows,
            "top_flow_share": 0.02,
            "protocols": [{"proto": 6, "share": 1.0}],
        }
        drawn = synthesise(profile, count, seed)
        return replace(drawn, ts_us=self._times(drawn))

    def _times(self, packets: PacketTable) -> NDArray[np.int64]:
        """Arrivals whose gaps follow the stages' loads; gaps vary as they were drawn."""
        count = len(packets)
        shares, loads = np.array([[share, load] for _ in range(self.repeats) for share, load in self.stages]).T
        stage = np.searchsorted(np.cumsum(shares / shares.sum())[:-1], (np.arange(count) + 0.5) / count)
        gaps = np.diff(packets.ts_us, prepend=0).astype(np.float64)
        microseconds = packets.frame_len.mean() * 8e6 / RATE
        return np.cumsum(gaps / gaps[1:].mean() * microseconds / loads[stage]).astype(np.int64)


def mixes(dominant: tuple[int, int], count: int) -> list[Mix]:
    """The first `count` of the five forms, each with its own share of the two dominant sizes of IP packets."""
    return [Mix(dominant=dominant, **form) for form in tables("cases")["form"][:count]]

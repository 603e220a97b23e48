"""What a packet table says of its network beyond the sizes: arrivals, flows, and how far a sample can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from heapwright._traffic.packets import PacketTable

Int64s = NDArray[np.int64]

HISTOGRAM_BYTES = 64
"""Width of a bin of the size histogram."""
SAMPLES = (1_000, 10_000, 100_000, 1_000_000)
"""Sample lengths, as in Mamagkakis et al. 2007, section 3 and figure 1."""
WINDOWS_US = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def histogram(sizes: Int64s) -> list[dict[str, int]]:
    """Packets by size: `[{"from", "to", "count"}, ...]`, `to` excluded; bins without packets are left out."""
    bins, counts = np.unique(sizes // HISTOGRAM_BYTES, return_counts=True)
    return [
        {"from": start * HISTOGRAM_BYTES, "to": (start + 1) * HISTOGRAM_BYTES, "count": count}
        for start, count in zip(bins.tolist(), counts.tolist(), strict=True)
    ]


def stability(sizes: Int64s, modes: list[int]) -> list[dict[str, Any]]:
    """How the share of each mode depends on how much one looks at.

    For every length of SAMPLES that fits at least once, and for all packets: `{"packets": length, "samples": how many
    consecutive samples of that length, "shares": [{"size", "first", "mean", "deviation", "smallest", "largest"}, ...]}`
    with the share in the first sample, and mean, standard deviation and extremes over all of them.
    """
    lengths = [length for length in SAMPLES if length < len(sizes)] + ([len(sizes)] if len(sizes) else [])
    return [
        {
            "packets": length,
            "samples": len(sizes) // length,
            "shares": [{"size": mode, **_shares(sizes == mode, length)} for mode in modes],
        }
        for length in lengths
    ]


def _shares(hit: NDArray[np.bool_], length: int) -> dict[str, float]:
    samples = hit[: len(hit) // length * length].reshape(-1, length).mean(axis=1)
    return {
        "first": float(samples[0]),
        "mean": float(samples.mean()),
        "deviation": float(samples.std()),
        "smallest": float(samples.min()),
        "largest": float(samples.max()),
    }


def burstiness(ts_us: Int64s) -> dict[str, Any]:
    """How unevenly packets arrive.

    `interarrival_mean_us`; `interarrival_cv`, the standard deviation of the gaps over their mean (1 for a Poisson
    process, 0 for a clock); `parameter`, (cv - 1) / (cv + 1), from -1 for a clock over 0 for Poisson to 1 (Goh and
    Barabasi 2008, "Burstiness and memory in complex systems"); `dispersion`, for windows of WINDOWS_US of which at
    least ten fit: `{"window_us", "index"}`, variance over mean of the packets in a window (1 for a Poisson process at
    every window). None, or no window, where there are fewer than three packets or no time passes.
    """
    gaps = np.diff(ts_us)
    if len(gaps) < 2 or not gaps.any():
        return {"interarrival_mean_us": None, "interarrival_cv": None, "parameter": None, "dispersion": []}
    variation = float(gaps.std() / gaps.mean())
    span = int(ts_us[-1])
    return {
        "interarrival_mean_us": float(gaps.mean()),
        "interarrival_cv": variation,
        "parameter": (variation - 1) / (variation + 1),
        "dispersion": [
            {"window_us": window, "index": _dispersion(ts_us, window)} for window in WINDOWS_US if span >= 10 * window
        ],
    }


def _dispersion(ts_us: Int64s, window: int) -> float:
    """Variance over mean of the counts in whole windows. Empty windows are not stored: there may be billions."""
    windows = int(ts_us[-1]) // window
    _, counts = np.unique(ts_us[ts_us < windows * window] // window, return_counts=True)
    mean = counts.sum() / windows
    return float((counts.astype(np.float64) ** 2).sum() / windows / mean - mean)


def flows(packets: PacketTable) -> dict[str, Any]:
    """`flows`: distinct ones, unknown not counted; `top_flow_share`: share of all packets in the largest of them;
    `forward_share`: share of the packets of known flows that direction 0 sent; `protocols`: `[{"proto", "share"}, ...]`
    over all packets, most frequent first. Shares are None where no flow is known.
    """
    known = packets.flow > 0
    _, sizes = np.unique(packets.flow[known], return_counts=True)
    numbers, counts = np.unique(packets.proto, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {
        "flows": len(sizes),
        "top_flow_share": float(sizes.max() / len(packets)) if len(sizes) else None,
        "forward_share": float((packets.dir[known] == 0).mean()) if len(sizes) else None,
        "protocols": [{"proto": int(numbers[at]), "share": float(counts[at] / len(packets))} for at in order.tolist()],
    }

"""Synthetic traffic fitted to the profile of a real network, for when the capture itself cannot be shared.

What is kept: the exact shares of all sizes, the mean and the variation of the gaps, the number of flows and the share
of the largest, the mix of protocols and directions. What is lost: which sizes follow each other, and bursts longer than
the variation of single gaps explains. The metadata says that the packets are synthetic.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._support.errors import HeapwrightError
from heapwright._support.remote import read_from
from heapwright._traffic.packets import PacketTable

_ETHERNET_HEADER, _ETHERNET_LEAST = 14, 60
_MOST_PACKETS, _MOST_FLOWS = 1 << 24, 1 << 22
"""A damaged profile may ask for any number; these fit into the memory of a small machine."""
_NEEDED = ("packets", "size_column", "sizes", "seconds", "flows")


def is_profile(start: bytes) -> bool:
    """Whether a file that starts with these bytes may be the JSON of `heapwright profile PACKETS`."""
    return start.lstrip()[:1] == b"{"


def import_profile(path: str | os.PathLike[str], count: int | None = None, seed: int = 0) -> PacketTable:
    """Make packets that follow a profile in a file, as `heapwright profile PACKETS --json` prints it.

    Raises:
        HeapwrightError: as `synthesise`, or the file holds no JSON.
    """
    name = os.fspath(path)
    try:
        profile = json.loads(read_from(Path(name)).read_bytes())
    except (ValueError, RecursionError) as error:
        raise HeapwrightError(f"{name}: not a profile: {error}; heapwright profile prints one as JSON") from error
    return synthesise(profile, count, seed, where=name)


def synthesise(
    profile: Mapping[str, Any], count: int | None = None, seed: int = 0, where: str = "profile"
) -> PacketTable:
    """Draw packets that follow `profile` (as `heapwright._traffic.profile.profile_packets` returns it).

    Args:
        profile: sizes and shares, `seconds`, `flows` and, where there are any, burstiness, flow and protocol shares.
        count: how many, None for as many as the profile has seen.
        seed: the same profile, count and seed give the same packets.
        where: names the profile in errors.

    Gaps follow a gamma distribution of the profile's mean and coefficient of variation. Flows are chosen with Zipf's
    law, its exponent such that the most frequent one has the profile's share. Where sizes are those of IP packets, the
    frames are Ethernet's.

    Raises:
        HeapwrightError: the profile lacks a key or holds a value that no network has, or `count` is out of range.
    """
    try:
        missing = [key for key in _NEEDED if key not in profile]
        if missing:
            raise ValueError(f"has no {', '.join(missing)}")
        count = int(profile["packets"]) if count is None else count
        if not 0 < count <= _MOST_PACKETS:
            raise ValueError(f"{count} packets; 1 to {_MOST_PACKETS} is valid")
        return _draw(profile, count, np.random.default_rng(seed), seed)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, IndexError, MemoryError) as error:
        raise HeapwrightError(
            f"{where}: not a profile of packets: {' '.join(str(error).split())}; heapwright profile prints one as JSON"
        ) from error


def _draw(profile: Mapping[str, Any], count: int, random: np.random.Generator, seed: int) -> PacketTable:
    sizes = np.array([int(row["size"]) for row in profile["sizes"]], np.int64)
    if not len(sizes) or sizes.min() < 1 or sizes.max() > 1 << 31:
        raise ValueError("sizes must be 1 to 2^31 bytes")
    size = random.choice(sizes, count, p=_shares([row["share"] for row in profile["sizes"]]))
    with_ip = profile["size_column"] == "ip_len"
    frame = np.maximum(size + _ETHERNET_HEADER, _ETHERNET_LEAST) if with_ip else size
    flow = _flows(profile, count, random)
    numbers = profile.get("protocols") or [{"proto": 0, "share": 1.0}]
    of_flow = random.choice(
        [int(row["proto"]) for row in numbers], flow.max() + 1, p=_shares([r["share"] for r in numbers])
    )
    forward = profile.get("forward_share")
    backward = random.random(count) >= (1.0 if forward is None else float(forward))
    return PacketTable(
        ts_us=_times(profile, count, random),
        frame_len=frame.astype(np.uint32),
        ip_len=(size if with_ip else np.zeros(count)).astype(np.uint32),
        proto=of_flow[flow].astype(np.uint8),
        flow=flow.astype(np.uint32),
        dir=backward.astype(np.uint8),
        metadata={"synthetic": "true", "fitted_to": str(profile.get("name", "unnamed")), "seed": str(seed)},
    )


def _shares(values: list[Any]) -> NDArray[np.float64]:
    shares = np.array(values, np.float64)
    if not np.isfinite(shares).all() or (shares < 0).any() or not shares.sum() > 0:
        raise ValueError("shares must be positive")
    return np.asarray(shares / shares.sum())


def _times(profile: Mapping[str, Any], count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Microseconds: gaps of the profile's mean, and of its variation if it has one."""
    bursts = profile.get("burstiness") or {}
    mean = bursts.get("interarrival_mean_us")
    if mean is None:
        mean = float(profile["seconds"]) * 1e6 / max(int(profile["packets"]) - 1, 1)
    variation = bursts.get("interarrival_cv")
    variation = 1.0 if variation is None else float(variation)
    if not 0 <= mean * count < 1 << 62 or not 0 <= variation < 1e6:
        raise ValueError("gaps are out of range")
    # A gamma distribution of shape 0 would have no spread at all: that is a clock.
    gaps = random.gamma(variation**-2, mean * variation**2, count) if variation > 1e-3 else np.full(count, mean)
    gaps[0] = 0
    return np.cumsum(gaps).astype(np.int64)


def _flows(profile: Mapping[str, Any], count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Flow of every packet, numbered from 1; 0 everywhere where the profile knows none."""
    flows = int(profile["flows"])
    if not 0 <= flows <= _MOST_FLOWS:
        raise ValueError(f"{flows} flows; 0 to {_MOST_FLOWS} is valid")
    if not flows:
        return np.zeros(count, np.int64)
    rank = np.log(np.arange(1, flows + 1))
    top = profile.get("top_flow_share")
    return random.choice(flows, count, p=_zipf(rank, 0.0 if top is None else float(top))) + 1


def _zipf(log_rank: NDArray[np.float64], top: float) -> NDArray[np.float64]:
    """Zipf's law with the exponent (bisected between 0 and 64) that gives the first rank the share `top`."""
    low, high = 0.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 / np.exp(-middle * log_rank).sum() < top else (low, middle)
    weights = np.exp(-low * log_rank)
    return np.asarray(weights / weights.sum())

"""The profile of a packet table, or of a file of either kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from heapwright._support.errors import HeapwrightError
from heapwright._support.kinds import kind_of
from heapwright._traces.profile import describe_sizes, profile
from heapwright._traces.trace import Trace
from heapwright._traffic.packets import PacketTable


def profile_packets(packets: PacketTable, name: str) -> dict[str, Any]:
    """Characterise a packet table.

    Returns `name`, `packets`, `sizes` and its further counts as in `profile`, `size_column` ("ip_len", or "frame_len"
    where no packet carries IP; with "ip_len" frames that carry no IP have no size), `bytes`, `seconds`, `synthetic`
    (whether the metadata marks the table as synthetic), and of `heapwright._traffic.statistics` `histogram`, `modes`
    (the two most frequent sizes with their shares), `stability` of their shares, `burstiness`, and of the flows
    `flows`, `top_flow_share`, `forward_share`, `protocols`.
    """
    from heapwright._traffic import statistics

    column = "ip_len" if (packets.ip_len > 0).any() else "frame_len"
    lengths = getattr(packets, column).astype(np.int64)
    lengths = lengths[lengths > 0]
    sizes = describe_sizes(lengths)
    modes = [{"size": row["size"], "share": row["share"]} for row in sizes["sizes"][:2]]
    return {
        "name": name,
        "packets": len(packets),
        "synthetic": packets.metadata.get("synthetic") == "true",
        "size_column": column,
        "bytes": int(lengths.sum()),
        **sizes,
        "histogram": statistics.histogram(lengths),
        "modes": modes,
        "stability": statistics.stability(lengths, [mode["size"] for mode in modes]),
        "seconds": float(packets.ts_us[-1] - packets.ts_us[0]) / 1e6 if len(packets) else 0.0,
        "burstiness": statistics.burstiness(packets.ts_us),
        **statistics.flows(packets),
    }


def profile_file(path: Path, repair: bool = False) -> dict[str, Any]:
    """Characterise the trace or packet table at `path`; `repair` drops a trace's invalid calls, `repairs` says which.

    Raises HeapwrightError where it is neither, or cannot be read.
    """
    kind = kind_of(path)
    if kind == "packets":
        return profile_packets(PacketTable.read(path), path.stem)
    if kind == "trace":
        return profile(Trace.read(path, repair=repair))
    if kind == "study":
        raise HeapwrightError(f"{path}: a study, and no trace; give one that it was explored on")
    raise HeapwrightError(f"{path}: not a readable Parquet file; a trace or a packet table is one")


def in_words(info: Mapping[str, Any]) -> list[str]:
    """The traffic in words: packets, sizes, how stable their shares are, and bursts."""
    sizes = info["sizes"][:3]
    shares = ", ".join(f"{row['size']:,} bytes {row['share']:.1%}" for row in sizes)
    seconds = f" in {info['seconds']:,.3g} s" if info["seconds"] else ""
    counts = f"{info['packets']:,} packets{seconds}, {info['flows']:,} flows; {info['distinct_sizes']:,} sizes"
    result = [f"{info['name']}: {counts}: {shares}."]
    if info["stability"]:
        row = info["stability"][0]
        spread = ", ".join(f"{share['size']:,} bytes ± {share['deviation']:.1%}" for share in row["shares"])
        result.append(f"In samples of {row['packets']:,} packets these shares vary: {spread}.")
    variation = info["burstiness"]["interarrival_cv"]
    if variation is not None:
        result.append(
            f"Gaps between packets have a coefficient of variation of {variation:.3g}; a Poisson process has 1."
        )
    return result

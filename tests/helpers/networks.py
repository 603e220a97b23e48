"""Packet tables of networks that do not exist."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from heapwright._traffic.packets import PacketTable


def network(seed: int, with_ip: bool = True) -> PacketTable:
    """12,000 packets of 40, 1500 and other bytes."""
    draw = np.random.default_rng(seed)
    sizes = draw.choice([40, 1500, *range(100, 900)], 12_000, p=[0.4, 0.25, *[0.35 / 800] * 800])
    return PacketTable(
        ts_us=np.arange(12_000) * 700,
        frame_len=(sizes + 14).astype(np.uint32),
        ip_len=(sizes if with_ip else sizes * 0).astype(np.uint32),
        proto=np.full(12_000, 6, np.uint8),
        flow=draw.integers(1, 50, 12_000).astype(np.uint32),
        dir=np.zeros(12_000, np.uint8),
    )


def five_networks(folder: Path) -> Path:
    """Tables of five networks in a new folder, one of them without IP, all with frames of 66 and of 1514 bytes."""
    folder.mkdir()
    for seed, name in enumerate(("air", "campus", "home", "office", "shop")):
        table = network(seed, with_ip=name != "air")
        table.frame_len[table.frame_len == 54] = 66
        table.write(folder / f"{name}.parquet")
    return folder


def table(times: list[int], frames: list[int], flows: list[int], with_ip: bool = True) -> PacketTable:
    frame_len = np.array(frames, np.uint32)
    return PacketTable(
        ts_us=np.array(times, np.int64),
        frame_len=frame_len,
        ip_len=frame_len - np.uint32(14) if with_ip else np.zeros(len(frames), np.uint32),
        proto=np.full(len(frames), 6, np.uint8),
        flow=np.array(flows, np.uint32),
        dir=np.zeros(len(frames), np.uint8),
    )


def random_packets(count: int, seed: int = 1, flows: int = 30) -> PacketTable:
    draw = np.random.default_rng(seed)
    times = np.cumsum(draw.integers(0, 900, count))
    frames = draw.choice([54, 66, 600, 1514], count)
    return table((times - times[0]).tolist(), frames.tolist(), draw.integers(0, flows, count).tolist())

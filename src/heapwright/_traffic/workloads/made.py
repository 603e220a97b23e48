"""Traces that workloads have made, and what the same workload makes of other packets.

A workload's packets may be more, of another order or faster, and its output may stall; its queue stays the same. So
futures and copies of its trace are made of packets and sent through the queue again, never drawn from its calls.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from heapwright._support.errors import HeapwrightError, ParameterError, did_you_mean
from heapwright._traces import copies, futures
from heapwright._traces.live_bound import LiveBound
from heapwright._traces.pieces import pieces
from heapwright._traces.trace import Trace
from heapwright._traffic.packets import PacketTable
from heapwright._traffic.profile import in_words, profile_packets
from heapwright._traffic.workloads import NAMES, function

BLOCK = 512
"""Packets of a block on average that futures repeat in their order: longer than most bursts."""

SWING = 1.1
"""Most by which a block comes faster or slower than it was captured: at a load of 0.9 the link stays below 1."""

STALL_EVERY = 4096
"""Packets from one stall of the output to the next, on average."""

STALLED = 2.0
"""Packets that arrive during a stall, at most, as a share of the ring, so that it fills."""

UNBOUNDED_STALL = 0.5
"""The same of the recording's live peak in objects, for a queue without a ring."""


def maker(
    name: str, packets: PacketTable | str | os.PathLike[str] | None, options: Mapping[str, Any], *more: str
) -> Callable[..., Trace]:
    """The workload of a name with its packets and options, as a function of the parameters ``more``.

    ``options`` are the parameters of the workload's function; for packets also ``longest_gap``
    (`PacketTable.closing_gaps`) and ``mtu`` (`PacketTable.segmented`). Raises HeapwrightError for an unknown name or
    option, or packets that are missing or not needed.
    """
    make, parameters = _function(name)
    of_packets = {key: options.get(key) for key in ("longest_gap", "mtu")} if "packets" in parameters else {}
    others = {key: value for key, value in options.items() if key not in of_packets}
    if unknown := next((option for option in (*others, *more) if option not in parameters), None):
        known = [option for option in parameters if option != "packets"]
        raise HeapwrightError(f"{name}: no option {unknown}; {did_you_mean(unknown, known)}")
    _require_packets(name, packets, needed="packets" in parameters)
    if packets is None:
        return functools.partial(make, **others)
    table = packets if isinstance(packets, PacketTable) else PacketTable.read(packets)
    made_of = {} if isinstance(packets, PacketTable) else {"packets_file": os.fspath(packets)}
    used = _prepared(table, **of_packets)

    def run(**chosen: Any) -> Trace:
        result = make(used, **others, **chosen)
        given = {key: value for key, value in {**options, **chosen}.items() if value is not None}
        if made_of:
            words = in_words(profile_packets(used, Path(made_of["packets_file"]).stem))
            facts = {"packets_digest": table.digest, "workload_options": json.dumps(given), "traffic": " ".join(words)}
            result = replace(result, metadata={**result.metadata, **made_of, **facts})
        return result

    return run


def _function(name: str) -> tuple[Callable[..., Trace], Mapping[str, inspect.Parameter]]:
    """The workload of a name, and its parameters."""
    if name not in NAMES and not name.endswith(".py"):
        raise HeapwrightError(f"{name}: no such workload; {did_you_mean(name, NAMES)}, or a Python file with a Queue")
    make = function(name)
    return make, inspect.signature(make).parameters


def _require_packets(name: str, packets: object, *, needed: bool) -> None:
    if packets is not None and not needed:
        raise ParameterError(f"{name} makes its own; leave them out", parameter="packets")
    if packets is None and needed:
        raise HeapwrightError(f"{name}: needs packets; give a packet table, which heapwright import makes of a capture")


def _prepared(table: PacketTable, longest_gap: float | None = None, mtu: int | None = None) -> PacketTable:
    table = table if longest_gap is None else table.closing_gaps(longest_gap)
    return table if mtu is None else table.segmented(mtu)


@dataclass(frozen=True)
class Made:
    """How a trace was made: a workload with its options, and its packets, as it used them."""

    name: str
    options: Mapping[str, Any]
    packets: PacketTable
    trace: Trace

    @classmethod
    def of(cls, trace: Trace) -> Made | None:
        """How a trace was made; None if that is not known, or its packets are not there or have changed."""
        metadata = trace.metadata
        name, text, digest = (metadata.get(key) for key in ("workload", "workload_options", "packets_digest"))
        if name not in NAMES or text is None or "packets_file" not in metadata or "copy_of" in metadata:
            return None
        options = json.loads(text)
        given = Path(metadata["packets_file"])
        places = [given] + ([Path(trace.path).parent / given.name] if trace.path else [])
        for path in places:
            if path.is_file():
                table = PacketTable.read(path)
                if table.digest == digest:
                    table = _prepared(table, options.pop("longest_gap", None), options.pop("mtu", None))
                    count = options.pop("count", None)
                    return cls(name, options, _first(table, count), trace)
        return None

    def run(self, packets: PacketTable, faster: float = 1.0) -> Trace:
        """The workload on other packets behind the same link, or one of 1/``faster`` its rate."""
        options = {key: value for key, value in self.options.items() if key not in ("load", "rate")}
        if "bits_a_second" in self.trace.metadata:
            options["rate"] = float(self.trace.metadata["bits_a_second"]) / faster
        elif self.name == "queue":
            options["cycles"] = None
        return function(self.name)(packets, **options)

    def future(self, calls: int, seed: int) -> Trace:
        """The packets, followed by a block bootstrap of them, through the queue; about ``calls`` calls more.

        Blocks of them come faster or slower, and the output stalls now and then (`STALLED`). Of more packets than that
        the future has the bootstrap alone.
        """
        random = np.random.default_rng([seed, 1])
        used = int(self.trace.metadata.get("used", len(self.packets)))
        more = -(-calls * used // max(len(self.trace), 1))
        drawn = _bootstrapped(self.packets, more, random)
        drawn = _stalled(drawn, self._most_stalled, random)
        result = self.run(_joined(self.packets, drawn) if len(self.trace) <= calls else drawn)
        info = {"resample_of": self.trace.name, "resample_calls": str(calls), "resample_seed": str(seed)}
        return replace(result, name=f"{self.trace.name}~future", metadata={**self.trace.metadata, **info})

    @property
    def _most_stalled(self) -> int:
        ring = self.options.get("ring") or self.options.get("limit")
        most = STALLED * int(ring) if ring else UNBOUNDED_STALL * self.trace.peak_live_objects
        return max(1, int(most))

    def copy(self, kind: copies.Kind, number: int, seed: int) -> Trace:
        """A copy of the workload's trace: its packets in another order, or, for more load, all of them faster."""
        random = np.random.default_rng([seed, 2, number])
        packets = _bootstrapped(self.packets, len(self.packets), random)
        faster, name = (kind.times, kind.name) if isinstance(kind, copies.Load) else (1.0, "packets")
        result = self.run(packets, faster)
        info = {"copy_of": self.trace.name, "copy_kind": name, "copy_number": str(number), "copy_seed": str(seed)}
        return replace(
            result,
            name=f"{self.trace.name}~{name}-{number}",
            metadata={**self.trace.metadata, **result.metadata, **info},
        )


def future_of(trace: Trace, calls: int, seed: int) -> Trace:
    """A future of a trace, through the workload where one made it of packets that are there.

    Else it is drawn from the calls (`heapwright._traces.futures.resample`); a trace with a bound on what is live, which
    calls drawn at random exceed, is repeated instead.
    """
    made = Made.of(trace)
    if made is not None:
        return made.future(calls, seed)
    return futures.resample(trace, calls, seed=seed) if LiveBound.of(trace) is None else _repeated(trace, calls, seed)


def futures_of(traces: Sequence[Trace], calls: int, seed: int) -> list[Trace]:
    """A future of each trace: of ``calls`` calls or, drawn from calls, of twice the recording's if that is more."""
    results = []
    for trace in traces:
        bounded = "packets_digest" in trace.metadata or LiveBound.of(trace) is not None
        results.append(future_of(trace, calls if bounded else max(calls, 2 * len(trace)), seed))
    return results


MOST_FUTURE = 1_000_000
"""Most calls of a future that is drawn after the pieces of a long recording, unless more are wanted."""


def futures_of_pieces(traces: Sequence[Trace], parts: Sequence[Trace], calls: int, seed: int) -> list[Trace]:
    """`futures_of`, with the pieces of a long recording before its future in place of all its calls.

    ``parts``: of each trace its pieces, or itself.
    """
    results = []
    for trace, part in zip(traces, parts, strict=True):
        if part is trace or Made.of(trace) is not None or LiveBound.of(trace) is not None:
            results += futures_of([part], calls, seed)
            continue
        future = futures.resample(trace, max(calls, min(2 * len(trace), MOST_FUTURE)), seed=seed)
        results.append(pieces(future, before=len(future) - int(future.metadata["resample_calls"])))
    return results


def _repeated(trace: Trace, calls: int, seed: int) -> Trace:
    """The trace again and again for about ``calls`` calls; once if objects are live at its end."""
    rounds = 1 if trace.live_bytes[-1] else -(-calls // len(trace))
    span = int(trace.ts_us.max() - trace.ts_us.min()) + 1 if len(trace) and trace.ts_us.min() >= 0 else 0
    number, objects = trace.objects()
    turn = np.repeat(np.arange(rounds), len(trace))
    columns: dict[str, Any] = {name: np.tile(getattr(trace, name), rounds) for name in _PLAIN}
    info = {"resample_of": trace.name, "resample_calls": str(calls), "resample_seed": str(seed)}
    return Trace.from_columns(
        **columns,
        id=np.tile(number, rounds) + turn * objects,
        ts_us=np.tile(trace.ts_us, rounds) + turn * span,
        phases=trace.phases,
        sites=trace.sites,
        name=f"{trace.name}~future",
        metadata={**trace.metadata, **info},
    )


_PLAIN = ("op", "size", "tid", "align", "low", "failed", "phase", "site")
"""Columns of a trace that repeat as they are."""


def each_copy(trace: Trace, count: int, *, seed: int = 0) -> Iterator[Trace]:
    """The first ``count`` perturbed copies of a trace, one at a time; through the workload where one made it."""
    made = Made.of(trace)
    if made is None:
        if LiveBound.of(trace) is None:  # copies of calls alone would exceed the bound
            yield from copies.each_copy(trace, count, seed=seed)
        return
    kinds = copies.STANDARD
    for turn in range(count):
        yield made.copy(kinds[turn % len(kinds)], turn // len(kinds) + 1, seed)


def _first(table: PacketTable, count: int | None) -> PacketTable:
    from heapwright._traffic.workloads.link import first_packets

    return first_packets(table, count)


def _bootstrapped(packets: PacketTable, count: int, random: np.random.Generator) -> PacketTable:
    """``count`` packets in blocks of the given ones, each block faster or slower by up to `SWING`; flows are new."""
    block = max(1, min(BLOCK, len(packets) // 4))
    blocks = -(-count // block)
    starts = random.integers(0, len(packets), blocks)
    rows = ((starts[:, None] + np.arange(block)) % len(packets)).ravel()[:count]
    gaps = np.diff(packets.ts_us, prepend=packets.ts_us[0])
    gaps[0] = int(gaps[1:].mean()) if len(gaps) > 1 else 0
    factor = np.repeat(np.exp(random.uniform(-np.log(SWING), np.log(SWING), blocks)), block)[:count]
    times = np.cumsum(np.rint(gaps[rows] * factor)).astype(np.int64)
    of_block = np.repeat(np.arange(1, blocks + 1, dtype=np.uint32), block)[:count] * np.uint32(0x9E3779B1)
    columns: dict[str, Any] = {name: getattr(packets, name)[rows] for name in ("frame_len", "ip_len", "proto", "dir")}
    return replace(packets, ts_us=times, flow=packets.flow[rows] ^ of_block, **columns)


def _stalled(packets: PacketTable, most: int, random: np.random.Generator) -> PacketTable:
    """The packets as a stalled output meets them: those that arrive during a stall come at its end, all at once."""
    count = len(packets) // STALL_EVERY
    times = packets.ts_us.copy()
    for start in random.integers(0, len(packets), count):
        end = min(int(start) + int(random.integers(1, most + 1)), len(packets) - 1)
        times[start:end] = times[end]
    return replace(packets, ts_us=np.maximum.accumulate(times))


def _joined(first: PacketTable, second: PacketTable) -> PacketTable:
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(first, name), getattr(second, name)])
        for name in ("frame_len", "ip_len", "proto", "flow", "dir")
    }
    times = np.concatenate([first.ts_us, first.ts_us[-1] + second.ts_us])
    return replace(first, ts_us=times, **columns)

"""A multi-channel modem concentrator (Peintner, Bukhatwa and Patel, "Analysing dynamic memory allocation in embedded
systems for multi-channel modems", section 2): several instances, each a state machine of software units.

A unit takes its blocks when a call enters it, and gives them back in reverse order when the call ends or changes to
another unit. The paper says which units exclude or need each other; its sizes and times are unpublished. The defaults
here are this project's, chosen so that five connected instances hold about what the paper's Table 1 shows: 133 blocks
and 29,788 bytes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from heapwright._support.errors import ParameterError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

UNITS: dict[str, tuple[int, ...]] = {
    "control": (128, 64),
    "negotiation": (256, 128, 64),
    "V.110": (256, 128, 128, 64),
    "HDLC": (528, 528, 128, 64),
    "V.21": (128, 128, 64),
    "V.22bis": (256, 256, 128, 128, 64),
    "V.32bis": (512, 256, 256, 256, 128, 128, 128, 128, 64),
    "V.34": (512, 512, 256, 256, 256, 256, 128, 128, 128, 128, 170, 170),
    "V.90": (512, 512, 256, 256, 256, 256, 128, 128, 128, 128, 170, 170),
    "MNP4": (264, 264, 264, 264, 64),
    "V.42": (140, 140, 140, 140, 140, 140, 140, 140, 64, 64),
    "MNP5": (520, 520, 64),
    "V.42bis": (760, 760),
}
"""Blocks of each unit in bytes, in the order they are taken. V.42 has frames of 128 bytes with headers, MNP4 of 256;
V.42bis two dictionaries of 512 codewords; MNP5 a frequency table for each direction; control belongs to the instance.
"""
MODULATIONS = ("V.21", "V.22bis", "V.32bis", "V.34", "V.90")
FAST = ("V.32bis", "V.34", "V.90")
"""The modulations above which MNP5 may run (section 2)."""
_FALLBACK = {"V.90": "V.34", "V.34": "V.32bis"}
_WEIGHTS = (0.01, 0.04, 0.15, 0.40, 0.40)
"""Shares of the modulations among analogue calls, around the year 2001 of the paper."""
_ISDN_SHARE, _V110_SHARE = 0.2, 0.5
_NO_CORRECTION, _MNP_SHARE, _MNP5_SHARE, _V42BIS_SHARE = 0.05, 0.2, 0.7, 0.85

PHASES = ("start", "connect", "swap", "hang-up", "stop")
MEMORY = 128 * 1024
"""Bytes of memory the instances share: "about 128 Kbytes" (section 4.3.1)."""
HEADER = 4
"""Bytes of a block's header, one machine word (section 4.3.1); used to detect that memory runs short."""


def allowed(units: Sequence[str]) -> bool:
    """Whether one call may use these units together.

    HDLC excludes V.110 (section 2), and both exclude modulations, which ISDN calls have not. MNP5 needs V.32bis, V.34
    or V.90 (section 2) and MNP4; V.42bis needs V.42; MNP4 and V.42 exclude each other and need a modulation faster than
    V.21 (ITU practice).
    """
    have = set(units)
    lines = have & {"V.110", "HDLC", *MODULATIONS}
    return (
        len(lines) == 1
        and len(have & {"MNP4", "V.42"}) <= 1
        and (not have & {"MNP4", "V.42"} or bool(lines & set(MODULATIONS[1:])))
        and ("MNP5" not in have or ("MNP4" in have and bool(lines & set(FAST))))
        and ("V.42bis" not in have or "V.42" in have)
    )


def modem(
    *,
    instances: int = 5,
    calls: int = 1000,
    idle: float = 60.0,
    hold: float = 600.0,
    retrain: float = 0.1,
    memory: int = MEMORY,
    low_priority: float = 0.25,
    reserve: float = 0.1,
    seed: int = 0,
) -> Trace:
    """The heap calls of a concentrator over many modem calls.

    The trace's thread is the instance, its site the unit, its phase one of PHASES: an instance starts with its control
    blocks; "connect" is a call entering its units; "swap" replaces a unit by another (negotiation by the modulation
    agreed on; a modulation by a slower one when the line gets worse), freeing the outgoing unit's blocks and then
    taking the incoming one's, which is this project's reading of the paper's swap(). Units above the modulation stay.

    Args:
        instances: modem instances that share the memory; the paper has 5.
        calls: modem calls over all instances, refused ones included.
        idle: mean seconds between calls of an instance; exponential.
        hold: mean seconds of a connection; exponential.
        retrain: share of the connections whose line gets worse once.
        memory: bytes that the instances share. A call whose units, with what connected calls may take, would not fit is
            refused.
        low_priority: share of the calls that have low priority.
        reserve: share of the memory that calls of low priority must leave free.
        seed: the same options and seed give the same trace.

    The metadata counts the calls `connected`, `refused_low` and `refused_high`.

    Raises:
        ParameterError: a value is out of range, or the memory does not hold the instances' control blocks.
    """
    for name, share in (("retrain", retrain), ("low_priority", low_priority), ("reserve", reserve)):
        if not 0 <= share <= 1:
            raise ParameterError(f"{share:g}: must be a share, 0 to 1", parameter=name)
    for name, seconds in (("idle", idle), ("hold", hold)):
        if not seconds > 0:
            raise ParameterError(f"{seconds:g}: must be more than 0 seconds", parameter=name)
    if not 1 <= instances <= 1 << 16:
        raise ParameterError(f"{instances}: 1 to 65536 is valid", parameter="instances")
    if calls < 1:
        raise ParameterError(f"{calls}: must be at least 1", parameter="calls")
    control = instances * _need(("control",))
    if memory < control:
        raise ParameterError(
            f"{memory}: {instances} instances need {control} bytes before any call", parameter="memory"
        )
    random = np.random.default_rng(seed)
    board = _Board(random, idle, hold, retrain, memory, low_priority, reserve, committed=control)
    board.run(instances, calls)
    numbers = {"instances": instances, "calls": calls, "idle": idle, "hold": hold, "retrain": retrain, "memory": memory}
    options = {**numbers, "low_priority": low_priority, "reserve": reserve, "seed": seed, **board.counts}
    return board.log.trace({"workload": "modem", "synthetic": "true", **{key: str(of) for key, of in options.items()}})


def _need(units: Sequence[str]) -> int:
    return sum(size + HEADER for unit in units for size in UNITS[unit])


@dataclass
class _Log:
    """The calls so far, column by column."""

    rows: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    objects: int = 0

    def take(self, time: float, instance: int, unit: str, phase: str) -> list[int]:
        """Allocate a unit's blocks; returns their objects."""
        taken = list(range(self.objects, self.objects + len(UNITS[unit])))
        self.objects += len(taken)
        for number, size in zip(taken, UNITS[unit], strict=True):
            self._row(time, instance, MALLOC, number, size, unit, phase)
        return taken

    def give_back(self, time: float, instance: int, unit: str, blocks: list[int], phase: str) -> None:
        """Free a unit's blocks in reverse order."""
        for number in reversed(blocks):
            self._row(time, instance, FREE, number, 0, unit, phase)

    def _row(self, time: float, instance: int, op: int, number: int, size: int, unit: str, phase: str) -> None:
        site = list(UNITS).index(unit)
        self.rows.append((int(time * 1e6), instance, op, number, size, PHASES.index(phase), site))

    def trace(self, metadata: dict[str, str]) -> Trace:
        ts_us, tid, op, number, size, phase, site = np.array(self.rows, np.int64).T
        columns = {"ts_us": ts_us, "tid": tid, "op": op, "id": number, "size": size, "phase": phase, "site": site}
        return Trace.from_columns(**columns, phases=PHASES, sites=tuple(UNITS), name="modem", metadata=metadata)


@dataclass
class _Board:
    """All instances and what they share."""

    random: np.random.Generator
    idle: float
    hold: float
    retrain: float
    memory: int
    low_priority: float
    reserve: float
    committed: int
    log: _Log = field(default_factory=_Log)
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("connected", "refused_low", "refused_high"), 0)
    )

    def run(self, instances: int, calls: int) -> None:
        """Let the instances go through `calls` calls in order of time; then each gives its control blocks back."""
        control = [self.log.take(0.0, number, "control", "start") for number in range(instances)]
        # A step is what an instance does next: a generator that yields when it wants to go on.
        steps: list[tuple[float, int, Iterator[float] | None]] = []
        steps += [(self._wait(self.idle), number, None) for number in range(instances)]
        heapq.heapify(steps)
        time = 0.0
        while steps:
            time, number, call = heapq.heappop(steps)
            if call is None and calls > 0:
                calls -= 1
                call = self._call(time, number)
            elif call is None:
                continue
            after = next(call, None)
            heapq.heappush(
                steps, (time + self._wait(self.idle), number, None) if after is None else (after, number, call)
            )
        for number in reversed(range(instances)):
            self.log.give_back(time, number, "control", control[number], "stop")

    def _wait(self, mean: float) -> float:
        return float(self.random.exponential(mean))

    def _call(self, time: float, instance: int) -> Iterator[float]:
        units = agreed(self.random)
        need = max(_need(units), _need(("negotiation",)))
        if not self._admitted(need):
            return
        self.committed += need
        entered: list[tuple[str, list[int]]] = []
        if units[0] in MODULATIONS:
            entered.append(("negotiation", self.log.take(time, instance, "negotiation", "connect")))
            yield (time := time + self._wait(5.0))
            self._swap(time, instance, entered, units[0])
        for unit in units[len(entered) :]:
            entered.append((unit, self.log.take(time, instance, unit, "connect")))
            yield (time := time + self._wait(1.0))
        end = time + self._wait(self.hold)
        if self.random.random() < self.retrain and units[0] in _FALLBACK:
            yield (time := time + (end - time) * float(self.random.random()))
            self._swap(time, instance, entered, _FALLBACK[units[0]])
        yield end
        for unit, blocks in reversed(entered):
            self.log.give_back(end, instance, unit, blocks, "hang-up")
        self.committed -= need

    def _admitted(self, need: int) -> bool:
        low = bool(self.random.random() < self.low_priority)
        fits = self.committed + need <= self.memory * (1 - self.reserve if low else 1)
        self.counts["connected" if fits else "refused_low" if low else "refused_high"] += 1
        return fits

    def _swap(self, time: float, instance: int, entered: list[tuple[str, list[int]]], unit: str) -> None:
        """Replace the lowest unit of a call, the one on the line."""
        self.log.give_back(time, instance, *entered[0], "swap")
        entered[0] = (unit, self.log.take(time, instance, unit, "swap"))


def agreed(random: np.random.Generator) -> tuple[str, ...]:
    """The units that the two ends of a call agree on, in the order they are entered."""
    if random.random() < _ISDN_SHARE:
        return ("V.110" if random.random() < _V110_SHARE else "HDLC",)
    modulation = str(random.choice(MODULATIONS, p=_WEIGHTS))
    if modulation == "V.21" or random.random() < _NO_CORRECTION:
        return (modulation,)
    if random.random() < _MNP_SHARE:
        compressed = modulation in FAST and random.random() < _MNP5_SHARE
        return (modulation, "MNP4", "MNP5") if compressed else (modulation, "MNP4")
    return (modulation, "V.42", "V.42bis") if random.random() < _V42BIS_SHARE else (modulation, "V.42")

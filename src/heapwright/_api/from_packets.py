"""From packets to a heap: the traffic, the queue, what it holds, the heap with its reserve, C and a page."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from heapwright._api.arguments import PathLike, listed, one_line_errors
from heapwright._support.errors import HeapwrightError, ParameterError, did_you_mean

if TYPE_CHECKING:
    from heapwright._api.arguments import Member
    from heapwright._explore.runner import Progress
    from heapwright._studies.decision import Decision
    from heapwright._studies.proofs import ReserveProof
    from heapwright._traces.trace import Trace
    from heapwright._traffic.workloads.queue_bound import QueueBound

QUEUES: Mapping[str, str] = {"fifo": "easyport", "drr": "drr", "priority": "priority", "fixed": "queue"}
"""Queues by name, each with its workload."""

NETWORK_OBJECTIVES = ("long_run_bytes", "long_run_accesses", "energy_nJ")
"""Objectives of a network's heap: memory, accesses, and the energy of both (Mamagkakis et al. 2006 and 2007)."""

SECONDS = 30.0
"""Default budget of the exploration if the traces are long."""

LONG = 200_000
"""Calls of all traces from which on the exploration has a budget by default."""

MOST_PACKETS = 20_000
"""Packets that are explored on behind a ring, whose bound holds for all others."""


class Step(NamedTuple):
    """A step: a title, the command that does the same alone, and what it found."""

    title: str
    command: tuple[str, ...]
    sentences: list[str]


@dataclass(frozen=True)
class Network:
    """From packets to a heap: all files, and the answer.

    Attributes:
        packets: the packet tables, one a capture.
        traces: the heap calls that the queue makes of each.
        bounds: what bounds the queue, one a trace.
        study: the study; `hw.open_study` opens it.
        decision: the heap, its reserve, the evidence and alternatives.
        proofs: of the reserve, one for each bound on what is live.
        energy: nJ a block for the allocator's own accesses, by the process of the memory.
        heap: the C files.
        page: the report.
        steps: all steps with their commands.
    """

    packets: list[Path]
    traces: list[Path]
    bounds: list[QueueBound]
    study: Path
    decision: Decision
    proofs: list[ReserveProof]
    energy: dict[str, float]
    heap: list[Path]
    page: Path
    steps: list[Step] = field(default_factory=list)

    @property
    def reserve_bytes(self) -> int | None:
        """The arena to reserve, bytes; None if no arena serves the recommended heap."""
        return self.decision.reserve_bytes

    def sentences(self) -> list[str]:
        """The answer in words: the heap and its reserve, the proofs, and energy."""
        return _answer(self.decision, self.proofs, self.energy)


@one_line_errors
def network(
    captures: PathLike | Sequence[PathLike],
    output: PathLike = "heapwright-network",
    *,
    queue: str = "fifo",
    ring: int | None = None,
    mtu: int | None = None,
    state: int | None = None,
    load: float | Sequence[float] = 0.9,
    settings: Mapping[str, Any] | None = None,
    platform: str | None = None,
    prefix: str = "net",
    budget: float | None = None,
    done: Callable[[Step], None] = lambda step: None,
    progress: Callable[[Progress], None] | None = None,
) -> Network:
    """Make the heap for the packets of captures that wait in a queue, with its reserve, as C, and a page.

    Args:
        captures: pcap, pcapng, tsh, CSV files or packet tables; several are networks that one heap has to suit.
        output: the folder of all files. The same call goes on where an earlier one stopped.
        queue: "fifo", "drr" (deficit round robin), "priority", "fixed" (drops what is beyond its length), or a Python
            file with a class Queue (docs/network.md).
        ring: most packets in the queue, as descriptors of a driver's ring; then the reserve is proved for any order.
        mtu: bytes of the largest IP packet; the largest seen if None.
        state: bytes stored with each packet; None is the workload's own.
        load: share of time that the link is busy; several are loads that one heap has to suit.
        settings: other parameters of the workload, as of `hw.workload`.
        platform: of `hw.platforms()`, for the C.
        prefix: of the C names.
        budget: seconds for the exploration; None is `SECONDS` for long traces, else as long as it takes.
        done: called with each step when it is done.
        progress: as for `hw.explore`.

    Raises HeapwrightError for captures, a queue or parameters that cannot be used.
    """
    from heapwright._platforms.catalogue import platform as find_platform

    files = [Path(item) for item in listed(captures)]
    if not files:
        raise HeapwrightError("network: no capture given; pcap, pcapng, tsh, CSV and packet tables are read")
    if platform is not None:
        find_platform(platform)  # an unknown one is an error now, not after the exploration
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    loads = [float(load)] if isinstance(load, (int, float)) else [float(item) for item in load]
    chosen = [_Chosen(queue, ring, mtu, state, item, len(loads) > 1, dict(settings or {})) for item in loads]
    if len(loads) > 1 and "rate" in chosen[0].settings:
        raise ParameterError("a rate is one load: give several loads without it", parameter="load")
    steps: list[Step] = []

    def add(title: str, command: Sequence[PathLike], sentences: list[str]) -> None:
        steps.append(Step(title, ("heapwright", *(os.fspath(word) for word in command)), sentences))
        done(steps[-1])

    tables = [_imported(path, folder, add) for path in _stems_once(files)]
    made = [_made(table, folder, item, add) for table in tables for item in chosen]
    traces, bounds = [path for path, _ in made], [bound for _, bound in made]
    return _answered(folder, tables, traces, bounds, (platform, prefix, budget), add, steps, progress)


class _Chosen(NamedTuple):
    queue: str
    ring: int | None
    mtu: int | None
    state: int | None
    load: float
    is_one_of_several: bool
    settings: dict[str, Any]

    @property
    def workload(self) -> str:
        if self.queue.endswith(".py"):
            return self.queue
        if self.queue not in QUEUES:
            valid = did_you_mean(self.queue, QUEUES)
            raise ParameterError(f"{self.queue}: no such queue; {valid}, or a Python file", parameter="queue")
        return QUEUES[self.queue]

    def options(self) -> dict[str, Any]:
        """The workload's own options."""
        options = {"mtu": self.mtu, "extra": self.state, **self.settings}
        if self.workload == "queue":
            options |= {"limit": self.ring or options.get("limit")}
            if self.state is not None:
                raise ParameterError("the fixed queue stores packets alone; valid: none", parameter="state")
        else:
            options["ring"] = self.ring
        return {key: value for key, value in options.items() if value is not None}


Add = Callable[[str, Sequence[PathLike], list[str]], None]


def _stems_once(files: Sequence[Path]) -> list[Path]:
    seen: dict[str, Path] = {}
    for path in files:
        if path.stem in seen:
            raise HeapwrightError(f"{path}: {seen[path.stem]} has the same name; rename one")
        seen[path.stem] = path
    return list(files)


def _imported(path: Path, folder: Path, add: Add) -> Path:
    """The packet table of a capture, and what its traffic is."""
    from heapwright._api.traces import import_packets
    from heapwright._support.kinds import kind_of
    from heapwright._traffic.packets import PacketTable
    from heapwright._traffic.profile import in_words, profile_packets

    if not path.is_file():
        raise HeapwrightError(f"{path}: no such file; give a capture or a packet table")
    if kind_of(path) == "packets":
        table, target = PacketTable.read(path), path
    else:
        table, target = import_packets(path), folder / f"{path.stem}.parquet"
        table.write(target)
        lost = [table.metadata["warning"]] if "warning" in table.metadata else []
        add("The packets", ["import", path, "-o", target], [f"{target}: {len(table):,} packets.", *lost])
    words = in_words(profile_packets(table, path.stem))
    if longer := int(np.count_nonzero(table.ip_len > table.frame_len)):
        words.append(f"{longer:,} packets claim more bytes than their frames hold; an MTU limits what these may need.")
    add("The traffic", ["profile", target], words)
    return target


def _made(table: Path, folder: Path, chosen: _Chosen, add: Add) -> tuple[Path, QueueBound]:
    """The trace of a packet table behind the queue, and what bounds it."""
    from heapwright._traces.live_bound import LiveBound
    from heapwright._traffic.packets import PacketTable
    from heapwright._traffic.workloads.made import maker
    from heapwright._traffic.workloads.queue_bound import queue_bound

    name, options = chosen.workload, chosen.options()
    at_load: dict[str, Any] = {} if "rate" in options else {"load": chosen.load}
    packets = PacketTable.read(table)
    trace = maker(name, table, {**options, **at_load})()
    shortened = LiveBound.of(trace) is not None and len(packets) > MOST_PACKETS and "count" not in options
    if shortened:
        rate = {"rate": float(trace.metadata["bits_a_second"])} if "bits_a_second" in trace.metadata else {}
        options, at_load = {**options, **rate, "count": MOST_PACKETS}, {} if rate else at_load
        trace = maker(name, table, {**options, **at_load})()
    label = Path(name).stem if name.endswith(".py") else chosen.queue
    label += f"-{chosen.load:g}" if chosen.is_one_of_several else ""
    target = folder / f"{table.stem}-{label}.parquet"
    trace.write(target)
    again = functools.partial(_again, name, packets, options)
    bound = queue_bound(trace, again, at_load.get("load"))
    words: list[PathLike] = ["workload", name, table]
    words += [item for key, value in at_load.items() for item in (f"--{key}", f"{value:g}")]
    words += [item for key, value in options.items() for item in ("--set", f"{key}={value}")]
    sent = float(trace.metadata.get("bits_a_second", 0))
    speed = f" a link of {sent / 1e6:,.3g} Mbit/s sends;" if sent else ""
    found = f"{trace.name}:{speed} {len(trace):,} calls, peak {trace.peak_live_bytes:,} bytes in "
    found += f"{trace.peak_live_objects:,} objects."
    if shortened:
        found += f" It has the first {MOST_PACKETS:,} packets; the bound holds for all."
    add("The queue", [*words, "-o", target], [found, bound.sentence(trace.peak_live_bytes)])
    return target, bound


def _again(name: str, packets: Any, options: Mapping[str, Any], **changed: Any) -> Trace:
    from heapwright._traffic.workloads.made import maker

    others = {key: value for key, value in options.items() if key not in changed and key != "rate"}
    return maker(name, packets, {**others, **changed})()


def _answered(
    folder: Path,
    tables: list[Path],
    traces: list[Path],
    bounds: list[QueueBound],
    wanted: tuple[str | None, str, float | None],
    add: Add,
    steps: list[Step],
    progress: Callable[[Progress], None] | None,
) -> Network:
    from heapwright._api.explorations import explore
    from heapwright._api.generation import generate, report
    from heapwright._studies.decision import decide
    from heapwright._studies.proofs import proofs_of
    from heapwright._traces.trace import Trace

    platform, prefix, budget = wanted
    read = [Trace.read(path) for path in traces]
    if budget is None and sum(map(len, read)) > LONG:
        budget = SECONDS
    path, heap, page = folder / "study.duckdb", folder / "heap", folder / "report.html"
    limit = ["--budget", f"{budget:g}s"] if budget is not None else []
    study = explore(read, path, objectives=NETWORK_OBJECTIVES, budget=budget, platform=platform, progress=progress)
    decision = decide(study)
    pick = study.pick()
    proofs = proofs_of(study, pick.id)
    energy = _energy(pick, read)
    objectives = ["--objectives", ",".join(NETWORK_OBJECTIVES)]
    into = ["--platform", platform] if platform else []
    add("The heap", ["explore", *traces, *objectives, *limit, *into, "-o", path], _answer(decision, proofs, energy))
    files = generate(pick, heap, prefix=prefix, platform=platform)
    add(
        "C",
        ["generate", f"{path}:balanced", "--prefix", prefix, *into, "-o", heap],
        [f"{heap}: {', '.join(file.name for file in files)}."],
    )
    report(study, page)
    add("The page", ["report", path, "--no-plots", "-o", page], [f"{page}."])
    return Network(tables, traces, bounds, path, decision, proofs, energy, files, page, steps)


def _energy(pick: Member, traces: Sequence[Trace]) -> dict[str, float]:
    """nJ a block of the recommended heap on the traces, by the process of the memory."""
    from heapwright._replay.energy import PROCESSES, energy_table
    from heapwright._traces.validation import FREE

    blocks = sum(int((trace.op != FREE).sum()) for trace in traces)
    numbers = [float(pick.metrics[key] or 0) for key in ("reads", "writes", "footprint_bytes")]
    return {name: energy_table(name).energy_nj(*numbers) / max(blocks, 1) for name in PROCESSES}


def _answer(decision: Decision, proofs: Sequence[ReserveProof], energy: Mapping[str, float]) -> list[str]:
    each = " and ".join(f"{value:,.3g} nJ in {name} memory" for name, value in energy.items())
    taken = f"The allocator's own accesses take {each} for each block, without leakage."
    return [*decision.sentences(), *(proof.sentence() for proof in proofs), taken]

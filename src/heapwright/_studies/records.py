"""Records that a study stores: its traces, its identity, its runs, and results of recipes on traces."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright._replay.energy import EnergyTable
from heapwright._replay.engine import ReplayProgress
from heapwright._replay.metrics import Value
from heapwright._support.errors import HeapwrightError
from heapwright._support.names import addressed
from heapwright._traces.origin import common_origin

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

_DIGESTED = 1 << 16
"""Calls that a digest takes at a time, as numbers of 8 bytes."""


@dataclass(frozen=True)
class TraceInfo:
    """Trace of a study: name, path ("" if it came from no file), content digest, number of calls.

    ``seed`` is what a copy was drawn with, None for every other trace.
    """

    name: str
    path: str
    digest: str
    events: int
    seed: int | None = None

    @classmethod
    def of(cls, trace: Trace) -> TraceInfo:
        """Describe a trace. The digest covers calls, objects, sizes, times, alignments and priorities, not its name."""
        digest = hashlib.sha256()
        columns: list[NDArray[Any]] = [trace.op, trace.id, trace.size, trace.ts_us, trace.align]
        for array in columns + [trace.low] * bool(trace.low.any()):
            for start in range(0, len(array), _DIGESTED):
                digest.update(array[start : start + _DIGESTED].astype(np.int64).data)
        seed = trace.metadata.get("copy_seed") if not trace.path else None
        return cls(
            trace.name, addressed(trace.path or ""), digest.hexdigest(), len(trace), None if seed is None else int(seed)
        )


def device_of(traces: Sequence[Trace], same_device: bool | None) -> dict[str, Any]:
    """Notes on the origin of traces: ``origin`` and ``same_device``, each if it is known.

    Several traces of one origin are loads of one device unless ``same_device`` says otherwise; other traces are of many
    devices.
    """
    origin = common_origin(traces)
    if same_device is None and len(traces) > 1:
        same_device = origin is not None
    info = {"origin": origin, "same_device": same_device}
    return {key: value for key, value in info.items() if value is not None}


@dataclass(frozen=True)
class Identity:
    """Identity of a study, equal for all of its results: its traces, objectives, space and energy table.

    ``recipes`` is how many the space has, ``align`` their alignment in bytes. ``same_device``: whether the traces are
    loads of one; None is what the study says, and for a new one what ``device`` notes (`device_of`).
    """

    traces: tuple[TraceInfo, ...]
    objectives: tuple[str, ...]
    space: str
    recipes: int
    energy_table: tuple[tuple[float, float, float], ...]
    align: int
    same_device: bool | None
    device: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        traces: Sequence[Trace],
        objectives: Sequence[str],
        space: str,
        recipes: int,
        energy: EnergyTable,
        align: int,
        same_device: bool | None = None,
    ) -> Identity:
        """The identity of an exploration of a space with this digest and number of recipes."""
        infos = tuple(TraceInfo.of(trace) for trace in traces)
        device = device_of(traces, same_device)
        return cls(infos, tuple(objectives), space, recipes, tuple(energy.rows), align, same_device, device)

    def require(self, path: Path, stored: Sequence[TraceInfo], meta: Mapping[str, Any]) -> None:
        """Raise HeapwrightError unless the study at `path`, of these traces and this `meta`, is of it."""
        objectives, same_device = tuple(meta["objectives"]), bool(meta.get("same_device"))
        if {(info.name, info.digest) for info in self.traces} != {(info.name, info.digest) for info in stored}:
            names = ", ".join(info.name for info in stored)
            raise HeapwrightError(
                f"{path}: explored on other traces ({names}); give those, or another file", parameter="output"
            )
        if self.objectives != objectives:
            raise HeapwrightError(
                f"{path}: explored for {','.join(objectives)}; give the same objectives, or another file "
                "(heapwright pareto ranks a study again)",
                parameter="output",
            )
        if self.same_device not in (None, same_device):
            raise HeapwrightError(
                f"{path}: explored on {'loads of one device' if same_device else 'many networks'}; ask for "
                "the same, or give another file",
                parameter="output",
            )
        if self.align != meta["align"]:
            raise HeapwrightError(
                f"{path}: explored at alignment {meta['align']}, not {self.align}; give the same one, or another file",
                parameter="output",
            )
        for what, report in {"space": self.space, "energy_table": [[*row] for row in self.energy_table]}.items():
            if report != meta.get(what):
                raise HeapwrightError(
                    f"{path}: explored with another {what.replace('_', ' ')} by heapwright "
                    f"{meta['heapwright']}; give the same one, or another file",
                    parameter="output",
                )


@dataclass(frozen=True)
class Run:
    """Run of an exploration that wrote to a study: its start, version, engine, and options.

    ``commit`` is the engine's (`heapwright._support.engine`), ``command`` the command line, ``space`` the text of a
    SPACE.toml; each None if there is none. ``options`` are those that were not left at their defaults.
    """

    begun: str
    heapwright: str
    engine: str
    commit: str | None
    command: str | None
    strategy: str
    seed: int
    options: str
    space: str | None


class Result(NamedTuple):
    """The metrics of one recipe on one trace; ``id`` is the recipe's hash, ``trace`` the trace's name.

    A recipe that is not ``ranked`` is shown with the others and never on a front. ``machine`` is where a time was
    measured.
    """

    id: str
    recipe: Recipe
    zoo_name: str | None
    trace: str
    metrics: Mapping[str, Value]
    ranked: bool = True
    machine: str | None = None


class Partial(NamedTuple):
    """Partial result of a pruned recipe on a trace: the least footprint, and the progress of its replay."""

    id: str
    recipe: Recipe
    zoo_name: str | None
    trace: str
    least: int
    so_far: ReplayProgress
    ranked: bool = True


@dataclass(frozen=True)
class Measured:
    """Measurement of a recipe on a trace on a target CPU: its metrics, and all details."""

    id: str
    trace: str
    metrics: Mapping[str, Value]
    detail: Mapping[str, Any]


@dataclass(frozen=True)
class Grown:
    """Growth of a search: recipes evaluated, seconds since it began, and the hypervolume of the front.

    The hypervolume is in logarithms of the objectives, up to the worst reference allocator.
    """

    strategy: str
    seed: int
    evaluations: int
    seconds: float
    hypervolume: float

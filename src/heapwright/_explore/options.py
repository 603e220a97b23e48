"""Options of an exploration, checked when the object is made."""

from __future__ import annotations

import time
import warnings
from dataclasses import InitVar, dataclass, field, fields
from typing import TYPE_CHECKING, Literal

from heapwright._recipes.zoo.catalogue import names
from heapwright._replay.energy import EnergyTable, default_energy_table
from heapwright._replay.engine import GROWING
from heapwright._replay.long_run import CALLS
from heapwright._replay.metrics import (
    DEFAULT_OBJECTIVES,
    LONG_RUN_METRICS,
    ON_RECORDING,
    SHIPPING_METRICS,
    Objectives,
    named_in,
    parse_objectives,
)
from heapwright._support.errors import ParameterError, did_you_mean
from heapwright._traces.pieces import LONG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heapwright._explore.schedule import FinishingRule
    from heapwright._explore.space import AnySpace
    from heapwright._traces.trace import Trace

COPIES = 0
"""Perturbed copies on which candidates are replayed: none, as a future shows more (docs/robustness.md)."""

Strategy = Literal["exhaustive", "random", "search"]

_OF_ALL: tuple[Strategy, ...] = ("exhaustive", "random")
_OF_WIDE: tuple[Strategy, ...] = ("search",)


@dataclass(frozen=True)
class Options:
    """How a space is explored. Raises ParameterError for options that contradict each other or the space.

    Attributes:
        objectives: metric keys. ``ns_per_event`` and ``smallest_arena_bytes`` are measured only if they are objectives:
            they cost many replays each; so are ``code_bytes`` and ``instructions_*``, which cost compiles. If
            ``ns_per_event`` is one, recipes near the front are timed once more at the end, in turn, on copies and
            held-out traces, too.
        copies: perturbed copies of each trace, drawn with ``seed``, on which candidates are replayed; 0 for none. A
            candidate that fails requests on one is not recommended.
        stress_test: rank candidates on futures of the traces (`heapwright._explore.successive_halving`), and
            stress-test the front (`heapwright._explore.stress_test`). Without, recordings alone rank.
        future: calls of the future of each trace, drawn with the seed of the study's first exploration.
        current: name of the reference allocator in use today, replayed on the same traces as candidates. None takes the
            ``allocator`` of the traces' metadata.
        same_device: whether several traces are loads of one device, whose memory is the largest and whose accesses are
            summed, or of many, where the worst ratio to each one's best counts. None is the former where all come from
            one program (`heapwright._traces.origin`), or what the study says.
        jobs: threads, or the workers of a local cluster; default one for every processor.
        dask: address of a Dask scheduler whose workers replay, or "local" for a cluster of processes on this machine
            (`heapwright._explore.dask_workers`); None for threads. The study is the same.
        strategy: ``exhaustive`` takes recipes in the space's order, the first ``limit`` of them; ``random`` takes
            ``limit`` of them drawn with ``seed``. The space's zoo comes on top of the limit. A wide space is searched
            by local steps (``search``), for ``limit`` recipes, default `heapwright._explore.local_search.LIMIT`. None
            is ``exhaustive``, or ``search`` of a wide space.
        limit: recipes to try at most; None for all.
        seed: another seed, another draw.
        complete: finish every recipe, however long it takes.
        tolerance: prune a replay once finished recipes dominate its lower bounds times 1 + tolerance; 0 for the same
            front as if all were finished. Reference allocators, and one recipe of every design near the front, are
            always finished. Without `complete` and `tolerance` every recipe is finished if that takes about
            `schedule.COMPLETE_SECONDS`; otherwise the tolerance is `schedule.TOLERANCE`.
        budget: seconds for everything from the making of this object on: copies, the long-run and stress tests and
            reading the study included. If they are too few, the most promising recipes are finished, as pieces of the
            traces forecast them, on fewer copies, and fewer are stress-tested.
        `endurance`: the name of `stress_test` in 0.2, with a warning.
        by_pieces: explore long traces by their pieces (`heapwright._traces.pieces`), and replay the shortlist alone on
            whole traces. None does if there are long traces, and neither `complete`, `tolerance` nor `budget`.
        whole_calls: calls of the replays on whole traces after that, about; they bound the length of the shortlist.
        energy_table: energy of an access by SRAM size, in place of the default one.
        command: the command line, which the study keeps.
    """

    objectives: Objectives = DEFAULT_OBJECTIVES
    copies: int = COPIES
    stress_test: bool = True
    future: int = CALLS
    current: str | None = None
    same_device: bool | None = None
    jobs: int | None = None
    dask: str | None = None
    strategy: Strategy | None = None
    limit: int | None = None
    seed: int = 0
    complete: bool = False
    tolerance: float | None = None
    budget: float | None = None
    by_pieces: bool | None = None
    whole_calls: int = 150_000_000
    energy_table: EnergyTable | None = None
    command: str | None = None
    begun: float = field(default_factory=lambda: time.perf_counter(), init=False, compare=False)
    endurance: InitVar[bool | None] = None

    def __post_init__(self, endurance: bool | None) -> None:
        if endurance is not None:
            warnings.warn("`endurance` is now stress_test", DeprecationWarning, stacklevel=3)
            object.__setattr__(self, "stress_test", endurance)
        for key in self.keys:
            if named := named_in(key) & {*SHIPPING_METRICS, *LONG_RUN_METRICS} - ({key} & ON_RECORDING.keys()):
                raise ParameterError(
                    f"{min(named)} is measured for candidates alone; give it as a condition instead",
                    parameter="objectives",
                )
        if self.limit is not None and self.limit < 1:
            raise ParameterError(f"{self.limit}: leaves no recipe to try; give 1 or more", parameter="limit")
        if self.copies < 0:
            raise ParameterError(f"{self.copies}; must be 0 or more", parameter="copies")
        if self.future < 1000:
            raise ParameterError(f"{self.future}; must be 1000 calls or more", parameter="future")
        if self.current is not None and self.current not in names():
            known = did_you_mean(self.current, names(), "known")
            raise ParameterError(f"{self.current!r} is no reference allocator; {known}", parameter="current")
        self._check_effort()

    def _check_effort(self) -> None:
        if self.complete and self._unfinished_by is not None:
            raise ParameterError(
                f"finishes every recipe, which excludes {self._unfinished_by}; give one of them", parameter="complete"
            )
        if self.tolerance is not None and not 0 <= self.tolerance <= 1:
            raise ParameterError(f"{self.tolerance:g}; must be from 0 to 1, as 0.01", parameter="tolerance")
        if self._falling and self.tolerance is not None:
            raise ParameterError(
                f"{self._falling[0]} may fall during a replay, so no recipe can be pruned; valid with "
                f"{', '.join(GROWING)}",
                parameter="tolerance",
            )
        if self.budget is not None and not self.budget > 0:
            raise ParameterError(f"{self.budget:g}; must be above 0 seconds", parameter="budget")

    @property
    def keys(self) -> tuple[str, ...]:
        """The objectives as metric keys, those of a future by the recording if no future is made; raises ParameterError
        for one that is none."""
        keys = parse_objectives(self.objectives)
        if self.stress_test:
            return keys
        return tuple(dict.fromkeys(ON_RECORDING.get(key, key) for key in keys))

    def takes_pieces(self, traces: Sequence[Trace]) -> bool:
        """Whether long ones of these traces are explored by their pieces."""
        if self.by_pieces is None and (self.complete or self._unfinished_by is not None):
            return False
        known = {*GROWING, *LONG_RUN_METRICS}
        return self.by_pieces is not False and set(self.keys) <= known and max(map(len, traces)) > LONG

    def in_words(self) -> str:
        """Options that differ from their defaults, in words, but for those that a study keeps in its columns."""
        in_columns = ("objectives", "strategy", "seed", "energy_table", "command", "begun")
        requested = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in in_columns}
        default = {item.name: item.default for item in fields(self)}
        return ", ".join(f"{key} {value}" for key, value in requested.items() if value != default[key])

    @property
    def energies(self) -> EnergyTable:
        """The energy table, or the default one."""
        return self.energy_table or default_energy_table()

    @property
    def _falling(self) -> list[str]:
        """The objectives that may fall in a replay of the recording."""
        return [key for key in self.keys if ON_RECORDING.get(key, key) not in GROWING]

    @property
    def _unfinished_by(self) -> str | None:
        """The parameter that lets recipes be left unfinished."""
        return "tolerance" if self.tolerance is not None else "budget" if self.budget is not None else None

    def strategy_for(self, space: AnySpace) -> Strategy:
        """The strategy; chosen by the size of the space if none was given."""
        from heapwright._explore.space import WideSpace

        wide = isinstance(space, WideSpace)
        valid = _OF_WIDE if wide else _OF_ALL
        if self.strategy is not None and self.strategy not in valid:
            what = "too many to try all" if wide else "few enough to try all"
            raise ParameterError(f"{len(space):,} recipes are {what}; valid: {', '.join(valid)}", parameter="strategy")
        return self.strategy or valid[0]

    def effort_for(self, space: AnySpace) -> FinishingRule:
        """The finishing rule; the time of a budget began when this object was made."""
        from heapwright._explore.schedule import COMPLETE, FinishingRule
        from heapwright._explore.space import WideSpace

        if self.complete or (self._falling and self.budget is None):
            return COMPLETE
        if isinstance(space, WideSpace):
            if self._unfinished_by is not None:
                raise ParameterError(
                    "not for a search, which ends at its limit; give one", parameter=self._unfinished_by
                )
            return COMPLETE
        until = None if self.budget is None else self.begun + self.budget
        return FinishingRule(complete=False, tolerance=self.tolerance, until=until)

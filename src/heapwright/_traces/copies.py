"""Perturbed traces: calls that the same program might make on another day, to test whether results still hold.

A kind of perturbation changes one property and keeps the others. Every copy is drawn only from a seed, the kind's name
and its number, so the third copy of a kind is the same trace in any series. `docs/robustness.md` has the evidence for
the kinds and their parameters: how well each predicts a second recording.

Positions, shifts, lifetimes and block lengths are numbers of calls of the original.
"""

from __future__ import annotations

import json
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from heapwright._support.errors import ParameterError, did_you_mean
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MAX_SIZE

Int64s = npt.NDArray[np.int64]

CONSTANT = 0.1
"""Share of the requests from which a size counts as a constant of the program, which no other payload changes: the
share from which a size deserves a pool of its own (Mamagkakis et al. 2007, section 4, A).
"""


class Draft(NamedTuple):
    """The calls of a copy before they are in order; every array has one entry a call.

    Attributes:
        row: int64, the call of the original that it copies.
        object: int64, the object; no number is given twice.
        place: float64, where it happens, in calls of the original; equal places keep the order of the arrays.
        size: bytes asked for.
    """

    row: Int64s
    object: Int64s
    place: npt.NDArray[np.float64]
    size: npt.NDArray[np.integer]


@dataclass(frozen=True)
class Kind(ABC):
    """A way to make another trace of one. Every kind keeps the life of an object: malloc, reallocs in order, free."""

    name: ClassVar[str]

    @abstractmethod
    def draft(self, trace: Trace, random: np.random.Generator) -> Draft:
        """Draw the calls of a copy."""

    def _check(self, parameter: str, valid: bool, range_: str) -> None:
        if not valid:
            raise ParameterError(f"{getattr(self, parameter)}; must be {range_}", parameter=f"{self.name}.{parameter}")


@dataclass(frozen=True)
class Sizes(Kind):
    """Other sizes: all requests of one size ask for one other size, uniformly within `spread` of it.

    Another build, other payloads: a threshold that fits a single size of the recording fits no longer. Jittering call
    by call would leave the mean of a class where it was.

    Keeps the order of all calls, every lifetime, the mix (requests of equal size stay equal, so there are at most as
    many sizes), sizes that a program holds constant (`CONSTANT`): packet buffers, TLS records, stacks; requests
    of 0 bytes, and the live peak within `spread`.

    Attributes:
        spread: largest change as a share of the size, above 0 and below 1.
    """

    name: ClassVar[str] = "sizes"
    spread: float = 0.3

    def __post_init__(self) -> None:
        self._check("spread", 0 < self.spread < 1, "above 0 and below 1")

    def draft(self, trace: Trace, random: np.random.Generator) -> Draft:
        """See `Kind.draft`."""
        requested = np.where(trace.op == FREE, 0, trace.size)
        sizes, class_, often = np.unique(requested, return_inverse=True, return_counts=True)
        factor = random.uniform(1 - self.spread, 1 + self.spread, len(sizes))
        factor[often >= CONSTANT * np.count_nonzero(trace.op != FREE)] = 1
        changed = np.clip(np.rint(sizes * factor), np.minimum(sizes, 1), MAX_SIZE).astype(np.int64)
        return _as_it_is(trace)._replace(size=changed[class_])


@dataclass(frozen=True)
class Lifetimes(Kind):
    """Later frees: some objects live longer, by a share of their lifetime that is exponential with mean `stretch`.

    A slower peer, a retry, a task of low priority that frees: what died together no longer does.

    Keeps the order of all requests, their sizes, which objects are freed (at the end at the latest), and so no less
    than the live peak: with all of `share` 1 and a steady load, 1 + `stretch` times as much.

    Attributes:
        share: of the freed objects, how many live longer, above 0 and at most 1.
        stretch: mean of what is added to a lifetime, as a share of it, above 0.
    """

    name: ClassVar[str] = "lifetimes"
    share: float = 0.25
    stretch: float = 1.0

    def __post_init__(self) -> None:
        self._check("share", 0 < self.share <= 1, "above 0 and at most 1")
        self._check("stretch", 0 < self.stretch <= 1000, "above 0 and at most 1000")

    def draft(self, trace: Trace, random: np.random.Generator) -> Draft:
        """See `Kind.draft`."""
        draft = _as_it_is(trace)
        frees = np.flatnonzero(trace.op == FREE)
        lived = frees - np.flatnonzero(trace.op <= CALLOC)[draft.object[frees]]
        later = lived * random.exponential(self.stretch, len(frees)) * (random.random(len(frees)) < self.share)
        draft.place[frees] = np.minimum(frees + later, len(trace))
        return draft


@dataclass(frozen=True)
class Streams(Kind):
    """Streams shifted against each other: each uniformly by up to `shift` of the trace, back or forth.

    Tasks that do not wait for one another interleave differently in every run. A stream is the objects allocated in the
    same thread, at the same site, with the same size: the best approximation of a place in the program.

    Keeps all objects, their sizes and lifetimes, and the order within a stream; the live peak changes as far as
    streams peak apart.

    Attributes:
        shift: largest shift as a share of the trace's calls, above 0 and at most 1.
    """

    name: ClassVar[str] = "streams"
    shift: float = 0.02

    def __post_init__(self) -> None:
        self._check("shift", 0 < self.shift <= 1, "above 0 and at most 1")

    def draft(self, trace: Trace, random: np.random.Generator) -> Draft:
        """See `Kind.draft`."""
        draft = _as_it_is(trace)
        born = trace.op <= CALLOC
        key = trace.tid[born].astype(np.uint64) << np.uint64(32) | trace.size[born]
        _, stream = np.unique(key, return_inverse=True)
        _, stream = np.unique(stream * len(trace.sites) + trace.site[born], return_inverse=True)
        shifts = random.uniform(-self.shift, self.shift, int(stream.max()) + 1) * len(trace)
        return draft._replace(place=draft.place + shifts[stream][draft.object])


@dataclass(frozen=True)
class Blocks(Kind):
    """Resampled blocks: each block of calls is replaced by a random one nearby, with replacement.

    The local block bootstrap (Paparoditis and Politis 2002) on the objects allocated in a block. Objects with a life
    longer than a block keep their places: tables filled at the start are neither lost nor filled twice. If the trace
    names phases, a block is replaced by one of the same phase.

    Keeps lifetimes, the order within a block, long-lived objects, and, up to the random choice, the mix of sizes and
    the live peak. A trace without short-lived objects stays as it is.

    Attributes:
        blocks: into how many equal parts the trace is cut, 2 or more.
        reach: how many blocks away a replacement may lie at most, 1 or more.
    """

    name: ClassVar[str] = "blocks"
    blocks: int = 32
    reach: int = 4

    def __post_init__(self) -> None:
        self._check("blocks", self.blocks >= 2, "2 or more")
        self._check("reach", self.reach >= 1, "1 or more")

    def draft(self, trace: Trace, random: np.random.Generator) -> Draft:
        """See `Kind.draft`."""
        draft = _as_it_is(trace)
        length = max(-(-len(trace) // self.blocks), 1)
        count = -(-len(trace) // length)
        birth = np.flatnonzero(trace.op <= CALLOC)
        death = np.full(len(birth), 2 * len(trace))
        frees = np.flatnonzero(trace.op == FREE)
        death[draft.object[frees]] = frees
        short = (death - birth <= length)[draft.object]
        source = self._sources(trace.phase[::length], count, random)
        rows = draft.row[short]
        rows = rows[np.argsort(birth[draft.object[rows]] // length, kind="stable")]
        block = birth[draft.object[rows]] // length
        starts = np.searchsorted(block, np.arange(count + 1))
        taken = [np.arange(starts[from_], starts[from_ + 1]) for from_ in source]
        target = np.repeat(np.arange(count), [len(item) for item in taken])
        drawn = np.concatenate(taken)
        row = np.concatenate([draft.row[~short], rows[drawn]])
        if not len(row):
            return draft
        place = np.concatenate([draft.row[~short], rows[drawn] + (target - block[drawn]) * length])
        object_ = draft.object[row] + len(birth) * np.concatenate([np.zeros(np.count_nonzero(~short), int), 1 + target])
        return Draft(row, object_, place.astype(np.float64), draft.size[row])

    def _sources(self, phase: npt.NDArray[np.uint16], count: int, random: np.random.Generator) -> list[int]:
        """For every block, the block that replaces it; `phase` is that of every block's first call."""
        results = []
        for block in range(count):
            near = np.arange(max(block - self.reach, 0), min(block + self.reach + 1, count))
            results.append(int(random.choice(near[phase[near] == phase[block]])))
        return results


@dataclass(frozen=True)
class Load(Kind):
    """More load: the trace overlapped with itself, each time begun later, uniformly within `shift` of the trace.

    More peers than were there when it was recorded: the heap is larger, its lists are longer, and limits of headers
    and links come nearer.

    Keeps sizes, their mix, lifetimes of each of the overlapped; the live peak grows, at most by `times`.

    Attributes:
        times: how many are overlapped, 2 or more.
        shift: the latest begin as a share of the trace's calls, above 0 and at most 1.
    """

    name: ClassVar[str] = "load"
    times: int = 4
    shift: float = 0.25

    def __post_init__(self) -> None:
        self._check("times", 2 <= self.times <= 1000, "2 to 1000")
        self._check("shift", 0 < self.shift <= 1, "above 0 and at most 1")

    def draft(self, trace: Trace, random: np.random.Generator) -> Draft:
        """See `Kind.draft`."""
        once = _as_it_is(trace)
        begin = np.concatenate([[0.0], random.uniform(0, self.shift * len(trace), self.times - 1)])
        number = np.repeat(np.arange(self.times), len(trace))
        row, object_, place, size = (np.tile(column, self.times) for column in once)
        return Draft(row, object_ + number * trace.objects()[1], place + begin[number], size)


@dataclass(frozen=True)
class Together(Kind):
    """Other sizes and one more change at once: what a fitted list loses, another day's order can turn into holes.

    Keeps what both keep.

    Attributes:
        sizes: how sizes change.
        other: what else does.
    """

    sizes: Sizes
    other: Kind

    @property
    def name(self) -> str:  # type: ignore[override]
        """Both names, such as ``sizes+load``."""
        return f"{self.sizes.name}+{self.other.name}"

    def draft(self, trace: Trace, random: np.random.Generator) -> Draft:
        """See `Kind.draft`."""
        size = self.sizes.draft(trace, random).size
        draft = self.other.draft(trace, random)
        return draft._replace(size=size[draft.row])


AT_LOAD: tuple[Kind, ...] = (Together(Sizes(), Blocks()),)
"""The kinds of perturbed traces at the recorded load."""

STANDARD: tuple[Kind, ...] = (*AT_LOAD, Load())
"""The default kinds of perturbed traces. Of all kinds tried, other sizes in another order predict best which heaps will
need more memory, and four times the load which heaps will fail requests (docs/robustness.md).
"""

KINDS = {kind.name: kind for kind in (*STANDARD, Sizes(), Lifetimes(), Streams(), Blocks())}
"""Every kind by the name that it has without parameters."""


def copies(trace: Trace, count: int = 8, *, kinds: Sequence[str | Kind] | None = None, seed: int = 0) -> list[Trace]:
    """Make perturbed copies of a trace, the kinds in turn.

    Args:
        trace: the original.
        count: copies in all.
        kinds: names in `KINDS`, or kinds with parameters of your own; None is `STANDARD`.
        seed: another seed, other copies. Asking for more copies keeps the first ones.

    Returns valid traces named like ``app~load-3``, the third of that kind. Their metadata is the original's and
    ``copy_of`` (its name), ``copy_kind``, ``copy_number``, ``copy_seed`` and ``copy_parameters`` (JSON). Times are
    those of the original at the same place; -1 for all calls where the original lacks any. O(calls log calls) a copy.

    Raises ParameterError for a count below 1, a negative seed or an unknown kind.
    """
    return list(each_copy(trace, count, kinds=kinds, seed=seed))


def each_copy(trace: Trace, count: int, *, kinds: Sequence[str | Kind] | None = None, seed: int = 0) -> Iterator[Trace]:
    """What `copies` makes, one after the other: a long trace has room for one copy, not for all."""
    if count < 1:
        raise ParameterError(f"{count}; must be 1 or more", parameter="count")
    if seed < 0:
        raise ParameterError(f"{seed}; must be 0 or more", parameter="seed")
    chosen = STANDARD if kinds is None else [_kind(kind) for kind in kinds]
    if not chosen:
        raise ParameterError(f"none given; valid: {', '.join(KINDS)}", parameter="kinds")
    return (_copy(trace, chosen[turn % len(chosen)], turn // len(chosen) + 1, seed) for turn in range(count))


def _kind(kind: str | Kind) -> Kind:
    if isinstance(kind, Kind):
        return kind
    if kind not in KINDS:
        raise ParameterError(f"{kind}: no such kind of copy; {did_you_mean(kind, KINDS)}", parameter="kinds")
    return KINDS[kind]


def _copy(trace: Trace, kind: Kind, number: int, seed: int) -> Trace:
    random = np.random.default_rng([seed, zlib.crc32(kind.name.encode()), number])
    draft = kind.draft(trace, random)
    order = np.argsort(draft.place, kind="stable")
    row = draft.row[order]
    return Trace.from_columns(
        op=trace.op[row],
        id=draft.object[order],
        size=draft.size[order],
        ts_us=_times(trace, draft.place[order]),
        tid=trace.tid[row],
        align=trace.align[row],
        low=trace.low[row],
        failed=trace.failed[row],
        phase=trace.phase[row],
        phases=trace.phases,
        site=trace.site[row],
        sites=trace.sites,
        name=f"{trace.name}~{kind.name}-{number}",
        metadata={
            **trace.metadata,
            "copy_of": trace.name,
            "copy_kind": kind.name,
            "copy_number": str(number),
            "copy_seed": str(seed),
            "copy_parameters": json.dumps(asdict(kind)),
        },
    )


def _as_it_is(trace: Trace) -> Draft:
    """The calls of the original."""
    row = np.arange(len(trace))
    return Draft(row, trace.objects()[0].astype(np.int64), row.astype(np.float64), trace.size)


def _times(trace: Trace, place: npt.NDArray[np.float64]) -> Int64s:
    """The original's clock at each place; beyond its end it goes on as fast as on average."""
    if trace.ts_us.min() < 0:
        return np.full(len(place), -1)
    last = len(trace) - 1
    span = trace.ts_us[last] - trace.ts_us[0]
    places = np.append(np.arange(last + 1), 2 * last + 1)
    times = np.append(trace.ts_us, trace.ts_us[last] + span)
    return np.asarray(np.interp(place, places, times), np.int64)

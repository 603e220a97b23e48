"""Futures of a trace: traffic like a recording's, of any length.

A short recording shows what a heap needs in its first minutes. What it needs after days depends on the mix of objects
that are live together, again and again. A future draws new mixes: a block bootstrap (Kuensch 1989; circular and of
random block lengths: Politis and Romano 1992, 1994) of allocations, each object with its recorded life.

Places are counted in calls of the recording: lives, blocks and stalls are as long as a number of these calls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from heapwright._support.errors import ParameterError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, REALLOC

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]

BLOCK = 512
"""Calls of a block on average: longer than most bursts of requests, and short enough that a recording of 20,000 calls
has many."""

MOST_START_UP = 1 / 3
"""Share of the recording's calls that start-up takes at most; shutdown takes at most the same of the rest."""

ONE_SIDED = 1.5
"""Start-up is the beginning with more requests a free than this, shutdown the end with more frees a request."""

BIG = 50
"""An object of more than 1/50 of the live peak is big: of about one size no more live at once than in the recording."""

FEWEST_LIKE = 16
"""Births of one size from which that size has lives of its own; rarer sizes share those of a quarter of an octave."""

SHORTEST = 8
"""Frees that are no shutdown yet: the last request of a loop ends so, too."""

SWING = 2.0
"""Swing of the load over that in the recording: one step beyond."""

MOST_SWING = 0.5

STALLS = 1.0
"""A consumer stalls for up to as long as the recording is: what waits then is as much again as waits at its end."""

MOST_WAITING = 0.02
"""Bytes that wait for a stalled consumer over the live peak of the recording, at most about.

Of .02, .05 and .1 the first ranked recipes most like long runs of seven programs: .90 in the mean and .88 at least over
three seeds, .88 and .79 with .1 (docs/robustness.md)."""

MOST_PEAK = 1.3
"""Live peak over that of the recording, above which the load is reduced."""

LEAST_LOAD = 0.25

MOST_LOAD = 32.0
"""Largest load over that recorded in the search for a requested live peak."""

NEAR_LIVE = 1.05
"""The requested live peak is met within this factor."""

PROBE = 4
"""Length of the trial that finds the live peak, over the steady part of the recording."""

DRAWN = 2_000_000
"""Calls of that trial, and of a draw beyond those wanted, at most; a long recording is drawn once for the trial."""

BURST = 8
"""Consecutive allocations that belong to one consumer, and so wait together."""

_STEPS = 4
"""Parts of a place, which order calls at the same place: frees, then requests, then frees of what was resized there."""

_NEVER = np.int64(1) << 60


def resample(
    trace: Trace,
    calls: int = 1_000_000,
    *,
    seed: int = 0,
    swing: float | None = None,
    stalls: float | None = None,
    block: int = BLOCK,
    live: int | None = None,
) -> Trace:
    """Return the recording up to its shutdown, followed by a future of ``calls`` calls.

    Args:
        trace: the recording.
        calls: calls of the future, that is beyond those that are repeated of the recording.
        seed: another seed, another future. Of one seed, a longer future begins as a shorter one does.
        swing: how far the load swings, as a share of the mean load: 0 is a steady load. None is `SWING` times as far
            as the live bytes of the recording, at most `MOST_SWING`.
        stalls: how long a consumer stalls, at most, as a multiple of the recording's steady part. What no known life
            ends waits for it meanwhile, and is freed in order of birth at its end. 0 is never, None is `STALLS`.
        block: calls of a block; at most a quarter of the steady part.
        live: approximate live peak in bytes: the load, the rate of allocations, is scaled to it, to at most
            `MOST_LOAD` times that recorded. Objects never freed in the recording stay at any load, so less than the
            recorded peak is seldom possible. None is the load recorded.

    If the recording ends with a shutdown, mostly frees, these are left out, as if it had been stopped before. Start-up
    objects that are live then stay for good. The life of any other object live then is drawn by the Kaplan-Meier
    estimate of its size; if no longer life is known, it lives until another such object of its size is allocated.

    Returns a trace named like ``app~future``, with the metadata of the recording and ``resample_of`` (its name),
    ``resample_calls`` and ``resample_seed``; only the recording if it allocates nothing after start-up that could
    recur. O(calls).

    Raises ParameterError for a number out of its range.
    """
    _check("calls", calls >= 1, calls, "1 or more")
    _check("seed", seed >= 0, seed, "0 or more")
    _check("block", block >= 1, block, "1 or more")
    _check("swing", swing is None or 0 <= swing < 1, swing, "0 or more and below 1")
    _check("stalls", stalls is None or stalls >= 0, stalls, "0 or more")
    _check("live", live is None or live >= 1, live, "1 or more bytes")
    source = _Source.of(trace)
    traffic = _Traffic(
        seed=seed,
        block=max(1, min(block, source.span // 4)),
        swing=min(SWING * _swing_of(trace, source), MOST_SWING) if swing is None else swing,
        stalls=STALLS if stalls is None else stalls,
    )
    traffic = _below_peak(trace, source, traffic) if live is None else _at_peak(trace, source, traffic, calls, live)
    extent = max(calls, min(PROBE * source.span, DRAWN))  # a draw of less may hold no birth
    for _ in range(8):
        future = _Future.drawn(source, extent, traffic)
        if len(future.place) >= calls or not len(future.place):
            break
        extent += int(1.1 * extent * (calls - len(future.place)) / len(future.place)) + block
    return _assembled(trace, source, future, calls, seed)


@dataclass(frozen=True)
class _Traffic:
    """How a future is drawn: as the arguments of `resample`, and the mean load as a multiple of the recording's."""

    seed: int
    block: int
    swing: float
    stalls: float
    load: float = 1.0

    def random(self, purpose: int) -> np.random.Generator:
        """Numbers of its own for each purpose, so that a longer future begins as a shorter one does."""
        return np.random.default_rng([self.seed, purpose])


def _below_peak(trace: Trace, source: _Source, traffic: _Traffic) -> _Traffic:
    """Traffic with its load reduced until the live peak is at most `MOST_PEAK` times that of the recording."""
    most, held = MOST_PEAK * trace.peak_live_bytes, int(trace.live_bytes[source.start : source.calls].min())
    for _ in range(3):
        future = _Future.drawn(source, max(min(PROBE * source.span, DRAWN), source.span), traffic)
        peak = _assembled(trace, source, future, len(future.place), traffic.seed).peak_live_bytes
        if peak <= most:
            break
        less = (most - held) / (peak - held)
        traffic = replace(traffic, load=max(traffic.load * less, LEAST_LOAD))
    return traffic


def _at_peak(trace: Trace, source: _Source, traffic: _Traffic, calls: int, live: int) -> _Traffic:
    """The traffic under a load whose live peak is near ``live`` bytes; raises ParameterError if there is none."""
    held = int(trace.live_bytes[source.start : source.calls].min())
    lowest, highest, peaks = 0.0, MOST_LOAD, list[int]()
    for _ in range(12):
        future = _Future.drawn(source, max(calls, PROBE * source.span), traffic)
        whole = _assembled(trace, source, future, min(calls, len(future.place)), traffic.seed)
        # the objects live at the end of the recording are freed gradually
        peak = int(whole.live_bytes[(source.calls + len(whole)) // 2 :].max(initial=0))
        if live / NEAR_LIVE <= peak <= live * NEAR_LIVE:
            return traffic
        peaks.append(peak)
        lowest, highest = (traffic.load, highest) if peak < live else (lowest, traffic.load)
        aimed = traffic.load * max(live - held, 0) / max(peak - held, 1)
        if not lowest < aimed < highest:
            aimed = (lowest + highest) / 2
        traffic = replace(traffic, load=aimed)
    raise ParameterError(
        f"{live:,} bytes: no load of this recording has that live peak; those tried have {min(peaks):,} to "
        f"{max(peaks):,}",
        parameter="live",
    )


def _check(parameter: str, valid: bool, value: object, range_: str) -> None:
    if not valid:
        raise ParameterError(f"{value}; must be {range_}", parameter=parameter)


@dataclass(frozen=True)
class _Source:
    """The objects of a recording, in order of birth, and from which on they may be drawn.

    Attributes:
        calls: of the recording, its shutdown left out.
        start: the call at which start-up ends.
        first: the first object allocated after start-up.
        birth: the call that makes each object.
        last: the last call that names each, its free left out.
        death: the call that frees each; -1 if none does before the shutdown.
        size: bytes of the allocation of each.
        is_big: whether it is a big object (`BIG`).
        most_big: for each like, the most big objects live at once.
        waits: bytes of objects allocated after start-up and live at the end, over the live peak.
        rows, row_from: the reallocs of object o are rows[row_from[o] : row_from[o + 1]].
        like: number of the objects of about one size.
        survival: share of its like that lives longer than each object did in the recording (Kaplan and Meier 1958).
        lives, deaths: for all kinds, lives in ascending order and where they lie, see `drawn_life`.
    """

    calls: int
    start: int
    first: int
    birth: Int64s
    last: Int64s
    death: Int64s
    size: Int64s
    is_big: npt.NDArray[np.bool_]
    most_big: Int64s
    waits: float
    rows: Int64s
    row_from: Int64s
    like: Int64s
    survival: Float64s
    lives: Int64s
    deaths: Float64s

    @property
    def span(self) -> int:
        """Calls after start-up."""
        return self.calls - self.start

    @classmethod
    def of(cls, trace: Trace) -> _Source:
        """The objects of a recording. O(calls log calls)."""
        start, calls = steady_part(trace)
        op, number = trace.op[:calls], trace.objects()[0][:calls]
        birth = np.flatnonzero(op <= CALLOC).astype(np.int64)
        count = len(birth)
        death = np.full(count, -1, np.int64)
        frees = np.flatnonzero(op == FREE)
        death[number[frees]] = frees
        resizes = np.flatnonzero(op == REALLOC)
        owner = number[resizes].astype(np.int64)
        order = np.argsort(owner, kind="stable")
        rows = resizes[order].astype(np.int64)
        row_from = np.searchsorted(owner[order], np.arange(count + 1)).astype(np.int64)
        last = birth.copy()
        last[owner] = resizes
        size = trace.size[birth].astype(np.int64)
        most = size.copy()
        np.maximum.at(most, owner, trace.size[resizes].astype(np.int64))
        first = int(np.searchsorted(birth, start))
        if first == count:  # all is start-up
            start, first = 0, 0
        like = _likes(size, first)
        is_big = most > trace.peak_live_bytes // BIG
        waiting = int(size[first:][(death[first:] < 0) & ~is_big[first:]].sum())
        survival, lives, deaths = _kaplan_meier(birth, death, like, first, calls)
        return cls(
            calls=calls,
            start=start,
            first=first,
            birth=birth,
            last=last,
            death=death,
            size=size,
            is_big=is_big,
            most_big=_most_at_once(birth[is_big], death[is_big], like[is_big], int(like.max()) + 1),
            waits=waiting / max(trace.peak_live_bytes, 1),
            rows=rows,
            row_from=row_from,
            like=like,
            survival=survival,
            lives=lives,
            deaths=deaths,
        )

    def drawn_life(self, objects: Int64s, uniform: Float64s) -> Int64s:
        """A life for each object that the recording does not free, longer than it was seen; `_NEVER` for no end."""
        target = 2.0 * self.like[objects] + 1 - uniform * self.survival[objects]
        at = np.searchsorted(self.deaths, target)
        inside = at < len(self.deaths)
        at = np.minimum(at, max(len(self.deaths) - 1, 0))
        life = np.full(len(objects), _NEVER)
        if len(self.deaths):
            inside &= self.deaths[at] < 2.0 * self.like[objects] + 1.5
            life[inside] = self.lives[at[inside]]
        return life


def _likes(size: Int64s, first: int) -> Int64s:
    """A number for each object: the same for those of one size or, of rare sizes, of a quarter of an octave."""
    sizes, which = np.unique(size, return_inverse=True)
    common = np.bincount(which[first:], minlength=len(sizes)) >= FEWEST_LIKE
    octave = np.zeros(len(sizes), np.int64)
    for bit in range(1, 32):
        octave += sizes >= 1 << bit
    quarter = 4 * octave + ((4 * sizes) >> octave) % 4
    key = np.where(common, 1000 + np.arange(len(sizes)), quarter)
    _, like = np.unique(key[which], return_inverse=True)
    return like.astype(np.int64)


def _most_at_once(birth: Int64s, death: Int64s, like: Int64s, kinds: int) -> Int64s:
    """The most objects of each group of like objects alive at once."""
    freed = death >= 0
    place = np.concatenate([birth, death[freed]])
    change = np.concatenate([np.ones(len(birth), np.int64), np.full(np.count_nonzero(freed), -1)])
    kind = np.concatenate([like, like[freed]])
    order = np.lexsort((place, kind))
    live = np.cumsum(change[order])
    most = np.zeros(kinds, np.int64)
    starts = np.searchsorted(kind[order], np.arange(kinds + 1))
    for at in np.unique(like):
        before = live[starts[at] - 1] if starts[at] else 0
        most[at] = live[starts[at] : starts[at + 1]].max() - before
    return most


def _kaplan_meier(
    birth: Int64s, death: Int64s, like: Int64s, first: int, calls: int
) -> tuple[Float64s, Int64s, Float64s]:
    """For each object the share of its like that outlives it; all lives, and keys by like and share that ascend."""
    survival = np.ones(len(birth))
    life = np.where(death >= 0, death, calls) - birth
    alive = np.flatnonzero(death[first:] < 0) + first
    members: list[Int64s] = []
    keys: list[Float64s] = []
    order = np.argsort(like[first:], kind="stable") + first
    bounds = np.searchsorted(like[order], np.arange(int(like.max(initial=0)) + 2))
    for kind in np.unique(like[alive]):
        all_ = order[bounds[kind] : bounds[kind + 1]]
        all_ = all_[np.lexsort((death[all_] < 0, life[all_]))]  # of equal lives those that ended come first
        ended = death[all_] >= 0
        at_risk = np.arange(len(all_), 0, -1)
        share = np.cumprod(np.where(ended, 1 - 1 / at_risk, 1.0))
        survival[all_] = share
        members.append(life[all_[ended]])
        keys.append(2.0 * kind + 1 - share[ended])
    if not members:
        return survival, np.zeros(0, np.int64), np.zeros(0)
    return survival, np.concatenate(members), np.concatenate(keys)


def steady_part(trace: Trace) -> tuple[int, int]:
    """The call with which start-up is over, and the one with which shutdown begins. O(calls)."""
    request, free = trace.op <= CALLOC, trace.op == FREE
    down = np.cumsum((free - ONE_SIDED * request)[::-1])
    most = int(len(trace) * (1 - MOST_START_UP))
    stop = len(trace) - (int(np.argmax(down)) + 1 if down.max() > SHORTEST else 0)
    stop = max(stop, most, 1)
    up = np.cumsum(request[:stop] - ONE_SIDED * free[:stop])
    return min(int(np.argmax(up)) + 1, int(stop * MOST_START_UP)), stop


def _swing_of(trace: Trace, source: _Source) -> float:
    """How far the live bytes above the least lie from their mean, over sixteen stretches of the steady part, as a share
    of it.
    """
    live = trace.live_bytes[source.start : source.calls]
    base = int(live.min(initial=0))
    means = np.array([part.mean() for part in np.array_split(live, 16) if len(part)]) - base
    mean = float(means.mean())
    return 0.0 if mean <= 0 else float(np.abs(means - mean).mean() / mean)


@dataclass(frozen=True)
class _Future:
    """The calls of a future in order; every array has one entry a call.

    Attributes:
        row: the call of the recording that each repeats; of a free that the recording lacks, the object's birth.
        object: its number; those of the recording that it frees come first.
        place: where it happens.
        is_free: whether it frees.
    """

    row: Int64s
    object: Int64s
    place: Int64s
    is_free: npt.NDArray[np.bool_]

    @classmethod
    def drawn(cls, source: _Source, extent: int, traffic: _Traffic) -> _Future:
        """Draw what happens at ``extent`` places after the recording. O(extent log extent)."""
        object_, shift = _births(source, extent, traffic)
        object_, shift, death = _lives(source, object_, shift, traffic)
        # what still lives when the recording ends comes first: no call but its free
        old, old_death = object_[shift == 0], death[shift == 0]
        new, shift, new_death = object_[shift != 0], shift[shift != 0], death[shift != 0]
        count = len(source.birth)
        number = count + np.arange(len(new))
        resized = source.row_from[new + 1] - source.row_from[new]
        which = np.repeat(np.arange(len(new)), resized)
        inside = np.arange(len(which)) - np.repeat(np.cumsum(resized) - resized, resized)
        resize_row = source.rows[source.row_from[new][which] + inside]
        place = [_STEPS * (source.birth[new] + shift), _STEPS * (resize_row + shift[which]), new_death, old_death]
        row = [source.birth[new], resize_row, _free_row(source, new), _free_row(source, old)]
        object_ = np.concatenate([number, number[which], number, old])
        freed = np.zeros(len(object_), bool)
        freed[len(new) + len(which) :] = True
        all_places = np.concatenate(place)
        kept = np.flatnonzero(all_places < _STEPS * (source.calls + extent))
        order = kept[np.argsort(all_places[kept], kind="stable")]
        return cls(np.concatenate(row)[order], object_[order], all_places[order] // _STEPS, freed[order])


def _free_row(source: _Source, object_: Int64s) -> Int64s:
    return np.where(source.death[object_] >= 0, source.death[object_], source.birth[object_])


def _births(source: _Source, extent: int, traffic: _Traffic) -> tuple[Int64s, Int64s]:
    """Objects of the recording whose births are repeated, in order, and how many places later each is."""
    block, swing = traffic.block, traffic.swing
    load = 1 + swing * _noise(traffic.random(1), int(extent * (1 + swing) / block) + 2)
    step = np.maximum(np.rint(block / (traffic.load * load)), 1).astype(np.int64)
    target = np.cumsum(step) - step
    target = target[target < extent]
    begin = traffic.random(2).integers(0, source.span, len(target))
    # circular: after the last call comes the first one after start-up
    birth = source.birth[source.first :] - source.start
    twice = np.concatenate([birth, birth + source.span])
    low, high = np.searchsorted(twice, begin), np.searchsorted(twice, begin + block)
    taken = high - low
    which = np.repeat(np.arange(len(target)), taken)
    at = low[which] + np.arange(len(which)) - (np.cumsum(taken) - taken)[which]
    object_ = source.first + at % len(birth)
    place = source.calls + target[which] + twice[at] - begin[which]
    order = np.argsort(place, kind="stable")
    return object_[order], (place - source.birth[object_])[order]


def _noise(random: np.random.Generator, count: int) -> Float64s:
    """Numbers from -1 to 1 that vary slowly, on time scales of 8, 32, 128, 512 and 2,048 of them."""
    total = np.zeros(count)
    scales = (8, 32, 128, 512, 2048)
    for scale, generator in zip(scales, random.spawn(len(scales)), strict=True):
        knots = generator.uniform(-1, 1, count // scale + 2)
        total += np.interp(np.arange(count) / scale, np.arange(len(knots)), knots)
    return np.clip(total / len(scales) * 2, -1, 1)


def _lives(source: _Source, object_: Int64s, shift: Int64s, traffic: _Traffic) -> tuple[Int64s, Int64s, Int64s]:
    """Objects, their shifts and the places of their frees in steps, preceded by those alive at the recording's end."""
    alive = np.flatnonzero(source.death[source.first :] < 0) + source.first
    object_ = np.concatenate([alive, object_])
    shift = np.concatenate([np.zeros(len(alive), np.int64), shift])
    death = np.where(source.death[object_] >= 0, _STEPS * (source.death[object_] + shift) - 1, _NEVER)
    unknown = np.flatnonzero(source.death[object_] < 0)
    life = source.drawn_life(object_[unknown], traffic.random(3).random(len(unknown)))
    birth = source.birth[object_[unknown]] + shift[unknown]
    death[unknown] = np.where(life < _NEVER, _STEPS * (birth + life) - 1, _NEVER)
    kept = _few_big(source, object_, shift, death, traffic)
    object_, shift, death = object_[kept], shift[kept], death[kept]
    endless = np.flatnonzero((death == _NEVER) & ~source.is_big[object_])
    endless = _stall(source, object_, shift, death, endless, traffic)
    _replace(source, object_, shift, death, endless, traffic)
    earliest = np.maximum(_STEPS * (source.last[object_] + shift) + 1, _STEPS * source.calls)
    return object_, shift, np.maximum(death, earliest)


def _few_big(
    source: _Source, object_: Int64s, shift: Int64s, death: Int64s, traffic: _Traffic
) -> npt.NDArray[np.bool_]:
    """Objects that remain after dropping surplus big ones: while the same object is live already, or while as many like
    it are live as ever in the recording, times a load above 1. None is added that would never be freed: the recorded
    one stays.
    """
    kept: npt.NDArray[np.bool_] = (death < _NEVER) | (shift == 0) | ~source.is_big[object_]
    held = np.flatnonzero(source.is_big[: source.first] & (source.death[: source.first] < 0))
    ends: dict[int, list[int]] = {}
    until: dict[int, int] = {}
    for like in source.like[held].tolist():
        ends.setdefault(like, []).append(int(_NEVER))
    big = np.flatnonzero(source.is_big[object_] & kept)
    likes = source.like[object_[big]]
    born = _STEPS * (source.birth[object_[big]] + shift[big])
    most_big = np.maximum(np.rint(source.most_big[likes] * max(traffic.load, 1.0)), 1).astype(np.int64)
    columns = (big, object_[big], likes, born, death[big], most_big)
    for at, itself, like, birth, end, most in zip(*(column.tolist() for column in columns), strict=True):
        living = ends.setdefault(like, [])
        while living and living[0] <= birth:
            heappop(living)
        if len(living) >= most or (traffic.load <= 1 and until.get(itself, -1) > birth):
            kept[at] = False
        else:
            until[itself] = end
            heappush(living, end)
    return kept


def _stall(
    source: _Source, object_: Int64s, shift: Int64s, death: Int64s, endless: Int64s, traffic: _Traffic
) -> Int64s:
    """Free endless objects allocated while a consumer stalls at the end of that stall; return the other ones."""
    longest = traffic.stalls * source.span
    if traffic.stalls * source.waits > MOST_WAITING:
        longest = source.span * MOST_WAITING / source.waits
    birth = source.birth[object_[endless]] + shift[endless]
    new = np.flatnonzero(shift[endless] > 0)
    if not len(new) or longest < 1:
        return endless
    # it stalls and goes on in turn, each for a time of its own
    turns = np.empty(0, np.int64)
    random = traffic.random(4)
    while not len(turns) or turns[-1] <= birth[new[-1]]:
        drawn = np.maximum(random.uniform(0, longest, 256), 1).astype(np.int64)
        turns = np.concatenate([turns, (turns[-1] if len(turns) else source.calls) + np.cumsum(drawn)])
    turn = np.searchsorted(turns, birth[new] // BURST * BURST, side="right")
    stalled = turn % 2 == 1
    held = np.zeros(len(endless), bool)
    held[new[stalled]] = True
    death[endless[held]] = _STEPS * turns[turn[stalled]] + 1
    return endless[~held]


def _replace(
    source: _Source, object_: Int64s, shift: Int64s, death: Int64s, endless: Int64s, traffic: _Traffic
) -> None:
    """Free endless objects when another like them is allocated: no more are live at once than in the recording, times
    the load if that is above 1.
    """
    if not len(endless):
        return
    like = source.like[object_[endless]]
    is_old = shift[endless] == 0
    seats = np.rint(np.bincount(like[is_old], minlength=int(like.max()) + 1) * max(traffic.load, 1.0))
    most = np.maximum(seats, 1)[like]
    # each takes one of as many seats as there were such objects; who sat there before is freed
    rank = np.zeros(len(endless), np.int64)
    order = np.argsort(like[is_old], kind="stable")
    counts = np.bincount(like[is_old])
    rank[np.flatnonzero(is_old)[order]] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    seat = np.where(is_old, rank, (traffic.random(5).random(len(endless)) * most).astype(np.int64))
    order = np.lexsort((np.arange(len(endless)), seat, like))
    follows = (like[order][1:] == like[order][:-1]) & (seat[order][1:] == seat[order][:-1])
    older, younger = endless[order[:-1][follows]], endless[order[1:][follows]]
    death[older] = _STEPS * (source.birth[object_[younger]] + shift[younger]) - 1


def _assembled(trace: Trace, source: _Source, future: _Future, calls: int, seed: int) -> Trace:
    """The recording, followed by `calls` calls of a future."""
    row, is_free = future.row[:calls], future.is_free[:calls]
    before = source.calls
    whole = np.concatenate([np.arange(before), row])
    lacks = np.concatenate([np.zeros(before, bool), is_free])
    keys = ("tid", "op", "size", "align", "low", "failed", "phase", "site")
    columns = {key: getattr(trace, key)[whole] for key in keys}
    columns["op"][lacks] = FREE
    for key in ("size", "align", "low", "failed"):
        columns[key][lacks] = 0
    return Trace.from_columns(
        **columns,
        id=np.concatenate([trace.objects()[0][:before].astype(np.int64), future.object[:calls]]),
        ts_us=np.concatenate([trace.ts_us[:before], _times(trace, source, future.place[:calls])]),
        phases=trace.phases,
        sites=trace.sites,
        name=f"{trace.name}~future",
        metadata={
            **trace.metadata,
            "resample_of": trace.name,
            "resample_calls": str(calls),
            "resample_seed": str(seed),
        },
    )


def _times(trace: Trace, source: _Source, place: Int64s) -> Int64s:
    """The clock goes on as fast as after start-up; -1 where the recording lacks any time."""
    if trace.ts_us.min() < 0:
        return np.full(len(place), -1, np.int64)
    last = int(trace.ts_us[source.calls - 1])
    return last + (place + 1 - source.calls) * (last - int(trace.ts_us[source.start])) // source.span

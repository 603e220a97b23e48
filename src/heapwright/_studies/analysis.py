"""A study as decisions are made on it: metrics over all its traces, the front, picks, and the evidence for them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from heapwright._recipes.geometry import round_up
from heapwright._recipes.worst_steps import worst_steps
from heapwright._replay.metrics import Objectives, parse_objectives
from heapwright._replay.reserve import UNIT, reserved, with_margin
from heapwright._studies.recommendations import PICKS, RESERVE, Condition, NoPickError, Pick
from heapwright._studies.results import ADMITTED, Bools, Candidate, Floats, Ranking, Results
from heapwright._studies.robustness import Robustness
from heapwright._studies.study_file import StudyFile
from heapwright._studies.tables import Role
from heapwright._support.errors import HeapwrightError
from heapwright._traces.copies import Load
from heapwright._traces.failures import failures_of
from heapwright._traces.leaks import Leak, find_leaks
from heapwright._traces.live_bound import LiveBound

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace


@dataclass(frozen=True)
class MemoryNeed:
    """The footprint in bytes of a recipe on a trace or on a trace's future.

    None if requests failed there, or if it grows without bound on the future.
    """

    role: Role | Literal["future"]
    trace: str
    bytes: int | None

    @property
    def loaded(self) -> bool:
        """Whether the trace is a copy under more load than was recorded."""
        return self.role == "copy" and f"~{Load.name}-" in self.trace


def reserve_for(needs: Sequence[MemoryNeed], *, proved: bool = False) -> int | None:
    """The arena to reserve for a load like the recorded one: `MARGIN` above what the recordings and the hold-out set
    need, and at least what their futures do, which swing as the recordings do and one step beyond. None if no recording
    was served.

    ``proved``: the futures' needs are enough for any order of the objects, so the reserve has no margin.
    """
    by_role = {role: [need for need in needs if need.role == role] for role in ("explored", "held out", "future")}
    known = {role: [need.bytes for need in group if need.bytes is not None] for role, group in by_role.items()}
    if proved:
        if not by_role["future"] or len(known["future"]) < len(by_role["future"]):
            return None
        # held-out traces may hold more than what is bounded
        return round_up(max([*known["future"], *known["held out"]]), UNIT)
    recorded = [*known["explored"], *known["held out"]]
    return reserved(recorded, known["future"], 1.0) if recorded else None


def reserve_for_more(needs: Sequence[MemoryNeed]) -> int | None:
    """The arena to reserve for `Load.times` times the recorded load, from the copies at that load.

    None if there are no such copies, or requests failed on one.
    """
    sizes = [need.bytes for need in needs if need.loaded]
    return None if None in sizes or not sizes else reserved(sizes, [], 1.0)


def load_served(arena: int, reserve: int, more: int | None) -> float | None:
    """How many times the recorded load an arena of this size serves, at most `Load.times`; None if unknown.

    The sizes lie on a straight line from ``reserve`` at the recorded load to ``more`` at `Load.times` times that load.
    The load is unknown without ``more``, and for an arena below the reserve.

    At twice the load TLSF needs within 10 % of what that line says on 30 of 36 recordings: docs/robustness.md.
    """
    if more is None or arena < reserve:
        return None
    times = Load().times
    return float(times) if arena >= more else 1 + (times - 1) * (arena - reserve) / (more - reserve)


class Analysis(StudyFile):
    """A study file, and what its results say; see `StudyFile` for how to open one."""

    @cached_property
    def combined(self) -> Results:
        """Metrics over all traces explored on (see `metrics.combine`) of every recipe that has a result for each."""
        return self._combine("explored")

    @cached_property
    def elsewhere(self) -> dict[Role, Results]:
        """Metrics by role over the copies and over the hold-out set, for each of these that the study has."""
        apart: tuple[Role, ...] = ("copy", "held out")
        return {role: self._combine(role) for role in apart if self.traces(role)}

    def _combine(self, role: Role) -> Results:
        names = [info.name for info in self.traces(role)]
        return Results.of(self.results(role), names, self._known(), self.devices(role))

    def devices(self, role: Role = "explored") -> list[dict[str, int]]:
        """The devices that recipes compete on: of each, the names and the calls of the traces that are its loads.

        Each trace is a device of its own. With `same_device` all traces are loads of one device, and so are the copies
        with the same number.
        """
        results: dict[str, dict[str, int]] = {}
        for info in self.traces(role):
            copy = info.name.rpartition("~")[2] if role == "copy" else ""
            results.setdefault(copy if self.same_device else info.name, {})[info.name] = info.events
        return list(results.values())

    @property
    def question(self) -> str | None:
        """Which question a study of several traces answers, in words; None for one trace."""
        count = len(self.traces())
        if count < 2:
            return None
        if self.same_device:
            return f"{count} loads of one device: memory is the largest, accesses are summed"
        return f"{count} networks or programs: worst ratio over each one's best"

    @property
    def leaks(self) -> dict[str, tuple[Leak, ...]]:
        """Leaks of the traces explored on and held out, by the trace's name; empty in older studies."""
        stored = self.meta.get("leaks", {})
        return {name: tuple(map(Leak.of, found)) for name, found in stored.items()}

    @property
    def failures(self) -> dict[str, str]:
        """Requests that failed while a trace was recorded, in words, by the trace's name."""
        return dict(self.meta.get("failures", {}))

    @property
    def live_bounds(self) -> dict[str, LiveBound]:
        """Bounds on what is live at once, by the name of the trace explored on that has one."""
        stored, explored = self.meta.get("live_bounds", {}), {info.name for info in self.traces()}
        return {name: LiveBound.parse(text) for name, text in stored.items() if name in explored}

    @property
    def proved(self) -> bool:
        """Whether the reserves of this study serve any order of the objects: each trace explored on has a bound."""
        return bool(self.combined.foreseen) and {info.name for info in self.traces()} <= self.live_bounds.keys()

    def set_facts(self, traces: Sequence[Trace]) -> None:
        """Store what leaks in the traces, which requests failed while they were recorded, and what bounds them."""
        leaks = {trace.name: list(map(asdict, found)) for trace in traces if (found := find_leaks(trace))}
        failures = {trace.name: str(failed) for trace in traces if (failed := failures_of(trace))}
        bounds = {trace.name: bound.text for trace in traces if (bound := LiveBound.of(trace))}
        for key, value in {"leaks": leaks, "failures": failures, "live_bounds": bounds}.items():
            stored = self.meta.get(key, {})
            if stored | value != stored:
                self._set(key, stored | value)

    def set_pieces(self, calls: Mapping[str, tuple[int, int]], tried: int) -> None:
        """Store the calls of the pieces and of the whole of each long trace, and how many recipes these were tried on.

        The recipes of this study were chosen by what they did on the pieces; so were they tested on futures of these.
        """
        self._set("pieces", {"calls": calls, "tried": tried})

    @property
    def pieces(self) -> str | None:
        """How long traces were explored by pieces, in words; None if all recipes were tried on whole traces."""
        if not (stored := self.meta.get("pieces")):
            return None
        each = (f"{part:,} of {whole:,} calls of {name}" for name, (part, whole) in stored["calls"].items())
        return (
            f"{stored['tried']:,} recipes were ranked and tested on {', '.join(each)}, "
            f"and {self.ranked:,} of them then replayed on all calls"
        )

    @property
    def tuned_for(self) -> str:
        """What the study was tuned for (`StudyFile.tuned_for`), and the question that it answers."""
        return f"{super().tuned_for}{f'; {self.question}' if self.question else ''}"

    @property
    def caveat(self) -> str | None:
        """What to mind of a study that holds a part of its space, in words; None for one that holds all of it."""
        if self.complete:
            return None
        if self.pieces:
            return f"{self.path}: {self.pieces}"
        if self.tolerance is None:
            return f"{self.path}: partial: {self.tried} recipes were tried; the others may be better"
        return (
            f"{self.path}: {nearness(self.tolerance)}: {self.tried} recipes were finished, the others cannot come on "
            "it; other objectives or conditions may need them, and a complete exploration finishes them"
        )

    def alone(self, trace: str) -> Results:
        """The results on one of the traces explored on."""
        results = self.results()
        chosen = results["trace"] == trace
        loads = [{info.name: info.events} for info in self.traces() if info.name == trace]
        return Results.of({key: column[chosen] for key, column in results.items()}, [trace], self._known(), loads)

    def resolve(self, id: str) -> str:
        """The full id of a recipe (`StudyFile.resolve`), or of the study's pick "balanced", "smallest" or "fastest"."""
        return self.pick(id).id if id in PICKS else super().resolve(id)

    def candidate(self, id: str) -> Candidate:
        """A recipe with its metrics over all traces. Raises `HeapwrightError` as `recipe`, or if it is unfinished."""
        full = self.resolve(id)
        result = self.combined.find(full)
        if result is None:
            raise HeapwrightError(f"{self.path}:{full}: not tried on every trace yet; finish the exploration")
        return result

    def describe(self, candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
        """The candidates as `heapwright pareto --json` gives them: docs/commands.md names the keys."""
        per_trace = self.per_trace([candidate.id for candidate in candidates])
        robustness = self.robustness()
        return [
            {
                "id": candidate.id,
                "recipe": self.recipe(candidate.id).to_dict(),
                "metrics": candidate.metrics,
                "worst_steps": worst_steps(self.recipe(candidate.id)).most,
                "question": self.question,
                "traces": per_trace[candidate.id],
                **robustness.describe(candidate.id),
                "again": self.command(candidate.id),
            }
            for candidate in candidates
        ]

    def command(self, id: str) -> str:
        """The command that makes the numbers of a recipe again."""
        return shlex.join(["heapwright", "study", "again", f"{self.path}:{id}"])

    def front(self, objectives: Objectives | None = None, where: str | Sequence[str] = ()) -> list[Candidate]:
        """The Pareto-optimal recipes that are fit to ship, best in the first objective first; see `Results.front_rows`.

        ``objectives`` may be any metrics; default are the study's. ``where``: conditions that a recipe has to meet to
        be looked at, such as "accesses_malloc_max <= 40". Raises `HeapwrightError` for an unknown metric.
        """
        keys, within = self._objectives(objectives), self.within(where)
        rows = self.combined.front_rows(keys, within & self._fit(keys))
        return [self.combined.candidate(int(row)) for row in rows]

    def _fit(self, keys: tuple[str, ...]) -> Bools:
        """Mask of the recipes for a printed front: those fit to ship if there are any, or else all of them.

        A study without futures has all of them.
        """
        everything = np.ones(len(self.combined.ids), dtype=np.bool_)
        if not self.combined.foreseen or ADMITTED in keys:
            return everything
        robustness, eligible = self.robustness(keys), self.combined.eligible(keys)
        fit = np.zeros(len(everything), dtype=np.bool_)
        for row in np.flatnonzero(eligible):
            fit[row] = robustness.why_not(self.combined.ids[row]) is None
        return fit if fit.any() else everything

    def pick(self, how: Pick, objectives: Objectives | None = None, where: str | Sequence[str] = ()) -> Candidate:
        """One recipe to ship: the best compromise, the least memory or the fastest; see `picks.order`.

        Of the front, and of the recipes near it that were replayed on futures, one that is fit to ship
        (`Robustness.candidates`); of the front if none is. It is the same under every condition that it meets, and
        a bound on memory does not admit recipes that would not be recommended without it, so more memory never gives
        more of the other of two objectives.
        With ``admitted_fraction`` as an objective only the recipes that admit most (`Results.admitting`) are
        candidates; a condition on it replaces that rule by its own bound.
        ``objectives`` and ``where`` as for `front`. Raises `HeapwrightError` if the front is empty, `NoPickError` if no
        candidate meets a bound on memory.
        """
        keys, within = self._objectives(objectives), self.within(where)
        eligible = self.combined.eligible(keys)
        if not (eligible & within).any():
            raise HeapwrightError(f"{self.path}: the front is empty: {self._emptied(keys, where)}")
        requested = any(item.key == ADMITTED for item in _conditions(where))
        in_order = self.may_ship(how, keys, asked=requested)
        others = self._met([item for item in _conditions(where) if not item.bounds_memory])
        if not others[in_order].any():
            in_order = self._in_order(how, keys, eligible & others, requested)
        result = next((row for row in in_order if within[row]), None)
        if result is None:
            beyond = self._in_order(how, keys, eligible & within, requested)[0]
            if ADMITTED in keys and not requested:  # less memory admits less
                return self.combined.candidate(beyond)
            raise NoPickError(f"{self.path}: {self._short_of_memory(how, keys, in_order, beyond, where)}")
        return self.combined.candidate(result)

    def picks(self, objectives: Objectives | None = None, where: str | Sequence[str] = ()) -> dict[str, list[Pick]]:
        """The recommendations that a recipe is, by id; none for a kind without candidates within a bound on memory.

        Arguments and errors are those of `pick`, but for `NoPickError`.
        """
        results: dict[str, list[Pick]] = {}
        for how in PICKS:
            with suppress(NoPickError):
                results.setdefault(self.pick(how, objectives, where).id, []).append(how)
        return results

    def may_ship(self, how: Pick, objectives: Objectives | None = None, *, asked: bool = False) -> list[int]:
        """Rows of `combined` to recommend from without conditions, the recommendation first; none of an empty front.

        ``asked``: whether a condition sets the share to admit.
        """
        keys = self._objectives(objectives)
        if (how, keys, asked) not in self._orders:
            eligible = self.combined.eligible(keys)
            self._orders[how, keys, asked] = self._in_order(how, keys, eligible, asked) if eligible.any() else []
        return self._orders[how, keys, asked]

    def _short_of_memory(
        self, how: Pick, keys: tuple[str, ...], may_ship: Sequence[int], within: int, where: str | Sequence[str]
    ) -> str:
        """Reason for no recommendation: the least memory of a candidate, and the fault of the best within bounds."""
        bounds = [item for item in _conditions(where) if item.bounds_memory]
        others = self._met([item for item in _conditions(where) if not item.bounds_memory])
        needed = self._bounded(bounds[0].key)
        row = min((row for row in may_ship if others[row]), key=lambda row: needed[row])
        other, robustness = self.combined.candidate(within), self.robustness(keys)
        why = robustness.why_not(other.id)
        against = f"it {why}" if why else f"its worst call makes {robustness.worst_call(other.id):,.0f} accesses"
        return (
            f"nothing that may ship has {' and '.join(map(str, bounds))}; the least is "
            f"{needed[row]:,.0f}, of {self.combined.candidate(row).label}; {other.label} stays within, but {against}"
        )

    def _in_order(self, how: Pick, keys: tuple[str, ...], mask: Bools, asked: bool) -> list[int]:
        """Rows of the mask to recommend from; ``asked``: whether a condition sets the share to admit."""
        mask = mask if asked else self.combined.admitting(keys, mask)
        return self.robustness(keys).in_order(how, self.combined.front_rows(keys, mask), mask)

    def within(self, where: str | Sequence[str]) -> Bools:
        """Mask of the recipes that meet all conditions."""
        return self._met(_conditions(where))

    def _met(self, conditions: Sequence[Condition]) -> Bools:
        mask = np.ones(len(self.combined.ids), dtype=np.bool_)
        for condition in conditions:
            mask &= condition.met(self._bounded(condition.key))
        return mask

    def _bounded(self, key: str) -> Floats:
        return self.reserves if key == RESERVE else self.combined.columns[key]

    @cached_property
    def reserves(self) -> Floats:
        """Reserve of each recipe of `combined`, bytes, float64[n]: `reserve_for` its needs."""
        each = self.combined.each
        most = _largest(each["footprint_bytes"], each["failed"])
        futures = _largest(each["long_run_bytes"], np.isnan(each["long_run_bytes"]))
        if (held_out := self.elsewhere.get("held out")) is not None:
            sizes = _largest(held_out.each["footprint_bytes"], held_out.each["failed"])
            for id, size in zip(held_out.ids, sizes, strict=True):
                row = self.combined.row(id)
                if row is not None:
                    most[row] = max(most[row], size)
        foreseen = np.ceil(futures / UNIT) * UNIT
        if self.proved:
            proved: Floats = np.where(foreseen > 0, np.maximum(foreseen, np.ceil(most / UNIT) * UNIT), np.nan)
            return proved
        reserves = np.array([with_margin(size) if size else np.nan for size in most])
        result: Floats = np.maximum(reserves, foreseen)
        return result

    def _emptied(self, objectives: Sequence[str], where: str | Sequence[str]) -> str:
        """Why a front is empty, and what would fill it."""
        eligible = self.combined.eligible(objectives)
        for key in objectives:
            if np.isnan(self.combined.columns[key]).all():
                known = key in self.objectives
                cure = "explore again with more time" if known else "explore with it as an objective"
                return f"no recipe was tried for {key}; {cure}"
        if not eligible.any():
            return "no recipe tried serves every request; explore for admitted_fraction"
        for item in _conditions(where):
            if not (item.met(self._bounded(item.key)) & eligible).any():
                values = self._bounded(item.key)[eligible]
                result = (
                    f"there are {np.nanmin(values):,.10g} to {np.nanmax(values):,.10g}"
                    if len(values)
                    else "none has it"
                )
                return f"no recipe has {item}; {result}"
        return "no recipe meets all conditions at once; loosen one"

    def needs(self, id: str) -> list[MemoryNeed]:
        """The memory that a recipe needed on each trace that it was tried on, futures included."""
        found_items = []
        for role, results in {"explored": self.combined, **self.elsewhere}.items():
            row = results.row(id)
            if row is not None:
                sizes, refused = (results.each[key][row] for key in ("footprint_bytes", "failed"))
                found_items += [
                    MemoryNeed(role, name, None if failed else int(size))
                    for name, size, failed in zip(results.traces, sizes, refused, strict=True)
                ]
        return found_items + self._futures(id)

    def reserve(self, id: str) -> int | None:
        """The reserve of a recipe (`reserve_for`), bytes."""
        return reserve_for(self.needs(id), proved=self.proved)

    def _futures(self, id: str) -> list[MemoryNeed]:
        """The need on the future of each trace explored on; none for a recipe that was not replayed there."""
        row = self.combined.row(id)
        if row is None or np.isnan(self.combined.columns["long_run_calls"][row]):
            return []
        sizes = self.combined.each["long_run_bytes"][row]
        return [
            MemoryNeed("future", name, None if np.isnan(size) else int(size))
            for name, size in zip(self.combined.traces, sizes, strict=True)
        ]

    def robustness(self, objectives: Objectives | None = None) -> Robustness:
        """Which recipes hold on the traces that were not explored on."""
        keys = self._objectives(objectives)
        if keys not in self._robustness:
            self._robustness[keys] = Robustness(
                self.combined, self.elsewhere, self.recipe_texts(), keys, self.current, proved=self.proved
            )
        return self._robustness[keys]

    @cached_property
    def _orders(self) -> dict[tuple[Pick, tuple[str, ...], bool], list[int]]:
        """By kind, objectives, and whether a condition sets the share to admit: a page needs hundreds."""
        return {}

    @cached_property
    def _robustness(self) -> dict[tuple[str, ...], Robustness]:
        """By objectives: every recommendation and every row of a table uses it."""
        return {}

    def zoo_standings(self, objectives: Objectives | None = None) -> list[Ranking]:
        """Every zoo allocator against the front, in the order of their names."""
        named = sorted((name, row) for row, name in enumerate(self.combined.zoo_names) if name)
        return self.combined.standings([row for _, row in named], self._objectives(objectives))

    def _objectives(self, objectives: Objectives | None) -> tuple[str, ...]:
        return self.objectives if objectives is None else parse_objectives(objectives)

    def _forget(self) -> None:
        super()._forget()
        for outdated in ("combined", "elsewhere", "reserves", "_robustness", "_orders"):
            self.__dict__.pop(outdated, None)


def _conditions(where: str | Sequence[str]) -> list[Condition]:
    return [Condition.parse(text) for text in ([where] if isinstance(where, str) else where)]


def _largest(sizes: Floats, failed: Floats) -> Floats:
    """The largest size of each row without failed requests; 0 if there is none."""
    served: Floats = np.where(failed > 0, 0.0, np.nan_to_num(sizes))
    largest: Floats = served.max(axis=1, initial=0.0)
    return largest


def nearness(tolerance: float) -> str:
    """How near a front is to that of all recipes, in words."""
    return f"front within {100 * tolerance:g} %" if tolerance else "exact front"

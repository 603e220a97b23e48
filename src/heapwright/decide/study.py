"""A study as decisions are made on it: metrics over all its traces, the front, picks, and the evidence for them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from heapwright.decide.picks import PICKS, Condition, Pick
from heapwright.decide.results import ADMITTED, Bools, Candidate, Results, Standing
from heapwright.decide.robustness import Robustness
from heapwright.files.errors import HeapwrightError
from heapwright.recipes.worst_steps import worst_steps
from heapwright.replay.metrics import parse_objectives
from heapwright.replay.reserve import with_margin
from heapwright.studies.study import StudyFile
from heapwright.studies.tables import Role
from heapwright.traces.copies import Load


@dataclass(frozen=True)
class Need:
    """The footprint in bytes of a recipe on a trace of some role; None where it refused requests there."""

    role: Role
    trace: str
    bytes: int | None

    @property
    def loaded(self) -> bool:
        """Whether the trace is a copy under more load than was recorded."""
        return self.role == "copy" and f"~{Load.name}-" in self.trace


def reserve_for(needs: Sequence[Need]) -> int | None:
    """The arena to reserve for a load like the recorded one (`heapwright.replay.reserve`); None where none served."""
    served = [need.bytes for need in needs if not need.loaded and need.bytes is not None]
    return with_margin(max(served)) if served else None


class Study(StudyFile):
    """A study file, and what its results say; see `StudyFile` for how to open one."""

    @cached_property
    def combined(self) -> Results:
        """Metrics over all traces explored on (see `metrics.combine`) of every recipe that has a result for each."""
        return self._combine("explored")

    @cached_property
    def elsewhere(self) -> dict[Role, Results]:
        """The same over copies, and over the traces held out, where there are any."""
        apart: tuple[Role, ...] = ("copy", "held out")
        return {role: self._combine(role) for role in apart if self.traces(role)}

    def _combine(self, role: Role) -> Results:
        return Results.of(self.results(role), [info.name for info in self.traces(role)], self._known())

    @property
    def caveat(self) -> str | None:
        """What to mind of a study that holds a part of its space, in words; None for one that holds all of it."""
        if self.complete:
            return None
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
        return Results.of({key: column[chosen] for key, column in results.items()}, [trace], self._known())

    def resolve(self, id: str) -> str:
        """As `StudyFile.resolve`; "balanced", "smallest" and "fastest" are the study's own picks."""
        return self.pick(id).id if id in PICKS else super().resolve(id)

    def candidate(self, id: str) -> Candidate:
        """A recipe with its metrics over all traces. Raises `HeapwrightError` as `recipe`, or if it is unfinished."""
        full = self.resolve(id)
        found = self.combined.find(full)
        if found is None:
            raise HeapwrightError(f"{self.path}:{full}: not tried on every trace yet; finish the exploration")
        return found

    def describe(self, candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
        """The candidates as `heapwright pareto --json` gives them: docs/commands.md names the keys."""
        per_trace = self.per_trace([one.id for one in candidates])
        robustness = self.robustness()
        return [
            {
                "id": one.id,
                "recipe": self.recipe(one.id).to_dict(),
                "metrics": one.metrics,
                "worst_steps": worst_steps(self.recipe(one.id)).most,
                "traces": per_trace[one.id],
                **robustness.describe(one.id),
                "again": self.command(one.id),
            }
            for one in candidates
        ]

    def command(self, id: str) -> str:
        """The command that makes the numbers of a recipe again."""
        return shlex.join(["heapwright", "study", "again", f"{self.path}:{id}"])

    def front(self, objectives: str | Sequence[str] | None = None, where: str | Sequence[str] = ()) -> list[Candidate]:
        """The Pareto-optimal recipes, best in the first objective first; see `Results.front_rows`.

        ``objectives`` may be any metrics; default are the study's. ``where``: conditions that a recipe has to meet to
        be looked at, such as "accesses_malloc_max <= 40". Raises `HeapwrightError` for an unknown metric.
        """
        keys, within = self._objectives(objectives), self.within(where)
        return [self.combined.candidate(int(row)) for row in self.combined.front_rows(keys, within)]

    def pick(
        self, how: Pick, objectives: str | Sequence[str] | None = None, where: str | Sequence[str] = ()
    ) -> Candidate:
        """One recipe to ship: the best compromise, the least memory or the fastest; see `picks.order`.

        Of the front, and of the recipes near it that were tried elsewhere, one that holds there
        (`Robustness.why_not`); of the front where none does. It is the same under every condition that it meets.
        Where ``admitted_fraction`` is an objective, only what admits as much as any (`Results.admitting`) is looked at;
        a condition on it says what has to be admitted instead, and all that meet that are.
        ``objectives`` and ``where`` as for `front`. Raises `HeapwrightError` where the front is empty.
        """
        keys, within = self._objectives(objectives), self.within(where)
        eligible = self.combined.eligible(keys)
        if not (eligible & within).any():
            raise HeapwrightError(f"{self.path}: the front is empty: {self._emptied(keys, where)}")
        asked = any(one.key == ADMITTED for one in _conditions(where))
        if (how, keys, asked) not in self._orders:
            self._orders[how, keys, asked] = self._in_order(how, keys, eligible, asked)
        in_order = [row for row in self._orders[how, keys, asked] if within[row]]
        in_order = in_order or self._in_order(how, keys, eligible & within, asked)
        return self.combined.candidate(in_order[0])

    def _in_order(self, how: Pick, keys: tuple[str, ...], mask: Bools, asked: bool) -> list[int]:
        """Rows to pick from of those in the mask; `asked`: whether the share to admit was asked for."""
        mask = mask if asked else self.combined.admitting(keys, mask)
        return self.robustness(keys).in_order(how, self.combined.front_rows(keys, mask), mask)

    def within(self, where: str | Sequence[str]) -> Bools:
        """Mask of the recipes that meet all conditions."""
        mask = np.ones(len(self.combined.ids), dtype=np.bool_)
        for condition in _conditions(where):
            mask &= condition.met(self.combined)
        return mask

    def _emptied(self, objectives: Sequence[str], where: str | Sequence[str]) -> str:
        """Why a front is empty, and what would fill it."""
        eligible = self.combined.eligible(objectives)
        if not eligible.any():
            return "no recipe tried serves every request; explore for admitted_fraction"
        for one in _conditions(where):
            if not (one.met(self.combined) & eligible).any():
                values = self.combined.columns[one.key][eligible]
                found = f"there are {np.nanmin(values):,g} to {np.nanmax(values):,g}" if len(values) else "none has it"
                return f"no recipe has {one}; {found}"
        return "no recipe meets all conditions at once; loosen one"

    def needs(self, id: str) -> list[Need]:
        """The memory that a recipe needed on each trace that it was tried on: explored on, copies, held out."""
        found = []
        for role, results in {"explored": self.combined, **self.elsewhere}.items():
            row = results.row(id)
            if row is not None:
                sizes, refused = (results.each[key][row] for key in ("footprint_bytes", "failed"))
                found += [
                    Need(role, name, None if failed else int(size))
                    for name, size, failed in zip(results.traces, sizes, refused, strict=True)
                ]
        return found

    def robustness(self, objectives: str | Sequence[str] | None = None) -> Robustness:
        """Which recipes hold on the traces that were not explored on."""
        keys = self._objectives(objectives)
        if keys not in self._robustness:
            self._robustness[keys] = Robustness(self.combined, self.elsewhere, self.recipe_texts(), keys)
        return self._robustness[keys]

    @cached_property
    def _orders(self) -> dict[tuple[Pick, tuple[str, ...], bool], list[int]]:
        """By kind of pick, objectives, and whether a share to admit was asked for: a page has a hundred conditions."""
        return {}

    @cached_property
    def _robustness(self) -> dict[tuple[str, ...], Robustness]:
        """By objectives: every pick and every row of a table asks anew."""
        return {}

    def zoo_standings(self, objectives: str | Sequence[str] | None = None) -> list[Standing]:
        """Every zoo allocator against the front, in the order of their names."""
        keys = self._objectives(objectives)
        rows = self.combined.front_rows(keys)
        named = sorted((name, row) for row, name in enumerate(self.combined.zoo_names) if name)
        return [self.combined.standing(row, rows, keys) for _, row in named]

    def _objectives(self, objectives: str | Sequence[str] | None) -> tuple[str, ...]:
        return self.objectives if objectives is None else parse_objectives(objectives)

    def _forget(self) -> None:
        super()._forget()
        for outdated in ("combined", "elsewhere", "_robustness", "_orders"):
            self.__dict__.pop(outdated, None)


def _conditions(where: str | Sequence[str]) -> list[Condition]:
    return [Condition.parse(text) for text in ([where] if isinstance(where, str) else where)]


def nearness(tolerance: float) -> str:
    """How near a front is to that of all recipes, in words."""
    return f"front within {100 * tolerance:g} %" if tolerance else "exact front"

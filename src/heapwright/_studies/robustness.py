"""Fitness of recipes to ship: a bounded long-run need, no failure on the hold-out set, reach, and bounded calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._recipes.recipe import Recipe
from heapwright._replay.long_run import UNBOUNDED
from heapwright._replay.metrics import DEFAULT_OBJECTIVES, ON_RECORDING, TIME
from heapwright._replay.reach import reach, reaches
from heapwright._replay.reserve import MARGIN
from heapwright._studies.recommendations import MEMORY, WORST_CALL, Needs, Pick, order
from heapwright._studies.results import ADMITTED, Bools, Floats, Results
from heapwright._studies.tables import Role
from heapwright._support import notebook

AMONG: Mapping[Role, str] = {"copy": "copies", "held out": "traces held out"}


@dataclass(frozen=True)
class WorstRatios:
    """Worst ratios of a recipe on traces that it was not explored on.

    Attributes:
        refused: requests that failed, over all these traces.
        ratios: of each metric the worst ratio to the best on any device; inf if requests failed, absent without
            value.
        where: of each metric, the device with the worst ratio (`Results.devices`).
        footprint_bytes: the largest footprint.
    """

    refused: int
    ratios: dict[str, float]
    where: dict[str, str]
    footprint_bytes: int


class Robustness:
    """Which recipes of a study are fit to ship, and in which order they are recommended."""

    def __init__(
        self,
        combined: Results,
        elsewhere: Mapping[Role, Results],
        texts: Mapping[str, str],
        objectives: Sequence[str],
        current: str | None = None,
        *,
        proved: bool = False,
    ) -> None:
        """Gather the ratios of the objectives, of memory and of accesses on every trace.

        ``combined``: the traces explored on; ``elsewhere``: those of other roles; ``texts``: the recipes' TOML by id;
        ``current``: the reference allocator that the user has today, by its name; ``proved``: long-run needs are enough
        for any order of the objects, so no margin is needed, and no stress test.
        """
        self._proved = proved
        self._current = combined.zoo_names.index(current) if current in combined.zoo_names else None
        self._objectives = tuple(dict.fromkeys(objectives))
        self._refusing = ADMITTED in objectives
        self.foreseen = combined.foreseen
        """Whether some recipe was replayed on a future."""
        self.depends = DEFAULT_OBJECTIVES if self.foreseen else tuple(ON_RECORDING[key] for key in DEFAULT_OBJECTIVES)
        """Memory and cost that ``smallest`` and ``fastest`` go by."""
        keys = dict.fromkeys([*objectives, *self.depends])
        self._combined, self._elsewhere, self._texts = combined, elsewhere, texts
        self._here = self._ratios(combined, keys)
        there = dict.fromkeys(ON_RECORDING.get(key, key) for key in keys)
        self._there = {role: self._ratios(results, there) for role, results in elsewhere.items()}
        self._worst_of: dict[str, dict[Role, WorstRatios]] = {}
        self._verdicts: dict[str, str | None] = {}

    def _ratios(self, results: Results, keys: Iterable[str]) -> dict[str, Floats]:
        return {key: results.ratios(key, self._refusing) for key in keys}

    def worst(self, id: str) -> dict[Role, WorstRatios]:
        """How a recipe did on copies, and on the hold-out set, if it was tried on all of them."""
        if id not in self._worst_of:
            rows = {role: results.row(id) for role, results in self._elsewhere.items()}
            self._worst_of[id] = {role: self._worst(role, row) for role, row in rows.items() if row is not None}
        return self._worst_of[id]

    def _worst(self, role: Role, row: int) -> WorstRatios:
        results = self._elsewhere[role]
        known = {key: ratios[row] for key, ratios in self._there[role].items() if not np.isnan(ratios[row]).any()}
        return WorstRatios(
            refused=int(results.columns["failed"][row]),
            ratios={key: float(values.max()) for key, values in known.items()},
            where={key: results.devices[int(values.argmax())] for key, values in known.items()},
            footprint_bytes=int(results.columns["footprint_bytes"][row]),
        )

    def _repr_html_(self) -> str:
        tried = dict.fromkeys(id for results in self._elsewhere.values() for id in results.ids)
        names = dict(zip(self._combined.ids, self._combined.zoo_names, strict=True))
        keys = [ON_RECORDING.get(key, key) for key in self._here]
        rows = [[names.get(id) or id, *self._shown_ratios(id, keys), self.why_not(id) or "yes"] for id in tried]
        headings = [f"{key}, {AMONG[role]}" for role in self._elsewhere for key in keys]
        complete = [row for row in rows if len(row) == len(headings) + 2]
        return notebook.table("Worst ratios to the best elsewhere", ["heap", *headings, "fit to ship"], complete)

    def _shown_ratios(self, id: str, keys: Sequence[str]) -> list[str]:
        """Worst ratios of a recipe on the traces of each role on which it was replayed, as text."""
        worst = self.worst(id)
        ratios = [item.ratios.get(key) for item in map(worst.get, self._elsewhere) for key in keys if item]
        return ["-" if ratio is None else f"{ratio:,.2f} x" for ratio in ratios]

    def stable(self, id: str) -> bool | None:
        """Whether a recipe passed the stress test on every trace explored on; None if that was not tried."""
        result = self._value(id, "lasts")
        return None if np.isnan(result) else result == 1

    def _value(self, id: str, key: str) -> float:
        row = self._combined.row(id)
        return float("nan") if row is None else float(self._combined.columns[key][row])

    def why_not_stable(self, id: str) -> str | None:
        """Why a recipe has no bounded long-run need, in words; None if it has, and if that was not tried."""
        growth, calls = self._value(id, "long_run_growth"), self._value(id, "long_run_calls")
        if self.foreseen and calls > 0 and np.isnan(self._value(id, "long_run_bytes")):
            if self._proved and not growth > UNBOUNDED:
                return "has no arena that is proved to serve any order of the objects"
            if growth <= UNBOUNDED:
                return f"fails requests within {calls:,.0f} calls of traffic like the recording's"
            return f"grows without bound: {100 * (growth - 1):.0f} % over the last nine tenths of {calls:,.0f} calls"
        if self.stable(id) is False and not self._proved:
            grown = self._value(id, "growth_ratio")
            return f"grows by {100 * (grown - 1):.0f} % at constant live bytes in the stress test"
        return None

    def why_not(self, id: str) -> str | None:
        """Why a recipe is not fit to ship, in words; None for one that is.

        It is if it has a bounded long-run need, passes the stress test, fails no request on the hold-out set or on
        copies, and can use what is reserved for it.
        """
        if id not in self._verdicts:
            self._verdicts[id] = self._verdict(id)
        return self._verdicts[id]

    def _verdict(self, id: str) -> str | None:
        if why_not := self.why_not_stable(id):
            return why_not
        if self.foreseen and np.isnan(self._value(id, "long_run_calls")):
            return "was not replayed on a future"
        apart = self.worst(id)
        if missing := [role for role in self._elsewhere if role not in apart]:
            return f"was not tried on {AMONG[missing[0]]}"
        for role, result in apart.items():
            if result.refused and not self._refusing:
                where = result.where.get("footprint_bytes")
                return f"failed {result.refused:,} requests on {AMONG[role]}" + (f", as on {where}" if where else "")
        return None if self._proved else self._short_of_reach(id, apart.values())  # the proof is within reach

    def _short_of_reach(self, id: str, apart: Iterable[WorstRatios]) -> str | None:
        known = [self._value(id, key) for key in ("footprint_bytes", "long_run_bytes")]
        most = max([*(item for item in known if np.isfinite(item)), *(result.footprint_bytes for result in apart)])
        if _reaches(self._texts[id], id, MARGIN * most):
            return None
        result = reach(_recipe_of(self._texts[id], id))
        bounds = [bound for bound in (result.arena_bytes, result.request_bytes) if bound is not None]
        return f"can use {min(bounds):,} bytes at most, less than {MARGIN:g} times the {most:,.0f} that it needs"

    def worst_call(self, id: str) -> float:
        """Accesses of the worst-case malloc or free, on the future if it was replayed there; NaN if not known."""
        keys = ("long_run_malloc_max", "long_run_free_max")
        if not self.foreseen:
            keys = ("accesses_malloc_max", "accesses_free_max")
        return max(self._value(id, key) for key in keys)

    def candidates(self, front: NDArray[np.intp], eligible: Bools) -> list[int]:
        """Rows to recommend from: what is fit to ship, has no call above `WORST_CALL`, and is not worse than the
        current heap in both memory and worst-case call; if there is none what meets the former, and at last the front.
        """
        ids = self._combined.ids
        tried = np.isfinite(self._combined.columns["long_run_calls"])
        there = (self._combined.row(id) for results in self._elsewhere.values() for id in results.ids)
        tried[[row for row in there if row is not None]] = True
        rows = list(dict.fromkeys([*map(int, front), *map(int, np.flatnonzero(eligible & tried))]))
        fit = [row for row in rows if self.why_not(ids[row]) is None]
        bounded = [row for row in fit if not self.worst_call(ids[row]) > WORST_CALL]
        better = [row for row in bounded if not self._beaten_by_current(row)]
        return better or bounded or fit or [*map(int, front)]

    def _beaten_by_current(self, row: int) -> bool:
        """Whether what the user has today needs less memory and has a cheaper worst-case call."""
        if self._current is None or row == self._current:
            return False
        ids, memory = self._combined.ids, self._combined.columns[self.depends[0]]
        worse_call = self.worst_call(ids[row]) > self.worst_call(ids[self._current])
        return bool(memory[row] > memory[self._current]) and worse_call

    def in_order(self, how: Pick, front: NDArray[np.intp], eligible: Bools) -> list[int]:
        """Rows to recommend from (`candidates`), the recommendation first; see `picks.order`."""
        return self.ordered(how, self.candidates(front, eligible))

    def ordered(self, how: Pick, rows: Sequence[int]) -> list[int]:
        """Rows, one or more, in the order in which they are recommended."""
        needs = {key: self.needs(key, rows) for key in self.keys_of(how)}
        return [rows[at] for at in order(how, needs)]

    def keys_of(self, how: Pick) -> tuple[str, ...]:
        """The metrics that a recommendation goes by: the objectives; of the others memory and a cost."""
        if how == "balanced":
            return self._objectives
        memory = next((key for key in self._objectives if key in MEMORY), self.depends[0])
        cost = TIME if TIME in self._objectives else self.depends[1]
        return (memory, cost)

    def needs(self, key: str, rows: Sequence[int]) -> Needs:
        """The ratios of some recipes in one metric: on the traces explored on, and the worst with the hold-out set."""
        here = self._here[key][rows].max(axis=1)
        at_worst = here.copy()
        there = ON_RECORDING.get(key, key)
        for at, row in enumerate(rows):
            if (result := self.worst(self._combined.ids[row]).get("held out")) is not None:
                at_worst[at] = max(at_worst[at], result.ratios.get(there, 0.0))
        return Needs(here, at_worst)

    def describe(self, id: str) -> dict[str, Any]:
        """Plain values: `copies`, `held_out` (failed requests, worst ratios), `lasts` (stable) and `why_not`."""
        info: dict[str, Any] = {"copies": None, "held_out": None, "lasts": self.stable(id)}
        info |= {"why_not": self.why_not(id)}
        for role, result in self.worst(id).items():
            ratios = {key: ratio if np.isfinite(ratio) else None for key, ratio in result.ratios.items()}
            info["copies" if role == "copy" else "held_out"] = {"refused": result.refused, "worst_ratio": ratios}
        return info


# recipes are looked up again after a study has changed


@lru_cache(maxsize=1024)
def _recipe_of(text: str, id: str) -> Recipe:
    return Recipe.parse_stored(text, id)


@lru_cache(maxsize=1024)
def _reaches(text: str, id: str, size: float) -> bool:
    return reaches(_recipe_of(text, id), size)

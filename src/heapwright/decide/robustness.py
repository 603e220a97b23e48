"""Whether recipes hold: on copies of the traces and on traces held out, and for long."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright.decide.picks import ALIKE, BLIND, DEPENDS, FALLS_OFF, HEADROOM, Needs, Pick, order
from heapwright.decide.prior import doubt
from heapwright.decide.results import Bools, Floats, Results
from heapwright.files import notebook
from heapwright.recipes.recipe import Recipe
from heapwright.replay.endurance import REFUSES, SHORT, grows
from heapwright.replay.metrics import TIME
from heapwright.replay.reach import reach, reaches
from heapwright.studies.tables import Role

AMONG: Mapping[Role, str] = {"copy": "copies", "held out": "traces held out"}


@dataclass(frozen=True)
class Worst:
    """How a recipe did on traces that it was not explored on.

    Attributes:
        refused: requests refused, over all these traces.
        ratios: of each metric the worst ratio to the best on any device; inf where it refused, absent without value.
        where: of each metric, the device with the worst ratio (`Results.devices`).
        footprint_bytes: the largest footprint.
    """

    refused: int
    ratios: dict[str, float]
    where: dict[str, str]
    footprint_bytes: int


class Robustness:
    """Which recipes of a study hold elsewhere, and last."""

    def __init__(
        self,
        combined: Results,
        elsewhere: Mapping[Role, Results],
        texts: Mapping[str, str],
        objectives: Sequence[str],
    ) -> None:
        """Gather the ratios of the objectives, of memory and of accesses on every trace.

        ``combined``: the traces explored on; ``elsewhere``: those of other roles; ``texts``: the recipes' TOML by id.
        """
        self._objectives = tuple(dict.fromkeys(objectives))
        self._refusing = "admitted_fraction" in objectives
        keys = dict.fromkeys([*objectives, *DEPENDS])
        self._combined, self._elsewhere, self._texts = combined, elsewhere, texts
        self._here = self._ratios(combined, keys)
        self._there = {role: self._ratios(results, keys) for role, results in elsewhere.items()}
        self._compared = tuple(dict.fromkeys([*DEPENDS, *(key for key in self._objectives if key == TIME)]))
        self._found: dict[str, dict[Role, Worst]] = {}
        self._verdicts: dict[str, str | None] = {}
        self._doubts: dict[tuple[str, bool], str | None] = {}

    def _ratios(self, results: Results, keys: Iterable[str]) -> dict[str, Floats]:
        return {key: results.ratios(key, self._refusing) for key in keys}

    def worst(self, id: str) -> dict[Role, Worst]:
        """How a recipe did on copies, and on traces held out, where it was tried on all of them."""
        if id not in self._found:
            rows = {role: results.row(id) for role, results in self._elsewhere.items()}
            self._found[id] = {role: self._worst(role, row) for role, row in rows.items() if row is not None}
        return self._found[id]

    def _worst(self, role: Role, row: int) -> Worst:
        results = self._elsewhere[role]
        known = {key: ratios[row] for key, ratios in self._there[role].items() if not np.isnan(ratios[row]).any()}
        return Worst(
            refused=int(results.columns["failed"][row]),
            ratios={key: float(values.max()) for key, values in known.items()},
            where={key: results.devices[int(values.argmax())] for key, values in known.items()},
            footprint_bytes=int(results.columns["footprint_bytes"][row]),
        )

    def _repr_html_(self) -> str:
        tried = dict.fromkeys(id for results in self._elsewhere.values() for id in results.ids)
        names = dict(zip(self._combined.ids, self._combined.zoo_names, strict=True))
        keys = list(self._here)
        rows = []
        for id in tried:
            worst = self.worst(id)
            ratios = [one.ratios.get(key) for one in map(worst.get, self._elsewhere) for key in keys if one]
            lasts = {None: "not tried", True: "yes", False: "no"}[self.lasts(id)]
            shown = ["-" if ratio is None else f"{ratio:,.2f} x" for ratio in ratios]
            rows.append([names.get(id) or id, *shown, lasts, self.why_not(id) or "yes"])
        headings = [f"{key}, {AMONG[role]}" for role in self._elsewhere for key in keys]
        complete = [row for row in rows if len(row) == len(headings) + 3]
        return notebook.table("Worst ratios to the best elsewhere", ["heap", *headings, "lasts", "holds"], complete)

    @property
    def endured(self) -> bool:
        """Whether it was tried of any recipe whether it lasts."""
        return bool(np.isfinite(self._combined.columns["lasts"]).any())

    def lasts(self, id: str) -> bool | None:
        """Whether a recipe lasts on what every trace explored on asks for; None where that was not tried."""
        row = self._combined.row(id)
        found = float("nan") if row is None else float(self._combined.columns["lasts"][row])
        return None if np.isnan(found) else found == 1

    def why_not_lasting(self, id: str) -> str | None:
        """Why a recipe does not last, in words; None for one that does, and where that was not tried."""
        if self.lasts(id) is not False:
            return None
        growth = float(self._combined.columns["growth_ratio"][self._combined.row(id)])
        # a study keeps no more: what grows by less may be within the bound, or just beyond best fit's
        return grows(growth) if growth > SHORT.most else f"{REFUSES}, or {grows(growth)}, more than best fit does"

    def why_not(self, id: str) -> str | None:
        """Why a recipe does not hold, in words; None for one that does, and where nothing was tried.

        It does not where it does not last, refused a request elsewhere, fell off in memory (`FALLS_OFF`), or reaches
        too little (`HEADROOM`). That a design which is not doubted falls off on a copy tells nothing.
        """
        if id not in self._verdicts:
            self._verdicts[id] = self._verdict(id)
        return self._verdicts[id]

    def _verdict(self, id: str) -> str | None:
        if why_not := self.why_not_lasting(id):
            return why_not
        apart = self.worst(id)
        if missing := [role for role in self._elsewhere if role not in apart]:
            return f"not tried on {AMONG[missing[0]]}"
        row = self._combined.row(id)
        here = float(self._here["footprint_bytes"][row].max())
        for role, found in apart.items():
            where = found.where.get("footprint_bytes")  # a heap that refused has none
            if found.refused and not self._refusing:
                return f"refused {found.refused:,} requests on {AMONG[role]}" + (f", as on {where}" if where else "")
            there = found.ratios["footprint_bytes"]
            if there > FALLS_OFF * here and (role != "copy" or self.doubt(id)):
                return f"{there:.2f} x the least memory on {where}, {here:.2f} x here"
        return self._short_of_reach(id, float(self._combined.columns["footprint_bytes"][row]), apart.values())

    def _short_of_reach(self, id: str, footprint: float, apart: Iterable[Worst]) -> str | None:
        most = max([footprint, *(found.footprint_bytes for found in apart)])
        if _reaches(self._texts[id], id, HEADROOM * most):
            return None
        found = reach(_recipe_of(self._texts[id], id))
        bounds = [bound for bound in (found.arena_bytes, found.request_bytes) if bound is not None]
        return f"reaches {min(bounds):,} bytes, less than {HEADROOM:g} x the {most:,.0f} that it needed"

    def candidates(self, how: Pick, front: NDArray[np.intp], eligible: Bools) -> list[int]:
        """Rows to pick from, of the front and of all that was tried: what holds and is not doubted.

        Where every tailored recipe is doubted, as in a space of other designs, what holds; where nothing does, what
        lasts, among it the heaps that everybody knows; then what of the front was not tried for that; and the one that
        grows least, where there is nothing else.
        """
        ids = self._combined.ids
        tried = np.isfinite(self._combined.columns["lasts"])
        there = (self._combined.row(id) for results in self._elsewhere.values() for id in results.ids)
        tried[[row for row in there if row is not None]] = True
        rows = list(dict.fromkeys([*map(int, front), *map(int, np.flatnonzero(eligible & tried))]))
        learnt = any(self._combined.zoo_names[row] is None and self.doubt(ids[row], how) is None for row in rows)
        for found in (
            [row for row in rows if self.why_not(ids[row]) is None],
            [row for row in rows if self.lasts(ids[row])],
            [row for row in map(int, front) if self.lasts(ids[row]) is None],
        ):
            if found:
                trusted = [row for row in found if self.doubt(ids[row], how) is None] if learnt else []
                return trusted or found
        return [min(rows, key=lambda row: (float(self._combined.columns["growth_ratio"][row]), row))]

    def likely(self, how: Pick, known: Collection[str], count: int) -> list[str]:
        """The ids of so many of some recipes, in the order in which they would be picked if all of them held."""
        rows = [row for row in map(self._combined.row, known) if row is not None]
        keys = self._keys_of(how)
        rows = [row for row in rows if all(np.isfinite(self._here[key][row]).all() for key in keys)]
        return [self._combined.ids[row] for row in self._ordered(how, rows, most=count)] if rows else []

    def in_order(self, how: Pick, front: NDArray[np.intp], eligible: Bools) -> list[int]:
        """Rows to pick from (`candidates`), the pick first; see `picks.order`."""
        return self.ordered(how, self.candidates(how, front, eligible))

    def ordered(self, how: Pick, rows: Sequence[int]) -> list[int]:
        """Rows, one or more, in the order in which they are picked, knowing which are taken blind."""
        return self._ordered(how, rows, np.array([self._combined.zoo_names[row] in BLIND for row in rows]))

    def _ordered(
        self, how: Pick, rows: Sequence[int], blind: Bools | None = None, most: int | None = None
    ) -> list[int]:
        needs = {key: self.needs(how, key, rows) for key in self._keys_of(how)}
        return [rows[at] for at in order(how, needs, blind, most)]

    def _keys_of(self, how: Pick) -> tuple[str, ...]:
        """The metrics that a pick goes by."""
        return self._objectives if how == "balanced" else self._compared

    def wins(self, how: Pick, rows: Sequence[int]) -> tuple[int, int] | None:
        """On how many copies the first of some recipes is picked among them, or is alike, and of how many copies.

        Alike is what needs at most `ALIKE` times what the pick on that copy does, of each. None where there are no
        copies, or the first was not tried there.
        """
        copies = self._elsewhere.get("copy")
        if copies is None or copies.row(self._combined.ids[rows[0]]) is None:
            return None
        found = [at for row in rows if (at := copies.row(self._combined.ids[row])) is not None]
        keys = self._keys_of(how)
        blind = np.array([copies.zoo_names[row] in BLIND for row in found])
        won = 0
        for device in range(len(copies.devices)):
            there = {key: self._there["copy"][key][found, device] for key in keys}
            served = np.flatnonzero(np.isfinite(np.stack([*there.values()])).all(axis=0))
            if not len(served) or served[0] != 0:
                continue
            needs = {key: Needs(values[served], values[served]) for key, values in there.items()}
            first = order(how, needs, blind[served], 1)[0]
            won += all(one.here[0] <= ALIKE * one.here[first] for one in needs.values())
        return won, len(copies.devices)

    def doubt(self, id: str, how: Pick = "balanced") -> str | None:
        """Why the design of a recipe is doubted (`prior.doubt`), in words; ``fastest`` may have lists that wait."""
        lists = how != "fastest"
        if (id, lists) not in self._doubts:
            self._doubts[id, lists] = doubt(_recipe_of(self._texts[id], id), lists=lists)
        return self._doubts[id, lists]

    def needs(self, how: Pick, key: str, rows: Sequence[int]) -> Needs:
        """The ratios of some recipes in one metric: on the traces explored on, and the worst on any that counts.

        Traces held out count. Copies do for ``fastest``: a list that is short here grows there. Other picks they only
        refuse (`why_not`): which of two recipes that hold needs more elsewhere, they did not foretell.
        """
        here = self._here[key][rows].max(axis=1)
        at_worst = here.copy()
        for at, row in enumerate(rows):
            for role, found in self.worst(self._combined.ids[row]).items():
                if role != "copy" or how == "fastest":
                    at_worst[at] = max(at_worst[at], found.ratios.get(key, 0.0))
        return Needs(here, at_worst)

    def describe(self, id: str) -> dict[str, Any]:
        """Plain values: ``copies``, ``held_out`` (refusals, worst ratios), ``lasts``, ``why_not`` and ``doubt``."""
        told: dict[str, Any] = {"copies": None, "held_out": None, "lasts": self.lasts(id)}
        told |= {"why_not": self.why_not(id), "doubt": self.doubt(id)}
        for role, found in self.worst(id).items():
            ratios = {key: ratio if np.isfinite(ratio) else None for key, ratio in found.ratios.items()}
            told["copies" if role == "copy" else "held_out"] = {"refused": found.refused, "worst_ratio": ratios}
        return told


# a study that has changed is asked for the same recipes again


@lru_cache(maxsize=1024)
def _recipe_of(text: str, id: str) -> Recipe:
    return Recipe.parse_stored(text, id)


@lru_cache(maxsize=1024)
def _reaches(text: str, id: str, size: float) -> bool:
    return reaches(_recipe_of(text, id), size)

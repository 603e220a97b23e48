"""SPACE.toml, the file of a design space: axes of values for recipe keys, multiplied out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heapwright._explore.default_space import FREELISTS, Demand, Levels, default_families, frequent_capacities
from heapwright._explore.site_pools import NO_SITES, SITE_CLASS, SITE_CLASSES, pool_of_sites
from heapwright._recipes.limits import MAX_SITES
from heapwright._recipes.policy import BeyondReachError, policy
from heapwright._recipes.pools import BEST_FIT, KINDS
from heapwright._recipes.recipe import ALIGNMENTS, ContradictionError, Recipe
from heapwright._recipes.recipe import json_schema as recipe_schema
from heapwright._support.errors import HeapwrightError, unknown_key
from heapwright._support.toml import parse_toml
from heapwright._traces.site_classes import SiteClass, SitesOfClass, site_classes

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace


MAX_EXHAUSTIVE = 100_000
"""Combinations up to which all are tried."""

NEEDED = ("sizes", "up_to", "most_frequent", "counts", "size", "site_class")
"""Keys that every pool needs."""

MADE = ("most_frequent", SITE_CLASS)
"""Keys of a space that no recipe has: a space replaces each by keys of recipes."""

HEAP_AXES = ("link_bytes", "checks", "reserve")
"""Keys of a heap that a space may have several values of."""

_SWITCHES = ("include_zoo", "default")

_LISTS = ("sizes", "counts")

_BY_SHARE = ("split", "coalesce_from", "victim_up_to", "up_to", "min_size", "max_size")
"""Keys in bytes that take a share of the requests, too."""

_SHARE = re.compile(r"(\d{1,2}(?:\.\d+)?|100) ?%")


class SpaceFile(NamedTuple):
    """A SPACE.toml: its families, what was left out of them in words, its alignment, and whether the zoo joins."""

    families: list[Iterable[Recipe]]
    notes: list[str]
    align: int
    include_zoo: bool
    wide: Axes | None = None
    """Axes with too many combinations to be multiplied out; then there is no family."""
    default: bool = False
    """Whether the default space joins these."""


def read_space(path: Path, traces: Sequence[Trace], align: int | None, default_align: int) -> SpaceFile:
    """Read a SPACE.toml; see `Space.load`."""
    try:
        data = parse_toml(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise HeapwrightError(f"{path}: not valid TOML: {error}") from None
    _check_keys(data, [*_SWITCHES, "align", *HEAP_AXES, "pool"], f"{path}")
    align = _alignment(data.pop("align", None), align, path) or default_align
    switches = _switches(data, path)
    demand = Demand.of(traces) if traces else None
    axes = Axes.of(data, demand, align, path, tuple(traces)) if "pool" in data else None
    if switches["default"] and demand is None:
        raise HeapwrightError(f"{path}: the default space belongs to it, which needs traces to be built from")
    if axes and axes.count > MAX_EXHAUSTIVE:
        return SpaceFile([], [], align, switches["include_zoo"], axes, switches["default"])
    made, dropped = axes.recipes() if axes else ([], [])
    families: list[Iterable[Recipe]] = [made]
    if switches["default"] and demand is not None:
        families += default_families(Levels(demand, align))
    notes = [f"{len(dropped):,} combinations left out as contradictions, the first: {dropped[0]}"] if dropped else []
    return SpaceFile(families, notes, align, switches["include_zoo"])


def _switches(data: dict[str, Any], path: Path) -> dict[str, bool]:
    """Take the switches out of the file's data; a file without pools is the default space, and has no other key."""
    switches = {key: data.pop(key, key == "include_zoo" or "pool" not in data) for key in _SWITCHES}
    for key, value in switches.items():
        if not isinstance(value, bool):
            raise HeapwrightError(f'{path}: "{key}": {value!r} is not valid; valid: true, false')
    if "pool" not in data and data:
        raise HeapwrightError(f'{path}: "{next(iter(data))}" is for [[pool]] tables, and there is none; add one')
    return switches


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a SPACE.toml, for editors: a value of a recipe's key, or a list of them."""
    schema = recipe_schema()
    schema["title"], schema["description"] = "Space", "The recipes that an exploration may try."
    info = schema["properties"]
    axes = {key: _axis(key, info[key]) for key in HEAP_AXES}
    switches = {key: {"type": "boolean"} for key in _SWITCHES}
    schema["properties"] = {**switches, "align": info["align"], **axes, "pool": info["pool"]}
    schema["required"] = []
    for kind, pool in zip(
        KINDS.values(), map(schema["$defs"].get, (kind.__name__ for kind in KINDS.values())), strict=True
    ):
        keys = {key: value for key, value in pool["properties"].items() if key != "kind"}
        keys |= {key: {"type": "integer", "minimum": 0, "maximum": FREELISTS} for key in kind.space_keys}
        if kind.owns_blocks and not kind.moves_objects:
            keys[SITE_CLASS] = {"enum": list(SITE_CLASSES)}
        pool["properties"] = {"kind": pool["properties"]["kind"]} | {
            key: _axis(key, item) for key, item in keys.items()
        }
        pool["required"] = ["kind"]
    return schema


def _axis(key: str, item: Any) -> dict[str, Any]:
    """A value of a key, or a list of them; a size may be a share of the requests."""
    value = {"anyOf": [item, {"type": "string", "pattern": f"^{_SHARE.pattern}$"}]} if key in _BY_SHARE else item
    return {"anyOf": [value, {"type": "array", "items": value, "minItems": 1}]}


def _alignment(stated: Any, requested: int | None, path: Path) -> int | None:
    """The alignment in the file, or the requested one; None if there is neither."""
    if stated is None:
        return requested
    if type(stated) is not int or stated not in ALIGNMENTS:
        valid = ", ".join(map(str, ALIGNMENTS))
        raise HeapwrightError(f'{path}: "align": {stated!r} is not valid; a study is of one alignment; valid: {valid}')
    if requested not in (None, stated):
        raise HeapwrightError(f'{path}: "align" {stated}, but {requested} was given; give one', parameter="align")
    return stated


Choice = Sequence[tuple[int | None, str, Any]]
"""A value of every axis: the pool's index or None for the heap, the key, the value."""


@dataclass(frozen=True)
class Axes:
    """The axes of a SPACE.toml, each a list of values for one key; together they make recipes."""

    values: tuple[tuple[tuple[int | None, str, Any], ...], ...]
    kinds: tuple[str, ...]
    demand: Demand | None
    align: int
    path: Path
    traces: tuple[Trace, ...] = ()

    @classmethod
    def of(
        cls, data: Mapping[str, Any], demand: Demand | None, align: int, path: Path, traces: tuple[Trace, ...]
    ) -> Axes:
        """Take the axes out of a file; raises HeapwrightError for an invalid pool or key."""
        axes: list[list[tuple[int | None, str, Any]]] = [
            [(None, key, value) for value in _values(key, data[key])] for key in HEAP_AXES if key in data
        ]
        kinds = []
        if not isinstance(data["pool"], list):
            raise HeapwrightError(f'{path}: "pool" is not valid; valid: [[pool]] tables')
        for index, pool in enumerate(data["pool"]):
            kinds.append(_kind(pool, f"{path}: pool {index + 1}"))
            keys = [key for key in pool if key != "kind"]
            axes += [[(index, key, value) for value in _values(key, pool[key])] for key in keys]
        return cls(tuple(map(tuple, axes)), tuple(kinds), demand, align, path, traces)

    def entries(self) -> Iterator[tuple[str, str, Any]]:
        """Every value that a recipe's key may have: the kind of the pool or "heap", the key, the value."""
        for index, key, value in chain.from_iterable(self.values):
            if key in MADE:
                continue
            if index is None:
                yield "heap", key, getattr(Recipe(pools=(BEST_FIT,), **{key: value}), key)
                continue
            needed = [axis[0] for axis in self.values if axis[0][0] == index and axis[0][1] in NEEDED]
            info = {key: self._bytes(key, item) for _, key, item in [*needed, (index, key, value)] if key not in MADE}
            kind = self.kinds[index]
            yield kind, key, getattr(KINDS[kind].model_validate({"kind": kind, **info}), key)

    @property
    def count(self) -> int:
        """How many combinations there are."""
        return prod(map(len, self.values))

    @cached_property
    def _frequent(self) -> list[int]:
        return frequent_capacities(self.demand, self.align) if self.demand else []

    def recipe(self, choice: Choice) -> Recipe:
        """The recipe of a combination; raises ContradictionError if its values contradict one another."""
        heap: dict[str, Any] = {"align": self.align}
        pools: list[dict[str, Any]] = [{"kind": kind} for kind in self.kinds]
        for index, key, value in choice:
            (heap if index is None else pools[index])[key] = self._bytes(key, value)
        for pool in pools:
            if "most_frequent" in pool:
                pool["sizes"] = self._most_frequent(pool.pop("most_frequent"))
            if SITE_CLASS in pool:
                pool |= self._of_sites(pool)
        kept = [item for item in pools if item.get("sizes") != [] and item.pop(SITE_CLASS, None) != NO_SITES]
        return Recipe.from_dict({**heap, "pool": kept}, str(self.path))

    def _bytes(self, key: str, value: Any) -> Any:
        """The value; of a share of the requests, the size that this share of them does not exceed."""
        share = _SHARE.fullmatch(value) if isinstance(value, str) and key in _BY_SHARE else None
        if share is None:
            return value
        if self.demand is None:
            raise HeapwrightError(
                f'{self.path}: "{key}": {value!r} is a share of requests; give traces for their sizes'
            )
        return self.demand.size_at(float(share[1]) / 100)

    def _most_frequent(self, count: Any) -> list[int]:
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= FREELISTS:
            raise HeapwrightError(f'{self.path}: "most_frequent": {count!r} is not valid; valid: 0 to {FREELISTS}')
        if self.demand is None:
            raise HeapwrightError(f'{self.path}: "most_frequent" needs traces to count sizes in')
        return self._frequent[:count]

    def _of_sites(self, pool: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of a pool for a class of call sites; `NO_SITES` if the pool is to be left out."""
        info = pool[SITE_CLASS]
        if info not in SITE_CLASSES:
            raise HeapwrightError(
                f'{self.path}: "{SITE_CLASS}": {info!r} is not valid; valid: {", ".join(SITE_CLASSES)}'
            )
        if info == NO_SITES:
            return {}
        if not self.traces:
            raise HeapwrightError(f'{self.path}: "{SITE_CLASS}" needs traces with call sites')
        return pool_of_sites(self._classes[info], pool, self.align) or {SITE_CLASS: NO_SITES}

    @cached_property
    def _classes(self) -> dict[SiteClass, SitesOfClass]:
        return site_classes(self.traces, MAX_SITES)

    def recipes(self) -> tuple[list[Recipe], list[str]]:
        """The recipes of all valid combinations, and the reason against each invalid one."""
        made, dropped = [], []
        for choice in product(*self.values):
            try:
                recipe = self.recipe(choice)
                policy(recipe)
                made.append(recipe)
            except (ContradictionError, BeyondReachError) as error:
                dropped.append(str(error))
        return made, dropped


def _kind(pool: Any, where: str) -> str:
    kind = pool.get("kind") if isinstance(pool, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise HeapwrightError(f'{where}: "kind": {kind!r} is not valid; valid: one of {", ".join(KINDS)}')
    model = KINDS[kind]
    sited = [SITE_CLASS] if model.owns_blocks and not model.moves_objects else []
    _check_keys(pool, [*model.model_fields, *model.space_keys, *sited], f"{where} ({kind})")
    return kind


def _check_keys(table: Mapping[str, Any], valid: Sequence[str], where: str) -> None:
    for key in table:
        if key not in valid:
            raise HeapwrightError(f"{where}: {unknown_key(key, valid)}")


def _values(key: str, value: Any) -> list[Any]:
    """The values of an axis; a recipe's own value, a number or one list of sizes, is an axis of one value."""
    if not isinstance(value, list):
        return [value]
    if key in _LISTS and all(isinstance(item, int) for item in value):
        return [value]
    return value

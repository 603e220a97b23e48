"""SPACE.toml: axes of values for recipe keys, multiplied out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heapwright.errors import HeapwrightError, unknown_key
from heapwright.explore.families import FREELISTS, Demand, Levels, default_families, frequent_capacities
from heapwright.recipes.policy import BeyondReachError, policy
from heapwright.recipes.pools import KINDS
from heapwright.recipes.recipe import ALIGNMENTS, ContradictionError, Recipe

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from heapwright.traces.trace import Trace


MAX_COMBINATIONS = 1_000_000

_HEAP_AXES = ("link_bytes", "checks")

_SWITCHES = ("include_zoo", "default")

_LISTS = ("sizes", "counts")


class SpaceFile(NamedTuple):
    """A SPACE.toml: its families, what was left out of them in words, its alignment, and whether the zoo joins."""

    families: list[Iterable[Recipe]]
    notes: list[str]
    align: int
    include_zoo: bool


def read_space(path: Path, traces: Sequence[Trace], align: int | None, default_align: int) -> SpaceFile:
    """Read a SPACE.toml; see `Space.load`."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise HeapwrightError(f"{path}: not valid TOML: {error}") from None
    _check_keys(data, [*_SWITCHES, "align", *_HEAP_AXES, "pool"], f"{path}")
    align = _alignment(data.pop("align", None), align, path) or default_align
    switches = {key: data.pop(key, key == "include_zoo" or "pool" not in data) for key in _SWITCHES}
    for key, value in switches.items():
        if not isinstance(value, bool):
            raise HeapwrightError(f'{path}: "{key}": {value!r} is not valid; valid: true, false')
    if "pool" not in data and data:
        raise HeapwrightError(f'{path}: "{next(iter(data))}" is for [[pool]] tables, and there is none; add one')
    demand = Demand.of(traces) if traces else None
    made, dropped = _combinations(data, demand, align, path) if "pool" in data else ([], [])
    families: list[Iterable[Recipe]] = [made]
    if switches["default"]:
        if demand is None:
            raise HeapwrightError(f"{path}: the default space belongs to it, which needs traces to be built from")
        families += default_families(Levels(demand, align))
    notes = [f"{len(dropped):,} combinations left out as contradictions, the first: {dropped[0]}"] if dropped else []
    return SpaceFile(families, notes, align, switches["include_zoo"])


def _alignment(told: Any, asked: int | None, path: Path) -> int | None:
    """The alignment that the file tells or that was asked for; None where neither says one."""
    if told is None:
        return asked
    if type(told) is not int or told not in ALIGNMENTS:
        valid = ", ".join(map(str, ALIGNMENTS))
        raise HeapwrightError(f'{path}: "align": {told!r} is not valid; a study is of one alignment; valid: {valid}')
    if asked not in (None, told):
        raise HeapwrightError(f'{path}: "align" {told}, but {asked} is asked for; give one of them', parameter="align")
    return told


def _combinations(
    data: Mapping[str, Any], demand: Demand | None, align: int, path: Path
) -> tuple[list[Recipe], list[str]]:
    """Multiply out all axes; returns the recipes and why each of the others is none."""
    axes: list[list[tuple[int | None, str, Any]]] = [
        [(None, key, value) for value in _values(key, data[key])] for key in _HEAP_AXES if key in data
    ]
    kinds = []
    if not isinstance(data["pool"], list):
        raise HeapwrightError(f'{path}: "pool" is not valid; valid: [[pool]] tables')
    for index, pool in enumerate(data["pool"]):
        kinds.append(_kind(pool, f"{path}: pool {index + 1}"))
        keys = [key for key in pool if key != "kind"]
        axes += [[(index, key, value) for value in _values(key, pool[key])] for key in keys]
    count = prod(map(len, axes))
    if count > MAX_COMBINATIONS:
        raise HeapwrightError(
            f"{path}: {count:,} combinations; valid: at most {MAX_COMBINATIONS:,}, so shorten an axis"
        )
    made, dropped = [], []
    for choice in product(*axes):
        try:
            recipe = Recipe.from_dict(_recipe_data(choice, kinds, demand, align, path), str(path))
            policy(recipe)
            made.append(recipe)
        except (ContradictionError, BeyondReachError) as error:
            dropped.append(str(error))
    return made, dropped


def _recipe_data(
    choice: Iterable[tuple[int | None, str, Any]], kinds: list[str], demand: Demand | None, align: int, path: Path
) -> dict[str, Any]:
    heap: dict[str, Any] = {"align": align}
    pools: list[dict[str, Any]] = [{"kind": kind} for kind in kinds]
    for index, key, value in choice:
        (heap if index is None else pools[index])[key] = value
    for pool in pools:
        if "most_frequent" in pool:
            pool["sizes"] = _most_frequent(pool.pop("most_frequent"), demand, align, path)
    return {**heap, "pool": [pool for pool in pools if pool.get("sizes") != []]}


def _most_frequent(count: Any, demand: Demand | None, align: int, path: Path) -> list[int]:
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= FREELISTS:
        raise HeapwrightError(f'{path}: "most_frequent": {count!r} is not valid; valid: 0 to {FREELISTS}')
    if demand is None:
        raise HeapwrightError(f'{path}: "most_frequent" needs traces to count sizes in')
    return frequent_capacities(demand, align)[:count]


def _kind(pool: Any, where: str) -> str:
    kind = pool.get("kind") if isinstance(pool, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise HeapwrightError(f'{where}: "kind": {kind!r} is not valid; valid: one of {", ".join(KINDS)}')
    extra = ["most_frequent"] if kind == "quick" else []
    _check_keys(pool, [*KINDS[kind].model_fields, *extra], f"{where} ({kind})")
    return kind


def _check_keys(table: Mapping[str, Any], valid: Sequence[str], where: str) -> None:
    for key in table:
        if key not in valid:
            raise HeapwrightError(f"{where}: {unknown_key(key, valid)}")


def _values(key: str, value: Any) -> list[Any]:
    """The values of an axis; what a recipe would say, a number or one list of sizes, is an axis of one value."""
    if not isinstance(value, list):
        return [value]
    if key in _LISTS and all(isinstance(item, int) for item in value):
        return [value]
    return value

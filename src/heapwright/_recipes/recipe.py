"""Recipes: complete descriptions of allocators, as TOML tables of pools that are tried in order.

A recipe is read and validated here, brought into canonical form (recipes of the same behaviour become equal) and
given a content hash. `docs/recipes.md` is the reference of every key.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

from heapwright._recipes.alignment import moved_pools
from heapwright._recipes.geometry import GUARD_BYTES, Geometry
from heapwright._recipes.kinds.base import reach_of, whole
from heapwright._recipes.limits import MEMORY_NAME
from heapwright._recipes.model import AsSchema, Conversion, field, pydantic_model
from heapwright._recipes.pools import (
    KINDS,
    MAX_MEMORIES,
    MAX_POOLS,
    MAX_REACH,
    MAX_REQUEST,
    MAX_UP_TO,
    Pool,
    Table,
    owners_in,
)
from heapwright._recipes.rules import (
    contradictions,
    counter_contradictions,
    guard_contradictions,
    memory_contradictions,
    thread_contradictions,
)
from heapwright._recipes.sites import Classes, site_classes, site_contradictions
from heapwright._support import notebook
from heapwright._support.errors import HeapwrightError
from heapwright._support.toml import parse_toml

if TYPE_CHECKING:
    from typing_extensions import Self

Alignment = Literal[1, 2, 4, 8, 16]
ALIGNMENTS: tuple[Alignment, ...] = get_args(Alignment)
LinkBytes = Literal[2, 4]
Checks = Literal["none", "frees", "neighbours", "full"]
CHECKS: tuple[Checks, ...] = get_args(Checks)
"""Levels of checks, each with those before it."""


def _level(value: Any) -> Any:
    """Read the two levels that recipes had before there were more as what they meant."""
    return {True: "frees", False: "none"}[value] if isinstance(value, bool) else value


def _pairs(value: Any) -> Any:
    """Read a table, or what JSON makes of its pairs, as pairs: they are hashable, and keep the order."""
    pairs = value.items() if isinstance(value, Mapping) else value
    if not isinstance(value, Mapping | list):
        return value
    return tuple(tuple(pair) if isinstance(pair, list | tuple) else pair for pair in pairs)


class ContradictionError(HeapwrightError):
    """Keys that are valid each for itself but not together."""


class Recipe(Table):
    """One allocator: heap-wide settings and pools tried in order.

    `Recipe.load`, `parse`, `from_dict` and the class itself raise a one-line `HeapwrightError` for input that cannot be
    used. Recipes are immutable and hashable.
    """

    name: str = field(default="", description="what to call it")
    year: int | None = field(default=None, ge=1950, le=2100, description="when it was published or first used")
    source: str = field(default="", description="paper, section or program it follows")
    about: str = field(default="", description="what is documented and what was chosen")
    align: Annotated[Alignment, Conversion(whole)] = field(default=8, description="alignment of payloads, bytes")
    link_bytes: Annotated[LinkBytes, Conversion(whole)] = field(
        default=4, description="width of a link in metadata, bytes; 2 counts in units of align"
    )
    checks: Annotated[Checks, Conversion(_level)] = field(
        default="none", description="what free and realloc look at before they believe a pointer"
    )
    counters: Annotated[bool, field(strict=True)] | Literal["classes"] = field(
        default=False,
        description='free bytes, least ever free and calls are counted, to be had in O(1); "classes": also the most '
        "blocks of each size, and the largest request that was refused",
    )
    reserve: int = field(
        default=0, ge=0, le=MAX_REACH, description="bytes of the arena that requests of low priority leave free"
    )
    control_bytes: int = field(default=0, ge=0, le=65536, description="least bytes of control data")
    aligned_search: Literal["blocks", "multiple", "twice"] = field(
        default="blocks",
        description="what an aligned request looks for, to be cut: blocks for it, for the alignment, and the smallest; "
        "the three as one payload, in multiples of the alignment; a payload and twice the alignment",
    )
    threads: Literal["none", "lock", "cached"] = field(
        default="none", description="a lock around each call, or one behind a free-list cache of each thread"
    )
    cache_up_to: int = field(
        default=2048, ge=1, le=MAX_UP_TO, description="largest request that has a list in each thread's cache, bytes"
    )
    cache_bytes: int = field(
        default=65536, ge=1, le=1 << 24, description="most payload bytes that a thread's cache holds"
    )
    memory: Annotated[
        tuple[tuple[Annotated[str, field(pattern=MEMORY_NAME)], Annotated[int, field(ge=1, le=MAX_REACH)]], ...],
        Conversion(_pairs),
        AsSchema({"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}}),
    ] = field(
        default=(),
        max_length=MAX_MEMORIES,
        description="several memories by their names, with their bytes, in the order in which they are tried",
    )
    pools: tuple[Annotated[Pool, field(discriminator="kind")], ...] = field(
        spelled="pool", strict=False, min_length=1, max_length=MAX_POOLS
    )

    if not TYPE_CHECKING:  # `dataclass_transform` describes it

        def __init__(self, /, **values: Any) -> None:
            self.__dict__.update(self.from_dict(values).__dict__)

    def _contradictions(self) -> Iterator[tuple[int | None, str]]:
        """Yield what no reading of the keys can make sense of: a pool's index, None for the heap; the problem."""
        if self.memory or any(pool.memory for pool in self.pools):
            yield from self._memory_contradictions()
            return
        yield from contradictions(self.pools, self.geometry)
        yield from site_contradictions(self.pools, self.threads)
        yield from ((None, problem) for problem in self._heap_contradictions())

    def _heap_contradictions(self) -> Iterator[str]:
        """What is wrong with the keys of the heap: its counters, checks and threads."""
        yield from counter_contradictions(self.reserve, self.counters, self.threads, self.pools)
        if self.checks == "full":
            yield from guard_contradictions(self.threads, self.pools)
        if self.threads != "none":
            cached = (self.cache_up_to, self.cache_bytes) if self.threads == "cached" else None
            yield from thread_contradictions(cached, self.pools, self.geometry)

    def _memory_contradictions(self) -> Iterator[tuple[int | None, str]]:
        """What is wrong with several memories, or with the heap in one of them."""
        if self.reserve:
            yield None, '"reserve" is of one arena; valid: 0 where there are several memories'
        wrong = list(memory_contradictions(dict(self.memory), self.threads, self.pools))
        yield from wrong
        yield from (
            (index, '"sites" are distinguished in one arena only; valid: without "memory"')
            for index, pool in enumerate(self.pools)
            if pool.sites
        )
        first = 0
        for part in () if wrong else self.parts().values():
            for where, problem in part._contradictions():
                yield None if where is None else first + where, problem
            first += len(part.pools)

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a TOML file. Raises HeapwrightError naming the file, pool and key; OSError where it cannot be read."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise HeapwrightError(f"{path}: not UTF-8 text ({error.reason}); a recipe is a TOML file") from None
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, where: str = "recipe") -> Recipe:
        """Read TOML text; `where` names it in errors. Raises HeapwrightError."""
        try:
            data = parse_toml(text)
        except ValueError as error:
            raise HeapwrightError(f"{where}: not valid TOML: {error}") from None
        return cls.from_dict(data, where)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "recipe") -> Recipe:
        """Build from the data of a TOML file or of `to_dict`; `where` names it in errors.

        Raises HeapwrightError, and its subclass ContradictionError where every key is valid for itself.
        """
        from heapwright._recipes.messages import one_line, pool_name

        try:
            made = cls.model_validate(dict(data))
        except ValueError as error:
            raise HeapwrightError(f"{where}: {one_line(error, data, cls)}") from None
        for index, problem in made._contradictions():
            pool = "" if index is None else f"{pool_name(index, data)}: "
            raise ContradictionError(f"{where}: {pool}{problem}")
        return made

    @classmethod
    def parse_stored(cls, text: str, where: str = "recipe") -> Recipe:
        """Read what `to_toml` wrote of a valid recipe, many of like pools several times faster than `parse` does.

        Each pool is validated, not whether they go together. Raises HeapwrightError as `parse` does.
        """
        heap, *pools = text.split("\n[[pool]]\n")
        if not pools or _PLAIN_HEAP.fullmatch(heap) is None:
            return cls.parse(text, where)
        try:
            parts = {**_stored_heap(heap), "pools": tuple(map(_stored_pool, pools))}
        except (KeyError, ValueError, HeapwrightError):  # among them pydantic's; `parse` says what it is, in one line
            return cls.parse(text, where)
        return _plain().model_copy(update=parts)

    @classmethod
    def trusted(cls, data: Mapping[str, Any]) -> Recipe:
        """Build from data that is known to be valid, as that of the zoo is; does not import pydantic."""
        pools = tuple(KINDS[pool["kind"]](**_tuples(pool)) for pool in data["pool"])
        return _plain().model_copy(update={**_tuples(data), "pools": pools})

    @classmethod
    def unchecked(cls, pools: tuple[Pool, ...], align: int = 8, link_bytes: int = 4, checks: Checks = "none") -> Recipe:
        """Build from parts known to be valid together, several times faster; nothing is checked."""
        parts = {"pools": pools, "align": align, "link_bytes": link_bytes, "checks": checks}
        return _plain().model_copy(update=parts)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values for some keys, which are not checked."""
        copied = super().model_copy(update=update, deep=deep)
        for kept in ("hash", _CANONICAL):  # they belong to this recipe, not to the copy
            copied.__dict__.pop(kept, None)
        return copied

    @property
    def contradiction(self) -> str | None:
        """What no reading of the keys can make sense of; None for a recipe that may be: all are that were checked."""
        return next((problem for _, problem in self._contradictions()), None)

    @property
    def counts(self) -> bool:
        """Whether the heap keeps its counters: where the recipe says so, or has a reserve, which needs them."""
        return bool(self.counters) or self.reserve > 0

    @property
    def sites(self) -> Classes:
        """The call sites of each class that pools serve alone, class 1 first; empty where no pool names any."""
        return site_classes(self.pools)

    @property
    def geometry(self) -> Geometry:
        """What all blocks share."""
        return Geometry(self.align, self.link_bytes, GUARD_BYTES if self.checks == "full" else 0)

    def parts(self) -> dict[str, Recipe]:
        """The heap in each memory by its name, in the order in which they are tried; empty if there is one arena."""
        results = {}
        for name, _ in self.memory:
            pools = tuple(pool.model_copy(update={"memory": ""}) for pool in self.pools if pool.memory == name)
            whole = f"{self.name}, {name}" if self.name else ""
            results[name] = self.model_copy(update={"name": whole, "memory": (), "pools": pools})
        return results

    @property
    def offered(self) -> tuple[int, int]:
        """The smallest and the largest request that any of its pools could serve, in bytes; a gap is looked over."""
        owners = owners_in(self._canonical_pools())
        largest = [min(pool.max_size or MAX_REQUEST, pool.largest_served(self.geometry)) for pool in owners]
        return max(1, min(pool.min_size for pool in owners)), max(largest)

    def _joined(self, parts: Mapping[str, Recipe]) -> tuple[Pool, ...]:
        """The pools of all parts, each with the name of its memory."""
        return tuple(pool.model_copy(update={"memory": name}) for name, part in parts.items() for pool in part.pools)

    def at_alignment(self, align: int) -> Recipe:
        """Return the same design for another alignment of payloads, in bytes.

        Classes and sizes of lists are those of the blocks handed out there; equal ones are merged, and their counts
        add up. `min_block` and `unit` grow where they have to. Descriptive keys stay.

        Raises HeapwrightError for an alignment that is none, ContradictionError where no such heap can be.
        """
        if align not in ALIGNMENTS:
            raise HeapwrightError(f"align {align} is not valid; valid: {', '.join(map(str, ALIGNMENTS))}")
        if align == self.align:
            return self
        if self.memory:
            parts = {name: part.at_alignment(align) for name, part in self.parts().items()}
            return self.model_copy(update={"align": align, "pools": self._joined(parts)})
        geometry = self.geometry._replace(align=align)
        moved = self.model_copy(update={"align": align, "pools": moved_pools(self.pools, self.geometry, geometry)})
        for where, problem in moved._contradictions():
            name = self.name or self.hash
            pool = "" if where is None else f"pool {where + 1} ({moved.pools[where].kind}): "
            raise ContradictionError(f"{name}: cannot be had at align {align}: {pool}{problem}")
        return moved

    def canonical(self) -> Recipe:
        """Return the form that all recipes of the same behaviour share (name, year, source and about are kept).

        Defaults that depend on other keys are filled in (`min_block`, `unit`, `linear_up_to`, `bins_per_octave`),
        keys without effect are reset, sizes are those of the blocks handed out, in ascending order. Idempotent.
        """
        if _CANONICAL in self.__dict__:
            return self
        pools = self._canonical_pools()
        changes: dict[str, Any] = {} if pools == self.pools else {"pools": pools}
        if self.counts and not self.counters:
            changes["counters"] = True
        if self.aligned_search != "blocks" and not any(pool.aligns for pool in pools):
            changes["aligned_search"] = "blocks"
        if self.threads != "cached":
            changes |= {key: value for key, value in _CACHE_KEYS.items() if getattr(self, key) != value}
        result = self.model_copy(update=changes) if changes else self
        result.__dict__[_CANONICAL] = True
        return result

    def with_canonical_thresholds(self) -> Recipe:
        """Return the canonical form of a recipe that has it already but for the thresholds of its pools."""
        geometry = self.geometry
        pools = [pool.canonical((), geometry) if pool.has_thresholds else pool for pool in self.pools]
        result = self.model_copy(update={"pools": tuple(pools)})
        result.__dict__[_CANONICAL] = True
        return result

    def _canonical_pools(self) -> tuple[Pool, ...]:
        if _CANONICAL in self.__dict__:
            return self.pools
        if self.memory:
            return self._joined({name: part.canonical() for name, part in self.parts().items()})
        geometry = self.geometry
        return tuple(pool.canonical(self.pools[index + 1 :], geometry) for index, pool in enumerate(self.pools))

    @cached_property
    def hash(self) -> str:
        """First 12 hexadecimal digits of the SHA-256 of the canonical form as JSON, without the descriptive keys."""
        return self._hash_of(self._canonical_pools())

    def _hash_of(self, pools: tuple[Pool, ...]) -> str:
        content = ",".join([*_heap_json(*_heap_of(self)), f'"pool":[{",".join(map(_pool_json, pools))}]'])
        return hashlib.sha256(f"{{{content}}}".encode()).hexdigest()[:12]

    @property
    def reach(self) -> int | None:
        """Largest arena in bytes that the recipe's links and headers can address; None: none below 2^31 bytes."""
        return reach_of(self.pools, self.geometry)

    def to_dict(self) -> dict[str, Any]:
        """Return the TOML data: keys in the reference's order, without those whose absence means the same.

        `align` is always there: it is the first thing to look at, and files without it once meant 4.
        """
        return {**self._heap_dict(), "pool": [_pool_dict(pool, self.geometry) for pool in self.pools]}

    def _heap_dict(self) -> dict[str, Any]:
        heap = _non_default(self, skip={"pools", "memory"}, always={"align"})
        return heap | ({"memory": dict(self.memory)} if self.memory else {})

    def to_toml(self) -> str:
        """Return the recipe as TOML; reading it back gives a recipe with the same hash."""
        return "\n".join(
            [_heap_toml(*_file_values(self)), *(_pool_toml(pool, self.geometry) for pool in self.pools)]
        ).lstrip()

    def __repr__(self) -> str:
        return f"<Recipe {self.name or self.hash}: {self.summary()}>"

    __str__ = __repr__

    def summary(self, usual_align: int = 8) -> str:
        """Return one short line for people: pools, then the alignment unless it is the usual one, and other keys."""
        heap = [f"align {self.align}"] if self.align != usual_align else []
        heap += ["2-byte links"] if self.link_bytes == 2 else []
        heap += [f"checks of {self.checks}"] if self.checks != "none" else []
        heap += ["counters by class" if self.counters == "classes" else "counters"] if self.counters else []
        heap += [f"reserve {self.reserve}"] if self.reserve else []
        heap += [f"control {self.control_bytes}"] if self.control_bytes else []
        heap += [f"aligned {self.aligned_search}"] if self.aligned_search != "blocks" else []
        heap += ["lock"] if self.threads == "lock" else []
        if self.threads == "cached":
            heap.append(f"caches of threads <= {self.cache_up_to}, {self.cache_bytes} bytes each")
        return ", ".join([self._pools_summary(), *heap])

    def title(self) -> str:
        """A short name of the design, which others may share: "lists 12, 44, 60 + exact bins, last remainder"."""
        if self.memory:
            return "; ".join(f"{name}: {part.title()}" for name, part in self.parts().items())
        return " + ".join(pool.title() for pool in self.pools)

    def _repr_html_(self) -> str:
        info = {key: str(getattr(self, key)) for key in ("align", "link_bytes", "checks", "threads")}
        info |= {f"pool {at}": pool.summary() for at, pool in enumerate(self.pools, 1)}
        named = f"{self.name} ({self.hash})" if self.name else self.hash
        return notebook.pairs(named, info, notebook.folded("TOML", self.to_toml()))

    def _pools_summary(self) -> str:
        if self.memory:
            sizes = dict(self.memory)
            return ", ".join(f"{name} {sizes[name]} B: {part._pools_summary()}" for name, part in self.parts().items())
        return " + ".join(_pool_summary(pool, self.geometry) for pool in self.pools)


def _tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a table but for its pools, with tuples for lists and for tables."""
    values = {key: tuple(value.items()) if isinstance(value, Mapping) else value for key, value in data.items()}
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items() if key != "pool"}


_CANONICAL = "is_canonical"
"""An attribute of recipes that are known to be in canonical form, next to their keys."""


@lru_cache(maxsize=1)
def _plain() -> Recipe:
    """A heap with every default, and with no pools."""
    return Recipe.model_construct(pools=())


_HASH_DEFAULTS = {
    "align": 4,
    "link_bytes": 4,
    "checks": False,
    "counters": False,
    "control_bytes": 0,
    "threads": "none",
}
"""What the hashed text leaves out; never to be changed, so that ids stay."""


_HASHED_CHECKS = {"none": False, "frees": True}
"""How the hashed text writes the levels that were a switch once."""


_HEAP_KEYS = [*_HASH_DEFAULTS, "memory", "reserve", "cache_up_to", "cache_bytes", "aligned_search"]

_heap_of = attrgetter(*_HEAP_KEYS)


@lru_cache(maxsize=64)
def _heap_json(*values: Any) -> tuple[str, ...]:
    """The keys of a heap as JSON, without its pools, in order, without those whose absence means the same."""
    info = dict(zip(_HEAP_KEYS, values, strict=True))
    heap = {key: info[key] for key in _HASH_DEFAULTS}
    heap |= {"memory": info["memory"]} if info["memory"] else {}
    heap |= {"reserve": info["reserve"], "counters": info["counters"] or True} if info["reserve"] else {}
    heap |= {"aligned_search": info["aligned_search"]} if info["aligned_search"] != "blocks" else {}
    heap["checks"] = _HASHED_CHECKS.get(info["checks"], info["checks"])
    if info["threads"] == "cached":
        heap |= {key: info[key] for key in _CACHE_KEYS}
    written = (f'"{key}":{json.dumps(value)}' for key, value in heap.items() if value != _HASH_DEFAULTS.get(key))
    return tuple(sorted(written))


_CACHE_KEYS = {key: Recipe.model_fields[key].default for key in ("cache_up_to", "cache_bytes")}
"""Keys that mean something to a heap with caches of threads alone, with their defaults."""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a recipe file, for editors."""
    schema = pydantic_model(Recipe).model_json_schema(by_alias=True, mode="validation")
    for pool in schema["$defs"].values():
        pool["required"] = ["kind", *pool.get("required", ())]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


_PLAIN_HEAP = re.compile(r"(?:(?:align|link_bytes) = [0-9]+\n|checks = \"[a-z]+\"\n)*")
"""The heap's keys of a recipe that is made of numbers alone: no text of it can look like a pool."""


@lru_cache(maxsize=64)
def _stored_heap(text: str) -> Mapping[str, Any]:
    info = parse_toml(text)
    Recipe.model_validate({**info, "pool": [{"kind": "general"}]})
    return info


@lru_cache(maxsize=65536)
def _stored_pool(text: str) -> Pool:
    data = parse_toml(text)
    kind = KINDS[data["kind"]]
    return cast("Pool", kind.model_validate(data))


@lru_cache(maxsize=65536)
def _pool_summary(pool: Pool, geometry: Geometry) -> str:
    return pool.without_resolved(geometry).summary()


_FILE_KEYS = [key for key in Recipe.model_fields if key != "pools"]

_file_values = attrgetter(*_FILE_KEYS)


@lru_cache(maxsize=64)
def _heap_toml(*values: Any) -> str:
    """The keys of a heap as TOML, without its pools: those of all recipes of a space are the same."""
    import tomli_w

    heap = _plain().model_copy(update=dict(zip(_FILE_KEYS, values, strict=True)))
    return tomli_w.dumps(heap._heap_dict(), multiline_strings=True)


@lru_cache(maxsize=65536)
def _pool_json(pool: Pool) -> str:
    data = {"kind": pool.kind, **_non_default(pool, skip={"kind"}), **pool.hashed_keys}
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _pool_dict(pool: Pool, geometry: Geometry) -> dict[str, Any]:
    return {"kind": pool.kind, **_non_default(pool.without_resolved(geometry), skip={"kind"})}


@lru_cache(maxsize=65536)
def _pool_toml(pool: Pool, geometry: Geometry) -> str:
    keys = _pool_dict(pool, geometry)
    return "[[pool]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def _non_default(table: Table, skip: set[str], always: frozenset[str] | set[str] = frozenset()) -> dict[str, Any]:
    """Keys whose value is not the default, and those of `always`, in the order of declaration, lists for tuples."""
    results = {}
    for key, default in table.defaults.items():
        value = getattr(table, key)
        if key not in skip and (key in always or value != default):
            results[key] = list(value) if isinstance(value, tuple) else value
    return results

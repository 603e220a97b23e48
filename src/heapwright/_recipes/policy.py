"""Policies of recipes: every field of `struct hw_policy`, which the C core runs, the derived ones included.

The control data is laid out here, once, for both replay and generated code:

    null node | refused, misused, seal of the end | end of the shared part, its high-water mark | counters | pools

Each part is a list of fields in the order of memory; those of a pool its kind has. All numbers are bytes or addresses
(offsets from the arena's base) unless the field says otherwise; `csrc/policy.h` documents each field.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any

from heapwright._native import ffi, lib
from heapwright._recipes.geometry import log2
from heapwright._recipes.kinds.base import bare, reach_of
from heapwright._recipes.kinds.layout import CHECKS, Field, Layout, Placed
from heapwright._recipes.pools import KINDS, MAX_REACH, MAX_REQUEST, Lists, Pool, owners_in
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.sites import site_classes
from heapwright._support.errors import HeapwrightError

KEYS = {
    "none": lib.HW_KEYS_NONE,
    "frees": lib.HW_KEYS_NONE,
    "neighbours": lib.HW_KEYS_PLAIN,
    "full": lib.HW_KEYS_MIXED,
}
KEY_WORDS = {lib.HW_KEYS_NONE: 0, lib.HW_KEYS_PLAIN: 1, lib.HW_KEYS_MIXED: 4}

ALIGNED = {"blocks": lib.HW_ALIGNED_BLOCKS, "multiple": lib.HW_ALIGNED_MULTIPLE, "twice": lib.HW_ALIGNED_TWICE}

THREADS = {"none": lib.HW_THREADS_NONE, "lock": lib.HW_THREADS_LOCK, "cached": lib.HW_THREADS_CACHED}

CLASSES = 16
"""Classes of blocks that the counters have, as `csrc/heapwright.h` has them."""

CACHE_NUMBERS = 3
"""Words ahead of the lists in a thread's cache, as `csrc/threads.h` has them."""

NULL_NODE = "not used: address 0 stands for no node"
SCRATCH = (
    "scratch word, never read: the link back of the node behind the last one; a store to it needs no test for the end "
    "of a list"
)

CACHE_FINE = 3
"""Classes of a cache to an octave, as a power of two, as `csrc/threads.h` has them."""


BLOCK_STATES = {"filled": lib.HW_FILLED, "sampled": lib.HW_SAMPLED, "waiting": lib.HW_WAITING}
"""Numbers of the core that generated C shows, by their names in its templates."""


class BeyondReachError(HeapwrightError):
    """Control data and regions of a recipe are larger than the arena that its links and headers address."""


@lru_cache(maxsize=64)  # it is packed, and its steps are bounded
def policy(recipe: Recipe) -> dict[str, Any]:
    """The policy of a recipe as nested dicts and lists that mirror `struct hw_policy`, not to be changed.

    The recipe is taken in its canonical form. Raises BeyondReachError where the control data and the regions with a
    size of their own are beyond what the recipe's links reach, HeapwrightError for a recipe in several memories.
    """
    require_one_memory(recipe)
    return _Packed(recipe.canonical()).values


def control_data(recipe: Recipe) -> list[Placed]:
    """The control data of a recipe, as `policy` lays it out. Raises as that does."""
    require_one_memory(recipe)
    return list(_Packed(recipe.canonical()).layout.placed)


def require_one_memory(recipe: Recipe) -> None:
    """Raise HeapwrightError for a recipe in several memories: the caller needs one arena."""
    if recipe.memory:
        raise HeapwrightError(
            f"{recipe.name or recipe.hash}: lies in several memories ({', '.join(recipe.parts())}), and only replay "
            "and generate take it whole; give each memory's pools a recipe of their own"
        )


def require_no_sites(recipe: Recipe) -> None:
    """Raise HeapwrightError for a recipe with pools of call sites: the caller does not know any."""
    if recipe.sites:
        raise HeapwrightError(
            f"{recipe.name or recipe.hash}: has pools for call sites, which are unknown here; use a recipe without"
        )


@lru_cache(maxsize=64)
def policy_struct(recipe: Recipe) -> Any:
    """The recipe's policy as a C struct (`struct hw_policy *`), not to be changed. Raises as `policy` does.

    It is that of the recipe's structure, with the recipe's own thresholds.
    """
    recipe = recipe.canonical()
    struct = structure_of(recipe).struct()
    for index, pool in enumerate(recipe.pools):
        if pool.has_thresholds:
            pool.set_thresholds(struct.pools[index], recipe.geometry)
    return struct


def used_bytes(struct: Any) -> Any:
    """A view of a policy (`struct hw_policy *`) up to what its last pool uses: it has room for more and larger ones."""
    last = struct.pool_count - 1
    return ffi.buffer(struct, _POOLS_AT + last * _POOL_BYTES + used_bytes_of(struct.pools[last]))


def whole_bytes(struct: Any) -> bytes:
    """All bytes of a policy (`struct hw_policy *`), for a program that reads them: 0 behind what its last pool uses."""
    return bytes(used_bytes(struct)).ljust(ffi.sizeof("struct hw_policy"), b"\0")


def used_bytes_of(pool: Any) -> int:
    """Bytes of a pool (`struct hw_pool`) up to where its kind's end: there is room for those of any."""
    return _KIND_ENDS[pool.kind]


_POOLS_AT, _POOL_BYTES = ffi.offsetof("struct hw_policy", "pools"), ffi.sizeof("struct hw_pool")

_KIND_AT = ffi.offsetof("struct hw_pool", next(iter(KINDS)))

_KIND_ENDS = {0: _KIND_AT} | {kind.number: _KIND_AT + ffi.sizeof(f"struct hw_{name}") for name, kind in KINDS.items()}
"""By the number of a kind; 0 is none."""


_new_unclear = ffi.new_allocator(should_clear_after_alloc=False)
"""Clearing what no pool uses takes as long as all else of a policy of its own; nothing reads it (`whole_bytes`)."""


class Structure:
    """What recipes have in common whose pools differ in nothing but thresholds; there is one object for all of them.

    ``recipe``, in canonical form, is that with the least thresholds.
    """

    def __init__(self, recipe: Recipe) -> None:
        """Pack the policy, which takes as long as a replay of a thousand calls."""
        self.recipe = recipe
        self._packed = bytes(used_bytes(ffi.new("struct hw_policy *", policy(recipe))))

    def struct(self) -> Any:
        """A policy of its own as `policy_struct` returns it, of ``recipe``."""
        struct = _new_unclear("struct hw_policy *")
        ffi.memmove(struct, self._packed, len(self._packed))
        return struct


@lru_cache(maxsize=64)
def structure_of(recipe: Recipe) -> Structure:
    """The structure of a recipe. Raises as `policy` does. The last 4,096 are kept: the default space has fewer."""
    require_one_memory(recipe)
    recipe = recipe.canonical()
    try:
        return _structure(_heap_of(recipe), tuple(map(bare, recipe.pools)))
    except BeyondReachError:
        policy(recipe)  # so that the message names this one
        raise


_HEAP_KEYS = [key for key in Recipe.model_fields if key not in ("name", "year", "source", "about", "memory", "pools")]
"""The keys that a policy depends on, without the pools."""

_heap_of = attrgetter(*_HEAP_KEYS)


@lru_cache(maxsize=4096)
def _structure(heap: tuple[Any, ...], pools: tuple[Pool, ...]) -> Structure:
    kept = dict(zip(_HEAP_KEYS, heap, strict=True))
    return Structure(Recipe.unchecked(pools).model_copy(update=kept).with_canonical_thresholds())


def cache_class(units: int) -> int:
    """The class of blocks of `units` units in a thread's cache."""
    coarse = log2(units | 1 << CACHE_FINE) - CACHE_FINE
    return (coarse << CACHE_FINE) + (units >> coarse)


def cache_units(of: int) -> int:
    """Units of the smallest block of a class."""
    coarse = max((of >> CACHE_FINE) - 1, 0)
    return of - (coarse << CACHE_FINE) << coarse


class _Packed:
    """Places the control data, then the regions, then the shared part; a recipe in canonical form."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.pools, self.geometry = recipe, recipe.pools, recipe.geometry
        self.layout = Layout(self.geometry, recipe.checks)
        self.keyed = KEYS[recipe.checks]
        self.cached = recipe.threads == "cached"
        if any(pool.has_null_node for pool in self.pools):
            self.layout.take(recipe.link_bytes, 1, meaning=NULL_NODE)
            self.layout.take(recipe.link_bytes, 1, meaning=SCRATCH)
        heap = self.layout.place(self._control())
        self.layout.heap = heap
        self.cache = self._cache_lists() if self.cached else {}
        self.depot_at = self.layout.take(8 + 4 * self.cache["count"], 4, "depot_at") if self.cached else 0
        laid_out = self._lay_out_pools()
        self.layout.take(max(0, recipe.control_bytes - self.layout.cursor), 1)
        control = self._place_pools(laid_out)
        self.values: dict[str, Any] = self._heap(heap, control, laid_out)
        self._harden(laid_out)
        if self.layout.cursor > self.values["reach"]:
            raise BeyondReachError(
                f"{recipe.name or recipe.summary()}: control data and regions take {self.layout.cursor} bytes, its "
                f"links and headers reach {self.values['reach']}; "
                'use "link_bytes" 4, a larger header or smaller regions'
            )

    def _control(self) -> tuple[Field, ...]:
        """What the heap keeps in the arena for all its pools, in the order of memory."""
        recipe, keys = self.recipe, KEY_WORDS[self.keyed]
        checked = recipe.checks != "none"
        return (
            Field("refused_at", 4),
            Field("misused_at", 4, present=checked),
            Field("end_seal_at", 4, present=checked),
            Field("seal_at", 4, present=self._seals()),
            Field("keys_at", 4 * keys, present=keys > 0),
            Field("waiting_at", 4 + 4 * lib.HW_WAITING, present=recipe.checks == "full"),
            Field("shared_limit_at", 4),
            Field("shared_high_at", 4),
            Field("counters_at", 20, present=bool(recipe.counters)),
            Field("classes_at", 2 * CLASSES * self._class_bytes(), present=recipe.counters == "classes"),
            Field("caches_at", 4, present=self.cached),
        )

    def _class_bytes(self) -> int:
        """Bytes of the number of blocks of a class: each block takes a unit of the alignment at least."""
        reach = reach_of(self.pools, self.geometry) or MAX_REACH
        return 2 if reach // self.geometry.align <= 1 << 16 else 4

    def _seals(self) -> bool:
        """Whether a seal covers the boundaries: where links are hardened, and some boundary moves as blocks come or
        links of two bytes may unmask to a possible place under another key."""
        covers = self.layout.link_bytes == 2 or any(pool.moves_bounds for pool in self.pools)
        stay = not any(pool.moves_objects for pool in self.pools)
        return self.recipe.checks in ("neighbours", "full") and covers and stay

    def _heap(self, heap: Mapping[str, int], control: int, laid_out: list[dict[str, Any]]) -> dict[str, Any]:
        """The fields of the policy, those of its pools included."""
        recipe, pools = self.recipe, self.pools
        on_words = self.layout.align % 4 == 0 and all(pool.ends_on_words(self.layout.align) for pool in pools)
        return {
            "align": recipe.align,
            "checks": CHECKS[recipe.checks],
            "reserve": recipe.reserve,
            "aligned_search": ALIGNED[recipe.aligned_search],
            "pool_count": len(pools),
            **self._abilities(laid_out),
            **self._extent(heap, control, laid_out),
            **heap,
            "keys": KEY_WORDS[self.keyed],
            "seals": int(self._seals()),
            **self._threads(),
            "tally": {"bytes": self._class_bytes(), "natural": 1},
            "guard": {"bytes": 4, "natural": int(on_words)},
            "pools": laid_out,
        }

    def _abilities(self, laid_out: list[dict[str, Any]]) -> dict[str, int]:
        """What any pool does, so that the core leaves out what none does."""
        pools = self.pools
        return {
            "shares": int(any(pool.shares_the_rest for pool in pools)),
            "sited": sum(1 for pool in pools if pool.sites),
            "keeps": int(any(not pool.owns_blocks for pool in pools)),
            "flushes": int(any(pool.flushes_before_growing for pool in pools)),
            "refills": int(any(pool.refills for pool in pools)),
            "ages": int(any(pool.gives_back_idle for pool in pools)),
            "rounds": int(any(pool.rounds_requests for pool in pools)),
            "empty_as_one": int(
                all(pool.serves_empty(its[pool.kind]) for pool, its in zip(pools, laid_out, strict=True))
            ),
        }

    def _extent(self, heap: Mapping[str, int], control: int, laid_out: list[dict[str, Any]]) -> dict[str, int]:
        """Where control data, regions and the shared part end, and what grows down from the arena's end."""
        pools, cursor = self.pools, self.layout.cursor
        from_end = [
            pool.end_at(its[pool.kind]) for pool, its in zip(pools, laid_out, strict=True) if pool.takes_from_end
        ]
        return {
            "control": control,
            "spent": cursor - sum(pool.region_bytes(self.geometry) for pool in pools),
            "arena_align": max(pool.arena_align for pool in pools),
            "fixed_end": cursor,
            "reach": reach_of(pools, self.geometry) or MAX_REACH,
            "shared_end_at": from_end[0] if from_end else heap["shared_limit_at"],
            "grows_down": int(bool(from_end)),
            "end_header": next((pool.end_header for pool in pools if pool.carves_from_end), 0),
            "end_mark": sum(pool.end_mark for pool in pools),
        }

    def _lay_out_pools(self) -> list[dict[str, Any]]:
        last = max(index for index, pool in enumerate(self.pools) if pool.owns_blocks)
        classes = site_classes(self.pools)
        laid_out = []
        for index, pool in enumerate(self.pools):
            largest = min(pool.max_size or MAX_REQUEST, pool.largest_request(self.geometry))
            kept = any(not above.owns_blocks for above in self.pools[:index])
            laid_out.append(
                {
                    "kind": pool.number,
                    "min_size": pool.min_size,
                    "max_size": largest,
                    "fast_max": min(largest, pool.largest_on_fast_path(self.geometry)),
                    "last": int(index == last),
                    "cached": int(kept),
                    "site": classes.index(pool.sites) + 1 if pool.sites else 0,
                    pool.kind: pool.lay_out(self.layout, self.pools[index + 1 :], kept or self.cached),
                }
            )
        return laid_out

    def _place_pools(self, laid_out: list[dict[str, Any]]) -> int:
        """Place the regions with a size of their own, then the shared part's start; returns the control's end."""
        control = self.layout.cursor
        by_kind = [(pool, values[pool.kind]) for pool, values in zip(self.pools, laid_out, strict=True)]
        for pool, values in by_kind:
            pool.place_region(self.layout, values)
        for pool, values in by_kind:
            pool.place_shared(self.layout, values)
        for pool, values in by_kind:
            pool.face(values, by_kind[-1][1])
        return control

    def _harden(self, laid_out: list[dict[str, Any]]) -> None:
        """Add what links are held to."""
        heap = self.values
        hardened = self.recipe.checks in ("neighbours", "full")
        for pool, its in zip(self.pools, laid_out, strict=True):
            values = its[pool.kind]
            if "links" in values:
                values["links"] = values["links"] | {
                    "hardened": int(hardened),
                    "pairs": int(hardened and pool.has_pairs(values)),
                    "end_at": heap["shared_end_at"] if hardened else 0,
                    "keyed": self.keyed,
                    "keys_at": heap["keys_at"],
                    "misused_at": heap["misused_at"],
                }

    # ---- threads

    def _threads(self) -> dict[str, Any]:
        """What the caches of threads need: lists as a pool above all others would have them."""
        unused = {"cache_bytes": 0, "cache_largest": 0, "cache_object": 0, "cache_cuts": 0, "depot_at": 0, "cache": {}}
        unused |= {"cache_finds_new": 0, "cache_tabled": 0, "cache_ranks": []}
        if not self.cached:
            return {"threads": THREADS[self.recipe.threads], **unused}
        return {
            "threads": THREADS[self.recipe.threads],
            "cache_bytes": self.recipe.cache_bytes,
            "cache_largest": self.cache["up_to"] - self.cache["block_header"],
            "cache_object": 4 * CACHE_NUMBERS + 8 * self.cache["count"],
            "cache_cuts": int(self._is_cut()),
            "cache_finds_new": int(any(pool.lists_fresh_memory for pool in self.pools)),
            "cache_tabled": int(bool(self._cache_ranks())),
            "cache_ranks": self._cache_ranks(),
            "depot_at": self.depot_at,
            "cache": self.cache,
        }

    def _cache_lists(self) -> dict[str, Any]:
        """Lists as a pool above all others would have them, but of classes of sizes."""
        lists = Lists(up_to=self.recipe.cache_up_to).lists(self.layout, self.pools)
        if lists["block_doubles"]:
            return lists
        shift = lists["block_unit_shift"]
        first, last = cache_class(lists["block_least"] >> shift), cache_class((lists["up_to"] >> shift) - 1) + 1
        return lists | {"count": last - first + 1, "up_to": cache_units(last) << shift}

    def _cache_ranks(self) -> list[int]:
        """1 + the list of blocks of each number of units, 0 below the smallest; empty if the list is computed."""
        shift = self.cache["block_unit_shift"]
        units = self.cache["up_to"] >> shift
        if self.cache["block_doubles"] or units >= lib.HW_CACHE_UNITS or not self.cache["block_header"]:
            return []
        first = cache_class(self.cache["block_least"] >> shift)
        return [max(0, cache_class(size) - first + 1) for size in range(units + 1)]

    def _is_cut(self) -> bool:
        """Whether one block of the heap may become several: all come from one pool, whose blocks lie back to back."""
        owners = owners_in(self.pools)
        return len(owners) == 1 and owners[0].cuts(self.geometry)

"""Compacting pools: blocks that move, reached through handles; the only pool of their recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from heapwright._native import lib
from heapwright._recipes.geometry import Geometry, log2
from heapwright._recipes.kinds import layout as lay
from heapwright._recipes.kinds.base import BasePool
from heapwright._recipes.kinds.bounds import AccessBounds, UnboundedError
from heapwright._recipes.limits import MAX_REACH, MAX_REQUEST
from heapwright._recipes.model import field

if TYPE_CHECKING:
    from heapwright._recipes.kinds.bounds import Sizes


class Compact(BasePool):
    """Blocks that move, reached through handles; the only pool of its recipe."""

    number: ClassVar[int] = lib.HW_COMPACT
    moves_objects: ClassVar[bool] = True
    removed_keys: ClassVar[Mapping[str, str]] = {
        "handles": "handles lie with the caller",
        "handle_bytes": "a handle has 4 bytes, and 12 without headers",
    }

    kind: Literal["compact"] = "compact"
    when: Literal["lazy", "eager"] = field(default="lazy", description="when holes are closed")
    header: int = field(default=4, ge=0, le=16, description="bytes before the payload; 0: handles hold sizes and chain")

    @property
    def reference_words(self) -> int:
        """Pointers that the caller keeps for each object: the reference, or with size and chain a struct hw_handle."""
        return 1 if self.header else 3

    # ---- sizes

    def largest_served(self, geometry: Geometry) -> int:
        """Bytes of the largest object whose size it can store, in units of the alignment."""
        width = min(self.header // 2, 4) or 4
        return min(((1 << (8 * width)) - 1) * geometry.align - self.header, MAX_REQUEST)

    def largest_request(self, geometry: Geometry) -> int:
        return self.largest_served(geometry)

    # ---- rules

    def contradictions(self, pools: Sequence[BasePool], geometry: Geometry, index: int) -> Iterator[str]:
        if len(pools) > 1:
            yield "moves its blocks, which no other pool could follow; valid: a compact pool alone in its recipe"
        if 0 < self.header < 4:
            yield f'"header" {self.header} cannot hold a size and a handle; valid: 0 (handles hold them), 4 to 16'
            return
        largest = self.largest_served(geometry)
        if self.min_size > largest:
            yield (
                f'"min_size" {self.min_size} is above the largest size that a header stores, {largest}; '
                "it would take no request"
            )

    # ---- forms

    def canonical(self, below: Sequence[BasePool], geometry: Geometry) -> Compact:
        return _canonical(self, geometry)

    @property
    def hashed_keys(self) -> dict[str, Any]:
        return {"handle_bytes": self.outside_bytes}

    # ---- words

    def summary(self) -> str:
        words = [f"compact {self.when}"]
        words += [f"header {self.header}"] if self.header != 4 else []
        return ", ".join(words) + self.range_summary()

    def title(self) -> str:
        return "objects that move"

    def overhead_bytes(self, values: Mapping[str, Any]) -> int:
        return self.header

    def smallest_bytes(self, values: Mapping[str, Any], align: int) -> int:
        return self.header + align

    # ---- the arena

    @property
    def moves_bounds(self) -> bool:
        return False  # handles of the caller lead to its blocks, which no seal covers

    @property
    def shares_the_rest(self) -> bool:
        return True

    @property
    def outside_bytes(self) -> int:
        return 4 if self.header else 12

    def control(self, layout: lay.Layout) -> tuple[lay.Field, ...]:
        """What it keeps in the arena, in the order of memory."""
        return (
            lay.Field("head_at", 4, present=not self.header),
            lay.Field("holes_at", 4, present=self.when == "lazy"),
            lay.Field("top_at", 4),
            *layout.shared_bounds(True),
        )

    def lay_out(self, layout: lay.Layout, below: Sequence[BasePool], listed: bool) -> dict[str, Any]:
        align = layout.align
        half = min(self.header // 2, 4)
        natural = half in (1, 2, 4) and align % half == 0 and self.header % half == 0
        return {
            "word": {"bytes": half or 4, "natural": int(natural)},
            "header": self.header,
            "align": align,
            "lazy": int(self.when == "lazy"),
            "size_shift": log2(align),
            "most": (1 << 8 * (half or 4)) - 1,
            **layout.place(self.control(layout)),
        }

    def place_shared(self, layout: lay.Layout, values: dict[str, Any]) -> None:
        values["start"] = layout.align_payload(self.header, layout.align)

    # ---- bounds

    def worst_calls(self, values: Mapping[str, Any]) -> AccessBounds:
        raise UnboundedError("closing holes moves any number of objects")

    # ---- what the C struct says

    @classmethod
    def grows_in(cls, laid_out: Any) -> bool:
        return True

    @classmethod
    def most_objects(cls, laid_out: Any) -> int | None:
        most = int(laid_out.compact.most)
        return most if most < MAX_REACH else None

    @classmethod
    def least_blocks(cls, laid_out: Any, sizes: Sizes) -> Sizes:
        return sizes + int(laid_out.compact.header)


@lru_cache(maxsize=65536)
def _canonical(pool: Compact, geometry: Geometry) -> Compact:
    return pool.model_copy(update=pool.request_range(pool.largest_served(geometry)))

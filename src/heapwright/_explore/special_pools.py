"""Special pools for the requests of a program or network, as Mamagkakis et al. 2007 made theirs for 802.11b."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heapwright._recipes.kinds.fixed import Fixed
from heapwright._recipes.limits import MAX_REQUEST
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo.catalogue import load
from heapwright._support.errors import HeapwrightError
from heapwright._traces.profile import FREQUENT_SHARE
from heapwright._traces.validation import CALLOC, FREE

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace
    from heapwright._traffic.packets import PacketTable

SPECIAL_POOLS = "wifi-special-pools"
"""The zoo's recipe, with the paper's own sizes."""


def special_pools(profile: Mapping[str, Any]) -> Recipe:
    """Return `SPECIAL_POOLS` with pools for the sizes of a profile (section 4, A).

    Every size with at least `FREQUENT_SHARE` of the requests has a pool. The others share powers of two, from the
    first that holds the smallest request, and above these a pool for the largest, which no block need exceed: the
    paper's packets of 40 bytes to the MTU of 1500 give 64 to 1024 and 1500.

    Args:
        profile: `name` and `sizes` as a profile has them; of each size `size` and `share` are read.

    Raises:
        HeapwrightError: the profile has no sizes that a heap can serve.
    """
    rows = [row for row in profile["sizes"] if row["size"] <= MAX_REQUEST]
    sizes = [row["size"] for row in rows]
    if not sizes:
        raise HeapwrightError(
            f"{profile['name']}: no request that a heap can serve; give a trace or packet table with requests"
        )
    special = sorted(row["size"] for row in rows if row["share"] >= FREQUENT_SHARE)
    model = load(SPECIAL_POOLS)
    pool = model.pools[0]
    classes = _classes(special, min(sizes), max(sizes), model.align)
    listed = ", ".join(map(str, special)) or "none"
    return model.model_copy(
        update={
            "about": f"Special pools for {profile['name']}: sizes with at least {FREQUENT_SHARE:.0%} of its requests "
            f"({listed}),\npowers of two, and the largest.",
            "pools": (pool.model_copy(update={"sizes": classes}), *model.pools[1:]),
        }
    )


QUEUE = 1000
"""Packets that wait at once in a packet table's queue: Linux 2.6 (2007, section 4)."""


def counted_special_pools(source: Trace | PacketTable, name: str, limit: int | None = None) -> Recipe:
    """`special_pools` for a trace or a packet table, with counts, before another allocator that serves all else.

    Every class has as many blocks as are live at once at its own peak: of a trace's objects, or of a table's packets of
    which ``limit`` wait at once, in order of arrival; None is `QUEUE`. A trace's counts are ``limit`` at most. Classes
    that no request comes to are left out. The recipe is what `heapwright generate --behind malloc` takes.

    Raises HeapwrightError as `special_pools`.
    """
    from heapwright._traces.trace import Trace

    if isinstance(source, Trace):
        from heapwright._traces.profile import profile

        grown = special_pools(profile(source))
    else:
        from heapwright._traffic.profile import profile_packets

        grown = special_pools(profile_packets(source, name))
    pool = grown.pools[0]
    assert isinstance(pool, Fixed)
    peaks = (
        _live_peaks(source, pool.sizes) if isinstance(source, Trace) else _waiting(source, pool.sizes, limit or QUEUE)
    )
    kept = [(size, min(count, limit or count)) for size, count in zip(pool.sizes, peaks, strict=True) if count]
    sizes, counts = zip(*kept, strict=True)
    counted = Fixed(sizes=sizes, counts=counts, find=pool.find, max_size=max(sizes))
    counts_are = "Counts: the most blocks of each class live at once; the allocator behind serves all else."
    about = f"{grown.about}\n{counts_are}\n"
    return grown.model_copy(update={"about": about, "pools": (counted,)})


def _live_peaks(trace: Trace, sizes: Sequence[int]) -> list[int]:
    """Most objects of each class that are live at once; an object is of the class of its allocation."""
    number, objects = trace.objects()
    births, frees = trace.op <= CALLOC, trace.op == FREE
    of_class = np.zeros(objects, np.int64)
    of_class[number[births]] = np.searchsorted(sizes, trace.size[births])
    change = births.astype(np.int64) - frees
    return [int(np.cumsum(np.where(of_class[number] == at, change, 0)).max(initial=0)) for at in range(len(sizes))]


def _waiting(packets: PacketTable, sizes: Sequence[int], limit: int) -> list[int]:
    """Most packets of each class among ``limit`` consecutive ones."""
    bytes_of = np.where(packets.ip_len > 0, packets.ip_len, packets.frame_len)
    which, window = np.searchsorted(sizes, bytes_of), min(limit, len(packets))
    results = []
    for at in range(len(sizes)):
        seen = np.concatenate([[0], np.cumsum(which == at)])
        results.append(int((seen[window:] - seen[:-window]).max(initial=0)))
    return results


def _classes(special: Sequence[int], least: int, largest: int, align: int) -> tuple[int, ...]:
    """The sizes of the pools, rounded up to the alignment as their blocks are."""
    powers = [1 << bits for bits in range((least - 1).bit_length(), (largest - 1).bit_length())]
    return tuple(sorted({max(-(-size // align), 1) * align for size in (*special, *powers, largest)}))

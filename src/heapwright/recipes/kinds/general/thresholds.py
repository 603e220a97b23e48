"""Thresholds of a general pool: what is compared with sizes and decides nothing else, in bytes.

From which remainder a block is split, from which size on it merges, and up to which request the victim serves.
"""

from __future__ import annotations

from typing import Any

from heapwright.recipes.geometry import round_up
from heapwright.recipes.kinds.bounds import Thresholds
from heapwright.recipes.kinds.general.keys import GeneralKeys

NEVER = (1 << 32) - 1
"""The threshold of a pool that never splits: no remainder reaches it."""


def least(pool: GeneralKeys) -> dict[str, Any]:
    """The keys of a canonical pool with each threshold that it has at its least."""
    split = "never" if pool.split == "never" else "always"
    return {"split": split, "coalesce_from": 0, "victim_up_to": int(pool.victim_up_to > 0)}


def put(pool: GeneralKeys, laid_out: Any) -> None:
    """Set a canonical pool's thresholds in the C struct (`struct hw_pool`) of one that differs in nothing else."""
    general = laid_out.general
    smallest = general.min_block
    general.split_least = max(smallest, pool.split) if isinstance(pool.split, int) else smallest
    general.coalesce_from, general.victim_up_to = pool.coalesce_from, pool.victim_up_to


def take(laid_out: Any, checks: bool) -> Thresholds:
    """See `BasePool.take_thresholds`."""
    general = laid_out.general
    split = general.split_least if general.split or general.victim_up_to else NEVER
    merge, merges_all = general.coalesce_from, general.coalesce_from <= general.min_block
    general.coalesce_from = merges_all
    if not general.victim_up_to:
        general.split = 0
    if not general.close_bins:  # else it also tells which bins are close
        general.split_least = 0
    small = None
    if not checks and _is_cut_for_requests(laid_out):
        small = int(laid_out.at_hand)
        laid_out.at_hand, general.victim_up_to = 0, 1
    return Thresholds(int(split), 1 if merges_all else int(merge), small)


def _is_cut_for_requests(laid_out: Any) -> bool:
    """Whether the victim's threshold is only ever compared with requests, and with all in the same way."""
    general = laid_out.general
    if not general.victim_up_to or general.powers:
        return False
    block = max(round_up(general.victim_up_to + general.overhead, 1 << general.unit_shift), general.min_block)
    return bool(laid_out.at_hand == block - general.overhead)

"""Reserve: the arena to give a heap for a load like the recorded one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heapwright._recipes.geometry import round_up

MARGIN = 1.2
"""Ratio of the reserve to the largest need of any recording: another recording of the same load may need that much more
per live byte. docs/robustness.md has the recordings on which it was chosen, and those on which it was judged.
"""

UNIT = 16
"""Bytes of which a reserve is a multiple, for any alignment of the heap."""


def with_margin(most: float) -> int:
    """The reserve for this largest need in bytes; the same for a footprint as for its arena, rounded up."""
    return round_up(math.ceil(round_up(math.ceil(most), UNIT) * MARGIN), UNIT)


def reserved(
    needs: Sequence[int | None], copies: Sequence[int | None], share: float, reach: int | None = None
) -> int | None:
    """The arena to reserve: `MARGIN` over all of the needs, and enough for a share of the copies.

    Args:
        needs: needs of the trace and of each held-out trace, in bytes, one or more; None if no arena serves it.
        copies: needs of the trace's copies, usually none: the margin covers more than copies do.
        share: share of the copies, above 0 and at most 1.
        reach: the largest arena that the heap can use; None if nothing bounds it. The margin ends there.

    Returns None if no arena within the reach serves one of these.
    """
    rising = sorted(math.inf if needed is None else needed for needed in copies)
    rising = rising[: math.ceil(share * len(rising) - 1e-9)]  # 0.7 x 10 is a little more than 7
    most = max(math.inf if needed is None else needed for needed in needs)
    of_copies = max(rising, default=0)
    if max(most, of_copies) > (math.inf if reach is None else reach) or math.inf in (most, of_copies):
        return None
    reserve = max(with_margin(most), round_up(math.ceil(of_copies), UNIT))
    return reserve if reach is None else min(reserve, reach)

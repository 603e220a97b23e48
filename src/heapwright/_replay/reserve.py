"""The arena to reserve for a load like the recorded one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heapwright._recipes.geometry import round_up

MARGIN = 1.2
"""What is reserved, over the most that any recording needed: how much more another one of the same load may, per live
byte. docs/robustness.md has the recordings that it was chosen on, and those that it was judged on.
"""

UNIT = 16
"""A reserve is a multiple of so many bytes, whatever the heap's alignment."""


def with_margin(most: float) -> int:
    """The reserve where the most that any needed is this, in bytes; a footprint and the arena of whole alignment units
    that it takes have one.
    """
    return round_up(math.ceil(round_up(math.ceil(most), UNIT) * MARGIN), UNIT)


def reserved(
    needs: Sequence[int | None], copies: Sequence[int | None], share: float, reach: int | None = None
) -> int | None:
    """The arena to reserve: `MARGIN` over all of the needs, and enough for so large a share of the copies.

    Args:
        needs: what the trace and each of those held out needs, in bytes, one or more; None where no arena serves it.
        copies: the same of the trace's copies; as a rule there are none: they say less than the margin does.
        share: of the copies, above 0 and at most 1.
        reach: the largest arena that the heap can use; None where nothing bounds it. The margin ends there.

    Returns None where one of these is served by no arena, or by none that the heap reaches.
    """
    rising = sorted(math.inf if needed is None else needed for needed in copies)
    rising = rising[: math.ceil(share * len(rising) - 1e-9)]  # 0.7 x 10 is a little more than 7
    most = max(math.inf if needed is None else needed for needed in needs)
    of_copies = max(rising, default=0)
    if max(most, of_copies) > (math.inf if reach is None else reach) or math.inf in (most, of_copies):
        return None
    reserve = max(with_margin(most), round_up(math.ceil(of_copies), UNIT))
    return reserve if reach is None else min(reserve, reach)

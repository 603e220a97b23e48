"""URL-based switching: Table 5.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance", section 6.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright import zoo
from heapwright_papers.case_page import CaseRun
from heapwright_papers.case_study import case
from heapwright_papers.declared import constants

if TYPE_CHECKING:
    from heapwright_papers.page import Page
    from heapwright_papers.readings import Joint

CASE = case("url")


def page(packets: Path | None, progress: Callable[[str], None], joint: Joint | None = None) -> Page:
    """Table 5, its claims, and the best of the full space on networks held out: see `CaseRun`."""
    of = CaseRun(CASE, progress, packets, joint)
    proposed = zoo(CASE.proposed)
    lists, general = proposed.pools
    two = (lists.model_copy(update={"sizes": (8, 20)}), general)
    of.try_heaps(**{constants("url")["TWO_LISTS"]: proposed.model_copy(update={"pools": two})})
    return of.filled({})

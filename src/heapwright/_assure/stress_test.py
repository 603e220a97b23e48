"""Stress tests of heaps: the loops of `heapwright._replay.stress_test`, up to ten million calls each, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heapwright._replay.stress_test import GUARD, StressEffort
from heapwright._replay.stress_test import run_stress_test as run
from heapwright._support.errors import ParameterError
from heapwright._support.subprocesses import processors

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace


@dataclass(frozen=True)
class StressTestResult:
    """The stress test of a heap: loops at constant live bytes, and the trace pass after pass.

    Attributes:
        trace, heap: their names.
        growth_ratio: footprint at the end over that after 100,000 calls, or a tenth of fewer, the worst of the loops.
        worst: that loop.
        best_fit: loop -> what best fit grows by on the same calls.
        stable: whether it grows in each loop by at most 15 %, or 15 % more than best fit, and nothing was refused.
        refused: the loops in which an arena of twice what the live blocks take refused a request, and best fit's did
            not, or not within twice the calls.
        calls: most calls of a loop.
        footprint_bytes: loop -> calls -> bytes of the arena covered by then.
    """

    trace: str
    heap: str
    growth_ratio: float
    worst: str
    best_fit: Mapping[str, float]
    stable: bool
    refused: tuple[str, ...]
    calls: int
    footprint_bytes: Mapping[str, Mapping[int, int]]

    @property
    def lasts(self) -> bool:
        """The name of `stable` in 0.2 and before; warns, and goes with the next release."""
        import warnings

        warnings.warn("StressTestResult: this property is now `stable`", DeprecationWarning, stacklevel=2)
        return self.stable

    @property
    def growth_of_best_fit(self) -> float | None:
        """Growth of best fit in the worst loop, if the heap is stable only by comparison with it; else None."""
        return self.best_fit[self.worst] if self.stable and self.growth_ratio > GUARD else None

    def __repr__(self) -> str:
        info = "stable" if self.stable else "unstable"
        return f"<StressTestResult {self.heap} on {self.trace}: {info}, grows {self.growth_ratio:.3f} x ({self.worst})>"


def effort_of(calls: int) -> StressEffort:
    """Effort of at most `calls` calls a loop; a loop with a flat footprint over a tenfold increase ends after a tenth.

    Raises ParameterError for fewer than 10,000.
    """
    if calls < 10_000:
        raise ParameterError(f"{calls}; must be 10,000 or more", parameter="calls")
    tenth = calls // 10
    return StressEffort(calls=calls, base=min(100_000, tenth), enough=tenth, cramped=tenth)


def stress_result(trace: Trace, label: str, recipe: Recipe, effort: StressEffort, seed: int) -> StressTestResult:
    """Run the stress test of a recipe, which is called `label`, with the sizes and lifetimes of a trace."""
    item = run(trace, recipe, effort, seed=seed, threads=processors())
    info = (
        item.growth_ratio,
        item.worst,
        item.best_fit,
        item.stable,
        tuple(item.refused),
        item.calls,
        item.footprint_bytes,
    )
    return StressTestResult(trace.name, label, *info)

"""The recipes an exploration may try: a default space made for the traces at hand, or one read from SPACE.toml.

The default space has about ten levels of each of the four techniques of Mamagkakis et al. 2006, section 5 (freelists,
fit, splitting, coalescing) in every combination, and families around the designs that measured best. `docs/spaces.md`
describes both, and the format of SPACE.toml.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright.errors import HeapwrightError
from heapwright.explore.families import FREELISTS, ORDINARY, Demand, Levels, default_families
from heapwright.explore.space_file import read_space
from heapwright.recipes.recipe import Recipe
from heapwright.zoo import catalogue

if TYPE_CHECKING:
    from heapwright.traces.trace import Trace


class Space:
    """A finite set of canonical recipes, each once, in a fixed order with the cheap ones to replay first."""

    def __init__(
        self, families: Iterable[Iterable[Recipe]], notes: Sequence[str] = (), *, include_zoo: bool = True
    ) -> None:
        """Gather the zoo, unless it is to be left out, and families; each recipe counts where it comes first."""
        self.include_zoo = include_zoo
        self.notes = tuple(notes)
        self._recipes: dict[str, Recipe] = {}
        for family in [catalogue.staying(), *families] if include_zoo else families:
            for recipe in family:
                canonical = recipe.canonical()
                self._recipes.setdefault(canonical.hash, canonical)

    @classmethod
    def default(cls, traces: Sequence[Trace], align: int = 4) -> Space:
        """Build the default space for traces: at least 10,000 recipes, unless they ask for too few sizes."""
        return cls.tailored(Demand.of(traces), align)

    @classmethod
    def tailored(cls, demand: Demand, align: int = 4) -> Space:
        """Build the default space for a demand; `notes` says so where it has fewer than 10,000 recipes."""
        levels = Levels(demand, align)
        space = cls(default_families(levels))
        if len(space) < ORDINARY:
            space.notes = (
                f"{len(space):,} recipes instead of {ORDINARY:,}: the traces ask for only {len(levels.frequent)} "
                f"sizes of blocks, so there are {len(levels.freelists)} levels of freelists instead of {FREELISTS + 1}",
            )
        return space

    @classmethod
    def load(cls, path: str | Path, traces: Sequence[Trace] = ()) -> Space:
        """Read SPACE.toml: axes of values for recipe keys, multiplied out.

        `traces` are needed where the file says `default = true` or `most_frequent`. Combinations that contradict
        themselves are left out, and `notes` says how many. Raises HeapwrightError for a file, key or value that
        cannot be used, OSError where the file cannot be read.
        """
        families, notes, include_zoo = read_space(Path(path), traces)
        space = cls(families, notes, include_zoo=include_zoo)
        if not len(space):
            left_out = space.notes[0] if space.notes else "valid: [[pool]] tables with axes"
            raise HeapwrightError(f"{path}: no recipes; {left_out}")
        return space

    def recipes(self) -> Iterator[Recipe]:
        """Yield every recipe once: canonical, distinct by hash, always in the same order."""
        return iter(self._recipes.values())

    def __repr__(self) -> str:
        return f"<Space: {len(self):,} recipes>"

    def __len__(self) -> int:
        return len(self._recipes)

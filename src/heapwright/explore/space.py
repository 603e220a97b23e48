"""The recipes an exploration may try: a default space made for the traces at hand, or one read from SPACE.toml.

The default space has about ten levels of each of the four techniques of Mamagkakis et al. 2006, section 5 (freelists,
fit, splitting, coalescing) in every combination, and families around the designs that measured best. `docs/spaces.md`
describes both, and the format of SPACE.toml.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright.errors import HeapwrightError
from heapwright.explore.families import FREELISTS, ORDINARY, Demand, Levels, default_families
from heapwright.explore.space_file import read_space
from heapwright.recipes.recipe import Recipe
from heapwright.zoo import catalogue

if sys.version_info >= (3, 11):
    pass
else:
    pass

if TYPE_CHECKING:
    from heapwright.traces.trace import Trace


class Space:
    """A finite set of canonical recipes, each once, in a fixed order with the cheap ones to replay first."""

    def __init__(self, families: Iterable[tuple[str, Iterable[Recipe]]], notes: Sequence[str] = ()) -> None:
        """Gather named families; a recipe that an earlier family has is left out of a later one."""
        self._recipes: dict[str, Recipe] = {}
        self._sizes: Counter[str] = Counter()
        for title, family in families:
            for recipe in family:
                canonical = recipe.canonical()
                if self._recipes.setdefault(canonical.hash, canonical) is canonical:
                    self._sizes[title] += 1
        self.notes = tuple(notes)

    @classmethod
    def default(cls, traces: Sequence[Trace], align: int = 4) -> Space:
        """Build the default space for traces: at least 10,000 recipes, unless they ask for too few sizes."""
        return cls.tailored(Demand.of(traces), align)

    @classmethod
    def tailored(cls, demand: Demand, align: int = 4) -> Space:
        """Build the default space for a demand; `notes` says so where it has fewer than 10,000 recipes."""
        levels = Levels(demand, align)
        space = cls([("zoo", catalogue.staying()), *default_families(levels)])
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
        space = cls(*read_space(Path(path), traces))
        if not len(space):
            left_out = space.notes[0] if space.notes else "valid: [[pool]] tables with axes"
            raise HeapwrightError(f"{path}: no recipes; {left_out}")
        return space

    def recipes(self) -> Iterator[Recipe]:
        """Yield every recipe once: canonical, distinct by hash, always in the same order."""
        return iter(self._recipes.values())

    def random(self, n: int, seed: int) -> list[Recipe]:
        """Draw `n` different recipes, or all where there are fewer; the same ones for the same seed."""
        recipes = list(self._recipes.values())
        return random.Random(seed).sample(recipes, min(n, len(recipes)))

    def describe(self) -> str:
        """Say in lines of text how many recipes there are, in which families, and what was left out."""
        families = (f"  {count:6,} {title}" for title, count in self._sizes.items())
        return "\n".join([f"{len(self):,} recipes", *families, *self.notes])

    def __repr__(self) -> str:
        return f"<Space: {len(self):,} recipes>"

    def __len__(self) -> int:
        return len(self._recipes)


# ---- The default space ---------------------------------------------------------------------------------------------


# ---- SPACE.toml ----------------------------------------------------------------------------------------------------

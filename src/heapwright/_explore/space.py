"""Design space, the recipes that an exploration may try: a default one made for the traces, or one from SPACE.toml.

The default space has about ten levels of each of the four techniques of Mamagkakis et al. 2006, section 5 (freelists,
fit, splitting, coalescing) in every combination, and families around the designs that measured best. `docs/spaces.md`
describes both, and the format of SPACE.toml.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heapwright._explore.default_space import FREELISTS, ORDINARY, Demand, Levels, default_families
from heapwright._explore.space_file import NEEDED, Axes, Choice, read_space
from heapwright._recipes.policy import BeyondReachError, policy, structure_of
from heapwright._recipes.pools import Pool
from heapwright._recipes.recipe import ALIGNMENTS, ContradictionError, Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._studies.tables import digest_of
from heapwright._support.errors import HeapwrightError, ParameterError

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace


DEFAULT_ALIGN = 8
"""Alignment of malloc in 32-bit ABIs."""


class TargetPlatform(Protocol):
    """A platform that recipes are explored for; `heapwright._platforms.catalogue.Platform` is one."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def align(self) -> int:
        """The least alignment that it needs, in bytes."""

    def adapted(self, recipe: Recipe) -> Recipe:
        """The recipe as it is generated there. Raises HeapwrightError if it cannot be used."""

    def sentence(self) -> str:
        """What recipes get there."""


class AnySpace(Protocol):
    """Interface of a space for an exploration; the attributes are those of `Space`."""

    zoo: dict[str, Recipe]
    unranked: list[Recipe]

    @property
    def align(self) -> int:
        """Alignment in bytes of every recipe."""

    @property
    def platform(self) -> TargetPlatform | None:
        """The platform for which every recipe is as it is generated; None if for none."""

    @property
    def text(self) -> str | None:
        """The SPACE.toml from which it was made, if any."""

    @property
    def digest(self) -> str:
        """Digest that identifies the space."""

    def recipes(self) -> Iterator[Recipe]:
        """Yield every recipe once: canonical, distinct by hash, always in the same order."""

    def __len__(self) -> int: ...


def adapted(recipe: Recipe, platform: TargetPlatform | None) -> Recipe | None:
    """The canonical recipe as it is generated for a platform; None if that cannot use it."""
    if platform is None:
        return recipe.canonical()
    try:
        made = platform.adapted(recipe)
        policy(made)
        return made.canonical()
    except HeapwrightError:
        return None


def align_for(platform: TargetPlatform | None, align: int | None) -> int:
    """The alignment of a space: by default its platform's. Raises ParameterError for less than that needs."""
    least = DEFAULT_ALIGN if platform is None else platform.align
    if platform is not None and align is not None and align < least:
        raise ParameterError(f"{align}: {platform.name} needs {least} or more", parameter="align")
    return least if align is None else align


class WideSpace:
    """Space too large to try all of: its axes and the reference allocators; the attributes are those of `Space`.

    With `default` the default space joins, as far as a search comes (`heapwright._explore.local_search`).

    A genome, int64[axes], selects a value of each axis. Of contradictory keys the first in the file's order counts, and
    later ones stay at their defaults: so a key that matters only together with another does no harm.
    """

    def __init__(
        self, axes: Axes, include_zoo: bool, default: bool = False, platform: TargetPlatform | None = None
    ) -> None:
        """Take the axes, and the reference allocators at their alignment unless they are to be left out.

        Raises HeapwrightError for a value that a key cannot have.
        """
        for axis, values in enumerate(axes.values):
            for value in values:
                with suppress(ContradictionError):
                    axes.recipe([value if at == axis else others[0] for at, others in enumerate(axes.values)])
        few = Space([], align=axes.align, include_zoo=include_zoo, platform=platform)
        self.platform = few.platform
        self.align, self.zoo, self.unranked = axes.align, few.zoo, few.unranked
        self.notes = (f"{axes.count:,} combinations are too many to try all: they are searched", *few.notes)
        self.axes, self.default = axes, default
        self.text: str | None = None
        self.sizes = [len(values) for values in axes.values]
        self._made: dict[tuple[int, ...], Recipe | None] = {}

    @property
    def digest(self) -> str:
        """Digest that identifies the space: its axes, and whether the default space joins."""
        info = [(index, key, value) for axis in self.axes.values for index, key, value in axis]
        joins = ["default"] if self.default else []
        joins += [self.platform.name] if self.platform else []
        return digest_of([repr((self.axes.kinds, self.align, info)), *joins, *self.zoo])

    def recipes(self) -> Iterator[Recipe]:
        """Yield the reference allocators: a search chooses from the rest."""
        return (recipe.canonical() for recipe in self.zoo.values())

    def __len__(self) -> int:
        return self.axes.count + len(self.zoo)

    def recipe(self, genome: Iterable[int]) -> Recipe | None:
        """The canonical recipe of a genome; None if all of its values contradict one another."""
        key = tuple(map(int, genome))
        if key not in self._made:
            choice = [values[at] for values, at in zip(self.axes.values, key, strict=True)]
            result = self._valid(choice) or self._repaired(choice)
            self._made[key] = adapted(result, self.platform) if result and reaches(result) else None
        return self._made[key]

    def _valid(self, choice: Choice) -> Recipe | None:
        try:
            return self.axes.recipe(choice)
        except ContradictionError:
            return None

    def _repaired(self, choice: Choice) -> Recipe | None:
        """The recipe with each of the keys, in order, that does not contradict those before it."""
        kept = [item for item in choice if item[1] in NEEDED]
        result = self._valid(kept)
        for item in choice:
            if item[1] not in NEEDED:
                more = [other for other in choice if other in kept or other is item]
                if (recipe := self._valid(more)) is not None:
                    kept, result = more, recipe
        return result

    def nearest(self, recipe: Recipe) -> NDArray[np.int64]:
        """The genome nearest to a recipe: the values of its pools of the same kinds, the next ones, or the first."""
        pools = list(recipe.canonical().pools)
        matched: list[Pool | None] = []
        for kind in self.axes.kinds:
            result = next((pool for pool in pools if pool.kind == kind), None)
            matched.append(result)
            if result:
                pools.remove(result)
        genome = np.zeros(len(self.sizes), np.int64)
        for axis, values in enumerate(self.axes.values):
            index, key, _ = values[0]
            wanted = _value(recipe if index is None else matched[index], key)
            genome[axis] = _nearest(wanted, [value for _, _, value in values])
        return genome


def reaches(recipe: Recipe) -> bool:
    """Whether links and headers reach what the recipe itself keeps in the arena."""
    try:
        structure_of(recipe)
    except BeyondReachError:
        return False
    return True


def _value(of: Recipe | Pool | None, key: str) -> Any:
    if key == "most_frequent":
        return len(getattr(of, "sizes", None) or ())
    return getattr(of, key, None)


def _nearest(wanted: Any, values: Sequence[Any]) -> int:
    if wanted in values:
        return list(values).index(wanted)
    numbers = {at: value for at, value in enumerate(values) if isinstance(value, int | float)}
    if isinstance(wanted, int | float) and numbers:
        return min(numbers, key=lambda at: abs(numbers[at] - wanted))
    return 0


class Space:
    """Finite set of canonical recipes, each once, in an order of its own with the cheap ones to replay first.

    Attributes:
        align: alignment in bytes of every recipe, including reference allocators.
        zoo: the reference allocators at this alignment, by id.
        platform: the platform for which every recipe is as it is generated; None if for none.
        unranked: reference allocators at another alignment of their own, unchanged; they are not part of the space.
        text: the SPACE.toml that makes it for the same traces; None if it was made from recipes.
    """

    def __init__(
        self,
        families: Iterable[Iterable[Recipe]],
        notes: Sequence[str] = (),
        *,
        align: int = DEFAULT_ALIGN,
        include_zoo: bool = True,
        move_zoo: bool = True,
        platform: TargetPlatform | None = None,
    ) -> None:
        """Gather the reference allocators, unless they are to be left out, and families; each recipe once.

        Without `move_zoo` the reference allocators keep their own alignments. Raises HeapwrightError if a recipe of a
        family has another alignment.
        """
        if align not in ALIGNMENTS:
            raise ParameterError(f"{align}: no alignment; valid: {', '.join(map(str, ALIGNMENTS))}", parameter="align")
        self.platform = platform
        self.align = align_for(self.platform, align)
        self._notes = tuple(notes)
        self._levels: Levels | None = None
        self.text: str | None = None
        self.zoo: dict[str, Recipe] = {}
        self.unranked: list[Recipe] = []
        if include_zoo:
            self._add_zoo(move_zoo)
        self._evaluate_batch = {id: recipe.canonical() for id, recipe in self.zoo.items()}
        self._is_made = False
        for family in families:
            for recipe in family:
                if recipe.align != align:
                    raise HeapwrightError(
                        f"{recipe.name or recipe.hash}: has align {recipe.align}, and the space {align}; a study is of "
                        "one alignment, and Recipe.at_alignment moves a recipe"
                    )
                self._add(recipe)

    def _add(self, recipe: Recipe) -> None:
        if (canonical := adapted(recipe, self.platform)) is not None:
            self._evaluate_batch.setdefault(canonical.hash, canonical)

    @property
    def _recipes(self) -> dict[str, Recipe]:
        """The recipes by id; the recipes of a default space are made on first use, which takes a while."""
        if self._levels is not None and not self._is_made:
            for recipe in chain.from_iterable(default_families(self._levels)):
                self._add(recipe)
            self._is_made = True
        return self._evaluate_batch

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about recipes that were left out."""
        notes = self._notes if self.platform is None else (*self._notes, self.platform.sentence())
        if self._levels is None or len(self) >= ORDINARY:
            return notes
        frequent, lists = len(self._levels.frequent), len(self._levels.freelists)
        return (
            *notes,
            f"{len(self):,} recipes instead of {ORDINARY:,}: the traces ask for only {frequent} sizes of blocks, so "
            f"there are {lists} levels of freelists instead of {FREELISTS + 1}",
        )

    def _add_zoo(self, move: bool) -> None:
        """Add the reference allocators. Of recipes that are equal after moving, an unmoved one keeps the name.

        An allocator that cannot be moved is shown but is not part of the space.
        """
        zoo = catalogue.staying()
        for recipe in sorted(zoo, key=lambda recipe: move and recipe.align != self.align):
            try:
                moved = recipe.at_alignment(self.align) if move else recipe
                moved = moved if self.platform is None else self.platform.adapted(moved)
                policy(moved)
            except HeapwrightError:
                continue
            self.zoo.setdefault(moved.hash, moved)
        self.unranked = [recipe for recipe in zoo if move and recipe.align != self.align and self.platform is None]

    @classmethod
    def default(
        cls,
        traces: Sequence[Trace],
        align: int | None = None,
        *,
        move_zoo: bool = True,
        platform: TargetPlatform | None = None,
    ) -> Space:
        """Build the default space for traces: at least 10,000 recipes, unless they request too few sizes."""
        return cls.tailored(Demand.of(traces), align, move_zoo=move_zoo, platform=platform)

    @classmethod
    def tailored(
        cls, demand: Demand, align: int | None = None, *, move_zoo: bool = True, platform: TargetPlatform | None = None
    ) -> Space:
        """Build the default space for a demand; `notes` says so if it has fewer than 10,000 recipes."""
        align = align_for(platform, align)
        space = cls((), align=align, move_zoo=move_zoo, platform=platform)
        space._levels = Levels(demand, align)
        space.text = None if not move_zoo else f"default = true\nalign = {align}\n"
        return space

    @classmethod
    def load(
        cls,
        path: str | Path,
        traces: Sequence[Trace] = (),
        align: int | None = None,
        *,
        platform: TargetPlatform | None = None,
    ) -> Space | WideSpace:
        """Read SPACE.toml: axes of values for recipe keys, multiplied out.

        `traces` are needed if the default space is part of it (the file has no pools, or says `default = true`) or if
        the file uses `most_frequent`. `align` is for a file without one; both absent mean 8, or the
        platform's. Contradictory combinations
        are left out, and `notes` counts them. More than `MAX_EXHAUSTIVE` combinations are a `WideSpace`. Raises
        HeapwrightError for a file, key or value that cannot be used, or for another alignment in the file; OSError if
        the file cannot be read.
        """
        read = read_space(Path(path), traces, align, align_for(platform, None))
        text = Path(path).read_text(encoding="utf-8")
        if read.wide:
            wide = WideSpace(read.wide, read.include_zoo, read.default, platform)
            wide.text = text
            return wide
        space = cls(read.families, read.notes, align=read.align, include_zoo=read.include_zoo, platform=platform)
        if not len(space):
            left_out = space.notes[0] if space.notes else "valid: [[pool]] tables with axes"
            raise HeapwrightError(f"{path}: no recipes; {left_out}")
        space.text = text
        return space

    @property
    def digest(self) -> str:
        """Digest that identifies the space: of the sorted ids of its recipes."""
        return digest_of(self._recipes)

    def recipes(self) -> Iterator[Recipe]:
        """Yield every recipe once: canonical, distinct by hash, always in the same order."""
        return iter(self._recipes.values())

    def __repr__(self) -> str:
        return f"<Space: {len(self):,} recipes>"

    def __len__(self) -> int:
        return len(self._recipes)

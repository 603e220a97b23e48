"""How the sentences of Mamagkakis et al. 2006 can be read where they allow several meanings: `readings/*.toml`.

A file a sentence: `where` it stands, what it leaves `open`, and the readings, of which `leads` names the one that the
pages follow: `likeness` says how it is chosen. A reading has a `name`, what it `says`, the paper's own `words` that it
rests upon, and in `heaps` a recipe for each row of the paper's tables that it is about: whole, or one of the `zoo` with
other keys and those of its last pool in `general`; the row of the proposed allocator is that of each page. No reading
has a size in bytes that is one application's. `fitted` lists what was chosen to match one of the paper's tables, and is
no evidence for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

import heapwright as hw
from heapwright import HeapwrightError, Recipe, zoo
from heapwright_papers.documents import tables


@dataclass(frozen=True)
class Reading:
    """One meaning of a sentence."""

    name: str
    says: str
    words: Sequence[str]
    heaps: Mapping[str, Mapping[str, Any]]
    fitted: str = ""
    against: str = ""
    """What the allocator's row of Table 1 says against it."""

    def recipe(self, row: str, proposed: str) -> Recipe:
        """What it makes of a row of the paper's tables; `proposed` is the zoo's name of the page's own allocator."""
        given = dict(self.heaps[row])
        if "pool" in given:
            return Recipe.from_dict(given, self.name)
        general = given.pop("general", {})
        recipe: Recipe = zoo(given.pop("zoo", proposed))
        last = recipe.pools[-1]
        if row == "Proposed" and isinstance(last, hw.pools.General) and not last.boundary_tags:
            return recipe  # without tags it merges along its list in order of address in every reading
        return with_general(recipe.model_copy(update=given), **general)


def with_general(recipe: Recipe, **changes: Any) -> Recipe:
    """A recipe with these keys of its last pool, a general one, replaced."""
    *front, general = recipe.pools
    return recipe.model_copy(update={"pools": (*front, general.model_copy(update=changes))})


@dataclass(frozen=True)
class Sentence:
    """Words of the paper that can be read in several ways."""

    where: str
    open: str
    readings: tuple[Reading, ...]
    leads: str
    fitted: str = ""
    without: Mapping[str, str] = field(default_factory=dict)
    """By application the reading that is chosen without it, where that is another."""

    @property
    def leading(self) -> Reading:
        """The reading that the pages follow."""
        return self.named(self.leads)

    def named(self, name: str) -> Reading:
        """The reading of this name."""
        return next(reading for reading in self.readings if reading.name == name)


Joint = tuple[Reading, ...]
"""One reading of each sentence."""
_FILES = ("windows-ce", "windows-xp", "linux", "best-fit", "main-pool")


@cache
def sentences() -> tuple[Sentence, ...]:
    """All of them."""
    results = [dict(tables(f"readings/{name}")) for name in _FILES]
    return tuple(Sentence(readings=tuple(Reading(**r) for r in item.pop("reading")), **item) for item in results)


def leading() -> Joint:
    """What the pages follow."""
    return tuple(item.leading for item in sentences())


def chosen_without(page: str) -> Joint:
    """What is chosen on the other two applications: an application's own page is judged by it."""
    return tuple(item.named(item.without.get(page, item.leads)) for item in sentences())


def alternatives() -> dict[str, Joint]:
    """By the name of a reading, the leading ones with this in the place of one; the names of these lead to all."""
    return {
        reading.name: tuple(reading if item is sentence else item.leading for item in sentences())
        for sentence in sentences()
        for reading in sentence.readings
    }


def read_as(name: str) -> Joint:
    """The leading readings with this one in the place of that of its sentence. Raises HeapwrightError for no such."""
    known = alternatives()
    if name not in known:
        raise HeapwrightError(f"{name}: no reading; valid: {', '.join(known)}", parameter="reading")
    return known[name]


def all_joint() -> list[Joint]:
    """Every combination of readings."""
    return list(product(*(sentence.readings for sentence in sentences())))


def rows_of(joint: Joint) -> dict[str, Reading]:
    """By row of the paper's tables, the reading that is about it."""
    return {row: reading for reading in joint for row in reading.heaps}

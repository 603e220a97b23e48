"""A recipe that was tried, with what it came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heapwright.replay.metrics import Value


@dataclass(frozen=True)
class Candidate:
    """A recipe with its metrics over all traces: id, and the zoo's name where it is one of the zoo's."""

    id: str
    zoo_name: str | None
    metrics: dict[str, Value]

    @property
    def label(self) -> str:
        """The zoo's name, or the id."""
        return self.zoo_name or self.id

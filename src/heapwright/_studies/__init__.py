"""What is stored of explorations: studies, merged, extended, exported, and their numbers made again."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from heapwright._replay.metrics import Value


@dataclass(frozen=True)
class Candidate:
    """A recipe with its metrics over all traces: id, and its name if it is a reference allocator."""

    id: str
    zoo_name: str | None
    metrics: dict[str, Value]

    @property
    def label(self) -> str:
        """The zoo's name, or the id."""
        return self.zoo_name or self.id

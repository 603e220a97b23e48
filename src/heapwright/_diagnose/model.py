"""A diagnosis: what is wrong, how certain that is, the numbers that show it, and what cures it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from heapwright._support import notebook

Kind = Literal["leak", "wrong memory", "too small", "fragmentation", "burst", "nothing wrong", "not enough data"]
Confidence = Literal["sure", "likely", "inconclusive"]

SEVERITY: tuple[Kind, ...] = (
    "leak",
    "wrong memory",
    "too small",
    "fragmentation",
    "burst",
    "nothing wrong",
    "not enough data",
)
"""What is said first if several memories have something wrong: a leak also causes all that stands behind it."""

INCONCLUSIVE: Final = "inconclusive"
"""More than one answer is possible."""

ORDER: tuple[Confidence, ...] = ("sure", "likely", INCONCLUSIVE)


@dataclass(frozen=True)
class Cure:
    """A step that may cure the fault.

    Attributes:
        text: what to do.
        before: bytes that the heap needs as it is; None if it was not tried.
        after: bytes that are needed with the step, static buffers and pools counted; None if it was not tried.
        command: the command that carries it out or shows more; empty if there is none.
    """

    text: str
    before: int | None = None
    after: int | None = None
    command: str = ""


@dataclass(frozen=True)
class Picture:
    """What is drawn of a finding: lines over time, or the blocks of a snapshot.

    Attributes:
        title: what one sees.
        x, y: titles of the axes.
        rows: `{"line", "x", "y"}` of lines; `{"state", "start", "end"}` of blocks.
    """

    title: str
    x: str
    y: str
    rows: Sequence[Mapping[str, Any]]

    @property
    def is_map(self) -> bool:
        """Whether the rows are blocks."""
        return bool(self.rows) and "start" in self.rows[0]


@dataclass(frozen=True)
class Finding:
    """What one memory, or one trace, shows.

    Attributes:
        memory: its name; empty if the file names none.
        kind: what is wrong.
        confidence: "sure" only if the rule cannot be wrong on such data.
        sentence: the answer in one sentence.
        heads, rows: the numbers that show it.
        cures: the steps that may cure it, that of fewest bytes first if they were tried.
        record_next: what to record for a better answer; empty if that is not needed.
        picture: what to draw; None if there is nothing.
    """

    memory: str
    kind: Kind
    confidence: Confidence
    sentence: str
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    cures: tuple[Cure, ...] = ()
    record_next: str = ""
    picture: Picture | None = field(default=None, repr=False)

    @property
    def rank(self) -> tuple[int, int]:
        """Sort key: the most severe findings first, of these the most certain."""
        return SEVERITY.index(self.kind), ORDER.index(self.confidence)


@dataclass(frozen=True)
class Diagnosis:
    """What files show of a heap in trouble.

    Attributes:
        files: what each file is, in words.
        findings: what each memory or trace shows, the most severe first.
        notes: what the files have lost, or do not record.
    """

    files: Mapping[str, str]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def finding(self) -> Finding:
        """The most severe one."""
        return self.findings[0]

    @property
    def kind(self) -> Kind:
        """What is wrong: leak, wrong memory, too small, fragmentation, burst, nothing wrong, or not enough data."""
        return self.finding.kind

    @property
    def confidence(self) -> Confidence:
        """How certain that is: one of `ORDER`."""
        return self.finding.confidence

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        return self.finding.sentence

    def _repr_html_(self) -> str:
        info = {
            f"{at}. {item.memory}".strip(): f"{item.kind} ({item.confidence})"
            for at, item in enumerate(self.findings, 1)
        }
        return notebook.pairs(self.sentence, info)


def number(value: float) -> str:
    """A number of bytes or elements as people read it."""
    return f"{value:,.0f}"

"""What becomes of a statement of a paper here: it holds, within noise or not at all, and if not, why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """How a statement stands; the values are the words on the pages."""

    HOLDS = "holds"
    NOISE = "holds within noise"
    LARGER = "larger than stated"
    FAILS = "does not hold"
    SHOWN = "shown"
    FITTED = "fitted"
    SET_UP = "set-up"
    NOT_COMPARABLE = "not comparable"
    NOT_TESTED = "not tested"


DECIDED = (Kind.HOLDS, Kind.NOISE, Kind.LARGER, Kind.FAILS)
"""The kinds that answer a claim; the others say where a table is shown, what was chosen to match it, and the like."""


class Cause(Enum):
    """Why a statement does not hold here."""

    TRAFFIC = "our traffic differs"
    READING = "the paper can be read in another way"
    CHOICE = "our choice where the paper is silent"
    CONTRADICTION = "the paper contradicts itself"
    UNEXPLAINED = "not explained"


@dataclass(frozen=True)
class Verdict:
    """A verdict; `cause` is there exactly where it does not hold.

    `why` is one sentence with the number that shows the cause, the spread of ours with the number of seeds, or what
    was missing to test it.
    """

    kind: Kind
    cause: Cause | None = None
    why: str = ""


HOLDS = Verdict(Kind.HOLDS)
LARGER = Verdict(Kind.LARGER)
"""The order is the paper's, and the difference is beyond the band that the page prints."""

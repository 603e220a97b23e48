"""ESP-IDF's heap_trace_dump: whether it is a trace, or what is left of one (leaks mode, a buffer that overflowed)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

from heapwright._diagnose.model import INCONCLUSIVE, Cure, Finding, number

_RECORD = re.compile(
    r"(\d+) bytes \(@ 0x[0-9a-f]+(?:, ([^)]*))?\) allocated CPU \d ccount 0x[0-9a-f]+(?: caller (\S+))?"
)

LEAST_DUMPS = 3
"""Dumps with the same records that make a leak likely."""


@dataclass(frozen=True)
class EspDump:
    """A dump and its summary; a number that the summary lacks is None.

    Attributes:
        records: size, memory and caller of each record.
        leaks_mode: whether the tool removed what was freed.
        allocations, frees: how many there were while it ran; of several dumps the sum.
        overflowed: whether its buffer was too small.
        dumps: how many there are.
    """

    records: tuple[tuple[int, str, str], ...]
    leaks_mode: bool
    allocations: int | None
    frees: int | None
    overflowed: bool
    dumps: int = 1

    @classmethod
    def of(cls, lines: list[str]) -> EspDump | None:
        """The dump in a text; None if there is none."""
        records = [
            (int(match[1]), match[2] or "", (match[3] or "").rstrip(","))
            for line in lines
            if (match := _RECORD.search(line))
        ]
        if not records:
            return None
        text = "\n".join(lines)
        counts = [re.findall(rf"total {what}: (\d+)", text) for what in ("allocations", "frees")]
        allocations, frees = (sum(map(int, found)) if found else None for found in counts)
        leaks = bool(re.search(r"Mode: Heap Trace Leaks|bytes 'leaked' in trace", text))
        overflowed = bool(re.search(r"(?i)buffer has overflow", text))
        return cls(tuple(records), leaks, allocations, frees, overflowed, max(1, len(counts[0])))

    @property
    def is_no_trace(self) -> bool:
        """Whether calls are missing: they were removed when they were freed, or there was no room for them."""
        return self.leaks_mode or self.overflowed or (self.allocations or 0) > len(self.records)

    @property
    def alive(self) -> int | None:
        """Allocations that were not freed while it ran; None if the summary does not count them."""
        return None if self.allocations is None or self.frees is None else self.allocations - self.frees

    def finding(self) -> Finding:
        """What it shows all the same."""
        groups = Counter(self.records)
        rows = tuple(
            (number(size), memory or "-", caller or "-", number(count), number(size * count))
            for (size, memory, caller), count in groups.most_common(10)
        )
        heads = ("size, B", "memory", "caller", "not freed" if self.leaks_mode else "records", "bytes")
        if self.leaks_mode and not self.overflowed and len(self.records) == self.alive:
            return replace(self._leak(*groups.most_common(1)[0]), heads=heads, rows=rows)
        return replace(self._not_enough(), heads=heads, rows=rows)

    def _leak(self, record: tuple[int, str, str], count: int) -> Finding:
        """The finding of a dump of all that was not freed, most often this record."""
        size, _, caller = record
        by = f" from {caller}" if caller else ""
        each = self.dumps > 1 and count % self.dumps == 0
        return Finding(
            "",
            "leak",
            "likely" if each and self.dumps >= LEAST_DUMPS else INCONCLUSIVE,
            f"{number(len(self.records))} of {number(self.allocations or 0)} allocations were not freed before the "
            f"dump, most often {number(size)} B{by} ({number(count)} times"
            f"{f', in {self.dumps} dumps' if each else ''}): a leak if they are not meant to stay",
            cures=(Cure(f"look at what allocates {number(size)} B{by}"),),
            record_next="two dumps, the second later under the same load: what leaks has more records in it",
        )

    def _not_enough(self) -> Finding:
        """The finding of a dump that lacks records."""
        of = f" of {number(self.allocations)}" if self.allocations else ""
        kept = f"{number(len(self.records))}{of} allocations"
        why = "it keeps only what was not freed" if self.leaks_mode else "not all records had room"
        lost = ", and its buffer overflowed" if self.overflowed else ""
        freed = f" ({number(self.alive)} were not freed)" if self.alive is not None else ""
        return Finding(
            "",
            "not enough data",
            "sure",
            f"This heap trace of ESP-IDF is no trace: {why}{lost}, {kept}{freed} are in it",
            record_next="the same with HEAP_TRACE_ALL and a buffer for every record; or, to find a leak, leaks mode "
            "with a buffer that does not overflow",
        )

"""What a log says it has lost: events, records, samples, parts of a buffer, frames on the wire."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Loss:
    """Something that is missing in a log: in words, and how many events, if it says so."""

    text: str
    events: int | None


_FORMS = (
    (re.compile(r"\[LOST (\d+) EVENTS\]"), "{} events were lost"),  # ftrace
    (re.compile(r"PERF_RECORD_LOST(?:_SAMPLES)?\W+(?:lost\s+)?(\d+)?"), "{} events were lost"),
    (
        re.compile(r"(?i)\b(?:lost|dropped|discarded)\D{0,10}?(\d+) (?:\w+ )?(?:event|record|sample|chunk)s?\b"),
        "{} events were lost",
    ),
    (
        re.compile(r"(?i)\b(\d+) (?:\w+ )?(?:event|record|sample)s? (?:were |was )?(?:lost|dropped|discarded|missed)"),
        "{} events were lost",
    ),
    (re.compile(r"(?i)buffer has (over(?:flow|run)\w*)"), "the buffer overflowed"),
    (re.compile(r"(?i)\boverflow packet"), "events were lost in an overflow"),  # SystemView
    (re.compile(r"--- (\d+) messages dropped ---"), "{} messages were dropped"),  # Zephyr
)
_SUSPECT = re.compile(r"(?i)lost|drop|discard|missed|overfl|overrun|entries-in-buffer")
_ENTRIES = re.compile(r"entries-in-buffer/entries-written: (\d+)/(\d+)")


def losses_in(lines: list[str]) -> list[Loss]:
    """Every loss that a text reports, added up by kind."""
    counts: dict[str, int] = {}
    open_: set[str] = set()
    entries = 0
    for line in lines:
        if not _SUSPECT.search(line):
            continue
        if match := _ENTRIES.search(line):
            entries = int(match[2]) - int(match[1])
            continue
        for pattern, text in _FORMS:
            if match := pattern.search(line):
                found = match[1] if match.groups() else None
                if found and found.isdigit():
                    counts[text] = counts.get(text, 0) + int(found)
                else:
                    open_.add(text)
                break
    result = [Loss(text.format(f"{count:,}"), count) for text, count in counts.items()]
    result += [Loss(text.replace("{} ", ""), None) for text in sorted(open_) if text not in counts]
    if entries > 0 and not counts:
        result.append(Loss(f"{entries:,} events were overwritten before they were read", entries))
    return result

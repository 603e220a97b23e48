"""Lines in which tools report lost, dropped, suppressed or repeated events: a log with one is not complete."""

from __future__ import annotations

import re

_WORDS = re.compile(rb"(?i)lost|dropped|discard|overflow|overrun|overw|entries-written|suppressed|repeated|missed")
"""What any such line holds; all other lines are passed over after this one search."""

_THINGS = rb"(?:\w+ )?(?:record|entrie|event|call|sample|chunk)s?\b"
"""Parts of a log; packets and messages are lost by networks, too."""
_GONE = rb"(?:lost|dropped|discarded|overwritten|missed)"
_FORMS = (
    ("ftrace", rb"CPU:? ?\d+ \[LOST (\d+) EVENTS\]"),
    ("trace-cmd", rb"\[(\d+) EVENTS (?:LOST|DROPPED)\]"),
    ("trace-cmd", rb"CPU \d+: (\d+) (?:dropped events|lost events|events lost)"),
    ("perf", rb"PERF_RECORD_LOST\w*.{0,80}?lost:? ?(\d+)"),
    ("perf", rb"PERF_RECORD_LOST()"),
    ("babeltrace", rb"[Dd]iscarded (\d+) (?:events|packets)"),
    ("babeltrace", rb"may have discarded (?:events|packets)()"),
    ("Zephyr's log", rb"--- (\d+) messages dropped ---"),
    ("syslog", rb"(?:last )?message repeated (\d+) times"),
    ("syslog", rb"(\d+) callbacks suppressed"),
    ("journald", rb"Suppressed (\d+) messages"),
    ("a ring", rb"(?i)(\d+) " + _THINGS + rb" (?:were |was )?" + _GONE),
    ("a ring", rb"(?i)\b" + _GONE + rb"\D{0,10}?(\d+) " + _THINGS),
    ("SystemView", rb"(?i)\boverflow packet()"),
    ("a ring", rb"(?i)(?:buffer|ring|queue|fifo|trace) (?:has )?over(?:flow|run)()"),
)
FORMS = tuple((tool, re.compile(form)) for tool, form in _FORMS)
"""Tools, and what they print; the group holds how many events are lost. The first that matches a line counts."""

_ENTRIES = re.compile(rb"# entries-in-buffer/entries-written: (\d+)/(\d+)")
"""ftrace's header: the ring overwrote the difference."""

_SHOWN = 3
"""Lines that are quoted."""


class Losses:
    """What the lines of a log report as lost.

    Attributes:
        lines: how many lines report a loss.
        quoted: the first of them.
    """

    def __init__(self) -> None:
        self.lines = self._counted = self._overwritten = 0
        self.quoted: list[str] = []

    @property
    def events(self) -> int:
        """Lost events. A header and lines may both count them: the larger sum is taken."""
        return max(self._counted, self._overwritten)

    def look(self, line: bytes) -> None:
        """Take note of a line if it reports a loss. O(length)."""
        if _WORDS.search(line) is None:
            return
        if entries := _ENTRIES.search(line):
            if (lost := int(entries[2]) - int(entries[1])) > 0:
                self._overwritten += lost
                self._note(line, 0)
            return
        for _, form in FORMS:
            if match := form.search(line):
                self._note(line, int(match[1][:18] or b"0"))
                return

    def _note(self, line: bytes, events: int) -> None:
        self.lines += 1
        self._counted += events
        if len(self.quoted) < _SHOWN:
            self.quoted.append(line.decode(errors="replace").strip()[:80])

    @property
    def counted(self) -> str:
        """What was lost: "840 events", or "events" without a number."""
        return f"{self.events:,} events" if self.events else "events"

    def __str__(self) -> str:
        """One sentence for people; "" if nothing was lost."""
        if not self.lines:
            return ""
        more = f" and {self.lines - len(self.quoted)} more lines" if self.lines > len(self.quoted) else ""
        quoted = ", ".join(f"'{line}'" for line in self.quoted)
        return f"the log reports {self.counted} lost: {quoted}{more}; what it lacks may change every number"

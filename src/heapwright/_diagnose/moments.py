"""When a line was printed: the times of consoles, of ESP-IDF, Zephyr and NuttX logs, and of columns, in seconds."""

from __future__ import annotations

import re
from datetime import datetime

from heapwright._diagnose.wording import TIME_UNITS

DAY = 86400.0
_HALF_DAY = DAY / 2

_CLOCK = r"(?P<hour>\d\d?):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<part>(?<=\.)\d{1,9}|\d{3}(?!\d)))?"
_DATE = r"(?:(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[T ])?"
_FORMS = (
    re.compile(
        rf"\s*(?:\w+\s*\|\s*)?\[?{_DATE}{_CLOCK}(?:,\d{{3}}(?!\d))?\]?(?:Z|[+-]\d\d:?\d\d)?(?:\s*->|\s*#|\s*\|)?"
    ),  # consoles, Zephyr
    re.compile(r"\s*[IWEDV] \((?P<ms>\d+)\) "),  # ESP-IDF
    re.compile(r"\s*\[(?P<ms>\d+)\]\[[IWEDV]\]"),  # arduino-esp32
    re.compile(r"\s*\[\s*(?P<seconds>\d+\.\d+)\]"),  # NuttX, Linux
    re.compile(r"\s*\w+ *\| \?\?:\?\?:\?\? (?P<seconds>\d+) "),  # meshtastic before it knows the time of day
    re.compile(r"\s*(?P<ms>\d{3,}) : (?=[A-Z])"),  # ESPEasy
    re.compile(r"\s*(?P<ms>\d{3,})\s+(?:DEBUG|INFO|ERROR|WARN|WARNING|TRACE)\b"),
)
_UPTIME = re.compile(r"(?i)\b(?:up ?time|elapsed|after|runtime)\W{0,3}(\d+(?:\.\d+)?)\s*([a-z]+)?")
_KEYED = re.compile(
    r'(?i)(?<![\w])"?(?:t|ts|time|timestamp|uptime_?(?:s|ms)?|time_?m?s|seconds|millis)"?\s*[=:]\s*"?(\d+(?:\.\d+)?)\s*(ms|s|us)?\b'
)
_CELL = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def without_time(line: str) -> tuple[str, tuple[float, bool] | None]:
    """The line behind its time, and the time in seconds with whether it is one of the day, which begins again."""
    for form in _FORMS:
        if match := form.match(line):
            return line[match.end() :], _seconds(match)
    return line, None


def _seconds(match: re.Match[str]) -> tuple[float, bool]:
    parts = match.groupdict()
    if parts.get("ms"):
        return int(parts["ms"]) / 1000, False
    if parts.get("seconds"):
        return float(parts["seconds"]), False
    seconds = int(parts["hour"]) * 3600 + int(parts["minute"]) * 60 + int(parts["second"])
    fraction = float(f"0.{parts['part']}") if parts.get("part") else 0.0
    if parts.get("year"):
        try:
            day = datetime(int(parts["year"]), int(parts["month"]), int(parts["day"])).toordinal()
        except ValueError:
            return seconds + fraction, True
        return day * DAY + seconds + fraction, False
    return seconds + fraction, True


class Clock:
    """Times that go on: a time of the day that falls by more than half a day is one of the next."""

    def __init__(self) -> None:
        self._days = 0.0
        self._last: float | None = None
        self._heading: float | None = None

    def of_line(self, time: tuple[float, bool] | None, is_alone: bool) -> float | None:
        """Seconds of a line; a time alone in a line, as `date` prints it, holds for the lines below without one."""
        seconds = self.at(time)
        if time is not None:
            self._heading = seconds if is_alone else None
        return self._heading if time is None else seconds

    def at(self, time: tuple[float, bool] | None) -> float | None:
        """Seconds of a time; None if there is none."""
        if time is None:
            return None
        seconds, of_day = time
        if of_day:
            if self._last is not None and seconds + self._days < self._last - _HALF_DAY:
                self._days += DAY
            seconds += self._days
            self._last = seconds
        return seconds

    def of_cell(self, cell: str | None, unit: float | None) -> float | None:
        """Seconds of a cell in a column of times; a unit of 0 is not known, and the cell may have one."""
        if cell is None:
            return None
        _, time = without_time(cell)
        if time is not None and ":" in cell:
            return self.at(time)
        match = _CELL.match(cell.strip().strip('"'))
        if match is None:
            return None
        written = TIME_UNITS.get(match[2].lower()) if match[2] else None
        scale = written or unit
        return float(match[1]) * scale if scale else None

    @staticmethod
    def uptime_in(line: str) -> float | None:
        """The time that a word of the line names, such as `uptime=3600` or `after 3 h`."""
        match = _KEYED.search(line)
        if match:
            return float(match[1]) * (TIME_UNITS[match[2].lower()] if match[2] else _scale(match[0]))
        match = _UPTIME.search(line)
        if match is None:
            return None
        unit = TIME_UNITS.get((match[2] or "s").lower())
        if match[0].lower().startswith("after") and (match[2] is None or unit is None):
            return None  # after the collection: 51920
        return float(match[1]) * (unit or 1.0)


def _scale(key: str) -> float:
    return 1e-3 if re.search(r"(?i)ms\b|millis|_ms", key.split("=")[0].split(":")[0]) else 1.0

"""Readings of a heap over time: free memory, the largest free block and other counters, one series a memory.

They are read from lines of any program (`Heap: 118432/294912 bytes free, min 96204, largest block 65524`), CSV, tables
and JSON lines. A number is read by the words next to it (`wording`). Numbers that no word explains are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from heapwright._diagnose.line_numbers import (
    HEX,
    KNOWN_FORMS,
    NUMBER,
    Pair,
    form_of,
    numbers_of,
    numbers_of_json,
    value_of,
)
from heapwright._diagnose.moments import Clock, without_time
from heapwright._diagnose.wording import (
    COUNTED,
    QUANTITIES,
    Named,
    Quantity,
    memory_of,
    quantity_of,
    time_unit_of,
    words_of,
)

HEAP = "heap"
"""The name of a memory that nothing names."""

TimedLine = tuple[str, tuple[float, bool] | None]
"""A line behind its time, and the time, as `moments.without_time` returns them."""

LEAST_COLUMNS = 2

_CELLS = re.compile(r"\s*[|,;\t]\s*|\s{2,}")
_FAILURE = re.compile(
    r"(?i)(?:fail|cannot|can't|could\s?n[o']?t|\bunable|no memory|out of memory|not enough|insufficient|\boom\b|refused"
    r"|\breturn(?:s|ed)? (?:a )?null\b|[=>] ?null\b|\bwanted\b"
    r"|\benomem\b|no_?mem\b|\berr_mem\b|bad_alloc|memoryerror|alloc_failed)"
)
"""Words of a request that failed, and the codes of C libraries, ESP-IDF, lwIP, C++ and MicroPython for it."""
_MBEDTLS = re.compile(r"(?i)-0x(?:7f00|2880|3f80|4d80|5180|6180|1180|(?:00)?6a|(?:00)?10)\b")
"""Codes of mbedTLS that end in _ALLOC_FAILED, of SSL, X.509, PK, ECP, MD, CIPHER, PEM, ASN.1 and MPI."""
_START = re.compile(
    r"(?i)\brst:|\bre(?:set|boot|start)\w*\b|\*\*\* boot|\bboot(?:ing|ed|up)\b|nuttshell|assert\w*|\bpanic"
    r"|guru meditation|hard ?fault"
)
"""A line without a reading that reports a start, or why there is one."""
_REQUEST = re.compile(r"(?i)alloc|memory|malloc|heap|wanted|\boom\b|new\b|pbuf|buffer|no_?mem|err_mem")
_LWIP = re.compile(r"(?i)^(?=.*\bused\b)(?=.*\bmax\b)(?=.*\berr\b).*\bavail\b")
"""One line of lwIP's statistics, whose "avail" is the size of the pool or heap."""
_BESIDE_FAILURE = ("free", "largest", "bare")
"""Quantities that a line about a request that failed may have as well."""
LEAST_BARE = 512
"""Bytes: a smaller number that only "heap" or "memory" names may be per cent, or kilobytes."""
_ALONE = re.compile(r"[\s,;|]*(\d{3,9})\s*(?:[,;|].*)?$")
LEAST_ALONE = 8
LEAST_ALONE_SHARE = 0.8
"""Lines with a time and one number are readings if there are that many of them, and that share of all lines."""
_NAME_HEADS = ("name", "pool", "heap", "region", "memory")
"""Headings of a column of names."""
_VALUE = re.compile(r"\d\d|^[\d.]+\w{0,2}$|[=:] *\d")
"""In a cell that is no heading."""
_TEXT_HEADS = ("command", "cmd", "args")
_UNIT_HEAD = re.compile(r"(?i)(?<![a-z])([kmg])i?b(?:ytes)?(?![a-z])")


@dataclass
class SeriesReading:
    """Numbers of one memory at one time; `seconds` is None if the line has no time.

    `is_bare`: its free memory is a number that only "heap" or "memory" names; so is free memory of the next reading.
    """

    line: int
    seconds: float | None
    values: dict[Quantity, float] = field(default_factory=dict)
    is_bare: bool = False


@dataclass(frozen=True)
class Failure:
    """A request that failed, as a line reports it.

    Attributes:
        size: bytes, if the line has them.
        memory: its name, empty if the line names none.
        is_tls: the line is one of mbedTLS, whose buffers have a usual size.
        free, block: bytes free then, and the largest free block, if the line has them.
    """

    line: int
    size: int | None
    memory: str
    is_tls: bool = False
    free: float | None = None
    block: float | None = None


@dataclass
class Readings:
    """Readings of all memories in a text.

    Attributes:
        memories: the readings of each, in order; its name as the text has it.
        failures: requests that failed.
        units: what the numbers of a memory count, if that is not bytes: the elements of a pool.
        starts: numbers of the lines that report a start, a reset or a crash of the program.
    """

    memories: dict[str, list[SeriesReading]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    units: dict[str, str] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)

    def add(self, memory: str, line: int, seconds: float | None, quantity: Quantity, value: float) -> None:
        """Add a number to the latest reading of a memory, or begin another if that one has it already."""
        series = self.memories.setdefault(memory or HEAP, [])
        if memory in COUNTED:
            self.units[memory] = memory
        if not series or quantity in series[-1].values or _apart(series[-1].seconds, seconds):
            series.append(SeriesReading(line, seconds))
        series[-1].values[quantity] = value

    def __bool__(self) -> bool:
        return any(_tells(reading) for series in self.memories.values() for reading in series)


def _tells(reading: SeriesReading) -> bool:
    return bool(reading.values.keys() & {"free", "used", "largest"})


def _apart(before: float | None, after: float | None) -> bool:
    return before is not None and after is not None and after - before > 2


def readings_of(lines: list[str]) -> Readings:
    """Read every line of a text. Tables with a header line are read by their columns."""
    result = Readings()
    table = _Table()
    clock = Clock()
    memory = ""
    for number, line in enumerate(lines, 1):
        text, time = without_time(line)
        if table.begins(line) or (time is not None and table.begins(text)):
            clock.of_line(time, is_alone=not text.strip())
            continue
        row = table.row(line) or (table.row(text) if time is not None else None)
        if row is None:
            table.end(line)
        else:
            at = clock.of_line(time, is_alone=False) if row.time is None else clock.of_cell(row.time, row.unit)
            for pair in row.pairs:
                _add(result, number, at, pair, {pair.quantity})
            continue
        memory = _add_line(result, number, (text, time), clock, memory)
    return result


def unnamed_column(lines: Sequence[str]) -> tuple[Readings, Quantity | None]:
    """The readings of lines with a time and one number, and what they are taken as; None if too few lines are such."""
    clock, found = Clock(), list[tuple[int, float | None, float]]()
    filled = 0
    for number, line in enumerate(lines, 1):
        text, time = without_time(line)
        filled += bool(line.strip())
        if time is not None and (match := _ALONE.match(text)):
            found.append((number, clock.of_line(time, is_alone=False), float(match[1])))
    readings = Readings()
    if len(found) < LEAST_ALONE or len(found) < LEAST_ALONE_SHARE * filled:
        return readings, None
    quantity: Quantity = "free" if found[-1][2] < found[0][2] else "used"
    for number, seconds, value in found:
        readings.add("", number, seconds, quantity, value)
    return readings, quantity


def _add_line(result: Readings, number: int, line: TimedLine, clock: Clock, memory: str) -> str:
    """Add what a line of words says; returns the memory that the lines below it are of if they name none."""
    text, _ = line
    seconds = _seconds_of(line, clock)
    if "-0x" in text:
        text = _MBEDTLS.sub("(mbedTLS allocation failed)", text)
    if _LWIP.search(text):
        text = re.sub(r"(?i)\bavail\b", "total", text)
    pairs = list(numbers_of_json(text) or numbers_of(text))
    if not pairs:
        memory = _heading(text, memory)
        if _START.search(text):
            result.starts.append(number)
    if failure := _failure_in(text, number, len(pairs)):
        pairs = [pair for pair in pairs if pair.quantity in _BESIDE_FAILURE and pair.value != failure.size]
        then = {pair.quantity: pair.value for pair in pairs}
        result.failures.append(replace(failure, free=then.get("free"), block=then.get("largest")))
    beside = {pair.quantity for pair in pairs}
    for pair in pairs:
        named = pair if pair.memory else pair._replace(memory=memory)
        _add(result, number, seconds, named, beside)
    return memory


def _seconds_of(line: TimedLine, clock: Clock) -> float | None:
    """When a line was printed: by its time since the start, the time that a word names, or its time of the day."""
    text, time = line
    uptime = clock.uptime_in(text) if _names_time(form_of(text)) else None
    is_since_start = time is not None and not time[1]
    return clock.of_line(time, is_alone=not text.strip()) if uptime is None or is_since_start else uptime


def _heading(text: str, memory: str) -> str:
    """The memory that a line of words names for the lines below it; the one before if it is no heading."""
    is_heading = bool(text.strip()) and len(text) < 80 and not re.search(r"\d", text)
    return memory_of(text) if is_heading else memory


def _add(result: Readings, line: int, seconds: float | None, pair: Pair, beside: set[Named]) -> None:
    quantity = _settled(pair, beside, result.memories.get(pair.memory or HEAP))
    if quantity is not None:
        result.add(pair.memory, line, seconds, quantity, pair.value)
        if pair.quantity == "bare" and quantity == "free":
            result.memories[pair.memory or HEAP][-1].is_bare = True


def _settled_bare(pair: Pair, beside: set[Named], series: list[SeriesReading] | None) -> Quantity | None:
    """Quantity of a number that only "heap" or "memory" names: the size if the line has used or free memory, too."""
    if "total" in beside:
        return None
    known = set(beside)
    if series and not series[-1].is_bare:
        known |= set(series[-1].values)
    return "total" if known & {"used", "free"} else "free" if pair.value >= LEAST_BARE else None


def _settled(pair: Pair, beside: set[Named], series: list[SeriesReading] | None) -> Quantity | None:
    """Quantity of a number that its words leave open, by the other numbers of the line."""
    if pair.quantity == "bare":
        return _settled_bare(pair, beside, series)
    known = set(beside)
    if series and pair.quantity in ("max", "min"):
        known |= set(series[-1].values)
    if pair.quantity == "max":
        return "largest" if beside & {"free", "bare"} else "peak" if known & {"used"} else None
    if pair.quantity == "min" and known & {"used"} and not known & {"free"}:
        return "peak"  # a watermark of use
    if pair.quantity == "min":
        return "minimum" if known & {"free", "bare", "largest"} else None
    return pair.quantity


# --- lines ------------------------------------------------------------------------------------------------------------


def _failure_in(line: str, number: int, counters: int) -> Failure | None:
    """The request that a line says has failed; a line of several counters may count failures, and is none."""
    if not _may_fail(form_of(line)):
        return None
    if counters > 1 and re.search(
        r"(?i)(?:fail\w*|oom|errors?)\W{0,3}\d|(?<![=\d])\d+ \(?(?:failed|failures|errors)", line
    ):
        return None
    text = HEX.sub("", line)
    sizes = re.findall(r"(?i)(?:size|alloc\w*|of|for|request\w*|malloc)\D{0,12}?(\d{1,9})\b", text)
    sizes += re.findall(r"(?i)\b(\d{1,9})\s*-?\s*(?:bytes?|b)\b", text)
    sizes = re.findall(r"(?i)\bwanted\W{0,3}(\d{1,9})\b", text) + sizes
    if not sizes and not re.search(r"(?i)alloc|memory|no_?mem|err_mem", line):
        return None
    return Failure(number, int(sizes[0]) if sizes else None, memory_of(line), "mbedTLS allocation failed" in line)


@lru_cache(KNOWN_FORMS)
def _names_time(line: str) -> bool:
    """Whether lines of this form have a time behind a word."""
    return Clock.uptime_in(line) is not None


@lru_cache(KNOWN_FORMS)
def _may_fail(line: str) -> bool:
    """Whether lines of this form have words for a failure and for a request."""
    return bool(_FAILURE.search(line) and _REQUEST.search(line))


# --- tables -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    quantity: Named | None
    memory: str
    unit: float | None
    """Seconds of a column of times, 0 if its unit is not known; None of others."""
    scale: int = 1
    """Bytes of one in a column of numbers."""

    @classmethod
    def of(cls, heading: str) -> _Column:
        """The column under a heading."""
        unit = _UNIT_HEAD.search(heading)
        scale = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[unit[1].lower()] if unit else 1
        quantity = None if "%" in heading else _column_quantity(heading)
        return cls(quantity, memory_of(heading), time_unit_of(heading), scale)


@dataclass(frozen=True)
class _Row:
    pairs: list[Pair]
    time: str | None
    unit: float | None


class _Table:
    """A table in a text, from its header line to the first line that has other columns."""

    def __init__(self) -> None:
        self.columns: list[_Column] = []
        self.name_at: int | None = None
        self.split = ""
        self.is_open = False
        """Whether the last column holds text with blanks."""

    def begins(self, line: str) -> bool:
        """Whether the line is a header: cells without numbers, two of which name quantities of a heap."""
        if re.search(r"\d\d", line):
            return False
        for split in (",", ";", "\t", "|", " "):
            cells = _cells(line, split)
            if (
                len(cells) >= LEAST_COLUMNS
                and not any(_VALUE.search(cell) for cell in cells)
                and self._take(cells, split)
            ):
                return True
        return False

    def _take(self, cells: list[str], split: str) -> bool:
        """Take the cells as headings, if they are."""
        columns = [_Column.of(cell) for cell in cells]
        if _is_of_ps(cells):  # which prints KiB
            columns = [replace(item, scale=1 << 10 if item.scale == 1 else item.scale) for item in columns]
        elif not _is_header(columns) or (split == " " and not _is_header_of_blanks(cells, columns)):
            return False
        self.columns, self.split = columns, split
        self.is_open = cells[-1].lower() in _TEXT_HEADS
        names = [at for at, cell in enumerate(cells) if cell.lower() in _NAME_HEADS]
        self.name_at = names[0] if names else None
        return True

    def row(self, line: str) -> _Row | None:
        """The row of the table that the line is; None if the table has ended, or none has begun."""
        if not self.columns:
            return None
        cells = _cells(line, self.split)
        if self._is_rule(cells):
            return _Row([], None, None)
        name, cells = self._named(cells)
        if len(cells) != len(self.columns) or not any(re.fullmatch(r"\D{0,2}[\d.,]+.*", cell) for cell in cells):
            return None
        return self._row_of(cells, name)

    def end(self, line: str) -> None:
        """End the table at a line that is no row, unless it is blank."""
        if line.strip():
            self.columns = []

    def _named(self, cells: list[str]) -> tuple[str, list[str]]:
        """The name of a row, empty if it has none, and its cells, one a column."""
        if self.is_open:
            return "", cells[: len(self.columns)]
        if len(cells) == len(self.columns) + 1 and self.name_at is None:
            return cells[0].rstrip(":"), cells[1:]  # NuttX: the name stands before the columns
        if len(cells) == len(self.columns) and self.name_at is not None:
            return cells[self.name_at], cells
        return "", cells

    def _row_of(self, cells: list[str], name: str) -> _Row:
        pairs: list[Pair] = []
        time, unit = None, None
        for column, cell in zip(self.columns, cells, strict=True):
            if column.unit is not None and time is None:
                time, unit = cell, column.unit
            elif column.quantity is not None and (number := NUMBER.match(cell)):
                value = value_of(number) if number["unit"] else value_of(number) * column.scale
                pair = Pair(column.quantity, value, column.memory or memory_of(name) or name)
                if all(pair[::2] != other[::2] for other in pairs):  # of two columns for one quantity the first
                    pairs.append(pair)
        return _Row(_settle_row(pairs), time, unit)

    def _is_rule(self, cells: list[str]) -> bool:
        return bool(cells) and all(re.fullmatch(r":?-*:?", cell) for cell in cells)


def _is_header(columns: Sequence[_Column]) -> bool:
    """Whether columns name a quantity, and another or a time."""
    named = sum(column.quantity is not None for column in columns)
    times = sum(column.unit is not None for column in columns)
    return named >= 1 and named + times >= LEAST_COLUMNS


def _is_header_of_blanks(cells: Sequence[str], columns: Sequence[_Column]) -> bool:
    """Whether words with blanks between them are a header rather than a sentence: three quantities, in short cells."""
    plain = all(len(words_of(cell)) <= 3 and ":" not in cell for cell in cells)
    return plain and sum(column.quantity is not None for column in columns) >= 3


def _is_of_ps(cells: Sequence[str]) -> bool:
    """Whether cells are the header that ps prints."""
    return "PID" in cells and any(words_of(cell)[:1] == ["rss"] for cell in cells)


def _settle_row(pairs: list[Pair]) -> list[Pair]:
    """The quantities of a row whose headings leave them open, in view of all its columns."""
    beside = {pair.quantity for pair in pairs}
    settled = [(pair, _settled(pair, beside, None)) for pair in pairs]
    return [pair._replace(quantity=quantity) for pair, quantity in settled if quantity is not None]


def _column_quantity(cell: str) -> Named | None:
    quantity = quantity_of(cell)
    return "total" if quantity is None and words_of(cell) == ["size"] else quantity


def _cells(line: str, split: str) -> list[str]:
    cells = line.split() if split == " " else [cell.strip().strip('"') for cell in line.strip().strip("|").split(split)]
    return cells if len(cells) > 1 else []


def quantities_of(series: Iterable[SeriesReading]) -> set[Quantity]:
    """The quantities that some reading has."""
    return {name for reading in series for name in QUANTITIES if name in reading.values}

"""Readings of a heap over time: free memory, the largest free block and other counters, one series a memory.

They are read from lines of any program (`Heap: 118432/294912 bytes free, min 96204, largest block 65524`), CSV, tables
and JSON lines. A number is read by the words next to it (`wording`). Numbers that no word explains are left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

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

_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[+-]?)(?P<value>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)"
    r"(?:\s?(?P<unit>[KkMG]i?[Bb]?|[Bb]ytes|[Bb]yte|B|%)(?!\w*\s?[=:]))?(?![\w.]\w)"
)
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_SEPARATOR = re.compile(r"[;,|]|<-|->|\s{3,}")
_CELLS = re.compile(r"\s*[|,;\t]\s*|\s{2,}")
_OF_TOTAL = re.compile(r"\s*/\s*|\s+of\s+(?:the\s+)?")
_FAILURE = re.compile(
    r"(?i)(?:fail|cannot|can't|could\s?n[o']?t|\bunable|no memory|out of memory|not enough|insufficient|\boom\b|refused"
    r"|\breturn(?:s|ed)? (?:a )?null\b|[=>] ?null\b|\bwanted\b"
    r"|\benomem\b|no_?mem\b|\berr_mem\b|bad_alloc|memoryerror|alloc_failed)"
)
"""Words of a request that failed, and the codes of C libraries, ESP-IDF, lwIP, C++ and MicroPython for it."""
_MBEDTLS = re.compile(r"(?i)-0x(?:7f00|2880|3f80|4d80|5180|6180|1180|(?:00)?6a|(?:00)?10)\b")
"""Codes of mbedTLS that end in _ALLOC_FAILED: those of SSL, X.509, PK, ECP, MD, CIPHER, PEM, ASN.1 and MPI."""
_START = re.compile(
    r"(?i)\brst:|\bre(?:set|boot|start)\w*\b|\*\*\* boot|\bboot(?:ing|ed|up)\b|nuttshell|assert\w*|\bpanic"
    r"|guru meditation|hard ?fault"
)
"""A line without a reading that reports a start, or why there is one."""
_REQUEST = re.compile(r"(?i)alloc|memory|malloc|heap|wanted|\boom\b|new\b|pbuf|buffer|no_?mem|err_mem")
_SLASHED = re.compile(
    r"(?P<words>[A-Za-z][\w ]*?)\s*\((\w+) ?/ ?(\w+)\)\s*[:=]\s*(\d+)(?:\s*\(\d+ ?%\))?\s*/\s*(\d+)(?:\s*\(\d+ ?%\))?"
)
_FREE_OF = re.compile(
    r"(\d[\d,]*(?: ?(?:[kKM]i?B|[Bb]ytes|B))?) (free|used|in use) (?:out )?of (?:the |a )?(?:total )?(?:of )?(?=\d)"
)
_LWIP = re.compile(r"(?i)^(?=.*\bused\b)(?=.*\bmax\b)(?=.*\berr\b).*\bavail\b")
"""One line of lwIP's statistics, whose "avail" is the size of the pool or heap."""
_KEY = re.compile(r"(?:^|\s)(\w+)=$")
_SHARE = re.compile(r"\s*\(\s*(\d{1,3})\s*%")
_BESIDE_FAILURE = ("free", "largest", "bare")
"""Quantities that a line about a request that failed may have as well."""
LEAST_PER_CENT = 20
"""A smaller whole number of per cent of a heap does not show how large it is."""

LEAST_BARE = 512
"""Bytes: a smaller number that only "heap" or "memory" names may be per cent, or kilobytes."""
_LARGEST_NUMBER = 1 << 44
_NAME_HEADS = ("name", "pool", "heap", "region", "memory")
"""Headings of a column of names."""
_TEXT_HEADS = ("command", "cmd", "args")
_UNIT_HEAD = re.compile(r"(?i)(?<![a-z])([kmg])i?b(?:ytes)?(?![a-z])")

_KNOWN_FORMS = 4096
"""Forms of lines, and words, whose meaning is kept."""


class Pair(NamedTuple):
    """A number of bytes with its quantity and the memory it is of; empty if no word names the memory."""

    quantity: Named
    value: float
    memory: str


@dataclass
class SeriesReading:
    """Numbers of one memory at one time; `seconds` is None if the line has no time."""

    line: int
    seconds: float | None
    values: dict[Quantity, float] = field(default_factory=dict)


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


def _add_line(result: Readings, number: int, line: TimedLine, clock: Clock, memory: str) -> str:
    """Add what a line of words says; returns the memory that the lines below it are of if they name none."""
    text, _ = line
    seconds = _seconds_of(line, clock)
    if "-0x" in text:
        text = _MBEDTLS.sub("(mbedTLS allocation failed)", text)
    if _LWIP.search(text):
        text = re.sub(r"(?i)\bavail\b", "total", text)
    pairs = list(_of_json(text) or _of_line(text))
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
    uptime = clock.uptime_in(text) if _names_time(_form(text)) else None
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


def _settled(pair: Pair, beside: set[Named], series: list[SeriesReading] | None) -> Quantity | None:
    """Quantity of a number that its words leave open, by the other numbers of the line."""
    known = set(beside)
    if series and pair.quantity in ("bare", "max", "min"):
        known |= set(series[-1].values)
    if pair.quantity == "bare":
        if "total" in beside:
            return None
        return "total" if known & {"used", "free"} else "free" if pair.value >= LEAST_BARE else None
    if pair.quantity == "max":
        return "largest" if beside & {"free", "bare"} else "peak" if known & {"used"} else None
    if pair.quantity == "min" and known & {"used"} and not known & {"free"}:
        return "peak"  # a watermark of use
    if pair.quantity == "min":
        return "minimum" if known & {"free", "bare", "largest"} else None
    return pair.quantity


# --- lines ------------------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a line has a number of bytes: its quantity, its memory, its characters, and the bytes of its unit.

    `share` are the characters of the per cent that it is of the whole, if the line has them.
    """

    quantity: Named
    memory: str
    begin: int
    end: int
    scale: int
    share: slice | None = None


_DIGITS = str.maketrans("123456789", "000000000")


def _form(line: str) -> str:
    """The line with 0 for each digit: lines of one form have numbers at the same places, and a log has few forms."""
    return line.translate(_DIGITS)


def _of_line(line: str) -> Iterator[Pair]:
    """The numbers of a line, each by the words before it, or, if those name nothing, by the words behind it."""
    if " of " in line:
        line = _FREE_OF.sub(r"\2 \1/", line)
    if "/" in line and "(" in line:
        line = _SLASHED.sub(_unslashed, line)
    if "0x" in line:
        line = _HEX.sub(lambda match: " " * len(match.group()), line)
    for place in _places_in(_form(line)):
        value = float(line[place.begin : place.end].replace(",", "")) * place.scale
        if value < _LARGEST_NUMBER:
            yield Pair(place.quantity, value, place.memory)
        if place.share and (share := int(line[place.share])) >= LEAST_PER_CENT:
            yield Pair("total", round(value * 100 / share), place.memory)


@lru_cache(_KNOWN_FORMS)
def _places_in(line: str) -> tuple[_Place, ...]:
    """Where lines of this form have numbers of bytes."""
    return tuple(_LineReader(line).places())


class _LineReader:
    """Finds the numbers of a line in their order; the words of one number may also be those of the next.

    Attributes:
        used: where the words end that were read.
        memory: the last memory that was named.
        before: the quantity of a number that may be followed by its total.
        last: the quantity of the number before.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        self.numbers = list(_NUMBER.finditer(line))
        self.used = 0
        self.memory = ""
        self.before: Named | None = None
        self.last: Named | None = None

    def places(self) -> Iterator[_Place]:
        """Each number whose quantity is known."""
        for place, number in enumerate(self.numbers):
            words = self.line[self.used : number.start()]
            self.used = number.end()
            self.memory = memory_of(words) or self.memory
            if number["sign"] or number["unit"] == "%":
                continue
            if self.before is not None and _OF_TOTAL.fullmatch(words):
                yield _Place("total", self.memory, *number.span("value"), _scale_of(number))
                self.before = None
                continue
            quantity = self._quantity(place, words)
            self.last = quantity
            self.before = quantity if quantity in ("free", "used", "bare") else None
            if quantity is not None:
                share = _SHARE.match(self.line, number.end()) if quantity == "used" else None
                of_whole = slice(*share.span(1)) if share else None
                yield _Place(quantity, self.memory, *number.span("value"), _scale_of(number), of_whole)

    def _quantity(self, place: int, words: str) -> Named | None:
        """The quantity of a number with these words before it."""
        quantity = _quantity_before(words)
        if quantity in (None, "bare"):
            quantity = self._quantity_behind(place) or quantity
        if quantity is None and self.last and memory_of(words) and len(words_of(_nearest(words))) <= 2:
            return self.last  # free: heap 8000, PSRAM 4000000
        return quantity

    def _quantity_behind(self, place: int) -> Named | None:
        """The quantity that the words behind a number name; None if they name none."""
        number = self.numbers[place]
        behind = self._words_behind(place)
        quantity = quantity_of(behind)
        if quantity not in (None, "bare", "max", "min"):
            self.used = number.end() + len(behind)
            self.memory = memory_of(behind) or self.memory
            return quantity
        if _OF_TOTAL.match(self.line, number.end()) and place + 1 < len(self.numbers):
            # 118432/294912 bytes free: the words behind the second number are those of the first
            return quantity_of(_SEPARATOR.split(self.line[self.numbers[place + 1].end() :])[0])
        return None

    def _words_behind(self, place: int) -> str:
        """The words between a number and the next that are not words of the next."""
        number, is_last = self.numbers[place], place + 1 == len(self.numbers)
        end = len(self.line) if is_last else self.numbers[place + 1].start()
        parts = _SEPARATOR.split(self.line[number.end() : end])
        is_own = len(parts) > 1 or is_last or number["unit"] is not None
        return parts[0] if is_own and not re.search(r"[=:]\s*$", parts[0]) else ""


def _unslashed(match: re.Match[str]) -> str:
    """`Allocated (Current / Peak) : 44256 (4%) / 48624` as two counters."""
    return f"{match['words']} {match[2]}: {match[4]}, {match['words']} {match[3]}: {match[5]}"


@lru_cache(_KNOWN_FORMS)
def _quantity_before(words: str) -> Named | None:
    """The quantity that the nearest words before a number name, or these and those before them: `Free (Current):`."""
    if (key := _KEY.search(words)) and (quantity := quantity_of(key[1])) is not None:
        return quantity
    if (quantity := quantity_of(_nearest(words))) is not None:
        return quantity
    clause = re.split(r"[;,|]|<-|->|\s{3,}(?![:=])", words.rstrip(" \t:="))[-1]
    bracketed = re.search(r"([A-Za-z][\w .\-]*)\(([\w .]*)\)$", clause.strip())
    return quantity_of(f"{bracketed[1]} {bracketed[2]}") if bracketed else None


@lru_cache(_KNOWN_FORMS)
def _nearest(words: str) -> str:
    """The words of a number: those since the last comma, unless these say nothing."""
    parts = [part for part in re.split(r"[;,|()\[\]{}]|<-|->|\s{3,}", words) if re.search(r"[A-Za-z]", part)]
    if not parts:
        return ""
    last = parts[-1]
    if ":" in last.rstrip(" \t:="):  # tag: words, or a heading before its first counter
        last = last.rstrip(" \t:=").rsplit(":", 1)[1]
    return last


def _value(number: re.Match[str]) -> float:
    return float(number["value"].replace(",", "")) * _scale_of(number)


def _scale_of(number: re.Match[str]) -> int:
    """Bytes of a number's unit."""
    unit = (number["unit"] or "").lower()
    return 1 << 10 if unit.startswith("k") else 1 << 20 if unit.startswith("m") else 1 << 30 if unit[:1] == "g" else 1


def _failure_in(line: str, number: int, counters: int) -> Failure | None:
    """The request that a line says has failed; a line of several counters may count failures, and is none."""
    if not _may_fail(_form(line)):
        return None
    if counters > 1 and re.search(
        r"(?i)(?:fail\w*|oom|errors?)\W{0,3}\d|(?<![=\d])\d+ \(?(?:failed|failures|errors)", line
    ):
        return None
    text = _HEX.sub("", line)
    sizes = re.findall(r"(?i)(?:size|alloc\w*|of|for|request\w*|malloc)\D{0,12}?(\d{1,9})\b", text)
    sizes += re.findall(r"(?i)\b(\d{1,9})\s*-?\s*(?:bytes?|b)\b", text)
    sizes = re.findall(r"(?i)\bwanted\W{0,3}(\d{1,9})\b", text) + sizes
    if not sizes and not re.search(r"(?i)alloc|memory|no_?mem|err_mem", line):
        return None
    return Failure(number, int(sizes[0]) if sizes else None, memory_of(line), "mbedTLS allocation failed" in line)


@lru_cache(_KNOWN_FORMS)
def _names_time(line: str) -> bool:
    """Whether lines of this form have a time behind a word."""
    return Clock.uptime_in(line) is not None


@lru_cache(_KNOWN_FORMS)
def _may_fail(line: str) -> bool:
    """Whether lines of this form have words for a failure and for a request."""
    return bool(_FAILURE.search(line) and _REQUEST.search(line))


def _of_json(line: str) -> list[Pair]:
    """The numbers of a JSON object, by their keys and those of the objects that they lie in."""
    start = line.find("{")
    if start < 0 or not line.rstrip().endswith("}"):
        return []
    try:
        value = json.loads(line[start:])
    except (ValueError, RecursionError):
        return []
    pairs = []
    for key, number in _leaves(value, ""):
        quantity = quantity_of(key.rsplit(".", 1)[-1]) or quantity_of(key.replace(".", " "))
        if quantity is not None:
            pairs.append(Pair(quantity, number, memory_of(key)))
    return pairs


def _leaves(value: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}".lstrip("."))
    elif isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST_NUMBER:
        yield path, float(value)


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
            if len(cells) < LEAST_COLUMNS or any(re.search(r"\d\d|^[\d.]+\w{0,2}$|[=:] *\d", cell) for cell in cells):
                continue
            columns = [_Column.of(cell) for cell in cells]
            if _is_of_ps(cells) or (_is_header(columns) and (split != " " or _is_header_of_blanks(cells, columns))):
                self.columns, self.split = columns, split
                self.is_open = cells[-1].lower() in _TEXT_HEADS
                names = [at for at, cell in enumerate(cells) if cell.lower() in _NAME_HEADS]
                self.name_at = names[0] if names else None
                return True
        return False

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
            elif column.quantity is not None and (number := _NUMBER.match(cell)):
                value = _value(number) if number["unit"] else _value(number) * column.scale
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

"""The numbers of a line or a JSON object that are bytes of a heap, each by the words next to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from heapwright._diagnose.wording import Named, memory_of, quantity_of, words_of

NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[+-]?)(?P<value>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)"
    r"(?:\s?(?P<unit>[KkMG]i?[Bb]?|[Bb]ytes|[Bb]yte|B|%)(?!\w*\s?[=:]))?(?![\w.]\w)"
)
HEX = re.compile(r"0x[0-9a-fA-F]+")
_SEPARATOR = re.compile(r"[;,|]|<-|->|\s{3,}")
_OF_TOTAL = re.compile(r"\s*/\s*|\s+of\s+(?:the\s+)?")
_SLASHED = re.compile(
    r"(?P<words>[A-Za-z][\w ]*?)\s*\((\w+) ?/ ?(\w+)\)\s*[:=]\s*(\d+)(?:\s*\(\d+ ?%\))?\s*/\s*(\d+)(?:\s*\(\d+ ?%\))?"
)
_FREE_OF = re.compile(
    r"(\d[\d,]*(?: ?(?:[kKM]i?B|[Bb]ytes|B))?) (free|used|in use) (?:out )?of (?:the |a )?(?:total )?(?:of )?(?=\d)"
)
_KEY = re.compile(r"(?:^|\s)(\w+)=$")
_SHARE = re.compile(r"\s*\(\s*(\d{1,3})\s*%")
LEAST_PER_CENT = 20
"""A smaller whole number of per cent of a heap does not show how large it is."""
_LARGEST_NUMBER = 1 << 44

KNOWN_FORMS = 4096
"""Forms of lines, and words, whose meaning is kept."""


class Pair(NamedTuple):
    """A number of bytes with its quantity and the memory it is of; empty if no word names the memory."""

    quantity: Named
    value: float
    memory: str


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


def form_of(line: str) -> str:
    """The line with 0 for each digit: lines of one form have numbers at the same places, and a log has few forms."""
    return line.translate(_DIGITS)


def numbers_of(line: str) -> Iterator[Pair]:
    """The numbers of a line, each by the words before it, or, if those name nothing, by the words behind it."""
    if " of " in line:
        line = _FREE_OF.sub(r"\2 \1/", line)
    if "/" in line and "(" in line:
        line = _SLASHED.sub(_unslashed, line)
    if "0x" in line:
        line = HEX.sub(lambda match: " " * len(match.group()), line)
    for place in _places_in(form_of(line)):
        value = float(line[place.begin : place.end].replace(",", "")) * place.scale
        if value < _LARGEST_NUMBER:
            yield Pair(place.quantity, value, place.memory)
        if place.share and (share := int(line[place.share])) >= LEAST_PER_CENT:
            yield Pair("total", round(value * 100 / share), place.memory)


@lru_cache(KNOWN_FORMS)
def _places_in(line: str) -> tuple[_Place, ...]:
    """Where lines of this form have numbers of bytes."""
    return tuple(_LineReader(line).places())


class _LineReader:
    """Finds the numbers of a line in their order; one number may have the words of the next, too.

    Attributes:
        used: where the words end that were read.
        memory: the last memory that was named.
        before: the quantity of a number that may be followed by its total.
        last: the quantity of the number before.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        self.numbers = list(NUMBER.finditer(line))
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
            # 118432/294912 bytes free: the words after the second number name the first
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


@lru_cache(KNOWN_FORMS)
def _quantity_before(words: str) -> Named | None:
    """The quantity that the nearest words before a number name, or these and those before them: `Free (Current):`."""
    if (key := _KEY.search(words)) and (quantity := quantity_of(key[1])) is not None:
        return quantity
    if (quantity := quantity_of(_nearest(words))) is not None:
        return quantity
    clause = re.split(r"[;,|]|<-|->|\s{3,}(?![:=])", words.rstrip(" \t:="))[-1]
    bracketed = re.search(r"([A-Za-z][\w .\-]*)\(([\w .]*)\)$", clause.strip())
    return quantity_of(f"{bracketed[1]} {bracketed[2]}") if bracketed else None


@lru_cache(KNOWN_FORMS)
def _nearest(words: str) -> str:
    """The words of a number: those since the last comma, unless these say nothing."""
    parts = [part for part in re.split(r"[;,|()\[\]{}]|<-|->|\s{3,}", words) if re.search(r"[A-Za-z]", part)]
    if not parts:
        return ""
    last = parts[-1]
    if ":" in last.rstrip(" \t:="):  # tag: words, or a heading before its first counter
        last = last.rstrip(" \t:=").rsplit(":", 1)[1]
    return last


def value_of(number: re.Match[str]) -> float:
    return float(number["value"].replace(",", "")) * _scale_of(number)


def _scale_of(number: re.Match[str]) -> int:
    """Bytes of a number's unit."""
    unit = (number["unit"] or "").lower()
    return 1 << 10 if unit.startswith("k") else 1 << 20 if unit.startswith("m") else 1 << 30 if unit[:1] == "g" else 1


def numbers_of_json(line: str) -> list[Pair]:
    """The numbers of a JSON object, by their keys and the keys of the objects around them."""
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

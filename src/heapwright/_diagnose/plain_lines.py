"""Lines as the rules of `readings` take them: without colours, quotation marks and prefixes of loggers, with numbers
and words of other languages in one form.

A number of bytes has no decimals, so `187.432 Bytes` and `22 909 octets` have separators of thousands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|(?<=\])\[[0-9;]{1,5}m|\[0m$")
_QUOTED = re.compile(r"^\s*(?:>\s?)+(?=\S)")
_PRIORITY = re.compile(r"^<\d{1,3}>(?:1 )?")
_SYSLOG = re.compile(r"^[A-Z][a-z]{2}\s+\d{1,2} (\d\d:\d\d:\d\d)(?:\.\d+)? (?:[\w.-]+ )?(?:[\w./-]+(?:\[\d+\])?: )?")
_DATE = re.compile(r"^\w{3} (\w{3}) +(\d{1,2}) (\d\d:\d\d:\d\d)(?: \w{2,5})? (\d{4})(?=\s|$)")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_GC_FREE = re.compile(r"\bmax free sz: (\d+)")
_GC_USED = re.compile(r",? ?\bmax blk sz: \d+")
GC_BLOCK = 16
"""Bytes of a block of MicroPython's heap on 32-bit machines, in which mem_info counts."""
_TASK = re.compile(
    r"(xTaskCreate\b(?!.*\bwanted\b).*?\b)(\d{2,6})( words\b.*(?:->|=) ?(?:-1\b|errCOULD_NOT_ALLOCATE\w*))"
)
_STACK_WORD = 4
_CAPABILITY = re.compile(r"MALLOC_CAP_(DMA|SPIRAM|INTERNAL|8BIT|DEFAULT)\s*[:=]?\s+(?=\d{3,}(?: bytes)?$)")
"""A line of a table of free memory by ESP-IDF's capabilities; all but two name a memory."""
_TASMOTA = re.compile(r'(?:"Free":\d+,)?"Heap":(\d{1,3}(?:\.\d)?)(?=[,}])')
"""Tasmota's state, where Heap is in KB and Free is of the flash."""
_SENSOR = re.compile(r"'([^']+)': (?:Sending state|Got raw value) ")
_JEMALLOC = re.compile(r"(?i)\ballocated\b.*\bactive\b.*\bresident\b")
_BEYOND = re.compile(r"(?i)\b(?:stats\.)?(?:metadata(?:_thp)?|resident|mapped|retained)\W{1,3}[\d,]+")
_HEADING = re.compile(r"^(?:#+|[-*=]+) (?=\d{4}-\d\d-\d\d)")
_DAY_FIRST = re.compile(r"^(\W{0,2})(\d\d)\.(\d\d)\.(\d{4}|\d\d)[ ,;]+(?=\d\d:\d\d)")
_HOURS = re.compile(r"^(\W{0,2}(?:\d{4}-\d\d-\d\d )?\d\d:\d\d)(?=[;,\t])")
_POINTS = re.compile(r"(?<![\w.,])\d{1,3}(?:\.\d{3})+(?=\s?(?:[Bb]ytes?\b|B\b|[Oo]ctets?\b|o\b))")
_BLANKS = re.compile(r"(?<![\w.,])\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?=\s?(?:[Bb]ytes?\b|B\b|[Oo]ctets?\b|o\b|\)))")
_APOSTROPHES = re.compile(r"(?<![\w.,])\d{1,3}(?:['_]\d{3})+(?![\w.,])")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_HEXADECIMAL = re.compile(
    r"(?i)(\b\w*(?:free|largest|biggest|total|used|size|wanted|remaining|minimum)\w*\s*[:=]?\s*)0x([0-9a-f]{1,6})\b"
)
_INFLUX = re.compile(r"^[\w.-]+(?:,[^\s=]+=[^\s,]+)* (\S+=\S+) (\d{10}|\d{13}|\d{16}|\d{19})$")
_INTEGER = re.compile(r"(?<==)(-?\d+)i(?=,|$)")

_WORDS = {
    "frei": "free", "freier": "free", "freies": "free", "freie": "free", "freien": "free",
    "belegt": "used", "belegter": "used", "benutzt": "used", "größter": "largest", "groesster": "largest",
    "größte": "largest", "kleinster": "minimum", "minimaler": "minimum", "gesamt": "total", "speicher": "memory",
    "zeit": "time", "uhrzeit": "time", "zeitstempel": "time", "fehlgeschlagen": "failed",
    "libre": "free", "libres": "free", "tas": "heap", "mémoire": "memory", "reste": "free", "restant": "free",
    "utilisé": "used", "utilisée": "used", "utilisés": "used", "occupé": "used", "bloc": "block", "échec": "failed",
    "insuffisante": "failed", "temps": "time", "heure": "time", "octets": "bytes", "octet": "bytes",
    "memoria": "memory", "bloque": "block", "usado": "used", "usada": "used", "hora": "time", "tiempo": "time",
    "libera": "free", "liberi": "free", "blocco": "block", "usata": "used",
}  # fmt: skip
"""German, French, Spanish and Italian words of a heap, in English."""

_PHRASES = re.compile(r"(?i)\bplus (?:grand|gros) (?:bloc|block)\b|\bbloque m[aá]s grande\b|\bblocco pi[uù] grande\b")
_WORD = re.compile(r"(?i)\b(?:" + "|".join(sorted(_WORDS, key=len, reverse=True)) + r")\b")
_OCTETS = re.compile(r"(?<=\d) o\b")


def plain_lines(lines: Sequence[str]) -> list[str]:
    """The lines in one form; as many as before, so that line numbers stay."""
    result = [_plain(line) for line in lines]
    separator = next((line for line in result if line.strip()), "")
    if separator.count(";") and "," not in separator:  # a table with ; between cells has , in numbers
        count = separator.count(";")
        result = [_DECIMAL_COMMA.sub(".", line) if line.count(";") == count else line for line in result]
    return result


def _plain(line: str) -> str:
    line = _QUOTED.sub("", _COLOUR.sub("", line))
    line = _SYSLOG.sub(r"\1 ", _PRIORITY.sub("", line))
    line = _DATE.sub(_of_date, _HEADING.sub("", line))
    line = _HOURS.sub(r"\1:00", _DAY_FIRST.sub(_iso, line))
    line = _GC_FREE.sub(lambda match: f"max free sz: {int(match[1]) * GC_BLOCK}", _GC_USED.sub("", line))
    line = _CAPABILITY.sub(lambda match: f"free {match[1].lower().replace('8bit', '').replace('default', '')}: ", line)
    line = _TASMOTA.sub(lambda match: f'"Heap":{float(match[1]) * 1024:.0f}', line)
    line = _TASK.sub(lambda match: f"{match[1]}{match[2]}{match[3]}, wanted {int(match[2]) * _STACK_WORD}", line)
    line = _SENSOR.sub(r"\1: ", line)
    if _JEMALLOC.search(line):  # what is active are the pages that hold what is allocated
        line = _BEYOND.sub("", line).replace("active", "total")
    if "0x" in line:
        line = _HEXADECIMAL.sub(lambda match: match[1] + str(int(match[2], 16)), line)
    if influx := _INFLUX.match(line):
        fields = _INTEGER.sub(r"\1", influx[1]).replace(",", " ")
        return f"time={int(influx[2]) / 10 ** (len(influx[2]) - 10):.3f} {fields}"
    if not line.isascii() or _WORD.search(line):
        line = _WORD.sub(lambda match: _WORDS[match[0].lower()], _PHRASES.sub("largest block", line))
    for form in (_POINTS, _BLANKS, _APOSTROPHES):
        line = form.sub(lambda match: re.sub(r"\D", "", match[0]), line)
    return _OCTETS.sub(" B", line)


def _iso(match: re.Match[str]) -> str:
    year = match[4] if len(match[4]) == 4 else f"20{match[4]}"
    return f"{match[1]}{year}-{match[3]}-{match[2]} "


def _of_date(match: re.Match[str]) -> str:
    """A line that `date` prints."""
    if match[1] not in _MONTHS:
        return match[0]
    return f"{match[4]}-{_MONTHS.index(match[1]) + 1:02d}-{int(match[2]):02d} {match[3]}"

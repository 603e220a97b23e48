"""Logs in any wording: lines described by patterns, which are proposed from the log itself.

A pattern is `EVENT=TEXT` with EVENT one of alloc, calloc, realloc, free and fail. TEXT is the text of the line with
fields in braces: {size}, {address}, {old} (the block that a realloc resizes), {align}, {seconds}, {ms}, {us}, {thread}
and {site}; `...` stands for any text, and blanks for any number of blanks. It may match anywhere in a line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from heapwright._native import lib
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.scanner import Form, Scanner
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.logs.source import Source

EVENTS = ("alloc", "calloc", "realloc", "free", "fail")

_ADDRESS = rb"(?:0x)*([0-9a-fA-F]{1,16}|\(nil\)|\(null\)|NULL|nil)"
_FIELDS = {
    "size": rb"(0x[0-9a-fA-F]{1,16}|\d{1,19})",
    "address": _ADDRESS,
    "old": _ADDRESS,
    "align": rb"(0x[0-9a-fA-F]{1,16}|\d{1,10})",
    "seconds": rb"(\d{1,12}(?:\.\d{1,9})?)",
    "ms": rb"(\d{1,15}(?:\.\d{1,9})?)",
    "us": rb"(\d{1,18}(?:\.\d{1,9})?)",
    "thread": rb"(\S{1,80})",
    "site": rb"(\S{1,200})",
}
_NEEDED = {"alloc": ("size", "address"), "calloc": ("size", "address"), "realloc": ("old", "address", "size")}
_NEEDED |= {"free": ("address",), "fail": ("size",)}
_NANOSECONDS = {"seconds": 10**9, "ms": 10**6, "us": 10**3}

SHARE = 1 / 3
"""Share of the lines that must hold an address, with a size in some, for patterns to be proposed."""

_SAMPLE = 2000
"""Lines that are looked at for a proposal."""


@dataclass(frozen=True)
class LinePattern:
    """One kind of line.

    Attributes:
        event: one of EVENTS.
        text: as the user wrote it.
        fields: in the order of the groups of `line`.
        line: finds it.
        form: of its usual lines; None if there is none.
    """

    event: str
    text: str
    fields: tuple[str, ...]
    line: re.Pattern[bytes]
    form: Form | None

    @classmethod
    def parse(cls, text: str) -> LinePattern:
        """Read `EVENT=TEXT`; raises ParameterError for an unknown event or field, or one that is missing."""
        event, equals, words = text.partition("=")
        if not equals or event not in EVENTS:
            raise ParameterError(
                f"pattern {text!r}: must be EVENT=TEXT with EVENT one of {', '.join(EVENTS)}", parameter="pattern"
            )
        fields: list[str] = []
        line = b""
        for part in re.split(r"(\{\w*\}|\.\.\.|\s+)", words.strip()):
            if part == "...":
                line += rb".*?"
            elif part.isspace():
                line += rb"\s+"
            elif part.startswith("{"):
                field = part[1:-1]
                if field not in _FIELDS or field in fields:
                    problem = "stands there twice" if field in fields else "is no field"
                    raise ParameterError(
                        f"pattern {text!r}: {part} {problem}; valid: {', '.join(_FIELDS)}", parameter="pattern"
                    )
                fields.append(field)
                line += _FIELDS[field]
            else:
                line += re.escape(part.encode())
        if lacking := [field for field in _NEEDED[event] if field not in fields]:
            raise ParameterError(f"pattern {text!r}: {event} needs {{{lacking[0]}}}", parameter="pattern")
        return cls(event, text, tuple(fields), re.compile(line), _form(event, words))


_FORM_FIELDS = {
    "size": "{size:xz}",
    "address": "{address:XHn}",
    "old": "{old:XHn}",
    "align": "{align:xz}",
    "thread": "{thread}",
    "site": "{site}",
    **{unit: f"{{float12:{nanoseconds}}}" for unit, nanoseconds in _NANOSECONDS.items()},
}
_KIND_OF_EVENT = {
    "alloc": lib.HW_LOG_MALLOC,
    "calloc": lib.HW_LOG_CALLOC,
    "realloc": lib.HW_LOG_RESIZE,
    "free": lib.HW_LOG_FREE,
    "fail": lib.HW_LOG_FAIL,
}


def _form(event: str, words: str) -> Form | None:
    """The form of a pattern that begins with text, whose fields end where a blank or other text begins."""
    parts = [part for part in re.split(r"(\{\w*\}|\.\.\.\s*|\s+)", words.strip()) if part]
    result = "{...}"
    if not parts or parts[0].startswith("...") or parts[-1].startswith("..."):
        return None
    for place, part in enumerate(parts):
        before, after = parts[place - 1] if place else "...", parts[place + 1] if place + 1 < len(parts) else " "
        if part.startswith("{") and (before.startswith("...") or not _ends(part, after)):
            return None
        result += _form_of_part(part)
    return Form(_KIND_OF_EVENT[event], result + "{any}", searched=True)


def _ends(field: str, after: str) -> bool:
    """Whether it is clear where a field ends before what follows it: a name goes up to a blank."""
    return field not in ("{thread}", "{site}") or after.isspace() or after.startswith("...")


def _form_of_part(part: str) -> str:
    if part.startswith("..."):
        return "{...}" if part == "..." else "{... }"
    if part.isspace():
        return "{_}"
    return _FORM_FIELDS[part[1:-1]] if part.startswith("{") else re.sub(r"([\\{\[\]])", r"\\\1", part)


def format_of_patterns(texts: Sequence[str]) -> Format:
    """The format of logs whose lines match some patterns, of which one must allocate.

    A line is taken by the first pattern that matches. Raises ParameterError as `LinePattern.parse` does.
    """
    patterns = [LinePattern.parse(text) for text in texts]
    if not any(pattern.event in ("alloc", "calloc") for pattern in patterns):
        raise ParameterError("no pattern allocates; give one that begins with alloc=", parameter="pattern")
    loses = () if any(pattern.event == "free" for pattern in patterns) else ("no pattern frees: all objects live on",)

    def read(source: Source) -> LogHistory:
        history = source.history()
        unused = Counter(pattern.text for pattern in patterns)

        def read_line(line: bytes) -> None:
            for pattern in patterns:
                if match := pattern.line.search(line):
                    del unused[pattern.text]
                    _note(history, pattern, match)
                    return

        log = ScannedLog(source, read_line, history)
        forms = [pattern.form for pattern in patterns]
        log.read(lambda: Scanner([form for form in forms if form]) if all(forms) else None)
        for number in log.forms:
            del unused[patterns[number].text]
        if unused:
            history.caveats.append(f"no line matches {', '.join(map(repr, unused))}")
        return history

    return Format("pattern", lambda _: False, read, loses)


def _note(history: LogHistory, pattern: LinePattern, match: re.Match[bytes]) -> None:
    values = dict(zip(pattern.fields, match.groups(), strict=True))
    for unit, nanoseconds in _NANOSECONDS.items():
        if unit in values:
            history.now_ns = round(float(values[unit]) * nanoseconds)
    if "thread" in values:
        history.set_thread(values["thread"])
    if "site" in values:
        history.set_site(values["site"].decode(errors="replace"))
    size = int(values["size"], 0 if values["size"].startswith(b"0x") else 10) if "size" in values else 0
    address = _address(values.get("address", b"0"))
    if pattern.event == "free":
        history.release(address)
    elif pattern.event == "realloc":
        history.resize(_address(values["old"]), address, size)
    elif pattern.event == "fail":
        history.fail(size)
    else:
        align = int(values.get("align", b"0"), 0)
        history.allocate(address, size, cleared=pattern.event == "calloc", align=align)


def _address(text: bytes) -> int:
    """A hexadecimal address; 0 for a null pointer in words."""
    return 0 if text.strip(b"()").lower() in (b"nil", b"null") else int(text, 16)


_TOKEN = re.compile(r"(?:0x)*0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
_KINDS = (
    ("fail", re.compile(r"(?i)fail|out of memory|oom\b|no memory|null")),
    ("free", re.compile(r"(?i)\bfreed?\b|dealloc|release|\bdel(?:ete)?\b|\bfree\w*")),
    ("realloc", re.compile(r"(?i)realloc|resize")),
    ("calloc", re.compile(r"(?i)calloc|zalloc")),
    ("alloc", re.compile(r"(?i)alloc|\bnew\b|\btake\b|\bget\b|reserve|acquire|obtain")),
    ("free", re.compile(r"(?i)\bgive\b|\bput\b|\breturn(?:ed)?\b")),  # "allocated 24 bytes, returned 0x..." is none
)
_STATE_BEFORE = re.compile(r"(?i)(?:left|free|remaining|used|total)\s*[:=]\s*(?:\d+\s*/\s*)?$")
_WORDS_BEFORE = 64
"""Characters in front of a number that may name it."""
_LARGEST_SIZE = 1 << 20
"""A hexadecimal number above it is an address."""
_SIZE_BEFORE = re.compile(r"(?i)(?:size|bytes|len(?:gth)?|sz|n)\s*[:=]?\s*\(?$")
_SIZE_AFTER = re.compile(r"(?i)\s*\)?\s*(?:bytes?\b|b\b|octets)")


def propose(lines: Iterable[str]) -> list[str]:
    """Patterns for a log in unknown wording, from its first lines; empty if they hold no calls.

    A third of the lines that are not blank must hold an address, and an allocation a size. Lines that differ in
    numbers alone are of one kind; the most frequent of each event gives the pattern.
    """
    shapes: dict[str, Counter[str]] = {}
    with_address = total = 0
    for number, line in enumerate(lines):
        if number == _SAMPLE:
            break
        if not line.strip():
            continue
        total += 1
        if "0x" not in line:
            continue
        with_address += 1
        event, word = next(((name, found) for name, words in _KINDS if (found := words.search(line))), ("", None))
        if word is not None and (text := _shape(line.rstrip(), event, word.start())):
            shapes.setdefault(event, Counter())[text] += 1
    if not total or with_address < SHARE * total or not shapes.keys() & {"alloc", "calloc"}:
        return []
    return [f"{event}={text}" for event in EVENTS if event in shapes for text in _texts(shapes[event])]


def _texts(shapes: Counter[str]) -> list[str]:
    """The texts of an event: one with {site} if its lines differ in one word alone, else the two most frequent."""
    lines = [shape.split() for shape in shapes]
    if len(lines) > 1 and len({len(line) for line in lines}) == 1:
        differing = [place for place, words in enumerate(zip(*lines, strict=True)) if len(set(words)) > 1]
        if len(differing) == 1 and "{" not in "".join(line[differing[0]] for line in lines):
            lines[0][differing[0]] = "{site}"
            return [" ".join(lines[0])]
    return [text for text, _ in shapes.most_common(2)]


def _shape(line: str, event: str, word: int) -> str | None:
    """The text of a pattern for a line of an event, which is named at `word`: fields for the numbers that matter, `...`
    for others between.
    """
    tokens = list(_TOKEN.finditer(line))
    fields = _fields(line, event, tokens)
    if fields is None:
        return None
    first, last = min(fields), max(fields)
    begin = min(first, line.rfind(" ", 0, word) + 1)
    result, at = "", begin
    for token in tokens:
        if token.end() <= begin or token.start() > last:
            continue
        result += line[at : token.start()]
        result += fields.get(token.start(), "...")
        at = token.end()
    return re.sub(r"\s+", " ", result).strip() or None


def _fields(line: str, event: str, tokens: Sequence[re.Match[str]]) -> dict[int, str] | None:
    """The fields of a pattern by their place in the line; None if the line lacks one that the event needs."""
    addresses = [token for token in tokens if "0x" in token[0]]
    fields: dict[int, str] = {}
    if event == "realloc":
        if len(addresses) < 2:
            return None
        fields |= {addresses[0].start(): "{old}", addresses[1].start(): "{address}"}
    elif event != "fail":
        if not addresses:
            return None
        fields[addresses[0].start()] = "{address}"
    if event != "free":
        size = _size(line, tokens)
        if size is None:
            return None
        fields[size.start()] = "{size}"
    if (time := re.match(r"\s*\[\s*(\d+\.\d+)\]", line)) is not None:
        fields[time.start(1)] = "{seconds}"
    return fields


def _size(line: str, tokens: Sequence[re.Match[str]]) -> re.Match[str] | None:
    """The number that a line calls a size, or the first integer; without any, the least hexadecimal number."""
    numbers = [
        token
        for token in tokens
        if "0x" not in token[0] and "." not in token[0] and not _STATE_BEFORE.search(_before(line, token))
    ]
    for token in numbers:
        if _SIZE_AFTER.match(line, token.end()) or _SIZE_BEFORE.search(_before(line, token)):
            return token
    if numbers:
        return numbers[0]
    least = min(
        (token for token in tokens if "0x" in token[0]), key=lambda token: int(token[0].rpartition("0x")[2], 16)
    )
    return least if int(least[0].rpartition("0x")[2], 16) <= _LARGEST_SIZE else None


def _before(line: str, token: re.Match[str]) -> str:
    """The words that say what a number is: a line may have thousands of numbers, and all of it before each."""
    return line[max(0, token.start() - _WORDS_BEFORE) : token.start()]


def no_pattern_error(path: object, proposed: Sequence[str]) -> HeapwrightError:
    """The error for a log in unknown wording, with the patterns that would read it."""
    patterns = " ".join(f"'{text}'" for text in proposed)
    return HeapwrightError(
        f"{path}: no known format, but lines that look like heap calls; try the patterns {patterns}",
        parameter="pattern",
    )

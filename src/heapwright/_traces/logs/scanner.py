"""Forms of lines, and the scanner (``native/log_scan.c``) that finds the calls in lines that fit them.

A form is the text of a line with fields in braces and optional parts in brackets; a backslash takes the next character
as it is. It describes the usual lines of a format. Lines that fit none are read by the format's own patterns, so a form
must give what they give, and a line may fit one form at most.

- Numbers: {address}, {old}, {size}, {count} (times {size}), {align} and {number} (of nothing). After a colon follows
  what they may look like: x hexadecimal with 0x in lower case, X in any, h and H the same without 0x, n (nil), d
  decimal, z decimal that may begin with zeros. {cpu} is a decimal of at most five digits.
- Names: {thread}, {site}, {process} and {word} (of nothing) go up to a blank or to the first character of the text
  behind them. After a colon: 9 digits alone, c a cell of a table, p no parentheses around it, w letters and digits.
- Times, which add up: {hour}, {minute}, {second}, {us}, {ns}, {ms} (hexadecimal) and {fraction}, with the number of
  their digits where it matters. {float:FACTOR} is a decimal number times FACTOR ns.
- Other text: {_} blanks, { } blanks or none, {+} spaces, {*} spaces or none, each with how many at most; {...} any text
  up to the text behind it, {... } up to one that a blank precedes; {lib} a name of a file up to a hyphen; {any} all
  that follows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._traces.events import AS_BEFORE, EVENT, NO_TIME, ROOM, EventRows

_SLOTS = {
    "address": lib.HW_LOG_ADDRESS,
    "old": lib.HW_LOG_OLD_ADDRESS,
    "size": lib.HW_LOG_SIZE,
    "count": lib.HW_LOG_COUNT,
    "align": lib.HW_LOG_ALIGN,
    "number": lib.HW_LOG_NO_SLOT,
}
_NAMES = {
    "thread": lib.HW_LOG_THREAD,
    "site": lib.HW_LOG_SITE,
    "process": lib.HW_LOG_PROCESS,
    "word": lib.HW_LOG_NO_SLOT,
}
_LONGEST_NAMES = {"thread": 60, "site": 200, "process": 60, "word": 200}
_LOOKS = {
    "x": lib.HW_LOG_HEX,
    "X": lib.HW_LOG_HEX | lib.HW_LOG_UPPER,
    "h": lib.HW_LOG_BARE,
    "H": lib.HW_LOG_BARE | lib.HW_LOG_UPPER,
    "n": lib.HW_LOG_NIL,
    "d": lib.HW_LOG_DECIMAL,
    "z": lib.HW_LOG_ZEROS,
}
_TIMES = {
    "hour": (1, 4, 3600 * 10**9),
    "minute": (2, 2, 60 * 10**9),
    "second": (1, 10, 10**9),
    "second2": (2, 2, 10**9),
    "second9": (1, 9, 10**9),
    "us": (1, 15, 1000),
    "ns": (1, 19, 1),
    "ms": (1, 10, 10**6),
}
_BLANKS = {" ": (0, 0), "_": (1, 0), "*": (0, 1), "+": (1, 1)}
"""The least number of blanks, and whether they must be spaces."""
_WORDS = {"9": 1, "c": 2, "p": 4, "w": 8}
_PIECE = re.compile(r"\\(.)|\{([^}]*)\}|(\[)|(\])|([^\\{\[\]]+)", re.DOTALL)


def event_of(kind: int, **fields: int) -> NDArray[Any]:
    """One event, whose other fields say nothing."""
    event = np.zeros(1, EVENT)
    event["kind"], event["now_ns"] = kind, NO_TIME
    for field in ("thread", "site", "process"):
        event[field] = AS_BEFORE
    for field, value in fields.items():
        event[field] = value
    return event


class Form(NamedTuple):
    """A form of line: `kind` is one of HW_LOG_...

    `default` are the time, thread and site of lines that have none, `old` is what an event has in place of another
    address. `plus` is added to addresses. `searched` says that
    the form may begin anywhere in the line; then all forms of a scanner must say so.
    """

    kind: int
    text: str
    default: Mapping[str, Any] = MappingProxyType({})
    old: int = 0
    plus: int = 0
    searched: bool = False


class _Compiler:
    """The parts of forms."""

    def __init__(self) -> None:
        self.parts: list[dict[str, int]] = []
        self.literals = bytearray()
        self._groups: list[int] = []

    def add(self, text: str) -> None:
        for piece in _PIECE.finditer(text):
            escaped, field, opens, closes, literal = piece.groups()
            if opens:
                self._groups.append(len(self.parts))
                self.parts.append({"code": lib.HW_LOG_OPTIONAL})
            elif closes:
                begin = self._groups.pop()
                self.parts[begin]["count"] = len(self.parts) - begin - 1
            elif field is not None:
                self.parts.append(self._field(field))
            else:
                self._literal((escaped or literal).encode())
        if not self.parts or self.parts[-1] != {"code": lib.HW_LOG_LAST, "flags": 1}:
            self.parts.append({"code": lib.HW_LOG_LAST})

    def head(self, forms: Sequence[Sequence[dict[str, int]]]) -> int:
        """How many parts, with their texts, all forms begin with."""

        def content(part: dict[str, int]) -> dict[str, object]:
            begin, length = part.get("literal", 0), part.get("length", 0)
            return {**part, "literal": bytes(self.literals[begin : begin + length])}

        result = 0
        for parts in zip(*forms, strict=False):
            if any(content(part) != content(parts[0]) for part in parts[1:]):
                break
            result += 1
        begins = [at for at, part in enumerate(forms[0]) if part["code"] == lib.HW_LOG_OPTIONAL]
        return min([result, *(at for at in begins if at < result <= at + forms[0][at]["count"])])

    def _literal(self, text: bytes) -> None:
        last = self.parts[-1] if self.parts else {}
        if last.get("code") == lib.HW_LOG_WORD and "length" not in last:
            last |= {"literal": len(self.literals), "length": 1}
        if last.get("code") in (lib.HW_LOG_LITERAL, lib.HW_LOG_SKIP) and self._is_last(last):
            last["length"] += len(text)
        else:
            self.parts.append({"code": lib.HW_LOG_LITERAL, "literal": len(self.literals), "length": len(text)})
        self.literals += text

    def _is_last(self, part: dict[str, int]) -> bool:
        """Whether the text of a part is the latest; the text of an optional part must not grow."""
        begins = [at for at, item in enumerate(self.parts) if item["code"] == lib.HW_LOG_OPTIONAL]
        closed = any(at + self.parts[at].get("count", 0) == len(self.parts) - 1 for at in begins)
        return not closed and part["literal"] + part["length"] == len(self.literals)

    def _field(self, field: str) -> dict[str, int]:
        name, _, looks = field.partition(":")
        if name in _SLOTS:
            flags = 0
            for look in looks:
                flags |= int(_LOOKS[look])
            return {"code": lib.HW_LOG_NUMBER, "slot": _SLOTS[name], "flags": flags, "least": 1, "most": 19}
        if name in _NAMES:
            more = sum(_WORDS[look] for look in looks)
            least, most = int("c" not in looks), 10 if "9" in looks else _LONGEST_NAMES[name]
            return {"code": lib.HW_LOG_WORD, "slot": _NAMES[name], "more": more, "least": least, "most": most}
        if name in _TIMES:
            least, most, factor = _TIMES[name]
            flags = lib.HW_LOG_BARE if name == "ms" else 0
            return {"code": lib.HW_LOG_TIME, "least": least, "most": most, "factor": factor, "flags": flags}
        if name[:1] in _BLANKS:
            least, flags = _BLANKS[name[0]]
            return {"code": lib.HW_LOG_BLANKS, "least": least, "most": int(name[1:] or 255), "flags": flags}
        if name.startswith("float"):
            return {"code": lib.HW_LOG_FLOAT, "most": int(name[5:] or 15), "factor": int(looks)}
        return _OTHERS[name] | ({"literal": len(self.literals)} if name.startswith("...") else {})


_OTHERS = {
    "fraction": {"code": lib.HW_LOG_FRACTION, "least": 1, "most": 9},
    "fraction6": {"code": lib.HW_LOG_FRACTION, "least": 6, "most": 9},
    "fraction9": {"code": lib.HW_LOG_FRACTION, "least": 9, "most": 9},
    "...": {"code": lib.HW_LOG_SKIP, "length": 0},
    "... ": {"code": lib.HW_LOG_SKIP, "length": 0, "flags": 1},
    "lib": {"code": lib.HW_LOG_RUN, "least": 1},
    "cpu": {"code": lib.HW_LOG_NUMBER, "flags": lib.HW_LOG_ZEROS, "least": 1, "most": 5},
    "any": {"code": lib.HW_LOG_LAST, "flags": 1},
}


class Scanner:
    """The scanner of a format's lines.

    Attributes:
        rows: room for what a history makes of its events.
    """

    def __init__(
        self,
        forms: Sequence[Form],
        *,
        needles: Sequence[bytes] = (),
        starts: bytes | None = None,
        thread_name: Callable[[bytes], object] = bytes,
    ) -> None:
        """A line with none of `needles`, or that begins with none of `starts`, is about no call.

        `thread_name` is the identity of a thread with this name.
        """
        compiler = _Compiler()
        begins = []
        for form in forms:
            begins.append(len(compiler.parts))
            compiler.add(form.text)
        ends = [*begins[1:], len(compiler.parts)]
        self.rows = EventRows()
        self._thread_name = thread_name
        self._literals = ffi.new("char[]", bytes(compiler.literals) + b"\0")
        self._parts = ffi.new("struct hw_log_part[]", compiler.parts)
        self._forms = ffi.new("struct hw_log_form[]", len(forms))
        parts = [compiler.parts[begin:end] for begin, end in zip(begins, ends, strict=True)]
        head = 0 if len({(str(form.default), form.plus) for form in forms}) > 1 else compiler.head(parts)
        scanner = lib.hw_scanner_new(self._forms, len(forms), self._parts, self._literals, head)
        if scanner == ffi.NULL:
            raise MemoryError
        self._scanner = ffi.gc(scanner, lib.hw_scanner_delete)
        self._length = ffi.new("size_t *")
        self._scanned = ffi.new("struct hw_scanned *")
        self._names: list[tuple[bytes, object, str]] = []
        for item, form, begin, end in zip(self._forms, forms, begins, ends, strict=True):
            item.first, item.count, item.kind = begin, end - begin, form.kind
            item.old, item.plus, item.searched = form.old, form.plus, form.searched
            item.now_ns = form.default.get("now_ns", NO_TIME)
            for name in ("thread", "site", "process"):
                setattr(item, name, self.number(form.default[name]) if name in form.default else AS_BEFORE)
        self._needles = ffi.new("char[]", b"\0".join(needles) + b"\0") if needles else ffi.NULL
        self._starts = ffi.NULL if starts is None else ffi.new("char[]", starts + b"\0")
        lib.hw_scanner_ignore(self._scanner, self._needles, len(needles), self._starts)
        self._events = np.empty(ROOM, EVENT)
        self._reports = np.empty(ROOM, np.uint64)

    def number(self, name: object) -> int:
        """The number of a name that is bytes, or text; AS_BEFORE for any other."""
        text = name.encode() if isinstance(name, str) else name
        if not isinstance(text, bytes):
            return AS_BEFORE
        return int(lib.hw_scanner_number(self._scanner, text, len(text)))

    @property
    def names(self) -> int:
        """How many names there are."""
        return int(lib.hw_scanner_names(self._scanner))

    def name(self, number: int) -> bytes:
        """The name with this number."""
        return self._named(number)[0]

    def thread(self, number: int) -> object:
        """The identity of the thread whose name has this number."""
        return self._named(number)[1]

    def site(self, number: int) -> str:
        """The name with this number as text."""
        return self._named(number)[2]

    def _named(self, number: int) -> tuple[bytes, object, str]:
        for fresh in range(len(self._names), number + 1):
            name = lib.hw_scanner_name(self._scanner, fresh, self._length)
            text = bytes(ffi.buffer(name, self._length[0])) if self._length[0] else b""
            self._names.append((text, self._thread_name(text), text.decode(errors="replace")))
        return self._names[number]

    def scan(self, text: bytes, longest: int) -> Iterator[tuple[NDArray[Any], NDArray[np.uint64], int]]:
        """Give events of whole lines, places of lines that may report a loss, and where in the text they end.

        The arrays are valid until the next.
        """
        data, scanned = ffi.from_buffer(text), self._scanned
        scanned.event = ffi.cast("struct hw_log_event *", self._events.ctypes.data)
        scanned.report = ffi.cast("uint64_t *", self._reports.ctypes.data)
        scanned.at, scanned.room, scanned.longest = 0, ROOM, longest
        while scanned.at < len(text):
            scanned.events = scanned.reports = 0
            lib.hw_scanner_scan(self._scanner, data, len(text), scanned)
            yield self._events[: scanned.events], self._reports[: scanned.reports], int(scanned.at)

"""Heap calls that a program logs in words of its own, with requests that failed and the memory each is of.

A line is a call if it has a word for malloc, free or realloc and an address (or says that there is none), and, unless
it frees, a size: `Allocated 640 Bytes at 0x20003000`, `[ALLOC] ptr = 0xf86850 | length = 77`. Heapwright's own `hw+`
lines, ESP-IDF's heap trace and CSV with columns for call, address and size are read here as well: here nothing that
failed is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from heapwright._diagnose.moments import Clock, without_time
from heapwright._diagnose.wording import memory_of, time_unit_of
from heapwright._traces.failures import with_life
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC

Op = Literal["malloc", "free", "realloc"]
LEAST_SHARE = 1 / 3
LEAST_CALLS = 2
SAMPLE = 1000
SAMPLED_SHARE = 0.1
"""A text is read for calls only if that share of a sample of its lines are calls."""

_HW = re.compile(
    r"hw(?P<op>[-+=])(?: (?P<old>0x[0-9a-f]+|\d+)(?= (?:0x[0-9a-f]+|\d+) \d+))? (?P<address>0x[0-9a-fA-F]+|\d+)"
    r"(?: (?P<rest>[\d ]+))?"
)
_ESP = re.compile(
    r"(?P<size>\d+) bytes \(@ (?P<address>0x[0-9a-f]+)(?:, (?P<memory>[^)]*))?\) allocated CPU \d ccount 0x[0-9a-f]+"
    r"(?: caller (?P<caller>\S+))?(?P<rest>.*)"
)
_VERB = re.compile(
    r"(?i)(?P<realloc>realloc)|(?P<free>(?<![a-z])(?:[kv]|mem_?|heap_?|os_?|pv?port(?:v)?)?(?:freed?|frees|vportfree|dealloc\w*"
    r"|releas\w*|delete)\b)|(?P<malloc>alloc|memalign|\bnew\b)"
)
_ADDRESS = re.compile(
    r"(?i)(?:(?P<key>[a-z_]+)\W{0,3})?(?:0x)?0x(?P<address>[0-9a-f]{4,16})\b|(?P<none>\(nil\)|\bNULL\b|\b0x0+\b)"
)
_SIZE = (
    re.compile(r"(?i)(?<![\w.])(\d{1,9})\s*-?\s*(?:bytes?|b)\b"),
    re.compile(r"(?i)\b(?:size|sz|len|length|bytes|nbytes|bytes_req|req\w*)\b\W{0,3}(\d{1,9})\b"),
    re.compile(r"(?i)alloc\w*\W{0,3}(\d{1,9})\b"),
)
_FUNCTION = re.compile(
    r"(?i)(?P<name>\b\w*(?:malloc|calloc|realloc|memalign|aligned_alloc|free)\w*)\((?P<arguments>(?:[\s,]*(?:0x[0-9a-f]+|\d+))+)\)"
)
_TOTALS = re.compile(r"(?i)\b(?:total|free heap|remaining|left|peak|used)\b\W{0,3}\d+")
_FAILS = re.compile(r"(?i)fail|no memory|out of memory")
_OTHER_KEYS = ("heap", "caller", "site", "pc", "lr", "ra")
"""Words before an address that is not that of a block."""
_CSV_OP = ("op", "operation", "action", "call", "event", "type", "function", "func")
_CSV_ADDRESS = ("address", "addr", "ptr", "pointer")
_CSV_SIZE = ("size", "bytes", "length", "len", "requested")


@dataclass(frozen=True)
class HeapCall:
    """One heap call; a request that failed has `failed`, and no address."""

    op: Op
    address: int
    size: int = 0
    old: int = 0
    seconds: float | None = None
    site: str = ""
    memory: str = ""
    failed: bool = False


@dataclass
class CallLog:
    """The calls of one memory."""

    memory: str
    calls: list[HeapCall] = field(default_factory=list)

    @property
    def failed(self) -> list[HeapCall]:
        """The requests that failed."""
        return [call for call in self.calls if call.failed]

    def trace(self, name: str, serve: bool = False) -> Trace | None:
        """The trace of the calls that succeeded, or, with `serve`, as if none had failed.

        A request that failed then lives as `heapwright._traces.failures` says. None if there is no call.
        """
        trace = _trace(self.calls if serve else [call for call in self.calls if not call.failed], name)
        return with_life(trace) if trace is not None and serve else trace


def call_logs(lines: list[str]) -> list[CallLog]:
    """The calls of each memory of a text; none if too few of its lines are calls."""
    for read in (_hw, _esp, _csv, _words):
        calls = list(read(lines))
        if len(calls) >= LEAST_CALLS:
            logs: dict[str, CallLog] = {}
            at: dict[int, str] = {}
            for call in calls:
                memory = call.memory or (at.get(call.address, "") if call.op != "malloc" else "")
                if call.op != "free" and not call.failed:
                    at[call.address] = memory
                logs.setdefault(memory, CallLog(memory)).calls.append(call)
            return list(logs.values())
    return []


def other_lines(lines: list[str]) -> list[str]:
    """The lines of a log that are no calls, such as counters that the program prints in between."""
    return ["" if _call(without_time(line)[0], None) else line for line in lines]


# --- forms ------------------------------------------------------------------------------------------------------------


def _hw(lines: list[str]) -> Iterator[HeapCall]:
    for line in lines:
        match = _HW.search(line) if "hw" in line else None
        if match is None:
            continue
        address, rest = _number(match["address"]), (match["rest"] or "").split()
        if match["op"] == "-":
            yield HeapCall("free", address, seconds=_microseconds(rest, 0))
        elif rest:
            size, old = int(rest[0]), _number(match["old"] or "0")
            op: Op = "realloc" if match["op"] == "=" else "malloc"
            yield HeapCall(op, address, size, old, _microseconds(rest, 1), failed=address == 0 and size > 0)


def _microseconds(rest: list[str], place: int) -> float | None:
    return int(rest[place]) / 1e6 if len(rest) > place else None


def _esp(lines: list[str]) -> Iterator[HeapCall]:
    """ESP-IDF's heap trace has no time of a free: it lies before the next allocation at that address."""
    freed: dict[int, str] = {}
    address, memory = 0, ""
    for line in lines:
        match = _ESP.search(line) if "allocated CPU" in line else None
        if match is None:
            if line.lstrip().startswith("freed by") and address:
                freed[address] = memory
            continue
        address, memory = int(match["address"], 16), match["memory"] or ""
        if address in freed:
            yield HeapCall("free", address, memory=freed.pop(address))
        yield HeapCall("malloc", address, int(match["size"]), site=(match["caller"] or "").rstrip(","), memory=memory)
        if "freed" in match["rest"]:
            freed[address] = memory
    for address, memory in freed.items():
        yield HeapCall("free", address, memory=memory)


@dataclass(frozen=True)
class _CsvColumns:
    """Places of the columns of a table of calls; `time` has the unit in seconds too, and is None if there is none."""

    count: int
    op: int
    address: int
    size: int
    time: tuple[int, float] | None

    @classmethod
    def of(cls, header: str) -> _CsvColumns | None:
        """The columns that a header line names; None if it does not name call, address and size."""
        heads = [cell.lower() for cell in _csv_cells(header)]
        op, address, size = (
            next((heads.index(name) for name in names if name in heads), -1)
            for names in (_CSV_OP, _CSV_ADDRESS, _CSV_SIZE)
        )
        if min(op, address, size) < 0:
            return None
        times = [(at, unit or 1.0) for at, head in enumerate(heads) if (unit := time_unit_of(head)) is not None]
        return cls(len(heads), op, address, size, times[0] if times else None)

    def call(self, cells: list[str], clock: Clock) -> HeapCall | None:
        """The call of a row; None if it has other columns or names no call."""
        verb = _VERB.search(cells[self.op]) if len(cells) == self.count else None
        if verb is None:
            return None
        address, size, op = _number(cells[self.address]), _number(cells[self.size]), _op(verb)
        seconds = clock.of_cell(cells[self.time[0]], self.time[1]) if self.time else None
        if op == "free":
            return HeapCall(op, address, seconds=seconds)
        return HeapCall(op, address, size, seconds=seconds, failed=address == 0)


def _csv_cells(line: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(",")]


def _csv(lines: list[str]) -> Iterator[HeapCall]:
    columns = _CsvColumns.of(lines[0]) if lines else None
    if columns is None:
        return
    clock = Clock()
    for line in lines[1:]:
        call = columns.call(_csv_cells(line), clock)
        if call is not None:
            yield call


def _number(text: str) -> int:
    text = text.lower()
    digits = re.fullmatch(r"0x[0-9a-f]+|\d+", text)
    return int(text, 16 if text.startswith("0x") else 10) if digits else 0


def _words(lines: list[str]) -> Iterator[HeapCall]:
    """Lines in any wording, if a third of them are calls."""
    sample = lines[:: max(1, len(lines) // SAMPLE)]
    if sum(_call(without_time(line)[0], None) is not None for line in sample) < SAMPLED_SHARE * len(sample):
        return
    calls: list[HeapCall] = []
    clock, waiting = Clock(), False
    for line in lines:
        if waiting and calls and line.strip():
            calls[-1] = replace(calls[-1], site=line.strip())
            waiting = False
            continue
        text, time = without_time(line)
        call = _call(text, clock.at(time))
        if call:
            calls.append(call)
            waiting = text.rstrip().endswith("by:")
    filled = sum(bool(line.strip()) for line in lines)
    if len(calls) >= LEAST_SHARE * filled and {call.op for call in calls} & {"malloc"}:
        yield from calls


def _call(text: str, seconds: float | None) -> HeapCall | None:
    if match := _FUNCTION.search(text):
        return _function(match, text[match.end() :], seconds)
    verb = _VERB.search(text)
    return _described(text, _op(verb), seconds) if verb else None


def _described(text: str, op: Op, seconds: float | None) -> HeapCall | None:
    """A call in words, as `Allocated 640 Bytes at 0x20003000`."""
    addresses = list(_ADDRESS.finditer(text))
    own = [_address(item) for item in addresses if _key(item) not in _OTHER_KEYS]
    if not own:
        return None
    memory = next((f"heap 0x{item['address']}" for item in addresses if _key(item) == "heap"), memory_of(text))
    if op == "free":
        return HeapCall("free", own[0], seconds=seconds, memory=memory) if own[0] else None
    size = _size_in(text)
    if size is None:
        return None
    old, address = own[:2] if op == "realloc" and len(own) > 1 else (0, own[0])
    failed = address == 0 or bool(_FAILS.search(text))
    return HeapCall(op, 0 if failed else address, size, old, seconds, memory=memory, failed=failed)


def _key(address: re.Match[str]) -> str:
    """The word before an address, in lower case."""
    return (address["key"] or "").lower()


def _address(match: re.Match[str]) -> int:
    return int(match["address"], 16) if match["address"] else 0


def _size_in(text: str) -> int | None:
    """The size of a request; None if the line has none."""
    plain = _TOTALS.sub(" ", _ADDRESS.sub(" ", text))
    return next((int(match[1]) for pattern in _SIZE if (match := pattern.search(plain))), None)


def _function(match: re.Match[str], rest: str, seconds: float | None) -> HeapCall | None:
    """A call written as in C with its result behind it: `malloc(0x09) = 0x55`, `calloc(1, 36) @0x80 returned 0x20`."""
    name = match["name"].lower()
    arguments = [_number(item.strip()) for item in match["arguments"].split(",")]
    results = [
        _number(item) for item in re.findall(r"(?i)(?:=|returned|returns|->|:)\s*(0x[0-9a-f]+|0|\(nil\)|NULL)", rest)
    ]
    if "free" in name:
        return HeapCall("free", arguments[0], seconds=seconds) if arguments[0] else None
    if not results:
        return None
    size = arguments[0] * arguments[1] if "calloc" in name and len(arguments) > 1 else arguments[-1]
    old = arguments[0] if "realloc" in name and len(arguments) > 1 else 0
    op: Op = "realloc" if "realloc" in name else "malloc"
    return HeapCall(op, results[-1], size, old, seconds, failed=results[-1] == 0 and size > 0)


def _op(verb: re.Match[str]) -> Op:
    return "realloc" if verb["realloc"] else "free" if verb["free"] else "malloc"


# --- traces -----------------------------------------------------------------------------------------------------------


@dataclass
class _Rows:
    """The rows of a trace, each of op, id, size, site, microseconds and whether the request failed."""

    rows: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    live: dict[int, int] = field(default_factory=dict)
    """The ids of live objects by address."""
    sites: dict[str, int] = field(default_factory=lambda: {"": 0})
    made: int = 0

    def add(self, call: HeapCall, time: int) -> None:
        """Add the rows of one call."""
        site = self.sites.setdefault(call.site, len(self.sites))
        if call.op == "free":
            self._end(call.address, site, time)
        elif call.failed:
            self.rows += [(MALLOC, self.made, call.size, site, time, 1), (FREE, self.made, 0, site, time, 0)]
            self.made += 1
        elif call.op == "realloc" and call.old in self.live:
            self.live[call.address] = number = self.live.pop(call.old)
            self.rows.append((REALLOC, number, call.size, site, time, 0))
        else:
            self._end(call.address, site, time)
            self.rows.append((MALLOC, self.made, call.size, site, time, 0))
            self.live[call.address] = self.made
            self.made += 1

    def _end(self, address: int, site: int, time: int) -> None:
        """Free the object at an address, if there is one."""
        if address in self.live:
            self.rows.append((FREE, self.live.pop(address), 0, site, time, 0))


def _trace(calls: list[HeapCall], name: str) -> Trace | None:
    """A trace of calls by address. An allocation at the address of a live object ends that; a free of none is left out.

    A request that failed is marked, and freed at once.
    """
    result = _Rows()
    timed = bool(calls) and all(call.seconds is not None for call in calls)
    start = min((call.seconds for call in calls if call.seconds is not None), default=0.0)
    last = -1
    for call in calls:
        if timed and call.seconds is not None:
            last = max(last, round((call.seconds - start) * 1e6))
        result.add(call, last)
    if not result.rows:
        return None
    columns = np.array(result.rows).T
    return Trace.from_columns(
        op=columns[0],
        id=columns[1],
        size=columns[2],
        site=columns[3],
        sites=tuple(result.sites),
        ts_us=columns[4] if timed else None,
        failed=columns[5],
        name=name,
    )

"""Traces for other tools: buffers for offline planners, the lines of malloc labs, an array in C."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from heapwright._support.errors import ParameterError
from heapwright._support.names import printable
from heapwright._support.writing import replacing
from heapwright._traces.live_objects import Totals
from heapwright._traces.streams import Stream
from heapwright._traces.validation import CALLOC, FREE, REALLOC

MAX_OBJECTS = 1 << 25
"""Largest number of live objects that the array in C can number."""


@dataclass(frozen=True)
class Exported:
    """A trace that was written for another tool.

    Attributes:
        path: the file.
        format: one of `FORMATS`.
        events: calls of the trace.
        loses: what the trace has and the format cannot hold, in words.
        caveats: limits of what the trace itself records.
        repairs: what reading the trace dropped or changed, in words.
    """

    path: Path
    format: str
    events: int
    loses: tuple[str, ...]
    caveats: tuple[str, ...]
    repairs: tuple[str, ...]


def export(trace: Stream, path: Path, format: str) -> Exported:
    """Write a trace in another format, all of it or nothing, in memory for the live objects.

    - ``minimalloc``: CSV, ``id,lower,upper,size``, a row for each stretch of an object's life at one size, numbered
      from 0 as they end. It occupies ``size`` bytes (at least 1) from the call ``lower`` up to the call ``upper``,
      which does no longer count; what is never freed ends with the trace. A realloc ends one row and begins another.
    - ``malloclab``: a .rep file: the peak of live bytes, objects, calls and the weight 1, then ``a ID BYTES``,
      ``r ID BYTES``, ``f ID`` for each call; objects are numbered from 0 in the order of birth.
    - ``c``: an array of 8 bytes a call, with the macros that take it apart; objects are numbered below the peak of
      live objects, and a number is reused after a free.

    Raises HeapwrightError if the file cannot be written, or if more than `MAX_OBJECTS` objects are live at once in C.
    """
    if format not in FORMATS:
        raise ParameterError(f"{format!r} is no format; valid: {', '.join(FORMATS)}", parameter="format")
    write, keeps = FORMATS[format]
    totals, has = _survey(trace)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        write(file, trace, totals, path.stem)
    caveats = tuple(trace.metadata.get("caveats", "").splitlines())
    loses = tuple(item for item in has if item not in keeps)
    return Exported(path, format, totals.events, loses, caveats, tuple(trace.repairs))


def _survey(trace: Stream) -> tuple[Totals, list[str]]:
    """What the trace comes to, and what it has that a format may lose."""
    totals = Totals()
    calloc = aligned = False
    for window in trace.windows():
        totals.add(window)
        calloc |= bool((window["op"] == CALLOC).any())
        aligned |= bool(window["align"].any())
    present = {
        "times": totals.first_us >= 0,
        "threads": totals.threads > 1,
        "calloc apart from malloc": calloc,
        "alignments": aligned,
        "phases": trace.phases != ("",),
        "sites": trace.sites != ("",),
    }
    return totals, [what for what, there in present.items() if there]


def _calls(trace: Stream) -> Iterator[tuple[int, int, int, int]]:
    """Operation, id, size and alignment of each call."""
    for window in trace.windows():
        yield from zip(*(window[key].tolist() for key in ("op", "id", "size", "align")), strict=True)


def _minimalloc(file: IO[str], trace: Stream, totals: Totals, _: str) -> None:
    file.write("id,lower,upper,size\n")
    lives: dict[int, tuple[int, int]] = {}
    rows = 0
    for at, (op, id, size, _align) in enumerate(_calls(trace)):
        if op in (REALLOC, FREE):
            lower, bytes_ = lives.pop(id)
            file.write(f"{rows},{lower},{at},{bytes_ or 1}\n")
            rows += 1
        if op != FREE:
            lives[id] = at, size
    for row, (lower, bytes_) in enumerate(lives.values(), rows):
        file.write(f"{row},{lower},{totals.events},{bytes_ or 1}\n")


def _malloclab(file: IO[str], trace: Stream, totals: Totals, _: str) -> None:
    file.write(f"{totals.peak_bytes}\n{totals.living.allocated}\n{totals.events}\n1\n")
    number: dict[int, int] = {}
    born = 0
    for op, id, size, _align in _calls(trace):
        if op == FREE:
            file.write(f"f {number.pop(id)}\n")
        elif op == REALLOC:
            file.write(f"r {number[id]} {size}\n")
        else:
            number[id] = born
            file.write(f"a {born} {size}\n")
            born += 1


def _c(file: IO[str], trace: Stream, totals: Totals, stem: str) -> None:
    if totals.peak_objects > MAX_OBJECTS:
        raise ParameterError(
            f"{totals.peak_objects:,} objects live at once; c can number {MAX_OBJECTS:,}", parameter="format"
        )
    name = re.sub(r"\W", "_", stem, flags=re.ASCII).lstrip("_0123456789") or "trace"
    caveats = "".join(f" * {_comment(item)}.\n" for item in trace.metadata.get("caveats", "").splitlines())
    file.write(
        _C_HEAD.format(
            name=name,
            NAME=name.upper(),
            trace=_comment(trace.name),
            caveats=caveats,
            events=totals.events,
            objects=totals.peak_objects,
            peak=totals.peak_bytes,
        )
    )
    slot: dict[int, int] = {}
    free: list[int] = []
    for op, id, size, align in _calls(trace):
        if op <= CALLOC:
            slot[id] = free.pop() if free else len(slot)
        what = op << 30 | max(align.bit_length() - 1, 0) << 25 | slot[id]
        file.write(f"    {{0x{what:08x}u, {0 if op == FREE else size}u}},\n")
        if op == FREE:
            free.append(slot.pop(id))
    file.write("};\n")


def _comment(text: str) -> str:
    return printable(text).replace("*/", "* /")


_C_HEAD = """\
/* {trace}: {events:,} calls, at most {objects:,} objects and {peak:,} bytes live at once.
{caveats} *
 *     static void *objects[{NAME}_OBJECTS];
 *     for (size_t i = 0; i < {NAME}_CALLS; i++) {{
 *         const struct {name}_call call = {name}_calls[i];
 *         void **const object = &objects[{NAME}_OBJECT(call)];
 *         switch ({NAME}_OPERATION(call)) {{
 *         case 0: *object = malloc(call.size); break;
 *         case 1: *object = calloc(1, call.size); break;
 *         case 2: *object = realloc(*object, call.size); break;
 *         case 3: free(*object); break;
 *         }}
 *     }}
 */
#include <stdint.h>

#define {NAME}_CALLS {events}u
#define {NAME}_OBJECTS {objects}u
#define {NAME}_OPERATION(call) ((call).what >> 30)
/* Asked for in bytes; 1 where the heap's own will do. */
#define {NAME}_ALIGNMENT(call) (UINT32_C(1) << ((call).what >> 25 & 31u))
#define {NAME}_OBJECT(call) ((call).what & UINT32_C(0x1ffffff))

struct {name}_call {{
    uint32_t what;
    uint32_t size;
}};

static const struct {name}_call {name}_calls[] = {{
"""

Writer = Callable[[IO[str], Stream, Totals, str], None]

FORMATS: dict[str, tuple[Writer, tuple[str, ...]]] = {
    "minimalloc": (_minimalloc, ()),
    "malloclab": (_malloclab, ()),
    "c": (_c, ("calloc apart from malloc", "alignments")),
}
"""What writes each format, and what it keeps of that which another may lose."""

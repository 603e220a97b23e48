"""LTTng-UST's libc wrapper (liblttng-ust-libc-wrapper.so) as babeltrace2 prints it."""

from __future__ import annotations

import re

from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.functions import note_call, plain_name
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source

_EVENT = re.compile(
    rb"\[(?:[\d-]+ )?(\d{1,4}):(\d\d):(\d\d)\.(\d{9})\].*? lttng_ust_libc:(\w+): (?:\{[^}]*\}, )*\{ (.*) \}"
)
_THREAD = re.compile(rb"\bvtid = (\d+)")
_FIELD = re.compile(r"(\w+) = (0x[0-9A-Fa-f]{1,16}|0|[1-9]\d{0,18})")
_ARGUMENTS = {
    "calloc": ("nmemb", "size"),
    "realloc": ("in_ptr", "size"),
    "memalign": ("alignment", "size"),
    "free": ("ptr",),
}


def _read(source: Source) -> LogHistory:
    history = LogHistory(source.folder)
    for line in source.lines():
        outcome = _EVENT.fullmatch(line)
        if outcome is None:
            continue
        hours, minutes, seconds, part, event, rest = outcome.groups()
        name = "memalign" if event == b"posix_memalign" else plain_name(event.decode())
        if name is None:
            continue
        if thread := _THREAD.search(line):
            history.set_thread(thread[1])
        history.now_ns = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 10**9 + int(part)
        fields = {key: int(value, 0) for key, value in _FIELD.findall(rest.decode(errors="replace"))}
        result = fields.get("out_ptr", fields.get("ptr", 0))
        if any(key not in fields for key in _ARGUMENTS.get(name, ("size",))):
            history.skipped += 1
            continue
        history.skipped += not note_call(
            history, name, [fields[key] for key in _ARGUMENTS.get(name, ("size",))], result
        )
    return history


FORMAT = Format(
    "lttng",
    lambda start: b" lttng_ust_libc:" in start,
    _read,
    ("aligned_alloc is not logged", "calls of LTTng itself are logged, too"),
)

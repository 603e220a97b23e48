"""LTTng-UST's libc wrapper (liblttng-ust-libc-wrapper.so) as babeltrace2 prints it."""

from __future__ import annotations

import re

from heapwright._native import lib
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.functions import note_call, plain_name
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.scanner import Form, Scanner
from heapwright._traces.logs.scanning import ScannedLog
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


_HEAD = (
    r"\[{hour}:{minute}:{second2}.{fraction9}\]{...} lttng_ust_libc:"
    r"NAME: [\{ cpu_id = {number:z} \}, ]\{ [vpid = {number:z}, ]vtid = {thread:9} \}, \{ "
)
_FORMS = [
    Form(kind, _HEAD.replace("NAME", name) + fields + r" \}")
    for kind, name, fields in (
        (lib.HW_LOG_MALLOC, "malloc", "size = {size:d}, ptr = {address:X}"),
        (lib.HW_LOG_FREE, "free", "ptr = {address:X}"),
        (lib.HW_LOG_RESIZE, "realloc", "in_ptr = {old:Xd}, size = {size:d}, ptr = {address:X}"),
        (lib.HW_LOG_CALLOC, "calloc", "nmemb = {count:d}, size = {size:d}, ptr = {address:X}"),
    )
]


def _read(source: Source) -> LogHistory:
    history = LogHistory(source.folder)
    log = ScannedLog(source, lambda line: _read_line(history, line), history)
    log.read(lambda: Scanner(_FORMS, needles=(b" lttng_ust_libc:",)))
    return history


def _read_line(history: LogHistory, line: bytes) -> None:
    outcome = _EVENT.fullmatch(line)
    if outcome is None:
        return
    hours, minutes, seconds, part, event, rest = outcome.groups()
    name = "memalign" if event == b"posix_memalign" else plain_name(event.decode())
    if name is None:
        return
    if thread := _THREAD.search(line):
        history.set_thread(thread[1])
    history.now_ns = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 10**9 + int(part)
    fields = {key: int(value, 0) for key, value in _FIELD.findall(rest.decode(errors="replace"))}
    result = fields.get("out_ptr", fields.get("ptr", 0))
    if any(key not in fields for key in _ARGUMENTS.get(name, ("size",))):
        history.skipped += 1
        return
    history.skipped += not note_call(history, name, [fields[key] for key in _ARGUMENTS.get(name, ("size",))], result)


FORMAT = Format(
    "lttng",
    lambda start: b" lttng_ust_libc:" in start,
    _read,
    ("aligned_alloc is not logged", "calls of LTTng itself are logged, too"),
)

"""Linux's kmem events as ftrace and perf script print them: kmalloc, kmem_cache_alloc and what frees them."""

from __future__ import annotations

import re

from heapwright._native import lib
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.scanner import Form, Scanner
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.logs.source import Source

_THREAD = re.compile(rb"\s{0,40}(\S.{0,60}?)\s{1,40}\[\d{1,5}\]")
_EVENT = re.compile(
    rb"\s(\d{1,9})\.(\d{6,9}): (?:kmem:)?(kmalloc|kmalloc_node|kfree|kmem_cache_alloc|kmem_cache_alloc_node|"
    rb"kmem_cache_free): (.*)"
)
_NULL = (b"null", b"0x0", b"0")
"""How the kernel prints the pointer of a failed request, as `_FIELD` reads it."""
_FIELD = re.compile(rb"(call_site|ptr|bytes_req)=\(?(\S{1,200}?)\)?(?: |$)")


_HEAD = "{ 40}{thread}{_40}\\[{cpu}\\]{_}[{word}{_}]{second9}.{fraction6}: [kmem:]"
_ALLOCATION = (
    "call_site={site:p} ptr={address:H}[ name={word}] bytes_req={size:z} "
    "bytes_alloc={number:z} gfp_flags={word}[ node={word}][ accounted={word}]"
)
_FORMS = [
    *(Form(lib.HW_LOG_MALLOC, f"{_HEAD}{name}: {_ALLOCATION}") for name in ("kmalloc", "kmem_cache_alloc")),
    *(Form(lib.HW_LOG_MALLOC, f"{_HEAD}{name}_node: {_ALLOCATION}") for name in ("kmalloc", "kmem_cache_alloc")),
    *(
        Form(lib.HW_LOG_FREE, f"{_HEAD}{text}")
        for text in (
            "kfree: call_site={site:p} ptr={address:H}",
            "kmem_cache_free: call_site={site:p} ptr={address:H} name={word}",
            "kmem_cache_free: call_site={site:p} ptr={address:H}",
        )
    ),
]


def _read(source: Source) -> LogHistory:
    history = LogHistory(source.folder, overlap=True)  # by default the kernel prints hashes of addresses
    log = ScannedLog(source, lambda line: _read_line(history, line), history)
    log.read(lambda: Scanner(_FORMS, needles=(b": k", b":k")))
    return history


def _read_line(history: LogHistory, line: bytes) -> None:
    result, of_thread = _EVENT.search(line), _THREAD.match(line)
    if result is None or of_thread is None:
        return
    seconds, part, event, rest = result.groups()
    fields = dict(_FIELD.findall(rest))
    try:
        pointer = 0 if fields[b"ptr"] in _NULL else int(fields[b"ptr"], 16)
        size = 0 if b"free" in event else int(fields[b"bytes_req"][:19])
        if size < 0:
            raise ValueError(size)
    except (KeyError, ValueError):
        history.skipped += 1
        return
    history.set_thread(of_thread[1])
    history.set_site(fields.get(b"call_site", b"").decode(errors="replace"))
    history.now_ns = int(seconds) * 10**9 + int((part + b"000")[:9])
    if b"free" in event:
        history.release(pointer)
    else:
        history.allocate(pointer, size)


FORMAT = Format(
    "kmem",
    lambda start: re.search(rb"\d: (?:kmem:)?k(?:malloc|free|mem_cache_alloc)\w*: ", start) is not None,
    _read,
    ("krealloc is recorded as a free and a malloc", "whole pages are not recorded"),
)

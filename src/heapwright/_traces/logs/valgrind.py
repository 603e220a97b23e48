"""Valgrind's --trace-malloc=yes, as m_replacemalloc/vg_replace_malloc.c (3.19 to 3.24) prints it."""

from __future__ import annotations

import re

from heapwright._native import lib
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.functions import note_call, plain_name
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.processes import Processes
from heapwright._traces.logs.scanner import Form, Scanner
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.logs.source import Source

_CALL = re.compile(rb"--(\d+)-- ([\w ]+)\(([^()]*)\)(?:malloc\(\d+\))?(?: = (0x[0-9A-Fa-f]{1,16}))?")
_ADDRESS = re.compile(rb"0x[0-9A-Fa-f]{1,16}")
_NUMBER = re.compile(r"(al |size )?(0x[0-9A-Fa-f]{1,16}|0|[1-9]\d{0,18})")
_START = re.compile(rb"^--\d+-- (?:malloc|calloc|realloc|free|memalign|_Z[nd]\w+)\(", re.MULTILINE)


_NEW = ("malloc", "_Znwm", "_Znam")
_DELETE = ("free", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm")
_FORMS = [
    *(Form(lib.HW_LOG_MALLOC, f"--{{process:9}}-- {name}({{size:d}}) = {{address:X}}") for name in _NEW),
    *(Form(lib.HW_LOG_FREE, f"--{{process:9}}-- {name}({{address:X}})") for name in _DELETE),
    Form(lib.HW_LOG_RESIZE, "--{process:9}-- realloc({old:X},{size:d}) = {address:X}"),
    Form(lib.HW_LOG_RESIZE, "--{process:9}-- realloc({old:X},{size:d})malloc({number:z}) = {address:X}"),
    Form(lib.HW_LOG_CALLOC, "--{process:9}-- calloc({count:d},{size:d}) = {address:X}"),
    Form(lib.HW_LOG_MALLOC, "--{process:9}-- memalign(al {align:d}, size {size:d}) = {address:X}"),
]


def _read(source: Source) -> LogHistory:
    processes = Processes(source)
    log = ScannedLog(source, lambda line: _read_line(processes, line), processes.history)
    log.read(lambda: Scanner(_FORMS, starts=b"-"))
    return processes.largest()


def _read_line(processes: Processes, line: bytes) -> None:
    if (outcome := _CALL.fullmatch(line)) is None:
        return
    process, name, arguments, result = outcome.groups()
    history = processes.history(process)
    if name == b"malloc" and result and arguments.isdigit() and len(arguments) < 20:
        history.allocate(int(result, 16), int(arguments))
    elif name == b"free" and _ADDRESS.fullmatch(arguments):
        history.release(int(arguments, 16))
    elif plain := plain_name(name.decode()):
        history.skipped += not _note(history, plain, arguments.decode(errors="replace"), int(result or b"0", 16))


def _note(history: LogHistory, name: str, arguments: str, result: int) -> bool:
    """Arguments are numbers; those of aligned calls say which is which."""
    numbers = [(label, int(text, 0)) for label, text in _NUMBER.findall(arguments)]
    align = next((number for label, number in numbers if label == "al "), 0)
    sizes = [number for label, number in numbers if label != "al "]
    if align and sizes and name != "free":
        return note_call(history, "memalign", [align, sizes[0]], result)
    return note_call(history, name, sizes, result)


FORMAT = Format("valgrind", lambda start: bool(_START.search(start)), _read, ("no times", "no threads"))

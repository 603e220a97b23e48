"""Names of functions that allocate, as tools that trace calls print them, and what they do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from heapwright._traces.logs.history import LogHistory

_CPP = re.compile(
    r"_Z(n[wa][mj]|d[la]Pv)|operator (new|delete)\b|__builtin_(vec_)?(new|delete)$|builtin_(vec_)?(new|delete)$"
)


def plain_name(name: str) -> str | None:
    """The C function that does the same, as "malloc" for operator new; None where it is none that allocates."""
    if name in _ARGUMENTS:
        return name
    result = _CPP.match(name)
    if not result:
        return None
    return "free" if "delete" in result[0] or result[0].startswith("_Zd") else "malloc"


def note_call(history: LogHistory, name: str, numbers: Sequence[int], result: int, align: int = 0) -> bool:
    """Note a call of the function of this plain name with these arguments; False where they are too few."""
    if len(numbers) < _ARGUMENTS[name]:
        return False
    if name == "free":
        history.release(numbers[0])
    elif name == "realloc":
        history.resize(numbers[0], result, numbers[1])
    elif name == "reallocarray":
        history.resize(numbers[0], result, numbers[1] * numbers[2])
    elif name == "calloc":
        history.allocate(result, numbers[0] * numbers[1], cleared=True)
    elif name in ("memalign", "aligned_alloc"):
        history.allocate(result, numbers[1], align=numbers[0])
    else:
        history.allocate(result, numbers[0], align=align)
    return True


_ARGUMENTS = {
    **dict.fromkeys(("malloc", "free", "valloc", "pvalloc"), 1),
    **dict.fromkeys(("calloc", "realloc", "memalign", "aligned_alloc"), 2),
    "reallocarray": 3,
}

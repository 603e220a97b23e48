"""The C that is written for an adapter: the calls that the driver makes, in terms of the allocator's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from heapwright._heaps.foreign.adapter import ARGUMENTS, BYTES, CAPACITY, LARGER, Adapter, call, is_name

UNTOUCHED = 0xA4
"""The byte that fills an arena beforehand."""

_PARAMETERS = {
    "malloc": "size_t size",
    "free": "void *pointer",
    "realloc": "void *pointer, size_t size",
    "calloc": "size_t size",
    "aligned_alloc": "size_t align, size_t size",
    "usable_size": "void *pointer",
    "pointer": "void *slot",
}

_ABSENT = {
    "realloc": "return NULL;",
    "calloc": "return {prefix}_malloc(size);",
    "aligned_alloc": "return NULL;",
    "usable_size": "return 0;",
    "pointer": "return slot;",
}
"""What stands for a call that the adapter does not name. The driver makes none of them but for calloc."""

_CAPACITY = "FOREIGN_CAPACITY"
_SIZE_AT_RUN_TIME = f"""
static int foreign_bytes;
#define {_CAPACITY} __builtin_choose_expr(sizeof(__func__) == 1, {{most}}, foreign_bytes)
"""
"""Outside of functions, where `__func__` is empty, a constant, which may bound an array; inside, the arena's size."""

_LIBRARY_PARAMETERS = {"init": "void *, size_t", "calloc": "size_t, size_t"}

_HANDLES = """
#include <sys/mman.h>
typedef union handle_slot {{ {handle} handle; union handle_slot *next; }} handle_slot;
static handle_slot *handles, *given_back;
static size_t handles_taken;
static {handle} *take_handle(void)
{{
    if (handles == NULL) {{
        handles = mmap(NULL, sizeof(handle_slot) << 20, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }}
    handle_slot *taken = given_back;
    if (taken != NULL) {{
        given_back = taken->next;
    }} else if (handles_taken >> 20 == 0) {{
        taken = &handles[handles_taken++];
    }}
    return &taken->handle;
}}
static void give_back({handle} *handle)
{{
    handle_slot *slot = (handle_slot *)handle;
    slot->next = given_back;
    given_back = slot;
}}
"""
"""Room for the handles of 2^20 objects, outside the arena: they are the program's memory."""

_THROUGH_HANDLES = {
    "malloc": "{type} *handle = take_handle(); if (handle && ({call})) return handle; "
    "if (handle) give_back(handle); return NULL;",
    "free": "{type} *handle = pointer; {call}; give_back(handle);",
    "realloc": "{type} *handle = pointer; return ({call}) ? pointer : NULL;",
    "pointer": "{type} *handle = slot; return {call};",
}

FRONT = "front"
"""The prefix of the generated code of a recipe in front."""

BEHIND = "behind.h"
"""What that code includes to find the calls of the allocator."""

BEHIND_TEXT = """
#include <stddef.h>
void *behind_malloc(size_t size);
void *behind_realloc(void *pointer, size_t size);
void *behind_aligned_alloc(size_t align, size_t size);
void behind_free(void *pointer);
size_t behind_usable_size(void *pointer);
#define FRONT_BEHIND_MALLOC(size) behind_malloc(size)
#define FRONT_BEHIND_REALLOC(pointer, size) behind_realloc(pointer, size)
#define FRONT_BEHIND_ALIGNED_ALLOC(align, size) behind_aligned_alloc(align, size)
#define FRONT_BEHIND_FREE(pointer) behind_free(pointer)
#define FRONT_BEHIND_USABLE_SIZE(pointer) behind_usable_size(pointer)
"""

_IN_FRONT = """
#include "front_heap.h"
static unsigned char front_arena[FRONT_ARENA_BYTES] __attribute__((aligned(FRONT_ARENA_ALIGNMENT)));
static struct front_heap *front;"""

_DIRECT = dict.fromkeys(_PARAMETERS, "return {call};") | {"free": "{call};"}

_THROUGH_FRONT = {
    "malloc": "front_malloc(front, size)",
    "free": "front_free(front, pointer)",
    "realloc": "front_realloc(front, pointer, size)",
    "aligned_alloc": "front_aligned_alloc(front, align, size)",
    "usable_size": "front_usable_size(front, pointer)",
}


def defines(adapter: Adapter, arena: int | None) -> dict[str, str]:
    """The adapter's macros, for an arena of that many bytes."""

    def is_larger(than: re.Match[str]) -> str:
        return str(int((arena or 0) > int(than[1])))

    texts = {name: LARGER.sub(is_larger, str(value)) for name, value in adapter.defines.items()}
    return {name: text.replace(BYTES, str(arena)).replace(CAPACITY, _CAPACITY) for name, text in texts.items()}


def heap_source(adapter: Adapter, sources: Sequence[Path], has_front: bool, align: int) -> str:
    """`heap.c`: the allocator as one translation unit, so that the calls see its macros and static functions.

    It ends with what `driver.c` declares; `align` is what every address is a multiple of. With a front the allocator's
    calls are those behind it.
    """
    parts = ["#include <stddef.h>", adapter.prologue, *(f'#include "{source}"' for source in sources), adapter.epilogue]
    if not sources:
        parts += _declarations(adapter)
    if adapter.has_capacity:
        parts.insert(0, _SIZE_AT_RUN_TIME.format(most=adapter.max_arena))
    bodies = _DIRECT
    if adapter.handle:
        parts.append(_HANDLES.format(handle=adapter.handle))
        bodies = {key: body.replace("{type}", adapter.handle) for key, body in _THROUGH_HANDLES.items()}
    if has_front:
        parts.append(_IN_FRONT)
    calls = {key: call(adapter, key) for key in _PARAMETERS}
    parts += [
        "static void *foreign_heap;",
        "#define heap foreign_heap",
        _init_function(adapter, has_front),
        *_calls("behind" if has_front else "foreign", calls, bodies),
    ]
    if has_front:
        calls = _front_calls(calls)
        parts += _calls("foreign", calls, _DIRECT)
    parts.append(f"unsigned char *foreign_array(void) {{ return (unsigned char *)({adapter.array or 0}); }}")
    parts.append(f"unsigned char *foreign_front(void) {{ return {'front_arena' if has_front else 'NULL'}; }}")
    parts += _constants(adapter, calls, has_front, align)
    return "\n".join(part for part in parts if part) + "\n"


def _front_calls(calls: Mapping[str, str]) -> dict[str, str]:
    """The calls of the heap in front; empty for a call that the allocator behind it lacks."""
    return {key: _THROUGH_FRONT.get(key, "") if calls[key] else "" for key in _PARAMETERS}


def _init_function(adapter: Adapter, has_front: bool) -> str:
    init = f"{call(adapter, 'init')};" if adapter.init else ""
    if adapter.has_capacity:
        init = f"foreign_bytes = (int)bytes; {init}"
    result = "return !bytes || heap;"
    if has_front:
        result = "front = front_init(front_arena, sizeof front_arena); return front && (!bytes || heap);"
    return f"int foreign_init(void *memory, size_t bytes) {{ heap = memory; {init} {result} }}"


def _constants(adapter: Adapter, calls: Mapping[str, str], has_front: bool, align: int) -> list[str]:
    """Definitions of the constants that `driver.c` declares."""
    values = {
        "align": align,
        "poison": 0 if adapter.zeroed else UNTOUCHED,
        "moves": int(bool(adapter.handle)),
        "capacity": adapter.max_arena if adapter.has_capacity else 0,
        "front_bytes": "FRONT_ARENA_BYTES" if has_front else "0u",
        **{f"has_{key}": int(bool(calls[key])) for key in ("realloc", "aligned_alloc", "usable_size")},
    }
    return [f"const unsigned foreign_{name} = {value};" for name, value in values.items()]


def _calls(prefix: str, named: Mapping[str, str], bodies: Mapping[str, str]) -> list[str]:
    """The functions for all calls, of which `named` says what they do; empty for one that the allocator has not."""
    return [
        f"{ARGUMENTS[key][0]} {prefix}_{key}({_PARAMETERS[key]}) "
        f"{{ {bodies[key].format(call=text) if text else _ABSENT[key].format(prefix=prefix)} }}"
        for key, text in named.items()
    ]


def _declarations(adapter: Adapter) -> list[str]:
    """Prototypes of a library's functions, which come without a header."""
    named = [key for key in ARGUMENTS if is_name(getattr(adapter, key))]
    return [
        f"extern {ARGUMENTS[key][0]} {getattr(adapter, key)}({_LIBRARY_PARAMETERS.get(key, _PARAMETERS.get(key))});"
        for key in named
    ]

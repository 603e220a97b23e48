"""The C that is written for an adapter: the calls that the driver makes, in terms of the allocator's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright.heaps.foreign.adapter import ARGUMENTS, BYTES, CAPACITY, LARGER, Adapter, call, is_name

if TYPE_CHECKING:
    from heapwright.recipes.recipe import Recipe

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
    "calloc": "return foreign_malloc(size);",
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

_IN_FRONT = """
#include <stdint.h>
#include <string.h>
#include "front_heap.h"
static unsigned char front_arena[{bytes}] __attribute__((aligned(FRONT_ARENA_ALIGNMENT)));
static struct front_heap *front;
void *foreign_malloc(size_t size);
static int is_in_front(const void *pointer)
{{
    return (uintptr_t)pointer - (uintptr_t)front_arena < sizeof front_arena;
}}
static void *resize_in_front(void *pointer, size_t size)
{{
    void *found = front_realloc(front, pointer, size);
    if (found == NULL && (found = foreign_malloc(size)) != NULL) {{
        const size_t had = front_usable_size(front, pointer);
        memcpy(found, pointer, had < size ? had : size);
        front_free(front, pointer);
    }}
    return found;
}}"""

_FRONT_FIRST = {
    "malloc": "void *found = front_malloc(front, size); return found ? found : {call};",
    "free": "if (is_in_front(pointer)) {{ front_free(front, pointer); }} else {{ {call}; }}",
    "realloc": "return is_in_front(pointer) ? resize_in_front(pointer, size) : {call};",
    "aligned_alloc": "void *found = front_aligned_alloc(front, align, size); return found ? found : {call};",
    "usable_size": "return is_in_front(pointer) ? front_usable_size(front, pointer) : {call};",
}


def defines(adapter: Adapter, arena: int | None) -> dict[str, str]:
    """The adapter's macros, for an arena of so many bytes."""

    def is_larger(than: re.Match[str]) -> str:
        return str(int((arena or 0) > int(than[1])))

    texts = {name: LARGER.sub(is_larger, str(value)) for name, value in adapter.defines.items()}
    return {name: text.replace(BYTES, str(arena)).replace(CAPACITY, _CAPACITY) for name, text in texts.items()}


def heap_source(adapter: Adapter, sources: Sequence[Path], front: Recipe | None, align: int) -> str:
    """`heap.c`: the allocator as one translation unit, so that the calls see its macros and static functions.

    It ends with what `driver.c` declares; `align` is what every address is a multiple of.
    """
    parts = ["#include <stddef.h>", adapter.prologue, *(f'#include "{source}"' for source in sources), adapter.epilogue]
    if not sources:
        parts += _declarations(adapter)
    init = f"{call(adapter, 'init')};" if adapter.init else ""
    if adapter.has_capacity:
        parts.insert(0, _SIZE_AT_RUN_TIME.format(most=adapter.max_arena))
        init = f"foreign_bytes = (int)bytes; {init}"
    bodies = dict.fromkeys(_PARAMETERS, "return {call};") | {"free": "{call};"}
    if front is not None:
        parts.append(_IN_FRONT.format(bytes=_front_bytes(front)))
        init += " front = front_init(front_arena, sizeof front_arena);"
        bodies = _FRONT_FIRST
    if adapter.handle:
        parts.append(_HANDLES.format(handle=adapter.handle))
        bodies = {key: body.replace("{type}", adapter.handle) for key, body in _THROUGH_HANDLES.items()}
    parts += [
        "static void *foreign_heap;",
        "#define heap foreign_heap",
        f"int foreign_init(void *memory, size_t bytes) {{ heap = memory; {init} return !bytes || heap; }}",
    ]
    named = {key: "" if key == "calloc" and front is not None else call(adapter, key) for key in _PARAMETERS}
    for key, text in named.items():
        body = bodies[key].format(call=text) if text else _ABSENT[key]
        parts.append(f"{ARGUMENTS[key][0]} foreign_{key}({_PARAMETERS[key]}) {{ {body} }}")
    parts.append(f"unsigned char *foreign_array(void) {{ return (unsigned char *)({adapter.array or 0}); }}")
    known = {
        "align": align,
        "poison": 0 if adapter.zeroed else UNTOUCHED,
        "moves": int(bool(adapter.handle)),
        "capacity": adapter.max_arena if adapter.has_capacity else 0,
        **{f"has_{key}": int(bool(named[key])) for key in ("realloc", "aligned_alloc", "usable_size")},
    }
    parts += [f"const unsigned foreign_{name} = {value}u;" for name, value in known.items()]
    return "\n".join(part for part in parts if part) + "\n"


def _front_bytes(front: Recipe) -> int:
    """What a recipe of bounded pools needs: control data and regions."""
    from heapwright.recipes.policy import policy_struct

    return int(policy_struct(front).fixed_end)


def _declarations(adapter: Adapter) -> list[str]:
    """Prototypes of a library's functions, which come without a header."""
    named = [key for key in ARGUMENTS if is_name(getattr(adapter, key))]
    return [
        f"extern {ARGUMENTS[key][0]} {getattr(adapter, key)}({_LIBRARY_PARAMETERS.get(key, _PARAMETERS.get(key))});"
        for key in named
    ]

"""The C that is written for an adapter: the calls that the driver makes, in terms of the allocator's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright.foreign.adapter import ARGUMENTS, Adapter, call, is_name

if TYPE_CHECKING:
    from heapwright.recipes.recipe import Recipe


_PARAMETERS = {
    "malloc": "size_t size",
    "free": "void *pointer",
    "realloc": "void *pointer, size_t size",
    "calloc": "size_t size",
    "aligned_alloc": "size_t align, size_t size",
    "usable_size": "void *pointer",
    "pointer": "void *slot",
}

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


def interface(adapter: Adapter, align: int) -> str:
    """`foreign_heap.h`: the calls that the driver may make."""
    lines = [
        "#include <stddef.h>",
        f"#define FOREIGN_ALIGN {align}u",
        f"#define FOREIGN_POISON {0 if adapter.zeroed else 0xA4}",
        "int foreign_init(void *memory, size_t bytes);",
    ]
    for key, parameters in _PARAMETERS.items():
        if call(adapter, key):
            lines += [f"{ARGUMENTS[key][0]} foreign_{key}({parameters});", f"#define FOREIGN_HAS_{key.upper()}"]
    lines.append(f"#define FOREIGN_MOVES {int(bool(adapter.handle))}")
    if not adapter.calloc:
        lines.append("#define foreign_calloc(size) foreign_malloc(size)")
    if adapter.array:
        lines += ["unsigned char *foreign_array(void);", "#define FOREIGN_ARRAY foreign_array()"]
    else:
        lines.append("#define FOREIGN_ARRAY ((unsigned char *)0)")
    return "\n".join(lines) + "\n"


def calls(adapter: Adapter, sources: Sequence[Path], front: Recipe | None) -> str:
    """`heap.c`: the allocator as one translation unit, so that the calls see its macros and static functions."""
    parts = ["#include <stddef.h>", adapter.prologue, *(f'#include "{source}"' for source in sources), adapter.epilogue]
    if not sources:
        parts += _declarations(adapter)
    init = f"{call(adapter, 'init')};" if adapter.init else ""
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
    for key, body in bodies.items():
        text = call(adapter, key)
        if text:
            parts.append(f"{ARGUMENTS[key][0]} foreign_{key}({_PARAMETERS[key]}) {{ {body.format(call=text)} }}")
    if adapter.array:
        parts.append(f"unsigned char *foreign_array(void) {{ return (unsigned char *)({adapter.array}); }}")
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

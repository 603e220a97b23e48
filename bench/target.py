"""Instructions and code of the recommended heaps on a Cortex-M3, and of the strongest heaps that others wrote for it.

    .venv/bin/python bench/target.py [DIR]

Prints the table of docs/target.md: means of a malloc and a free together, at -Os, and bytes of code. A realloc is
replayed as a free and a malloc, as o1heap has none. Traces: the examples' broker, and a FIFO of 40 and 1500 bytes,
rec_lighttpd and wee_find of DIR, ../shared/data by default; those that are not there are left out.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import originals
from traces import DEFAULT_TRACES, PICKED_ON, without_realloc

import heapwright as hw
from heapwright import Trace

OURS = ("all-round", "victim-bins", "half-fit", "tlsf")
LIBRARY = "newlib-nano"
KINDS = ("malloc", "free")
TRACES = ("synthetic/m3_fifo_2000", PICKED_ON, "heap/rec_lighttpd", "heap/wee_find")

_O1HEAP = """\
#define NDEBUG 1
#include "{path}"
static O1HeapInstance *heap;
int heap_init(void *arena, size_t bytes) {{ heap = o1heapInit(arena, bytes); return heap != NULL; }}
void *heap_malloc(size_t size) {{ return o1heapAllocate(heap, size); }}
void heap_free(void *pointer) {{ o1heapFree(heap, pointer); }}
"""
_DLMALLOC = """\
#include <stddef.h>
static char *arena_brk, *arena_end;
static void *arena_sbrk(ptrdiff_t more)
{{
    char *at = arena_brk;
    if (more < 0 || more > arena_end - at) {{
        return (void *)~(size_t)0;
    }}
    arena_brk = at + more;
    return at;
}}
#define USE_DL_PREFIX 1
#define HAVE_MMAP 0
#define MORECORE arena_sbrk
#define MORECORE_CANNOT_TRIM 1
#define malloc_getpagesize ((size_t)64U)
#define MALLOC_ALIGNMENT ((size_t)8U)
#define MALLOC_FAILURE_ACTION
#define ABORT __builtin_trap()
#define NO_MALLINFO 1
#define NO_MALLOC_STATS 1
#define LACKS_ERRNO_H 1
#define LACKS_FCNTL_H 1
#define LACKS_SCHED_H 1
#define LACKS_STDLIB_H 1
#define LACKS_SYS_MMAN_H 1
#define LACKS_SYS_PARAM_H 1
#define LACKS_TIME_H 1
#define LACKS_UNISTD_H 1
#include "{path}"
int heap_init(void *arena, size_t bytes) {{ arena_brk = arena; arena_end = arena_brk + bytes; return 1; }}
void *heap_malloc(size_t size) {{ return dlmalloc(size); }}
void heap_free(void *pointer) {{ dlfree(pointer); }}
"""
"""Each original behind the three functions that are measured, without its assertions."""


def heaps(folder: Path) -> Iterator[tuple[str, hw.Recipe | str]]:
    """What is measured, by name; what cannot be had is reported on stderr. Sources are written into `folder`."""
    for name in OURS:
        yield f"`{name}`", hw.zoo(name)
    for name, fetch, file, text in (
        ("dlmalloc", originals.dlmalloc, "", _DLMALLOC),
        ("o1heap", originals.o1heap, "o1heap.c", _O1HEAP),
    ):
        try:
            source = folder / f"{name}.c"
            source.write_text(text.format(path=fetch() / file))
            yield name, str(source)
        except originals.MissingError as error:
            click.echo(f"bench: {error}", err=True)
    yield LIBRARY, f"lib:{LIBRARY}"


@click.command()
@click.argument("folder", default=DEFAULT_TRACES, type=click.Path(file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Print the table in Markdown."""
    paths = [path if isinstance(path, Path) else folder / f"{path}.parquet" for path in TRACES]
    traces = [without_realloc(Trace.read(path)) for path in paths if path.exists()]
    click.echo(f"| heap | {' | '.join(trace.name for trace in traces)} | code: malloc | free |")
    click.echo(f"| --- |{' ---: |' * (len(traces) + 2)}")
    with tempfile.TemporaryDirectory(prefix="heapwright-bench-") as name:
        for heap_name, heap in heaps(Path(name)):
            measured = [hw.measure(heap, trace, compiler="gcc") for trace in traces]
            code = measured[0]["code_bytes"]
            pairs = [sum(item["calls"][kind]["instructions_mean"] for kind in KINDS) for item in measured]
            cells = [f"{pair:.1f}" for pair in pairs]
            cells += [f"{code[part]:,}" for part in KINDS]
            click.echo(f"| {heap_name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    try:
        main()
    except hw.HeapwrightError as error:
        sys.exit(f"bench: {error}")

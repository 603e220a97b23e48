/* events.h: hooks that report each call to the program.
 *
 * Each hook is a macro that compiles to nothing unless the program defines it. Hooks run inside the call: under the
 * lock if the recipe has one. Without a lock a hook may inspect the heap; it must never allocate or free. In heaps that
 * move their objects, the pointer is the reference.
 */
#ifndef HW_EVENTS_H
#define HW_EVENTS_H

#include "arena.h"

/* A request of `size` bytes was served with the object at `pointer`. */
#ifndef HW_ALLOCATED
#define HW_ALLOCATED(heap, pointer, size) ((void)0)
#endif

/* The object at `from` was resized to `size` bytes and is now at `pointer`. A resize that copied may be reported as an
 * allocation and a free instead. */
#ifndef HW_RESIZED
#define HW_RESIZED(heap, from, pointer, size) ((void)0)
#endif

/* The object at `pointer` is about to be freed. */
#ifndef HW_FREED
#define HW_FREED(heap, pointer) ((void)0)
#endif

/* A request of `size` bytes is refused; SIZE_MAX where count * size overflows. */
#ifndef HW_REFUSED
#define HW_REFUSED(heap, size) ((void)(size))
#endif

/* The result of a request, after HW_ALLOCATED() or HW_REFUSED() reported it; and of two equivalent calls the silent
 * one, if any hook is defined: the caller reports then. */
#ifndef HW_NOTIFY
#define HW_NOTIFY(heap, memory, size) (memory)
#define HW_SILENT(silent, notifying) (notifying)
#endif

/* Whether the heap itself calls the hooks. With thread caches most calls never reach the heap, and threads.h reports
 * them. */
static inline int notifies(const struct hw_policy *p)
{
    return p->threads != HW_THREADS_CACHED;
}

#endif

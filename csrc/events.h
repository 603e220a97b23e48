/* events.h: what a heap tells the program of each call.
 *
 * Each hook is a macro, and none is code before the program defines it. They are called where the call is: under the
 * lock where the recipe asks for one. A hook may look at the heap where there is none; it must not allocate or free.
 * Where objects move, the pointer is the reference.
 */
#ifndef HW_EVENTS_H
#define HW_EVENTS_H

#include "arena.h"

/* A request of `size` bytes was served with the object at `pointer`. */
#ifndef HW_ALLOCATED
#define HW_ALLOCATED(heap, pointer, size) ((void)0)
#endif

/* The object at `from` is `size` bytes large from now on, and lies at `pointer`. One that had to be copied may be told
 * as allocated and freed instead. */
#ifndef HW_RESIZED
#define HW_RESIZED(heap, from, pointer, size) ((void)0)
#endif

/* The object at `pointer` is about to be freed. */
#ifndef HW_FREED
#define HW_FREED(heap, pointer) ((void)0)
#endif

/* A request of `size` bytes is refused; SIZE_MAX where count * size overflows. */
#ifndef HW_REFUSED
#define HW_REFUSED(heap, size) ((void)0)
#endif

/* What a request got, once HW_ALLOCATED() or HW_REFUSED() told of it; what HW_RESIZED() told of; and of two ways to the
 * same the one on which nothing is told, where anything is. */
#ifndef HW_TOLD
#define HW_TOLD(heap, memory, size) (memory)
#define HW_TOLD_RESIZED(heap, from, memory, size) (memory)
#define HW_UNTOLD(untold, told) (told)
#endif

/* Whether the heap tells by itself. With caches of threads most calls never come to it: threads.h tells of them. */
static inline int tells(const struct hw_policy *p)
{
    return p->threads != HW_THREADS_CACHED;
}

#endif

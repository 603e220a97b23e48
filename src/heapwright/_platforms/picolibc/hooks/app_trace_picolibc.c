/* app_trace_picolibc.c: records the calls of picolibc's heap, those of the library itself included.
 *
 * Linked with -Wl,--wrap=malloc,--wrap=free,--wrap=realloc,--wrap=calloc,--wrap=memalign,--wrap=aligned_alloc. Some of
 * them call others: only the outermost is recorded, and picolibc's lock keeps other threads out meanwhile.
 */
#include <malloc.h>
#include <stdlib.h>
#include <sys/lock.h>

#define APP_TRACE_ENTER() __LIBC_LOCK()
#define APP_TRACE_LEAVE() __LIBC_UNLOCK()

#include "app_trace_ring.h"

void *__real_malloc(size_t size);
void __real_free(void *pointer);
void *__real_realloc(void *pointer, size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_memalign(size_t alignment, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size);
void __wrap_free(void *pointer);
void *__wrap_realloc(void *pointer, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_memalign(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static unsigned inside;

/* Whether this call is the outermost. */
static int enter(void)
{
    __LIBC_LOCK();
    return inside++ == 0;
}

static void leave(void)
{
    inside--;
    __LIBC_UNLOCK();
}

void *__wrap_malloc(size_t size)
{
    const int outermost = enter();
    void *pointer = __real_malloc(size);
    if (outermost) {
        app_trace_allocated(pointer, size);
    }
    leave();
    return pointer;
}

void __wrap_free(void *pointer)
{
    if (enter()) {
        app_trace_freed(pointer);
    }
    __real_free(pointer);
    leave();
}

void *__wrap_realloc(void *pointer, size_t size)
{
    const int outermost = enter();
    void *moved = __real_realloc(pointer, size);
    if (outermost) {
        app_trace_resized(pointer, moved, size);
    }
    leave();
    return moved;
}

void *__wrap_calloc(size_t count, size_t size)
{
    const int outermost = enter();
    void *pointer = __real_calloc(count, size);
    if (outermost) {
        app_trace_cleared(pointer, count * size);
    }
    leave();
    return pointer;
}

void *__wrap_memalign(size_t alignment, size_t size)
{
    const int outermost = enter();
    void *pointer = __real_memalign(alignment, size);
    if (outermost) {
        app_trace_allocated(pointer, size);
    }
    leave();
    return pointer;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    const int outermost = enter();
    void *pointer = __real_aligned_alloc(alignment, size);
    if (outermost) {
        app_trace_allocated(pointer, size);
    }
    leave();
    return pointer;
}

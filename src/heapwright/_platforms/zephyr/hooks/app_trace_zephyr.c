/* app_trace_zephyr.c: records the calls of Zephyr's heaps: k_malloc(), k_heap_alloc(), and malloc() of the common and
 * minimal C libraries, all of which stand on sys_heap.
 *
 * Linked with
 * -Wl,--wrap=sys_heap_alloc,--wrap=sys_heap_noalign_alloc,--wrap=sys_heap_aligned_alloc,--wrap=sys_heap_free,
 * --wrap=sys_heap_realloc,--wrap=sys_heap_aligned_realloc. Zephyr calls them under each heap's own lock. A heap
 * listener would report the sizes of blocks, not of requests, and a realloc as two events in the wrong order.
 */
#include <zephyr/kernel.h>
#include <zephyr/sys/sys_heap.h>

/* One heap alone: -DAPP_TRACE_HEAP=&my_heap.heap. Where heaps lie apart, all of them make one sound trace, too. */
#ifndef APP_TRACE_HEAP
#define APP_TRACE_HEAP NULL
#endif

static struct k_spinlock trace_lock;

#define APP_TRACE_ENTER() const k_spinlock_key_t key = k_spin_lock(&trace_lock)
#define APP_TRACE_LEAVE() k_spin_unlock(&trace_lock, key)

#ifndef APP_TRACE_TICKS
#define APP_TRACE_TICKS() k_cycle_get_32()
#define APP_TRACE_TICKS_PER_SECOND CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC
#endif
#define APP_TRACE_THREAD() ((uint32_t)(uintptr_t)k_current_get())

#include "app_trace_ring.h"

void *__real_sys_heap_alloc(struct sys_heap *heap, size_t size);
void *__real_sys_heap_noalign_alloc(struct sys_heap *heap, size_t alignment, size_t size);
void *__real_sys_heap_aligned_alloc(struct sys_heap *heap, size_t alignment, size_t size);
void *__real_sys_heap_realloc(struct sys_heap *heap, void *pointer, size_t size);
void *__real_sys_heap_aligned_realloc(struct sys_heap *heap, void *pointer, size_t alignment, size_t size);
void __real_sys_heap_free(struct sys_heap *heap, void *pointer);

void *__wrap_sys_heap_alloc(struct sys_heap *heap, size_t size);
void *__wrap_sys_heap_noalign_alloc(struct sys_heap *heap, size_t alignment, size_t size);
void *__wrap_sys_heap_aligned_alloc(struct sys_heap *heap, size_t alignment, size_t size);
void *__wrap_sys_heap_realloc(struct sys_heap *heap, void *pointer, size_t size);
void *__wrap_sys_heap_aligned_realloc(struct sys_heap *heap, void *pointer, size_t alignment, size_t size);
void __wrap_sys_heap_free(struct sys_heap *heap, void *pointer);

static int recorded(const struct sys_heap *heap)
{
    const struct sys_heap *only = APP_TRACE_HEAP;
    return only == NULL || only == heap;
}

static void *given_out(const struct sys_heap *heap, void *pointer, size_t size)
{
    if (recorded(heap)) {
        app_trace_allocated(pointer, size);
    }
    return pointer;
}

/* The heap's lock is held: no other call can come between. */
static void *resized(const struct sys_heap *heap, const void *from, void *pointer, size_t size)
{
    if (recorded(heap)) {
        app_trace_resized(from, pointer, size);
    }
    return pointer;
}

void *__wrap_sys_heap_alloc(struct sys_heap *heap, size_t size)
{
    return given_out(heap, __real_sys_heap_alloc(heap, size), size);
}

void *__wrap_sys_heap_noalign_alloc(struct sys_heap *heap, size_t alignment, size_t size)
{
    return given_out(heap, __real_sys_heap_noalign_alloc(heap, alignment, size), size);
}

void *__wrap_sys_heap_aligned_alloc(struct sys_heap *heap, size_t alignment, size_t size)
{
    return given_out(heap, __real_sys_heap_aligned_alloc(heap, alignment, size), size);
}

void *__wrap_sys_heap_realloc(struct sys_heap *heap, void *pointer, size_t size)
{
    return resized(heap, pointer, __real_sys_heap_realloc(heap, pointer, size), size);
}

void *__wrap_sys_heap_aligned_realloc(struct sys_heap *heap, void *pointer, size_t alignment, size_t size)
{
    return resized(heap, pointer, __real_sys_heap_aligned_realloc(heap, pointer, alignment, size), size);
}

void __wrap_sys_heap_free(struct sys_heap *heap, void *pointer)
{
    if (recorded(heap)) {
        app_trace_freed(pointer);
    }
    __real_sys_heap_free(heap, pointer);
}

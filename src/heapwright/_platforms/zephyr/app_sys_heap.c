/* app_sys_heap.c: app_heap behind the functions of Zephyr's sys_heap.h, in the place of lib/heap/heap.c: so k_heap,
 * k_malloc and what else the kernel builds on a sys_heap are served by it.
 *
 * As with Zephyr's own there is no lock: who calls holds one. What is known of a heap lies at the start of its memory.
 */
#include "app_zephyr.h"

#include <errno.h>
#include <string.h>
#include <zephyr/sys/printk.h>
#include <zephyr/sys/sys_heap.h>

struct z_heap {
    struct app_heap *heap;
    size_t bytes; /* free at first */
};

_Static_assert(APP_SYS_HEAP_OWN_BYTES >= sizeof(struct z_heap) + sizeof(void *) + APP_ARENA_ALIGNMENT + APP_LEAST_ARENA,
               "bytes that hold no object");

/* A memory that the control data fill serves nothing, and printk says so. */
void sys_heap_init(struct sys_heap *heap, void *mem, size_t bytes)
{
    const uintptr_t most = APP_ARENA_ALIGNMENT - 1u;
    const uintptr_t begin = ((uintptr_t)mem + sizeof(void *) - 1u) & ~(uintptr_t)(sizeof(void *) - 1u);
    const uintptr_t arena = (begin + sizeof(struct z_heap) + most) & ~most, end = (uintptr_t)mem + bytes;
    struct z_heap *own = (struct z_heap *)begin;
    struct app_heap *made = arena < end ? app_init((void *)arena, end - arena) : NULL;
    if (made != NULL && app_largest_free(made, 32) != 0) {
        *own = (struct z_heap){made, app_counters(made).free};
        heap->heap = own;
    } else {
        heap->heap = NULL;
        printk("app_sys_heap: %u bytes are too few for a heap: its own data take up to %u\n", (unsigned int)bytes,
               (unsigned int)APP_SYS_HEAP_OWN_BYTES);
    }
    heap->init_mem = mem;
    heap->init_bytes = bytes;
}

void *sys_heap_alloc(struct sys_heap *heap, size_t bytes)
{
    return bytes == 0 || heap->heap == NULL ? NULL : app_malloc(heap->heap->heap, bytes);
}

void *sys_heap_noalign_alloc(struct sys_heap *heap, size_t align, size_t bytes)
{
    (void)align;
    return sys_heap_alloc(heap, bytes);
}

/* The kernel puts a word before what it aligns, and asks so for an object that begins a word before an aligned address,
 * where none of this heap's does. Then it lies in a larger one, and the word before it says how far behind that one's
 * begin. */
static void *origin(const void *mem)
{
    return (void *)((uintptr_t)mem -
                    ((uintptr_t)mem % APP_ALIGNMENT == 0 ? 0 : ((const uint32_t *)(uintptr_t)mem)[-1]));
}

/* `align` may have a second, smaller bit: how many bytes before an aligned address the object is to begin. */
void *sys_heap_aligned_alloc(struct sys_heap *heap, size_t align, size_t bytes)
{
    const size_t lowest = align & -align;
    const size_t to = align == lowest ? align : align - lowest;
    const size_t shift = align == lowest ? 0 : to - lowest;
    if (bytes == 0 || heap->heap == NULL || bytes > SIZE_MAX - shift) {
        return NULL;
    }
    if (shift == 0) {
        return to <= APP_ALIGNMENT ? app_malloc(heap->heap->heap, bytes)
                                   : app_aligned_alloc(heap->heap->heap, to, bytes);
    }
    if (shift % APP_ALIGNMENT == 0) {
        return NULL; /* it would look like an object with a start of its own */
    }
    unsigned char *whole = app_aligned_alloc(heap->heap->heap, to < APP_ALIGNMENT ? APP_ALIGNMENT : to, bytes + shift);
    if (whole == NULL) {
        return NULL;
    }
    uint32_t *mem = (uint32_t *)(whole + shift);
    mem[-1] = (uint32_t)shift;
    return mem;
}

void sys_heap_free(struct sys_heap *heap, void *mem)
{
    if (mem != NULL) {
        app_free(heap->heap->heap, origin(mem));
    }
}

size_t sys_heap_usable_size(struct sys_heap *heap, void *mem)
{
    return app_usable_size(heap->heap->heap, origin(mem)) - (size_t)((uintptr_t)mem - (uintptr_t)origin(mem));
}

#ifndef sys_heap_realloc /* a macro in Zephyr 3 and 4.0, 4.1 */
void *sys_heap_realloc(struct sys_heap *heap, void *ptr, size_t bytes)
{
    return sys_heap_aligned_realloc(heap, ptr, 0, bytes);
}
#endif

void *sys_heap_aligned_realloc(struct sys_heap *heap, void *ptr, size_t align, size_t bytes)
{
    if (ptr == NULL) {
        return align == 0 ? sys_heap_alloc(heap, bytes) : sys_heap_aligned_alloc(heap, align, bytes);
    }
    if (bytes == 0) {
        sys_heap_free(heap, ptr);
        return NULL;
    }
    if (align <= APP_ALIGNMENT && origin(ptr) == ptr) {
        return app_realloc(heap->heap->heap, ptr, bytes);
    }
    const size_t usable = sys_heap_usable_size(heap, ptr);
    void *mem = align == 0 ? sys_heap_alloc(heap, bytes) : sys_heap_aligned_alloc(heap, align, bytes);
    if (mem != NULL) {
        memcpy(mem, ptr, usable < bytes ? usable : bytes);
        sys_heap_free(heap, ptr);
    }
    return mem;
}

#ifdef CONFIG_SYS_HEAP_VALIDATE
bool sys_heap_validate(struct sys_heap *heap)
{
    return heap->heap != NULL && app_check(heap->heap->heap) == 0;
}
#endif

#ifdef CONFIG_SYS_HEAP_RUNTIME_STATS
/* Headers count as allocated. O(1). */
int sys_heap_runtime_stats_get(struct sys_heap *heap, struct sys_memory_stats *stats)
{
    if (heap == NULL || heap->heap == NULL || stats == NULL) {
        return -EINVAL;
    }
    const struct app_counters counters = app_counters(heap->heap->heap);
    stats->free_bytes = counters.free;
    stats->allocated_bytes = heap->heap->bytes - counters.free;
    stats->max_allocated_bytes = heap->heap->bytes - counters.least_free;
    return 0;
}

int sys_heap_runtime_stats_reset_max(struct sys_heap *heap)
{
    if (heap == NULL || heap->heap == NULL) {
        return -EINVAL;
    }
    app_reset_least_free(heap->heap->heap);
    return 0;
}
#endif

#ifdef CONFIG_SYS_HEAP_INFO
/* A walk. */
void sys_heap_print_info(struct sys_heap *heap, bool dump_chunks)
{
    struct app_block block = {0, 0, 0, 0, 0};
    if (heap->heap == NULL) {
        return;
    }
    while (dump_chunks && app_next_block(heap->heap->heap, &block)) {
        printk("%8u: %u bytes, %s\n", (unsigned int)block.offset, (unsigned int)block.size,
               block.state == APP_BLOCK_USED ? "used" : "free");
    }
    const struct app_statistics statistics = app_statistics(heap->heap->heap);
    printk("%u bytes in %u blocks, the largest free %u\n", (unsigned int)statistics.used,
           (unsigned int)statistics.used_blocks, (unsigned int)statistics.largest_free);
}
#endif

/* app_nuttx.c: app_heap as NuttX's heap manager, in the place of mm/mm_heap.
 *
 * What is known of a heap lies at the start of its region. NuttX frees from interrupts and while it switches tasks, so
 * each call of the heap is made in a critical section, and nothing is put off.
 */
#include "app_heap.h"

#include <nuttx/config.h>

#include <assert.h>
#include <malloc.h>
#include <stdbool.h>
#include <string.h>

#include <nuttx/fs/procfs.h>
#include <nuttx/irq.h>
#include <nuttx/mm/mm.h>

#if defined(CONFIG_FS_PROCFS) && !defined(CONFIG_FS_PROCFS_EXCLUDE_MEMINFO)
#define APP_MEMINFO /* what NSH's `free` prints */
#endif

#if defined(CONFIG_BUILD_PROTECTED) || defined(CONFIG_BUILD_KERNEL)
#error "app_nuttx.c is for the flat build: user code has no critical section"
#endif

#if CONFIG_MM_REGIONS > 1
#error "CONFIG_MM_REGIONS must be 1: this heap has one region"
#endif

struct mm_heap_s {
    struct app_heap *heap;
    void *begin, *end;
    size_t bytes; /* free at first */
#ifdef APP_MEMINFO
    struct procfs_meminfo_entry_s meminfo;
#endif
};

/* What is known of the heap lies in `from`, another heap, or at the start of the region. */
static struct mm_heap_s *initialize(struct mm_heap_s *from, const char *name, void *heap_start, size_t heap_size)
{
    const uintptr_t most = APP_ARENA_ALIGNMENT - 1u, end = (uintptr_t)heap_start + heap_size;
    uintptr_t begin = ((uintptr_t)heap_start + sizeof(void *) - 1u) & ~(uintptr_t)(sizeof(void *) - 1u);
    struct mm_heap_s *heap = (struct mm_heap_s *)begin;
    if (from == NULL) {
        begin += sizeof *heap;
    } else if ((heap = mm_malloc(from, sizeof *heap)) == NULL) {
        return NULL;
    }
    const uintptr_t arena = (begin + most) & ~most;
    DEBUGASSERT(arena < end);
    memset(heap, 0, sizeof *heap);
    heap->begin = (void *)arena;
    heap->end = (void *)end;
    heap->heap = app_init(heap->begin, (size_t)(end - arena));
    DEBUGASSERT(heap->heap != NULL && app_largest_free(heap->heap, 32) != 0); /* see APP_LEAST_ARENA */
    heap->bytes = heap->heap ? app_counters(heap->heap).free : 0;
#ifdef APP_MEMINFO
    heap->meminfo.name = name;
    heap->meminfo.heap = heap;
    procfs_register_meminfo(&heap->meminfo);
#else
    (void)name;
#endif
    return heap;
}

/* KRN_HEAP came with struct mm_heap_config_s, in 12.13; since then mm_initialize() is an inline function. */
#ifdef KRN_HEAP
struct mm_heap_s *mm_initialize_heap(const struct mm_heap_config_s *config)
{
    return initialize(config->heap, config->name, config->start, config->size);
}
#else
struct mm_heap_s *mm_initialize(const char *name, void *heap_start, size_t heap_size)
{
    return initialize(NULL, name, heap_start, heap_size);
}
#endif

void mm_uninitialize(struct mm_heap_s *heap)
{
#ifdef APP_MEMINFO
    procfs_unregister_meminfo(&heap->meminfo);
#else
    (void)heap;
#endif
}

/* A second region, and more memory at the end, are left unused. */
void mm_addregion(struct mm_heap_s *heap, void *heapstart, size_t heapsize)
{
    (void)heap;
    (void)heapstart;
    (void)heapsize;
}

void mm_extend(struct mm_heap_s *heap, void *mem, size_t size, int region)
{
    (void)heap;
    (void)mem;
    (void)size;
    (void)region;
}

/* NuttX 12.8 to 12.12 call it before they look at a heap. */
void mm_free_delaylist(struct mm_heap_s *heap);

void mm_free_delaylist(struct mm_heap_s *heap)
{
    (void)heap;
}

void *mm_memalign(struct mm_heap_s *heap, size_t alignment, size_t size)
{
    const irqstate_t flags = enter_critical_section();
    void *memory =
        alignment <= APP_ALIGNMENT ? app_malloc(heap->heap, size) : app_aligned_alloc(heap->heap, alignment, size);
    leave_critical_section(flags);
    return memory;
}

void *mm_malloc(struct mm_heap_s *heap, size_t size)
{
    return mm_memalign(heap, APP_ALIGNMENT, size);
}

void mm_free(struct mm_heap_s *heap, void *mem)
{
    if (mem == NULL) {
        return;
    }
    DEBUGASSERT(mm_heapmember(heap, mem));
    const irqstate_t flags = enter_critical_section();
    app_free(heap->heap, mem);
    leave_critical_section(flags);
}

void *mm_realloc(struct mm_heap_s *heap, void *oldmem, size_t size)
{
    if (oldmem == NULL) {
        return mm_malloc(heap, size);
    }
    if (size == 0) {
        mm_free(heap, oldmem);
        return NULL;
    }
    const irqstate_t flags = enter_critical_section();
    void *memory = app_realloc(heap->heap, oldmem, size);
    leave_critical_section(flags);
    return memory;
}

void *mm_zalloc(struct mm_heap_s *heap, size_t size)
{
    void *memory = mm_malloc(heap, size);
    return memory ? memset(memory, 0, size) : NULL;
}

void *mm_calloc(struct mm_heap_s *heap, size_t n, size_t elem_size)
{
    if (elem_size != 0 && n > SIZE_MAX / elem_size) {
        return NULL;
    }
    return mm_zalloc(heap, n * elem_size);
}

size_t mm_malloc_size(struct mm_heap_s *heap, void *mem)
{
    const irqstate_t flags = enter_critical_section();
    const size_t bytes = app_usable_size(heap->heap, mem);
    leave_critical_section(flags);
    return bytes;
}

bool mm_heapmember(struct mm_heap_s *heap, void *mem)
{
    return heap->heap != NULL && app_owns(heap->heap, mem);
}

void *mm_brkaddr(struct mm_heap_s *heap, int region)
{
    (void)region;
    return heap->end;
}

/* In a critical section, at a bounded cost. Only a walk over all blocks can number the free ones: define APP_MM_WALKS
 * where that is wanted. Without, the largest free block is that among 32 of the heap's largest list. */
struct mallinfo mm_mallinfo(struct mm_heap_s *heap)
{
    struct mallinfo info;
    memset(&info, 0, sizeof info);
    const irqstate_t flags = enter_critical_section();
    const struct app_counters counters = app_counters(heap->heap);
    info.arena = (int)heap->bytes;
    info.uordblks = (int)(heap->bytes - counters.free);
    info.fordblks = (int)counters.free;
    info.usmblks = (int)(heap->bytes - counters.least_free);
    info.aordblks = (int)(counters.mallocs - counters.frees);
#ifdef APP_MM_WALKS
    struct app_block block = {0, 0, 0, 0, 0};
    while (app_next_block(heap->heap, &block)) {
        info.ordblks += block.state != APP_BLOCK_USED;
    }
    info.mxordblk = (int)app_largest_free(heap->heap, UINT32_MAX);
#else
    info.mxordblk = (int)app_largest_free(heap->heap, 32);
    info.ordblks = info.mxordblk != 0;
#endif
    leave_critical_section(flags);
    return info;
}

size_t mm_heapfree(struct mm_heap_s *heap)
{
    return app_counters(heap->heap).free;
}

/* At a bounded cost, with the result of mm_mallinfo(). */
size_t mm_heapfree_largest(struct mm_heap_s *heap)
{
    return (size_t)mm_mallinfo(heap).mxordblk;
}

/* Blocks do not know their tasks. */
struct mallinfo_task mm_mallinfo_task(struct mm_heap_s *heap, const struct malltask *task)
{
    const struct mallinfo_task nothing = {0, 0};
    (void)heap;
    (void)task;
    return nothing;
}

void mm_memdump(struct mm_heap_s *heap, const struct mm_memdump_s *dump)
{
    (void)heap;
    (void)dump;
}

#ifdef CONFIG_DEBUG_MM
void mm_checkcorruption(struct mm_heap_s *heap)
{
    const irqstate_t flags = enter_critical_section();
    DEBUGASSERT(app_check(heap->heap) == 0);
    leave_critical_section(flags);
}
#endif

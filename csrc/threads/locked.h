/* threads/locked.h: the public entry points with a lock around each call, see heapwright.h. */
#ifndef HW_THREADS_LOCKED_H
#define HW_THREADS_LOCKED_H

#include "threads/lists.h"

static inline void *hw_locked_malloc(const struct hw_policy *p, struct hw_heap *heap, size_t size)
{
    const uintptr_t key = HW_LOCK(heap);
    void *memory = hw_malloc(p, heap, size);
    HW_UNLOCK(heap, key);
    return memory;
}

static inline void *hw_locked_malloc_at(const struct hw_policy *p, struct hw_heap *heap, uint32_t site, size_t size)
{
    const uintptr_t key = HW_LOCK(heap);
    void *memory = hw_malloc_at(p, heap, site, size);
    HW_UNLOCK(heap, key);
    return memory;
}

static inline void *hw_locked_calloc_at(const struct hw_policy *p, struct hw_heap *heap, uint32_t site, size_t count,
                                        size_t size)
{
    const size_t bytes = size != 0 && count > HW_MAX_REQUEST / size ? SIZE_MAX : count * size;
    void *memory = hw_locked_malloc_at(p, heap, site, bytes);
    if (memory) { /* cleared without the lock */
        clear_object(p, heap, memory, bytes);
    }
    return memory;
}

static inline void *hw_locked_calloc(const struct hw_policy *p, struct hw_heap *heap, size_t count, size_t size)
{
    if (p->sited) {
        return hw_locked_calloc_at(p, heap, 0, count, size);
    }
    const size_t bytes = size != 0 && count > HW_MAX_REQUEST / size ? SIZE_MAX : count * size;
    void *memory = hw_locked_malloc(p, heap, bytes);
    if (memory) { /* cleared without the lock */
        clear_object(p, heap, memory, bytes);
    }
    return memory;
}

static inline void *hw_locked_realloc(const struct hw_policy *p, struct hw_heap *heap, void *pointer, size_t size)
{
    const uintptr_t key = HW_LOCK(heap);
    void *resized = hw_realloc(p, heap, pointer, size);
    HW_UNLOCK(heap, key);
    return resized;
}

static inline void *hw_locked_aligned_alloc(const struct hw_policy *p, struct hw_heap *heap, size_t alignment,
                                            size_t size)
{
    const uintptr_t key = HW_LOCK(heap);
    void *memory = hw_aligned_alloc(p, heap, alignment, size);
    HW_UNLOCK(heap, key);
    return memory;
}

static inline void hw_locked_free(const struct hw_policy *p, struct hw_heap *heap, void *pointer)
{
    const uintptr_t key = HW_LOCK(heap);
    hw_free(p, heap, pointer);
    HW_UNLOCK(heap, key);
}

static inline size_t hw_locked_usable_size(const struct hw_policy *p, struct hw_heap *heap, const void *pointer)
{
    const uintptr_t key = HW_LOCK(heap);
    const size_t bytes = hw_usable_size(p, heap, pointer);
    HW_UNLOCK(heap, key);
    return bytes;
}

static inline void *hw_locked_malloc_low(const struct hw_policy *p, struct hw_heap *heap, size_t size)
{
    const uintptr_t key = HW_LOCK(heap);
    void *memory = hw_malloc_low(p, heap, size);
    HW_UNLOCK(heap, key);
    return memory;
}

static inline void *hw_locked_realloc_low(const struct hw_policy *p, struct hw_heap *heap, void *pointer, size_t size)
{
    const uintptr_t key = HW_LOCK(heap);
    void *memory = hw_realloc_low(p, heap, pointer, size);
    HW_UNLOCK(heap, key);
    return memory;
}

static inline int hw_locked_next_block(const struct hw_policy *p, struct hw_heap *heap, struct hw_block *block)
{
    const uintptr_t key = HW_LOCK(heap);
    const int found = hw_next_block(p, heap, block);
    HW_UNLOCK(heap, key);
    return found;
}

static inline struct hw_statistics hw_locked_statistics(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    const struct hw_statistics stats = hw_statistics(p, heap);
    HW_UNLOCK(heap, key);
    return stats;
}

static inline size_t hw_locked_largest_free(const struct hw_policy *p, struct hw_heap *heap, uint32_t looks)
{
    const uintptr_t key = HW_LOCK(heap);
    const size_t largest = hw_largest_free(p, heap, looks);
    HW_UNLOCK(heap, key);
    return largest;
}

static inline void hw_locked_flush(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    hw_flush(p, heap);
    HW_UNLOCK(heap, key);
}

static inline struct hw_counters hw_locked_counters(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    const struct hw_counters stats = hw_counters(p, heap);
    HW_UNLOCK(heap, key);
    return stats;
}

static inline struct hw_usage hw_locked_usage(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    const struct hw_usage usage = hw_usage(p, heap);
    HW_UNLOCK(heap, key);
    return usage;
}

static inline void hw_locked_reset_least_free(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    hw_reset_least_free(p, heap);
    HW_UNLOCK(heap, key);
}

static inline uint32_t hw_locked_misused(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    const uint32_t misused = hw_misused(p, heap);
    HW_UNLOCK(heap, key);
    return misused;
}

static inline int hw_locked_check(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    const int broken = hw_check(p, heap);
    HW_UNLOCK(heap, key);
    return broken;
}

#ifndef HW_EXPLORE
static inline struct hw_heap *hw_locked_init(const struct hw_policy *p, void *arena, size_t bytes)
{
    struct hw_heap *heap = hw_init(p, arena, bytes);
    if (heap) {
        HW_STARTED(heap);
    }
    return heap;
}
#endif

#endif

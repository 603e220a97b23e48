/* entries.h: the public entry points, see heapwright.h. */
#ifndef HW_ENTRIES_H
#define HW_ENTRIES_H

#include "events.h"
#include "harden.h"
#include "payload.h"

/* Counts the object that a request got, if any, and returns it. */
static inline void *counted(const struct hw_policy *p, struct hw_heap *h, void *memory)
{
    if (memory) {
        count_malloc(p, h, heap_block_bytes(p, h, (uint32_t)arena_offset(h, memory)));
    }
    return memory;
}

/* Counts what a request of `size` bytes got, an object or NULL for good, and returns it. */
static inline void *counted_request(const struct hw_policy *p, struct hw_heap *h, void *memory, size_t size)
{
    if (memory == NULL) {
        keep_refused(p, h, size);
    }
    return counted(p, h, memory);
}

/* Counts and reports a request of `size` bytes that is refused. */
static inline void refuse(const struct hw_policy *p, struct hw_heap *heap, size_t size)
{
    count_refused(p, heap);
    if (p->counters_at) {
        keep_refused(p, heap, size);
    }
    if (notifies(p)) {
        HW_REFUSED(heap, size);
    }
}

static inline void *hw_malloc_at(const struct hw_policy *p, struct hw_heap *heap, uint32_t site, size_t size)
{
    if (p->counters_at) {
        return HW_NOTIFY(heap, counted_request(p, heap, heap_serve(p, heap, request_for(p, size), site), size), size);
    }
    if (notifies(p)) {
        return HW_NOTIFY(heap, heap_serve(p, heap, request_for(p, size), site), size);
    }
    return heap_serve(p, heap, request_for(p, size), site);
}

static inline void *hw_malloc(const struct hw_policy *p, struct hw_heap *heap, size_t size)
{
    if (p->sited) {
        return hw_malloc_at(p, heap, 0, size);
    }
    if (p->counters_at) {
        return HW_NOTIFY(heap, counted_request(p, heap, heap_serve(p, heap, request_for(p, size), 0), size), size);
    }
    if (notifies(p)) {
        return HW_NOTIFY(heap, heap_serve(p, heap, request_for(p, size), 0), size);
    }
    return heap_serve(p, heap, request_for(p, size), 0);
}

/* Memory for a request of a class of call sites, where some pool has its own. */
static inline void *malloc_at(const struct hw_policy *p, struct hw_heap *heap, size_t size, uint32_t site)
{
    if (p->sited) {
        return hw_malloc_at(p, heap, site, size);
    }
    return hw_malloc(p, heap, size);
}

/* Clears `bytes` bytes of a new object. */
static inline void clear_object(const struct hw_policy *p, struct hw_heap *heap, const void *object, size_t bytes)
{
    const uint32_t at = address_of(p, heap, object);
    clear_payload(copy_step(p->align, 0), heap, at, (uint32_t)bytes);
}

static inline void *hw_calloc_at(const struct hw_policy *p, struct hw_heap *heap, uint32_t site, size_t count,
                                 size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        count_refused(p, heap);
        if (p->counters_at) {
            keep_refused(p, heap, SIZE_MAX);
        }
        HW_REFUSED(heap, SIZE_MAX);
        return NULL;
    }
    void *memory = malloc_at(p, heap, count * size, site);
    if (memory) {
        clear_object(p, heap, memory, count * size);
    }
    return memory;
}

static inline void *hw_calloc(const struct hw_policy *p, struct hw_heap *heap, size_t count, size_t size)
{
    return hw_calloc_at(p, heap, 0, count, size);
}

static inline void hw_free(const struct hw_policy *p, struct hw_heap *heap, void *pointer)
{
    if (pointer == NULL) {
        return;
    }
    const uint32_t at = address_of(p, heap, pointer);
    if (is_usable(p, heap, at)) {
        if (notifies(p)) {
            HW_FREED(heap, pointer);
        }
        const uint32_t bytes = p->counters_at ? heap_block_bytes(p, heap, at) : 0;
        free_object(p, heap, at);
        if (p->counters_at) {
            count_free_call(p, heap, bytes);
        }
    }
}

/* Whether a block that is made smaller may have to move, which may fail. */
static inline int moves_to_shrink(const struct hw_policy *p)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (holds_blocks(pool) && pool->min_size > 1u) {
            return 1;
        }
        if (pool->cached && pool->max_size < HW_MAX_REQUEST) {
            return 1; /* a list of cached blocks may have given one of its blocks for more than it takes itself */
        }
        if (pool_moves_to_shrink(pool)) {
            return 1;
        }
    }
    return 0;
}

/* Whether an object for which there is no other memory may stay where it is after all. */
static inline int may_stay(const struct hw_policy *p)
{
    return p->keeps || moves_to_shrink(p);
}

/* Memory for an object that could not be resized in place. If it may stay where it is after all, no failure is reported
 * here. */
static inline void *malloc_to_move(const struct hw_policy *p, struct hw_heap *heap, size_t size, uint32_t site)
{
    if (p->counters_at && may_stay(p)) {
        return counted(p, heap, heap_serve(p, heap, request_for(p, size), site));
    }
    if (may_stay(p)) {
        return HW_SILENT(heap_serve(p, heap, request_for(p, size), site), malloc_at(p, heap, size, site));
    }
    return malloc_at(p, heap, size, site);
}

/* Bytes of a block as the counters see it; 0 if the recipe has no counters. */
static inline uint32_t counted_bytes(const struct hw_policy *p, struct hw_heap *heap, uint32_t at)
{
    return p->counters_at ? heap_block_bytes(p, heap, at) : 0;
}

/* Adds the difference to the counters after a block of `had` bytes was resized. */
static inline void count_resized(const struct hw_policy *p, struct hw_heap *heap, uint32_t at, uint32_t had)
{
    if (p->counters_at) {
        count_change(p, heap, had, heap_block_bytes(p, heap, at));
    }
}

/* Whether all blocks have one size, so that no other one holds what an object's own does not. */
static inline int has_one_size(const struct hw_policy *p)
{
    const struct hw_pool *pool = &p->pools[0];
    return p->pool_count == 1u && pool->kind == HW_FIXED && pool->fixed.count == 1u && pool->min_size <= 1u &&
           p->checks != HW_CHECKS_FULL && p->threads != HW_THREADS_CACHED;
}

/* Whether an object stays in its block, whose size no header holds. */
static inline int never_moves(const struct hw_policy *p)
{
    return has_one_size(p) && p->checks == HW_CHECKS_NONE && p->pools[0].fixed.grow == 0;
}

/* Resizes an object where all blocks have one size: it stays where it is, or the request fails. */
static inline void *resize_in_one_size(const struct hw_policy *p, struct hw_heap *heap, void *pointer, size_t size)
{
    if (exceeds(size, p->pools[0].fixed.sizes[0])) {
        refuse(p, heap, size);
        return NULL;
    }
    if (notifies(p)) {
        HW_RESIZED(heap, pointer, pointer, size);
    }
    return pointer;
}

/* Takes back a counted failure: the object was resized in place after all. */
static inline void uncount_refused(const struct hw_policy *p, struct hw_heap *heap, uint32_t refused)
{
    if (p->keeps && refused) {
        store4(heap, p->refused_at, load4(heap, p->refused_at) - 1u);
    }
}

static inline void *hw_realloc(const struct hw_policy *p, struct hw_heap *heap, void *pointer, size_t size)
{
    if (pointer == NULL) {
        return hw_malloc(p, heap, size);
    }
    if (never_moves(p)) {
        return resize_in_one_size(p, heap, pointer, size);
    }
    const uint32_t at = address_of(p, heap, pointer);
    if (exceeds(size, HW_MAX_REQUEST)) {
        refuse(p, heap, size);
        return NULL;
    }
    if (!is_usable(p, heap, at)) {
        return NULL;
    }
    const uint32_t bytes = counted_bytes(p, heap, at);
    void *moved = NULL;
    uint32_t refused = 0;
    do {
        const uint32_t resized = sealed_resize(p, heap, at, (uint32_t)request_for(p, size));
        if (resized) {
            uncount_refused(p, heap, refused);
            mark_end(p, heap, resized, size);
            count_resized(p, heap, resized, bytes);
            if (notifies(p)) {
                HW_RESIZED(heap, pointer, arena_pointer(heap, resized), size);
            }
            return arena_pointer(heap, resized);
        }
        if (has_one_size(p)) {
            refuse(p, heap, size);
            return NULL;
        }
        if (p->keeps && refused) {
            break;
        }
        moved = malloc_to_move(p, heap, size, heap_site(p, heap, at));
        refused = 1; /* the lists were flushed in vain, but may have held the object's neighbours */
    } while (p->keeps && moved == NULL);
    if (moves_to_shrink(p) && moved == NULL && size <= heap_capacity(p, heap, at)) {
        store4(heap, p->refused_at, load4(heap, p->refused_at) - 1u); /* it is served after all */
        mark_end(p, heap, at, size);
        if (notifies(p)) {
            HW_RESIZED(heap, pointer, pointer, size);
        }
        return pointer;
    }
    if (p->counters_at && may_stay(p) && moved == NULL) {
        keep_refused(p, heap, size);
    }
    if (may_stay(p) && notifies(p)) {
        (void)HW_NOTIFY(heap, moved, size);
    }
    if (moved) {
        const uint32_t bytes_kept = smaller(usable_bytes(p, heap, at), (uint32_t)size);
        copy_payload(copy_step(p->align, 0), heap, address_of(p, heap, moved), at, bytes_kept);
        hw_free(p, heap, pointer);
    }
    return moved;
}

/* Whether a search may find an object of a larger alignment than payloads have as a rule, or change anything. */
static inline int can_align(const struct hw_policy *p)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        if (cuts_blocks(&p->pools[i]) && p->pools[i].site == 0) {
            return 1;
        }
    }
    return p->checks || p->keeps || p->ages;
}

static inline void *hw_aligned_alloc(const struct hw_policy *p, struct hw_heap *heap, size_t alignment, size_t size)
{
    if (alignment <= p->align && alignment != 0 && (alignment & (alignment - 1u)) == 0) {
        return hw_malloc(p, heap, size);
    }
    if (!can_align(p) || alignment == 0 || (alignment & (alignment - 1u)) != 0 || exceeds(size, HW_MAX_REQUEST / 4u) ||
        exceeds(alignment, HW_MAX_REQUEST / 4u)) {
        refuse(p, heap, size);
        return NULL;
    }
    const uint32_t at = serve_aligned(p, heap, (uint32_t)alignment, (uint32_t)request_for(p, size));
    if (p->counters_at && at) {
        count_malloc(p, heap, heap_block_bytes(p, heap, at));
    }
    if (p->counters_at && at == 0) {
        keep_refused(p, heap, size);
    }
    if (notifies(p)) {
        return HW_NOTIFY(heap, at ? arena_pointer(heap, at) : NULL, size);
    }
    return at ? arena_pointer(heap, at) : NULL;
}

static inline size_t hw_usable_size(const struct hw_policy *p, struct hw_heap *heap, const void *pointer)
{
    if (p->checks && p->threads != HW_THREADS_CACHED && pointer &&
        !heap_has_used(p, heap, address_of(p, heap, pointer))) {
        return 0;
    }
    return pointer ? (size_t)usable_bytes(p, heap, address_of(p, heap, pointer)) : 0;
}

/* ---- requests of low priority ----------------------------------------------------------------------------------- */

/* Whether the reserve stays free where `more` bytes are given away. */
static inline int leaves_reserve(const struct hw_policy *p, struct hw_heap *heap, size_t more)
{
    const uint32_t end = p->shares ? load4(heap, p->shared_end_at) : p->fixed_end;
    const uint32_t unused = end - p->spent - load4(heap, p->counters_at + HW_COUNT_USED);
    return unused >= p->reserve && more <= unused - p->reserve;
}

static inline void *hw_malloc_low(const struct hw_policy *p, struct hw_heap *heap, size_t size)
{
    if (!leaves_reserve(p, heap, size)) {
        refuse(p, heap, size);
        return NULL;
    }
    return hw_malloc(p, heap, size);
}

static inline void *hw_realloc_low(const struct hw_policy *p, struct hw_heap *heap, void *pointer, size_t size)
{
    if (pointer == NULL) {
        return hw_malloc_low(p, heap, size);
    }
    const size_t had = hw_usable_size(p, heap, pointer); /* 0 for an invalid pointer, which realloc detects */
    if (had != 0 && size > had && !leaves_reserve(p, heap, size - had)) {
        refuse(p, heap, size);
        return NULL;
    }
    return hw_realloc(p, heap, pointer, size);
}

static inline struct hw_counters hw_counters(const struct hw_policy *p, struct hw_heap *heap)
{
    struct hw_counters stats = {0, 0, 0, 0, 0};
    const uint32_t bytes = load4(heap, p->shared_end_at) - p->spent;
    stats.free = bytes - load4(heap, p->counters_at + HW_COUNT_USED);
    stats.least_free = bytes - most_used(p, heap);
    stats.refused = load4(heap, p->refused_at);
    stats.mallocs = load4(heap, p->counters_at + HW_COUNT_MALLOCS);
    stats.frees = load4(heap, p->counters_at + HW_COUNT_FREES);
    return stats;
}

static inline void hw_reset_least_free(const struct hw_policy *p, struct hw_heap *heap)
{
    store4(heap, p->counters_at + HW_COUNT_MOST, load4(heap, p->counters_at + HW_COUNT_USED));
}

static inline int hw_owns(const struct hw_policy *p, struct hw_heap *heap, const void *pointer)
{
    const uintptr_t at = arena_offset(heap, pointer);
    return at >= p->control && at < load4(heap, p->shared_end_at);
}

static inline void hw_flush(const struct hw_policy *p, struct hw_heap *heap)
{
    if (p->checks == HW_CHECKS_FULL) {
        (void)end_all_waits(p, heap);
    }
    if (p->keeps && is_sealed(p, heap)) {
        for (uint32_t i = 0; i < p->pool_count; i++) {
            if (!holds_blocks(&p->pools[i])) {
                (void)flush_pool(p, &p->pools[i].quick, heap);
            }
        }
        seal(p, heap);
    }
}

static inline uint32_t hw_misused(const struct hw_policy *p, struct hw_heap *heap)
{
    return p->checks ? load4(heap, p->misused_at) : 0;
}

#ifndef HW_EXPLORE
static inline struct hw_heap *hw_init(const struct hw_policy *p, void *arena, size_t bytes)
{
    if (arena == NULL || (uintptr_t)arena % p->arena_align != 0) {
        return NULL;
    }
    struct hw_heap *heap = arena;
    return heap_init(p, heap, bytes) ? heap : NULL;
}
#endif

#endif

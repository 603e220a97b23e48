/* heap.h: the way of a request through the pools.
 *
 *     malloc:   pool 1 -> pool 2 -> ... each: what it has, then a flush of cached blocks, then new memory
 *
 * The control data lies at the start of the arena:
 *
 *     0: null node | refused, misused, seals | end of the shared part | counters | pool by pool
 */
#ifndef HW_HEAP_H
#define HW_HEAP_H

#include "refill.h"
#include "seal.h"

static inline int heap_init(const struct hw_policy *p, struct hw_heap *h, size_t bytes)
{
    uint32_t end = (exceeds(bytes, p->reach) ? p->reach : (uint32_t)bytes) + p->end_header - p->end_mark;
    if (p->grows_down && p->align > 1u) {
        /* blocks end where the payload of one behind them would be aligned */
        end &= ~(p->align - 1u);
    }
    if (end < p->fixed_end + p->end_header) {
        return 0;
    }
    for (uint32_t at = 0; at < p->control; at++) {
        store1(h, at, 0);
    }
    store4(h, p->shared_limit_at, end - p->end_header);
    if (p->grows_down) {
        store4(h, p->shared_end_at, end - p->end_header);
    }
    if (p->checks) {
        store4(h, p->end_seal_at, end_seal(end - p->end_header));
    }
    for (uint32_t word = 0; word < p->keys; word++) {
        store4(h, p->keys_at + 4u * word, HW_SECRET(h));
    }
    store4(h, p->shared_high_at, p->fixed_end);
    for (uint32_t i = 0; i < p->pool_count; i++) {
        pool_init(&p->pools[i], h);
    }
    seal(p, h);
    return 1;
}

/* Serves n bytes from a pool that has nothing at hand: the address of the payload, or 0. */
static inline uint32_t pool_search_or_grow(const struct hw_policy *p, const uint32_t i, struct hw_heap *h, uint32_t n)
{
    const struct hw_pool *pool = &p->pools[i];
    if (pool_searches(pool)) {
        const uint32_t found = pool_search(pool, h, n);
        if (found) {
            return found;
        }
    }
    if (p->flushes && pool_gains(pool) && flush_before_growing(p, i, h, n)) {
        const uint32_t freed = pool_find_again(pool, h, n);
        if (freed) {
            return freed;
        }
    }
    return pool_grow(pool, h, n);
}

/* Serves `size` bytes from a pool that admits them, by any of its ways: the address of the payload, or 0. */
static inline uint32_t pool_serve(const struct hw_policy *p, const uint32_t i, struct hw_heap *h, size_t size)
{
    const struct hw_pool *pool = &p->pools[i];
    if (!holds_blocks(pool)) {
        return pool_find_waiting(p, pool, h, size);
    }
    const uint32_t n = (uint32_t)size;
    const uint32_t hit = pool->fast_max < pool->max_size && n > pool->fast_max ? 0 : pool_hit(pool, h, n);
    return hit ? hit : pool_search_or_grow(p, i, h, n);
}

/* Goes on where nothing is at hand: the payload, or NULL. */
HW_COLD void *heap_malloc_from(const struct hw_policy *p, const uint32_t from, struct hw_heap *h, size_t size,
                               uint32_t site)
{
    uint32_t at = 0;
    if (p->ages) {
        at = heap_find_idle(p, from, h, size);
        if (at) {
            return arena_pointer(h, at);
        }
    }
    if (p->rounds) {
        size = rounded_request(p, 0, from, size);
    }
    if (p->refills) {
        at = heap_refill(p, from, h, size);
        if (at) {
            return arena_pointer(h, at);
        }
    }
    do {
        for (uint32_t i = from; i < p->pool_count; i++) {
            const struct hw_pool *pool = &p->pools[i];
            flush_ahead(p, pool, h, size);
            if (pool_serves_site(pool, site) && pool_admits(pool, pool->max_size, size)) {
                const int asked = i == from && i <= p->sited; /* for what is at hand */
                at = asked ? pool_search_or_grow(p, i, h, (uint32_t)size)
                           : pool_serve(p, i, h, rounded_request(p, from, i, size));
                if (at) {
                    HW_ASSERT(at >= p->control && (at & (p->align - 1u)) == 0);
                    return arena_pointer(h, at);
                }
            }
        }
    } while (p->keeps && flush_before_refusing(p, h));
    count_refused(p, h);
    return NULL;
}

/* Serves a request of a pool's own call sites: the payload, or NULL. */
HW_HOT void *heap_malloc_sited(const struct hw_policy *p, const uint32_t i, struct hw_heap *h, size_t size,
                               uint32_t site)
{
    const struct hw_pool *pool = &p->pools[i];
    if (pool_admits(pool, pool->fast_max, size)) {
        const uint32_t at = pool_hit(pool, h, (uint32_t)size);
        if (at) {
            HW_ASSERT(at >= p->control && (at & (p->align - 1u)) == 0);
            return arena_pointer(h, at);
        }
    }
    return heap_malloc_from(p, i, h, size, site);
}

/* Serves a request: the payload, or NULL. Each pool bounds by itself what it takes. */
HW_HOT void *heap_malloc(const struct hw_policy *p, struct hw_heap *h, size_t size, uint32_t site)
{
    for (uint32_t i = 0; i < p->sited; i++) {
        if (p->pools[i].site == site) {
            return heap_malloc_sited(p, i, h, size, site);
        }
    }
    for (uint32_t i = p->sited; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (holds_blocks(pool) && i != p->sited) {
            return heap_malloc_from(p, i, h, size, site); /* behind quick lists even what is at hand is less frequent */
        }
        if (holds_blocks(pool)) {
            if (pool_admits(pool, pool->fast_max, size)) {
                const uint32_t at = pool_hit(pool, h, (uint32_t)size);
                if (at) {
                    HW_ASSERT(at >= p->control && (at & (p->align - 1u)) == 0);
                    return arena_pointer(h, at);
                }
            }
            return heap_malloc_from(p, i, h, size, site);
        }
        flush_ahead(p, pool, h, size);
        if (pool_admits(pool, pool->max_size, size)) {
            const uint32_t at = pool_find_cached(pool, h, size);
            if (at) {
                return arena_pointer(h, at);
            }
        }
    }
    return NULL;
}

/* Serves n bytes without growing: the address of the payload, or 0, which is no refusal. */
HW_COLD uint32_t heap_find(const struct hw_policy *p, struct hw_heap *h, uint32_t n)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_admits(pool, pool->max_size, n)) {
            const uint32_t at = pool_find(pool, h, n);
            if (at) {
                if (p->ages && holds_blocks(pool)) {
                    heap_count_past(p, i, h, n);
                }
                return at;
            }
        }
    }
    return 0;
}

/* A block of a general pool for n bytes, cut so that its payload is aligned: the address of the payload, or 0. */
static inline uint32_t pool_malloc_aligned(const struct hw_policy *p, const uint32_t i, struct hw_heap *h,
                                           uint32_t alignment, uint32_t n)
{
    const struct hw_pool *pool = &p->pools[i];
    const uint32_t size = pool_aligned_size(pool, p->aligned_search, n, alignment);
    if (size >= p->reach) {
        return 0;
    }
    uint32_t b = pool_find_block(pool, h, size);
    if (p->flushes && b == 0 && flush_before_growing(p, i, h, size)) {
        b = pool_find_block(pool, h, size);
    }
    if (b == 0) {
        b = pool_grow_block(pool, h, size);
    }
    if (b == 0) {
        return 0;
    }
    b = pool_align_block(pool, h, b, alignment);
    pool_trim_block(pool, p->aligned_search, h, b, pool_block_size(pool, n));
    return pool_hand_out(pool, h, b);
}

/* Serves n bytes at a larger alignment than payloads have as a rule: the address of the payload, or 0. */
static inline uint32_t heap_malloc_aligned(const struct hw_policy *p, struct hw_heap *h, uint32_t alignment, uint32_t n)
{
    uint32_t at = 0;
    if (p->ages) {
        heap_count_past(p, p->pool_count, h, n);
    }
    do {
        for (uint32_t i = 0; i < p->pool_count; i++) {
            const struct hw_pool *pool = &p->pools[i];
            if (cuts_blocks(pool) && pool->site == 0 && pool_takes(pool, n)) {
                /* a block with a header can be cut to it */
                at = pool_malloc_aligned(p, i, h, alignment, n);
                if (at) {
                    return at;
                }
            }
        }
    } while (p->keeps && flush_before_refusing(p, h));
    count_refused(p, h);
    return 0;
}

/* ---- with control data that are what the last call left ---------------------------------------------------------- */

/* Serves a request: the payload, or NULL. */
HW_HOT void *sealed_malloc(const struct hw_policy *p, struct hw_heap *h, size_t size, uint32_t site)
{
    if (!is_sealed(p, h)) {
        count_refused(p, h);
        return NULL;
    }
    void *memory = heap_malloc(p, h, size, site);
    seal(p, h);
    return memory;
}

/* Serves n bytes at a larger alignment than payloads have as a rule: the address of the payload, or 0. */
static inline uint32_t sealed_malloc_aligned(const struct hw_policy *p, struct hw_heap *h, uint32_t alignment,
                                             uint32_t n)
{
    if (!is_sealed(p, h)) {
        count_refused(p, h);
        return 0;
    }
    const uint32_t at = heap_malloc_aligned(p, h, alignment, n);
    seal(p, h);
    return at;
}

/* Frees the block of a payload. */
HW_HOT void sealed_free(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (!is_sealed(p, h)) {
        return;
    }
    heap_free(p, h, at);
    seal(p, h);
}

/* Makes an object n bytes large without a search, and returns where it is; 0 where it cannot. */
static inline uint32_t sealed_resize(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t n)
{
    if (!is_sealed(p, h)) {
        return 0;
    }
    const uint32_t resized = heap_resize(p, h, at, n);
    seal(p, h);
    return resized;
}

#endif

/* ownership.h: which pool owns a block, and queries about a block forwarded to its owner. */
#ifndef HW_OWNERS_H
#define HW_OWNERS_H

#include "pool.h"

/* ---- the arena's end --------------------------------------------------------------------------------------------- */

/* The seal stored with the address of the arena's end, which authenticates it. */
static inline uint32_t end_seal(uint32_t end)
{
    return (end ^ 0x5bd1e995u) * 0x9e3779b1u;
}

/* The end of the arena; 0 if the stored address was damaged. */
static inline uint32_t arena_end(const struct hw_policy *p, struct hw_heap *h)
{
    const uint32_t end = load4(h, p->shared_end_at);
    if (p->checks && load4(h, p->end_seal_at) != end_seal(end)) {
        return 0;
    }
    return end;
}

static inline int pool_is_bounded(const struct hw_policy *p, const struct hw_pool *pool, struct hw_heap *h)
{
    const uint32_t end = arena_end(p, h);
    return end != 0 && HW_ASK(pool, is_bounded, h, end);
}

/* Bytes that the heap has ever covered. */
static inline uint32_t heap_covered(const struct hw_policy *p, struct hw_heap *h)
{
    if (p->end_mark) {
        return load4(h, p->shared_high_at) - p->fixed_end + (load4(h, p->shared_end_at) - load4(h, p->shared_limit_at));
    }
    return load4(h, p->shared_high_at) - p->fixed_end;
}

/* ---- the pool that owns a block ---------------------------------------------------------------------------------- */

/* Gives a block back to its owner, past the quick lists; one whose metadata was damaged meanwhile is lost. */
static inline void heap_release(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            if (p->checks >= HW_CHECKS_NEIGHBOURS && !(pool_is_used(pool, h, at) && pool_is_sound(pool, h, at))) {
                count_misuse(p->misused_at, h);
                return;
            }
            pool_release(pool, h, at);
            return;
        }
    }
}

static inline uint32_t heap_capacity(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            return pool_capacity(pool, h, at);
        }
    }
    return 0;
}

static inline uint32_t heap_block_bytes(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            return HW_ASK_OWNER(pool, block_bytes, h, at);
        }
    }
    return 0;
}

/* The class of call sites that the pool of an object serves; 0 where it serves any. */
static inline uint32_t heap_site(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    for (uint32_t i = 0; i < p->sited; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            return pool->site;
        }
    }
    return 0;
}

/* Makes an object n bytes large without a search, and returns where it is; 0 where it cannot, and nothing has changed.
 */
static inline uint32_t heap_resize(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t n)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            return pool_takes(pool, n) ? pool_resize(pool, h, at, n) : 0;
        }
    }
    return 0;
}

/* Whether `at` is the payload of a block that is not free, by its owner's metadata and all that the level of checks
 * validates. */
HW_HOT int heap_has_used(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (at < p->control || (at & (p->align - 1u)) != 0) {
        return 0;
    }
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            return pool_is_used(pool, h, at) && (p->checks < HW_CHECKS_NEIGHBOURS || pool_is_sound(pool, h, at));
        }
    }
    return 0;
}

#endif

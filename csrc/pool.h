/* pool.h: one pool of any kind.
 *
 * A heap asks every pool the same things, and each kind answers in a file of its own, with functions that begin with
 * its name; `at` is the address of a payload:
 *
 *     init      writes the pool's control data
 *     find      serves n bytes without raising the high-water mark: the address of the payload, or 0
 *     grow      serves n bytes with memory that was never used: the address of the payload, or 0
 *     owns      whether the payload lies in the pool's part of the arena
 *     capacity  bytes that the payload holds
 *     is_used   whether a block with this payload is handed out or cached, as far as the metadata tells
 *     is_sound  whether its metadata and that beside it agree
 *     release   takes the block back
 *     resize    makes the block hold n bytes without a search: the address of the payload, or 0 where nothing changed
 *
 * harden.h answers is_sound, and check.h adds is_bounded, block_at, tell and check. Two kinds answer less: a quick pool
 * has no blocks of its own, and is only asked to find; the blocks of a compact pool move, so that none has an address
 * to ask about.
 */
#ifndef HW_POOL_H
#define HW_POOL_H

#include "harden.h"
#include "heapwright.h"
#include "pool_quick.h"

/* Asks a pool whose blocks stay where they are: HW_ASK_OWNER(pool, find, h, n) is general_find(&pool->general, h, n)
 * where the pool is a general one. */
#define HW_ASK_OWNER(pool, what, ...)                                                                                  \
    ((pool)->kind == HW_GENERAL ? general_##what(&(pool)->general, __VA_ARGS__)                                        \
     : (pool)->kind == HW_FIXED ? fixed_##what(&(pool)->fixed, __VA_ARGS__)                                            \
     : (pool)->kind == HW_BUDDY ? buddy_##what(&(pool)->buddy, __VA_ARGS__)                                            \
                                : partition_##what(&(pool)->partition, __VA_ARGS__))

/* Asks a pool whose blocks may also move. */
#define HW_ASK(pool, what, ...)                                                                                        \
    ((pool)->kind == HW_COMPACT ? compact_##what(&(pool)->compact, __VA_ARGS__) : HW_ASK_OWNER(pool, what, __VA_ARGS__))

static inline void pool_init(const struct hw_pool *pool, struct hw_heap *h)
{
    if (pool->kind == HW_QUICK) {
        quick_init(&pool->quick, h);
        return;
    }
    HW_ASK(pool, init, h);
}

/* Whether a pool is offered a request of n bytes, n <= HW_MAX_REQUEST. */
static inline int pool_takes(const struct hw_pool *pool, uint32_t n)
{
    if (pool->min_size > 1u && n < pool->min_size) {
        return 0;
    }
    if (pool->max_size < HW_MAX_REQUEST && n > pool->max_size) {
        return 0;
    }
    return 1;
}

/* Whether a pool is offered a request of a size that nothing has bounded. */
static inline int pool_admits(const struct hw_pool *pool, const uint32_t most, size_t size)
{
    if (pool->min_size > 1u && !exceeds(size, pool->min_size - 1u)) {
        return 0;
    }
    if (pool->kind == HW_QUICK && most == HW_MAX_REQUEST) {
        return 1; /* what its lists do not hold, it has not */
    }
    return !exceeds(size, most);
}

/* Serves n bytes from what is at hand: the address of the payload, or 0. */
HW_HOT uint32_t pool_hit(const struct hw_pool *pool, struct hw_heap *h, uint32_t n)
{
    if (pool->kind == HW_GENERAL) {
        return general_hit(&pool->general, h, n);
    }
    return HW_ASK_OWNER(pool, find, h, n);
}

/* Whether what is at hand is not all that the pool has without growing. */
static inline int pool_searches(const struct hw_pool *pool)
{
    return pool->kind == HW_GENERAL && pool->general.victim_up_to;
}

/* Goes on where nothing is at hand, without growing: the address of the payload, or 0. */
static inline uint32_t pool_search(const struct hw_pool *pool, struct hw_heap *h, uint32_t n)
{
    return general_search(&pool->general, h, n);
}

/* Serves n bytes without growing: the address of the payload, or 0. */
static inline uint32_t pool_find(const struct hw_pool *pool, struct hw_heap *h, uint32_t n)
{
    if (pool->kind == HW_QUICK) {
        return quick_find(&pool->quick, h, n);
    }
    return HW_ASK_OWNER(pool, find, h, n);
}

static inline uint32_t pool_grow(const struct hw_pool *pool, struct hw_heap *h, uint32_t n)
{
    return HW_ASK_OWNER(pool, grow, h, n);
}

/* Whether the block with this payload came from the pool. The last pool is only asked about what no other owns. */
static inline int pool_owns(const struct hw_pool *pool, struct hw_heap *h, uint32_t at)
{
    if (pool->kind == HW_QUICK) {
        return 0;
    }
    if (pool->last) {
        return 1;
    }
    return HW_ASK_OWNER(pool, owns, h, at);
}

static inline uint32_t pool_capacity(const struct hw_pool *pool, struct hw_heap *h, uint32_t at)
{
    return HW_ASK_OWNER(pool, capacity, h, at);
}

HW_HOT int pool_is_used(const struct hw_pool *pool, struct hw_heap *h, uint32_t at)
{
    return HW_ASK_OWNER(pool, is_used, h, at);
}

HW_HOT int pool_is_sound(const struct hw_pool *pool, struct hw_heap *h, uint32_t at)
{
    return HW_ASK_OWNER(pool, is_sound, h, at);
}

/* Gives a block back to the pool that made it, past the quick lists. */
static inline void pool_release(const struct hw_pool *pool, struct hw_heap *h, uint32_t at)
{
    HW_ASK_OWNER(pool, release, h, at);
}

static inline uint32_t pool_resize(const struct hw_pool *pool, struct hw_heap *h, uint32_t at, uint32_t n)
{
    return HW_ASK_OWNER(pool, resize, h, at, n);
}

#endif

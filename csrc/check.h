/* check.h: inspection of a heap: the block walk, the statistics, and the checker of invariants.
 *
 * No value in the arena is used before it was validated, first the boundaries of each pool, then each size and link: so
 * inspection of a damaged heap terminates and stays inside the arena. Only two things are trusted: without checks, the
 * one word that holds the end of the arena; and the numbers of handles that the caller keeps.
 *
 * Firmware that calls none of these functions links none of their code.
 */
#ifndef HW_CHECK_H
#define HW_CHECK_H

#include "largest.h"
#include "usage.h"

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Whether blocks that look used may wait in a list, or to be free. */
static inline int has_waiting(const struct hw_policy *p, const struct hw_pool *pool)
{
    return p->checks == HW_CHECKS_FULL || lists_used(pool) || pool->cached;
}

/* Whether blocks of the pool wait in lists that are emptied before a request fails. */
static inline int has_cached(const struct hw_policy *p, const struct hw_pool *pool)
{
    return holds_blocks(pool) && !pool_moves(pool) && (p->checks == HW_CHECKS_FULL || pool->cached);
}

/* What a block is where some that look used wait in a list. O(list). */
static inline uint32_t block_state(const struct hw_policy *p, const uint32_t owner, struct hw_heap *h,
                                   const struct hw_block *block)
{
    const struct hw_pool *pool = &p->pools[owner];
    if (block->state == HW_BLOCK_USED) {
        const uint32_t at = block->offset + block->header;
        if (HW_IS_LISTED_FREE(pool, h, at)) {
            return HW_BLOCK_FREE;
        }
        if (pool->cached && is_cached(p, owner, h, at, block_capacity(pool, h, block), UINT32_MAX)) {
            return HW_BLOCK_CACHED;
        }
        if (p->checks == HW_CHECKS_FULL && is_waiting(p, h, at, block_capacity(pool, h, block))) {
            return HW_BLOCK_CACHED;
        }
    }
    return block->state;
}

static inline int hw_next_block(const struct hw_policy *p, struct hw_heap *heap, struct hw_block *block)
{
    uint32_t at = block->offset + block->size;
    if (p->pool_count == 1u) {
        const struct hw_pool *pool = &p->pools[0];
        if (!pool_is_bounded(p, pool, heap) || !pool_block_at(pool, heap, at, block)) {
            return 0;
        }
        if (has_waiting(p, pool)) {
            block->state = block_state(p, 0, heap, block);
        }
        return 1;
    }
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (block->pool <= i) {
            if (block->pool < i) {
                at = 0;
                block->pool = i;
            }
            if (holds_blocks(pool) && pool_is_bounded(p, pool, heap) && pool_block_at(pool, heap, at, block)) {
                if (has_waiting(p, pool)) {
                    block->state = block_state(p, i, heap, block);
                }
                return 1;
            }
        }
    }
    return 0;
}

static inline size_t hw_block_bytes(const struct hw_policy *p, struct hw_heap *heap, const void *pointer)
{
    const uint32_t at = pointer ? address_of(p, heap, pointer) : 0;
    if (at == 0 || (p->checks && (!heap_has_used(p, heap, at) || !heap_has_object(p, heap, at)))) {
        return 0;
    }
    return heap_block_bytes(p, heap, at);
}

/* ---- the statistics ---------------------------------------------------------------------------------------------- */

/* Whether a freed block is one of those that wait. */
static inline int has_turn(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    for (uint32_t i = 0; i < HW_WAITING; i++) {
        if (load4(h, p->waiting_at + 4u + 4u * i) == at) {
            return 1;
        }
    }
    return 0;
}

/* The state of a block as far as it is known without a walk. */
static inline uint32_t marked_state(const struct hw_policy *p, const struct hw_pool *pool, struct hw_heap *h,
                                    const struct hw_block *block)
{
    const uint32_t at = block->offset + block->header;
    if (pool_marks_free(pool) && HW_IS_LISTED_FREE(pool, h, at)) {
        return HW_BLOCK_FREE;
    }
    if (p->checks == HW_CHECKS_FULL && block->state == HW_BLOCK_USED && has_turn(p, h, at)) {
        return HW_BLOCK_CACHED;
    }
    return block->state;
}

/* Adds the blocks of one pool to the statistics. */
static inline void count_blocks(const struct hw_policy *p, const struct hw_pool *pool, struct hw_heap *h,
                                struct hw_statistics *stats)
{
    struct hw_block block = {0, 0, 0, 0, 0};
    while (pool_block_at(pool, h, block.offset + block.size, &block)) {
        if (marked_state(p, pool, h, &block) == HW_BLOCK_USED) {
            stats->used += block.size;
            stats->used_blocks++;
        } else {
            stats->unused += block.size;
        }
    }
}

/* Most blocks of a list that the statistics look at for each block that looks used. */
enum { HW_CACHED_LOOKS = 64 };

/* Whether a flush would leave a block in use, or it lies so deep in a list that no look finds it there. */
static inline int outlasts_flush(const struct hw_policy *p, const uint32_t owner, struct hw_heap *h,
                                 const struct hw_block *block)
{
    const struct hw_pool *pool = &p->pools[owner];
    if (block->state != HW_BLOCK_USED) {
        return 0;
    }
    const uint32_t at = block->offset + block->header;
    const uint32_t capacity = block_capacity(pool, h, block);
    return !(pool->cached && is_cached(p, owner, h, at, capacity, HW_CACHED_LOOKS)) &&
           !(p->checks == HW_CHECKS_FULL && is_waiting(p, h, at, capacity));
}

/* The largest request that one pool serves once its cached blocks are freed, as a request does that would otherwise
 * fail, with the free blocks around them; or less, where a list is longer than what is looked at. O(blocks). */
static inline uint32_t largest_flushed(const struct hw_policy *p, const uint32_t owner, struct hw_heap *h)
{
    const struct hw_pool *pool = &p->pools[owner];
    uint32_t largest = 0;
    uint32_t before = 0;
    struct hw_block block = {0, 0, 0, 0, 0};
    while (pool_block_at(pool, h, block.offset + block.size, &block)) {
        if (outlasts_flush(p, owner, h, &block)) {
            before = 0;
        } else {
            largest = larger(largest, pool_within(pool, h, &block, before));
            before = pool_merges_at_once(pool) ? before + block.size : 0;
        }
    }
    return largest_offered(p, owner, largest);
}

static inline struct hw_statistics hw_statistics(const struct hw_policy *p, struct hw_heap *heap)
{
    struct hw_statistics stats = {0, 0, 0, 0, 0, 0, 0};
    stats.peak = load4(heap, p->shared_high_at);
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (!holds_blocks(pool)) {
            count_lists(p, i, heap, &stats);
        } else if (pool_is_bounded(p, pool, heap)) {
            count_blocks(p, pool, heap, &stats);
            pool_count_unmarked(pool, heap, &stats);
            if (!pool_moves(pool)) {
                HW_ASK_OWNER(pool, statistics, heap, &stats);
            }
        }
    }
    stats.largest_free = (uint32_t)hw_largest_free(p, heap, UINT32_MAX);
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->site == 0 && has_cached(p, pool) && pool_is_bounded(p, pool, heap)) {
            stats.largest_free = larger(stats.largest_free, largest_flushed(p, i, heap));
        }
    }
    stats.refused = load4(heap, p->refused_at);
    if (p->checks) {
        stats.misused = load4(heap, p->misused_at);
    }
    return stats;
}

/* ---- the checker ------------------------------------------------------------------------------------------------- */

/* Blocks in use of all classes. */
static inline uint32_t blocks_of_classes(const struct hw_policy *p, struct hw_heap *h)
{
    uint32_t blocks = 0;
    for (uint32_t of = 0; of < HW_CLASSES; of++) {
        blocks += load_field(&p->tally, h, size_class_at(p, of));
    }
    return blocks;
}

/* Whether the counters say what a walk does. */
static inline int are_counters_right(const struct hw_policy *p, struct hw_heap *h)
{
    const struct hw_statistics stats = hw_statistics(p, h);
    const uint32_t used = load4(h, p->counters_at + HW_COUNT_USED);
    const uint32_t blocks = load4(h, p->counters_at + HW_COUNT_MALLOCS) - load4(h, p->counters_at + HW_COUNT_FREES);
    const uint32_t room = load4(h, p->shared_end_at) - p->spent;
    if (p->classes_at && blocks_of_classes(p, h) != blocks) {
        return 0;
    }
    return used == stats.used && blocks == stats.used_blocks && most_used(p, h) <= room;
}

static inline int hw_check(const struct hw_policy *p, struct hw_heap *heap)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (holds_blocks(pool) && !pool_is_bounded(p, pool, heap)) {
            return HW_BROKEN_BOUNDS;
        }
        if (holds_blocks(pool)) {
            const int broken = HW_ASK(pool, check, heap);
            if (broken) {
                return broken;
            }
        }
    }
    /* Last, because a look at a cached block relies on its pool. */
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (!holds_blocks(pool)) {
            const int broken = lists_check(p, i, heap);
            if (broken) {
                return broken;
            }
        }
    }
    if (p->counters_at) {
        return are_counters_right(p, heap) ? 0 : HW_BROKEN_COUNTERS;
    }
    return 0;
}

#endif

/* largest.h: the largest request that the heap would serve now.
 *
 * Each kind looks where its largest piece lies, and at no more than `looks` free blocks there: in bins, the highest
 * that holds one; in lists by size, the last; in a tree, the way to its end. What lies above the last block is known
 * without a look. Only what a search would find counts: no block behind the last that it examines, and free
 * neighbours that it would merge as one. So the answer is never too large, and exact unless that one list is
 * longer than `looks`, or blocks wait in quick lists or in quarantine, which statistics count. Pools that serve call
 * sites alone are left out: not every request can have what lies there.
 */
#ifndef HW_LARGEST_H
#define HW_LARGEST_H

#include "entries.h"

/* The largest request that a pool serves of those up to `most` bytes; 0 if it serves none. */
static inline uint32_t largest_offered(const struct hw_policy *p, const uint32_t which, uint32_t most)
{
    const struct hw_pool *pool = &p->pools[which];
    most = smaller(most, pool->max_size);
    if (p->rounds) {
        most = within_rounding(p, which, most);
    }
    return most < pool->min_size ? 0 : most;
}

/* Free blocks to look at: none where the request first empties quick lists, whose blocks then may lie ahead of all that
 * a search examines before it ends. */
static inline uint32_t sure_looks(const struct hw_policy *p, const struct hw_pool *pool, uint32_t looks)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        if (p->pools[i].kind == HW_QUICK && p->pools[i].quick.flush_from && pool->kind == HW_GENERAL &&
            pool->general.search_most) {
            return 0;
        }
    }
    return looks;
}

static inline size_t hw_largest_free(const struct hw_policy *p, struct hw_heap *heap, uint32_t looks)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->site == 0 && holds_blocks(pool) && pool_is_bounded(p, pool, heap)) {
            largest = larger(largest, largest_offered(p, i, HW_ASK(pool, largest, heap, sure_looks(p, pool, looks))));
        }
    }
    return (size_t)largest;
}

#endif

/* largest.h: the largest request that one free piece could serve, at a cost that the caller bounds.
 *
 * Each kind looks where its largest piece lies, and at no more than `looks` free blocks there: in bins, the highest
 * that holds one; in lists by size, the last; in a tree, the way to its end. What lies above the last
 * block is known without a look. So the answer is exact unless that one list is longer, and never too large. Pools
 * that serve call sites alone are left out: not every request can have what lies there.
 */
#ifndef HW_LARGEST_H
#define HW_LARGEST_H

#include "check.h"

static inline size_t hw_largest_free(const struct hw_policy *p, struct hw_heap *heap, uint32_t looks)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->site == 0 && holds_blocks(pool) && pool_is_bounded(p, pool, heap)) {
            const uint32_t most = HW_ASK(pool, largest, heap, looks);
            largest = larger(largest, most);
        }
        if (pool_moves(pool) && largest > pool->max_size) {
            largest = pool->max_size;
        }
    }
    return (size_t)largest;
}

#endif

/* seal.h: whether the control data that bound the blocks are still what the last call left.
 *
 * At levels neighbours and full one word seals the others that say where blocks end, where the last remainder lies, and
 * where a search starts: a product of them and of a key. Each step of it is one-to-one in the word that it adds, so
 * that a change of any one of these words, of the seal or of the key never goes unnoticed. It is compared before a call
 * reaches the pools, and written again behind it; a heap whose seal is broken serves and frees nothing more, and counts
 * each call as misuse. Heads of lists are no part of it: links are masked, and looked at before they are followed.
 */
#ifndef HW_SEAL_H
#define HW_SEAL_H

#include "pool.h"

/* The seal of the control data as they stand. O(pools). */
HW_COLD uint32_t sum_of_bounds(const struct hw_policy *p, struct hw_heap *h)
{
    uint32_t sum = with_bound(load4(h, p->shared_limit_at), load4(h, p->shared_high_at));
    for (uint32_t word = 0; word < p->keys; word++) {
        sum = with_bound(sum, peek4(h, p->keys_at + 4u * word));
    }
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (holds_blocks(pool)) {
            sum = HW_ASK_OWNER(pool, sum_of_bounds, h, sum);
        }
    }
    return sum;
}

/* Whether the seal is whole; a broken one is counted. */
HW_HOT int is_sealed(const struct hw_policy *p, struct hw_heap *h)
{
    if (p->seals && load4(h, p->seal_at) != sum_of_bounds(p, h)) {
        count_misuse(p->misused_at, h);
        return 0;
    }
    return 1;
}

HW_HOT void seal(const struct hw_policy *p, struct hw_heap *h)
{
    if (p->seals) {
        store4(h, p->seal_at, sum_of_bounds(p, h));
    }
}

#endif

/* counters.h: what a heap keeps count of, so that nobody has to walk it.
 *
 *     bytes in used blocks | the most there ever were | objects handed out | objects given back
 *
 * Four words of the control data, where the recipe asks for them; each call brings them up to date, which costs up to
 * six accesses and a look at the block's size. The checker compares them with the walk.
 */
#ifndef HW_COUNTERS_H
#define HW_COUNTERS_H

#include "arena.h"

enum { HW_COUNT_USED = 0, HW_COUNT_MOST = 4, HW_COUNT_MALLOCS = 8, HW_COUNT_FREES = 12 };

/* Counts a change of the bytes in used blocks. */
static inline void count_used(const struct hw_policy *p, struct hw_heap *h, uint32_t more)
{
    const uint32_t used = load4(h, p->counters_at + HW_COUNT_USED) + more;
    store4(h, p->counters_at + HW_COUNT_USED, used);
    if (used > load4(h, p->counters_at + HW_COUNT_MOST)) {
        store4(h, p->counters_at + HW_COUNT_MOST, used);
    }
}

/* Counts an object that is handed out in a block of `bytes` bytes. */
static inline void count_malloc(const struct hw_policy *p, struct hw_heap *h, uint32_t bytes)
{
    count_used(p, h, bytes);
    store4(h, p->counters_at + HW_COUNT_MALLOCS, load4(h, p->counters_at + HW_COUNT_MALLOCS) + 1u);
}

/* Counts an object that is given back in a block of `bytes` bytes. */
static inline void count_free_call(const struct hw_policy *p, struct hw_heap *h, uint32_t bytes)
{
    HW_ASSERT(bytes <= load4(h, p->counters_at + HW_COUNT_USED));
    store4(h, p->counters_at + HW_COUNT_USED, load4(h, p->counters_at + HW_COUNT_USED) - bytes);
    store4(h, p->counters_at + HW_COUNT_FREES, load4(h, p->counters_at + HW_COUNT_FREES) + 1u);
}

#endif

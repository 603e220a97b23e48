/* counters.h: running counters, so that usage is known without a walk of the heap.
 *
 *     objects allocated | bytes in used blocks | objects freed | peak of the bytes up to the last free
 *
 * Four words of the control data, present if the recipe enables them. Each call updates them, at a cost of up to six
 * accesses and a load of the block's size. The peak is updated when bytes are about to fall and when it is read: in
 * between they only rise, so malloc need not compare. Words that one call changes are adjacent, for processors that
 * load two words at once. The checker compares the counters with a walk.
 */
#ifndef HW_COUNTERS_H
#define HW_COUNTERS_H

#include "arena.h"

enum { HW_COUNT_MALLOCS = 0, HW_COUNT_USED = 4, HW_COUNT_FREES = 8, HW_COUNT_MOST = 12 };

/* The most bytes that ever were in used blocks. */
static inline uint32_t most_used(const struct hw_policy *p, struct hw_heap *h)
{
    const uint32_t used = load4(h, p->counters_at + HW_COUNT_USED);
    const uint32_t most = load4(h, p->counters_at + HW_COUNT_MOST);
    return used > most ? used : most;
}

/* Counts a change of the bytes in used blocks. */
static inline void count_used(const struct hw_policy *p, struct hw_heap *h, uint32_t more)
{
    store4(h, p->counters_at + HW_COUNT_MOST, most_used(p, h));
    store4(h, p->counters_at + HW_COUNT_USED, load4(h, p->counters_at + HW_COUNT_USED) + more);
}

/* Counts an object that is handed out in a block of `bytes` bytes. */
static inline void count_malloc(const struct hw_policy *p, struct hw_heap *h, uint32_t bytes)
{
    const uint32_t mallocs = load4(h, p->counters_at + HW_COUNT_MALLOCS);
    const uint32_t used = load4(h, p->counters_at + HW_COUNT_USED);
    store4(h, p->counters_at + HW_COUNT_MALLOCS, mallocs + 1u);
    store4(h, p->counters_at + HW_COUNT_USED, used + bytes);
}

/* Few calls come here: a branch that is not taken costs less than a store that is passed over. */
HW_COLD void keep_most(const struct hw_policy *p, struct hw_heap *h, uint32_t used)
{
    store4(h, p->counters_at + HW_COUNT_MOST, used);
}

/* Counts an object that is given back in a block of `bytes` bytes. */
static inline void count_free_call(const struct hw_policy *p, struct hw_heap *h, uint32_t bytes)
{
    const uint32_t used = load4(h, p->counters_at + HW_COUNT_USED);
    const uint32_t frees = load4(h, p->counters_at + HW_COUNT_FREES);
    HW_ASSERT(bytes <= used);
    if (used > load4(h, p->counters_at + HW_COUNT_MOST)) {
        keep_most(p, h, used);
    }
    store4(h, p->counters_at + HW_COUNT_USED, used - bytes);
    store4(h, p->counters_at + HW_COUNT_FREES, frees + 1u);
}

#endif

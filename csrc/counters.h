/* counters.h: what a heap keeps count of, so that nobody has to walk it.
 *
 *     bytes in used blocks | the most there ever were | objects handed out | objects given back
 *
 * Four words of the control data, where the recipe asks for them; each call brings them up to date, which costs up to
 * six accesses and a look at the block's size. The checker compares them with the walk.
 */
#ifndef HW_COUNTERS_H
#define HW_COUNTERS_H

#include "pool.h"

enum { HW_COUNT_USED = 0, HW_COUNT_MOST = 4, HW_COUNT_MALLOCS = 8, HW_COUNT_FREES = 12 };

/* Bytes of the block with the payload at `at`, header included. */

static inline uint32_t general_block_bytes(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    return word_size(g, load_word(g, h, block_of(g, h, at)));
}

static inline uint32_t fixed_block_bytes(const struct hw_fixed *f, struct hw_heap *h, uint32_t at)
{
    return fixed_stride(f, fixed_class_of(f, h, at));
}

static inline uint32_t buddy_block_bytes(const struct hw_buddy *y, struct hw_heap *h, uint32_t at)
{
    return y->header + buddy_capacity(y, h, at) + y->trailer;
}

static inline uint32_t partition_block_bytes(const struct hw_partition *g, struct hw_heap *h, uint32_t at)
{
    return partition_capacity(g, h, at) + g->trailer;
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
    store4(h, p->counters_at + HW_COUNT_USED, load4(h, p->counters_at + HW_COUNT_USED) - bytes);
    store4(h, p->counters_at + HW_COUNT_FREES, load4(h, p->counters_at + HW_COUNT_FREES) + 1u);
}

/* Counts the object that a request got, if any, and returns it. */
static inline void *counted(const struct hw_policy *p, struct hw_heap *h, void *memory)
{
    if (memory) {
        count_malloc(p, h, heap_block_bytes(p, h, (uint32_t)((uintptr_t)memory - (uintptr_t)arena_base(h))));
    }
    return memory;
}

#endif

/* threads/depot.h: blocks between the lists of threads and the heap, by class; under the lock, see threads.h. */
#ifndef HW_THREADS_DEPOT_H
#define HW_THREADS_DEPOT_H

#include "threads/lists.h"

/* Where the depot has how far the heap may grow until it is emptied; its first word is how many bytes it holds. */
enum { HW_DEPOT_UNTIL = 4 };

/* Where the first block of a batch has the next batch of its class, and how many blocks its own has; its first word
 * leads to the next block of its own. */
enum { HW_BATCH_NEXT = 4, HW_BATCH_BLOCKS = 8, HW_BATCH_BYTES = 12 };

/* Blocks on their way out of the depot or the heap: one for a request, whose payload lies at `at`, and others for a
 * list, each of which leads on to the next. */
struct hw_batch {
    uint32_t at; /* 0: there is none, and no others */
    uint32_t first;
    uint32_t blocks; /* how many from `first` on */
};

HW_HOT uint32_t depot_head(const struct hw_policy *p, uint32_t list)
{
    return p->depot_at + 8u + 4u * list;
}

/* Whether blocks have room for the numbers of a batch; else a class is one list. With them a batch comes and goes
 * without a walk over blocks that no cache of the processor holds any more. */
static inline int keeps_batches(const struct hw_policy *p)
{
    return p->cache.block_least - p->cache.block_header >= HW_BATCH_BYTES;
}

/* Adds to what the depot holds, which 2^32 less `bytes` takes off. */
static inline void depot_account(const struct hw_policy *p, struct hw_heap *h, uint32_t bytes)
{
    HW_ASSERT(load4(h, p->depot_at) + bytes <= HW_MAX_REQUEST);
    store4(h, p->depot_at, load4(h, p->depot_at) + bytes);
}

/* Whether the heap has grown enough for the depot to be emptied before it takes more. */
static inline int has_outgrown(const struct hw_policy *p, struct hw_heap *h)
{
    return heap_covered(p, h) > load4(h, p->depot_at + HW_DEPOT_UNTIL);
}

/* Puts a batch ahead of another, `next`, and the others of its class. */
static inline void depot_put(const struct hw_policy *p, struct hw_heap *h, uint32_t list, uint32_t at, uint32_t next,
                             uint32_t blocks)
{
    store4(h, at + HW_BATCH_NEXT, next);
    store4(h, at + HW_BATCH_BLOCKS, blocks);
    store4(h, depot_head(p, list), at);
}

/* Gives the first `blocks` blocks of the list at `head` to the depot; to the heap while the depot is being emptied. */
static inline void depot_give(const struct hw_policy *p, struct hw_heap *h, uint32_t list, uint32_t head,
                              uint32_t blocks)
{
    const uint32_t bytes = blocks * cache_capacity(&p->cache, list);
    uint32_t at = load4(h, head);
    if (!has_outgrown(p, h)) {
        uint32_t last = at;
        for (uint32_t passed = 1; passed < blocks; passed++) {
            last = load4(h, last);
        }
        store4(h, head, load4(h, last));
        if (keeps_batches(p)) {
            store4(h, last, 0);
            depot_put(p, h, list, at, load4(h, depot_head(p, list)), blocks);
        } else {
            store4(h, last, load4(h, depot_head(p, list)));
            store4(h, depot_head(p, list), at);
        }
        depot_account(p, h, bytes);
        return;
    }
    for (; blocks; blocks--) {
        const uint32_t next = load4(h, at);
        sealed_free(p, h, at);
        at = next;
    }
    store4(h, head, at);
}

/* Takes a block out of the depot, and up to `most` with it. */
static inline struct hw_batch depot_take(const struct hw_policy *p, struct hw_heap *h, uint32_t list, uint32_t most)
{
    struct hw_batch got = {0, 0, 0};
    got.at = load4(h, depot_head(p, list));
    if (got.at == 0) {
        return got;
    }
    const uint32_t others = keeps_batches(p) ? load4(h, got.at + HW_BATCH_BLOCKS) - 1u : UINT32_MAX;
    const uint32_t behind = keeps_batches(p) ? load4(h, got.at + HW_BATCH_NEXT) : 0;
    got.first = most ? load4(h, got.at) : 0;
    if (others <= most) {
        got.blocks = others;
        store4(h, depot_head(p, list), behind);
    } else {
        uint32_t last = got.at;
        uint32_t next = load4(h, last);
        while (got.blocks < most && next) {
            last = next;
            next = load4(h, last);
            got.blocks++;
        }
        store4(h, last, 0);
        if (keeps_batches(p)) {
            depot_put(p, h, list, next, behind, others - got.blocks);
        } else {
            store4(h, depot_head(p, list), next);
        }
    }
    depot_account(p, h, ~got.blocks * cache_capacity(&p->cache, list));
    return got;
}

/* Gives blocks of the depot back to the heap, at most a batch; 0 where it has none. */
HW_COLD int depot_yield(const struct hw_policy *p, struct hw_heap *h)
{
    uint32_t list = 0;
    if (load4(h, p->depot_at) == 0) {
        return 0;
    }
    while (load4(h, depot_head(p, list)) == 0) {
        list++;
    }
    struct hw_batch got = depot_take(p, h, list, HW_CACHE_BATCH - 1u);
    sealed_free(p, h, got.at);
    while (got.first) {
        const uint32_t next = load4(h, got.first);
        sealed_free(p, h, got.first);
        got.first = next;
    }
    return 1;
}

/* Ends a call that may have made the heap grow: once it has grown by a share since the depot was empty, what waits
 * there may be why. A batch goes back with each call then, until there is nothing left. */
static inline void depot_shrink(const struct hw_policy *p, struct hw_heap *h)
{
    if (has_outgrown(p, h) && !depot_yield(p, h)) {
        const uint32_t covered = heap_covered(p, h);
        store4(h, p->depot_at + HW_DEPOT_UNTIL, covered + covered / HW_DEPOT_GROWTH);
    }
}

#endif

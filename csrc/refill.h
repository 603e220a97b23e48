/* refill.h: several blocks cut at once for a quick list that misses repeatedly.
 *
 *     | free                              |
 *     | listed | listed | listed | served |
 *
 * A miss searches once for as many blocks as it cuts, so that small objects lie together and large holes stay whole.
 * What no request takes idles, and goes back as other blocks do.
 *
 * Sources: tcmalloc and jemalloc, which fill the caches of threads in batches; TCP's slow start.
 */
#ifndef HW_REFILL_H
#define HW_REFILL_H

#include "quick_lists.h"

/* How many more blocks than one this miss of a list cuts: none, then 1, 3, 7 ..., a slow start, which each turn halves.
 * They have at most a part of the bytes between two turns. */
static inline uint32_t next_refill(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h,
                                   uint32_t list, uint32_t block)
{
    uint32_t blocks = load1(h, q->refills_at + list);
    if (2u * blocks + 1u < q->refill) {
        store1(h, q->refills_at + list, 2u * blocks + 1u);
    }
    const uint32_t most = heap_covered(p, h) / 1024u * q->idle_share / HW_REFILL_PART;
    while (blocks * block > most) {
        blocks /= 2u;
    }
    return blocks;
}

/* Cuts a used block into `blocks` of `size` bytes for a list, in order of address, and one more, which also has what
 * the block was too large; returns its payload. */
static inline uint32_t cut_for_list(const struct hw_quick *q, const struct hw_general *g, struct hw_heap *h,
                                    uint32_t list, uint32_t b, uint32_t size, uint32_t blocks)
{
    const uint32_t word = load_word(g, h, b);
    const uint32_t head = quick_head(q, list);
    const uint32_t behind = raw_link(&q->links, h, head);
    uint32_t left = word_size(g, word);
    HW_ASSERT(left >= (blocks + 1u) * size);
    store_word(g, h, b, size_word(g, size, word_flags(g, word)));
    store_link(&q->links, h, head, payload_of(g, b));
    while (blocks) {
        blocks--;
        left -= size;
        quick_link(q, h, payload_of(g, b), blocks ? payload_of(g, b + size) : behind);
        b += size;
        write_used(g, h, b, blocks ? size : left, HW_PREV_USED);
        clear_tag(g, h, b);
        note_block_made(h, g->overhead);
    }
    return payload_of(g, b);
}

/* Serves a request that a list had no block for, and cuts several side by side if it missed before: the payload's
 * address; 0 where it has not, or no memory is left. */
static inline uint32_t refill_list(const struct hw_policy *p, const struct hw_quick *q, const struct hw_general *g,
                                   struct hw_heap *h, size_t size)
{
    if (exceeds(size, q->largest)) {
        return 0;
    }
    const uint32_t block = block_size_for(g, (uint32_t)size);
    const uint32_t list = q->by_size ? quick_index(q, block) : quick_list(q, block);
    const uint32_t blocks = list < q->count ? next_refill(p, q, h, list, block) : 0;
    if (blocks == 0) {
        return 0;
    }
    uint32_t b = find_again(g, h, (blocks + 1u) * block);
    if (b == 0) {
        b = find_again(g, h, block);
        if (b) { /* holes are scattered */
            store1(h, q->refills_at + list, 0);
            return hand_out(g, h, b);
        }
        b = grow_block(g, h, (blocks + 1u) * block);
    }
    return b ? cut_for_list(q, g, h, list, b, block, blocks) : 0;
}

/* Serves a request that no list above pool `from` had a block for from several that are cut: the payload's address, or
 * 0. They come from the last pool. */
static inline uint32_t heap_refill(const struct hw_policy *p, const uint32_t from, struct hw_heap *h, size_t size)
{
    for (uint32_t i = 0; i < from; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK && pool->quick.refill && pool_admits(pool, pool->max_size, size)) {
            const uint32_t at = refill_list(p, &pool->quick, &p->pools[p->pool_count - 1u].general, h, size);
            if (at) {
                return at;
            }
        }
    }
    return 0;
}

/* Serves a request from the lists of a quick pool behind another pool: a cached block, an idle one, or one of several
 * that are cut. The address of the payload, or 0. */
static inline uint32_t pool_find_waiting(const struct hw_policy *p, const struct hw_pool *pool, struct hw_heap *h,
                                         size_t size)
{
    const uint32_t at = pool_find_cached(pool, h, size); /* it bounds what is more than 32 bits by itself */
    if (at) {
        return at;
    }
    const uint32_t idle =
        pool->kind == HW_QUICK && pool->quick.flush == HW_FLUSH_IDLE ? find_idle(p, &pool->quick, h, size) : 0;
    if (idle == 0 && pool->kind == HW_QUICK && pool->quick.refill) {
        return refill_list(p, &pool->quick, &p->pools[p->pool_count - 1u].general, h, rounded_to_list(pool, size));
    }
    return idle;
}

#endif

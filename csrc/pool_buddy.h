/* pool_buddy.h: the binary buddy system.
 *
 *   start                                                  top       high-water mark    limit
 *   |                                                      |         |                  |
 *   +------+------+-------------+---------------------------+---------+------------------+
 *   | used | free | used        | free        | used        | was used| never used       |
 *   +------+------+-------------+---------------------------+---------+------------------+
 *     16     16     32            32            32
 *
 *     block:  | order, used | rest of the header | payload, or next and previous free block of the order |
 *
 * Block sizes are powers of two, headers included, and a block's distance from the start is a multiple of its size. The
 * buddy of a block is its neighbour at distance XOR size: the other half of the block it was split from, with which it
 * merges when both are free. There is one free list per order, LIFO.
 *
 * A textbook heap has 2^m bytes, which are one free block at first. Here the part that no block has reached yet belongs
 * to no list, and is taken last: where no listed block will do, the next multiple of the block's size above the top
 * becomes the block, and the gap up to there becomes smaller free blocks. The last block is always in use: a block that
 * is freed at the top goes back to it, with all free blocks ahead of it. So the top is as low as the blocks in use let
 * it be, the highest top ever is the smallest arena that serves the same requests, and the arena needs no particular
 * size.
 *
 * Sources: Knowlton 1965; Knuth, TAOCP 1, 2.5, algorithms R and S.
 */
#ifndef HW_POOL_BUDDY_H
#define HW_POOL_BUDDY_H

#include "arena.h"
#include "arithmetic.h"
#include "statistics.h"

enum { HW_BUDDY_USED = 1 /* in a header, together with twice the order */ };

static inline uint32_t order_size(const struct hw_buddy *y, uint32_t order)
{
    return (uint32_t)1 << (y->min_block_log2 + order);
}

/* The order of the blocks that serve n bytes, n <= HW_MAX_REQUEST; it may be beyond the largest. */
static inline uint32_t order_for(const struct hw_buddy *y, uint32_t n)
{
    const uint32_t size = n + y->header + y->trailer;
    if (size <= (uint32_t)1 << y->min_block_log2) {
        return 0;
    }
    return highest_bit(size - 1u) + 1u - y->min_block_log2;
}

static inline uint32_t load_order(const struct hw_buddy *y, struct hw_heap *h, uint32_t b)
{
    return load_masked(&y->links, &y->word, h, b);
}

static inline void store_order(const struct hw_buddy *y, struct hw_heap *h, uint32_t b, uint32_t order, uint32_t used)
{
    store_masked(&y->links, &y->word, h, b, order << 1 | used);
}

/* ---- the lists --------------------------------------------------------------------------------------------------- */

/* Head of the list of an order. A node is the address of a payload; its second link is the address of the word that
 * points to it, so that it can be unlinked without a case for the head. */
static inline uint32_t order_head(const struct hw_buddy *y, uint32_t order)
{
    return y->lists_at + order * y->list_stride;
}

static inline void buddy_list(const struct hw_buddy *y, struct hw_heap *h, uint32_t b, uint32_t order)
{
    const uint32_t head = order_head(y, order);
    const uint32_t node = b + y->header;
    const uint32_t next = load_link(&y->links, h, head);
    HW_ASSERT(order < y->orders);
    HW_ASSERT(((b - y->start) & (order_size(y, order) - 1u)) == 0);
    store_order(y, h, b, order, 0);
    store_link(&y->links, h, head, node);
    store_link(&y->links, h, node, next);
    store_link(&y->links, h, node + y->links.field.bytes, head);
    store_link(&y->links, h, next + y->links.field.bytes, node); /* behind the last node: to HW_SCRATCH_AT */
}

static inline void buddy_unlist(const struct hw_buddy *y, struct hw_heap *h, uint32_t b)
{
    const uint32_t node = b + y->header;
    const uint32_t next = load_link(&y->links, h, node);
    const uint32_t before = load_link(&y->links, h, node + y->links.field.bytes);
    HW_ASSERT(raw_link(&y->links, h, before) == node);
    HW_ASSERT(next == 0 || raw_link(&y->links, h, next + y->links.field.bytes) == node);
    store_link(&y->links, h, before, next);
    store_link(&y->links, h, next + y->links.field.bytes, before); /* behind the last node: to HW_SCRATCH_AT */
}

/* Whether the free block b of this order may be taken out of its list: its links lead back to it, its header says so,
 * and it lies where such blocks do. What cannot be is counted. */
HW_COLD int buddy_may_unlist(const struct hw_buddy *y, struct hw_heap *h, uint32_t b, uint32_t order)
{
    const uint32_t node = b + y->header;
    const uint32_t top = load4(h, y->top_at);
    if (b >= y->start && b < top && ((b - y->start) & (order_size(y, order) - 1u)) == 0 &&
        order_size(y, order) <= top - b && load_order(y, h, b) == order << 1) {
        if (is_listed(&y->links, h, node)) {
            return 1;
        }
    }
    count_misuse(y->links.misused_at, h);
    return 0;
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* Cuts the block b down to `order`: the low half stays, the high half becomes free, again and again.
 *     | b: order + 2                |
 *     | b    | free | free          |   */
static inline void buddy_split(const struct hw_buddy *y, struct hw_heap *h, uint32_t b, uint32_t from, uint32_t order)
{
    while (from > order) {
        from--;
        buddy_list(y, h, b + order_size(y, from), from);
        note_block_made(h, y->header + y->trailer);
    }
}

/* A used block from the lists, the smallest order first (algorithm R); 0 where there is none. O(orders). */
static inline uint32_t buddy_search(const struct hw_buddy *y, struct hw_heap *h, uint32_t order)
{
    const uint32_t blocks = load4(h, y->top_at) - y->start;
    uint32_t from = order;
    while (from < y->orders && order_size(y, from) < blocks) {
        const uint32_t node = load_link(&y->links, h, order_head(y, from));
        if (node) {
            const uint32_t b = node - y->header;
            if (y->links.hardened && !buddy_may_unlist(y, h, b, from)) {
                return 0;
            }
            buddy_unlist(y, h, b);
            buddy_split(y, h, b, from, order);
            store_order(y, h, b, order, HW_BUDDY_USED);
            return b;
        }
        from++;
    }
    return 0;
}

/* Where a block of this order goes above the top: the next multiple of its size. */
static inline uint32_t buddy_place(const struct hw_buddy *y, uint32_t top, uint32_t order)
{
    const uint32_t mask = order_size(y, order) - 1u;
    return y->start + ((top - y->start + mask) & ~mask);
}

/* Takes a used block at `b` above the top. The gap in front becomes free blocks, each as large as its distance from the
 * start allows; none has a free buddy, because the last block below the top is in use. */
static inline void buddy_cut_top(const struct hw_buddy *y, struct hw_heap *h, uint32_t top, uint32_t b, uint32_t order)
{
    while (top < b) {
        const uint32_t gap = lowest_bit(top - y->start) - y->min_block_log2;
        buddy_list(y, h, top, gap);
        note_block_made(h, y->header + y->trailer);
        top += order_size(y, gap);
    }
    store_order(y, h, b, order, HW_BUDDY_USED);
    store4(h, y->top_at, b + order_size(y, order));
    note_block_made(h, y->header + y->trailer);
}

/* Makes sure of memory up to `end`, raising the high-water mark if need be; 0 where the arena ends before. */
static inline int buddy_raise(const struct hw_buddy *y, struct hw_heap *h, uint32_t end)
{
    if (end > load4(h, y->limit_at)) {
        return 0;
    }
    const uint32_t high = load4(h, y->high_at);
    if (end > high) {
        store4(h, y->high_at, end);
        y->region ? note_covered(h, end - high) : note_shared_covered(h, end - high);
    }
    return 1;
}

/* A used block for n bytes, without raising the high-water mark: the address of the payload, or 0. */
static inline uint32_t buddy_find(const struct hw_buddy *y, struct hw_heap *h, uint32_t n)
{
    const uint32_t order = order_for(y, n);
    if (order >= y->orders) {
        return 0;
    }
    uint32_t b = buddy_search(y, h, order);
    if (b == 0) {
        const uint32_t top = load4(h, y->top_at);
        b = buddy_place(y, top, order);
        if (b + order_size(y, order) > load4(h, y->high_at)) {
            return 0;
        }
        buddy_cut_top(y, h, top, b, order);
    }
    return b + y->header;
}

/* A used block for n bytes from memory that was never used: the address of the payload, or 0. */
static inline uint32_t buddy_grow(const struct hw_buddy *y, struct hw_heap *h, uint32_t n)
{
    const uint32_t order = order_for(y, n);
    if (order >= y->orders) {
        return 0;
    }
    const uint32_t top = load4(h, y->top_at);
    const uint32_t b = buddy_place(y, top, order);
    if (!buddy_raise(y, h, b + order_size(y, order))) {
        return 0;
    }
    buddy_cut_top(y, h, top, b, order);
    return b + y->header;
}

static inline uint32_t buddy_capacity(const struct hw_buddy *y, struct hw_heap *h, uint32_t at)
{
    return order_size(y, load_order(y, h, at - y->header) >> 1) - y->header - y->trailer;
}

/* ---- freeing -------------------------------------------------------------------------------------------------------
 */

/* The last block before the top, which is not the start. The largest place that ends there begins with a block: that is
 * the last one, or is smaller; then so does the place's upper half. O(orders). */
static inline uint32_t last_block(const struct hw_buddy *y, struct hw_heap *h, uint32_t top)
{
    uint32_t order = lowest_bit(top - y->start) - y->min_block_log2;
    while (load_order(y, h, top - order_size(y, order)) >> 1 != order) {
        if (y->links.hardened && order == 0) {
            break; /* no header here says so: that of a free block to come is looked at before it is taken */
        }
        order--;
    }
    return top - order_size(y, order);
}

/* Gives the end of the blocks, from b on, back to the top, and the free blocks ahead of it. O(orders^2). */
static inline void buddy_lower_top(const struct hw_buddy *y, struct hw_heap *h, uint32_t b)
{
    uint32_t top = b;
    while (top != y->start) {
        const uint32_t last = last_block(y, h, top);
        if (load_order(y, h, last) & HW_BUDDY_USED) {
            break;
        }
        if (y->links.hardened && !buddy_may_unlist(y, h, last, load_order(y, h, last) >> 1)) {
            break;
        }
        buddy_unlist(y, h, last);
        note_block_gone(h, y->header + y->trailer);
        top = last;
    }
    store4(h, y->top_at, top);
}

/* Frees the block b of this order and merges it with its buddy, and both with theirs (algorithm S). O(orders). */
static inline void buddy_release_order(const struct hw_buddy *y, struct hw_heap *h, uint32_t b, uint32_t order)
{
    const uint32_t top = load4(h, y->top_at);
    while (order + 1u < y->orders) {
        const uint32_t buddy = y->start + ((b - y->start) ^ order_size(y, order));
        if (buddy >= top || load_order(y, h, buddy) != order << 1) {
            break;
        }
        if (y->links.hardened && !buddy_may_unlist(y, h, buddy, order)) {
            break;
        }
        buddy_unlist(y, h, buddy);
        note_block_gone(h, y->header + y->trailer);
        b = buddy < b ? buddy : b;
        order++;
    }
    if (b + order_size(y, order) == top) {
        note_block_gone(h, y->header + y->trailer);
        buddy_lower_top(y, h, b);
        return;
    }
    buddy_list(y, h, b, order);
}

/* Frees the block with this payload. */
static inline void buddy_release(const struct hw_buddy *y, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = at - y->header;
    const uint32_t order = load_order(y, h, b) >> 1;
    if (y->checks) {
        store_order(y, h, b, order, 0);
    }
    buddy_release_order(y, h, b, order);
}

/* ---- resizing ------------------------------------------------------------------------------------------------------
 */

/* Whether b, of order `from`, can grow to `order` by its upper buddies alone: all of them free and whole. */
static inline int upper_buddies_are_free(const struct hw_buddy *y, struct hw_heap *h, uint32_t b, uint32_t from,
                                         uint32_t order)
{
    const uint32_t top = load4(h, y->top_at);
    while (from < order) {
        const uint32_t buddy = b + order_size(y, from);
        if (buddy >= top || load_order(y, h, buddy) != from << 1) {
            return 0;
        }
        from++;
    }
    return 1;
}

/* Grows the block b where it lies, into its upper buddies or over the top; 0 where it cannot. */
static inline int buddy_extend(const struct hw_buddy *y, struct hw_heap *h, uint32_t b, uint32_t from, uint32_t order)
{
    if (order >= y->orders || ((b - y->start) & (order_size(y, order) - 1u)) != 0) {
        return 0;
    }
    if (b + order_size(y, from) == load4(h, y->top_at)) {
        const uint32_t end = b + order_size(y, order);
        if (!buddy_raise(y, h, end)) {
            return 0;
        }
        store4(h, y->top_at, end);
        store_order(y, h, b, order, HW_BUDDY_USED);
        return 1;
    }
    if (!upper_buddies_are_free(y, h, b, from, order)) {
        return 0;
    }
    while (from < order) {
        buddy_unlist(y, h, b + order_size(y, from));
        note_block_gone(h, y->header + y->trailer);
        from++;
    }
    store_order(y, h, b, order, HW_BUDDY_USED);
    return 1;
}

/* Resizes the block with this payload to n bytes in place: returns `at`, or 0, with nothing changed, if that is
 * impossible. The rest is split into free blocks, the adjacent one first: at the top each must find the blocks before
 * it in place.
 *
 *     | b                                    |
 *     | b    | order | order + 1 | order + 2 |
 */
static inline uint32_t buddy_resize(const struct hw_buddy *y, struct hw_heap *h, uint32_t at, uint32_t n)
{
    const uint32_t b = at - y->header;
    const uint32_t order = order_for(y, n);
    const uint32_t had = load_order(y, h, b) >> 1;
    if (order > had) {
        return buddy_extend(y, h, b, had, order) ? at : 0;
    }
    if (order == had) {
        return at;
    }
    store_order(y, h, b, order, HW_BUDDY_USED);
    for (uint32_t freed = order; freed < had; freed++) {
        note_block_made(h, y->header + y->trailer);
        buddy_release_order(y, h, b + order_size(y, freed), freed);
    }
    return at;
}

/* Whether the payload lies in the pool's region. */
static inline int buddy_owns(const struct hw_buddy *y, struct hw_heap *h, uint32_t at)
{
    (void)h;
    return at >= y->start && at < y->start + y->region;
}

/* Whether `at` is the payload of a used block, by its header. */
static inline int buddy_is_used(const struct hw_buddy *y, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = at - y->header;
    if (b < y->start || b >= load4(h, y->top_at) || ((b - y->start) & (((uint32_t)1 << y->min_block_log2) - 1u)) != 0) {
        return 0;
    }
    const uint32_t word = load_order(y, h, b);
    return (word & HW_BUDDY_USED) != 0 && word >> 1 < y->orders;
}

static inline void buddy_init(const struct hw_buddy *y, struct hw_heap *h)
{
    store4(h, y->top_at, y->start);
    store4(h, y->high_at, y->start);
    if (y->region) {
        store4(h, y->limit_at, y->start + y->region);
    }
    for (uint32_t order = 0; order < y->orders; order++) {
        store_link(&y->links, h, order_head(y, order), 0);
    }
}

/* ---- looking at it from outside ---------------------------------------------------------------------------------- */

static inline uint32_t buddy_block_bytes(const struct hw_buddy *y, struct hw_heap *h, uint32_t at)
{
    return y->header + buddy_capacity(y, h, at) + y->trailer;
}

static inline int buddy_is_sound(const struct hw_buddy *y, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = at - y->header;
    const uint32_t top = load4(h, y->top_at);
    const uint32_t size = order_size(y, load_order(y, h, b) >> 1);
    if (((b - y->start) & (size - 1u)) != 0 || size > top - b) {
        return 0;
    }
    return b + size == top || load_order(y, h, b + size) >> 1 < y->orders;
}

/* Adds the pool's boundaries to a seal that has the heap's. */
static inline uint32_t buddy_sum_of_bounds(const struct hw_buddy *y, struct hw_heap *h, uint32_t sum)
{
    sum = with_bound(sum, load4(h, y->top_at));
    return y->region ? with_bound(with_bound(sum, load4(h, y->high_at)), load4(h, y->limit_at)) : sum;
}

static inline int buddy_is_bounded(const struct hw_buddy *y, struct hw_heap *h, uint32_t end)
{
    const uint32_t top = load4(h, y->top_at);
    const uint32_t high = load4(h, y->high_at);
    const uint32_t limit = load4(h, y->limit_at);
    return limit <= (y->region ? y->start + y->region : end) && high <= limit && top >= y->start && top <= high &&
           ((top - y->start) & (order_size(y, 0) - 1u)) == 0;
}

/* Describes the block that begins at `at` in a buddy pool; 0 behind the last one, or where none can be. */
static inline int buddy_describe(const struct hw_buddy *y, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    const uint32_t top = load4(h, y->top_at);
    if (at >= top) {
        return 0;
    }
    const uint32_t word = load_order(y, h, at);
    if (word >> 1 >= y->orders || order_size(y, word >> 1) > top - at) {
        return 0;
    }
    block->offset = at;
    block->size = order_size(y, word >> 1);
    block->header = y->header;
    block->state = word & HW_BUDDY_USED ? HW_BLOCK_USED : HW_BLOCK_FREE;
    return 1;
}

static inline int buddy_block_at(const struct hw_buddy *y, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    return buddy_describe(y, h, at ? at : y->start, block);
}

/* Payload of the largest block that a buddy pool can place above its top. O(orders). */
static inline uint32_t buddy_above(const struct hw_buddy *y, struct hw_heap *h)
{
    const uint32_t top = load4(h, y->top_at);
    const uint32_t limit = load4(h, y->limit_at);
    for (uint32_t order = y->orders; order-- > 0;) {
        if (buddy_place(y, top, order) + order_size(y, order) <= limit) {
            return order_size(y, order) - y->header - y->trailer;
        }
    }
    return 0;
}

static inline void buddy_statistics(const struct hw_buddy *y, struct hw_heap *h, struct hw_statistics *stats)
{
    if (y->region) {
        stats->peak -= y->start + y->region - load4(h, y->high_at);
    }
}

static inline uint32_t buddy_largest(const struct hw_buddy *y, struct hw_heap *h, uint32_t looks)
{
    (void)looks;
    for (uint32_t order = y->orders; order-- > 0;) {
        if (load_link(&y->links, h, order_head(y, order))) {
            return larger(order_size(y, order) - y->header - y->trailer, buddy_above(y, h));
        }
    }
    return buddy_above(y, h);
}

/* ---- invariants -------------------------------------------------------------------------------------------------- */

/* Checks the lists of a buddy pool: blocks of their order, free, linked both ways. Adds their number to *listed. */
static inline int check_orders(const struct hw_buddy *y, struct hw_heap *h, uint32_t most, uint32_t *listed)
{
    for (uint32_t order = 0; order < y->orders; order++) {
        uint32_t before = order_head(y, order);
        uint32_t node = load_link(&y->links, h, before);
        while (node) {
            const uint32_t at = node - y->header - y->start;
            if (node < y->start + y->header || node >= load4(h, y->top_at) || (at & (order_size(y, 0) - 1u)) != 0) {
                return HW_BROKEN_BOUNDS;
            }
            if (load_order(y, h, node - y->header) != order << 1 || *listed >= most) {
                return HW_BROKEN_LIST;
            }
            if (load_link(&y->links, h, node + y->links.field.bytes) != before) {
                return HW_BROKEN_LINK;
            }
            *listed += 1u;
            before = node;
            node = load_link(&y->links, h, node);
        }
    }
    return 0;
}

static inline int buddy_check(const struct hw_buddy *y, struct hw_heap *h)
{
    const uint32_t top = load4(h, y->top_at);
    uint32_t free_blocks = 0;
    uint32_t listed = 0;
    uint32_t word = HW_BUDDY_USED;
    uint32_t b = y->start;
    while (b < top) {
        word = load_order(y, h, b);
        const uint32_t order = word >> 1;
        if (order >= y->orders || ((b - y->start) & (order_size(y, order) - 1u)) != 0) {
            return HW_BROKEN_SIZE;
        }
        if ((word & HW_BUDDY_USED) == 0) {
            const uint32_t buddy = y->start + ((b - y->start) ^ order_size(y, order));
            free_blocks++;
            if (order + 1u < y->orders && buddy < top && load_order(y, h, buddy) == word) {
                return HW_BROKEN_MERGE;
            }
        }
        b += order_size(y, order);
    }
    if (b != top) {
        return HW_BROKEN_BOUNDS;
    }
    if ((word & HW_BUDDY_USED) == 0) {
        return HW_BROKEN_MERGE;
    }
    const int broken = check_orders(y, h, free_blocks, &listed);
    if (broken) {
        return broken;
    }
    return listed == free_blocks ? 0 : HW_BROKEN_COUNT;
}

#endif

/* pool_quick.h: exact-size caches in front of the pools below.
 *
 * A freed block whose capacity is one of the listed sizes goes on that size's LIFO list, where the next request that
 * would be given such a block finds it: one load and one store each way, and no address is looked at. To the pool it
 * came from the block stays in use, so it is not merged. Its link lies in its payload.
 *
 * Sources: Weinstock and Wulf 1988 (quick fit); Wilson et al. 1995, 3.5 (deferred coalescing); Mamagkakis et al. 2006,
 * sections 5 and 6 (freelists for the two or three dominant sizes of network traffic).
 */
#ifndef HW_POOL_QUICK_H
#define HW_POOL_QUICK_H

#include "arena.h"
#include "arithmetic.h"

/* Blocks up to this size have a list for every size; above, each power of two has a fixed number of lists. */
HW_HOT uint32_t quick_linear(const struct hw_quick *q)
{
    return (uint32_t)2 << (q->octave_log2 + q->block_unit_shift);
}

/* Log2 of the step between lists around a block size, above the sizes that have a list each. */
HW_HOT uint32_t quick_step(const struct hw_quick *q, uint32_t block)
{
    return highest_bit(block - 1u) - q->octave_log2;
}

/* The list of a block size, above the sizes that have a list each: rounded up to the next list. */
HW_HOT uint32_t quick_class(const struct hw_quick *q, uint32_t block)
{
    const uint32_t step = quick_step(q, block);
    return ((block - 1u) >> step) + ((step - q->block_unit_shift) << q->octave_log2) - q->first;
}

/* Size of the block that the pool below gives for a request of n bytes. */
HW_HOT uint32_t quick_block(const struct hw_quick *q, uint32_t n)
{
    const uint32_t unit = (uint32_t)1 << q->block_unit_shift;
    const uint32_t served = n < q->block_least - q->block_header ? q->block_least - q->block_header : n;
    const uint32_t block = (served + q->block_header + unit - 1u) & ~(unit - 1u);
    return q->block_doubles ? power_of_two_above(block) : block;
}

/* Whether the lists are few enough to be unrolled: each size is compared and each list addressed as a constant, without
 * an index. */
static inline int quick_is_direct(const struct hw_quick *q)
{
    return !q->by_size && q->count <= HW_DIRECT_LISTS;
}

/* Whether the list holds blocks of this size. */
static inline int quick_caches(const struct hw_quick *q, const uint32_t list, uint32_t block)
{
    return q->sizes[list] + q->block_header == block;
}

/* Whether a request of `size` bytes is served from this list. */
static inline int quick_serves(const struct hw_quick *q, const uint32_t list, size_t size)
{
    return size - q->least[list] <= q->sizes[list] - q->least[list];
}

/* Whether blocks of this size have a list, where lists go by size. */
HW_HOT int quick_holds(const struct hw_quick *q, uint32_t block)
{
    if (q->mixed && block < q->block_least) {
        return 0;
    }
    if (q->mixed && q->block_doubles && (block & (block - 1u)) != 0) {
        return 0;
    }
    if (q->mixed && !q->block_doubles && (block & (((uint32_t)1 << q->block_unit_shift) - 1u)) != 0) {
        return 0;
    }
    if (q->tabled) {
        const uint32_t units = block >> q->block_unit_shift;
        return block <= q->up_to && q->ranks[units] != q->ranks[units - 1u]; /* what lies between two lists has none */
    }
    if (q->octave_log2 && block > quick_linear(q)) {
        /* what lies between two lists has none */
        return block <= q->up_to && (block & (((uint32_t)1 << quick_step(q, block)) - 1u)) == 0;
    }
    return block <= q->up_to;
}

/* The list of blocks of this size, where lists go by size and there is one. */
HW_HOT uint32_t quick_index(const struct hw_quick *q, uint32_t block)
{
    if (q->block_doubles) {
        return highest_bit(block) - highest_bit(q->block_least);
    }
    if (q->tabled) {
        return q->ranks[(block - 1u) >> q->block_unit_shift]; /* or of the next larger ones */
    }
    if (q->octave_log2 && block > quick_linear(q)) {
        return quick_class(q, block);
    }
    return (block >> q->block_unit_shift) - (q->block_least >> q->block_unit_shift);
}

/* The list of blocks of this size; the number of lists where such blocks are not cached. */
HW_HOT uint32_t quick_list(const struct hw_quick *q, uint32_t block)
{
    if (q->by_size) {
        return quick_holds(q, block) ? quick_index(q, block) : q->count;
    }
    uint32_t list = 0;
    while (list < q->count && q->sizes[list] + q->block_header != block) {
        list++;
    }
    return list;
}

HW_HOT uint32_t quick_head(const struct hw_quick *q, uint32_t list)
{
    return q->heads_at + list * q->links.field.bytes;
}

/* Keeps account of the blocks of a list, where it has a limit. */
HW_HOT void quick_account(const struct hw_quick *q, struct hw_heap *h, uint32_t list, uint32_t blocks)
{
    if (q->limit_blocks) {
        const uint32_t at = q->counts_at + 4u * list;
        HW_ASSERT(load4(h, at) + blocks != UINT32_MAX);
        store4(h, at, load4(h, at) + blocks);
    }
}

/* What a cached block holds behind its link: a number that its user cannot have left there where there are keys, and is
 * unlikely to have where there are none. */
HW_HOT uint32_t quick_mark(const struct hw_quick *q, struct hw_heap *h, uint32_t at)
{
    const uint32_t all = UINT32_MAX >> (32u - 8u * q->links.field.bytes);
    if (q->links.keyed) {
        return ~mask_at(&q->links, &q->links.field, h, at) & all;
    }
    return ~at >> q->links.shift & all;
}

/* Whether what a list leads to can wait in it; what cannot is counted. */
HW_HOT int quick_may_pop(const struct hw_quick *q, struct hw_heap *h, uint32_t at)
{
    if ((at & (q->align - 1u)) == 0 &&
        (!q->marks || load_field(&q->links.field, h, at + q->links.field.bytes) == quick_mark(q, h, at))) {
        return 1;
    }
    count_misuse(q->links.misused_at, h);
    return 0;
}

/* Takes the first block off a list: the address of its payload; 0 where the list is empty. */
HW_HOT uint32_t quick_pop(const struct hw_quick *q, struct hw_heap *h, uint32_t list)
{
    const uint32_t head = quick_head(q, list);
    const uint32_t at = load_link(&q->links, h, head);
    if (q->links.hardened && at && !quick_may_pop(q, h, at)) {
        return 0;
    }
    if (at) {
        HW_ASSERT((at & (q->align - 1u)) == 0);
        store_link(&q->links, h, head, raw_link(&q->links, h, at)); /* looked at when its turn comes */
        if (q->marks) {
            store_field(&q->links.field, h, at + q->links.field.bytes, 0);
        }
        quick_account(q, h, list, UINT32_MAX);
    }
    return at;
}

/* The number of the list of what has waited in a list since the last turn: their heads lie behind those of all lists.
 * No account is kept of them. */
static inline uint32_t quick_older(const struct hw_quick *q, uint32_t list)
{
    return q->count + list;
}

/* Writes into a cached block which one follows it in its list. */
HW_HOT void quick_link(const struct hw_quick *q, struct hw_heap *h, uint32_t at, uint32_t next)
{
    store_link(&q->links, h, at, next);
    if (q->marks) {
        store_field(&q->links.field, h, at + q->links.field.bytes, quick_mark(q, h, at));
    }
}

HW_HOT void quick_push(const struct hw_quick *q, struct hw_heap *h, uint32_t list, uint32_t at)
{
    const uint32_t head = quick_head(q, list);
    HW_ASSERT(at != raw_link(&q->links, h, head)); /* else it is freed twice */
    quick_link(q, h, at, raw_link(&q->links, h, head));
    store_link(&q->links, h, head, at);
    quick_account(q, h, list, 1);
}

/* Serves a request from the caches: the address of the payload, or 0. */
HW_HOT uint32_t quick_find(const struct hw_quick *q, struct hw_heap *h, size_t size)
{
    uint32_t known = q->count;
    if (skip_to_list(q, h, size, q->block_doubles && exceeds(size, q->largest) ? 0 : quick_block(q, (uint32_t)size),
                     &known)) {
        return known < q->count ? quick_pop(q, h, known) : 0;
    }
    if (quick_is_direct(q)) {
        for (uint32_t list = 0; list < q->count; list++) {
            if (quick_serves(q, list, size)) {
                return quick_pop(q, h, list);
            }
        }
        return 0;
    }
    if (exceeds(size, q->largest)) {
        return 0;
    }
    if (q->tabled) {
        const uint32_t ranked = q->ranks[((uint32_t)size + q->block_header - 1u) >> q->block_unit_shift];
        return quick_pop(q, h, ranked);
    }
    const uint32_t block = quick_block(q, (uint32_t)size);
    if (q->by_size) {
        return quick_pop(q, h, quick_index(q, block));
    }
    const uint32_t list = quick_list(q, block);
    return list < q->count ? quick_pop(q, h, list) : 0;
}

/* Whether a list has reached its limit. */
static inline int quick_is_full(const struct hw_quick *q, struct hw_heap *h, uint32_t list)
{
    if (q->limit_blocks == 0) {
        return 0;
    }
    const uint32_t blocks = load4(h, q->counts_at + 4u * list);
    return blocks >= q->limit_blocks;
}

/* Whether a link of a list may lead to `node`: a block that is cached can lie there, between `low` and `end`. */
static inline int quick_may_list(const struct hw_quick *q, uint32_t node, uint32_t low, uint32_t end)
{
    return node >= low && node <= end - q->links.field.bytes &&
           (!q->links.field.natural || (node & (q->links.field.bytes - 1u)) == 0);
}

/* Whether a block may be cached: no list holds one without its mark. */
HW_HOT int quick_is_marked(const struct hw_quick *q, struct hw_heap *h, uint32_t at)
{
    return !q->marks || load_field(&q->links.field, h, at + q->links.field.bytes) == quick_mark(q, h, at);
}

/* Whether the list at `head` holds the block among its first `most` blocks, or links there that lead to where no block
 * can be, from `low` up to `end`. O(blocks of the list), and no more than there could be in the arena. */
static inline int quick_lists(const struct hw_quick *q, struct hw_heap *h, uint32_t head, uint32_t at, uint32_t low,
                              uint32_t end, uint32_t most)
{
    const uint32_t possible = end / q->block_least;
    uint32_t looks = smaller(most, possible);
    uint32_t node = load_link(&q->links, h, head);
    while (node && node != at) {
        if (!quick_may_list(q, node, low, end)) {
            return 1;
        }
        if (looks == 0) {
            return most >= possible;
        }
        looks--;
        node = load_link(&q->links, h, node);
    }
    return node != 0;
}

static inline void quick_init(const struct hw_quick *q, struct hw_heap *h)
{
    for (uint32_t list = 0; list < q->count; list++) {
        store_link(&q->links, h, quick_head(q, list), 0);
    }
    if (q->limit_blocks) {
        for (uint32_t list = 0; list < q->count; list++) {
            store4(h, q->counts_at + 4u * list, 0);
        }
    }
    if (q->flush == HW_FLUSH_IDLE) {
        for (uint32_t list = 0; list < q->count; list++) {
            store_link(&q->links, h, quick_head(q, quick_older(q, list)), 0);
        }
        store4(h, q->left_at, 0);
    }
    if (q->refill) {
        for (uint32_t list = 0; list < q->count; list++) {
            store1(h, q->refills_at + list, 0);
        }
    }
}

static inline uint32_t quick_list_capacity(const struct hw_quick *q, uint32_t list)
{
    if (q->by_size && q->block_doubles) {
        return (q->block_least << list) - q->block_header;
    }
    if (q->octave_log2) {
        const uint32_t number = list + q->first;
        const uint32_t octave = number >> q->octave_log2;
        const uint32_t within = octave ? number - ((octave - 1u) << q->octave_log2) : number;
        return ((within + 1u) << (q->block_unit_shift + (octave ? octave - 1u : 0))) - q->block_header;
    }
    if (q->by_size) {
        return q->block_least + (list << q->block_unit_shift) - q->block_header;
    }
    return q->sizes[list];
}

#endif

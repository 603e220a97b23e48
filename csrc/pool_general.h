/* pool_general.h: blocks of any size with headers, split and merged as the policy defines.
 *
 *   start                                                    top        high-water mark      limit
 *   |                                                        |          |                    |
 *   +------+-------------+------+-------------+------+-------+----------+--------------------+
 *   | used | free        | used | remainder   | free | used  | was used | never used         |
 *   +------+-------------+------+-------------+------+-------+----------+--------------------+
 *
 * Blocks lie back to back from `start` to `top`. Above the top memory is taken last, so the highest top ever is the
 * smallest arena that serves the same requests. Or the top only ever rises, with or without the free block that ends
 * there once memory is short; or all memory is one free block to begin with, the top is the end of the memory, and the
 * high-water mark is the end of the highest block ever used. The last remainder is a region without header or tag from
 * which small requests are carved in sequence: what was left of the block that was last split for a small request. Next
 * to the top, and next to the last remainder, freeing and carving only move a boundary.
 *
 * Or blocks end with the arena, behind them a mark, and grow downwards, toward those of the last pool:
 *
 *   start of the last pool       its top    high-water mark      first block        top
 *   |                            |          |                    |                  |
 *   +----------------------------+----------+--------------------+------+------+----+------+
 *   | blocks of the last pool    | was used | never used         | used | free | .. | mark |
 *   +----------------------------+----------+--------------------+------+------+----+------+
 *
 * The high-water mark is how far the last pool may come before both together are larger than they ever were: it goes
 * down and up with the first block.
 *
 * Sources: Knuth, TAOCP 1, 2.5; Wilson et al. 1995, sections 3 and 4; Lea, "A memory allocator" (the last remainder is
 * a "designated victim" that stays outside the bins and has no header).
 */
#ifndef HW_POOL_GENERAL_H
#define HW_POOL_GENERAL_H

#include "general/check.h"
#include "general/resize.h"
#include "general/sound.h"

static inline void general_init(const struct hw_general *g, struct hw_heap *h)
{
    if (g->top == HW_TOP_BELOW) {
        open_below(g, h);
        return;
    }
    const uint32_t limit = g->region ? g->start + g->region : load4(h, g->limit_at);
    store4(h, g->top_at, g->start);
    store4(h, g->high_at, g->start);
    if (g->region) {
        store4(h, g->limit_at, limit);
    }
    freelist_clear(g, h);
    if (g->top == HW_TOP_LIST) {
        fill_up_to(g, h, limit);
    }
}

static inline uint32_t general_block_bytes(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    return word_size(g, load_word(g, h, block_of(g, h, at)));
}

/* Serves n bytes from what is at hand: the address of the payload, or 0. */
HW_HOT uint32_t general_hit(const struct hw_general *g, struct hw_heap *h, uint32_t n)
{
    if (g->victim_up_to) {
        return find_small(g, h, block_size_for(g, n));
    }
    const uint32_t b = find_block(g, h, block_size_for(g, n));
    return b ? hand_out(g, h, b) : 0;
}

/* Goes on where nothing is at hand, without raising the high-water mark: the address of the payload, or 0. */
static inline uint32_t general_search(const struct hw_general *g, struct hw_heap *h, uint32_t n)
{
    const uint32_t b = search_beside_victim(g, h, block_size_for(g, n));
    return b ? hand_out(g, h, b) : 0;
}

/* Serves n bytes without raising the high-water mark: the address of the payload, or 0. */
static inline uint32_t general_find(const struct hw_general *g, struct hw_heap *h, uint32_t n)
{
    const uint32_t size = block_size_for(g, n);
    if (g->victim_up_to) {
        const uint32_t at = is_small(g, size) ? find_small(g, h, size) : 0;
        return at ? at : general_search(g, h, n);
    }
    const uint32_t b = find_block(g, h, size);
    return b ? hand_out(g, h, b) : 0;
}

/* Serves n bytes from memory that was never used: the address of the payload, or 0. */
static inline uint32_t general_grow(const struct hw_general *g, struct hw_heap *h, uint32_t n)
{
    const uint32_t b = grow_block(g, h, block_size_for(g, n));
    return b ? hand_out(g, h, b) : 0;
}

/* Whether the payload lies in the pool's region. */
static inline int general_owns(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    if (g->top == HW_TOP_BELOW) {
        return at >= load4(h, g->limit_at);
    }
    (void)h;
    return at >= g->start && at < g->start + g->region;
}

static inline uint32_t general_capacity(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = block_of(g, h, at);
    const uint32_t word = load_word(g, h, b);
    return payload_bytes(g, b, word_size(g, word));
}

/* Whether `at` is the payload of a used block, by its header. */
HW_HOT int general_is_used(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    if (at < first_block(g, h) + g->header || at >= load4(h, g->top_at)) {
        return 0;
    }
    const uint32_t word = load_word(g, h, at - g->header);
    if (!g->pad && (g->checks == HW_CHECKS_FREES) &&
        !is_size_within(g, at - g->header, word_size(g, word), load4(h, g->top_at))) {
        return 0; /* what was written there since is not masked as headers are */
    }
    if (g->pad && (word & HW_USED) == 0) {
        const uint32_t padding = word_size(g, word);
        return padding != 0 && padding <= g->pad && at - g->header - padding >= g->start &&
               (load_word(g, h, at - g->header - padding) & HW_USED) != 0;
    }
    return (word & HW_USED) != 0;
}

/* Frees the block with this payload. */
static inline void general_release(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = block_of(g, h, at);
    release_rarely(g, h, b, load_word(g, h, b));
}

/* Makes the object with this payload n bytes large without a search, and returns where it is; 0 where it cannot, and
 * nothing has changed. */
static inline uint32_t general_resize(const struct hw_general *g, struct hw_heap *h, uint32_t at, uint32_t n)
{
    const uint32_t b = resize_block(g, h, block_of(g, h, at), n);
    return b ? payload_of(g, b) : 0;
}

#endif

/* general/remainder.h: the last remainder, from which small requests are carved in sequence, see pool_general.h. */
#ifndef HW_GENERAL_REMAINDER_H
#define HW_GENERAL_REMAINDER_H

#include "general/take.h"

/* Makes the start of the last remainder a used block; 0 if it is too small. */
HW_HOT int cut_from_victim(const struct hw_general *g, struct hw_heap *h, uint32_t size, uint32_t *b)
{
    *b = load4(h, g->victim_at);
    HW_ASSERT(*b <= load4(h, g->victim_at + 4u));
    const uint32_t have = load4(h, g->victim_at + 4u) - *b;
    if (have < size) {
        return 0;
    }
    if (have - size < g->min_block) {
        size = have;
    }
    store4(h, g->victim_at, *b + size);
    store_word(g, h, *b, size_word(g, size, HW_USED | HW_PREV_USED));
    note_block_made(h, g->overhead);
    return 1;
}

/* Allocates the start of a free block and makes its rest the last remainder; the previous one becomes a free block. */
static inline uint32_t take_as_victim(const struct hw_general *g, struct hw_heap *h, struct hw_found found,
                                      uint32_t size)
{
    if (checks_links(g) && !link_is_valid(g, h, found.before, found.b, found.word)) {
        return 0;
    }
    const uint32_t whole = word_size(g, found.word);
    HW_ASSERT(whole >= size);
    note_rest(g, h, whole - size);
    if (whole - size < g->split_least) {
        return take_whole(g, h, found);
    }
    list_unlink(g, h, whole, found.before, found.b + g->node);
    const uint32_t old = load4(h, g->victim_at);
    const uint32_t old_size = load4(h, g->victim_at + 4u) - old;
    store4(h, g->victim_at, found.b + size);
    store4(h, g->victim_at + 4u, found.b + whole);
    store_word(g, h, found.b, size_word(g, size, HW_USED | (found.word & HW_PREV_USED)));
    if (merges(g, h, whole)) {
        mark_before_used(g, h, found.b + whole);
    }
    if (old_size) {
        write_free(g, h, old, old_size, HW_PREV_USED);
        if (merges(g, h, old_size)) {
            mark_before_free(g, h, old + old_size);
        }
        freelist_insert(g, h, old, old_size);
        note_block_made(h, g->overhead);
    }
    return found.b;
}

/* Hands out the first block of the list at `head`, whose blocks all have this size: its payload; 0: it is empty. */
HW_HOT uint32_t take_first(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t size)
{
    const uint32_t node = load_link(&g->links, h, head);
    if (node == 0) {
        return 0;
    }
    const uint32_t b = node - g->node;
    const uint32_t word = word_in_bin(g, h, b, size);
    if (checks_links(g) && (word_size(g, word) != size || !link_is_valid(g, h, head, b, word))) {
        return 0;
    }
    list_unlink(g, h, size, head, node);
    store_word(g, h, b, word | HW_USED);
    if (merges(g, h, size)) {
        mark_before_used(g, h, b + size);
    }
    return hand_out(g, h, b);
}

/* The payload of a block from the bin of this size, or one tried next; 0 where these are empty. */
HW_HOT uint32_t take_near(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    const uint32_t bin = bin_of(g, size);
    const uint32_t head = g->lists_at + bin * g->list_stride;
    const uint32_t exact = take_first(g, h, head, size);
    if (g->close_bins == 0 || exact) {
        return exact;
    }
    const uint32_t larger = size + ((uint32_t)1 << g->unit_shift);
    if (g->close_bins == 1u && g->split_least > (uint32_t)1 << g->unit_shift && is_linear(g, larger)) {
        return take_first(g, h, head + g->list_stride, larger); /* a unit is too little to split */
    }
    struct hw_found close = bins_close(g, h, bin);
    const uint32_t b = close.b ? take(g, h, close, size) : 0;
    return b ? hand_out(g, h, b) : 0;
}

/* The payload of a small block, from the bins close to its size or the last remainder; 0 if these have none. */
HW_HOT uint32_t find_small(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    if (is_linear(g, size)) {
        const uint32_t near = take_near(g, h, size);
        if (near) {
            return near;
        }
    }
    uint32_t b = 0;
    return cut_from_victim(g, h, size, &b) ? hand_out(g, h, b) : 0;
}

/* Whether a block of this size may be cut from the last remainder before larger blocks are searched. */
static inline int is_small(const struct hw_general *g, uint32_t size)
{
    return size <= block_size_for(g, g->victim_up_to);
}

/* A block for a request that the fast path cannot serve: a small one splits the best fit, whose rest becomes the last
 * remainder; a large one is cut from the last remainder only if no bin has a block. */
static inline uint32_t search_beside_victim(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    struct hw_found found = bins_search(g, h, size);
    if (found.b) {
        return is_small(g, size) ? take_as_victim(g, h, found, size) : take(g, h, found, size);
    }
    uint32_t b = 0;
    if (!is_small(g, size) && cut_from_victim(g, h, size, &b)) {
        return b;
    }
    return reuse_top(g, h, size);
}

#endif

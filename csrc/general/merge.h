/* general/merge.h: merging free neighbours later than when one of them is freed: what a search passes (lazy), what it
 * is about to look at (sweep), or all at once before the heap grows (deferred). */
#ifndef HW_GENERAL_MERGE_H
#define HW_GENERAL_MERGE_H

#include "general/top.h"

/* ---- what a search passes ---------------------------------------------------------------------------------------- */

/* A walk that starts in the middle must start at a block. */
static inline void keep_rover_on_block(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t end)
{
    if (has_walk_rover(g)) {
        const uint32_t rover = load4(h, g->rover_at);
        if (rover > b && rover < end) {
            store4(h, g->rover_at, b);
        }
    }
}

/* Merges the free block b with the free blocks behind it and returns its word. `before` points to b in its list, which
 * is in order of addresses, so what follows b there is what is merged first. */
static inline uint32_t merge_following(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t b,
                                       uint32_t word, uint32_t want)
{
    const uint32_t top = load4(h, g->top_at);
    const uint32_t had = word_size(g, word);
    uint32_t size = had;
    if (!merges(g, h, size)) {
        return word;
    }
    while (b + size < top) {
        if (g->merge_enough && size >= want) {
            break;
        }
        const uint32_t next_word = load_word(g, h, b + size);
        if (!merges_with(g, h, next_word)) {
            break;
        }
        if (checks_links(g) && !link_is_valid(g, h, b + g->node, b + size, next_word)) {
            break;
        }
        if (g->free_list != HW_IMPLICIT) {
            list_unlink(g, h, size, b + g->node, b + size + g->node);
        }
        note_block_gone(h, g->overhead);
        size += word_size(g, next_word);
    }
    const int joins_top = g->top == HW_TOP_LAST && b + size == top;
    if (size == had && !joins_top) {
        return word;
    }
    if (joins_top && checks_links(g) && !link_is_valid(g, h, before, b, word)) {
        return word;
    }
    if (joins_top) {
        if (g->free_list != HW_IMPLICIT) {
            list_unlink(g, h, size, before, b + g->node);
        }
        lower_top(g, h, b);
        return 0; /* no block any more */
    }
    keep_rover_on_block(g, h, b, b + size);
    store_word(g, h, b, size_word(g, size, 0));
    return size_word(g, size, 0);
}

/* ---- ahead of a search ------------------------------------------------------------------------------------------- */

/* Merges the free blocks that a search is about to look at with those behind them. O(list), or what a search looks at.
 */
static inline void sweep(const struct hw_general *g, struct hw_heap *h)
{
    const uint32_t top = load4(h, g->top_at);
    uint32_t left = g->search_most;
    uint32_t node = load_link(&g->links, h, g->lists_at);
    while (node) {
        skip_unswept(g, h, &node);
        if (g->search_most && left-- == 0) {
            return;
        }
        const uint32_t b = node - g->node;
        const uint32_t had = word_size(g, load_word(g, h, b));
        uint32_t next = b + had;
        while (merges(g, h, had) && next < top) {
            const uint32_t next_word = load_word(g, h, next);
            if (!merges_with(g, h, next_word)) {
                break;
            }
            if (checks_links(g) && !may_merge(g, h, next, word_size(g, next_word))) {
                break;
            }
            freelist_remove(g, h, next, word_size(g, next_word));
            note_block_gone(h, g->overhead);
            next += word_size(g, next_word);
        }
        if (next != b + had) {
            store_word(g, h, b, size_word(g, next - b, 0));
        }
        node = load_link(&g->links, h, node);
    }
}

/* ---- everything -------------------------------------------------------------------------------------------------- */

/* Merges all free neighbours and rebuilds the free lists; 0 if nothing was freed since the last time. O(blocks). */
static inline int merge_all(const struct hw_general *g, struct hw_heap *h)
{
    if (load4(h, g->pending_at) == 0) {
        return 0;
    }
    store4(h, g->pending_at, 0);
    if (skip_merging(g, h)) {
        return 1;
    }
    freelist_clear(g, h);
    const uint32_t top = load4(h, g->top_at);
    uint32_t b = g->start;
    while (b < top) {
        const uint32_t word = load_word(g, h, b);
        uint32_t size = word_size(g, word);
        if ((word & HW_USED) == 0) {
            uint32_t next = b + size;
            while (merges(g, h, size) && next < top) {
                const uint32_t next_word = load_word(g, h, next);
                if (!merges_with(g, h, next_word)) {
                    break;
                }
                note_block_gone(h, g->overhead);
                next += word_size(g, next_word);
            }
            size = next - b;
            if (g->top == HW_TOP_LAST && next == top && merges(g, h, size)) {
                lower_top(g, h, b);
                return 1;
            }
            store_word(g, h, b, size_word(g, size, 0));
            freelist_insert(g, h, b, size);
        }
        b += size;
    }
    return 1;
}

#endif

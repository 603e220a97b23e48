/* general/find.h: a block for a request, by the recipe's search. */
#ifndef HW_GENERAL_FIND_H
#define HW_GENERAL_FIND_H

#include "general/remainder.h"

/* Searches the queue, oldest first, for a block of exactly this size, and inserts the others into their bins. A small
 * request also takes the last remainder if it is alone in the queue, so that small objects allocated together are
 * adjacent. */
static inline struct hw_found search_unsorted(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    struct hw_found found = found_none();
    uint32_t node = load_link(&g->links, h, g->unsorted_at);
    while (node) {
        const uint32_t b = node - g->node;
        const uint32_t word = load_word(g, h, b);
        const uint32_t have = word_size(g, word);
        if (checks_links(g) && !link_is_valid(g, h, g->unsorted_at, b, word)) {
            return found;
        }
        const uint32_t next = load_link(&g->links, h, node);
        const int goes_on = g->fit != HW_EXACT && is_linear(g, size) && next == 0 && have > size + g->min_block &&
                            b == load4(h, g->remainder_at);
        if (have == size || goes_on) {
            found.b = b;
            found.word = word;
            found.before = g->unsorted_at;
            return found;
        }
        list_unlink(g, h, have, g->unsorted_at, node);
        freelist_add(g, h, b, have);
        node = next;
    }
    return found;
}

HW_HOT uint32_t search_and_take(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    struct hw_found found;
    if (g->coalesce == HW_SWEEP) {
        sweep(g, h);
    }
    if (g->bins) {
        if (g->bin_linear_bins && !g->bin_round_up) {
            found = bins_exact(g, h, size);
            if (checks_links(g) && found.b &&
                (word_size(g, found.word) != size || !link_is_valid(g, h, found.before, found.b, found.word))) {
                return 0;
            }
            if (found.b) {
                note_chosen(g, h, found.b, size, size);
                raise_reach(g, h, found.b, size);
                return take_whole(g, h, found);
            }
        }
        if (g->unsorted) {
            found = search_unsorted(g, h, size);
            if (found.b) {
                return take(g, h, found, size);
            }
        }
        if (g->bin_fill) {
            size = bin_filled(g, size);
        }
        if (g->bin_round_up) {
            found = search_above(g, h, bin_rounded_up_to(g, size), size);
            return found.before ? take(g, h, found, size) : reuse_top(g, h, size);
        }
        found = bins_search(g, h, size);
    } else if (g->free_list == HW_IMPLICIT) {
        found = walk_search(g, h, size);
    } else if (g->free_list == HW_TREE) {
        found = tree_search(g, h, size);
    } else if (g->fit == HW_NEXT) {
        found = list_next(g, h, size);
    } else {
        found = list_search(g, h, g->lists_at, size);
    }
    if (found.b) {
        return take(g, h, found, size);
    }
    return reuse_top(g, h, size);
}

/* A used block of `size` bytes or a little more, without raising the high-water mark; 0 where there is none. */
HW_HOT uint32_t find_block(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    if (g->victim_up_to) {
        const uint32_t at = is_small(g, size) ? find_small(g, h, size) : 0;
        return at ? block_of(g, h, at) : search_beside_victim(g, h, size);
    }
    const uint32_t b = search_and_take(g, h, size);
    if (g->coalesce == HW_DEFERRED && b == 0 && merge_all(g, h)) {
        return search_and_take(g, h, size);
    }
    return b;
}

#endif

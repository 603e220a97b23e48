/* arena_margin.h: the size of the arena from which on a replay places all blocks at the same addresses.
 *
 * It matters where all memory is one free block to begin with: searches meet the block at the arena's end, and its
 * size. In a larger arena that block alone is larger. So a choice is the same if that block is large enough in both to
 * serve what it served, and in neither in the way of what was preferred to it: in bins, if it lies in a higher bin. The
 * other blocks keep their order in each list.
 *
 * The block at the end begins at the high-water mark or below, so it has at least what the arena has above that.
 */
#ifndef HW_ARENA_MARGIN_H
#define HW_ARENA_MARGIN_H

#include "listener.h"

#include "general/bins.h"

/* Whether the pool chooses by rules for which the above holds. */
static int chooses_the_same(const struct hw_general *g)
{
    const int in_bins_by_force = g->bins && (g->coalesce == HW_LAZY || g->coalesce == HW_SWEEP);
    const int by_size_in_turn = g->order == HW_SIZE && g->fit == HW_NEXT;
    return g->top == HW_TOP_LIST && g->region == 0 && !g->split_tail && !g->victim_up_to && !g->unsorted &&
           g->free_list != HW_TREE && g->fit != HW_WORST && g->fit != HW_EXACT && g->resize != HW_RESIZE_SMALLER_SIDE &&
           !in_bins_by_force && !by_size_in_turn;
}

/* Bytes that the block at the arena's end must have so that a search that chose a block of `have` bytes, or that one
 * for a request of `size` bytes, chooses it again. */
static uint32_t least_at_end(const struct hw_general *g, struct hw_heap *h, uint32_t have, uint32_t size, int at_end)
{
    if (g->bins) {
        const uint32_t bin = bin_of(g, at_end ? size : have);
        if (bin + 1u < g->bins) {
            return bin_start(g, bin + 1u);
        }
        h->engine.last_bin = 1;
        return 0;
    }
    return !at_end && (g->fit == HW_BEST || g->order == HW_SIZE) ? have + 1u : 0;
}

/* Whether no block of these bytes can raise `chosen_from`: a bin ends below twice the size of each of its blocks. */
static HW_ALWAYS_INLINE int is_far_from_end(const struct hw_general *g, const struct hw_heap *h, uint32_t high,
                                            uint32_t have)
{
    return (uint64_t)high + 2u * ((uint64_t)have + g->bin_less + ((uint64_t)1 << g->unit_shift)) <=
           h->engine.chosen_from;
}

static inline void note_chosen(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t have, uint32_t size)
{
    if (g->top != HW_TOP_LIST) {
        return;
    }
    const uint64_t reads = h->reads;
    const uint32_t high = load4(h, g->high_at);
    const int at_end = b + have == load4(h, g->top_at);
    h->reads = reads;
    if (is_far_from_end(g, h, high, at_end ? size : have)) {
        return;
    }
    const uint64_t from = (uint64_t)high + least_at_end(g, h, have, size, at_end);
    if (from > h->engine.chosen_from) {
        h->engine.chosen_from = from;
    }
}

/* See `same_from` of struct hw_metrics. */
static uint64_t same_from(const struct hw_policy *p, struct hw_heap *h)
{
    const struct hw_pool *last = &p->pools[p->pool_count - 1u];
    const int has_others = p->pool_count > 2u || (p->pool_count == 2u && p->pools[0].kind != HW_QUICK);
    if (has_others || p->reserve || p->grows_down || p->threads || last->kind != HW_GENERAL ||
        !chooses_the_same(&last->general)) {
        return 0;
    }
    const struct hw_general *g = &last->general;
    const uint64_t reads = h->reads;
    const uint32_t high = load4(h, g->high_at);
    h->reads = reads;
    /* what is left at the end is split off, merges, and lies in the last bin if a search ended there */
    uint32_t rest = g->min_block > g->split_least ? g->min_block : g->split_least;
    if (g->coalesce != HW_NEVER && g->coalesce_from > rest) {
        rest = g->coalesce_from;
    }
    const uint32_t last_bin = g->bins ? bin_start(g, g->bins - 1u) : UINT32_MAX;
    if ((h->engine.last_bin || h->engine.chosen_from >= last_bin) && last_bin > rest) {
        rest = last_bin;
    }
    uint64_t from = (uint64_t)high + rest;
    if (from < h->engine.chosen_from) {
        from = h->engine.chosen_from;
    }
    return from + (g->end_word ? g->header : 0u) + ((uint64_t)1 << g->unit_shift) + p->end_mark;
}

#endif

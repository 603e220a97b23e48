/* general/bins.h: the free block for a request in bins. */
#ifndef HW_GENERAL_BINS_H
#define HW_GENERAL_BINS_H

#include "general/search.h"

/* The first block of the list at `head`, whose word has to be read. */
HW_HOT struct hw_found take_head(const struct hw_general *g, struct hw_heap *h, uint32_t head)
{
    struct hw_found found;
    found.before = head;
    found.b = load_link(&g->links, h, head) - g->node;
    found.word = load_word(g, h, found.b);
    return found;
}

/* The word of a free block in the bin of this size alone. */
HW_HOT uint32_t word_in_bin(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    if (g->boundary_tags && g->coalesce_from <= g->min_block && !g->links.hardened) {
        /* neighbours merge at once, so its flags are known, too */
        return size_word(g, size, has_flag_before(g) ? HW_PREV_USED : 0);
    }
    return load_word(g, h, b);
}

/* A block of exactly this size. */
HW_HOT struct hw_found bins_exact(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    struct hw_found found = found_none();
    if (!is_linear(g, size)) {
        return found;
    }
    const uint32_t head = list_head(g, size);
    const uint32_t node = load_link(&g->links, h, head);
    if (node) {
        found.b = node - g->node;
        found.before = head;
        found.word = word_in_bin(g, h, found.b, size);
    }
    return found;
}

/* The block that a request gets from the first bin from `bin` on that holds any; all are large enough. */
HW_HOT struct hw_found search_above(const struct hw_general *g, struct hw_heap *h, uint32_t bin, uint32_t size)
{
    while (bin < g->bins) {
        const uint32_t ahead = load4(h, mark_at(g, bin)) & UINT32_MAX << bin % 32u;
        if (ahead == 0) {
            if (g->bins <= 32u) {
                return found_none(); /* one word has the marks of all */
            }
            bin = next_marked_word(g, h, bin / 32u + 1u);
            continue;
        }
        const uint32_t marked = (g->bins > 32u ? bin / 32u * 32u : 0) + lowest_bit(ahead);
        HW_ASSERT(marked >= bin && marked < g->bins);
        const uint32_t head = g->lists_at + marked * g->list_stride;
        if (load_link(&g->links, h, head)) {
            if (g->fit == HW_BEST && marked >= g->bin_linear_bins) {
                return list_search(g, h, head, size);
            }
            return take_head(g, h, head);
        }
        if (g->bin_unmark) {
            return found_none();
        }
        unmark_bin(g, h, marked); /* it was emptied and left marked, which saved a store then */
        bin = marked + 1u;
    }
    return found_none();
}

/* The block that the bins give for a request. */
HW_HOT struct hw_found bins_search(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    uint32_t bin = bin_of(g, size);
    if (g->bin_round_up) {
        bin = bin_above(g, size);
    } else if (!is_linear(g, size)) {
        struct hw_found found = list_search(g, h, g->lists_at + bin * g->list_stride, size);
        if (found.b || g->fit == HW_EXACT) {
            return found;
        }
        bin++;
    } else if (g->fit == HW_EXACT) {
        return g->victim_up_to ? bins_exact(g, h, size) : found_none();
    }
    return search_above(g, h, bin, size);
}

/* A block from one of the few bins behind an empty exact one: two words of the bitmap show them all. */
static inline struct hw_found bins_close(const struct hw_general *g, struct hw_heap *h, uint32_t bin)
{
    const uint32_t map_at = g->bitmap_at + bin / 32u * 4u;
    const uint32_t here = load4(h, map_at) >> bin % 32u;
    const uint32_t next = load4(h, map_at + 4u) << 1u << (31u - bin % 32u);
    uint32_t close = (here | next) & (((uint32_t)2 << g->close_bins) - 2u);
    while (close) {
        const uint32_t found = bin + lowest_bit(close);
        const uint32_t head = g->lists_at + found * g->list_stride;
        if (load_link(&g->links, h, head)) {
            return take_head(g, h, head);
        }
        unmark_bin(g, h, found);
        close &= close - 1u;
    }
    return found_none();
}

#endif

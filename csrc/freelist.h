/* freelist.h: how a general pool stores and finds its free blocks.
 *
 * A list runs from a head in the control data through the payloads of the free blocks, or through their headers. A node
 * is the address of a block's links; its first word links to the next node. Where something has to be unlinked, what
 * matters is the address of the word that points to it, called `before`: the head, or the first word of the node ahead.
 * A double list keeps `before` in each node's second word, so unlinking needs no case for the head; and the missing
 * node behind the last one may be written to as well, because its second word is a scratch word at the start of the
 * control data.
 *
 * With bins there is one list for each bin. Bins hold one block size each up to a bound, then a fixed number of bins
 * share each octave; lists of the recipe "lea", "two-level", "half-fit" and the like differ only in these numbers.
 * A bitmap tells which bins may hold a block. Its bits are cleared late, by the search that finds the bin empty.
 *
 * Sources: Knuth, TAOCP 1, 2.5 (fits, boundary tags); Wilson et al. 1995 (segregated fits); Masmano et al. 2004
 * (two-level bins); Ogasawara 1995 (half fit).
 */
#ifndef HW_FREELIST_H
#define HW_FREELIST_H

#include "block.h"

/* A free block that a search came upon. */
struct hw_found {
    uint32_t b;      /* the block; 0 is none */
    uint32_t word;   /* its word */
    uint32_t before; /* address of the link that points to it */
};

/* ---- bins ------------------------------------------------------------------------------------------------------ */

/* Whether the bin of blocks of this size holds no other size. */
static inline int is_linear(const struct hw_general *g, uint32_t size)
{
    return g->bin_linear_bins && size - g->bin_less < g->bin_linear;
}

/* The bin of blocks of this size; all that fit into an arena have one. */
static inline uint32_t bin_of(const struct hw_general *g, uint32_t size)
{
    const uint32_t key = size - g->bin_less;
    if (g->bin_linear_bins && key < g->bin_linear) {
        return (key >> g->unit_shift) - g->bin_first;
    }
    const uint32_t octave = highest_bit(key);
    const uint32_t step = key >> (octave - g->bin_steps_log2);
    return g->bin_linear_bins + ((octave - g->bin_octave - 1u) << g->bin_steps_log2) + step;
}

/* The first bin in which every block is at least this large; it may be one behind the last. */
static inline uint32_t bin_above(const struct hw_general *g, uint32_t size)
{
    if (is_linear(g, size)) {
        return bin_of(g, size);
    }
    return bin_of(g, size + (1u << (highest_bit(size - g->bin_less) - g->bin_steps_log2)) - 1u);
}

static inline uint32_t list_head(const struct hw_general *g, uint32_t size)
{
    if (g->bins) {
        return g->lists_at + bin_of(g, size) * g->list_stride;
    }
    return g->lists_at;
}

static inline void mark_bin(const struct hw_general *g, struct hw_heap *h, uint32_t bin)
{
    const uint32_t at = g->bitmap_at + bin / 32u * 4u;
    const uint32_t map = load4(h, at);
    const uint32_t bit = 1u << bin % 32u;
    if (map & bit) {
        return;
    }
    store4(h, at, map | bit);
    if (g->bins > 32u && map == 0) {
        store4(h, g->summary_at, load4(h, g->summary_at) | 1u << bin / 32u);
    }
}

/* Clears the mark of a bin that a search has found empty. */
static inline void unmark_bin(const struct hw_general *g, struct hw_heap *h, uint32_t bin)
{
    const uint32_t at = g->bitmap_at + bin / 32u * 4u;
    const uint32_t left = load4(h, at) & ~(1u << bin % 32u);
    store4(h, at, left);
    if (g->bins > 32u && left == 0) {
        store4(h, g->summary_at, load4(h, g->summary_at) & ~(1u << bin / 32u));
    }
}

/* The next word of the bitmap from `index` on that is not zero, as the number of its first bin; none: the number of
 * bins. */
static inline uint32_t next_marked_word(const struct hw_general *g, struct hw_heap *h, uint32_t index)
{
    if (g->bins <= 32u || index >= 32u) {
        return g->bins;
    }
    const uint32_t summary = load4(h, g->summary_at) & ~0u << index;
    return summary ? lowest_bit(summary) * 32u : g->bins;
}

/* Head of the first list from `bin` on that holds a block; 0 where all are empty. O(bins / 32) at worst, mostly O(1).
 */
static inline uint32_t next_filled_list(const struct hw_general *g, struct hw_heap *h, uint32_t bin)
{
    while (bin < g->bins) {
        const uint32_t ahead = load4(h, g->bitmap_at + bin / 32u * 4u) & ~0u << bin % 32u;
        if (ahead == 0) {
            bin = next_marked_word(g, h, bin / 32u + 1u);
            continue;
        }
        const uint32_t found = bin / 32u * 32u + lowest_bit(ahead);
        const uint32_t head = g->lists_at + found * g->list_stride;
        if (load_link(&g->links, h, head)) {
            return head;
        }
        unmark_bin(g, h, found);
        bin = found + 1u;
    }
    return 0;
}

/* ---- one list -------------------------------------------------------------------------------------------------- */

static inline void count_free(const struct hw_general *g, struct hw_heap *h, uint32_t change)
{
    if (g->fit == HW_BEST && g->search_percent < 100u) {
        store4(h, g->count_at, load4(h, g->count_at) + change);
    }
}

/* Puts `node` between the word `before` and the node `next`. */
static inline void list_link(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t node,
                             uint32_t next)
{
    store_link(&g->links, h, before, node);
    store_link(&g->links, h, node, next);
    if (g->free_list == HW_DOUBLE) {
        store_link(&g->links, h, node + g->links.field.bytes, before);
        store_link(&g->links, h, next + g->links.field.bytes, node);
    }
}

/* Takes `node`, to which the word `before` points, out of the list of blocks of this size. */
static inline void list_unlink(const struct hw_general *g, struct hw_heap *h, uint32_t size, uint32_t before,
                               uint32_t node)
{
    const uint32_t next = load_link(&g->links, h, node);
    store_link(&g->links, h, before, next);
    if (g->order == HW_FIFO && next == 0) {
        store_link(&g->links, h, list_head(g, size) + g->links.field.bytes, before);
    }
    if (g->free_list == HW_DOUBLE) {
        store_link(&g->links, h, next + g->links.field.bytes, before);
    }
    if (g->fit == HW_NEXT && load4(h, g->rover_at) == node) {
        store4(h, g->rover_at, before);
    }
    count_free(g, h, ~0u);
}

/* The address of the link that points to `node`. O(1) in a double list, else O(list). */
static inline uint32_t list_before(const struct hw_general *g, struct hw_heap *h, uint32_t size, uint32_t node)
{
    if (g->free_list == HW_DOUBLE) {
        return load_link(&g->links, h, node + g->links.field.bytes);
    }
    uint32_t before = list_head(g, size);
    uint32_t next = load_link(&g->links, h, before);
    while (next != node) {
        before = next;
        next = load_link(&g->links, h, next);
    }
    return before;
}

/* Whether the list keeps `other` ahead of a block b of this size. */
static inline int stays_ahead(const struct hw_general *g, struct hw_heap *h, uint32_t other, uint32_t b, uint32_t size)
{
    if (g->order == HW_SIZE) {
        return word_size(g, load_word(g, h, other - g->node)) < size;
    }
    return other < b;
}

/* Lets the next search start with what was freed last, which follows the word `before` in its list. */
static inline void start_from(const struct hw_general *g, struct hw_heap *h, uint32_t before)
{
    if (g->search_from == HW_FROM_FREED) {
        store4(h, g->rover_at, before);
    }
}

/* Files a free block where the order of its list wants it. LIFO and FIFO O(1), by address and size O(list). */
static inline void freelist_insert(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    if (g->free_list == HW_IMPLICIT) {
        return;
    }
    uint32_t before = g->lists_at;
    if (g->bins) {
        const uint32_t bin = bin_of(g, size);
        mark_bin(g, h, bin);
        before = g->lists_at + bin * g->list_stride;
    }
    const uint32_t node = b + g->node;
    count_free(g, h, 1);
    if (g->order == HW_FIFO) {
        const uint32_t tail_at = before + g->links.field.bytes;
        before = load_link(&g->links, h, tail_at);
        list_link(g, h, before, node, 0);
        store_link(&g->links, h, tail_at, node);
        start_from(g, h, before);
        return;
    }
    uint32_t next = load_link(&g->links, h, before);
    if (g->order == HW_ADDRESS || g->order == HW_SIZE) {
        while (next && stays_ahead(g, h, next, b, size)) {
            before = next;
            next = load_link(&g->links, h, next);
        }
    }
    list_link(g, h, before, node, next);
    start_from(g, h, before);
}

/* Takes a free block out of its list, to be merged or handed out. */
static inline void freelist_remove(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    if (g->free_list == HW_IMPLICIT) {
        return;
    }
    const uint32_t node = b + g->node;
    list_unlink(g, h, size, list_before(g, h, size, node), node);
}

/* Puts the free block `to` in the place of the free block `from` in the one list. */
static inline void list_replace(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t from,
                                uint32_t to)
{
    const uint32_t node = to + g->node;
    const uint32_t next = load_link(&g->links, h, from + g->node);
    list_link(g, h, before, node, next);
    if (g->order == HW_FIFO && next == 0) {
        store_link(&g->links, h, g->lists_at + g->links.field.bytes, node);
    }
    if (g->fit == HW_NEXT && load4(h, g->rover_at) == from + g->node) {
        store4(h, g->rover_at, node);
    }
}

/* Empties all lists. */
static inline void freelist_clear(const struct hw_general *g, struct hw_heap *h)
{
    if (g->fit == HW_NEXT || g->search_from == HW_FROM_LOWEST_FREE) {
        store4(h, g->rover_at, g->free_list == HW_IMPLICIT ? g->start : g->lists_at);
    }
    if (g->free_list == HW_IMPLICIT) {
        return;
    }
    const uint32_t lists = g->bins ? g->bins : 1u;
    for (uint32_t list = 0; list < lists; list++) {
        const uint32_t head = g->lists_at + list * g->list_stride;
        store_link(&g->links, h, head, 0);
        if (g->order == HW_FIFO) {
            store_link(&g->links, h, head + g->links.field.bytes, head);
        }
    }
    if (g->bins) {
        for (uint32_t at = g->bitmap_at; at < g->bitmap_at + (g->bins + 31u) / 32u * 4u; at += 4u) {
            store4(h, at, 0);
        }
        if (g->bins > 32u) {
            store4(h, g->summary_at, 0);
        }
    }
    if (g->fit == HW_BEST && g->search_percent < 100u) {
        store4(h, g->count_at, 0);
    }
}

#endif

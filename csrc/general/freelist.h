/* general/freelist.h: how a general pool stores and finds its free blocks.
 *
 * A list runs from a head in the control data through the payloads of the free blocks, or through their headers. A node
 * is the address of a block's links; its first word links to the next node. Where something has to be unlinked, what
 * matters is the address of the word that points to it, called `before`: the head, or the first word of the node ahead.
 * A double list keeps `before` in each node's second word, so unlinking needs no case for the head; and the missing
 * node behind the last one may be written to as well, because its second word is a scratch word at the start of the
 * control data. With 2-byte links in units and 2-byte heads a link cannot address a head: the second word of the first
 * node is 0 then, and the head follows from its block's size.
 *
 * With bins there is one list for each bin. Bins hold one block size each up to a bound, then a fixed number of bins
 * share each octave; lists of the recipe "lea", "two-level", "half-fit" and the like differ only in these numbers.
 * Blocks may wait in a queue before they are inserted into bins: the next search empties it, oldest first (Lea's
 * "unsorted" bin). A bitmap marks the bins that may hold a block. Its bits are cleared lazily, by the search that finds
 * the bin empty, or eagerly if search time has to be bounded.
 *
 * Or the free blocks are in a search tree: general/tree.h.
 *
 * Sources: Knuth, TAOCP 1, 2.5 (fits, boundary tags); Wilson et al. 1995 (segregated fits); Masmano et al. 2004
 * (two-level bins); Ogasawara 1995 (half fit).
 */
#ifndef HW_GENERAL_FREELIST_H
#define HW_GENERAL_FREELIST_H

#include "general/tree.h"

/* ---- bins -------------------------------------------------------------------------------------------------------- */

/* Whether the bin of blocks of this size holds no other size. */
HW_HOT int is_linear(const struct hw_general *g, uint32_t size)
{
    return g->bin_linear_bins && size - g->bin_less < g->bin_linear;
}

/* The bin of blocks of this size; all that fit into an arena have one. */
HW_HOT uint32_t bin_of(const struct hw_general *g, uint32_t size)
{
    const uint32_t key = size - g->bin_less;
    if (g->bin_linear_bins && key < g->bin_linear) {
        return (key >> g->unit_shift) - g->bin_first;
    }
    const uint32_t octave = highest_bit(key);
    const uint32_t step = g->bin_steps_log2 ? key >> (octave - g->bin_steps_log2) : 1u;
    const uint32_t bin = g->bin_linear_bins + ((octave - g->bin_octave - 1u) << g->bin_steps_log2) + step;
    if (g->bin_last && bin >= g->bins) {
        return g->bins - 1u;
    }
    return bin;
}

/* The first bin in which every block is at least this large; it may be one behind the last. */
HW_HOT uint32_t bin_above(const struct hw_general *g, uint32_t size)
{
    if (is_linear(g, size)) {
        return bin_of(g, size);
    }
    if (g->bin_octave == 0 && size - g->bin_less == 1u) {
        return g->bin_linear_bins; /* nothing is smaller */
    }
    return bin_of(g, size - 1u) + 1u; /* behind the last that begins below this size */
}

/* The size up to which a request of this one is rounded: the smallest of a bin that is as large. */
HW_HOT uint32_t bin_filled(const struct hw_general *g, uint32_t size)
{
    if (is_linear(g, size)) {
        return size;
    }
    const uint32_t key = size - g->bin_less;
    const uint32_t least = ((uint32_t)1 << (highest_bit(key) - g->bin_steps_log2)) - 1u;
    const uint32_t unit = ((uint32_t)1 << g->unit_shift) - 1u;
    return (((key + least) & ~least) + g->bin_less + unit) & ~unit;
}

/* The bin that a request is rounded up to; one that is as large as its bin's blocks has that. */
HW_HOT uint32_t bin_rounded_up_to(const struct hw_general *g, uint32_t size)
{
    return g->bin_fill ? bin_of(g, size) : bin_above(g, size);
}

/* The smallest size whose bin this is. */
static inline uint32_t bin_start(const struct hw_general *g, uint32_t bin)
{
    if (bin < g->bin_linear_bins) {
        return ((bin + g->bin_first) << g->unit_shift) + g->bin_less;
    }
    const uint32_t steps = (uint32_t)1 << g->bin_steps_log2;
    const uint32_t beyond = bin - g->bin_linear_bins;
    const uint32_t octave = g->bin_octave + (beyond >> g->bin_steps_log2);
    return ((steps + (beyond & (steps - 1u))) << (octave - g->bin_steps_log2)) + g->bin_less;
}

HW_HOT uint32_t list_head(const struct hw_general *g, uint32_t size)
{
    if (g->bins) {
        return g->lists_at + bin_of(g, size) * g->list_stride;
    }
    return g->lists_at;
}

/* Where the bitmap has the mark of a bin. */
HW_HOT uint32_t mark_at(const struct hw_general *g, uint32_t bin)
{
    if (g->bins > 32u) {
        return g->bitmap_at + bin / 32u * 4u;
    }
    return g->bitmap_at;
}

HW_HOT void mark_bin(const struct hw_general *g, struct hw_heap *h, uint32_t bin)
{
    const uint32_t at = mark_at(g, bin);
    const uint32_t map = load4(h, at);
    const uint32_t bit = (uint32_t)1 << bin % 32u;
    if (map & bit) {
        return;
    }
    store4(h, at, map | bit);
    if (g->bins > 32u && map == 0) {
        store4(h, g->summary_at, load4(h, g->summary_at) | (uint32_t)1 << bin / 32u);
    }
}

/* Clears the mark of an empty bin. */
HW_HOT void unmark_bin(const struct hw_general *g, struct hw_heap *h, uint32_t bin)
{
    const uint32_t at = mark_at(g, bin);
    HW_ASSERT((load4(h, at) >> bin % 32u & 1u) != 0);
    const uint32_t left = load4(h, at) & ~((uint32_t)1 << bin % 32u);
    store4(h, at, left);
    if (g->bins > 32u && left == 0) {
        store4(h, g->summary_at, load4(h, g->summary_at) & ~((uint32_t)1 << bin / 32u));
    }
}

/* The next word of the bitmap from `index` on that is not zero, as the number of its first bin; none: the number of
 * bins. */
HW_HOT uint32_t next_marked_word(const struct hw_general *g, struct hw_heap *h, uint32_t index)
{
    if (g->bins <= 32u || index >= 32u) {
        return g->bins;
    }
    const uint32_t summary = load4(h, g->summary_at) & UINT32_MAX << index;
    return summary ? lowest_bit(summary) * 32u : g->bins;
}

/* ---- one list ---------------------------------------------------------------------------------------------------- */

HW_HOT void count_free(const struct hw_general *g, struct hw_heap *h, uint32_t change)
{
    if (g->fit == HW_BEST && g->search_percent < 100u) {
        HW_ASSERT(load4(h, g->count_at) + change != UINT32_MAX);
        store4(h, g->count_at, load4(h, g->count_at) + change);
    }
}

/* Whether the word `before` is the head of a list. */
HW_HOT int is_head(const struct hw_general *g, uint32_t before)
{
    return before - g->lists_at < g->bins * g->list_stride;
}

/* Puts `node` between the word `before` and the node `next`. */
HW_HOT void list_link(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t node, uint32_t next)
{
    HW_ASSERT(node != before);
    HW_ASSERT(node != next);
    note_linked(g, h, before, node);
    store_link(&g->links, h, before, node);
    store_link(&g->links, h, node, next);
    if (g->free_list == HW_DOUBLE) {
        if (g->heads_close && is_head(g, before)) {
            store_link(&g->links, h, node + g->links.field.bytes, 0);
        } else {
            store_link(&g->links, h, node + g->links.field.bytes, before);
        }
        store_link(&g->links, h, next + g->links.field.bytes, node); /* behind the last node: to HW_SCRATCH_AT */
    }
}

/* Whether each list knows its last node: behind its head lies the address of the word that a next node would go to. */
static inline int has_tails(const struct hw_general *g)
{
    return g->order == HW_FIFO || g->large_order == HW_FIFO;
}

/* The address of the tail word of the list whose last node is that of a block of this size. */
static inline uint32_t tail_of(const struct hw_general *g, struct hw_heap *h, uint32_t size, uint32_t node)
{
    if (g->unsorted && load_link(&g->links, h, g->unsorted_at + g->links.field.bytes) == node) {
        return g->unsorted_at + g->links.field.bytes;
    }
    if (!has_tails(g)) {
        /* Stores for a bin go to a word that is never read. */
        return g->links.field.bytes;
    }
    return list_head(g, size) + g->links.field.bytes;
}

/* Turns the list at `head` so that `next` comes first, which follows the node `before` in its middle; O(1). */
static inline void list_turn(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t before,
                             uint32_t next)
{
    const uint32_t first = load_link(&g->links, h, head);
    const uint32_t last = load_link(&g->links, h, head + g->links.field.bytes);
    store_link(&g->links, h, head, next);
    store_link(&g->links, h, last, first);
    store_link(&g->links, h, before, 0);
    store_link(&g->links, h, head + g->links.field.bytes, before);
    if (g->free_list == HW_DOUBLE) {
        store_link(&g->links, h, next + g->links.field.bytes, head);
        store_link(&g->links, h, first + g->links.field.bytes, last);
    }
}

/* Takes `node`, to which the word `before` points, out of the list of blocks of this size. The caller of a heap with
 * hardened links has checked that those of a node that is linked both ways lead back to it. */
HW_HOT void list_unlink(const struct hw_general *g, struct hw_heap *h, uint32_t size, uint32_t before, uint32_t node)
{
    HW_ASSERT(raw_link(&g->links, h, before) == node);
    note_unlinked(g, h, node);
    const uint32_t next = raw_link(&g->links, h, node);
    store_link(&g->links, h, before, next);
    if ((has_tails(g) || g->unsorted) && next == 0) {
        store_link(&g->links, h, tail_of(g, h, size, node), before);
    }
    if (g->free_list == HW_DOUBLE) {
        /* behind the last node: to HW_SCRATCH_AT */
        if (g->heads_close && is_head(g, before)) {
            store_link(&g->links, h, next + g->links.field.bytes, 0);
        } else {
            store_link(&g->links, h, next + g->links.field.bytes, before);
        }
    }
    if (g->search_from == HW_FROM_TRIED && next && before != list_head(g, size)) {
        list_turn(g, h, list_head(g, size), before, next);
    }
    if (g->bin_unmark && next == 0) {
        const uint32_t ahead = before - g->lists_at; /* bytes of lists ahead of this one, where its head points here */
        if (ahead < g->bins * g->list_stride) {
            unmark_bin(g, h, ahead / g->list_stride);
        }
    }
    if (g->fit == HW_NEXT && load4(h, g->rover_at) == node) {
        store4(h, g->rover_at, before);
    }
    count_free(g, h, UINT32_MAX);
}

/* The address of the link that points to `node`. */
HW_HOT uint32_t list_before(const struct hw_general *g, struct hw_heap *h, uint32_t size, uint32_t node)
{
    if (g->heads_close) {
        const uint32_t ahead = raw_link(&g->links, h, node + g->links.field.bytes);
        return ahead ? ahead : list_head(g, size);
    }
    if (g->free_list == HW_DOUBLE) {
        return raw_link(&g->links, h, node + g->links.field.bytes);
    }
    uint32_t before = list_head(g, size); /* walked from here, O(list) */
    skip_to_node(g, h, &before, node);
    uint32_t most = most_nodes(g, h);
    uint32_t next = load_link(&g->links, h, before);
    while (next != node && (!g->links.hardened || next) && may_step(g, h, &most)) {
        before = next;
        next = load_link(&g->links, h, next);
    }
    return before;
}

/* Lets the next search start with what was freed last, which follows the word `before` in its list. */
HW_HOT void start_from(const struct hw_general *g, struct hw_heap *h, uint32_t before)
{
    if (g->search_from == HW_FROM_FREED) {
        store4(h, g->rover_at, before);
    }
}

/* Whether the list keeps `other` ahead of a block b of this size. */
static inline int stays_ahead(const struct hw_general *g, struct hw_heap *h, const uint32_t order, uint32_t other,
                              uint32_t b, uint32_t size)
{
    if (order == HW_SIZE) {
        return word_size(g, load_word(g, h, other - g->node)) < size;
    }
    return other < b;
}

/* Appends a node to a list that knows its last one. */
static inline void list_append(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t node)
{
    const uint32_t tail_at = head + g->links.field.bytes;
    const uint32_t before = load_link(&g->links, h, tail_at);
    HW_ASSERT(raw_link(&g->links, h, before) == 0);
    list_link(g, h, before, node, 0);
    store_link(&g->links, h, tail_at, node);
    start_from(g, h, before);
}

/* Puts the node of a free block into the list at `head`. */
HW_HOT void list_insert(const struct hw_general *g, struct hw_heap *h, const uint32_t order, uint32_t head, uint32_t b,
                        uint32_t size)
{
    const uint32_t node = b + g->node;
    if (order == HW_FIFO) {
        list_append(g, h, head, node);
        return;
    }
    uint32_t before = head;
    skip_to_place(g, h, order, &before, b, size);
    uint32_t most = most_nodes(g, h);
    uint32_t next = load_link(&g->links, h, before);
    if (order == HW_ADDRESS || order == HW_SIZE) {
        /* O(list) */
        while (next && stays_ahead(g, h, order, next, b, size) && may_step(g, h, &most)) {
            before = next;
            next = load_link(&g->links, h, next);
        }
    }
    list_link(g, h, before, node, next);
    if (has_tails(g) && next == 0) {
        store_link(&g->links, h, head + g->links.field.bytes, node);
    }
    start_from(g, h, before);
}

/* Files a free block in its list. */
HW_HOT void freelist_add(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    count_free(g, h, 1);
    if (g->bins == 0) {
        list_insert(g, h, g->order, g->lists_at, b, size);
        return;
    }
    const uint32_t bin = bin_of(g, size);
    const uint32_t head = g->lists_at + bin * g->list_stride;
    HW_ASSERT(bin < g->bins);
    mark_bin(g, h, bin);
    if (g->large_order != g->order && !is_linear(g, size)) {
        list_insert(g, h, g->large_order, head, b, size);
        return;
    }
    list_insert(g, h, g->order, head, b, size);
}

/* Takes in a block that has become free. */
HW_HOT void freelist_insert(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    if (g->free_list == HW_IMPLICIT) {
        return;
    }
    if (g->free_list == HW_TREE) {
        tree_insert(g, h, g->lists_at, b + g->node, size);
        return;
    }
    if (g->unsorted) {
        count_free(g, h, 1);
        list_append(g, h, g->unsorted_at, b + g->node);
        return;
    }
    freelist_add(g, h, b, size);
}

/* Takes out the free block b, to which the word `before` leads, to be handed out. */
HW_HOT void freelist_unlink(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t b, uint32_t size)
{
    if (g->free_list == HW_IMPLICIT) {
        return;
    }
    if (g->free_list == HW_TREE) {
        tree_unlink(g, h, before, b + g->node);
        return;
    }
    list_unlink(g, h, size, before, b + g->node);
}

/* Whether `node` lies in its list where the word `before` leads to it; of a list that is linked both ways 0 will do. */
static inline int is_in_list(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t node)
{
    if (g->free_list == HW_DOUBLE) {
        return is_listed(&g->links, h, node) &&
               (before == 0 || raw_link(&g->links, h, node + g->links.field.bytes) == before);
    }
    return raw_link(&g->links, h, before) == node;
}

/* Whether the free block b with this word, to which the word `before` leads, may be taken out of its list: what it says
 * of itself can be, and nothing would be stored but where it is listed. What cannot be is counted. */
HW_COLD int link_is_valid(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t b, uint32_t word)
{
    if (!is_takeable(g, h, b, word)) {
        return 0;
    }
    if (g->free_list == HW_IMPLICIT || is_in_list(g, h, before, b + g->node)) {
        return 1;
    }
    count_misuse(g->links.misused_at, h);
    return 0;
}

/* Where the word lies that leads to the free block b of this size, as is_in_list() asks for it. */
static inline uint32_t freelist_before(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    if (g->free_list == HW_IMPLICIT || g->free_list == HW_DOUBLE) {
        return 0; /* not needed */
    }
    if (g->free_list == HW_TREE) {
        return tree_before(g, h, b + g->node, size);
    }
    return list_before(g, h, size, b + g->node);
}

/* Whether the neighbour b, which is free and has `size` bytes as far as is known, may be merged with. */
HW_COLD int may_merge(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    const uint32_t first = first_block(g, h);
    const uint32_t word = b - first < load4(h, g->top_at) - first ? load_word(g, h, b) : HW_USED;
    if (word_size(g, word) == size && is_takeable(g, h, b, word)) {
        if (g->free_list == HW_IMPLICIT || is_in_list(g, h, freelist_before(g, h, b, size), b + g->node)) {
            return 1;
        }
        count_misuse(g->links.misused_at, h);
        return 0;
    }
    if (word_size(g, word) != size) {
        count_misuse(g->links.misused_at, h);
    }
    return 0;
}

/* Takes out a free block that is to be merged. */
HW_HOT void freelist_remove(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    if (g->free_list == HW_IMPLICIT) {
        return;
    }
    const uint32_t node = b + g->node;
    if (g->free_list == HW_TREE) {
        tree_unlink(g, h, tree_before(g, h, node, size), node);
        return;
    }
    list_unlink(g, h, size, list_before(g, h, size, node), node);
}

/* Takes in what is left of a free block that was taken out of where the word `before` leads. In a tree in order of
 * addresses it belongs there, too, as nothing lies between and its block is smaller. */
static inline void freelist_insert_rest(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t b,
                                        uint32_t size)
{
    if (g->free_list == HW_TREE && g->fit == HW_FIRST) {
        tree_insert(g, h, before, b + g->node, size);
        return;
    }
    freelist_insert(g, h, b, size);
}

/* Puts the free block `to` in the place of the free block `from` in the one list. */
static inline void list_replace(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t from,
                                uint32_t to)
{
    const uint32_t node = to + g->node;
    const uint32_t next = load_link(&g->links, h, from + g->node);
    note_replaced(g, h, from + g->node, node);
    list_link(g, h, before, node, next);
    if (has_tails(g) && next == 0) {
        store_link(&g->links, h, g->lists_at + g->links.field.bytes, node);
    }
    if (g->fit == HW_NEXT && load4(h, g->rover_at) == from + g->node) {
        store4(h, g->rover_at, node);
    }
}

/* Forgets all free blocks. */
static inline void freelist_clear(const struct hw_general *g, struct hw_heap *h)
{
    if (g->fit == HW_NEXT || g->search_from == HW_FROM_LOWEST_FREE) {
        store4(h, g->rover_at, g->free_list == HW_IMPLICIT ? g->start : g->lists_at);
    }
    if (g->free_list == HW_IMPLICIT) {
        return;
    }
    note_cleared(g, h);
    const uint32_t lists = g->bins ? g->bins : 1u;
    for (uint32_t list = 0; list < lists; list++) {
        const uint32_t head = g->lists_at + list * g->list_stride;
        store_link(&g->links, h, head, 0);
        if (has_tails(g)) {
            store_link(&g->links, h, head + g->links.field.bytes, head);
        }
    }
    if (g->unsorted) {
        store_link(&g->links, h, g->unsorted_at, 0);
        store_link(&g->links, h, g->unsorted_at + g->links.field.bytes, g->unsorted_at);
        store4(h, g->remainder_at, 0);
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

/* general/take.h: handing out a free block, whole or split. */
#ifndef HW_GENERAL_TAKE_H
#define HW_GENERAL_TAKE_H

#include "general/bins.h"

/* With a queue, the remainder of a small request is kept in mind. */
static inline void remember_remainder(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    if (g->unsorted && is_linear(g, size)) {
        store4(h, g->remainder_at, b);
    }
}

/* Whether a remainder leaves the place that the block which was split had in its list. */
static inline int is_refiled(const struct hw_general *g)
{
    return g->bins || g->order == HW_SIZE || g->refile || g->free_list == HW_TREE;
}

/*  | free: size + rest           |
 *  | used: size  | free: rest    |   */
HW_HOT uint32_t split_from_head(const struct hw_general *g, struct hw_heap *h, struct hw_found found, uint32_t size,
                                uint32_t rest)
{
    HW_ASSERT(rest >= g->min_block && (rest & (((uint32_t)1 << g->unit_shift) - 1u)) == 0);
    const uint32_t remainder = found.b + size;
    if (g->free_list != HW_IMPLICIT) {
        if (is_refiled(g)) {
            freelist_unlink(g, h, found.before, found.b, size + rest);
        } else {
            list_replace(g, h, found.before, found.b, remainder);
        }
    }
    write_used(g, h, found.b, size, found.word & HW_PREV_USED);
    if (g->refile && returns_to_top(g, h, remainder + rest)) {
        note_block_made(h, g->overhead);
        lower_top(g, h, remainder);
        return found.b;
    }
    clear_tag(g, h, remainder);
    write_free(g, h, remainder, rest, HW_PREV_USED);
    remember_remainder(g, h, remainder, size);
    if (g->boundary_tags && merges(g, h, size + rest) && !merges(g, h, rest)) {
        mark_before_used(g, h, remainder + rest);
    }
    if (is_refiled(g)) {
        freelist_insert_rest(g, h, found.before, remainder, rest);
    }
    note_block_made(h, g->overhead);
    return found.b;
}

/*  | free: rest + size           |
 *  | free: rest  | used: size    |   */
HW_HOT uint32_t split_from_tail(const struct hw_general *g, struct hw_heap *h, struct hw_found found, uint32_t size,
                                uint32_t rest)
{
    HW_ASSERT(rest >= g->min_block && (rest & (((uint32_t)1 << g->unit_shift) - 1u)) == 0);
    const uint32_t used = found.b + rest;
    const int refile = g->free_list != HW_IMPLICIT && is_refiled(g);
    if (refile) {
        freelist_unlink(g, h, found.before, found.b, rest + size);
    }
    clear_tag(g, h, used);
    write_free(g, h, found.b, rest, found.word & HW_PREV_USED);
    remember_remainder(g, h, found.b, size);
    write_used(g, h, used, size, merges(g, h, rest) ? 0 : HW_PREV_USED);
    if (g->boundary_tags && merges(g, h, rest + size)) {
        mark_before_used(g, h, used + size);
    }
    if (refile) {
        freelist_insert_rest(g, h, found.before, found.b, rest);
    }
    note_block_made(h, g->overhead);
    return used;
}

/* Hands out a free block as it is. */
HW_HOT uint32_t take_whole(const struct hw_general *g, struct hw_heap *h, struct hw_found found)
{
    const uint32_t size = word_size(g, found.word);
    freelist_unlink(g, h, found.before, found.b, size);
    store_word(g, h, found.b, found.word | HW_USED);
    if (g->boundary_tags && merges(g, h, size)) {
        mark_before_used(g, h, found.b + size);
    }
    return found.b;
}

/* Hands out what a request needs of a free block. */
HW_HOT uint32_t take(const struct hw_general *g, struct hw_heap *h, struct hw_found found, uint32_t size)
{
    if (checks_links(g) && !link_is_valid(g, h, found.before, found.b, found.word)) {
        return 0;
    }
    HW_ASSERT((found.word & HW_USED) == 0);
    HW_ASSERT(word_size(g, found.word) >= size);
    note_chosen(g, h, found.b, word_size(g, found.word), size);
    note_rest(g, h, word_size(g, found.word) - size);
    if (g->split) {
        const uint32_t rest = word_size(g, found.word) - size;
        if (rest >= g->split_least) {
            if (g->split_tail) {
                raise_reach(g, h, found.b + rest, size);
                return split_from_tail(g, h, found, size, rest);
            }
            raise_reach(g, h, found.b, size);
            return split_from_head(g, h, found, size, rest);
        }
    }
    raise_reach(g, h, found.b, word_size(g, found.word));
    return take_whole(g, h, found);
}

#endif

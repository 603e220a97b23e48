/* general/release.h: freeing a block: coalescing, and insertion into a free list. */
#ifndef HW_GENERAL_RELEASE_H
#define HW_GENERAL_RELEASE_H

#include "general/find.h"

/* Frees a block whose list is in order of addresses, so that the way to its place passes its neighbours. */
static inline void release_on_the_way(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    uint32_t before_lower = 0;
    uint32_t before = g->lists_at;
    skip_to_neighbours(g, h, &before_lower, &before, b);
    uint32_t next = load_link(&g->links, h, before);
    const uint32_t node = b + g->node;
    while (next && next < node) {
        before_lower = before;
        before = next;
        next = load_link(&g->links, h, next);
    }
    HW_ASSERT(before < node);
    HW_ASSERT(next == 0 || next >= node + size);
    if (next == node + size) {
        const uint32_t next_size = word_size(g, load_word(g, h, b + size));
        if (merges(g, h, next_size) &&
            (!checks_links(g) || link_is_valid(g, h, before, b + size, load_word(g, h, b + size)))) {
            list_unlink(g, h, next_size, before, next);
            note_block_gone(h, g->overhead);
            size += next_size;
            next = load_link(&g->links, h, before);
        }
    }
    uint32_t lower = 0;
    if (before_lower) {
        const uint32_t lower_size = word_size(g, load_word(g, h, before - g->node));
        if (before + lower_size == node && merges(g, h, lower_size) &&
            (!checks_links(g) || is_takeable(g, h, before - g->node, load_word(g, h, before - g->node)))) {
            lower = before;
            b = lower - g->node;
            size += lower_size;
            note_block_gone(h, g->overhead);
        }
    }
    if (g->top == HW_TOP_LAST && b + size == load4(h, g->top_at)) {
        if (lower) {
            list_unlink(g, h, size, before_lower, lower);
        }
        lower_top(g, h, b);
        return;
    }
    write_free(g, h, b, size, 0);
    if (lower == 0) {
        count_free(g, h, 1);
        list_link(g, h, before, node, next);
    }
    start_from(g, h, before);
}

/* Nothing free lies below where searches start. */
static inline void keep_lowest(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    if (g->search_from == HW_FROM_LOWEST_FREE && b < load4(h, g->rover_at)) {
        store4(h, g->rover_at, b);
    }
}

/* Files a block as free, without a look at its neighbours. */
HW_HOT void release_alone(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size, uint32_t flags)
{
    HW_ASSERT(size >= g->min_block && b >= g->start);
    write_free(g, h, b, size, flags);
    freelist_insert(g, h, b, size);
    if (g->free_list == HW_IMPLICIT) {
        start_from(g, h, b);
        keep_lowest(g, h, b);
    }
    if (g->coalesce == HW_DEFERRED) {
        store4(h, g->pending_at, 1);
    }
}

/* Merges with the block behind, where that is free; returns the size gained. `next_word` is that block's word.
 * `stays`: it keeps its place in the list for now. */
HW_HOT uint32_t merge_next(const struct hw_general *g, struct hw_heap *h, uint32_t next, uint32_t next_word,
                           const int stays)
{
    if (!merges_with(g, h, next_word)) {
        return 0;
    }
    const uint32_t size = word_size(g, next_word);
    HW_ASSERT(size >= g->min_block);
    if (checks_links(g) && !may_merge(g, h, next, size)) {
        return 0;
    }
    if (!stays) {
        freelist_remove(g, h, next, size);
    }
    note_block_gone(h, g->overhead);
    return size;
}

/* Merges with the block ahead, where that is free; returns the size gained. */
HW_HOT uint32_t merge_previous(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    uint32_t size;
    if (g->boundary_tags) {
        if (has_flag_before(g) && (word & HW_PREV_USED)) {
            return 0;
        }
        size = size_before(g, h, b);
        if (g->tag_in_header && size == 0) {
            return 0;
        }
    } else {
        const uint32_t previous = block_before(g, h, b);
        if (previous == 0 || !merges_with(g, h, load_word(g, h, previous))) {
            return 0;
        }
        size = b - previous;
    }
    HW_ASSERT(size >= g->min_block && size <= b - g->start);
    if (checks_links(g) && !may_merge(g, h, b - size, size)) {
        return 0;
    }
    if (g->merged == HW_MERGED_FILED) {
        freelist_remove(g, h, b - size, size);
    }
    note_block_gone(h, g->overhead);
    return size;
}

/* Makes the block b, which ends at the top, part of it. */
HW_HOT void join_top(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    if (g->victim_up_to && b == load4(h, g->victim_at + 4u)) {
        b = load4(h, g->victim_at);
    }
    lower_top(g, h, b);
}

/* Frees the first block of a pool that grows downwards, with the free block or the last remainder behind it. */
static inline void release_first(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    const uint32_t next = b + size;
    if (g->victim_up_to && next == load4(h, g->victim_at)) {
        const uint32_t victim_end = load4(h, g->victim_at + 4u);
        store4(h, g->victim_at, 0);
        store4(h, g->victim_at + 4u, 0);
        raise_first(g, h, b, victim_end);
        return;
    }
    const uint32_t end = next + merge_next(g, h, next, load_word(g, h, next), 0);
    if (end != next) {
        mark_before_used(g, h, end);
    }
    raise_first(g, h, b, end);
}

/* Frees a block and merges it with its free neighbours, the last remainder and the top; each boundary is loaded once.
 *     | free | b: used | free |  =>  | free                  |   */
HW_HOT void release_beside_victim(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size,
                                  uint32_t word)
{
    if (is_first_of_below(g, h, b)) {
        release_first(g, h, b, size);
        return;
    }
    const uint32_t next = b + size;
    b -= merge_previous(g, h, b, word);
    if (g->top == HW_TOP_LAST && next == load4(h, g->top_at)) {
        join_top(g, h, b);
        return;
    }
    if (next == load4(h, g->victim_at)) {
        store4(h, g->victim_at, b);
        note_block_gone(h, g->overhead);
        return;
    }
    const uint32_t next_word = load_word(g, h, next);
    const uint32_t end = next + merge_next(g, h, next, next_word, 0);
    if (b == load4(h, g->victim_at + 4u)) {
        store4(h, g->victim_at + 4u, end);
        note_block_gone(h, g->overhead);
        if (end != next) {
            mark_before_used(g, h, end);
        }
        return;
    }
    if (end == next) {
        store_word(g, h, next, next_word & ~(uint32_t)HW_PREV_USED);
    }
    release_alone(g, h, b, end - b, HW_PREV_USED);
}

/* Frees a block and merges it with its free neighbours. */
static inline void release_merged(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size,
                                  uint32_t word)
{
    if (is_first_of_below(g, h, b)) {
        release_first(g, h, b, size);
        return;
    }
    const uint32_t top = open_top(g, h);
    const uint32_t next = b + size;
    uint32_t next_word = HW_USED;
    uint32_t gained = 0;
    uint32_t ahead = 0;
    if (g->end_word || next != top) {
        next_word = load_word(g, h, next);
        gained = merge_next(g, h, next, next_word, g->merged == HW_MERGED_AT_NEXT);
        size += gained;
    }
    if (g->coalesce == HW_IMMEDIATE) {
        /* | free | b: used | free |  =>  | free                  | */
        ahead = merge_previous(g, h, b, word);
        b -= ahead;
        size += ahead;
    }
    keep_rover_on_block(g, h, b, b + size);
    if (g->top == HW_TOP_LAST && b + size == top) {
        if (g->merged != HW_MERGED_FILED && ahead) {
            freelist_remove(g, h, b, size);
        }
        lower_top(g, h, b);
        return;
    }
    if (has_flag_before(g) && gained == 0) {
        store_word(g, h, next, next_word & ~(uint32_t)HW_PREV_USED);
    }
    if (g->merged == HW_MERGED_AT_NEXT && gained) {
        if (ahead) {
            freelist_remove(g, h, b, ahead);
        }
        list_replace(g, h, list_before(g, h, gained, next + g->node), next, b);
        write_free(g, h, b, size, HW_PREV_USED);
        return;
    }
    if (g->merged != HW_MERGED_FILED && ahead) {
        write_free(g, h, b, size, HW_PREV_USED);
        return;
    }
    release_alone(g, h, b, size, HW_PREV_USED);
}

/* Frees the block b, whose word has been read. */
HW_HOT void release_block(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    const uint32_t size = word_size(g, word);
    HW_ASSERT((word & HW_USED) != 0);
    HW_ASSERT(size >= g->min_block);
    HW_ASSERT(b + size <= load4(h, g->top_at));
    if (g->checks) {
        store_word(g, h, b, word & ~(uint32_t)HW_USED);
    }
    if ((g->coalesce == HW_IMMEDIATE || g->coalesce == HW_FORWARD) && merges(g, h, size)) {
        if (g->coalesce == HW_IMMEDIATE && g->order == HW_ADDRESS && !g->boundary_tags && !g->bins &&
            g->free_list != HW_IMPLICIT && g->free_list != HW_TREE) {
            release_on_the_way(g, h, b, size);
            return;
        }
        if (g->victim_up_to) {
            release_beside_victim(g, h, b, size, word);
            return;
        }
        release_merged(g, h, b, size, word);
        return;
    }
    if (returns_to_top(g, h, b + size)) {
        lower_top(g, h, b);
        return;
    }
    release_alone(g, h, b, size, word & HW_PREV_USED);
}

/* Frees a block where that is rare. */
HW_COLD void release_rarely(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    release_block(g, h, b, word);
}

/* Frees a block with neither a free block before it nor the last remainder on either side. */
HW_COLD void release_apart(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    const uint32_t size = word_size(g, word);
    if (!merges(g, h, size)) {
        release_block(g, h, b, word);
        return;
    }
    if (g->checks) {
        store_word(g, h, b, word & ~(uint32_t)HW_USED);
    }
    if (is_first_of_below(g, h, b)) {
        release_first(g, h, b, size);
        return;
    }
    const uint32_t next = b + size;
    if (g->top == HW_TOP_LAST && next == load4(h, g->top_at)) {
        lower_top(g, h, b);
        return;
    }
    const uint32_t next_word = load_word(g, h, next);
    const uint32_t end = next + merge_next(g, h, next, next_word, 0);
    if (end == next) {
        store_word(g, h, next, next_word & ~(uint32_t)HW_PREV_USED);
    }
    release_alone(g, h, b, end - b, HW_PREV_USED);
}

/* Frees a block that begins where the last remainder ends. */
HW_COLD void release_behind_victim(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    const uint32_t size = word_size(g, word);
    if (!merges(g, h, size)) {
        release_block(g, h, b, word);
        return;
    }
    if (g->checks) {
        store_word(g, h, b, word & ~(uint32_t)HW_USED);
    }
    const uint32_t next = b + size;
    if (g->top == HW_TOP_LAST && next == load4(h, g->top_at)) {
        lower_top(g, h, load4(h, g->victim_at));
        return;
    }
    const uint32_t end = next + merge_next(g, h, next, load_word(g, h, next), 0);
    store4(h, g->victim_at + 4u, end);
    note_block_gone(h, g->overhead);
    if (end != next) {
        mark_before_used(g, h, end);
    }
}

/* Frees a block with a free block before it, by its flag, or the last remainder on either side; otherwise returns 0 and
 * changes nothing. */
HW_HOT int release_beside_free(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    const uint32_t size = word_size(g, word);
    if ((word & HW_PREV_USED) == 0) {
        release_rarely(g, h, b, word);
        return 1;
    }
    if (b + size == load4(h, g->victim_at)) {
        if (is_first_of_below(g, h, b) || !merges(g, h, size)) {
            release_rarely(g, h, b, word);
            return 1;
        }
        if (g->checks) {
            store_word(g, h, b, word & ~(uint32_t)HW_USED);
        }
        store4(h, g->victim_at, b);
        note_block_gone(h, g->overhead);
        return 1;
    }
    if (b == load4(h, g->victim_at + 4u)) {
        release_behind_victim(g, h, b, word);
        return 1;
    }
    return 0;
}

#endif

/* general/top.h: where the blocks end: memory that is taken last, and what is given back to it. */
#ifndef HW_GENERAL_TOP_H
#define HW_GENERAL_TOP_H

#include "general/freelist.h"

/* Cuts a used block from the top; the caller has seen that there is room. */
HW_HOT uint32_t cut_from_top(const struct hw_general *g, struct hw_heap *h, uint32_t top, uint32_t size)
{
    HW_ASSERT(top >= g->start);
    HW_ASSERT(size <= load4(h, g->limit_at) - top);
    store4(h, g->top_at, top + size);
    write_used(g, h, top, size, HW_PREV_USED);
    clear_tag(g, h, top);
    note_block_made(h, g->overhead);
    return top;
}

/* Cuts a used block from below the first one; the caller has seen that there is room. The high-water mark is as far as
 * the blocks that grow toward these may come, so it goes down as well, but not below where they end. */
HW_HOT uint32_t cut_from_below(const struct hw_general *g, struct hw_heap *h, uint32_t size, uint32_t high)
{
    const uint32_t b = load4(h, g->limit_at) - size;
    HW_ASSERT(b >= load4(h, g->facing_at) && high >= load4(h, g->facing_at) && high <= b);
    store4(h, g->limit_at, b);
    store4(h, g->high_at, high);
    write_used(g, h, b, size, HW_PREV_USED);
    clear_tag(g, h, b);
    note_block_made(h, g->overhead);
    return b;
}

/* A block from below the first one, from memory that was in use before, by either side; 0 where there is none. */
HW_HOT uint32_t reuse_below(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    const uint32_t high = load4(h, g->high_at);
    if (high - load4(h, g->facing_at) < size) {
        return 0;
    }
    return cut_from_below(g, h, size, high - size);
}

/* A block from memory that was in use before; 0 where there is none. */
HW_HOT uint32_t reuse_top(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    if (g->top == HW_TOP_BELOW) {
        return reuse_below(g, h, size);
    }
    if (g->top != HW_TOP_LAST) {
        return 0;
    }
    const uint32_t top = load4(h, g->top_at);
    if (load4(h, g->high_at) - top < size) {
        return 0;
    }
    return cut_from_top(g, h, top, size);
}

static inline void raise_high(const struct hw_general *g, struct hw_heap *h, uint32_t end)
{
    const uint32_t high = load4(h, g->high_at);
    HW_ASSERT(end <= load4(h, g->limit_at));
    if (end > high) {
        store4(h, g->high_at, end);
        g->region ? note_covered(h, end - high) : note_shared_covered(h, end - high);
    }
}

/* If blocks cover all memory, the high-water mark is the end of the highest used block. */
HW_HOT void raise_reach(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    if (g->top == HW_TOP_LIST) {
        raise_high(g, h, g->split_tail ? g->start + (load4(h, g->top_at) - b) : b + size);
    }
}

/* Where the top begins that a freed block joins; 0: it joins none. */
static inline uint32_t open_top(const struct hw_general *g, struct hw_heap *h)
{
    if (g->end_word) {
        return 0;
    }
    return load4(h, g->top_at);
}

/* Whether walks over all blocks start at a rover. */
static inline int has_walk_rover(const struct hw_general *g)
{
    return g->free_list == HW_IMPLICIT && (g->fit == HW_NEXT || g->search_from == HW_FROM_LOWEST_FREE);
}

/* Whether a block that ends there goes back to the top as it is freed, though blocks merge ahead of a search alone. */
static inline int returns_to_top(const struct hw_general *g, struct hw_heap *h, uint32_t end)
{
    return g->coalesce == HW_SWEEP && g->top == HW_TOP_LAST && end == load4(h, g->top_at);
}

/* Whether b is the first block, and memory is taken from below it. */
HW_HOT int is_first_of_below(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    if (g->top == HW_TOP_BELOW) {
        return b == load4(h, g->limit_at);
    }
    return 0;
}

/* Gives what lies from the first block b up to `end`, where the next one begins, back to the memory below. */
HW_HOT void raise_first(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t end)
{
    HW_ASSERT(b == load4(h, g->limit_at) && end <= load4(h, g->top_at));
    store4(h, g->limit_at, end);
    store4(h, g->high_at, load4(h, g->high_at) + (end - b));
    note_block_gone(h, g->overhead);
}

/* Gives the end of the blocks back to the top. */
HW_HOT void lower_top(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    HW_ASSERT(b >= g->start);
    HW_ASSERT(b < load4(h, g->top_at));
    note_top(g, h, b);
    store4(h, g->top_at, b);
    note_block_gone(h, g->overhead);
    if (g->victim_up_to && load4(h, g->victim_at + 4u) >= b) {
        /* a last remainder above the new top has become part of it */
        store4(h, g->victim_at, 0);
        store4(h, g->victim_at + 4u, 0);
    }
    if (has_walk_rover(g) && load4(h, g->rover_at) > b) {
        store4(h, g->rover_at, b);
    }
}

#endif

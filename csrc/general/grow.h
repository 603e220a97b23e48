/* general/grow.h: blocks from memory that was never used. */
#ifndef HW_GENERAL_GROW_H
#define HW_GENERAL_GROW_H

#include "general/release.h"

/* Makes all memory up to `limit` one free block. */
static inline void fill_up_to(const struct hw_general *g, struct hw_heap *h, uint32_t limit)
{
    const uint32_t end_word = g->end_word ? g->header : 0;
    if (limit - g->start < end_word + g->min_block) {
        return;
    }
    const uint32_t size = (limit - g->start - end_word) >> g->unit_shift << g->unit_shift;
    store4(h, g->top_at, g->start + size);
    note_block_made(h, g->overhead);
    if (g->end_word) {
        /* a word behind it marks the end */
        store_word(g, h, g->start + size, size_word(g, 0, HW_USED));
        clear_tag(g, h, g->start);
        clear_tag(g, h, g->start + size);
    }
    write_free(g, h, g->start, size, HW_PREV_USED);
    if (has_flag_before(g) && !merges(g, h, size)) {
        mark_before_used(g, h, g->start + size);
    }
    freelist_insert(g, h, g->start, size);
}

/* Marks the end of blocks that grow downwards, of which there is none as yet. */
static inline void open_below(const struct hw_general *g, struct hw_heap *h)
{
    const uint32_t top = load4(h, g->top_at);
    write_used(g, h, top, 0, HW_PREV_USED);
    clear_tag(g, h, top);
    freelist_clear(g, h);
}

/* The free block that ends at the top; 0 where there is none. O(list), which is in order of address. */
static inline uint32_t free_below_top(const struct hw_general *g, struct hw_heap *h)
{
    uint32_t last = 0;
    uint32_t node = load_link(&g->links, h, g->lists_at);
    skip_to_last(g, h, &node);
    while (node) {
        last = node;
        node = load_link(&g->links, h, node);
    }
    if (last && last - g->node + word_size(g, load_word(g, h, last - g->node)) == load4(h, g->top_at)) {
        return last - g->node;
    }
    return 0;
}

/* Extends the free block that ends at the top by what a request lacks, because the memory above does not hold all of
 * it; 0 where there is no such block, or too little memory even so. */
static inline uint32_t extend_last(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    const uint32_t b = free_below_top(g, h);
    if (b == 0) {
        return 0;
    }
    const uint32_t top = load4(h, g->top_at);
    const uint32_t had = top - b;
    if (had > size || load4(h, g->limit_at) - b < size) {
        return 0;
    }
    if (checks_links(g) && !may_merge(g, h, b, had)) {
        return 0;
    }
    freelist_remove(g, h, b, had);
    raise_high(g, h, b + size);
    store4(h, g->top_at, b + size);
    write_used(g, h, b, size, HW_PREV_USED);
    return b;
}

/* A block from below the first one that makes both sides together larger than they ever were; 0 where they meet. */
static inline uint32_t grow_below(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    const uint32_t facing = load4(h, g->facing_at);
    if (load4(h, g->limit_at) - facing < size) {
        return 0;
    }
    const uint32_t reused = load4(h, g->high_at) - facing;
    if (reused >= size) {
        return reuse_below(g, h, size);
    }
    note_covered(h, size - reused);
    return cut_from_below(g, h, size, facing);
}

/* A block that raises the high-water mark; 0 where the arena ends. */
static inline uint32_t grow_block(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    if (g->top == HW_TOP_LIST) {
        return 0;
    }
    if (g->top == HW_TOP_BELOW) {
        return grow_below(g, h, size);
    }
    const uint32_t more = size < g->grow_least ? g->grow_least : size;
    const uint32_t top = load4(h, g->top_at);
    HW_ASSERT(top >= g->start && top <= load4(h, g->limit_at));
    if (load4(h, g->limit_at) - top < more) {
        return g->top == HW_TOP_EXTEND ? extend_last(g, h, size) : 0;
    }
    raise_high(g, h, top + more);
    const uint32_t b = cut_from_top(g, h, top, more);
    if (g->grow_least) {
        /* What a growth gives beyond the request is a free block like any other: a search finds the request's in it. */
        release_rarely(g, h, b, load_word(g, h, b));
        return search_and_take(g, h, size);
    }
    return b;
}

#endif

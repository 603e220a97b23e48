/* harden.h: what a free looks at before it believes a pointer and the metadata beside it.
 *
 *     none         nothing
 *     frees        that the pointer is an object's: inside the heap, aligned, its block in use and in no quick list
 *     neighbours   and that the block's size lies within the pool, and its neighbours' words and tags agree with it
 *
 * A wrong pointer is counted, the hook HW_MISUSED() is called, and the heap stays as it is. Each look is O(1), and none
 * leaves the arena: a size is believed only once it is known to lie between the pool's first block and its last.
 *
 * Sources: glibc 2.26 and later ("corrupted size vs. prev_size"); Zephyr's CONFIG_SYS_HEAP_HARDENING, for the levels.
 */
#ifndef HW_HARDEN_H
#define HW_HARDEN_H

#include "pool_buddy.h"
#include "pool_compact.h"
#include "pool_fixed.h"
#include "pool_general.h"
#include "pool_partition.h"

/* Tells the platform of a wrong pointer, once it is counted: generated code lets the user define it. */
#ifndef HW_MISUSED
#define HW_MISUSED(heap) ((void)(heap))
#endif

/* Whether a block of `size` bytes can begin at b, below `end`. */
HW_HOT int is_size_within(const struct hw_general *g, uint32_t b, uint32_t size, uint32_t end)
{
    return size >= g->min_block && size <= end - b && (size & (((uint32_t)1 << g->unit_shift) - 1u)) == 0;
}

/* Whether the block that ends at b, which a flag or tag says is free, tells of itself what its tag does. */
static inline int is_free_ahead_sound(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    const uint32_t size = size_before(g, h, b);
    if (g->tag_in_header && size == 0) {
        return 1; /* none to merge with */
    }
    if (size < g->min_block || size > b - g->start) {
        return 0;
    }
    return (load_word(g, h, b - size) | HW_PREV_USED) == size_word(g, size, HW_PREV_USED);
}

/* Whether the block at `next` knows that the one before it is in use, and could lie there. */
HW_HOT int is_next_sound(const struct hw_general *g, struct hw_heap *h, uint32_t next, uint32_t top)
{
    if (next == top && !g->end_word) {
        return 1;
    }
    if (g->victim_up_to && next == load4(h, g->victim_at)) {
        return 1;
    }
    const uint32_t word = load_word(g, h, next);
    if (has_flag_before(g) && (word & HW_PREV_USED) == 0) {
        return 0;
    }
    if (g->tag_in_header && size_before(g, h, next) != 0) {
        return 0;
    }
    return word_size(g, word) <= top - next;
}

/* Whether the metadata at the used block with this payload, and beside it, agrees. The kinds whose blocks lie in fixed
 * places have none that could disagree. */

HW_HOT int general_is_sound(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = block_of(g, h, at);
    const uint32_t top = load4(h, g->top_at);
    const uint32_t word = load_word(g, h, b);
    const uint32_t size = word_size(g, word);
    if (!is_size_within(g, b, size, top) || !is_next_sound(g, h, b + size, top)) {
        return 0;
    }
    if (!g->boundary_tags || (has_flag_before(g) && (word & HW_PREV_USED))) {
        return 1;
    }
    return is_free_ahead_sound(g, h, b);
}

static inline int fixed_is_sound(const struct hw_fixed *f, struct hw_heap *h, uint32_t at)
{
    (void)f;
    (void)h;
    (void)at;
    return 1;
}

static inline int buddy_is_sound(const struct hw_buddy *y, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = at - y->header;
    const uint32_t top = load4(h, y->top_at);
    const uint32_t size = order_size(y, load_order(y, h, b) >> 1);
    if (((b - y->start) & (size - 1u)) != 0 || size > top - b) {
        return 0;
    }
    return b + size == top || load_order(y, h, b + size) >> 1 < y->orders;
}

static inline int partition_is_sound(const struct hw_partition *g, struct hw_heap *h, uint32_t at)
{
    const uint32_t table = partition_table(g, h);
    const uint32_t i = partition_number(g, at);
    const uint32_t count = load_number(g, h, count_at(g, table, i)) >> 1;
    if (count == 0 || count > load4(h, g->top_at) + 1u - i) {
        return 0;
    }
    return g->coalesce == HW_NEVER || load_number(g, h, first_at(g, table, i + count - 1u)) == i;
}

#endif

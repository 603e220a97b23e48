/* general/sound.h: consistency of a block's metadata with its neighbours' and with the pool's boundaries. */
#ifndef HW_GENERAL_SOUND_H
#define HW_GENERAL_SOUND_H

#include "general/block.h"

/* Whether the header of the free block that ends at b, as a flag or tag claims, agrees with its tag. */
HW_HOT int is_free_ahead_sound(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    const uint32_t size = size_before(g, h, b);
    if (g->tag_in_header && size == 0) {
        return 1; /* none to merge with */
    }
    if (!is_size_within(g, first_block(g, h), size, b)) {
        return 0;
    }
    return (load_word(g, h, b - size) | HW_PREV_USED) == size_word(g, size, HW_PREV_USED);
}

/* Whether the metadata of the free block b, with this header word, is plausible. */
static inline int is_free_sound(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word, uint32_t top)
{
    const uint32_t size = word_size(g, word);
    if (!is_size_within(g, b, size, top)) {
        return 0;
    }
    return !g->boundary_tags || (b + size == top && !g->end_word) || size_before(g, h, b + size) == size;
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
    if (g->checks == HW_CHECKS_FULL && merges_with(g, h, word)) {
        return is_free_sound(g, h, next, word, top);
    }
    return word_size(g, word) <= top - next;
}

HW_HOT int general_is_sound(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = block_of(g, h, at);
    const uint32_t top = load4(h, g->top_at);
    const uint32_t word = load_word(g, h, b);
    const uint32_t size = word_size(g, word);
    if (!is_size_within(g, b, size, top)) {
        return 0;
    }
    if (g->checks != HW_CHECKS_FULL && g->word.bytes == 4) {
        return 1; /* the header is masked, which vouches for the size; neighbours are looked at when they are merged */
    }
    if (!is_next_sound(g, h, b + size, top)) {
        return 0;
    }
    if (!g->boundary_tags || (has_flag_before(g) && (word & HW_PREV_USED))) {
        return 1;
    }
    return is_free_ahead_sound(g, h, b);
}

/* Whether the blocks that end with the arena, and those that grow toward them, leave something between them, or
 * nothing. */
static inline int is_gap_sound(const struct hw_general *g, struct hw_heap *h, uint32_t end)
{
    const uint32_t first = load4(h, g->limit_at);
    const uint32_t facing = load4(h, g->facing_at);
    return facing >= g->start && facing <= first && first <= end && load4(h, g->high_at) - facing <= first - facing &&
           ((end - first) & (((uint32_t)1 << g->unit_shift) - 1u)) == 0;
}

/* Adds the pool's boundaries to a seal that has the heap's. */
static inline uint32_t general_sum_of_bounds(const struct hw_general *g, struct hw_heap *h, uint32_t sum)
{
    sum = with_bound(sum, load4(h, g->top_at));
    if (g->region) {
        sum = with_bound(with_bound(sum, load4(h, g->high_at)), load4(h, g->limit_at));
    }
    if (g->victim_up_to) {
        sum = with_bound(with_bound(sum, load4(h, g->victim_at)), load4(h, g->victim_at + 4u));
    }
    if (g->rover_at) {
        sum = with_bound(sum, load4(h, g->rover_at));
    }
    return sum;
}

static inline int general_is_bounded(const struct hw_general *g, struct hw_heap *h, uint32_t end)
{
    const uint32_t top = load4(h, g->top_at);
    const uint32_t high = load4(h, g->high_at);
    const uint32_t limit = load4(h, g->limit_at);
    if (g->top == HW_TOP_BELOW && !is_gap_sound(g, h, end)) {
        return 0;
    }
    if (g->top != HW_TOP_BELOW &&
        (limit > (g->region ? g->start + g->region : end) || high > limit || top < g->start || top > limit)) {
        return 0;
    }
    if (g->victim_up_to) {
        const uint32_t first = first_block(g, h);
        const uint32_t victim = load4(h, g->victim_at);
        const uint32_t victim_end = load4(h, g->victim_at + 4u);
        if (victim_end != 0 &&
            (victim < first || victim > victim_end || victim_end > top ||
             (((victim - first) | (victim_end - first)) & (((uint32_t)1 << g->unit_shift) - 1u)) != 0)) {
            return 0;
        }
    }
    if (g->top == HW_TOP_BELOW) {
        return 1;
    }
    if (g->end_word && top != g->start) {
        return limit - top >= g->header && ((top - g->start) & (((uint32_t)1 << g->unit_shift) - 1u)) == 0;
    }
    return g->top == HW_TOP_LIST || top <= high;
}

#endif

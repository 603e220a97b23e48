/* partition/check.h: looking at the groups from outside: the walk over them, what a request could have, invariants. */
#ifndef HW_PARTITION_CHECK_H
#define HW_PARTITION_CHECK_H

#include "partition/groups.h"
#include "statistics.h"

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Describes the group that begins at `at`, its descriptors not counted; 0 behind the last one, or where none can be. */
static inline int partition_describe(const struct hw_partition *g, struct hw_heap *h, uint32_t at,
                                     struct hw_block *block)
{
    const uint32_t i = partition_number(g, at);
    const uint32_t top = load4(h, g->top_at);
    if (i > top) {
        return 0;
    }
    const uint32_t word = load_number(g, h, count_at(g, partition_table(g, h), i));
    if (word >> 1 > top + 1u - i) {
        return 0;
    }
    block->offset = at;
    block->size = (word >> 1) * g->partition;
    block->header = 0;
    block->state = word & HW_GROUP_USED ? HW_BLOCK_USED : HW_BLOCK_FREE;
    return block->size != 0;
}

static inline int partition_block_at(const struct hw_partition *g, struct hw_heap *h, uint32_t at,
                                     struct hw_block *block)
{
    return partition_describe(g, h, at ? at : g->start, block);
}

/* ---- what a request could have ----------------------------------------------------------------------------------- */

/* Bytes of the partitions above the top, those that can still be made included. */
static inline uint32_t partition_above(const struct hw_partition *g, struct hw_heap *h)
{
    const uint32_t top = load4(h, g->top_at);
    uint32_t left = g->most - top;
    if (g->grow) {
        const uint32_t high = load4(h, g->high_at);
        const uint32_t more = (load4(h, g->limit_at) - high) / (g->partition + g->descriptor);
        const uint32_t had = partition_number(g, high) - 1u - top;
        left = had + more < left ? had + more : left;
    }
    if (left * g->partition < g->trailer) {
        return 0;
    }
    return left * g->partition - g->trailer;
}

/* Bytes of a region of counted partitions, descriptors included, that no group has covered yet. */
static inline uint32_t partition_uncovered(const struct hw_partition *g, struct hw_heap *h)
{
    return (g->most + 1u - partition_number(g, load4(h, g->high_at))) * (g->partition + g->descriptor);
}

static inline void partition_statistics(const struct hw_partition *g, struct hw_heap *h, struct hw_statistics *stats)
{
    if (g->grow) {
        stats->peak += load4(h, g->end_at) - load4(h, g->limit_at);
    } else {
        stats->peak -= partition_uncovered(g, h);
    }
}

static inline uint32_t partition_largest(const struct hw_partition *g, struct hw_heap *h, uint32_t looks)
{
    const uint32_t table = partition_table(g, h);
    const uint32_t top = load4(h, g->top_at);
    const uint32_t lists = g->lists == 32u ? UINT32_MAX : ((uint32_t)1 << g->lists) - 1u;
    const uint32_t filled = g->lists > 1u ? load4(h, g->bitmap_at) & lists : 1u;
    const uint32_t list = filled ? highest_bit(filled) : 0;
    uint32_t largest = 0;
    uint32_t left = smaller(looks, top);
    uint32_t i = filled ? load4(h, g->head_at + 4u * list) : 0;
    for (; left != 0 && i != 0 && i <= top; left--) {
        largest = larger(largest, load_number(g, h, count_at(g, table, i)) >> 1);
        i = load_number(g, h, next_at(g, table, i));
    }
    if (largest * g->partition < g->trailer) {
        largest = 0;
    }
    largest = largest ? largest * g->partition - g->trailer : 0;
    return larger(largest, partition_above(g, h));
}

/* ---- invariants -------------------------------------------------------------------------------------------------- */

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

/* Adds the pool's boundaries to a seal that has the heap's. */
static inline uint32_t partition_sum_of_bounds(const struct hw_partition *g, struct hw_heap *h, uint32_t sum)
{
    sum = with_bound(sum, load4(h, g->top_at));
    return with_bound(sum, load4(h, g->grow ? g->end_at : g->high_at));
}

static inline int partition_is_bounded(const struct hw_partition *g, struct hw_heap *h, uint32_t end)
{
    const uint32_t top = load4(h, g->top_at);
    const uint32_t high = load4(h, g->high_at);
    if (high < g->start || top > g->most || top > (high - g->start) / g->partition) {
        return 0;
    }
    if (g->grow) {
        const uint32_t limit = load4(h, g->limit_at);
        return limit <= end && high <= limit && top <= (end - limit) / g->descriptor;
    }
    return high <= g->end;
}

/* Checks one list of free groups, of at most `most`, and adds their number to *listed. */
static inline int check_free_groups(const struct hw_partition *g, struct hw_heap *h, uint32_t list, uint32_t most,
                                    uint32_t *listed)
{
    const uint32_t table = partition_table(g, h);
    uint32_t before = 0;
    uint32_t key = 0;
    uint32_t i = load4(h, g->head_at + 4u * list);
    if (g->lists > 1u && (load4(h, g->bitmap_at) >> list & 1u) != (i != 0)) {
        return HW_BROKEN_LIST;
    }
    while (i) {
        if (i > load4(h, g->top_at)) {
            return HW_BROKEN_BOUNDS;
        }
        const uint32_t word = load_number(g, h, count_at(g, table, i));
        const uint32_t this_key = g->order == HW_SIZE ? word >> 1 : i;
        if ((word & HW_GROUP_USED) || *listed == most || (g->order != HW_LIFO && this_key < key) ||
            (g->lists > 1u && group_list(g, word >> 1) != list)) {
            return HW_BROKEN_LIST;
        }
        if (load_number(g, h, previous_at(g, table, i)) != before) {
            return HW_BROKEN_LINK;
        }
        *listed += 1u;
        key = this_key;
        before = i;
        i = load_number(g, h, next_at(g, table, i));
    }
    return 0;
}

/* Checks all lists of free groups, which hold `most`. */
static inline int check_group_lists(const struct hw_partition *g, struct hw_heap *h, uint32_t most)
{
    uint32_t listed = 0;
    if (g->lists > 1u && g->lists < 32u && load4(h, g->bitmap_at) >> g->lists != 0) {
        return HW_BROKEN_LIST;
    }
    for (uint32_t list = 0; list < g->lists; list++) {
        const int broken = check_free_groups(g, h, list, most, &listed);
        if (broken) {
            return broken;
        }
    }
    return listed == most ? 0 : HW_BROKEN_COUNT;
}

static inline int partition_check(const struct hw_partition *g, struct hw_heap *h)
{
    const uint32_t table = partition_table(g, h);
    const uint32_t top = load4(h, g->top_at);
    uint32_t word = HW_GROUP_USED;
    uint32_t free_groups = 0;
    uint32_t i = 1;
    while (i <= top) {
        const uint32_t previous = word;
        word = load_number(g, h, count_at(g, table, i));
        const uint32_t count = word >> 1;
        if (count == 0 || count > top + 1u - i) {
            return HW_BROKEN_SIZE;
        }
        free_groups += (word & HW_GROUP_USED) == 0;
        if (g->coalesce) {
            if (((previous | word) & HW_GROUP_USED) == 0) {
                return HW_BROKEN_MERGE;
            }
            if (load_number(g, h, first_at(g, table, i + count - 1u)) != i) {
                return HW_BROKEN_FLAGS;
            }
        }
        i += count;
    }
    if (g->coalesce && (word & HW_GROUP_USED) == 0) {
        return HW_BROKEN_MERGE;
    }
    return check_group_lists(g, h, free_groups);
}

#endif

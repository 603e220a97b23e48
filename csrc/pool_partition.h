/* pool_partition.h: groups of contiguous partitions of one size, described outside the data.
 *
 *     counted:  | descriptor 1, 2, ... n | partition 1 | 2 | ... | n |
 *     growing:  | partition 1 | 2 | ... ->       <- ... | descriptor 2 | descriptor 1 | end of the arena
 *
 *     descriptor:  | number of partitions, used | first of the group | next | previous | not used |
 *
 * A request takes as many adjacent partitions as it needs: a group. The first descriptor of a group holds its number of
 * partitions, whether it is in use, and, while it is free, its links to other free groups; the last one holds the start
 * of the group. So both neighbours of a group are found by arithmetic, and freeing is O(1) apart from keeping the list
 * in order. Nothing that a program does to its payloads can damage the descriptors by running over an end.
 *
 * Partitions are numbered from 1; 0 is none. Those above the top have never been used or came back to it: they are
 * taken last, so the highest top ever is the smallest pool that serves the same requests.
 *
 * Free groups are in one list, or in one for each number of partitions, of which the last holds all larger groups, with
 * a bitmap of the lists that are not empty: then a group of exactly the requested number, or of the next larger one, is
 * found in O(1), except in the last list.
 *
 * Source: Elsayed and Galal, "Variable versus fixed-size pools for memory management in highly optimized protocol stack
 * implementations": partitions, groups, descriptors. Order, fit, merging and lists by number are our choice, see
 * docs/recipes.md.
 */
#ifndef HW_POOL_PARTITION_H
#define HW_POOL_PARTITION_H

#include "partition/check.h"

/* ---- the top ----------------------------------------------------------------------------------------------------- */

/* Whether `count` partitions above `top` have been in use before. */
static inline int partition_was_used(const struct hw_partition *g, struct hw_heap *h, uint32_t top, uint32_t count)
{
    return load4(h, g->high_at) - partition_address(g, top + 1u) >= count * g->partition;
}

/* Makes sure of memory for `count` partitions above `top`, and of their descriptors; 0 where there is none. */
static inline int partition_raise(const struct hw_partition *g, struct hw_heap *h, uint32_t top, uint32_t count)
{
    if (count > g->most - top) {
        return 0;
    }
    const uint32_t high = load4(h, g->high_at);
    const uint32_t end = partition_address(g, top + count + 1u);
    if (end <= high) {
        return 1;
    }
    const uint32_t added = (end - high) / g->partition;
    if (g->grow) {
        const uint32_t limit = load4(h, g->limit_at);
        if ((limit - high) / (g->partition + g->descriptor) < added) {
            return 0;
        }
        store4(h, g->limit_at, limit - added * g->descriptor);
    }
    store4(h, g->high_at, end);
    note_covered(h, added * (g->partition + g->descriptor));
    return 1;
}

/* A used group from above the top; the caller has seen that there is room. */
static inline uint32_t partition_cut_top(const struct hw_partition *g, struct hw_heap *h, uint32_t top, uint32_t count)
{
    HW_ASSERT(count <= g->most - top);
    store4(h, g->top_at, top + count);
    write_group(g, h, partition_table(g, h), top + 1u, count, HW_GROUP_USED);
    note_block_made(h, count * g->descriptor);
    return partition_address(g, top + 1u);
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* Serves n bytes without raising the high-water mark: the address of the payload, or 0. */
static inline uint32_t partition_find(const struct hw_partition *g, struct hw_heap *h, uint32_t n)
{
    const uint32_t count = partitions_for(g, n);
    const uint32_t table = partition_table(g, h);
    struct hw_group group = group_search(g, h, table, count);
    if (group.first && g->checks >= HW_CHECKS_NEIGHBOURS && !group_link_is_valid(g, h, table, group)) {
        return 0;
    }
    if (group.first) {
        group_cut(g, h, table, group, count);
        write_group(g, h, table, group.first, count, HW_GROUP_USED);
        return partition_address(g, group.first);
    }
    const uint32_t top = load4(h, g->top_at);
    return partition_was_used(g, h, top, count) ? partition_cut_top(g, h, top, count) : 0;
}

/* Serves n bytes from partitions that were never used: the address of the payload, or 0. */
static inline uint32_t partition_grow(const struct hw_partition *g, struct hw_heap *h, uint32_t n)
{
    const uint32_t count = partitions_for(g, n);
    const uint32_t top = load4(h, g->top_at);
    return partition_raise(g, h, top, count) ? partition_cut_top(g, h, top, count) : 0;
}

static inline uint32_t partition_capacity(const struct hw_partition *g, struct hw_heap *h, uint32_t at)
{
    const uint32_t word = load_number(g, h, count_at(g, partition_table(g, h), partition_number(g, at)));
    return (word >> 1) * g->partition - g->trailer;
}

static inline uint32_t partition_block_bytes(const struct hw_partition *g, struct hw_heap *h, uint32_t at)
{
    return partition_capacity(g, h, at) + g->trailer;
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

/* The free group that ends right before partition `i`; 0 where there is none. */
static inline uint32_t free_group_before(const struct hw_partition *g, struct hw_heap *h, uint32_t table, uint32_t i)
{
    if (i == 1u) {
        return 0;
    }
    const uint32_t first = load_number(g, h, first_at(g, table, i - 1u));
    if (g->checks >= HW_CHECKS_NEIGHBOURS && (first == 0 || first >= i)) {
        count_misuse(g->misused_at, h);
        return 0;
    }
    return load_number(g, h, count_at(g, table, first)) & HW_GROUP_USED ? 0 : first;
}

/* Gives the partitions from `i` to the top back to it; `lower`, if not 0, is a free group right before them. */
static inline void partition_lower_top(const struct hw_partition *g, struct hw_heap *h, uint32_t table, uint32_t top,
                                       uint32_t i, uint32_t lower)
{
    if (lower) {
        group_unlink(g, h, table, lower, i - lower);
        i = lower;
    }
    store4(h, g->top_at, i - 1u);
    note_block_gone(h, (top + 1u - i) * g->descriptor);
}

/* Puts a free group that is to merge with `lower` and `upper`, 0 where there is none, into the one list in order of
 * address: it takes the place of either. */
static inline void file_between(const struct hw_partition *g, struct hw_heap *h, uint32_t table, uint32_t i,
                                uint32_t lower, uint32_t upper)
{
    if (lower) {
        if (upper) {
            group_unlink(g, h, table, upper, 0);
        }
    } else if (upper) {
        group_replace(g, h, table, upper, i, 0);
    } else {
        group_file(g, h, table, i, 0);
    }
}

/* Frees the group `i` and merges it with its free neighbours `lower` and `upper`, 0 where there is none. */
static inline void release_group(const struct hw_partition *g, struct hw_heap *h, uint32_t table, uint32_t i,
                                 uint32_t count, uint32_t lower, uint32_t upper)
{
    const uint32_t first = lower ? lower : i;
    uint32_t above = 0;
    if (upper) {
        above = load_number(g, h, count_at(g, table, upper)) >> 1;
    }
    count += i - first + above;
    if (g->order == HW_ADDRESS && g->lists == 1u) {
        file_between(g, h, table, i, lower, upper);
    } else {
        if (lower) {
            group_unlink(g, h, table, lower, i - lower);
        }
        if (upper) {
            group_unlink(g, h, table, upper, above);
        }
        group_file(g, h, table, first, count);
    }
    write_group(g, h, table, first, count, 0);
}

/* Frees the group `i`. */
static inline void free_group(const struct hw_partition *g, struct hw_heap *h, uint32_t i)
{
    const uint32_t table = partition_table(g, h);
    const uint32_t count = load_number(g, h, count_at(g, table, i)) >> 1;
    if (g->coalesce == HW_NEVER) {
        group_file(g, h, table, i, count);
        write_group(g, h, table, i, count, 0);
        return;
    }
    if (g->checks) {
        store_number(g, h, count_at(g, table, i), count << 1);
    }
    const uint32_t top = load4(h, g->top_at);
    uint32_t lower = free_group_before(g, h, table, i);
    if (g->checks >= HW_CHECKS_NEIGHBOURS && lower &&
        !group_link_is_valid(g, h, table, (struct hw_group){lower, i - lower})) {
        lower = 0;
    }
    uint32_t upper = i + count;
    if (upper > top) {
        partition_lower_top(g, h, table, top, i, lower);
        return;
    }
    const uint32_t behind = load_number(g, h, count_at(g, table, upper));
    if (behind & HW_GROUP_USED) {
        upper = 0;
    } else if (g->checks >= HW_CHECKS_NEIGHBOURS &&
               !group_link_is_valid(g, h, table, (struct hw_group){upper, behind >> 1})) {
        upper = 0;
    }
    release_group(g, h, table, i, count, lower, upper);
}

/* Frees the group with this payload. */
static inline void partition_release(const struct hw_partition *g, struct hw_heap *h, uint32_t at)
{
    free_group(g, h, partition_number(g, at));
}

/* ---- resizing ---------------------------------------------------------------------------------------------------- */

/* Takes `more` partitions behind those up to `i` - 1, from the top or a free group; 0 where there are none. */
static inline int take_behind(const struct hw_partition *g, struct hw_heap *h, uint32_t table, uint32_t i,
                              uint32_t more)
{
    const uint32_t top = load4(h, g->top_at);
    if (i > top) {
        if (!partition_raise(g, h, top, more)) {
            return 0;
        }
        store4(h, g->top_at, top + more);
        note_block_made(h, more * g->descriptor);
        return 1;
    }
    if (g->coalesce == HW_NEVER) {
        return 0;
    }
    const uint32_t word = load_number(g, h, count_at(g, table, i));
    if ((word & HW_GROUP_USED) || word >> 1 < more) {
        return 0;
    }
    struct hw_group group = {i, word >> 1};
    group_cut(g, h, table, group, more);
    return 1;
}

/* Makes the group with this payload hold n bytes where it lies: returns `at`, or 0 where it cannot, and nothing has
 * changed. */
static inline uint32_t partition_resize(const struct hw_partition *g, struct hw_heap *h, uint32_t at, uint32_t n)
{
    const uint32_t i = partition_number(g, at);
    const uint32_t table = partition_table(g, h);
    const uint32_t have = load_number(g, h, count_at(g, table, i)) >> 1;
    const uint32_t need = partitions_for(g, n);
    if (need == have) {
        return at;
    }
    if (need < have) {
        write_group(g, h, table, i, need, HW_GROUP_USED);
        write_group(g, h, table, i + need, have - need, HW_GROUP_USED);
        free_group(g, h, i + need);
        return at;
    }
    if (!take_behind(g, h, table, i + have, need - have)) {
        return 0;
    }
    write_group(g, h, table, i, need, HW_GROUP_USED);
    return at;
}

/* ---- which are its own ------------------------------------------------------------------------------------------- */

/* Whether the payload lies in the pool's region. */
static inline int partition_owns(const struct hw_partition *g, struct hw_heap *h, uint32_t at)
{
    (void)h;
    return at >= g->start && at < g->end;
}

/* Whether `at` is the payload of a used group, by its descriptor. */
static inline int partition_is_used(const struct hw_partition *g, struct hw_heap *h, uint32_t at)
{
    if (at < g->start || (at - g->start) % g->partition != 0) {
        return 0;
    }
    const uint32_t i = partition_number(g, at);
    if (i > load4(h, g->top_at)) {
        return 0;
    }
    return (load_number(g, h, count_at(g, partition_table(g, h), i)) & HW_GROUP_USED) != 0;
}

static inline void partition_init(const struct hw_partition *g, struct hw_heap *h)
{
    for (uint32_t list = 0; list < g->lists; list++) {
        store4(h, g->head_at + 4u * list, 0);
    }
    if (g->lists > 1u) {
        store4(h, g->bitmap_at, 0);
    }
    store4(h, g->top_at, 0);
    store4(h, g->high_at, g->start);
}

#endif

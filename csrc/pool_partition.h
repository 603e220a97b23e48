/* pool_partition.h: groups of contiguous partitions of one size, described outside the data.
 *
 *     counted:  | descriptor 1, 2, ... n | partition 1 | 2 | ... | n |
 *     growing:  | partition 1 | 2 | ... ->       <- ... | descriptor 2 | descriptor 1 | end of the arena
 *
 *     descriptor:  | number of partitions, used | first of the group | next | previous | not used |
 *
 * A request takes as many partitions as it needs, side by side: a group. Of a group's descriptors the first says how
 * many partitions it has and whether it is in use, and, while it is free, links it to other free groups; the last says
 * where the group starts. So both neighbours of a group are found by arithmetic, and freeing is O(1) apart from keeping
 * the list in order. Nothing that a program does to its payloads can damage the descriptors by running over an end.
 *
 * Partitions are numbered from 1; 0 is none. Those above the top have never been used or came back to it: they are
 * taken last, so the highest top ever is the smallest pool that serves the same requests.
 *
 * Free groups are in one list, or in one for each number of partitions, of which the last holds all larger groups and a
 * bitmap tells those that hold any: then a group of exactly the partitions asked for, or the next larger ones, is found
 * in O(1), but for the last list.
 *
 * Source: Elsayed and Galal, "Variable versus fixed-size pools for memory management in highly optimized protocol stack
 * implementations": partitions, groups, descriptors. Order, fit, merging and lists by number are our choice, see
 * docs/recipes.md.
 */
#ifndef HW_POOL_PARTITION_H
#define HW_POOL_PARTITION_H

#include "block.h"

enum { HW_GROUP_USED = 1 /* in a group's first descriptor, beside twice the number of partitions */ };

/* Partitions side by side. */
struct hw_group {
    uint32_t first; /* 0 is none */
    uint32_t count;
};

/* ---- descriptors ----------------------------------------------------------------------------------------------- */

/* Where the descriptors begin, or where they end if they grow downwards. */
static inline uint32_t partition_table(const struct hw_partition *g, struct hw_heap *h)
{
    if (g->grow) {
        return load4(h, g->end_at);
    }
    return g->descriptors;
}

static inline uint32_t descriptor_at(const struct hw_partition *g, uint32_t table, uint32_t i)
{
    if (g->grow) {
        return table - i * g->descriptor;
    }
    return table + (i - 1u) * g->descriptor;
}

/* Where a descriptor tells twice the partitions of the group that starts here, and whether it is in use. */
static inline uint32_t count_at(const struct hw_partition *g, uint32_t table, uint32_t i)
{
    return descriptor_at(g, table, i);
}

/* Where it tells the start of the group that ends here. */
static inline uint32_t first_at(const struct hw_partition *g, uint32_t table, uint32_t i)
{
    return descriptor_at(g, table, i) + g->field.bytes;
}

/* Where it tells the next free group, and then the previous one. */
static inline uint32_t next_at(const struct hw_partition *g, uint32_t table, uint32_t i)
{
    return descriptor_at(g, table, i) + 2u * g->field.bytes;
}

static inline uint32_t previous_at(const struct hw_partition *g, uint32_t table, uint32_t i)
{
    return descriptor_at(g, table, i) + 3u * g->field.bytes;
}

static inline uint32_t load_number(const struct hw_partition *g, struct hw_heap *h, uint32_t at)
{
    return load_field(&g->field, h, at);
}

static inline void store_number(const struct hw_partition *g, struct hw_heap *h, uint32_t at, uint32_t value)
{
    store_field(&g->field, h, at, value);
}

/* Describes the group of `count` partitions from `i` on; `used` is HW_GROUP_USED or 0. */
static inline void write_group(const struct hw_partition *g, struct hw_heap *h, uint32_t table, uint32_t i,
                               uint32_t count, uint32_t used)
{
    note_group(g, h, i, count);
    store_number(g, h, count_at(g, table, i), count << 1 | used);
    if (g->coalesce) {
        store_number(g, h, first_at(g, table, i + count - 1u), i);
    }
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static inline uint32_t partition_address(const struct hw_partition *g, uint32_t i)
{
    return g->start + (i - 1u) * g->partition;
}

static inline uint32_t partition_number(const struct hw_partition *g, uint32_t at)
{
    return (at - g->start) / g->partition + 1u;
}

/* Partitions that n bytes take. */
static inline uint32_t partitions_for(const struct hw_partition *g, uint32_t n)
{
    return (n + g->trailer + g->partition - 1u) / g->partition;
}

/* ---- the lists of free groups ------------------------------------------------------------------------------------ */

/* The number of the list for groups of `count` partitions, from 0 on. */
static inline uint32_t group_list(const struct hw_partition *g, uint32_t count)
{
    return (count < g->lists ? count : g->lists) - 1u;
}

static inline uint32_t group_head(const struct hw_partition *g, uint32_t count)
{
    if (g->lists == 1u) {
        return g->head_at;
    }
    return g->head_at + 4u * group_list(g, count);
}

static inline void group_link(const struct hw_partition *g, struct hw_heap *h, uint32_t table, uint32_t head,
                              uint32_t before, uint32_t i, uint32_t next)
{
    note_group_linked(g, h, head, before, i);
    store_number(g, h, next_at(g, table, i), next);
    store_number(g, h, previous_at(g, table, i), before);
    if (before) {
        store_number(g, h, next_at(g, table, before), i);
    } else {
        store4(h, head, i);
    }
    if (next) {
        store_number(g, h, previous_at(g, table, next), i);
    }
}

/* Takes the free group `i` out of its list. It has `count` partitions. */
static inline void group_unlink(const struct hw_partition *g, struct hw_heap *h, uint32_t table, uint32_t i,
                                uint32_t count)
{
    note_group_unlinked(g, h, i);
    const uint32_t next = load_number(g, h, next_at(g, table, i));
    const uint32_t before = load_number(g, h, previous_at(g, table, i));
    if (before) {
        store_number(g, h, next_at(g, table, before), next);
    } else {
        store4(h, group_head(g, count), next);
    }
    if (next) {
        store_number(g, h, previous_at(g, table, next), before);
    }
    if (g->lists > 1u && next == 0 && before == 0) {
        store4(h, g->bitmap_at, load4(h, g->bitmap_at) & ~((uint32_t)1 << group_list(g, count)));
    }
}

/* Puts the free group `to` in the place of the free group `from` of the same list. Both have `count` partitions. */
static inline void group_replace(const struct hw_partition *g, struct hw_heap *h, uint32_t table, uint32_t from,
                                 uint32_t to, uint32_t count)
{
    const uint32_t next = load_number(g, h, next_at(g, table, from));
    note_group_unlinked(g, h, from);
    group_link(g, h, table, group_head(g, count), load_number(g, h, previous_at(g, table, from)), to, next);
}

/* Whether the list keeps the free group `other` ahead of the group `i`. That has `count` partitions. */
static inline int group_stays_ahead(const struct hw_partition *g, struct hw_heap *h, uint32_t table, uint32_t other,
                                    uint32_t i, uint32_t count)
{
    if (g->order == HW_SIZE) {
        return load_number(g, h, count_at(g, table, other)) >> 1 < count;
    }
    return other < i;
}

/* Files a free group in its list. */
static inline void group_file(const struct hw_partition *g, struct hw_heap *h, uint32_t table, uint32_t i,
                              uint32_t count)
{
    const uint32_t head = group_head(g, count);
    uint32_t before = 0;
    uint32_t next = load4(h, head);
    if (g->checks >= HW_CHECKS_NEIGHBOURS && next > load4(h, g->top_at)) {
        count_misuse(g->misused_at, h); /* a list that leads elsewhere is lost */
        next = 0;
    }
    if (g->lists > 1u && next == 0) {
        store4(h, g->bitmap_at, load4(h, g->bitmap_at) | (uint32_t)1 << group_list(g, count));
    }
    if (g->order != HW_LIFO) {
        skip_to_group_place(g, h, head, &before, &next, i, count);
        while (next && group_stays_ahead(g, h, table, next, i, count)) {
            before = next;
            next = load_number(g, h, next_at(g, table, next));
        }
    }
    group_link(g, h, table, head, before, i, next);
}

/* The free group of this list that serves `count` partitions. O(free groups of the list). */
static inline struct hw_group group_walk(const struct hw_partition *g, struct hw_heap *h, uint32_t table, uint32_t head,
                                         uint32_t count)
{
    struct hw_group found = {0, 0};
    const uint32_t top = g->checks >= HW_CHECKS_NEIGHBOURS ? load4(h, g->top_at) : 0;
    uint32_t i = load4(h, head);
    if (skip_groups(g, h, head, count, &i, &found)) {
        return found;
    }
    while (i) {
        if (g->checks >= HW_CHECKS_NEIGHBOURS && i > top) {
            count_misuse(g->misused_at, h);
            found.first = 0;
            return found;
        }
        const uint32_t have = load_number(g, h, count_at(g, table, i)) >> 1;
        if (have >= count && (g->fit == HW_FIRST || found.first == 0 || have < found.count)) {
            found.first = i;
            found.count = have;
            if (g->fit == HW_FIRST || have == count) {
                return found;
            }
        }
        i = load_number(g, h, next_at(g, table, i));
    }
    return found;
}

/* Whether the group `i`, which a list leads to, is a free one of so many partitions, and its list leads back to it;
 * what is not is counted. */
HW_COLD int group_may_take(const struct hw_partition *g, struct hw_heap *h, uint32_t table, struct hw_group group)
{
    const uint32_t top = load4(h, g->top_at);
    if (group.first != 0 && group.first <= top && group.count != 0 && group.count <= top + 1u - group.first &&
        load_number(g, h, count_at(g, table, group.first)) == group.count << 1) {
        const uint32_t next = load_number(g, h, next_at(g, table, group.first));
        const uint32_t before = load_number(g, h, previous_at(g, table, group.first));
        if ((next == 0 || (next <= top && load_number(g, h, previous_at(g, table, next)) == group.first)) &&
            (before ? before <= top && load_number(g, h, next_at(g, table, before)) == group.first
                    : load4(h, group_head(g, group.count)) == group.first)) {
            return 1;
        }
    }
    count_misuse(g->misused_at, h);
    return 0;
}

/* The free group that serves `count` partitions: the first of the first list that holds any of so many or more. O(1)
 * where that is not the last list, which is walked. */
static inline struct hw_group group_search(const struct hw_partition *g, struct hw_heap *h, uint32_t table,
                                           uint32_t count)
{
    struct hw_group found = {0, 0};
    if (g->lists == 1u) {
        return group_walk(g, h, table, g->head_at, count);
    }
    const uint32_t filled = load4(h, g->bitmap_at) & UINT32_MAX << group_list(g, count);
    if (filled == 0) {
        return found;
    }
    const uint32_t list = lowest_bit(filled);
    if (list + 1u == g->lists) {
        return group_walk(g, h, table, g->head_at + 4u * list, count);
    }
    found.first = load4(h, g->head_at + 4u * list);
    found.count = list + 1u;
    return found;
}

/* Takes the first `count` partitions out of a free group; what is left of it stays free. */
static inline void group_cut(const struct hw_partition *g, struct hw_heap *h, uint32_t table, struct hw_group group,
                             uint32_t count)
{
    const uint32_t rest = group.first + count;
    const uint32_t left = group.count - count;
    if (left == 0) {
        group_unlink(g, h, table, group.first, count);
        return;
    }
    if (g->order == HW_SIZE || (g->lists > 1u && left < g->lists)) {
        group_unlink(g, h, table, group.first, group.count);
        group_file(g, h, table, rest, left);
    } else {
        group_replace(g, h, table, group.first, rest, left);
    }
    write_group(g, h, table, rest, left, 0);
}

/* ---- the top -------------------------------------------------------------------------------------------------------
 */

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
    store4(h, g->top_at, top + count);
    write_group(g, h, partition_table(g, h), top + 1u, count, HW_GROUP_USED);
    note_block_made(h, count * g->descriptor);
    return partition_address(g, top + 1u);
}

/* ---- allocating ----------------------------------------------------------------------------------------------------
 */

/* Serves n bytes without raising the high-water mark: the address of the payload, or 0. */
static inline uint32_t partition_find(const struct hw_partition *g, struct hw_heap *h, uint32_t n)
{
    const uint32_t count = partitions_for(g, n);
    const uint32_t table = partition_table(g, h);
    struct hw_group group = group_search(g, h, table, count);
    if (group.first && g->checks >= HW_CHECKS_NEIGHBOURS && !group_may_take(g, h, table, group)) {
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

/* ---- freeing -------------------------------------------------------------------------------------------------------
 */

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
        !group_may_take(g, h, table, (struct hw_group){lower, i - lower})) {
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
               !group_may_take(g, h, table, (struct hw_group){upper, behind >> 1})) {
        upper = 0;
    }
    release_group(g, h, table, i, count, lower, upper);
}

/* Frees the group with this payload. */
static inline void partition_release(const struct hw_partition *g, struct hw_heap *h, uint32_t at)
{
    free_group(g, h, partition_number(g, at));
}

/* ---- resizing ------------------------------------------------------------------------------------------------------
 */

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

/* Whether the payload lies in the pool's region. */
static inline int partition_owns(const struct hw_partition *g, struct hw_heap *h, uint32_t at)
{
    (void)h;
    return at >= g->start && at < g->end;
}

/* Whether `at` is the payload of a group in use, as far as its descriptor tells. */
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

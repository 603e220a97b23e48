/* partition/groups.h: the descriptors of groups, and the lists of those that are free. */
#ifndef HW_PARTITION_GROUPS_H
#define HW_PARTITION_GROUPS_H

#include "arena.h"
#include "arithmetic.h"

enum { HW_GROUP_USED = 1 /* in a group's first descriptor, together with twice the number of partitions */ };

/* Partitions side by side. */
struct hw_group {
    uint32_t first; /* 0 is none */
    uint32_t count;
};

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

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

/* Address of a descriptor's first field: twice the number of partitions of the group that starts here, plus 1 if it is
 * used. */
static inline uint32_t count_at(const struct hw_partition *g, uint32_t table, uint32_t i)
{
    return descriptor_at(g, table, i);
}

/* Address of the field that holds the start of the group that ends here. */
static inline uint32_t first_at(const struct hw_partition *g, uint32_t table, uint32_t i)
{
    return descriptor_at(g, table, i) + g->field.bytes;
}

/* Address of the link to the next free group; the link to the previous one follows. */
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
    HW_ASSERT(before == 0 || load_number(g, h, next_at(g, table, before)) == i);
    HW_ASSERT(next == 0 || load_number(g, h, previous_at(g, table, next)) == i);
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
    const uint32_t top = g->checks >= HW_CHECKS_NEIGHBOURS ? load4(h, g->top_at) : 0;
    if (g->checks >= HW_CHECKS_NEIGHBOURS && next > top) {
        count_misuse(g->misused_at, h); /* a list that leads elsewhere is lost */
        next = 0;
    }
    if (g->lists > 1u && next == 0) {
        store4(h, g->bitmap_at, load4(h, g->bitmap_at) | (uint32_t)1 << group_list(g, count));
    }
    if (g->order != HW_LIFO) {
        skip_to_group_place(g, h, head, &before, &next, i, count);
        uint32_t most = top;
        while (next && group_stays_ahead(g, h, table, next, i, count)) {
            before = next;
            next = load_number(g, h, next_at(g, table, next));
            if (g->checks >= HW_CHECKS_NEIGHBOURS && (next > top || most-- == 0)) {
                count_misuse(g->misused_at, h); /* what is behind it is lost, or the list has no end */
                next = 0;
            }
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
    uint32_t most = top;
    uint32_t i = load4(h, head);
    if (skip_groups(g, h, head, count, &i, &found)) {
        return found;
    }
    while (i) {
        if (g->checks >= HW_CHECKS_NEIGHBOURS && (i > top || most-- == 0)) {
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

/* Whether the group that a list links to is free, has the expected number of partitions, and is linked back to;
 * otherwise counts damage. */
HW_COLD int group_link_is_valid(const struct hw_partition *g, struct hw_heap *h, uint32_t table, struct hw_group group)
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

/* The free group that serves `count` partitions: the first of the first list that holds groups of at least that many.
 * O(1), except for the last list, which is walked. */
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
    HW_ASSERT(count <= group.count);
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

#endif

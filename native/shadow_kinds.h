/* shadow_kinds.h: the first free block of a class of fixed size, and free groups of partitions. */
#ifndef HW_SHADOW_KINDS_H
#define HW_SHADOW_KINDS_H

#include "shadow.h"

/* ---- classes of fixed-size blocks ----------------------------------------------------------------------------------
 */

static HW_NOINLINE void flag_changed(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at,
                                     uint32_t size)
{
    struct shadow_pool *s = shadow_of(f, h);
    struct spot spot;
    struct sequence *q = sequence_with(&s->nodes, at, &spot);
    if (q) {
        sequence_resize(q, spot, size);
        return;
    }
    q = &s->lists[class_];
    const struct spot end = {q->places, 0};
    sequence_insert(q, end, at, size);
    drop_failed(h, &s->nodes);
}

static inline void note_flag(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at, uint32_t taken)
{
    if (h->engine.shadow) {
        flag_changed(f, h, class_, at, taken == 0);
    }
}

/* Rank of the first block of a class that is not taken, with its address; the number of all where there is none. */
static HW_NOINLINE uint32_t first_free_in(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t *at)
{
    const struct spot first = {0, 0};
    struct sequence *q = &shadow_of(f, h)->lists[class_];
    const struct spot spot = first_sized(q, first, 1u, INT32_MAX);
    *at = is_end(q, spot) ? 0 : address_at(q, spot);
    return rank_of(q, spot);
}

static inline void skip_taken(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t *at)
{
    if (h->engine.shadow) {
        uint32_t found;
        const uint32_t passed = first_free_in(f, h, class_, &found);
        count_skipped(h, (uint64_t)passed * (loads_of(&f->links.field) + loads_of(&f->word)));
        *at = found;
    }
}

static inline int skip_flags(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t *i)
{
    if (h->engine.shadow) {
        uint32_t found;
        *i = first_free_in(f, h, class_, &found);
        count_skipped(h, *i);
        return found != 0;
    }
    return 1;
}

/* ---- groups of partitions ------------------------------------------------------------------------------------------
 */

static HW_NOINLINE void group_written(const struct hw_partition *g, struct hw_heap *h, uint32_t i, uint32_t count)
{
    struct spot spot;
    struct sequence *q = sequence_with(&shadow_of(g, h)->nodes, i, &spot);
    if (q) {
        sequence_resize(q, spot, count);
    }
}

static inline void note_group(const struct hw_partition *g, struct hw_heap *h, uint32_t i, uint32_t count)
{
    if (h->engine.shadow) {
        group_written(g, h, i, count);
    }
}

/* Its size is noted with its descriptor, before a search sees it. */
static HW_NOINLINE void group_linked(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t before,
                                     uint32_t i)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct spot spot = {0, 0};
    struct sequence *q = before ? sequence_with(&s->nodes, before, &spot) : &s->lists[(head - g->head_at) / 4u];
    sequence_insert(q, before ? spot_behind(q, spot) : spot, i, 0);
    drop_failed(h, &s->nodes);
}

static inline void note_group_linked(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t before,
                                     uint32_t i)
{
    if (h->engine.shadow) {
        group_linked(g, h, head, before, i);
    }
}

static HW_NOINLINE void group_unlinked(const struct hw_partition *g, struct hw_heap *h, uint32_t i)
{
    struct spot spot;
    struct sequence *q = sequence_with(&shadow_of(g, h)->nodes, i, &spot);
    sequence_remove(q, spot);
}

static inline void note_group_unlinked(const struct hw_partition *g, struct hw_heap *h, uint32_t i)
{
    if (h->engine.shadow) {
        group_unlinked(g, h, i);
    }
}

struct between {
    uint32_t before;
    uint32_t next;
};

static HW_NOINLINE struct between way_to_group_place(const struct hw_partition *g, struct hw_heap *h, uint32_t head,
                                                     uint32_t i, uint32_t count)
{
    const struct spot first = {0, 0};
    struct sequence *q = &shadow_of(g, h)->lists[(head - g->head_at) / 4u];
    const struct spot spot = g->order == HW_SIZE ? first_sized(q, first, count, INT32_MAX) : spot_above(q, i);
    count_skipped(h, (uint64_t)rank_of(q, spot) * loads_of(&g->field) * (g->order == HW_SIZE ? 2u : 1u));
    const struct between found = {q->total ? address_before(q, spot, 0) : 0, is_end(q, spot) ? 0 : address_at(q, spot)};
    return found;
}

static inline void skip_to_group_place(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t *before,
                                       uint32_t *next, uint32_t i, uint32_t count)
{
    if (h->engine.shadow) {
        const struct between found = way_to_group_place(g, h, head, i, count);
        *before = found.before;
        *next = found.next;
    }
}

static HW_NOINLINE uint32_t first_group(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t count)
{
    const struct spot first = {0, 0};
    struct sequence *q = &shadow_of(g, h)->lists[(head - g->head_at) / 4u];
    const struct spot spot = first_sized(q, first, count, INT32_MAX);
    count_skipped(h, (uint64_t)rank_of(q, spot) * loads_of(&g->field) * 2u);
    return is_end(q, spot) ? 0 : address_at(q, spot);
}

static HW_NOINLINE struct hw_group best_group(const struct hw_partition *g, struct hw_heap *h, uint32_t head,
                                              uint32_t count)
{
    struct hw_group found = {0, 0};
    struct sequence *q = &shadow_of(g, h)->lists[(head - g->head_at) / 4u];
    const uint64_t pass = 2u * loads_of(&g->field);
    const struct spot spot = q->total ? best_sized(q, q->total, count) : (struct spot){0, 0};
    if (!is_end(q, spot)) {
        found.first = address_at(q, spot);
        found.count = size_at(q, spot);
    }
    count_skipped(h, found.count == count ? rank_of(q, spot) * pass + loads_of(&g->field) : q->total * pass);
    return found;
}

static inline int skip_groups(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t count,
                              uint32_t *i, struct hw_group *found)
{
    if (h->engine.shadow == NULL) {
        return 0;
    }
    if (g->fit == HW_FIRST) {
        *i = first_group(g, h, head, count);
        return 0;
    }
    *found = best_group(g, h, head, count);
    return 1;
}

#endif

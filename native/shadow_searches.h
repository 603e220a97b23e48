/* shadow_searches.h: where searches of a general pool come to, and ways to a place in a list. */
#ifndef HW_SHADOW_SEARCHES_H
#define HW_SHADOW_SEARCHES_H

#include "shadow_blocks.h"

/* ---- ways to a place -----------------------------------------------------------------------------------------------
 */

static HW_NOINLINE uint32_t way_to_place(const struct hw_general *g, struct hw_heap *h, uint32_t order, uint32_t before,
                                         uint32_t b, uint32_t size)
{
    const struct spot first = {0, 0};
    struct spot spot;
    struct sequence *q = list_behind(shadow_of(g, h), g, before, &spot);
    if (q == NULL) {
        return before;
    }
    spot = order == HW_SIZE ? first_sized(q, first, size, INT32_MAX) : spot_above(q, b + g->node);
    const uint32_t loads = loads_of(&g->links.field) + (order == HW_SIZE ? loads_of(&g->word) : 0);
    count_skipped(h, (uint64_t)loads * rank_of(q, spot));
    return address_before(q, spot, before);
}

static inline void skip_to_place(const struct hw_general *g, struct hw_heap *h, uint32_t order, uint32_t *before,
                                 uint32_t b, uint32_t size)
{
    if (h->engine.shadow && (order == HW_ADDRESS || order == HW_SIZE)) {
        *before = way_to_place(g, h, order, *before, b, size);
    }
}

static HW_NOINLINE uint32_t way_to_node(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t node)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct spot spot;
    const struct sequence *q = s->lists ? sequence_with(&s->nodes, node, &spot) : NULL;
    if (q == NULL) {
        return before;
    }
    count_skipped(h, (uint64_t)loads_of(&g->links.field) * rank_of(q, spot));
    return address_before(q, spot, before);
}

static inline void skip_to_node(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t node)
{
    if (h->engine.shadow) {
        *before = way_to_node(g, h, *before, node);
    }
}

struct neighbours {
    uint32_t before_lower;
    uint32_t before;
};

static HW_NOINLINE struct neighbours way_between(const struct hw_general *g, struct hw_heap *h, struct neighbours found,
                                                 uint32_t node)
{
    const uint32_t head = found.before;
    struct spot spot;
    struct sequence *q = list_behind(shadow_of(g, h), g, head, &spot);
    if (q == NULL) {
        return found;
    }
    spot = spot_above(q, node);
    const uint32_t rank = rank_of(q, spot);
    if (rank) {
        found.before = address_before(q, spot, head);
        (void)sequence_with(q->chunks, found.before, &spot);
        found.before_lower = address_before(q, spot, head);
        count_skipped(h, (uint64_t)loads_of(&g->links.field) * rank);
    }
    return found;
}

static inline void skip_to_neighbours(const struct hw_general *g, struct hw_heap *h, uint32_t *before_lower,
                                      uint32_t *before, uint32_t b)
{
    if (h->engine.shadow) {
        const struct neighbours start = {*before_lower, *before};
        const struct neighbours found = way_between(g, h, start, b + g->node);
        *before_lower = found.before_lower;
        *before = found.before;
    }
}

/* The block before b; 0 where it is the first, or where that is not known. */
static HW_NOINLINE uint32_t way_to_block(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    const struct sequence *q = &shadow_of(g, h)->blocks;
    struct spot spot;
    if (q->chunks == NULL || !sequence_with(q->chunks, b, &spot)) {
        return 0;
    }
    count_skipped(h, (uint64_t)loads_of(&g->word) * rank_of(q, spot));
    return address_before(q, spot, 0);
}

static inline void skip_to_block(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t *at,
                                 uint32_t b)
{
    if (h->engine.shadow) {
        *before = way_to_block(g, h, b);
        *at = *before ? b : *at;
    }
}

static HW_NOINLINE uint32_t way_to_last(const struct hw_general *g, struct hw_heap *h, uint32_t node)
{
    struct spot spot;
    const struct sequence *q = list_behind(shadow_of(g, h), g, g->lists_at, &spot);
    if (q == NULL || q->total == 0) {
        return node;
    }
    count_skipped(h, (uint64_t)loads_of(&g->links.field) * (q->total - 1u));
    const struct spot end = {q->places, 0};
    return address_before(q, end, 0);
}

static inline void skip_to_last(const struct hw_general *g, struct hw_heap *h, uint32_t *node)
{
    if (h->engine.shadow) {
        *node = way_to_last(g, h, *node);
    }
}

/* ---- searches ------------------------------------------------------------------------------------------------------
 */

/* The largest size that a search takes which wants `size` bytes. */
static inline uint32_t most_wanted(const struct hw_general *g, uint32_t size)
{
    return g->fit == HW_EXACT ? size : INT32_MAX;
}

static inline uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static HW_NOINLINE uint32_t search_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t end,
                                         uint32_t size, uint32_t *left)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct spot from;
    struct spot stop;
    struct sequence *q = list_behind(s, g, before, &from);
    if (q == NULL || q->total == 0) {
        return before;
    }
    const uint32_t rank = rank_of(q, from);
    uint32_t most = q->total - rank;
    if (g->fit == HW_NEXT && end && sequence_with(&s->nodes, end, &stop) == q) {
        most = rank_of(q, stop) - rank;
    }
    most = g->search_most ? least_of(most, g->search_most) : most;
    struct spot found = first_sized(q, from, size, most_wanted(g, size));
    uint32_t passed = rank_of(q, found) - rank;
    if (passed > most) {
        passed = most;
        found = spot_of_rank(q, rank + most);
    }
    *left -= g->search_most ? passed : 0;
    count_skipped(h, (uint64_t)passed * (loads_of(&g->word) + loads_of(&g->links.field)));
    return passed ? address_before(q, found, before) : before;
}

static inline void skip_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t end,
                              uint32_t size, uint32_t *left)
{
    if (h->engine.shadow && g->coalesce != HW_LAZY) {
        *before = search_nodes(g, h, *before, end, size, left);
    }
}

/* Passes the blocks from b to `end` that have no size from `least` to `most`. */
static HW_NOINLINE uint32_t search_blocks(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t end,
                                          uint32_t least, uint32_t most)
{
    struct sequence *q = &shadow_of(g, h)->blocks;
    struct spot from;
    if (q->chunks == NULL || b >= end || !sequence_with(q->chunks, b, &from)) {
        return b;
    }
    struct spot found = first_sized(q, from, least, most);
    if (is_end(q, found) || address_at(q, found) >= end) {
        found = spot_above(q, end - 1u);
    }
    count_skipped(h, (uint64_t)loads_of(&g->word) * (rank_of(q, found) - rank_of(q, from)));
    return is_end(q, found) ? end : address_at(q, found);
}

static inline void skip_blocks(const struct hw_general *g, struct hw_heap *h, uint32_t *b, uint32_t end, uint32_t size)
{
    if (h->engine.shadow && g->coalesce != HW_LAZY) {
        *b = search_blocks(g, h, *b, end, size, most_wanted(g, size));
    }
}

static inline void skip_used(const struct hw_general *g, struct hw_heap *h, uint32_t *b, uint32_t end)
{
    if (h->engine.shadow) {
        *b = search_blocks(g, h, *b, end, 1u, INT32_MAX);
    }
}

/* The entry that a search by best or worst fit finds among the first `limit`; the end where there is none. */
static struct spot best_entry(const struct hw_general *g, struct sequence *q, uint32_t limit, uint32_t size)
{
    return g->fit == HW_WORST ? largest_sized(q, limit, size) : best_sized(q, limit, size);
}

static HW_NOINLINE int search_best_node(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t size,
                                        uint32_t budget, struct hw_found *found)
{
    const struct spot first = {0, 0};
    const uint32_t word = loads_of(&g->word);
    const uint32_t pass = word + loads_of(&g->links.field);
    struct spot spot;
    struct sequence *q = list_behind(shadow_of(g, h), g, head, &spot);
    if (q == NULL) {
        return 0;
    }
    uint32_t limit = g->search_most ? least_of(q->total, g->search_most) : q->total;
    int is_cut = 0;
    if (g->search_percent < 100u && limit) {
        /* the search goes on until it has a block that fits */
        const uint32_t fits = rank_of(q, first_sized(q, first, size, INT32_MAX));
        const uint32_t enough = budget > fits + 1u ? budget : fits + 1u;
        is_cut = enough <= limit;
        limit = least_of(limit, enough);
    }
    spot = limit ? best_entry(g, q, limit, size) : (struct spot){q->places, 0};
    count_skipped(h, loads_of(&g->links.field));
    if (is_end(q, spot)) {
        count_skipped(h, (uint64_t)limit * pass);
        return 1;
    }
    if (g->fit == HW_BEST && size_at(q, spot) == size) {
        count_skipped(h, (uint64_t)rank_of(q, spot) * pass + word);
    } else {
        count_skipped(h, is_cut ? (uint64_t)(limit - 1u) * pass + word : (uint64_t)limit * pass);
    }
    found->b = address_at(q, spot) - g->node;
    found->word = peek_word(g, h, found->b);
    found->before = address_before(q, spot, head);
    return 1;
}

static inline int skip_to_best_node(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t size,
                                    uint32_t budget, struct hw_found *found)
{
    return h->engine.shadow && g->coalesce != HW_LAZY && search_best_node(g, h, head, size, budget, found);
}

static HW_NOINLINE int search_best_block(const struct hw_general *g, struct hw_heap *h, uint32_t size,
                                         struct hw_found *found)
{
    struct sequence *q = &shadow_of(g, h)->blocks;
    const uint32_t word = loads_of(&g->word);
    if (q->chunks == NULL) {
        return 0;
    }
    const struct spot spot = q->total ? best_entry(g, q, q->total, size) : (struct spot){0, 0};
    if (is_end(q, spot)) {
        count_skipped(h, (uint64_t)q->total * word);
        return 1;
    }
    const int exact = g->fit == HW_BEST && size_at(q, spot) == size;
    count_skipped(h, (uint64_t)(exact ? rank_of(q, spot) + 1u : q->total) * word);
    found->b = address_at(q, spot);
    found->word = peek_word(g, h, found->b);
    return 1;
}

static inline int skip_to_best_block(const struct hw_general *g, struct hw_heap *h, uint32_t size,
                                     struct hw_found *found)
{
    return h->engine.shadow && g->coalesce != HW_LAZY && search_best_block(g, h, size, found);
}

/* ---- searches that merge what they pass ----------------------------------------------------------------------------
 */

/* The first place from p on whose chunk may have a block that a search takes which has `best` bytes, 0 for none. */
static uint32_t next_better_place(const struct hw_general *g, const struct sequence *q, uint32_t p, uint32_t size,
                                  uint32_t best)
{
    if (best == 0 || g->merge_enough) {
        return next_large_place(q, p, size);
    }
    if (g->fit == HW_WORST) {
        return next_large_place(q, p, best + 1u);
    }
    return best > size ? next_place_with(q, p, classes_between(size, best - 1u)) : q->places;
}

/* Loads of a search that passes the entry `i` of the chunk at place p, which is not the last of all: a free block makes
 * it look at the top, unless it sweeps, and at the word of the block behind. 0 where it would merge the two. `link` is
 * what a list adds. */
static inline uint32_t toll_at(const struct hw_general *g, struct hw_heap *h, const struct sequence *q, uint32_t p,
                               uint32_t i, uint32_t link)
{
    const struct chunk *chunk = chunk_of(q, p);
    const uint32_t word = loads_of(&g->word);
    const uint32_t size = chunk->size[i];
    const uint32_t top = g->coalesce == HW_LAZY;
    if (size == 0) {
        return word + link;
    }
    note_merging(g, h, size);
    if (!can_merge(g, size)) {
        return word + link + top;
    }
    const struct spot next = spot_behind(q, (struct spot){p, i});
    const uint32_t behind = address_at(q, next) == chunk->at[i] + size ? size_at(q, next) : 0;
    if (behind) {
        note_merging(g, h, behind);
    }
    return behind && can_merge(g, behind) ? 0 : 2u * word + link + top;
}

/* The same of all entries of a chunk; 0 where it would merge. */
static uint32_t toll_of(const struct hw_general *g, struct hw_heap *h, struct sequence *q, uint32_t p, uint32_t link)
{
    uint32_t toll = q->toll[p];
    for (uint32_t i = 0; q->toll[p] == 0 && i < q->count[p]; i++) {
        const uint32_t one = toll_at(g, h, q, p, i, link);
        if (one == 0) {
            return 0;
        }
        toll += one;
    }
    q->toll[p] = toll;
    return toll;
}

/* What a search looks for: a block of `size` bytes, better than `best`, among `budget` entries. */
struct hunt {
    uint32_t size;
    uint32_t best;   /* 0: any that will do */
    uint32_t budget; /* UINT32_MAX: any number */
};

/* The first place from p on, `limit` at most, whose chunk has to be walked: the last one, or one with something to
 * merge or to take. The tolls of those passed are paid, and their entries taken off the budget. */
static uint32_t pass_quiet_chunks(const struct hw_general *g, struct hw_heap *h, struct sequence *q, uint32_t p,
                                  uint32_t limit, uint32_t link, struct hunt *hunt)
{
    const uint32_t last = least_of(limit, q->places - 1u);
    while (p < last) {
        const uint32_t better = next_better_place(g, q, p, hunt->size, hunt->best);
        uint32_t end = least_of(least_of(last, better), next_place_between(q, q->toll, p, 0, 0));
        if (end == p && better == p) {
            if (!q->loose[p]) {
                break;
            }
            sequence_tighten(q, p);
        } else if (end == p) {
            if (toll_of(g, h, q, p, link) == 0) {
                break;
            }
        } else {
            if (hunt->budget != UINT32_MAX) {
                if (hunt->best && hunt->budget <= q->count[p]) {
                    break;
                }
                hunt->budget -= least_of(hunt->budget, q->count[p]);
                end = p + 1u;
            }
            count_skipped(h, sum_of(q->toll, p, end));
            p = end;
        }
    }
    return p;
}

/* Whether a search takes a block of this size. */
static inline int is_wanted(const struct hw_general *g, uint32_t size, const struct hunt *hunt)
{
    return will_do(g, size, hunt->size) && is_better(g, size, hunt->best);
}

/* The first entry from `spot` on, and before `end`, in its chunk that would end the search, or be merged or taken; the
 * last of all is such a one. */
static uint32_t pass_quiet_entries(const struct hw_general *g, struct hw_heap *h, const struct sequence *q,
                                   struct spot spot, uint32_t end, uint32_t link, struct hunt *hunt)
{
    const uint32_t enough = g->merge_enough && g->coalesce == HW_LAZY ? hunt->size : UINT32_MAX;
    uint64_t tolls = 0;
    uint32_t i = spot.i;
    for (; i < end; i++) {
        const uint32_t size = chunk_of(q, spot.p)->size[i];
        if (is_wanted(g, size, hunt) || (hunt->best && hunt->budget <= 1u)) {
            break;
        }
        uint32_t toll = loads_of(&g->word) + link + 1u;
        if (size >= enough) { /* and so nothing is looked at behind it */
            note_merging(g, h, size);
        } else {
            toll = toll_at(g, h, q, spot.p, i, link);
        }
        if (toll == 0) {
            break;
        }
        tolls += toll;
        hunt->budget -= hunt->budget != UINT32_MAX && hunt->budget;
    }
    count_skipped(h, tolls);
    return i;
}

/* The first entry from `spot` on that a search would end at, merge or take; at most `stop`, and the last of all. */
static struct spot pass_quiet(const struct hw_general *g, struct hw_heap *h, struct sequence *q, struct spot spot,
                              struct spot stop, uint32_t link, struct hunt *hunt)
{
    for (;;) {
        if (spot.i == 0) {
            spot.p = pass_quiet_chunks(g, h, q, spot.p, stop.p, link, hunt);
        }
        const int is_last = spot.p + 1u >= q->places;
        const uint32_t count = q->count[spot.p];
        const uint32_t end = spot.p == stop.p ? least_of(stop.i, count - (uint32_t)is_last) : count - (uint32_t)is_last;
        spot.i = pass_quiet_entries(g, h, q, spot, end, link, hunt);
        if (spot.i < count || is_last || spot.p == stop.p) {
            return spot;
        }
        spot = (struct spot){spot.p + 1u, 0};
    }
}

static HW_NOINLINE uint32_t quiet_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t node, uint32_t end,
                                        struct hunt *hunt)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct spot stop = {UINT32_MAX, 0};
    struct spot spot = {0, 0};
    struct sequence *q = s->lists ? sequence_with(&s->nodes, node, &spot) : NULL;
    if (q == NULL || node == end) {
        return node;
    }
    if (end == 0 || sequence_with(&s->nodes, end, &stop) == NULL || stop.p < spot.p ||
        (stop.p == spot.p && stop.i < spot.i)) {
        stop.p = UINT32_MAX;
    }
    return address_at(q, pass_quiet(g, h, q, spot, stop, loads_of(&g->links.field), hunt));
}

static inline int has_quiet_nodes(const struct hw_general *g, const struct hw_heap *h)
{
    return h->engine.shadow && g->coalesce == HW_LAZY && g->search_most == 0;
}

static inline void pass_quiet_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t *node,
                                    uint32_t end, struct hunt *hunt)
{
    const uint32_t from = *node;
    *node = quiet_nodes(g, h, from, end, hunt);
    if (*node != from) {
        struct spot spot;
        const struct sequence *q = sequence_with(&shadow_of(g, h)->nodes, *node, &spot);
        *before = address_before(q, spot, *before);
    }
}

static inline void skip_quiet_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t *node,
                                    uint32_t end, uint32_t size)
{
    if (has_quiet_nodes(g, h)) {
        struct hunt hunt = {size, 0, UINT32_MAX};
        pass_quiet_nodes(g, h, before, node, g->fit == HW_NEXT ? end : 0, &hunt);
    }
}

static inline void skip_worse_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t *node,
                                    uint32_t size, uint32_t best, uint32_t *budget)
{
    if (has_quiet_nodes(g, h)) {
        struct hunt hunt = {size, best, *budget};
        pass_quiet_nodes(g, h, before, node, 0, &hunt);
        *budget = hunt.budget;
    }
}

static inline void skip_unswept(const struct hw_general *g, struct hw_heap *h, uint32_t *node)
{
    if (h->engine.shadow && g->order == HW_ADDRESS && g->bins == 0 && g->search_most == 0) {
        struct hunt none = {INT32_MAX, INT32_MAX, UINT32_MAX};
        *node = quiet_nodes(g, h, *node, 0, &none);
    }
}

static HW_NOINLINE uint32_t quiet_blocks(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t end,
                                         uint32_t size, uint32_t best)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct sequence *q = &s->blocks;
    struct hunt hunt = {size, best, UINT32_MAX};
    struct spot spot = {0, 0};
    if (q->chunks == NULL || sequence_with(&s->all, b, &spot) == NULL) {
        return b;
    }
    /* the walk goes on at a block that begins before `end` */
    struct spot stop = spot_above(q, end - 1u);
    if (stop.i == 0) {
        stop.p--;
        stop.i = q->count[stop.p];
    }
    stop.i--;
    return address_at(q, pass_quiet(g, h, q, spot, stop, 0, &hunt));
}

static inline void skip_quiet_blocks(const struct hw_general *g, struct hw_heap *h, uint32_t *b, uint32_t end,
                                     uint32_t size, uint32_t best)
{
    if (h->engine.shadow && g->coalesce == HW_LAZY) {
        *b = quiet_blocks(g, h, *b, end, size, best);
    }
}

#endif

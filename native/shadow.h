/* shadow.h: the index that answers long walks in place of the arena.
 *
 * Headers, links and tags in the arena are the truth, and all that takes constant time runs on them as in firmware. For
 * each pool whose searches may be long, sequences beside the arena hold the nodes of its lists and, where a walk goes
 * over all blocks, the blocks. The hooks (hooks.h) keep them true and let a walk begin where it would have come to,
 * with the loads counted that it would have made. A walk loads the word of what it looks at, and a list's link to get
 * there: passing an entry costs both.
 *
 * An index can be made at any time between two calls, by a walk over the arena, and be dropped at any time: it is made
 * when a replay has walked far, so that short lists never pay for it.
 */
#ifndef HW_SHADOW_H
#define HW_SHADOW_H

#include "check.h"
#include "sequence.h"

struct shadow_pool {
    struct chunks nodes;
    struct sequence *lists; /* one a bin, or one; of a fixed pool all blocks of each class, with size 1 where they are
                               not taken. NULL where no list is walked; those that are not have no chunks. */
    uint32_t list_count;
    struct chunks all;
    struct sequence blocks; /* by address, used ones with size 0; without chunks where no walk passes blocks */
    int padding;            /* the next word is no block's */
    int merges;             /* whether all neighbours are merged at times by merge_recent() */
    uint32_t *recent;       /* what was freed since then; some of it may be used again */
    uint32_t recent_count;
    uint32_t recent_room;
};

struct hw_shadow {
    const struct hw_policy *policy;
    int lost; /* the heap was changed by what the index said after memory had run out */
    struct shadow_pool pools[HW_MAX_POOLS];
};

/* ---- looking at the arena without counting -------------------------------------------------------------------------
 */

static inline uint32_t peek_word(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    const uint64_t reads = h->reads;
    const uint32_t word = load_word(g, h, b);
    h->reads = reads;
    return word;
}

static inline uint32_t peek_link(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    const uint64_t reads = h->reads;
    const uint32_t node = load_link(&g->links, h, at);
    h->reads = reads;
    return node;
}

/* Loads that reading a field takes. */
static inline uint32_t loads_of(const struct hw_field *field)
{
    return field->natural ? 1u : field->bytes;
}

static inline void count_skipped(struct hw_heap *h, uint64_t loads)
{
    h->reads += loads;
    h->skipped += loads;
}

/* ---- making and dropping an index ----------------------------------------------------------------------------------
 */

static int has_lists(const struct hw_general *g)
{
    return g->free_list == HW_DOUBLE || g->free_list == HW_SINGLE;
}

/* Whether a freed block without boundary tags finds the block before it by a walk over all. */
static int walks_to_merge(const struct hw_general *g)
{
    const int on_the_way = has_lists(g) && g->order == HW_ADDRESS && !g->bins;
    return g->coalesce == HW_IMMEDIATE && !g->boundary_tags && !on_the_way;
}

static int is_linear_bin(const struct hw_general *g, uint32_t list)
{
    return g->bins && list < g->bin_linear_bins;
}

static uint32_t list_order(const struct hw_general *g, uint32_t list)
{
    return g->bins && !is_linear_bin(g, list) ? g->large_order : g->order;
}

/* Whether what is merged at times is merged by merge_recent(): it knows where the order of a list wants what was freed
 * since, and leaves the words of all other blocks as they are. */
static int merges_recent(const struct hw_general *g)
{
    const int by_size = g->order == HW_SIZE || g->large_order == HW_SIZE;
    return g->coalesce == HW_DEFERRED && !g->boundary_tags && g->free_list != HW_TREE &&
           (g->free_list == HW_IMPLICIT || (!by_size && !g->unsorted && g->search_from != HW_FROM_TRIED));
}

static int walks_blocks(const struct hw_general *g)
{
    return g->free_list == HW_IMPLICIT || walks_to_merge(g) || merges_recent(g);
}

/* Whether nodes of this list are looked for, or their places. */
static int walks_list(const struct hw_general *g, uint32_t list)
{
    const uint32_t order = list_order(g, list);
    return !is_linear_bin(g, list) || g->free_list == HW_SINGLE || order == HW_ADDRESS || order == HW_SIZE ||
           merges_recent(g);
}

static void fill_blocks(const struct hw_general *g, struct hw_heap *h, struct sequence *q)
{
    const uint32_t top = load4(h, g->top_at);
    for (uint32_t b = g->start; b < top;) {
        const uint32_t word = load_word(g, h, b);
        const struct spot end = {q->places, 0};
        sequence_insert(q, end, b, word & HW_USED ? 0 : word_size(g, word));
        b += word_size(g, word);
    }
}

static void fill_list(const struct hw_general *g, struct hw_heap *h, struct sequence *q, uint32_t head)
{
    for (uint32_t node = load_link(&g->links, h, head); node; node = load_link(&g->links, h, node)) {
        const struct spot end = {q->places, 0};
        sequence_insert(q, end, node, word_size(g, load_word(g, h, node - g->node)));
    }
}

/* Notes that a block was freed; 0 without memory. */
static int note_recent(struct shadow_pool *s, uint32_t b)
{
    if (s->recent_count == s->recent_room) {
        const uint32_t room = s->recent_room ? 2u * s->recent_room : 256u;
        if (!lengthen(&s->recent, s->recent_room, room, sizeof *s->recent)) {
            return 0;
        }
        s->recent_room = room;
    }
    s->recent[s->recent_count++] = b;
    return 1;
}

static int note_all_recent(struct shadow_pool *s)
{
    const struct spot first = {0, 0};
    struct spot spot = first_sized(&s->blocks, first, 1u, INT32_MAX);
    while (!is_end(&s->blocks, spot)) {
        if (!note_recent(s, address_at(&s->blocks, spot))) {
            return 0;
        }
        spot = first_sized(&s->blocks, spot_behind(&s->blocks, spot), 1u, INT32_MAX);
    }
    return 1;
}

/* Indexes a general pool in an arena of `bytes` bytes; 0 without memory. */
static int shadow_general(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t bytes)
{
    if (walks_blocks(g)) {
        if (!chunks_open(&s->all, bytes, g->min_block)) {
            return 0;
        }
        s->blocks.chunks = &s->all;
        fill_blocks(g, h, &s->blocks);
    }
    s->merges = merges_recent(g);
    if (s->merges && !note_all_recent(s)) {
        return 0;
    }
    if (has_lists(g) && g->search_from != HW_FROM_TRIED) {
        s->list_count = g->bins ? g->bins : 1u;
        s->lists = calloc(s->list_count, sizeof *s->lists);
        if (s->lists == NULL || !chunks_open(&s->nodes, bytes, g->min_block)) {
            return 0;
        }
        for (uint32_t list = 0; list < s->list_count; list++) {
            if (walks_list(g, list)) {
                s->lists[list].chunks = &s->nodes;
                fill_list(g, h, &s->lists[list], g->lists_at + list * g->list_stride);
            }
        }
    }
    return !s->all.failed && !s->nodes.failed;
}

/* Adds the blocks of a class, in order of carving, by their payloads or by their flags. */
static void fill_class(const struct hw_fixed *f, struct hw_heap *h, struct sequence *q, uint32_t class_)
{
    if (f->grow) {
        for (uint32_t at = load_link(&f->links, h, fixed_head(f, class_)); at;
             at = load_link(&f->links, h, fixed_chain_at(f, at))) {
            const struct spot end = {q->places, 0};
            sequence_insert(q, end, at, (load_field(&f->word, h, at - f->header) & HW_FIXED_TAKEN) == 0);
        }
        return;
    }
    const uint32_t carved = load4(h, f->carved_at + 4u * class_);
    for (uint32_t at = f->flags_at[class_]; at < f->flags_at[class_] + carved; at++) {
        const struct spot end = {q->places, 0};
        sequence_insert(q, end, at, load1(h, at) == 0);
    }
}

/* Indexes a fixed pool whose flags are searched. */
static int shadow_fixed(struct shadow_pool *s, const struct hw_fixed *f, struct hw_heap *h, uint32_t bytes)
{
    s->list_count = f->count;
    s->lists = calloc(f->count, sizeof *s->lists);
    if (s->lists == NULL || !chunks_open(&s->nodes, bytes, f->grow ? f->header : 1u)) {
        return 0;
    }
    for (uint32_t class_ = 0; class_ < f->count; class_++) {
        s->lists[class_].chunks = &s->nodes;
        fill_class(f, h, &s->lists[class_], class_);
    }
    return !s->nodes.failed;
}

/* Indexes a partition pool: its lists of free groups, by their first partitions. */
static int shadow_partition(struct shadow_pool *s, const struct hw_partition *g, struct hw_heap *h)
{
    const uint32_t table = partition_table(g, h);
    s->list_count = g->lists;
    s->lists = calloc(g->lists, sizeof *s->lists);
    if (s->lists == NULL || !chunks_open(&s->nodes, g->most + 1u, 1)) {
        return 0;
    }
    for (uint32_t list = 0; list < g->lists; list++) {
        struct sequence *q = &s->lists[list];
        q->chunks = &s->nodes;
        for (uint32_t i = load4(h, g->head_at + 4u * list); i; i = load_number(g, h, next_at(g, table, i))) {
            const struct spot end = {q->places, 0};
            sequence_insert(q, end, i, load_number(g, h, count_at(g, table, i)) >> 1);
        }
    }
    return !s->nodes.failed;
}

/* Indexes a pool, if it is of a kind that walks. */
static int shadow_any(struct shadow_pool *s, const struct hw_pool *pool, struct hw_heap *h, uint32_t bytes)
{
    if (pool->kind == HW_GENERAL) {
        return shadow_general(s, &pool->general, h, bytes);
    }
    if (pool->kind == HW_FIXED && pool->fixed.first_fit) {
        return shadow_fixed(s, &pool->fixed, h, bytes);
    }
    if (pool->kind == HW_PARTITION) {
        return shadow_partition(s, &pool->partition, h);
    }
    return 1;
}

static void shadow_free(struct hw_shadow *shadow)
{
    if (shadow == NULL) {
        return;
    }
    for (uint32_t i = 0; i < HW_MAX_POOLS; i++) {
        struct shadow_pool *s = &shadow->pools[i];
        for (uint32_t list = 0; s->lists && list < s->list_count; list++) {
            sequence_close(&s->lists[list]);
        }
        free(s->lists);
        sequence_close(&s->blocks);
        free(s->recent);
        chunks_close(&s->nodes);
        chunks_close(&s->all);
    }
    free(shadow);
}

/* Indexes a heap as it is; NULL without memory. */
static struct hw_shadow *shadow_make(const struct hw_policy *policy, struct hw_heap *h, size_t bytes)
{
    struct hw_shadow *shadow = calloc(1, sizeof *shadow);
    if (shadow == NULL) {
        return NULL;
    }
    shadow->policy = policy;
    const uint64_t reads = h->reads;
    const uint32_t end = bytes > policy->reach ? policy->reach : (uint32_t)bytes;
    for (uint32_t i = 0; i < policy->pool_count; i++) {
        if (!shadow_any(&shadow->pools[i], &policy->pools[i], h, end + policy->end_header)) {
            shadow_free(shadow);
            shadow = NULL;
            break;
        }
    }
    h->reads = reads;
    return shadow;
}

/* What is kept for the pool of which this is part. */
static inline struct shadow_pool *shadow_of(const void *part, struct hw_heap *h)
{
    const struct hw_policy *policy = h->shadow->policy;
    return &h->shadow->pools[(size_t)((const char *)part - (const char *)policy->pools) / sizeof policy->pools[0]];
}

/* An index that could not be kept is dropped: the arena says it all. */
static inline void drop_failed(struct hw_heap *h, const struct chunks *c)
{
    if (c->failed) {
        h->shadow = NULL;
    }
}

/* The sequence of the list in which `before` is a node or the head, and the spot behind; NULL: not indexed. */
static struct sequence *list_behind(const struct shadow_pool *s, const struct hw_general *g, uint32_t before,
                                    struct spot *spot)
{
    const struct spot first = {0, 0};
    if (s->lists == NULL) {
        return NULL;
    }
    if (before >= g->start) {
        struct sequence *q = sequence_with(&s->nodes, before, spot);
        if (q) {
            *spot = spot_behind(q, *spot);
        }
        return q;
    }
    const uint32_t list = g->bins ? (before - g->lists_at) / g->list_stride : before != g->lists_at;
    *spot = first;
    return list < s->list_count && s->lists[list].chunks ? &s->lists[list] : NULL;
}

/* ---- keeping it true -----------------------------------------------------------------------------------------------
 */

/* A block begins at b; what began inside it is gone. */
static void block_written(struct sequence *q, uint32_t b, uint32_t size, uint32_t free_size)
{
    struct spot spot;
    if (sequence_with(q->chunks, b, &spot)) {
        sequence_resize(q, spot, free_size);
    } else {
        sequence_insert(q, spot_above(q, b), b, free_size);
        if (q->chunks->failed) {
            return;
        }
        (void)sequence_with(q->chunks, b, &spot);
    }
    for (struct spot next = spot_behind(q, spot); !is_end(q, next) && address_at(q, next) < b + size;) {
        sequence_remove(q, next);
        (void)sequence_with(q->chunks, b, &spot);
        next = spot_behind(q, spot);
    }
}

static HW_NOINLINE void word_written(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    struct shadow_pool *s = shadow_of(g, h);
    const uint32_t size = word_size(g, word);
    struct spot spot;
    if (s->padding || size == 0) {
        s->padding = 0;
        return;
    }
    if (s->lists && (word & HW_USED) == 0) {
        struct sequence *q = sequence_with(&s->nodes, b + g->node, &spot);
        if (q) {
            sequence_resize(q, spot, size);
        }
    }
    if (s->blocks.chunks) {
        block_written(&s->blocks, b, size, word & HW_USED ? 0 : size);
        s->all.failed |= s->merges && (word & HW_USED) == 0 && !note_recent(s, b);
        drop_failed(h, &s->all);
    }
}

static inline void note_word(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    if (h->shadow) {
        word_written(g, h, b, word);
    }
}

static inline void note_padding(const struct hw_general *g, struct hw_heap *h)
{
    if (h->shadow) {
        shadow_of(g, h)->padding = 1;
    }
}

static HW_NOINLINE void top_lowered(const struct hw_general *g, struct hw_heap *h, uint32_t top)
{
    struct sequence *q = &shadow_of(g, h)->blocks;
    while (q->places) {
        const struct spot last = {q->places - 1u, q->count[q->places - 1u] - 1u};
        if (address_at(q, last) < top) {
            return;
        }
        sequence_remove(q, last);
    }
}

static inline void note_top(const struct hw_general *g, struct hw_heap *h, uint32_t top)
{
    if (h->shadow) {
        top_lowered(g, h, top);
    }
}

static HW_NOINLINE void linked(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t node)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct spot spot;
    struct sequence *q = list_behind(s, g, before, &spot);
    if (q) {
        const uint32_t size = word_size(g, peek_word(g, h, node - g->node));
        sequence_insert(q, spot, node, size & INT32_MAX);
        drop_failed(h, &s->nodes);
    }
}

static inline void note_linked(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t node)
{
    if (h->shadow) {
        linked(g, h, before, node);
    }
}

static HW_NOINLINE void unlinked(const struct hw_general *g, struct hw_heap *h, uint32_t node)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct spot spot;
    struct sequence *q = s->lists ? sequence_with(&s->nodes, node, &spot) : NULL;
    if (q) {
        sequence_remove(q, spot);
    }
}

static inline void note_unlinked(const struct hw_general *g, struct hw_heap *h, uint32_t node)
{
    if (h->shadow) {
        unlinked(g, h, node);
    }
}

static HW_NOINLINE void cleared(const struct hw_general *g, struct hw_heap *h)
{
    struct shadow_pool *s = shadow_of(g, h);
    for (uint32_t list = 0; list < s->list_count; list++) {
        sequence_clear(&s->lists[list]);
    }
}

static inline void note_cleared(const struct hw_general *g, struct hw_heap *h)
{
    if (h->shadow) {
        cleared(g, h);
    }
}

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
    if (h->shadow && (order == HW_ADDRESS || order == HW_SIZE)) {
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
    if (h->shadow) {
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
    if (h->shadow) {
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
    if (h->shadow) {
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
    if (h->shadow) {
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
    if (h->shadow && g->coalesce != HW_LAZY) {
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
    if (h->shadow && g->coalesce != HW_LAZY) {
        *b = search_blocks(g, h, *b, end, size, most_wanted(g, size));
    }
}

static inline void skip_used(const struct hw_general *g, struct hw_heap *h, uint32_t *b, uint32_t end)
{
    if (h->shadow) {
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
    return h->shadow && g->coalesce != HW_LAZY && search_best_node(g, h, head, size, budget, found);
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
    return h->shadow && g->coalesce != HW_LAZY && search_best_block(g, h, size, found);
}

/* ---- merging everything --------------------------------------------------------------------------------------------
 *
 * What was merged and filed the last time lies in each list by address, apart from its neighbours, and still does: only
 * blocks freed since can have neighbours to merge with, or be out of place.
 */

static int rising(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Takes a free block out of its list, if it is in one. */
static void take_out(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    struct spot spot;
    const struct sequence *q = s->lists ? sequence_with(&s->nodes, b + g->node, &spot) : NULL;
    if (q) {
        list_unlink(g, h, size, address_before(q, spot, list_head(g, size)), b + g->node);
    }
}

/* Keeps of the recent blocks those that are free, each once and in order, and takes them out of their lists. */
static void take_recent_out(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h)
{
    uint32_t kept = 0;
    if (s->recent_count) {
        qsort(s->recent, s->recent_count, sizeof *s->recent, rising);
    }
    for (uint32_t k = 0; k < s->recent_count; k++) {
        const uint32_t b = s->recent[k];
        struct spot spot;
        if ((kept == 0 || s->recent[kept - 1u] != b) && sequence_with(&s->all, b, &spot) && size_at(&s->blocks, spot)) {
            take_out(s, g, h, b, size_at(&s->blocks, spot));
            s->recent[kept++] = b;
        }
    }
    s->recent_count = kept;
}

/* The free block that b becomes with the free blocks on both sides; its size is stored. */
static uint32_t merge_around(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t b,
                             uint32_t *size)
{
    struct spot spot;
    (void)sequence_with(&s->all, b, &spot);
    *size = size_at(&s->blocks, spot);
    if (!can_merge(g, *size)) {
        return b;
    }
    for (struct spot next = spot_behind(&s->blocks, spot); !is_end(&s->blocks, next);
         next = spot_behind(&s->blocks, next)) {
        const uint32_t behind = size_at(&s->blocks, next);
        if (behind == 0 || !can_merge(g, behind)) {
            break;
        }
        take_out(s, g, h, b + *size, behind);
        note_block_gone(h, g->overhead);
        *size += behind;
    }
    const uint32_t before = address_before(&s->blocks, spot, 0);
    const uint32_t ahead = before && sequence_with(&s->all, before, &spot) ? size_at(&s->blocks, spot) : 0;
    if (ahead && can_merge(g, ahead)) {
        take_out(s, g, h, before, ahead);
        note_block_gone(h, g->overhead);
        *size += ahead;
        return before;
    }
    return b;
}

/* Puts a free block where the walk over all blocks would have filed it. */
static void file_by_address(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t b,
                            uint32_t size)
{
    const uint32_t list = g->bins ? bin_of(g, size) : 0;
    const uint32_t head = g->lists_at + list * g->list_stride;
    struct sequence *q = &s->lists[list];
    const struct spot spot = list_order(g, list) == HW_LIFO ? spot_below(q, b + g->node) : spot_above(q, b + g->node);
    const uint32_t before = q->total ? address_before(q, spot, head) : head;
    const uint32_t next = is_end(q, spot) ? 0 : address_at(q, spot);
    list_link(g, h, before, b + g->node, next);
    if (has_tails(g) && next == 0) {
        store_link(&g->links, h, head + g->links.field.bytes, b + g->node);
    }
}

/* Takes the free block that ends at the top, and may merge, out of its list: its address, or 0. */
static uint32_t take_last_out(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t top)
{
    const struct sequence *q = &s->blocks;
    const struct spot end = {q->places, 0};
    const uint32_t last = address_before(q, end, 0);
    struct spot spot;
    if (last == 0 || !sequence_with(&s->all, last, &spot)) {
        return 0;
    }
    const uint32_t size = size_at(q, spot);
    if (size == 0 || !can_merge(g, size) || last + size != top) {
        return 0;
    }
    if (g->top == HW_TOP_LAST) {
        take_out(s, g, h, last, size);
    }
    return last;
}

/* What the walk over all blocks leaves in the control data, and its loads and stores. */
struct settled {
    uint64_t reads;
    uint64_t writes;
    uint32_t filed;
    uint32_t last; /* the node that was filed last with none behind it */
};

/* Adds one list: a load of the head or the tail for each block filed, and the way to its place. */
static void settle_list(const struct shadow_pool *s, const struct hw_general *g, uint32_t list, struct settled *all)
{
    const struct sequence *q = &s->lists[list];
    const uint64_t filed = q->total;
    const uint64_t link = loads_of(&g->links.field);
    const struct spot end = {q->places, 0};
    const uint32_t last = filed ? address_before(q, end, 0) : 0;
    const uint32_t order = list_order(g, list);
    all->writes += link + (has_tails(g) ? link : 0);
    all->reads += link * (order == HW_ADDRESS ? filed * (filed + 1u) / 2u : filed);
    all->writes += link * filed * (g->free_list == HW_DOUBLE ? 4u : 2u);
    if (has_tails(g)) {
        all->writes += link * (order == HW_LIFO ? filed != 0 : filed);
    }
    all->last = last > all->last ? last : all->last;
    all->filed += q->total;
}

/* Marks the bins that hold a block, and no others. */
static void settle_bitmap(const struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h,
                          struct settled *all)
{
    uint32_t summary = 0;
    for (uint32_t word = 0; word < (g->bins + 31u) / 32u; word++) {
        uint32_t map = 0;
        for (uint32_t list = 32u * word; list < g->bins && list < 32u * word + 32u; list++) {
            map |= (uint32_t)(s->lists[list].total != 0) << list % 32u;
            all->writes += s->lists[list].total != 0;
        }
        store4(h, g->bitmap_at + 4u * word, map);
        all->writes++;
        if (map && g->bins > 32u) {
            summary |= 1u << word;
            all->reads++;
            all->writes++;
        }
    }
    if (g->bins > 32u) {
        store4(h, g->summary_at, summary);
        all->writes++;
    }
    all->reads += all->filed;
}

/* Sets the place where the next search begins. */
static void settle_rover(const struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h,
                         struct settled *all)
{
    if (g->fit == HW_NEXT || g->search_from == HW_FROM_LOWEST_FREE) {
        uint32_t rover = s->lists ? g->lists_at : g->start;
        if (s->lists && g->search_from == HW_FROM_FREED && s->lists[0].total && g->order != HW_LIFO) {
            struct spot spot;
            const uint32_t last = address_before(&s->lists[0], (struct spot){s->lists[0].places, 0}, 0);
            (void)sequence_with(&s->nodes, last, &spot);
            rover = address_before(&s->lists[0], spot, rover);
        }
        store4(h, g->rover_at, rover);
        all->writes++;
    }
    if (s->lists && g->search_from == HW_FROM_FREED) {
        all->writes += all->filed;
    }
}

static void settle_lists(const struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t scratch,
                         struct settled *all)
{
    for (uint32_t list = 0; list < s->list_count; list++) {
        settle_list(s, g, list, all);
    }
    if (g->bins) {
        settle_bitmap(s, g, h, all);
    }
    if (g->fit == HW_BEST && g->search_percent < 100u) {
        store4(h, g->count_at, all->filed);
        all->reads += all->filed;
        all->writes += all->filed + 1u;
    }
    if (g->free_list == HW_DOUBLE) {
        store_link(&g->links, h, g->links.field.bytes, all->last ? all->last : scratch);
    }
}

/* Blocks that are free and have `least` bytes or more. */
static uint32_t free_blocks(const struct shadow_pool *s, uint32_t least)
{
    uint32_t count = 0;
    for (uint32_t p = 0; p < s->blocks.places; p++) {
        count += HW_BY_PROCESSOR(count_from, chunk_of(&s->blocks, p)->size, least);
    }
    return count;
}

static HW_NOINLINE int merge_recent(const struct hw_general *g, struct hw_heap *h)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct hw_shadow *shadow = h->shadow;
    if (!s->merges) {
        return 0;
    }
    const uint64_t word = loads_of(&g->word);
    const uint64_t reads = h->reads;
    const uint64_t writes = h->writes;
    struct settled all = {reads + 1u + word * s->blocks.total, writes, 0, 0};
    const uint32_t top = load4(h, g->top_at);
    const uint32_t scratch = g->free_list == HW_DOUBLE ? peek_link(g, h, g->links.field.bytes) : 0;
    take_recent_out(s, g, h);
    uint32_t end = 0;
    for (uint32_t k = 0, count = s->recent_count; k < count; k++) {
        if (s->recent[k] >= end) {
            uint32_t size;
            const uint32_t b = merge_around(s, g, h, s->recent[k], &size);
            end = b + size;
            store_word(g, h, b, size_word(g, size, 0));
            if (s->lists) {
                file_by_address(s, g, h, b, size);
            }
        }
    }
    s->recent_count = 0;
    const uint32_t last = take_last_out(s, g, h, top);
    const int joins_top = last && g->top == HW_TOP_LAST;
    all.reads += word * (free_blocks(s, g->coalesce_from > g->min_block ? g->coalesce_from : 1u) - (last != 0));
    all.writes += word * (free_blocks(s, 1u) - (joins_top != 0));
    settle_lists(s, g, h, scratch, &all);
    settle_rover(s, g, h, &all);
    shadow->lost |= s->nodes.failed || s->all.failed;
    h->skipped += all.reads - reads + all.writes - writes;
    h->reads = all.reads;
    h->writes = all.writes;
    if (joins_top) {
        lower_top(g, h, last);
    }
    return 1;
}

static inline int skip_merging(const struct hw_general *g, struct hw_heap *h)
{
    return h->shadow && merge_recent(g, h);
}

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
    if (h->shadow) {
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
    if (h->shadow) {
        uint32_t found;
        const uint32_t passed = first_free_in(f, h, class_, &found);
        count_skipped(h, (uint64_t)passed * (loads_of(&f->links.field) + loads_of(&f->word)));
        *at = found;
    }
}

static inline int skip_flags(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t *i)
{
    if (h->shadow) {
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
    if (h->shadow) {
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
    if (h->shadow) {
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
    if (h->shadow) {
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
    if (h->shadow) {
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
    if (h->shadow == NULL) {
        return 0;
    }
    if (g->fit == HW_FIRST) {
        *i = first_group(g, h, head, count);
        return 0;
    }
    *found = best_group(g, h, head, count);
    return 1;
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

/* Loads of a search that passes all entries of a chunk, which is not the last, and merges none: each free block makes
 * it look at the top, and at the word of the block behind. 0 where it would merge. `link` is what a list adds. */
static uint32_t toll_of(const struct hw_general *g, struct sequence *q, uint32_t p, uint32_t link)
{
    const struct chunk *chunk = chunk_of(q, p);
    const uint32_t word = loads_of(&g->word);
    uint32_t toll = 0;
    if (q->toll[p]) {
        return q->toll[p];
    }
    for (uint32_t i = 0; i < q->count[p]; i++) {
        const struct spot here = {p, i};
        const struct spot next = spot_behind(q, here);
        const uint32_t size = chunk->size[i];
        toll += word + link;
        if (size) {
            const uint32_t behind = address_at(q, next) == chunk->at[i] + size ? size_at(q, next) : 0;
            toll += 1u + (can_merge(g, size) ? word : 0);
            if (behind && can_merge(g, size) && can_merge(g, behind)) {
                return 0;
            }
        }
    }
    q->toll[p] = toll;
    return toll;
}

/* The first place from p on, `limit` at most, whose chunk has to be walked: the last one, or one with something to
 * merge or to take. The tolls of those passed are paid, and their entries looked at, of which there may be `budget`. */
static uint32_t pass_quiet_chunks(const struct hw_general *g, struct hw_heap *h, struct sequence *q, uint32_t p,
                                  uint32_t limit, uint32_t size, uint32_t best, uint32_t link, uint32_t *budget)
{
    const uint32_t last = least_of(limit, q->places - 1u);
    while (p < last) {
        const uint32_t better = next_better_place(g, q, p, size, best);
        uint32_t end = least_of(least_of(last, better), next_place_between(q, q->toll, p, 0, 0));
        if (end == p && better == p) {
            if (!q->loose[p]) {
                break;
            }
            sequence_tighten(q, p);
        } else if (end == p) {
            if (toll_of(g, q, p, link) == 0) {
                break;
            }
        } else {
            if (*budget != UINT32_MAX) {
                if (best && *budget <= q->count[p]) {
                    break;
                }
                *budget -= least_of(*budget, q->count[p]);
                end = p + 1u;
            }
            count_skipped(h, sum_of(q->toll, p, end));
            p = end;
        }
    }
    return p;
}

static HW_NOINLINE uint32_t quiet_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t node, uint32_t end,
                                        uint32_t size, uint32_t best, uint32_t *budget)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct spot stop = {UINT32_MAX, 0};
    struct spot spot = {0, 0};
    struct sequence *q = s->lists ? sequence_with_chunk_at(&s->nodes, node, &spot.p) : NULL;
    if (q == NULL) {
        return node;
    }
    if (end == 0 || sequence_with(&s->nodes, end, &stop) == NULL) {
        stop.p = UINT32_MAX;
    }
    spot.p = pass_quiet_chunks(g, h, q, spot.p, stop.p, size, best, loads_of(&g->links.field), budget);
    return address_at(q, spot);
}

static inline void skip_quiet_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t *node,
                                    uint32_t end, uint32_t size, uint32_t best, uint32_t *budget)
{
    if (h->shadow && g->coalesce == HW_LAZY && g->search_most == 0) {
        uint32_t left = g->search_percent < 100u && budget ? *budget : UINT32_MAX;
        const uint32_t from = *node;
        *node = quiet_nodes(g, h, from, g->fit == HW_NEXT ? end : 0, size, best, &left);
        if (*node != from) {
            struct spot spot;
            const struct sequence *q = sequence_with(&shadow_of(g, h)->nodes, *node, &spot);
            *before = address_before(q, spot, *before);
            if (g->search_percent < 100u && budget) {
                *budget = left;
            }
        }
    }
}

static HW_NOINLINE uint32_t quiet_blocks(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t end,
                                         uint32_t size, uint32_t best)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct sequence *q = &s->blocks;
    uint32_t budget = UINT32_MAX;
    struct spot spot = {0, 0};
    if (q->chunks == NULL || sequence_with_chunk_at(&s->all, b, &spot.p) == NULL) {
        return b;
    }
    /* the walk goes on at a block that begins before `end` */
    const struct spot stop = spot_above(q, end - 1u);
    spot.p = pass_quiet_chunks(g, h, q, spot.p, stop.i ? stop.p : stop.p - 1u, size, best, 0, &budget);
    return address_at(q, spot);
}

static inline void skip_quiet_blocks(const struct hw_general *g, struct hw_heap *h, uint32_t *b, uint32_t end,
                                     uint32_t size, uint32_t best)
{
    if (h->shadow && g->coalesce == HW_LAZY) {
        *b = quiet_blocks(g, h, *b, end, size, best);
    }
}

#endif

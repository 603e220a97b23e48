/* shadow_blocks.h: the index of a pool of blocks of any size: making it, and keeping it true. */
#ifndef HW_SHADOW_BLOCKS_H
#define HW_SHADOW_BLOCKS_H

#include "shadow.h"

/* ---- looking at the arena without counting ----------------------------------------------------------------------- */

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

/* ---- making it --------------------------------------------------------------------------------------------------- */

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

static int sorts_by_size(const struct hw_general *g)
{
    return g->order == HW_SIZE || g->large_order == HW_SIZE;
}

/* Whether what is merged at times is merged by merge_recent(): it knows where the order of a list wants what was freed
 * since, and leaves the words of all other blocks as they are. */
static int merges_recent(const struct hw_general *g)
{
    const int is_known =
        !g->unsorted && g->search_from != HW_FROM_TRIED && !(g->search_from == HW_FROM_FREED && g->order == HW_SIZE);
    return g->coalesce == HW_DEFERRED && !g->boundary_tags && g->free_list != HW_TREE &&
           (g->free_list == HW_IMPLICIT || is_known);
}

/* Whether lists are kept in order of address or of size, so that what is filed is walked to its place. */
static int has_ordered_lists(const struct hw_general *g)
{
    return g->order == HW_ADDRESS || g->large_order == HW_ADDRESS || sorts_by_size(g);
}

/* Whether all free blocks are sometimes reinserted, at the ends of lists that bins keep short. */
static int files_into_short_lists(const struct hw_general *g)
{
    return g->coalesce == HW_DEFERRED && g->bins && !merges_recent(g) && !has_ordered_lists(g);
}

static int walks_blocks(const struct hw_general *g)
{
    return g->free_list == HW_IMPLICIT || walks_to_merge(g);
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

static inline uint32_t place_of(const struct hw_general *g, uint32_t b)
{
    return (b - g->start) >> g->unit_shift;
}

static inline uint32_t block_at_place(const struct hw_general *g, uint32_t place)
{
    return g->start + (place << g->unit_shift);
}

/* Counts a block with this word, or with `by` -1 no longer. */
static inline void count_block(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t word,
                               uint32_t by)
{
    note_word_merging(g, h, word);
    s->free_count += (word & HW_USED) == 0 ? by : 0;
    s->merging_count += is_mergeable(g, word) ? by : 0;
}

/* Notes all blocks of a pool that merges at times, in an arena of `bytes` bytes; 0 without memory. */
static int fill_starts(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t bytes)
{
    const uint32_t top = load4(h, g->top_at);
    if (!places_open(&s->starts, bytes > g->start ? place_of(g, bytes) + 1u : 1u)) {
        return 0;
    }
    for (uint32_t b = g->start; b < top;) {
        const uint32_t word = load_word(g, h, b);
        add_place(&s->starts, place_of(g, b));
        s->block_count++;
        count_block(s, g, h, word, 1u);
        if ((word & HW_USED) == 0 && !note_recent(s, b)) {
            return 0;
        }
        b += word_size(g, word);
    }
    return 1;
}

/* Indexes a general pool in an arena of `bytes` bytes; 0 without memory. */
static int shadow_general(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t bytes)
{
    if (files_into_short_lists(g)) {
        return 1; /* that costs the index more than it saves */
    }
    if (walks_blocks(g)) {
        if (!chunks_open(&s->all, bytes, g->min_block)) {
            return 0;
        }
        s->blocks.chunks = &s->all;
        fill_blocks(g, h, &s->blocks);
    }
    s->merges = merges_recent(g);
    if (s->merges && !fill_starts(s, g, h, bytes)) {
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
        if (s->merges && sorts_by_size(g)) {
            s->filings = calloc(s->list_count, sizeof *s->filings);
            if (s->filings == NULL) {
                return 0;
            }
        }
    }
    return !s->all.failed && !s->nodes.failed;
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

/* ---- keeping it true --------------------------------------------------------------------------------------------- */

/* A block of this size enters a list, or with `by` -1 leaves it. Short lists are counted on demand. */
static void filing_changed(struct shadow_pool *s, const struct sequence *q, uint32_t node, uint32_t size, uint64_t by)
{
    struct filing *filing = &s->filings[q - s->lists];
    filing->last_known = 0;
    if (q->places > 1u && filing->passed_known) {
        filing->passed += by * concordant_with(q, node, size);
    } else {
        filing->passed_known = 0;
    }
}

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

/* The same where all neighbours are merged at times; 0 without memory. */
static int start_written(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t b,
                         uint32_t word)
{
    const uint32_t place = place_of(g, b);
    const uint32_t end = place + (word_size(g, word) >> g->unit_shift);
    uint32_t had = place;
    if (has_place(&s->starts, place)) {
        const uint32_t before = peek_word(g, h, b);
        had += word_size(g, before) >> g->unit_shift;
        count_block(s, g, h, before, UINT32_MAX);
    } else {
        add_place(&s->starts, place);
        s->block_count++;
    }
    count_block(s, g, h, word, 1u);
    if (had < end) {
        for (uint32_t next; (next = place_from(&s->starts, place + 1u, end)) < end;) {
            count_block(s, g, h, peek_word(g, h, block_at_place(g, next)), UINT32_MAX);
            remove_place(&s->starts, next);
            s->block_count--;
        }
    }
    return word & HW_USED || note_recent(s, b);
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
    if (s->merges && !start_written(s, g, h, b, word)) {
        h->engine.shadow = NULL;
        return;
    }
    if (s->blocks.chunks) {
        block_written(&s->blocks, b, size, word & HW_USED ? 0 : size);
        drop_failed(h, &s->all);
    }
}

static inline void note_word(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    if (h->engine.shadow) {
        word_written(g, h, b, word);
    }
}

static inline void note_padding(const struct hw_general *g, struct hw_heap *h)
{
    if (h->engine.shadow) {
        shadow_of(g, h)->padding = 1;
    }
}

static HW_NOINLINE void top_lowered(const struct hw_general *g, struct hw_heap *h, uint32_t top)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct sequence *q = &s->blocks;
    if (s->merges) {
        const uint64_t reads = h->reads;
        const uint32_t place = place_of(g, top);
        uint32_t last = place_before(&s->starts, place_of(g, load4(h, g->top_at)));
        for (; last != NO_PLACE && last >= place; last = place_before(&s->starts, last)) {
            count_block(s, g, h, peek_word(g, h, block_at_place(g, last)), UINT32_MAX);
            remove_place(&s->starts, last);
            s->block_count--;
        }
        h->reads = reads;
    }
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
    if (h->engine.shadow) {
        top_lowered(g, h, top);
    }
}

static HW_NOINLINE void linked(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t node)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct spot spot;
    if (s->replaced) {
        s->replaced = 0;
        return;
    }
    struct sequence *q = list_behind(s, g, before, &spot);
    if (q) {
        const uint32_t size = word_size(g, peek_word(g, h, node - g->node));
        if (s->filings) {
            filing_changed(s, q, node, size, 1u);
        }
        sequence_insert(q, spot, node, size & INT32_MAX);
        drop_failed(h, &s->nodes);
    }
}

static inline void note_linked(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t node)
{
    if (h->engine.shadow) {
        linked(g, h, before, node);
    }
}

static HW_NOINLINE void unlinked(const struct hw_general *g, struct hw_heap *h, uint32_t node)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct spot spot;
    struct sequence *q = s->lists ? sequence_with(&s->nodes, node, &spot) : NULL;
    if (q) {
        if (s->filings) {
            filing_changed(s, q, node, size_at(q, spot), UINT64_MAX);
        }
        sequence_remove(q, spot);
    }
}

static inline void note_unlinked(const struct hw_general *g, struct hw_heap *h, uint32_t node)
{
    if (h->engine.shadow) {
        unlinked(g, h, node);
    }
}

/* What it takes the place of is split: its size is noted when its word is written. */
static HW_NOINLINE void replaced(const struct hw_general *g, struct hw_heap *h, uint32_t node, uint32_t by)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct spot spot;
    struct sequence *q = s->lists ? sequence_with(&s->nodes, node, &spot) : NULL;
    if (q) {
        sequence_replace(q, spot, by);
        s->replaced = 1;
    }
}

static inline void note_replaced(const struct hw_general *g, struct hw_heap *h, uint32_t node, uint32_t by)
{
    if (h->engine.shadow) {
        replaced(g, h, node, by);
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
    if (h->engine.shadow) {
        cleared(g, h);
    }
}

#endif

/* shadow_merging.h: merging all neighbours of a pool at a time, before it would grow.
 *
 * What was merged and filed the last time lies in each list by address, or by size and then by address, apart from its
 * neighbours, and still does: only blocks freed since can have neighbours to merge with, or be out of place.
 */
#ifndef HW_SHADOW_MERGING_H
#define HW_SHADOW_MERGING_H

#include "shadow_blocks.h"

static int rising(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

enum { FEW_NUMBERS = 32 };

static void sort_numbers(uint32_t *numbers, uint32_t count)
{
    if (count > FEW_NUMBERS) {
        qsort(numbers, count, sizeof *numbers, rising);
        return;
    }
    for (uint32_t k = 1; k < count; k++) {
        const uint32_t number = numbers[k];
        uint32_t i = k;
        for (; i > 0 && numbers[i - 1u] > number; i--) {
            numbers[i] = numbers[i - 1u];
        }
        numbers[i] = number;
    }
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

/* Size of the free block at b that may merge; 0 where it may not. */
static uint32_t merging_size(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    const uint32_t word = peek_word(g, h, b);
    note_word_merging(g, h, word);
    return is_mergeable(g, word) ? word_size(g, word) : 0;
}

/* The block before b; 0 where it is the first. */
static uint32_t start_before(const struct shadow_pool *s, const struct hw_general *g, uint32_t b)
{
    const uint32_t place = place_before(&s->starts, place_of(g, b));
    return place == NO_PLACE ? 0 : block_at_place(g, place);
}

/* Keeps of the recent blocks those that are free, each once and in order, and takes them out of their lists. */
static void take_recent_out(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h)
{
    uint32_t kept = 0;
    sort_numbers(s->recent, s->recent_count);
    for (uint32_t k = 0; k < s->recent_count; k++) {
        const uint32_t b = s->recent[k];
        if ((kept == 0 || s->recent[kept - 1u] != b) && has_place(&s->starts, place_of(g, b))) {
            const uint32_t word = peek_word(g, h, b);
            if ((word & HW_USED) == 0) {
                take_out(s, g, h, b, word_size(g, word));
                s->recent[kept++] = b;
            }
        }
    }
    s->recent_count = kept;
}

/* The free block that b becomes with the free blocks on both sides; its size is stored. */
static uint32_t merge_around(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t b,
                             uint32_t top, uint32_t *size)
{
    *size = word_size(g, peek_word(g, h, b));
    note_merging(g, h, *size);
    if (!can_merge(g, *size)) {
        return b;
    }
    while (b + *size < top) {
        const uint32_t behind = merging_size(g, h, b + *size);
        if (behind == 0) {
            break;
        }
        take_out(s, g, h, b + *size, behind);
        note_block_gone(h, g->overhead);
        *size += behind;
    }
    const uint32_t before = start_before(s, g, b);
    const uint32_t ahead = before ? merging_size(g, h, before) : 0;
    if (ahead) {
        take_out(s, g, h, before, ahead);
        note_block_gone(h, g->overhead);
        *size += ahead;
        return before;
    }
    return b;
}

/* Where the walk over all blocks, which comes to them by address, would have filed a block of a list. */
static struct spot filing_spot(const struct sequence *q, uint32_t order, uint32_t node, uint32_t size)
{
    if (order == HW_SIZE) {
        return spot_by_size(q, node, size);
    }
    return order == HW_LIFO ? spot_below(q, node) : spot_above(q, node);
}

/* Puts a free block there. */
static void file_in_order(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t b,
                          uint32_t size)
{
    const uint32_t list = g->bins ? bin_of(g, size) : 0;
    const uint32_t head = g->lists_at + list * g->list_stride;
    struct sequence *q = &s->lists[list];
    const struct spot spot = filing_spot(q, list_order(g, list), b + g->node, size);
    const uint32_t before = q->total ? address_before(q, spot, head) : head;
    const uint32_t next = is_end(q, spot) ? 0 : address_at(q, spot);
    if (g->bins) {
        mark_bin(g, h, list);
    }
    list_link(g, h, before, b + g->node, next);
    if (has_tails(g) && next == 0) {
        store_link(&g->links, h, head + g->links.field.bytes, b + g->node);
    }
}

/* Takes the free block that ends at the top, and may merge, out of its list: its address, or 0. */
static uint32_t take_last_out(struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, uint32_t top)
{
    const uint32_t last = start_before(s, g, top);
    const uint32_t size = last ? merging_size(g, h, last) : 0;
    if (size == 0 || last + size != top) {
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

/* What it costs to file a list in order of size. In such a list, blocks of one size fall by address: a block passes
 * what is lower and lies ahead of it, and is the last one if nothing behind it is lower. */
static const struct filing *filing_of(const struct shadow_pool *s, const struct hw_general *g, uint32_t list)
{
    const struct sequence *q = &s->lists[list];
    struct filing *filing = &s->filings[list];
    if (is_linear_bin(g, list)) {
        filing->last = 1; /* all have one size */
        return filing;
    }
    if (!filing->last_known) {
        filing->last = lower_than_behind(q);
        filing->last_known = 1;
    }
    if (!filing->passed_known) {
        uint64_t twice = 0;
        for (uint32_t p = 0; p < q->places; p++) {
            const struct chunk *chunk = chunk_of(q, p);
            for (uint32_t i = 0; i < q->count[p]; i++) {
                twice += concordant_with(q, chunk->at[i], chunk->size[i]);
            }
        }
        filing->passed = twice / 2u;
        filing->passed_known = 1;
    }
    return filing;
}

/* Adds one list that holds a block: a load of the head or the tail for each block filed, and the way to its place. */
static void settle_list(const struct shadow_pool *s, const struct hw_general *g, uint32_t list, struct settled *all)
{
    const struct sequence *q = &s->lists[list];
    const uint64_t filed = q->total;
    const uint64_t link = loads_of(&g->links.field);
    const struct spot end = {q->places, 0};
    const uint32_t last = address_before(q, end, 0);
    const uint32_t order = list_order(g, list);
    uint64_t passed = order == HW_ADDRESS ? filed * (filed - 1u) / 2u : 0;
    uint64_t ends = order == HW_LIFO ? 1u : filed; /* blocks filed with none behind them */
    if (order == HW_SIZE) {
        const struct filing *filing = filing_of(s, g, list);
        passed = filing->passed;
        ends = filing->last;
        all->reads += loads_of(&g->word) * (passed + filed - ends);
    }
    all->reads += link * (passed + filed);
    all->writes += link * filed * (g->free_list == HW_DOUBLE ? 4u : 2u);
    if (has_tails(g)) {
        all->writes += link * ends;
    }
    all->last = last > all->last ? last : all->last;
    all->filed += q->total;
}

/* Adds the bins that hold a block, all of which are marked, and leaves no others marked. */
static void settle_bins(const struct shadow_pool *s, const struct hw_general *g, struct hw_heap *h, struct settled *all)
{
    uint32_t summary = 0;
    for (uint32_t word = 0; word < (g->bins + 31u) / 32u; word++) {
        const uint32_t at = g->bitmap_at + 4u * word;
        uint32_t map = 0;
        for (uint32_t marked = load4(h, at); marked; marked &= marked - 1u) {
            const uint32_t list = 32u * word + lowest_bit(marked);
            if (s->lists[list].total) {
                map |= (uint32_t)1 << list % 32u;
                settle_list(s, g, list, all);
                all->writes++;
            }
        }
        store4(h, at, map);
        all->writes++;
        if (map && g->bins > 32u) {
            summary |= (uint32_t)1 << word;
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
    all->writes += (uint64_t)loads_of(&g->links.field) * (has_tails(g) ? 2u : 1u) * s->list_count;
    if (g->bins) {
        settle_bins(s, g, h, all);
    } else if (s->list_count && s->lists[0].total) {
        settle_list(s, g, 0, all);
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

static HW_NOINLINE int merge_recent(const struct hw_general *g, struct hw_heap *h)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct hw_shadow *shadow = h->engine.shadow;
    if (!s->merges) {
        return 0;
    }
    const uint64_t word = loads_of(&g->word);
    const uint64_t reads = h->reads;
    const uint64_t writes = h->writes;
    struct settled all = {reads + 1u + word * s->block_count, writes, 0, 0};
    const uint32_t top = load4(h, g->top_at);
    const uint32_t scratch = g->free_list == HW_DOUBLE ? peek_link(g, h, g->links.field.bytes) : 0;
    take_recent_out(s, g, h);
    uint32_t end = 0;
    for (uint32_t k = 0, count = s->recent_count; k < count; k++) {
        if (s->recent[k] >= end) {
            uint32_t size;
            const uint32_t b = merge_around(s, g, h, s->recent[k], top, &size);
            end = b + size;
            store_word(g, h, b, size_word(g, size, 0));
            if (s->lists) {
                file_in_order(s, g, h, b, size);
            }
        }
    }
    s->recent_count = 0;
    const uint32_t last = take_last_out(s, g, h, top);
    const int joins_top = last && g->top == HW_TOP_LAST;
    all.reads += word * (s->merging_count - (last != 0));
    all.writes += word * (s->free_count - (joins_top != 0));
    settle_lists(s, g, h, scratch, &all);
    settle_rover(s, g, h, &all);
    shadow->lost |= s->nodes.failed || s->all.failed;
    h->engine.skipped += all.reads - reads + all.writes - writes;
    h->reads = all.reads;
    h->writes = all.writes;
    if (joins_top) {
        lower_top(g, h, last);
    }
    return 1;
}

static inline int skip_merging(const struct hw_general *g, struct hw_heap *h)
{
    return h->engine.shadow && merge_recent(g, h);
}

#endif

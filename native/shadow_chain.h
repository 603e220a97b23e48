/* shadow_chain.h: the index of a compacting pool whose blocks have no headers: its handles, as they are chained. */
#ifndef HW_SHADOW_CHAIN_H
#define HW_SHADOW_CHAIN_H

#include "shadow.h"

/* Loads that following the chain takes, a handle. */
static inline uint64_t loads_of_chain(const struct hw_compact *c)
{
    return c->in_arena ? loads_of(&c->links.field) : 1u;
}

static HW_NOINLINE void chained(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    struct shadow_pool *s = shadow_of(c, h);
    const struct spot end = {s->lists[0].places, 0};
    sequence_insert(&s->lists[0], end, k, 1u);
    drop_failed(h, &s->nodes);
}

static inline void note_chained(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    if (h->engine.shadow) {
        chained(c, h, k);
    }
}

static HW_NOINLINE void unchained(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    struct spot spot;
    struct sequence *q = sequence_with(&shadow_of(c, h)->nodes, k, &spot);
    if (q) {
        sequence_remove(q, spot);
    }
}

static inline void note_unchained(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    if (h->engine.shadow) {
        unchained(c, h, k);
    }
}

static HW_NOINLINE uint32_t end_of_chain(const struct hw_compact *c, struct hw_heap *h)
{
    const struct sequence *q = &shadow_of(c, h)->lists[0];
    const struct spot end = {q->places, 0};
    count_skipped(h, loads_of_chain(c) * (q->total - 1u));
    return address_before(q, end, 0);
}

static inline void skip_to_chain_end(const struct hw_compact *c, struct hw_heap *h, uint32_t *last)
{
    if (h->engine.shadow && *last) {
        *last = end_of_chain(c, h);
    }
}

static HW_NOINLINE uint32_t before_chained(const struct hw_compact *c, struct hw_heap *h, uint32_t before, uint32_t k)
{
    struct spot spot;
    const struct sequence *q = sequence_with(&shadow_of(c, h)->nodes, k, &spot);
    if (q == NULL) {
        return before;
    }
    count_skipped(h, loads_of_chain(c) * (rank_of(q, spot) - 1u));
    return address_before(q, spot, before);
}

static inline void skip_to_chained(const struct hw_compact *c, struct hw_heap *h, uint32_t *before, uint32_t k)
{
    if (h->engine.shadow) {
        *before = before_chained(c, h, *before, k);
    }
}

/* Indexes the chain of a compacting pool whose handles have numbers up to `most`; 0 without memory. */
static int shadow_chain(struct shadow_pool *s, const struct hw_compact *c, struct hw_heap *h, uint32_t most)
{
    const uint32_t table = handle_table(c, h);
    s->list_count = 1;
    s->lists = calloc(1, sizeof *s->lists);
    if (s->lists == NULL || !chunks_open(&s->nodes, most, 1u)) {
        return 0;
    }
    s->lists[0].chunks = &s->nodes;
    for (uint32_t k = load4(h, c->head_at); k; k = load_handle_next(c, h, table, k)) {
        const struct spot end = {s->lists[0].places, 0};
        sequence_insert(&s->lists[0], end, k, 1u);
    }
    return !s->nodes.failed;
}

#endif

/* margins.h: how near a replay came to deciding otherwise, had its thresholds been others. */
#ifndef HW_MARGINS_H
#define HW_MARGINS_H

#include "listener.h"

#include "general/block.h"

/* Narrows a margin to what compares with the threshold as x does. */
static inline void narrow(uint32_t x, uint32_t threshold, uint32_t *over, uint32_t *up_to)
{
    if (x >= threshold) {
        if (x < *up_to) {
            *up_to = x;
        }
    } else if (x > *over) {
        *over = x;
    }
}

/* A pool that never splits has a threshold that no rest reaches. It is compared all the same if the pool has a last
 * remainder. */
static inline void note_rest(const struct hw_general *g, struct hw_heap *h, uint32_t rest)
{
    const uint32_t least = g->split || g->victim_up_to ? g->split_least : UINT32_MAX;
    narrow(rest, least, &h->engine.margins.split_over, &h->engine.margins.split_up_to);
}

static inline void note_merging(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    if (g->coalesce_from > g->min_block) {
        narrow(size, g->coalesce_from, &h->engine.margins.merge_over, &h->engine.margins.merge_up_to);
    }
}

static inline void note_word_merging(const struct hw_general *g, struct hw_heap *h, uint32_t word)
{
    if ((word & HW_USED) == 0) {
        note_merging(g, h, word_size(g, word));
    }
}

#endif

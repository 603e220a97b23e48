/* shadow.h: the index that replaces long walks over the arena.
 *
 * Headers, links and tags in the arena are the source of truth, and all operations of constant time run on them as in
 * firmware. For each pool whose searches may be long, sequences outside the arena mirror the nodes of its lists and, if
 * walks go over all blocks, the blocks. The hooks (csrc/replay_hooks.h) keep them up to date and start a walk at its
 * result, with the loads counted that it would have made. A walk loads the word of what it looks at, and a list's link
 * to get there: passing an entry costs both.
 *
 * This file defines the index. For blocks of any size shadow_blocks.h builds and updates it; the hooks that use it are
 * in shadow_searches.h and shadow_merging.h. shadow_moving.h does both for blocks that move, kinds.h for all other
 * kinds of pools.
 *
 * An index can be made at any time between two calls, by a walk over the arena, and be dropped at any time: it is made
 * when a replay has walked far, so that short lists never pay for it.
 */
#ifndef HW_SHADOW_H
#define HW_SHADOW_H

#include "listener.h"
#include "check.h"
#include "sequence_find.h"

/* Cost of rebuilding a list in order of size from its blocks by rising address. */
struct filing {
    uint64_t passed; /* pairs of blocks of which the one with the lower address is the smaller */
    uint32_t last;   /* blocks that are larger than all with lower addresses */
    int passed_known;
    int last_known;
};

/* What is added up over blocks that move and the holes between them. */
struct sums {
    uint32_t bytes;
    uint32_t words; /* that moving each block copies */
    uint32_t used;  /* blocks */
    uint32_t holes;
};

/* A block that moves, with the holes behind it. */
struct stay {
    uint32_t k;    /* its handle; 0: it is gone */
    uint32_t size; /* bytes, and of one that is gone 0 */
    uint32_t hole; /* the number of the first hole behind it, from 1; 0: there is none */
};

struct hole {
    uint32_t size;
    uint32_t next;
};

/* The blocks of a compacting pool, see shadow_moving.h. */
struct moving {
    struct sums *tree; /* by place, from 1 */
    struct stay *stays;
    uint32_t *place_of; /* by handle; 0: it has no block */
    struct hole *holes;
    uint32_t *holed; /* the places that have some, in any order */
    uint32_t count;  /* places in use */
    uint32_t room;   /* a power of two */
    uint32_t hole_count;
    uint32_t hole_room;
    uint32_t holed_count;
    uint32_t asked; /* the handle that was looked at last */
};

struct shadow_pool {
    struct moving *moving;
    struct chunks nodes;
    struct sequence *lists; /* one a bin, or one; of a pool of classes all blocks of each, with size 1 where they are
                               not taken. NULL where no list is walked; those that are not have no chunks. */
    uint32_t list_count;
    struct filing *filings; /* of these; NULL if they are not rebuilt, or none is in order of size */
    struct chunks all;
    struct sequence blocks; /* by address, used ones with size 0; without chunks where no walk passes blocks */
    int padding;            /* the next word is no block's */
    int replaced;           /* the next node that is linked already is where it belongs */
    int merges;             /* whether all neighbours are merged at times by merge_recent() */
    struct places starts;   /* where it does: the blocks, by units from the first one on */
    uint32_t block_count;   /* these, */
    uint32_t free_count;    /* and how many are free, */
    uint32_t merging_count; /* or free and large enough to merge */
    uint32_t *recent;       /* what was freed since then; some of it may be used again */
    uint32_t recent_count;
    uint32_t recent_room;
};

struct hw_shadow {
    const struct hw_policy *policy;
    int lost; /* the heap was changed by what the index said after memory had run out */
    struct shadow_pool pools[HW_MAX_POOLS];
};

/* ---- looking at the arena without counting ----------------------------------------------------------------------- */

/* Loads that reading a field takes. */
static inline uint32_t loads_of(const struct hw_field *field)
{
    return field->natural ? 1u : field->bytes;
}

static inline void count_skipped(struct hw_heap *h, uint64_t loads)
{
    h->reads += loads;
    h->engine.skipped += loads;
}

/* ---- the part of a pool ------------------------------------------------------------------------------------------ */

/* What is kept for the pool of which this is part. */
static inline struct shadow_pool *shadow_of(const void *part, struct hw_heap *h)
{
    const struct hw_policy *policy = h->engine.shadow->policy;
    return &h->engine.shadow
                ->pools[(size_t)((const char *)part - (const char *)policy->pools) / sizeof policy->pools[0]];
}

/* An index that could not be kept is dropped: the arena says it all. */
static inline void drop_failed(struct hw_heap *h, const struct chunks *c)
{
    if (c->failed) {
        h->engine.shadow = NULL;
    }
}

#endif

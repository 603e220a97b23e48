/* replay_hooks.h: the hooks of a replay engine.
 *
 * The core reports changes of blocks and lists here, and calls the engine where a walk over them may be shortened. In
 * firmware each hook is an empty function, and generated code contains neither the hooks nor their calls.
 *
 * A hook called note_... reports a change. A hook called skip_... moves the position from which a walk continues past
 * nodes that would not have ended it, and counts the loads that this saved; the walk's own code does the rest. So the
 * arena remains the only source of truth.
 *
 * An engine defines HW_ENGINE and struct hw_engine before it includes the core, and the hooks after it.
 */
#ifndef HW_ENGINE_H
#define HW_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "policy.h"

struct hw_heap;
struct hw_found;
struct hw_group;

/* ---- general pools ----------------------------------------------------------------------------------------------- */

/* The word of the block b is about to be written. */
static inline void note_word(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word);
/* What is written next is no block's word. */
static inline void note_padding(const struct hw_general *g, struct hw_heap *h);
static inline void note_top(const struct hw_general *g, struct hw_heap *h, uint32_t top);
static inline void note_linked(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t node);
static inline void note_unlinked(const struct hw_general *g, struct hw_heap *h, uint32_t node);
/* The next node that is linked takes the place of `node`. */
static inline void note_replaced(const struct hw_general *g, struct hw_heap *h, uint32_t node, uint32_t by);
static inline void note_cleared(const struct hw_general *g, struct hw_heap *h);

/* To the word behind which the order of the list wants a block b of this size. */
static inline void skip_to_place(const struct hw_general *g, struct hw_heap *h, uint32_t order, uint32_t *before,
                                 uint32_t b, uint32_t size);
/* To the word that points to a node of the list at `before`. */
static inline void skip_to_node(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t node);
/* To the words around the place of the block b in a list by address, which begins at `before`. */
static inline void skip_to_neighbours(const struct hw_general *g, struct hw_heap *h, uint32_t *before_lower,
                                      uint32_t *before, uint32_t b);
/* To the block `at` = b, with the block before it. */
static inline void skip_to_block(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t *at,
                                 uint32_t b);
/* To the last node of a list. */
static inline void skip_to_last(const struct hw_general *g, struct hw_heap *h, uint32_t *node);
/* Past the nodes behind `before`, as far as `end`, that are not the first one that will do. */
static inline void skip_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t end,
                              uint32_t size, uint32_t *left);
/* Past the blocks from b to `end` that are not the first one that will do. */
static inline void skip_blocks(const struct hw_general *g, struct hw_heap *h, uint32_t *b, uint32_t end, uint32_t size);
/* Past the used blocks from b to `end`. */
static inline void skip_used(const struct hw_general *g, struct hw_heap *h, uint32_t *b, uint32_t end);
/* Past a whole search for the best node of the list at `head`, which is found; 0 where it has to be walked. */
static inline int skip_to_best_node(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t size,
                                    uint32_t budget, struct hw_found *found);
/* The same for the best block. */
static inline int skip_to_best_block(const struct hw_general *g, struct hw_heap *h, uint32_t size,
                                     struct hw_found *found);
/* Past nodes, as far as `end`, that a search which merges what it passes would neither merge nor take. */
static inline void skip_quiet_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t *node,
                                    uint32_t end, uint32_t size);
/* The same for a search of a whole list, which takes what is better than `best`. */
static inline void skip_worse_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t *node,
                                    uint32_t size, uint32_t best, uint32_t *budget);
/* The same for a search ahead of which free blocks are merged, and that takes none. */
static inline void skip_unswept(const struct hw_general *g, struct hw_heap *h, uint32_t *node);
/* The same for blocks as far as `end`. */
static inline void skip_quiet_blocks(const struct hw_general *g, struct hw_heap *h, uint32_t *b, uint32_t end,
                                     uint32_t size, uint32_t best);

/* Does the work of the walk that merges all neighbours and rebuilds the free lists; 0 if the walk has to be made.
 */
static inline int skip_merging(const struct hw_general *g, struct hw_heap *h);

/* The free block b of `have` bytes is about to serve a request of `size` bytes. */
static inline void note_chosen(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t have, uint32_t size);
/* A remainder of `rest` bytes is about to be compared with the split threshold. */
static inline void note_rest(const struct hw_general *g, struct hw_heap *h, uint32_t rest);
/* The size of a free block is about to be compared with the smallest that merges. */
static inline void note_merging(const struct hw_general *g, struct hw_heap *h, uint32_t size);
/* The same for the block with this word, where that is free. */
static inline void note_word_merging(const struct hw_general *g, struct hw_heap *h, uint32_t word);

/* ---- the other kinds --------------------------------------------------------------------------------------------- */

/* To the quick list of blocks of this size, for payloads of `size` bytes; to the number of lists where there is none.
 * 0 where it has to be looked for. */
static inline int skip_to_list(const struct hw_quick *q, struct hw_heap *h, size_t size, uint32_t block,
                               uint32_t *list);
/* Skips lists without a block from this turn (`now`) or from an older one (`older`), except the last list. */
static inline void skip_empty_lists(const struct hw_quick *q, struct hw_heap *h, uint32_t *list, const int now,
                                    const int older);

/* The block of a class whose header or flag lies at `at` is taken, or not; it may be a new one. */
static inline void note_flag(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at, uint32_t taken);
/* To the first block of the chain that is not taken. */
static inline void skip_taken(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t *at);
/* To the first flag of the class that is clear; 0 where none is. */
static inline int skip_flags(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t *i);

/* The group `i` is about to have `count` partitions. */
static inline void note_group(const struct hw_partition *g, struct hw_heap *h, uint32_t i, uint32_t count);
static inline void note_group_linked(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t before,
                                     uint32_t i);
static inline void note_group_unlinked(const struct hw_partition *g, struct hw_heap *h, uint32_t i);
/* To the groups between which the order of the list wants the group `i`. */
static inline void skip_to_group_place(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t *before,
                                       uint32_t *next, uint32_t i, uint32_t count);
/* To the first group that will do, or past the whole search for the best one, which is then found: 1. */
static inline int skip_groups(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t count,
                              uint32_t *i, struct hw_group *found);

/* A block of this size was made at the top for the handle k; that of k is gone. */
static inline void note_placed(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t size);
static inline void note_released(const struct hw_compact *c, struct hw_heap *h, uint32_t k);
/* The block of k, which is the last one, grows by `by` bytes, modulo 2^32. */
static inline void note_stretched(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t by);
/* The last `size` bytes of the block of k become a hole. */
static inline void note_hole(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t size);
/* Does the move of all blocks from `from` on, behind the block of k, and the update of their handles; 0 if the core has
 * to. */
static inline int skip_shifting(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t from, uint32_t to);
/* The same of closing all holes. */
static inline int skip_sliding(const struct hw_compact *c, struct hw_heap *h);
/* From the first handle of the chain to the last one. */
static inline void skip_to_chain_end(const struct hw_compact *c, struct hw_heap *h, uint32_t *last);
/* From the first handle of the chain to the one before k, which is not the first. */
static inline void skip_to_chained(const struct hw_compact *c, struct hw_heap *h, uint32_t *before, uint32_t k);
/* The same for a walk that looks where each block ends, and then at the one behind k. */
static inline void skip_to_checked(const struct hw_compact *c, struct hw_heap *h, uint32_t *before, uint32_t k);

/* ---- the arena's bytes ------------------------------------------------------------------------------------------- */

/* Metadata is about to be stored at this address. */
static inline void note_stored(struct hw_heap *h, uint32_t at);
/* Past copying `bytes` bytes of the application's one by one; 0 where it has to be done. */
static inline int skip_copying(struct hw_heap *h, uint32_t to, uint32_t from, uint32_t bytes);
/* Whether the mask of a guard or fill need not be computed and may be 0; 0 if a reader will see it. */
static inline int skip_mixing(struct hw_heap *h);
/* Whether the boundaries of all pools need no check, because a replay damages none; 0 if they do. */
static inline int skip_bounds(struct hw_heap *h);
/* Does the fill of `bytes` bytes of padding or, without `stores`, their check; 0 if the core has to. */
static inline int skip_padding(struct hw_heap *h, uint32_t bytes, const int stores);
/* The same for the words of a freed payload. */
static inline int skip_filling(const struct hw_policy *p, struct hw_heap *h, uint32_t words, const int stores);

/* ---- without an engine ------------------------------------------------------------------------------------------- */

#ifndef HW_ENGINE
#ifdef HW_EXPLORE
/* What is kept with a heap. */
struct hw_engine {
    uint64_t skipped; /* accesses counted that were not made: none */
};
#endif

static inline void note_word(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    (void)g, (void)h, (void)b, (void)word;
}

static inline void note_padding(const struct hw_general *g, struct hw_heap *h)
{
    (void)g, (void)h;
}

static inline void note_top(const struct hw_general *g, struct hw_heap *h, uint32_t top)
{
    (void)g, (void)h, (void)top;
}

static inline void note_linked(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t node)
{
    (void)g, (void)h, (void)before, (void)node;
}

static inline void note_unlinked(const struct hw_general *g, struct hw_heap *h, uint32_t node)
{
    (void)g, (void)h, (void)node;
}

static inline void note_replaced(const struct hw_general *g, struct hw_heap *h, uint32_t node, uint32_t by)
{
    (void)g, (void)h, (void)node, (void)by;
}

static inline void note_cleared(const struct hw_general *g, struct hw_heap *h)
{
    (void)g, (void)h;
}

static inline void skip_to_place(const struct hw_general *g, struct hw_heap *h, uint32_t order, uint32_t *before,
                                 uint32_t b, uint32_t size)
{
    (void)g, (void)h, (void)order, (void)before, (void)b, (void)size;
}

static inline void skip_to_node(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t node)
{
    (void)g, (void)h, (void)before, (void)node;
}

static inline void skip_to_neighbours(const struct hw_general *g, struct hw_heap *h, uint32_t *before_lower,
                                      uint32_t *before, uint32_t b)
{
    (void)g, (void)h, (void)before_lower, (void)before, (void)b;
}

static inline void skip_to_block(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t *at,
                                 uint32_t b)
{
    (void)g, (void)h, (void)before, (void)at, (void)b;
}

static inline void skip_to_last(const struct hw_general *g, struct hw_heap *h, uint32_t *node)
{
    (void)g, (void)h, (void)node;
}

static inline void skip_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t end,
                              uint32_t size, uint32_t *left)
{
    (void)g, (void)h, (void)before, (void)end, (void)size, (void)left;
}

static inline void skip_blocks(const struct hw_general *g, struct hw_heap *h, uint32_t *b, uint32_t end, uint32_t size)
{
    (void)g, (void)h, (void)b, (void)end, (void)size;
}

static inline void skip_used(const struct hw_general *g, struct hw_heap *h, uint32_t *b, uint32_t end)
{
    (void)g, (void)h, (void)b, (void)end;
}

static inline int skip_to_best_node(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t size,
                                    uint32_t budget, struct hw_found *found)
{
    (void)g, (void)h, (void)head, (void)size, (void)budget, (void)found;
    return 0;
}

static inline int skip_to_best_block(const struct hw_general *g, struct hw_heap *h, uint32_t size,
                                     struct hw_found *found)
{
    (void)g, (void)h, (void)size, (void)found;
    return 0;
}

static inline void skip_quiet_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t *node,
                                    uint32_t end, uint32_t size)
{
    (void)g, (void)h, (void)before, (void)node, (void)end, (void)size;
}

static inline void skip_worse_nodes(const struct hw_general *g, struct hw_heap *h, uint32_t *before, uint32_t *node,
                                    uint32_t size, uint32_t best, uint32_t *budget)
{
    (void)g, (void)h, (void)before, (void)node, (void)size, (void)best, (void)budget;
}

static inline void skip_unswept(const struct hw_general *g, struct hw_heap *h, uint32_t *node)
{
    (void)g, (void)h, (void)node;
}

static inline void skip_quiet_blocks(const struct hw_general *g, struct hw_heap *h, uint32_t *b, uint32_t end,
                                     uint32_t size, uint32_t best)
{
    (void)g, (void)h, (void)b, (void)end, (void)size, (void)best;
}

static inline int skip_merging(const struct hw_general *g, struct hw_heap *h)
{
    (void)g, (void)h;
    return 0;
}

static inline void note_chosen(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t have, uint32_t size)
{
    (void)g, (void)h, (void)b, (void)have, (void)size;
}

static inline void note_rest(const struct hw_general *g, struct hw_heap *h, uint32_t rest)
{
    (void)g, (void)h, (void)rest;
}

static inline void note_merging(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    (void)g, (void)h, (void)size;
}

static inline void note_word_merging(const struct hw_general *g, struct hw_heap *h, uint32_t word)
{
    (void)g, (void)h, (void)word;
}

static inline int skip_to_list(const struct hw_quick *q, struct hw_heap *h, size_t size, uint32_t block, uint32_t *list)
{
    (void)q, (void)h, (void)size, (void)block, (void)list;
    return 0;
}

static inline void skip_empty_lists(const struct hw_quick *q, struct hw_heap *h, uint32_t *list, const int now,
                                    const int older)
{
    (void)q, (void)h, (void)list, (void)now, (void)older;
}

static inline void note_flag(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at, uint32_t taken)
{
    (void)f, (void)h, (void)class_, (void)at, (void)taken;
}

static inline void skip_taken(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t *at)
{
    (void)f, (void)h, (void)class_, (void)at;
}

static inline int skip_flags(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t *i)
{
    (void)f, (void)h, (void)class_, (void)i;
    return 1;
}

static inline void note_group(const struct hw_partition *g, struct hw_heap *h, uint32_t i, uint32_t count)
{
    (void)g, (void)h, (void)i, (void)count;
}

static inline void note_group_linked(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t before,
                                     uint32_t i)
{
    (void)g, (void)h, (void)head, (void)before, (void)i;
}

static inline void note_group_unlinked(const struct hw_partition *g, struct hw_heap *h, uint32_t i)
{
    (void)g, (void)h, (void)i;
}

static inline void skip_to_group_place(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t *before,
                                       uint32_t *next, uint32_t i, uint32_t count)
{
    (void)g, (void)h, (void)head, (void)before, (void)next, (void)i, (void)count;
}

static inline int skip_groups(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t count,
                              uint32_t *i, struct hw_group *found)
{
    (void)g, (void)h, (void)head, (void)count, (void)i, (void)found;
    return 0;
}

static inline void note_placed(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t size)
{
    (void)c, (void)h, (void)k, (void)size;
}

static inline void note_released(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    (void)c, (void)h, (void)k;
}

static inline void note_stretched(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t by)
{
    (void)c, (void)h, (void)k, (void)by;
}

static inline void note_hole(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t size)
{
    (void)c, (void)h, (void)k, (void)size;
}

static inline int skip_shifting(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t from, uint32_t to)
{
    (void)c, (void)h, (void)k, (void)from, (void)to;
    return 0;
}

static inline int skip_sliding(const struct hw_compact *c, struct hw_heap *h)
{
    (void)c, (void)h;
    return 0;
}

static inline void skip_to_chain_end(const struct hw_compact *c, struct hw_heap *h, uint32_t *last)
{
    (void)c, (void)h, (void)last;
}

static inline void skip_to_chained(const struct hw_compact *c, struct hw_heap *h, uint32_t *before, uint32_t k)
{
    (void)c, (void)h, (void)before, (void)k;
}

static inline void skip_to_checked(const struct hw_compact *c, struct hw_heap *h, uint32_t *before, uint32_t k)
{
    (void)c, (void)h, (void)before, (void)k;
}

static inline void note_stored(struct hw_heap *h, uint32_t at)
{
    (void)h, (void)at;
}

static inline int skip_copying(struct hw_heap *h, uint32_t to, uint32_t from, uint32_t bytes)
{
    (void)h, (void)to, (void)from, (void)bytes;
    return 0;
}

static inline int skip_mixing(struct hw_heap *h)
{
    (void)h;
    return 0;
}

static inline int skip_bounds(struct hw_heap *h)
{
    (void)h;
    return 0;
}

static inline int skip_padding(struct hw_heap *h, uint32_t bytes, const int stores)
{
    (void)h, (void)bytes, (void)stores;
    return 0;
}

static inline int skip_filling(const struct hw_policy *p, struct hw_heap *h, uint32_t words, const int stores)
{
    (void)p, (void)h, (void)words, (void)stores;
    return 0;
}
#endif

#endif

/* checked_state.h: a heap with its objects, and what must hold of it after every call.
 *
 * Where something does not hold, the heap is drawn, and the program aborts. Included by checked_heap.h, which calls.
 */
#ifndef CHECKED_STATE_H
#define CHECKED_STATE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { MOST_OBJECTS = 400, STATISTICS_EVERY = 8 };

struct object {
    unsigned char *at; /* where it is; objects that move have a reference instead */
    void **reference;
    size_t asked; /* its last request */
    size_t usable;
    uint32_t tag;
};

struct checked {
    const struct hw_policy *policy;
    struct hw_heap heap;
    void *memory; /* references, if any, and the arena */
    size_t bytes;
    struct object objects[MOST_OBJECTS];
    void **spare[MOST_OBJECTS]; /* references; those from `count` on have no object */
    uint32_t count;
    uint32_t tags;
    uint32_t refused;
    uint32_t misused;
    uint32_t peak;      /* as reported last */
    uint32_t uncovered; /* peak of a fresh heap */
    uint64_t operations;
    uint64_t moved_bytes;  /* when it was looked at last */
    const char *operation; /* the last one, for messages */
    size_t argument;
};

static unsigned char pattern_byte(uint32_t tag, size_t i)
{
    return (unsigned char)(tag * 197u + (uint32_t)(i ^ i >> 8) * 31u + 7u);
}

/* Draws the heap for the message of a failure. */
static void draw(const struct checked *c)
{
    static const char *const states[] = {"?", "used", "free", "cached", "victim"};
    struct hw_heap heap = c->heap;
    struct hw_block block = {0, 0, 0, 0, 0};
    for (int most = 1000; most > 0 && hw_next_block(c->policy, &heap, &block); most--) {
        fprintf(stderr, "pool %u: %u:%u:%s\n", (unsigned)block.pool, (unsigned)block.offset, (unsigned)block.size,
                states[block.state]);
    }
}

static void fail(const struct checked *c, const char *what, long detail)
{
    draw(c);
    fprintf(stderr, "operation %llu, %s(%zu): %s (%ld)\n", (unsigned long long)c->operations, c->operation, c->argument,
            what, detail);
    abort();
}

static void expect(const struct checked *c, int holds, const char *what, long detail)
{
    if (!holds) {
        fail(c, what, detail);
    }
}

/* ---- what must hold after every call --------------------------------------------------------------------------- */

/* Bytes behind a block's payload that count with its header: trailer, and padding that was not needed in front. */
static uint32_t behind_payload(const struct checked *c, const struct hw_block *block)
{
    const struct hw_pool *pool = &c->policy->pools[block->pool];
    if (pool->kind == HW_BUDDY) {
        return pool->buddy.trailer;
    }
    if (pool->kind == HW_FIXED) {
        return pool->fixed.trailer;
    }
    return pool->kind == HW_GENERAL && block->state != HW_BLOCK_VICTIM ? pool->general.overhead - block->header : 0;
}

static int moves(const struct checked *c)
{
    return c->policy->pools[0].kind == HW_COMPACT;
}

/* Where the object is now. */
static unsigned char *object_at(struct checked *c, const struct object *object)
{
    return moves(c) ? hw_handle_pointer(c->policy, &c->heap, object->reference) : object->at;
}

/* Bytes of descriptors that lie elsewhere. */
static uint32_t descriptors_of(struct checked *c, const struct hw_pool *pool, const struct hw_block *block)
{
    const struct hw_partition *g = &pool->partition;
    return pool->kind == HW_PARTITION ? block->size / g->partition * g->descriptor : 0;
}

/* Blocks lie in the arena and do not overlap; the accounts agree with them. */
static void check_walk(struct checked *c, const struct hw_statistics *stats)
{
    struct hw_block block = {0, 0, 0, 0, 0};
    uint32_t headers = 0;
    uint32_t used = 0;
    uint32_t end = 0;
    uint32_t pool = 0;
    while (hw_next_block(c->policy, &c->heap, &block)) {
        if (block.pool != pool) {
            pool = block.pool;
            end = 0;
        }
        expect(c, block.offset >= c->policy->control && block.offset >= end, "blocks overlap", (long)block.offset);
        end = block.offset + block.size;
        expect(c, end <= c->bytes, "a block leaves the arena", (long)end);
        headers += block.header + behind_payload(c, &block) + descriptors_of(c, &c->policy->pools[pool], &block);
        if (block.state == HW_BLOCK_USED) {
            const void *payload = c->heap.base + block.offset + block.header;
            expect(c, moves(c) || hw_block_bytes(c->policy, &c->heap, payload) == block.size, "bytes of a block",
                   (long)block.offset);
            used++;
        }
    }
    expect(c, headers == c->heap.header_bytes, "header bytes differ from the walk", (long)headers);
    expect(c, used == c->count, "used blocks are not the live objects", (long)used);
    expect(c, stats->used_blocks == used, "statistics and walk differ", (long)stats->used_blocks);
}

/* Whether a search may miss a block that is large enough: bins that are rounded up, a search that ends early, and an
 * exact fit that merges the exact block away as it passes, or where blocks are not all of the requested sizes.
 * A heap that grows by more than the request may refuse what is left above its top. */
static int may_miss(const struct hw_general *g)
{
    const int merges_away = g->coalesce == HW_LAZY || g->coalesce == HW_SWEEP;
    return g->fit == HW_EXACT && (merges_away || g->powers);
}

/* Whether nothing but its own search keeps a pool from serving what is free. */
static int serves_largest(const struct hw_pool *pool)
{
    return pool->kind != HW_COMPACT && !(pool->kind == HW_GENERAL && may_miss(&pool->general));
}

/* A request of what is reported as free is served where nothing but its own pool's search decides. */
static void check_largest_free(struct checked *c, const struct hw_statistics *stats)
{
    const int quick = c->policy->pools[0].kind == HW_QUICK;
    const struct hw_pool *pool = &c->policy->pools[quick];
    const uint32_t n = stats->largest_free;
    if ((quick && c->policy->pool_count != 2u) || !serves_largest(pool) || n == 0 || n < pool->min_size ||
        n > pool->max_size) {
        return;
    }
    /* a general pool may merge once it searches, and freed blocks that wait are given back before a refusal */
    if (c->policy->pool_count == 1u && pool->kind != HW_GENERAL && c->policy->checks < HW_CHECKS_FULL &&
        n < pool->max_size) {
        expect(c, hw_malloc(c->policy, &c->heap, n + 1u) == NULL, "more than the largest can be had", (long)n);
        c->refused++;
    }
    void *at = hw_malloc(c->policy, &c->heap, n);
    expect(c, at != NULL, "the largest free block cannot be had", (long)n);
    memset(at, 0xa5, hw_usable_size(c->policy, &c->heap, at));
    hw_free(c->policy, &c->heap, at);
    expect(c, hw_check(c->policy, &c->heap) == 0, "broken by taking the largest free block", (long)n);
}

/* Whether some pool's blocks take all its memory from the start. */
static int fills_arena(const struct checked *c)
{
    int fills = 0;
    for (uint32_t i = 0; i < c->policy->pool_count; i++) {
        fills |= c->policy->pools[i].kind == HW_GENERAL && c->policy->pools[i].general.top == HW_TOP_LIST;
    }
    return fills;
}

/* The same for objects that move: room is all that is not in use. */
static void check_room(struct checked *c, const struct hw_statistics *stats)
{
    void **reference = (void **)(void *)c->heap.base - 3u * (MOST_OBJECTS + 1u);
    const uint32_t n = stats->largest_free;
    if (!moves(c) || n == 0 || n < c->policy->pools[0].min_size || n > c->policy->pools[0].max_size) {
        return;
    }
    if (n < c->policy->pools[0].max_size) {
        expect(c, !hw_handle_alloc(c->policy, &c->heap, reference, n + 1u), "more than there is can be had", (long)n);
        c->refused++;
    }
    expect(c, hw_handle_alloc(c->policy, &c->heap, reference, n), "all that is free cannot be had", (long)n);
    memset(hw_handle_pointer(c->policy, &c->heap, reference), 0xa5, n);
    hw_handle_free(c->policy, &c->heap, reference);
    expect(c, hw_check(c->policy, &c->heap) == 0, "broken by taking all that is free", (long)n);
}

static void check_statistics(struct checked *c)
{
    const struct hw_statistics stats = hw_statistics(c->policy, &c->heap);
    expect(c, stats.refused == c->refused, "refused requests are miscounted", (long)stats.refused);
    expect(c, stats.misused == c->misused, "invalid pointers are miscounted", (long)stats.misused);
    expect(c, stats.peak >= c->peak, "the peak decreased", (long)stats.peak);
    expect(c, stats.peak == c->uncovered + c->heap.covered_bytes, "the peak is not what blocks covered",
           (long)stats.peak);
    expect(c, stats.used + stats.unused <= stats.peak - c->uncovered || fills_arena(c),
           "more in blocks than was covered", (long)stats.used);
    c->peak = stats.peak;
    check_walk(c, &stats);
    const size_t all = hw_largest_free(c->policy, &c->heap, UINT32_MAX);
    const size_t few = hw_largest_free(c->policy, &c->heap, 4);
    expect(c, all <= stats.largest_free, "a larger block is found than by the walk, which counts cached ones",
           (long)all);
    expect(c, few <= all, "among the first few is a larger block than among all", (long)few);
    check_largest_free(c, &stats);
    check_room(c, &stats);
}

#endif

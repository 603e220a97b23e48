/* checked_heap.h: a heap behind calls that check everything that can be seen from outside.
 *
 * Every object's whole usable size carries a pattern, which is verified before it is freed or resized, and after every
 * call that moved objects. Objects that move are reached through references in front of the arena. After every call
 * the checker walks the heap, and the refused and misused requests are compared with our own count. Every few calls
 * the statistics are compared with the walk and with the accounts of the exploration build. Compile with HW_EXPLORE.
 */
#ifndef CHECKED_HEAP_H
#define CHECKED_HEAP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "largest.h"

enum { MOST_OBJECTS = 400, STATISTICS_EVERY = 8 };

struct object {
    unsigned char *at; /* where it is; objects that move have a reference instead */
    void **reference;
    size_t asked; /* what it was asked for last */
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
    uint32_t peak;      /* as told last */
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

/* Draws the heap for whoever reads a failure. */
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

/* Bytes of handles in the arena. */
static uint32_t handles_of(struct checked *c)
{
    const struct hw_compact *compact = &c->policy->pools[0].compact;
    return moves(c) && compact->in_arena ? load4(&c->heap, compact->handles_at) * compact->handle : 0;
}

/* Bytes of descriptors that lie elsewhere; of a page with the first of its blocks. */
static uint32_t descriptors_of(struct checked *c, const struct hw_pool *pool, const struct hw_block *block)
{
    if (pool->kind == HW_PAGES) {
        const uint32_t end = load4(&c->heap, pool->pages.end_at);
        const uint32_t b = page_at(&pool->pages, end, page_number(&pool->pages, end, block->offset));
        return block->offset == b ? ((uint32_t)1 << pool->pages.page_log2) - pool->pages.room : 0;
    }
    const struct hw_partition *g = &pool->partition;
    return pool->kind == HW_PARTITION ? block->size / g->partition * g->descriptor : 0;
}

/* Blocks lie in the arena and do not overlap; the accounts agree with them. */
static void check_walk(struct checked *c, const struct hw_statistics *told)
{
    struct hw_block block = {0, 0, 0, 0, 0};
    uint32_t headers = handles_of(c);
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
    expect(c, told->used_blocks == used, "statistics and walk differ", (long)told->used_blocks);
}

/* Whether a search may miss a block that is large enough: bins that are rounded up, a search that ends early, and an
 * exact fit that merges the exact block away as it passes, or where blocks are not all of the sizes that are asked for.
 * A heap that grows by more than was asked for may refuse what is left above its top. */
static int may_miss(const struct hw_general *g)
{
    const int merges_away = g->coalesce == HW_LAZY || g->coalesce == HW_SWEEP;
    return g->bin_round_up || g->search_most || g->grow_least || (g->fit == HW_EXACT && (merges_away || g->powers));
}

/* Whether nothing but its own search keeps a pool from serving what is free. */
static int serves_largest(const struct hw_pool *pool)
{
    return pool->kind == HW_BUDDY || pool->kind == HW_PARTITION ||
           (pool->kind == HW_GENERAL && !may_miss(&pool->general));
}

/* A request of what is told to be free is served where nothing but its own pool's search decides. */
static void check_largest_free(struct checked *c, const struct hw_statistics *told)
{
    const struct hw_pool *pool = &c->policy->pools[0];
    const uint32_t n = told->largest_free;
    if (c->policy->pool_count > 1 || !serves_largest(pool) || n == 0 || n < pool->min_size || n > pool->max_size) {
        return;
    }
    /* a general pool may merge once it searches, and freed blocks that wait are given back before a refusal */
    if (pool->kind != HW_GENERAL && c->policy->checks < HW_CHECKS_FULL && n < pool->max_size) {
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
static void check_room(struct checked *c, const struct hw_statistics *told)
{
    void **reference = (void **)(void *)c->heap.base - 3u * (MOST_OBJECTS + 1u);
    const uint32_t n = told->largest_free;
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
    const struct hw_statistics told = hw_statistics(c->policy, &c->heap);
    expect(c, told.refused == c->refused, "refused requests are miscounted", (long)told.refused);
    expect(c, told.misused == c->misused, "wrong pointers are miscounted", (long)told.misused);
    expect(c, told.peak >= c->peak, "the peak decreased", (long)told.peak);
    expect(c, told.peak == c->uncovered + c->heap.covered_bytes, "the peak is not what blocks covered",
           (long)told.peak);
    expect(c, told.used + told.unused <= told.peak - c->uncovered || fills_arena(c), "more in blocks than was covered",
           (long)told.used);
    c->peak = told.peak;
    check_walk(c, &told);
    const size_t all = hw_largest_free(c->policy, &c->heap, UINT32_MAX);
    const size_t few = hw_largest_free(c->policy, &c->heap, 4);
    expect(c, all == told.largest_free, "the largest block that is found is not that of the walk", (long)all);
    expect(c, few <= all, "among the first few is a larger block than among all", (long)few);
    check_largest_free(c, &told);
    check_room(c, &told);
}

/* ---- objects ------------------------------------------------------------------------------------------------------
 */

static void fill(struct checked *c, const struct object *object, size_t from)
{
    unsigned char *at = object_at(c, object);
    for (size_t i = from; i < object->usable; i++) {
        at[i] = pattern_byte(object->tag, i);
    }
}

static void verify(struct checked *c, const struct object *object, size_t bytes)
{
    const unsigned char *at = object_at(c, object);
    for (size_t i = 0; i < bytes; i++) {
        expect(c, at[i] == pattern_byte(object->tag, i), "a payload changed", (long)i);
    }
}

static void check_after(struct checked *c)
{
    c->operations++;
    for (uint32_t i = 0; i < c->count && c->heap.moved_bytes != c->moved_bytes && moves(c); i++) {
        verify(c, &c->objects[i], c->objects[i].usable);
    }
    c->moved_bytes = c->heap.moved_bytes;
    const int broken = hw_check(c->policy, &c->heap);
    expect(c, broken == 0, "the checker found the heap broken", broken);
    if (c->operations % STATISTICS_EVERY == 0) {
        check_statistics(c);
    }
}

/* Notes what a request returned; `alignment` is what was asked for. */
static void enter(struct checked *c, unsigned char *at, size_t size, size_t alignment)
{
    if (at == NULL) {
        c->refused++;
        return;
    }
    struct object *object = &c->objects[c->count++];
    object->at = at;
    object->tag = c->tags++;
    object->asked = size;
    object->usable = hw_usable_size(c->policy, &c->heap, at);
    expect(c, (uintptr_t)at % alignment == 0, "misaligned", (long)((uintptr_t)at % alignment));
    expect(c, object->usable >= size && object->usable > 0, "less than asked for", (long)object->usable);
    fill(c, object, 0);
}

/* Asks for an object that moves. */
static void enter_moving(struct checked *c, size_t size)
{
    struct object *object = &c->objects[c->count];
    object->reference = c->spare[c->count];
    if (!hw_handle_alloc(c->policy, &c->heap, object->reference, size)) {
        expect(c, *object->reference == NULL, "a refused reference leads somewhere", 0);
        c->refused++;
        return;
    }
    c->count++;
    object->tag = c->tags++;
    object->asked = size;
    object->usable = hw_handle_usable_size(c->policy, &c->heap, object->reference);
    expect(c, (uintptr_t)object_at(c, object) % c->policy->align == 0, "misaligned", 0);
    expect(c, object->usable >= size && object->usable > 0, "less than asked for", (long)object->usable);
    fill(c, object, 0);
}

static int is_full(const struct checked *c)
{
    return c->count == MOST_OBJECTS;
}

/* ---- operations -----------------------------------------------------------------------------------------------------
 */

static void do_malloc(struct checked *c, size_t size)
{
    c->operation = "malloc";
    c->argument = size;
    if (moves(c)) {
        enter_moving(c, size);
    } else {
        enter(c, hw_malloc(c->policy, &c->heap, size), size, c->policy->align);
    }
    check_after(c);
}

static inline void do_calloc(struct checked *c, size_t count, size_t size)
{
    c->operation = "calloc";
    c->argument = count;
    if (moves(c)) {
        do_malloc(c, size);
        return;
    }
    unsigned char *at = hw_calloc(c->policy, &c->heap, count, size);
    for (size_t i = 0; at && i < count * size; i++) {
        expect(c, at[i] == 0, "not zero", (long)i);
    }
    expect(c, at == NULL || size == 0 || count <= SIZE_MAX / size, "an overflowing product was served", 0);
    enter(c, at, at ? count * size : 0, c->policy->align);
    check_after(c);
}

static inline void do_aligned_alloc(struct checked *c, size_t alignment, size_t size)
{
    c->operation = "aligned_alloc";
    c->argument = alignment;
    if (moves(c)) {
        do_malloc(c, size);
        return;
    }
    unsigned char *at = hw_aligned_alloc(c->policy, &c->heap, alignment, size);
    expect(c, at == NULL || (alignment != 0 && (alignment & (alignment - 1u)) == 0), "no power of two", 0);
    enter(c, at, size, at ? alignment : 1u);
    check_after(c);
}

static void resize_moving(struct checked *c, struct object *object, size_t size)
{
    const size_t had = object->usable;
    const int served = hw_handle_realloc(c->policy, &c->heap, object->reference, size);
    object->usable = hw_handle_usable_size(c->policy, &c->heap, object->reference);
    if (!served) {
        c->refused++;
        expect(c, size > object->asked, "a smaller size was refused", (long)had);
        expect(c, object->usable == had, "a refused realloc resized", 0);
        verify(c, object, object->usable);
        return;
    }
    object->asked = size;
    expect(c, object->usable >= size && object->usable > 0, "less than asked for", (long)object->usable);
    const size_t kept = had < object->usable ? had : object->usable;
    verify(c, object, kept);
    fill(c, object, kept);
}

static inline void do_realloc(struct checked *c, uint32_t index, size_t size)
{
    struct object *object = &c->objects[index];
    c->operation = "realloc";
    c->argument = size;
    verify(c, object, object->usable);
    if (moves(c)) {
        resize_moving(c, object, size);
        check_after(c);
        return;
    }
    unsigned char *at = hw_realloc(c->policy, &c->heap, object->at, size);
    if (at == NULL) {
        c->refused++;
        expect(c, size > object->asked, "a smaller size was refused", (long)object->usable);
        expect(c, hw_usable_size(c->policy, &c->heap, object->at) == object->usable, "a refused realloc resized", 0);
        verify(c, object, object->usable);
    } else {
        const size_t had = object->usable;
        object->at = at;
        object->asked = size;
        object->usable = hw_usable_size(c->policy, &c->heap, at);
        expect(c, object->usable >= size, "less than asked for", (long)object->usable);
        expect(c, (uintptr_t)at % c->policy->align == 0, "misaligned", 0);
        const size_t kept = had < object->usable ? had : object->usable;
        verify(c, object, kept < size ? kept : size);
        fill(c, object, 0);
    }
    check_after(c);
}

/* Frees an object without a look at the heap afterwards. */
static void leave(struct checked *c, uint32_t index)
{
    const struct object object = c->objects[index];
    c->operation = "free";
    c->argument = (size_t)(object_at(c, &object) - c->heap.base);
    verify(c, &object, object.usable);
    c->objects[index] = c->objects[--c->count];
    if (moves(c)) {
        hw_handle_free(c->policy, &c->heap, object.reference);
        expect(c, *object.reference == NULL, "a freed reference leads somewhere", 0);
        c->spare[c->count] = object.reference;
        return;
    }
    hw_free(c->policy, &c->heap, object.at);
}

static void do_free(struct checked *c, uint32_t index)
{
    leave(c, index);
    check_after(c);
}

static inline void do_free_null(struct checked *c)
{
    c->operation = "free";
    c->argument = 0;
    hw_free(c->policy, &c->heap, NULL);
    expect(c, hw_usable_size(c->policy, &c->heap, NULL) == 0, "NULL has a size", 0);
    expect(c, hw_block_bytes(c->policy, &c->heap, NULL) == 0, "NULL has a block", 0);
    check_after(c);
}

/* ---- misuse: ignored and counted where the policy checks --------------------------------------------------------- */

/* Frees or resizes by a reference that leads to nothing; it is left as it was. */
static void misuse_reference(struct checked *c, void **reference, unsigned char *wrong, int by_realloc)
{
    void *const right = *reference;
    *reference = wrong;
    if (by_realloc) {
        expect(c, !hw_handle_realloc(c->policy, &c->heap, reference, 8), "a wrong reference was resized", 0);
    } else {
        hw_handle_free(c->policy, &c->heap, reference);
    }
    expect(c, *reference == wrong, "a wrong reference was changed", 0);
    *reference = right;
}

/* Gives the heap a pointer that is no used block; the arena must stay as it is but for the count. */
static void misuse(struct checked *c, void **reference, unsigned char *wrong, int by_realloc)
{
    unsigned char *before = malloc(c->bytes);
    memcpy(before, c->heap.base, c->bytes);
    if (moves(c)) {
        misuse_reference(c, reference, wrong, by_realloc);
    } else if (by_realloc) {
        expect(c, hw_realloc(c->policy, &c->heap, wrong, 8) == NULL, "a wrong pointer was resized", 0);
    } else {
        hw_free(c->policy, &c->heap, wrong);
    }
    c->misused++;
    memcpy(before + c->policy->misused_at, c->heap.base + c->policy->misused_at, 4);
    expect(c, memcmp(before, c->heap.base, c->bytes) == 0, "a wrong pointer changed the heap", 0);
    free(before);
    check_after(c);
}

static inline void do_misuse(struct checked *c, uint32_t index, uint32_t which, int by_realloc)
{
    void **reference = c->objects[index].reference;
    unsigned char *object = moves(c) ? *reference : c->objects[index].at;
    unsigned char elsewhere[64];
    c->operation = "misuse";
    c->argument = which;
    if (which == 0 && c->policy->align > 1u) {
        misuse(c, reference, object + 1, by_realloc);
    } else if (which == 1) {
        misuse(c, reference, elsewhere + 16, by_realloc);
    } else if (which == 2) {
        misuse(c, reference, c->heap.base, by_realloc);
    } else if (which == 3) {
        misuse(c, reference, c->heap.base + (c->bytes + 15u) / 16u * 16u, by_realloc);
    } else if (which == 4) {
        misuse(c, reference, c->heap.base + ((c->policy->control - 1u) & ~15u), by_realloc);
    } else {
        leave(c, index);
        c->operation = "second free";
        misuse(c, reference, object, by_realloc);
    }
}

/* ---- from the first call to the last ------------------------------------------------------------------------------
 */

/* Makes a heap of exactly `bytes` bytes; 0 where that is too small for its control data and regions. */
static int checked_open(struct checked *c, const struct hw_policy *policy, size_t bytes)
{
    void *memory = NULL;
    memset(c, 0, sizeof *c);
    c->policy = policy;
    const size_t references = 3u * sizeof(void *) * (MOST_OBJECTS + 1u);
    const size_t front = moves(c) ? (references + policy->arena_align - 1u) & ~(size_t)(policy->arena_align - 1u) : 0;
    c->bytes = bytes;
    c->operation = "init";
    if (posix_memalign(&memory, policy->arena_align, front + bytes) != 0) {
        abort();
    }
    memset(memory, 0, front);
    c->heap.base = (unsigned char *)memory + front;
    c->memory = memory;
    memset(c->heap.base, 0xdb, bytes);
    for (uint32_t i = 0; i < MOST_OBJECTS && front; i++) {
        c->spare[i] = (void **)(void *)c->heap.base - 3u * (i + 1u);
    }
    if (!heap_init(policy, &c->heap, bytes)) {
        free(memory);
        return 0;
    }
    c->uncovered = hw_statistics(policy, &c->heap).peak;
    c->peak = c->uncovered;
    check_after(c);
    return 1;
}

/* Whether all free memory of a drained pool merges once a search fails. */
static int merges_again(const struct hw_general *g)
{
    return (g->coalesce == HW_IMMEDIATE || g->coalesce == HW_LAZY || g->coalesce == HW_DEFERRED) &&
           g->coalesce_from <= g->min_block && (g->coalesce == HW_IMMEDIATE || !g->search_most);
}

/* Whether all memory of a drained pool is one again: above the top, or one free block. */
static int is_one(struct checked *c, const struct hw_general *g)
{
    const uint32_t top = load4(&c->heap, g->top_at);
    if (g->top == HW_TOP_BELOW) {
        return load4(&c->heap, g->limit_at) == top;
    }
    if (g->top == HW_TOP_LAST || top == g->start) {
        return top == g->start;
    }
    return word_size(g, load_word(g, &c->heap, g->start)) == top - g->start;
}

/* The smallest block size that no pool of this much memory has: to search for it merges what waits to be merged. */
static uint32_t more_than_all(struct checked *c, const struct hw_general *g)
{
    const uint32_t unit = 1u << g->unit_shift;
    const uint32_t size = (load4(&c->heap, g->limit_at) - g->start) / unit * unit + unit;
    return size < g->min_block ? g->min_block : size;
}

/* Frees everything and sees that no memory is lost. */
static void checked_close(struct checked *c)
{
    while (c->count > 0) {
        do_free(c, c->operations % 3u == 0 ? 0 : c->count - 1u);
    }
    c->operation = "drain";
    if (c->policy->checks == HW_CHECKS_FULL && end_all_waits(c->policy, &c->heap)) {
        c->refused--;
    }
    for (uint32_t i = 0; i < c->policy->pool_count; i++) {
        const struct hw_pool *pool = &c->policy->pools[i];
        if (pool->kind == HW_QUICK) {
            (void)flush_pool(c->policy, &pool->quick, &c->heap);
        }
    }
    for (uint32_t i = 0; i < c->policy->pool_count; i++) {
        const struct hw_pool *pool = &c->policy->pools[i];
        if (pool->kind == HW_GENERAL && merges_again(&pool->general)) {
            if (pool->general.coalesce != HW_IMMEDIATE) {
                const uint32_t size = more_than_all(c, &pool->general);
                expect(c, find_block(&pool->general, &c->heap, size) == 0, "an impossible block", (long)size);
            }
            expect(c, is_one(c, &pool->general), "drained, but not merged", (long)i);
        }
        if (pool->kind == HW_COMPACT) {
            if (pool->compact.lazy) {
                compact_slide(&pool->compact, &c->heap, handle_table(&pool->compact, &c->heap));
            }
            expect(c, load4(&c->heap, pool->compact.top_at) == pool->compact.start, "drained, but holes left", 0);
        }
        if (pool->kind == HW_BUDDY) {
            expect(c, load4(&c->heap, pool->buddy.top_at) == pool->buddy.start, "drained, but not merged", (long)i);
        }
        if (pool->kind == HW_PARTITION && pool->partition.coalesce == HW_IMMEDIATE) {
            expect(c, load4(&c->heap, pool->partition.top_at) == 0, "drained, but not merged", (long)i);
        }
    }
    check_after(c);
    check_statistics(c);
    free(c->memory);
}

#endif

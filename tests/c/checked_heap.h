/* checked_heap.h: a heap behind calls that check everything that can be seen from outside.
 *
 * Every object's whole usable size carries a pattern, which is verified before it is freed or resized, and after every
 * call that moved objects. Objects that move are reached through references in front of the arena. After every call
 * the checker walks the heap, and the refused and misused requests are compared with our own count. Every few calls
 * the statistics are compared with the walk and with the accounts of the exploration build. Compile with HW_EXPLORE.
 */
#ifndef CHECKED_HEAP_H
#define CHECKED_HEAP_H

#include <stdlib.h>
#include <string.h>

#include "checked_state.h"

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

/* Notes what a request returned; `alignment` is that of the request. */
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
        expect(c, hw_realloc(c->policy, &c->heap, wrong, 8) == NULL, "an invalid pointer was resized", 0);
    } else {
        hw_free(c->policy, &c->heap, wrong);
    }
    c->misused++;
    memcpy(before + c->policy->misused_at, c->heap.base + c->policy->misused_at, 4);
    expect(c, memcmp(before, c->heap.base, c->bytes) == 0, "an invalid pointer changed the heap", 0);
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
    if (c->policy->checks == HW_CHECKS_FULL) {
        (void)end_all_waits(c->policy, &c->heap);
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
                compact_slide(&pool->compact, &c->heap);
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
    seal(c->policy, &c->heap); /* what was emptied here by hand */
    check_after(c);
    check_statistics(c);
    free(c->memory);
}

#endif

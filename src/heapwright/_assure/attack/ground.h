/* ground.h: the ground that exploits are tried on: an arena between guards, a program's objects, and what proves that
 * an attacker has taken control.
 *
 * The attacker has read the heap's source: `policy` says where headers, tags, links, heads and marks lie. He writes
 * only what a bug lets him (`window`), into objects that the program has in use, and, before the bug, into memory
 * outside the arena that is his. What masks links and guards at level full he does not know: of `policy` he has a copy
 * in which links are plain. But he may read an unwritten word of an object, and compute a secret from
 * that; with it he forges masks and guards as the heap would.
 *
 *     | guard | arena                               | guard | nothing: any read or store there is a signal |
 *
 * Control is a word of a guard that changed or a store beyond it, a pointer handed out that is not to memory of the
 * heap, or two objects in use that overlap. A pointer freed twice once its block was handed out again is none of it: no
 * heap can distinguish that from a free of the new owner.
 *
 * The heap is the core (../csrc) that runs the policy, or with ATTACKED_GENERATED what attacked_heap.h declares.
 */
#ifndef HW_GROUND_H
#define HW_GROUND_H

#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#ifdef ATTACKED_GENERATED
#include "attacked_heap.h"
#endif

/* Random words for the heap's keys. */
static uint32_t next_secret(void);
#define HW_SECRET(heap) ((void)(heap), next_secret())

static uint32_t keys_drawn;  /* lot of the heap's keys, apart from that of the trial */
static uint32_t guessed_key; /* what the attacker takes for the key */

#include "check.h"

#ifdef ATTACKED_GENERATED
#define DO_INIT(arena, bytes) ((void *)attacked_init(arena, bytes))
#define DO_MALLOC(n) attacked_malloc(heap, n)
#define DO_CALLOC(count, n) attacked_calloc(heap, count, n)
#define DO_REALLOC(p, n) attacked_realloc(heap, p, n)
#define DO_ALIGNED(alignment, n) attacked_aligned_alloc(heap, alignment, n)
#define DO_FREE(p) attacked_free(heap, p)
#define DO_USABLE(p) attacked_usable_size(heap, p)
#ifdef CHECKED
#define DO_MISUSED() attacked_misused(heap)
#else
#define DO_MISUSED() 0u
#endif
static struct attacked_heap *heap;
#else
#define DO_INIT(arena, bytes) ((void *)hw_init(&heap_policy, arena, bytes))
#define DO_MALLOC(n) hw_malloc(&heap_policy, heap, n)
#define DO_CALLOC(count, n) hw_calloc(&heap_policy, heap, count, n)
#define DO_REALLOC(p, n) hw_realloc(&heap_policy, heap, p, n)
#define DO_ALIGNED(alignment, n) hw_aligned_alloc(&heap_policy, heap, alignment, n)
#define DO_FREE(p) hw_free(&heap_policy, heap, p)
#define DO_USABLE(p) hw_usable_size(&heap_policy, heap, p)
#define DO_MISUSED() hw_misused(&heap_policy, heap)
static struct hw_heap *heap;
#endif

enum { MOST_OBJECTS = 128, MOST_BLOCKS = 1024, GUARD = 16384, OUTSIDE = 4096, SIZES = 3, GUARD_BYTE = 0x9d };

/* What came of a trial; from OVERLAP on it is control. */
enum { UNFIT, HARMLESS, STOPPED, CRASH, OVERLAP, POINTER_OUTSIDE, STORE_OUTSIDE, OUTCOMES };

struct object {
    uint32_t at;
    uint32_t size;
    int live;
};

static struct hw_policy heap_policy; /* what the heap runs */
static struct hw_policy policy;      /* what the attacker knows */
static struct hw_heap *view;         /* the arena, as he reads it in a heap that is still whole */
static unsigned char *arena;
static uint32_t arena_bytes;
static unsigned char planted[GUARD]; /* the upper guard as it should be */
static struct object objects[MOST_OBJECTS];
static uint32_t object_count;
static struct hw_block blocks[MOST_BLOCKS];
static uint32_t block_count;
static uint32_t window_from, window_end; /* what the bug lets him write */
static uint32_t sizes[SIZES];            /* of the program's requests, the first the most frequent */
static uint32_t state;
static uint32_t noticed_first; /* misuse that had been counted when a pointer was handed out */
static int has_secret;         /* he has read what he takes for the secret */
static sigjmp_buf out;

/* With -DTELLS each call and each byte forged is written to stderr: how a trial took control. */
#ifdef TELLS
#include <stdio.h>
#define TELL(...) fprintf(stderr, __VA_ARGS__)
#else
#define TELL(...) ((void)0)
#endif

static uint32_t choose(uint32_t bound)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 4) * bound >> 28);
}

/* The heap's keys are another lot than the trial's, so that these stay what they are. */
static uint32_t next_secret(void)
{
    keys_drawn = keys_drawn * 1664525u + 1013904223u;
    return keys_drawn ^ keys_drawn >> 15;
}

static _Noreturn void end(int outcome)
{
    TELL("ends: %d\n", outcome);
    siglongjmp(out, outcome);
}

/* ---- what a program does --------------------------------------------------------------------------------------- */

static void *pointer_to(uint32_t at)
{
    return arena + at;
}

/* Looks at an object that was handed out. */
static uint32_t adopt(const void *pointer, size_t size)
{
    TELL("%zu bytes: %#zx, misused %u\n", size, pointer ? (size_t)((uintptr_t)pointer - (uintptr_t)arena) : 0,
         DO_MISUSED());
    if (pointer == NULL) {
        return 0;
    }
    const uintptr_t at = (uintptr_t)pointer - (uintptr_t)arena;
    noticed_first = DO_MISUSED();
    if (at < policy.control || at >= arena_bytes || size > arena_bytes - at || at % policy.align != 0) {
        end(POINTER_OUTSIDE);
    }
    for (uint32_t i = 0; i < object_count; i++) {
        const struct object *o = &objects[i];
        if (o->live && at < o->at + o->size && o->at < at + size) {
            end(OVERLAP);
        }
    }
    if (object_count == MOST_OBJECTS) {
        return 0;
    }
    objects[object_count++] = (struct object){(uint32_t)at, (uint32_t)size, 1};
    return (uint32_t)at;
}

static uint32_t demand(size_t size)
{
    return adopt(DO_MALLOC(size), size);
}

static void give_back(struct object *o)
{
    o->live = 0;
    DO_FREE(pointer_to(o->at));
    TELL("free %#x, misused %u\n", o->at, DO_MISUSED());
}

static void resize(struct object *o, size_t size)
{
    TELL("realloc %#x, ", o->at);
    void *const moved = DO_REALLOC(pointer_to(o->at), size);
    if (moved) {
        o->live = 0;
        (void)adopt(moved, size);
    }
}

/* The object with this payload that is in use; NULL where there is none. */
static struct object *object_at(uint32_t at)
{
    for (uint32_t i = object_count; i-- > 0;) {
        if (objects[i].live && objects[i].at == at) {
            return &objects[i];
        }
    }
    return NULL;
}

/* A random object, in use or freed; NULL where none is. */
static struct object *some_object(int live)
{
    const uint32_t from = choose(object_count ? object_count : 1u);
    for (uint32_t i = 0; i < object_count; i++) {
        struct object *o = &objects[(from + i) % object_count];
        if (o->live == live) {
            return o;
        }
    }
    return NULL;
}

static uint32_t some_size(void)
{
    const uint32_t drawn = choose(8);
    return drawn < 5u ? sizes[0] : drawn < 7u ? sizes[1] : sizes[2];
}

/* The calls of the program around the bug. */
static void go_on(uint32_t calls)
{
    for (uint32_t i = 0; i < calls; i++) {
        const uint32_t drawn = choose(20);
        struct object *o = some_object(1);
        if (drawn < 11u || o == NULL) {
            (void)demand(some_size());
        } else if (drawn < 17u) {
            give_back(o);
        } else {
            resize(o, some_size());
        }
    }
}

/* ---- what an attacker knows, and may write ---------------------------------------------------------------------- */

static const struct hw_pool *pool_of(const struct hw_block *block)
{
    return &policy.pools[block->pool];
}

static uint32_t payload_at(const struct hw_block *block)
{
    return block->offset + block->header;
}

/* Learns what blocks there are. */
static void look_around(void)
{
    struct hw_block block = {0, 0, 0, 0, 0};
    block_count = 0;
    while (block_count < MOST_BLOCKS && hw_next_block(&heap_policy, view, &block)) {
        blocks[block_count++] = block;
    }
}

/* The block with an address in it, or that begins there; NULL where there is none. */
static const struct hw_block *block_with(uint32_t at)
{
    for (uint32_t i = 0; i < block_count; i++) {
        if (at >= blocks[i].offset && at < blocks[i].offset + blocks[i].size) {
            return &blocks[i];
        }
    }
    return NULL;
}

/* The object in use that lies right ahead of a block; NULL where there is none. */
static struct object *object_ahead(const struct hw_block *block)
{
    const struct hw_block *ahead = block->offset ? block_with(block->offset - 1u) : NULL;
    for (uint32_t i = 0; ahead && i < object_count; i++) {
        if (objects[i].live && block_with(objects[i].at) == ahead) {
            return &objects[i];
        }
    }
    return NULL;
}

/* The object in use in a block; NULL where there is none. */
static struct object *object_in(const struct hw_block *block)
{
    for (uint32_t i = 0; block && i < object_count; i++) {
        if (objects[i].live && objects[i].at >= block->offset && objects[i].at < block->offset + block->size) {
            return &objects[i];
        }
    }
    return NULL;
}

static int is_his(uint32_t at)
{
    if (at >= window_from && at < window_end) {
        return 1;
    }
    for (uint32_t i = 0; i < object_count; i++) {
        if (objects[i].live && at - objects[i].at < objects[i].size) {
            return 1;
        }
    }
    return 0;
}

/* Writes what he may of a number. */
static void put(uint32_t at, uint32_t bytes, uint32_t value)
{
    TELL("forge at %#x: %#x%s\n", at, value, at >= arena_bytes || is_his(at) ? "" : " (not his)");
    for (uint32_t i = 0; i < bytes; i++, value >>= 8) {
        if (at + i - arena_bytes < GUARD) {
            arena[at + i] = planted[at + i - arena_bytes] = (unsigned char)value;
        } else if (at + i < arena_bytes && is_his(at + i)) {
            arena[at + i] = (unsigned char)value;
        }
    }
}

/* Writes a number of a header, a tag or a link, masked as the heap would with what he takes for the key. */
static void put_word(uint32_t at, uint32_t bytes, uint32_t value)
{
    put(at, bytes, has_secret ? (value ^ guessed_key ^ at) * 0x9e3779b1u : value);
}

static void put_link(const struct hw_links *links, uint32_t at, uint32_t node)
{
    put_word(at, links->field.bytes, node >> links->shift);
}

/* Marks the end of a payload as the heap would. */
static void put_guard(uint32_t at, uint32_t capacity)
{
    if (has_secret) {
        put(at + capacity, 4, guard_word(guessed_key ^ (at * 0x85ebca6bu + capacity), 0));
    }
}

/* Reads what an earlier owner, or the heap, left in an object, and computes a key as if numbers were masked with that
 * and their address, or their complements were, or one product of both. */
static void read_uninitialised(void)
{
    const uint32_t size = some_size();
    const uint32_t at = demand(size);
    if (at == 0 || size < 16u || policy.checks != HW_CHECKS_FULL) {
        return;
    }
    const uint32_t read_at = at + 4u * choose(4);
    const uint32_t word = load4(view, read_at);
    const uint32_t guesses[] = {word ^ read_at, ~word ^ read_at, word * 0x0e8b2f51u ^ read_at, word};
    guessed_key = guesses[choose(4)];
    has_secret = word != 0;
}

/* The bug: all bytes from an object's end up to `end` may be overwritten, in order. */
static void overflow(const struct object *o, uint32_t until, uint32_t end_at)
{
    window_from = o->at + o->size;
    window_end = end_at;
    for (uint32_t at = window_from; at < until && policy.checks == HW_CHECKS_FULL && !has_secret; at++) {
        put(at, 1, 0x41); /* a guard that he does not know */
    }
}

/* The bug: an object that was freed is written to. */
static void use_after_free(const struct object *o)
{
    window_from = o->at;
    window_end = o->at + o->size;
}

static void close_window(void)
{
    window_from = window_end = 0;
}

/* ---- a trial ------------------------------------------------------------------------------------------------------
 */

static void set_up_guards(void)
{
    memset(planted, GUARD_BYTE, GUARD);
    memset(arena - GUARD, GUARD_BYTE, GUARD);
    memset(arena + arena_bytes, GUARD_BYTE, GUARD);
}

static int is_guard_changed(void)
{
    if (memcmp(arena + arena_bytes, planted, GUARD) != 0) {
        return 1;
    }
    memset(planted, GUARD_BYTE, GUARD);
    return memcmp(arena - GUARD, planted, GUARD) != 0;
}

/* A size for which a pool has a list or a class of its own; often 0, for any other. */
static uint32_t drawn_class(const struct hw_pool *pool)
{
    if (pool->kind == HW_QUICK && choose(2)) {
        const uint32_t largest = pool->quick.largest;
        return pool->quick.by_size ? 1u + choose(largest + 16u) : pool->quick.sizes[choose(pool->quick.count)];
    }
    if (pool->kind == HW_FIXED && choose(2)) {
        const uint32_t size = pool->fixed.sizes[choose(pool->fixed.count)];
        return size < 3000u ? size : 40u;
    }
    return 0;
}

/* Sizes for which the recipe has lists, classes or bins of their own, and others. */
static uint32_t drawn_size(void)
{
    static const uint32_t common[] = {8, 16, 24, 40, 60, 72, 100, 120, 136, 200, 264, 320, 520, 700, 1100};
    const uint32_t size = drawn_class(&policy.pools[choose(policy.pool_count)]);
    return size ? size : common[choose(sizeof common / sizeof *common)];
}

/* At level full freed blocks wait until others were freed. */
static void end_waits(void)
{
    const uint32_t first = object_count;
    for (uint32_t i = 0; policy.checks == HW_CHECKS_FULL && i <= HW_WAITING; i++) {
        (void)demand(sizes[1]);
    }
    for (uint32_t i = first; i < object_count; i++) {
        give_back(&objects[i]);
    }
}

/* A heap in which some objects are in use, some were freed. */
static void prepare(void)
{
    memset(arena, 0, arena_bytes);
    set_up_guards();
    close_window();
    object_count = 0;
    has_secret = 0;
    keys_drawn = state * 2654435761u;
    heap = DO_INIT(arena, arena_bytes);
    view = (struct hw_heap *)arena;
    for (uint32_t i = 0; i < SIZES; i++) {
        sizes[i] = drawn_size();
    }
    sizes[2] = 3u * sizes[0] + 200u < 4000u ? 3u * sizes[0] + 200u : 4000u; /* one that a made-up block fits into */
    const uint32_t calls = 6u + choose(9);
    for (uint32_t i = 0; i < calls; i++) {
        (void)demand(some_size());
    }
    const uint32_t frees = choose(5);
    for (uint32_t i = 0; i < frees; i++) {
        struct object *o = some_object(1);
        if (o) {
            give_back(o);
        }
    }
    if (choose(2)) {
        end_waits();
    }
    if (choose(2)) {
        read_uninitialised();
    }
}

#endif

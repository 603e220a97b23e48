/* edges.c: asks a generated heap for what is at the edge, or beyond it.
 *
 *     edges SEED ROUNDS
 *
 * Each round takes an arena of a few bytes too few up to some thousands more than the control data, at any address, and
 * makes a heap of it, again and again; then come calls with sizes up to SIZE_MAX and alignments of all sorts. After
 * each call the heap is checked, and what every object holds. All memory around the arena is poisoned: it is compiled
 * with sanitizers. -DLEAST=N are the bytes of the smallest arena. With -DHANDLE_WORDS=N objects move, and references to
 * them, N pointers each, lie ahead of the arena.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sanitizer/asan_interface.h>

#include "app_heap.h"

enum { OBJECTS = 48, MOST_BEYOND = 8192, FRONT = 4096, CALLS = 150 };

struct object {
    unsigned char *at; /* NULL: there is none */
    size_t size;
    uint32_t tag;
};

static _Alignas(4096) unsigned char memory[FRONT + LEAST + MOST_BEYOND + 64];
static struct object objects[OBJECTS];
static struct app_heap *heap;
static unsigned char *arena;
static size_t arena_bytes;
static uint32_t refused;
static uint32_t tags;
static uint32_t calls;
static uint64_t state;

static uint32_t below(uint32_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % bound;
}

static void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "call %lu, arena of %lu bytes: %s\n", (unsigned long)calls, (unsigned long)arena_bytes, what);
        abort();
    }
}

/* ---- what is requested ----------------------------------------------------------------------------------------------
 */

static size_t edge_size(void)
{
    const size_t power = (size_t)1 << below(sizeof(size_t) * 8u);
    switch (below(8)) {
    case 0:
        return power - 1u + below(3);
    case 1:
        return SIZE_MAX - below(40);
    case 2:
        return 0x7fff0000u - 20u + below(40);
    case 3:
        return arena_bytes - below(64);
    case 4:
        return below((uint32_t)arena_bytes + 1u);
    default:
        return below(200);
    }
}

/* ---- the objects ----------------------------------------------------------------------------------------------------
 */

static unsigned char pattern(const struct object *object, size_t i)
{
    return (unsigned char)(object->tag * 31u + i * 7u);
}

static void fill(struct object *object, size_t from)
{
    for (size_t i = from; i < object->size; i++) {
        object->at[i] = pattern(object, i);
    }
}

static void expect_pattern(const struct object *object, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        expect(object->at[i] == pattern(object, i), "an object lost its bytes");
    }
}

/* An object that was served: where it can be, and writable. */
static void enter(struct object *object, unsigned char *at, size_t size, size_t kept, size_t usable)
{
    expect(at >= arena && at < arena + arena_bytes, "an object outside the arena");
    expect(size <= arena_bytes && size <= (size_t)(arena + arena_bytes - at), "an object over the arena's end");
    expect((size_t)(at - arena) % APP_ALIGNMENT == 0, "an object is misaligned");
    expect(usable >= size && usable > 0, "less than asked for");
    object->at = at;
    object->size = size;
    expect_pattern(object, kept);
    fill(object, kept);
}

#ifdef HANDLE_WORDS
static void **reference(const struct object *object)
{
    return (void **)(void *)arena - (size_t)(object - objects + 1) * HANDLE_WORDS;
}

static void look_up(void)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        objects[i].at = app_handle_pointer(heap, reference(&objects[i]));
    }
}

static void allocate(struct object *object)
{
    const size_t size = edge_size();
    const int served = app_handle_alloc(heap, reference(object), size);
    look_up();
    expect(served == (object->at != NULL), "a reference leads to what was served");
    refused += !served;
    if (served) {
        object->tag = tags++;
        enter(object, object->at, size, 0, app_handle_usable_size(heap, reference(object)));
    }
}

static void resize(struct object *object)
{
    const size_t size = edge_size();
    const int served = app_handle_realloc(heap, reference(object), size);
    look_up();
    if (!served) {
        expect(size > object->size, "a smaller size was refused");
        refused++;
        return;
    }
    const size_t kept = size < object->size ? size : object->size;
    enter(object, object->at, size, kept, app_handle_usable_size(heap, reference(object)));
}

static void release(struct object *object)
{
    app_handle_free(heap, reference(object));
    look_up();
    expect(object->at == NULL, "a reference leads nowhere once it is freed");
}

/* Calls whose answer is known. */
static void try_nothing(void)
{
    void *none = NULL;
    app_handle_free(heap, &none);
    expect(app_handle_pointer(heap, &none) == NULL && app_handle_usable_size(heap, &none) == 0, "NULL is an object");
}

static void forget(void)
{
    memset(objects, 0, sizeof objects);
    memset(arena - FRONT / 2, 0, FRONT / 2);
}
#else
static size_t edge_alignment(void)
{
    const size_t power = (size_t)1 << below(sizeof(size_t) * 8u);
    switch (below(6)) {
    case 0:
        return power + below(2);
    case 1:
        return below(100);
    default:
        return (size_t)1 << below(9);
    }
}

static void allocate(struct object *object)
{
    size_t size = edge_size();
    size_t alignment = 1;
    size_t count = 1;
    const uint32_t choice = below(4);
    unsigned char *at = NULL;
    if (choice == 0) {
        alignment = edge_alignment();
        at = app_aligned_alloc(heap, alignment, size);
        expect(at == NULL || (alignment != 0 && (alignment & (alignment - 1u)) == 0), "no power of two was accepted");
    } else if (choice == 1) {
        count = edge_size();
        at = app_calloc(heap, count, size);
        expect(at == NULL || size == 0 || count <= SIZE_MAX / size, "a product that overflows was served");
    } else {
        at = app_malloc(heap, size);
    }
    if (at == NULL) {
        refused++;
        return;
    }
    size *= count;
    expect((uintptr_t)at % alignment == 0, "an object is not aligned as asked for");
    for (size_t i = 0; choice == 1 && i < size; i++) {
        expect(at[i] == 0, "calloc clears");
    }
    object->tag = tags++;
    enter(object, at, size, 0, app_usable_size(heap, at));
}

static void resize(struct object *object)
{
    const size_t size = edge_size();
    unsigned char *at = app_realloc(heap, object->at, size);
    if (at == NULL) {
        expect(size > object->size, "a smaller size was refused");
        refused++;
        return;
    }
    enter(object, at, size, size < object->size ? size : object->size, app_usable_size(heap, at));
}

static void release(struct object *object)
{
    app_free(heap, object->at);
    object->at = NULL;
}

/* Calls whose answer is known. */
static void try_nothing(void)
{
    app_free(heap, NULL);
    expect(app_usable_size(heap, NULL) == 0, "NULL is an object");
    expect(app_calloc(heap, SIZE_MAX / 2u, 3u) == NULL, "a product that overflows was served");
    expect(app_realloc(heap, NULL, SIZE_MAX) == NULL, "SIZE_MAX bytes were served");
    refused += 2u;
}

static void forget(void)
{
    memset(objects, 0, sizeof objects);
}
#endif

/* ---- rounds ---------------------------------------------------------------------------------------------------------
 */

static void look_at_all(void)
{
    expect(app_check(heap) == 0, "the heap's invariants");
    size_t live = 0;
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (objects[i].at) {
            expect_pattern(&objects[i], objects[i].size);
            live++;
        }
    }
    const struct app_statistics stats = app_statistics(heap);
    expect(stats.used_blocks == live, "the number of blocks in use");
    expect(stats.refused == refused, "the number of refused requests");
    expect(stats.peak <= arena_bytes, "the peak lies within the arena");
}

static void play(void)
{
    forget();
    refused = 0;
    const uint32_t most = 1u + below(OBJECTS);
    for (uint32_t k = 0; k < CALLS; k++, calls++) {
        struct object *object = &objects[below(most)];
        if (object->at == NULL) {
            allocate(object);
        } else if (below(3) == 0) {
            resize(object);
        } else {
            release(object);
        }
        look_at_all();
    }
    try_nothing();
    look_at_all();
    if (below(2)) {
        return; /* the next heap begins where this one is full */
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (objects[i].at) {
            release(&objects[i]);
        }
    }
    look_at_all();
    expect(app_statistics(heap).used == 0, "nothing is in use once all is freed");
}

static void play_in_an_arena(void)
{
    const uint32_t beyond = (uint32_t[]){64, 600, MOST_BEYOND}[below(3)];
    arena_bytes = below(8) ? LEAST + below(beyond) : below(LEAST + 1u);
    const size_t shift = below(4) ? 0 : below(64);
    arena = memory + FRONT + shift;
    ASAN_UNPOISON_MEMORY_REGION(memory, sizeof memory);
    memset(memory, (int)below(256), sizeof memory);
    ASAN_POISON_MEMORY_REGION(arena + arena_bytes, (size_t)(memory + sizeof memory - arena) - arena_bytes);
#ifndef HANDLE_WORDS
    ASAN_POISON_MEMORY_REGION(memory, FRONT + shift);
#endif
    for (uint32_t times = 1u + below(3); times-- > 0;) {
        heap = app_init(arena, arena_bytes);
        expect((heap != NULL) == (shift % APP_ARENA_ALIGNMENT == 0 && arena_bytes >= LEAST),
               "which arenas are accepted");
        if (heap) {
            play();
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: edges SEED ROUNDS\n", stderr);
        return 2;
    }
    state = strtoull(argv[1], NULL, 10);
    expect(app_init(NULL, SIZE_MAX) == NULL, "NULL is no arena");
    for (unsigned long rounds = strtoul(argv[2], NULL, 10); rounds-- > 0;) {
        play_in_an_arena();
    }
    printf("calls %lu\n", (unsigned long)calls);
    return 0;
}

/* events.c: random calls of a generated heap that is too small for them; what its hooks report must be what they did.
 *
 * The test keeps its objects twice: as the calls returned them, and as the hooks reported them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app_heap.h"

#ifndef ARENA_BYTES
#define ARENA_BYTES 12000u
#endif

enum { OBJECTS = 64, ROUNDS = 20000 };

struct object {
    const void *pointer;
    size_t size;
};

static _Alignas(4096) unsigned char arena[2][ARENA_BYTES];
static struct object had[OBJECTS], stats[OBJECTS];
static unsigned long allocated, freed, resized, refused, misused, failures;
static uint32_t state = 7;

static void expect(int holds, const char *what)
{
    if (!holds && failures++ < 5u) {
        printf("FAILED: %s\n", what);
    }
}

static struct object *find(struct object *objects, const void *pointer)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (objects[i].pointer == pointer) {
            return &objects[i];
        }
    }
    expect(0, pointer ? "an object is reported that is not there" : "more objects are reported than there are");
    return &objects[0];
}

void told_allocated(const void *pointer, size_t size)
{
    allocated++;
    *find(stats, NULL) = (struct object){pointer, size};
}

void told_resized(const void *from, const void *pointer, size_t size)
{
    resized++;
    *find(stats, from) = (struct object){pointer, size};
}

void told_freed(const void *pointer)
{
    freed++;
    find(stats, pointer)->pointer = NULL;
}

void told_refused(size_t size)
{
    (void)size;
    refused++;
}

void told_misused(void)
{
    misused++;
}

static uint32_t random_below(uint32_t bound)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % bound;
}

static void expect_told(const struct object *object)
{
    const struct object *same = find(stats, object->pointer);
    expect(same->pointer == object->pointer && same->size == object->size, "an object is reported as it is");
}

/* One random call. */
static void call(struct app_heap *heap, struct object *object)
{
    const size_t size = random_below(8) ? random_below(300) : random_below(4000);
    const uint32_t what = random_below(8);
    if (object->pointer && what < 4u) {
        app_free(heap, (void *)object->pointer);
        object->pointer = NULL;
        return;
    }
    void *made = object->pointer       ? app_realloc(heap, (void *)object->pointer, size)
                 : what == 0           ? app_calloc(heap, 1, size)
                 : what == 1 && ALIGNS ? app_aligned_alloc(heap, 64, size)
                                       : app_malloc(heap, size);
    if (made) {
        *object = (struct object){made, size};
        expect_told(object);
        expect(app_owns(heap, made), "a heap owns what it handed out");
    }
}

int main(void)
{
    struct app_heap *heap = app_init(arena[0], ARENA_BYTES);
    struct app_heap *other = app_init(arena[1], ARENA_BYTES);
    if (heap == NULL || other == NULL) {
        return 2;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct object *object = &had[random_below(OBJECTS)];
        const unsigned long before = refused;
        const uint32_t counted = app_statistics(heap).refused;
        call(heap, object);
        expect(refused - before == app_statistics(heap).refused - counted, "each refusal is reported, and no other");
        expect(!object->pointer || !app_owns(other, object->pointer), "a heap does not own what another handed out");
    }
    expect(app_calloc(heap, SIZE_MAX, 2) == NULL && app_malloc(heap, SIZE_MAX) == NULL, "too much is refused");
    app_free(heap, NULL);
#ifdef CHECKED
    app_free(heap, &state);
    expect(misused == 1u && app_misused(heap) == 1u, "an invalid pointer is reported");
#endif
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (had[i].pointer) {
            expect_told(&had[i]);
        }
        app_free(heap, (void *)had[i].pointer);
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        expect(stats[i].pointer == NULL, "what is reported is freed in the end");
    }
    expect(!app_owns(heap, arena[0]) && !app_owns(heap, arena[0] + ARENA_BYTES), "the heap's own data is no object");
    expect(allocated == freed && resized > 50u && refused > 100u, "there was something to report");
    printf("%lu allocated, %lu resized, %lu refused, %lu failures\n", allocated, resized, refused, failures);
    return failures != 0;
}

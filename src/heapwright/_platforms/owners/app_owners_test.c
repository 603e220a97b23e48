/* app_owners_test.c: owners allocate, resize and free at random; what is counted must be what they hold. */
#include "app_owners.h"

#include <stdio.h>

enum { ARENA = 20000, OBJECTS = 64, ROUNDS = 20000, OWNERS = 5 };

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[ARENA];
static struct app_owners owners;
static struct {
    unsigned char *bytes;
    size_t size;
    unsigned owner;
} objects[OBJECTS];
static int failures;
static uint32_t state = 1;
static unsigned owner_now;

unsigned app_owner_now(void)
{
    return owner_now;
}

static void expect(int holds, const char *what)
{
    if (!holds && failures++ < 5) {
        printf("FAILED: %s\n", what);
    }
}

static uint32_t random_below(uint32_t bound)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % bound;
}

static void check_counts(void)
{
    for (unsigned owner = 0; owner < APP_OWNERS_MOST; owner++) {
        size_t bytes = 0;
        uint32_t held = 0;
        for (unsigned i = 0; i < OBJECTS; i++) {
            if (objects[i].bytes != NULL && objects[i].owner == owner) {
                held++;
                bytes += app_usable_size(owners.heap, objects[i].bytes) - 1u;
                expect(app_owner_of(&owners, objects[i].bytes) == owner, "an object knows its owner");
            }
        }
        const struct app_owner *owned = &owners.owner[owner];
        expect(owned->objects == held && owned->bytes == bytes, "what is counted is what is held");
        expect(owned->most_bytes >= bytes, "the most is no less");
    }
}

static void expect_bytes(unsigned i, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) {
        if (objects[i].bytes[k] != (unsigned char)(i + k)) {
            expect(0, "an object keeps its bytes");
            return;
        }
    }
}

static void call(unsigned i)
{
    const size_t size = random_below(400);
    unsigned char *bytes = NULL;
    owner_now = random_below(OWNERS);
    if (objects[i].bytes == NULL) {
        bytes = random_below(2) ? app_owned_malloc(&owners, size) : app_owned_calloc(&owners, 1, size);
        objects[i].owner = owner_now;
    } else if (random_below(3) == 0) {
        bytes = app_owned_realloc(&owners, objects[i].bytes, size);
        if (bytes != NULL) {
            objects[i].bytes = bytes;
            expect_bytes(i, size < objects[i].size ? size : objects[i].size);
        }
    } else {
        expect_bytes(i, objects[i].size);
        app_owned_free(&owners, objects[i].bytes);
        objects[i].bytes = NULL;
    }
    if (bytes != NULL) {
        objects[i].bytes = bytes;
        objects[i].size = size;
        for (size_t k = 0; k < size; k++) {
            bytes[k] = (unsigned char)(i + k);
        }
    }
}

int main(void)
{
    owners.heap = app_init(arena, sizeof arena);
    expect(owners.heap != NULL, "the arena is accepted");
    for (unsigned round = 0; owners.heap != NULL && round < ROUNDS; round++) {
        call(random_below(OBJECTS));
        if (round % 16u == 0) {
            check_counts();
        }
    }
    expect(app_owned_malloc(&owners, SIZE_MAX) == NULL, "what cannot be is refused");
    expect(app_owned_calloc(&owners, SIZE_MAX / 2u, 4u) == NULL, "a product that overflows is refused");
    for (unsigned i = 0; i < OBJECTS; i++) {
        app_owned_free(&owners, objects[i].bytes);
        objects[i].bytes = NULL;
    }
    check_counts();
    expect(app_check(owners.heap) == 0, "the heap's invariants hold");
    printf("app_owners: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}

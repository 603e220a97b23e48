/* app_regions_test.c: three regions of different kinds under random calls; each object lies in a region of the
 * requested kind. */
#include "app_regions.h"

#include <stdio.h>

enum { FAST = 1, DMA = 2, EXTERNAL = 4, SMALL = 6000, LARGE = 40000, OBJECTS = 64, ROUNDS = 20000 };

static unsigned char external[LARGE], fast[SMALL], dma[SMALL];
static struct app_regions regions;
static struct {
    unsigned char *bytes;
    size_t size;
    unsigned kinds;
} objects[OBJECTS];
static int failures;
static uint32_t state = 1;

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

static int lies_in(const void *pointer, const unsigned char *memory, size_t bytes)
{
    return (uintptr_t)pointer >= (uintptr_t)memory && (uintptr_t)pointer < (uintptr_t)memory + bytes;
}

static void expect_kinds(const void *pointer, unsigned kinds)
{
    expect(!(kinds & EXTERNAL) || lies_in(pointer, external, LARGE), "what must be external is");
    expect(!(kinds & DMA) || lies_in(pointer, dma, SMALL), "what must be reached by DMA is");
    expect(!(kinds & FAST) || lies_in(pointer, fast, SMALL) || lies_in(pointer, dma, SMALL), "what must be fast is");
    expect(app_regions_owner(&regions, pointer) != NULL, "each object has an owner");
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

static void fill(unsigned i)
{
    for (size_t k = 0; k < objects[i].size; k++) {
        objects[i].bytes[k] = (unsigned char)(i + k);
    }
    expect_kinds(objects[i].bytes, objects[i].kinds);
}

static void test_random_calls(void)
{
    static const unsigned kinds[] = {0, FAST, DMA, EXTERNAL, FAST | DMA, 0};
    unsigned moved = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        const unsigned i = random_below(OBJECTS);
        const size_t size = random_below(500);
        if (objects[i].bytes == NULL) {
            objects[i].kinds = kinds[random_below(6)];
            objects[i].bytes = random_below(2) ? app_regions_malloc(&regions, size, objects[i].kinds)
                                               : app_regions_calloc(&regions, 1, size, objects[i].kinds);
            objects[i].size = size;
        } else if (random_below(3) == 0) {
            const struct app_heap *owner = app_regions_owner(&regions, objects[i].bytes);
            objects[i].kinds = kinds[random_below(6)];
            unsigned char *bytes = app_regions_realloc(&regions, objects[i].bytes, size, objects[i].kinds);
            if (bytes == NULL) {
                objects[i].kinds = 0; /* it lives on where it was */
                continue;
            }
            objects[i].bytes = bytes;
            expect_bytes(i, size < objects[i].size ? size : objects[i].size);
            objects[i].size = size;
            moved += app_regions_owner(&regions, bytes) != owner;
        } else {
            expect_bytes(i, objects[i].size);
            expect(app_regions_free(&regions, objects[i].bytes) == 0, "an object is given back");
            objects[i].bytes = NULL;
        }
        if (objects[i].bytes != NULL) {
            fill(i);
        }
    }
    expect(moved > 20, "some objects change their region");
}

int main(void)
{
    expect(app_regions_add(&regions, fast, 8, FAST) == NULL, "too small a region is refused");
    struct app_heap *heaps[] = {app_regions_add(&regions, fast + 1, SMALL - 1, FAST),
                                app_regions_add(&regions, dma, SMALL, FAST | DMA),
                                app_regions_add(&regions, external, LARGE, EXTERNAL)};
    expect(heaps[0] && heaps[1] && heaps[2], "three regions are added");
    expect(app_regions_largest_free(&regions, EXTERNAL | FAST, 32) == 0, "no region is of all kinds");
    expect(app_regions_malloc(&regions, 1, EXTERNAL | FAST) == NULL, "so nothing is served there");
    expect(app_regions_free(&regions, &state) == -1 && app_regions_free(&regions, NULL) == 0,
           "a pointer of no region is detected");
    test_random_calls();
    for (unsigned i = 0; i < OBJECTS; i++) {
        app_regions_free(&regions, objects[i].bytes);
    }
    for (unsigned i = 0; i < 3; i++) {
        expect(app_check(heaps[i]) == 0, "the heaps' invariants hold");
    }
    printf("app_regions: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}

/* app_picolibc_test.c: whether picolibc's functions allocate from app_heap, and get what they ask for.
 *
 * Link it with the firmware, and run it on the target: main returns 0, and prints "app_picolibc: ok". Where there is a
 * main already, compile it with -Dmain=app_picolibc_test and call that.
 */
#include "app_heap.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS = 64, ROUNDS = 20000 };

struct app_heap *app_libc_heap(void);

static int failures;

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("FAILED: %s\n", what);
        failures++;
    }
}

static uint32_t blocks(void)
{
    return app_statistics(app_libc_heap()).used_blocks;
}

static void test_library(void)
{
    static volatile double half = 0.5; /* folded at run time alone */
    char text[64];
    printf("%.4f %.3e\n", half + 12345.0, half * 1e-100);
    void *volatile first = malloc(1); /* the first call makes the heap */
    free(first);
    expect(app_libc_heap() != NULL, "malloc is served from the heap");
    snprintf(text, sizeof text, "%.4f %.3e", half + 12345.0, half * 1e-100);
    expect(strcmp(text, "12345.5000 5.000e-101") == 0, "floating point is printed");
    expect(strtod("6.25", NULL) == 12.5 * half, "floating point is read");
    const uint32_t before = blocks();
    char *copy = strdup("copied");
    expect(copy && strcmp(copy, "copied") == 0 && blocks() == before + 1u, "strdup allocates from the heap");
    free(copy);
    expect(blocks() == before, "free gives back to the heap");
}

static void test_each_function(void)
{
    const uint32_t before = blocks();
    unsigned char *zero = calloc(10, 30);
    expect(zero && zero[0] == 0 && zero[299] == 0, "calloc clears");
    memset(zero, 7, 300);
    zero = realloc(zero, 900);
    expect(zero && zero[299] == 7 && malloc_usable_size(zero) >= 900, "realloc keeps an object's bytes");
    void *aligned = aligned_alloc(64, 100), *other = memalign(128, 100);
    expect(aligned && (uintptr_t)aligned % 64 == 0, "aligned_alloc");
    expect(other && (uintptr_t)other % 128 == 0, "memalign");
    void *third = malloc(100);
    expect(third && blocks() == before + 4u, "every one of them is in the heap");
    free(zero);
    free(aligned);
    free(other);
    free(third);
    free(NULL);
    static volatile size_t huge = SIZE_MAX / 4;
    errno = 0;
    expect(malloc(huge) == NULL && errno == ENOMEM, "too large a request fails with ENOMEM");
    errno = 0;
    expect(calloc(huge, 8) == NULL && errno == ENOMEM, "a product that overflows fails with ENOMEM");
    expect(blocks() == before, "all is given back");
}

static void test_random_calls(void)
{
    static unsigned char *objects[OBJECTS];
    static uint16_t sizes[OBJECTS];
    const uint32_t before = blocks();
    uint32_t state = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        state = state * 1664525u + 1013904223u;
        const unsigned i = (state >> 8) % OBJECTS;
        for (unsigned k = 0; k < sizes[i]; k++) {
            if (objects[i][k] != (unsigned char)i) {
                expect(0, "an object keeps its bytes");
                break;
            }
        }
        free(objects[i]);
        sizes[i] = (uint16_t)((state >> 16) % 200u);
        objects[i] = malloc(sizes[i]);
        if (objects[i] == NULL) {
            sizes[i] = 0;
            continue;
        }
        expect((uintptr_t)objects[i] % _Alignof(max_align_t) == 0, "an object is aligned");
        memset(objects[i], (int)i, sizes[i]);
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        free(objects[i]);
    }
    expect(app_check(app_libc_heap()) == 0 && blocks() == before, "the heap's invariants hold, and all is given back");
}

int main(void)
{
    test_library();
    test_each_function();
    test_random_calls();
    puts(failures ? "app_picolibc: FAILED" : "app_picolibc: ok");
    return failures != 0;
}

/* app_multi_heap_test.c: whether multi_heap.h's functions are served from app_heap, and what they count is what a walk
 * finds. As an application: app_main calls app_multi_heap_test(), which prints "app_esp_idf: ok".
 */
#include "app_heap.h"

#include <multi_heap.h>
#include <stdio.h>
#include <string.h>

#include <freertos/FreeRTOS.h>

enum { ARENA = 32768, OBJECTS = 32, ROUNDS = 20000 };

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[ARENA];
static portMUX_TYPE lock = portMUX_INITIALIZER_UNLOCKED;
static int failures;

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("FAILED: %s\n", what);
        failures++;
    }
}

/* What is used and free is always the same in sum. */
static void check_counts(multi_heap_handle_t heap, size_t all)
{
    multi_heap_info_t info;
    multi_heap_get_info(heap, &info);
    expect(info.total_free_bytes == multi_heap_free_size(heap), "free bytes, both ways");
    expect(info.minimum_free_bytes == multi_heap_minimum_free_size(heap), "least ever free, both ways");
    expect(info.minimum_free_bytes <= info.total_free_bytes, "least ever free is the least");
    expect(info.total_blocks == info.allocated_blocks + info.free_blocks, "blocks");
    expect(info.total_free_bytes + info.total_allocated_bytes <= all, "bytes");
    expect(info.largest_free_block <= info.total_free_bytes && info.largest_free_block > all / 2, "the largest free");
    expect(info.allocated_blocks != 0 || info.total_free_bytes == all, "all is free where nothing is used");
    expect(multi_heap_check(heap, true), "the heap is whole");
}

static void test_calls(multi_heap_handle_t heap, size_t all)
{
    unsigned char *one = multi_heap_malloc(heap, 300), *two = multi_heap_aligned_alloc(heap, 100, 512);
    expect(one && two && (uintptr_t)two % 512 == 0, "an alignment is kept");
    expect(multi_heap_get_allocated_size(heap, one) >= 300, "an object's size");
    memset(one, 7, 300);
    one = multi_heap_realloc(heap, one, 900);
    expect(one && one[299] == 7, "realloc keeps an object's bytes");
    expect(multi_heap_free_size(heap) + 1000 <= all, "what is used is not free");
    check_counts(heap, all);
    expect(multi_heap_realloc(heap, one, 0) == NULL, "realloc to 0 frees");
    multi_heap_free(heap, two);
    multi_heap_free(heap, NULL);
    expect(multi_heap_malloc(heap, 0) == NULL, "0 bytes are refused");
    expect(multi_heap_malloc(heap, ARENA) == NULL, "what there is not is refused");
    expect(multi_heap_free_size(heap) == all, "all is given back");
    expect(multi_heap_minimum_free_size(heap) + 1000 <= all, "least ever free is kept");
}

static void test_random_calls(multi_heap_handle_t heap, size_t all)
{
    static unsigned char *objects[OBJECTS];
    static uint16_t sizes[OBJECTS];
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
        multi_heap_free(heap, objects[i]);
        sizes[i] = (uint16_t)(1u + (state >> 16) % 200u);
        objects[i] = multi_heap_malloc(heap, sizes[i]);
        expect(objects[i] && (uintptr_t)objects[i] % APP_ALIGNMENT == 0, "there is room for an aligned object");
        memset(objects[i], (int)i, sizes[i]);
        if (round % 500 == 0) {
            check_counts(heap, all);
        }
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        multi_heap_free(heap, objects[i]);
    }
    check_counts(heap, all);
}

int app_multi_heap_test(void)
{
    expect(multi_heap_register(arena, 16) == NULL, "too small a region is refused");
    multi_heap_handle_t heap = multi_heap_register(arena + 1, sizeof arena - 1);
    expect(heap != NULL, "a region is registered");
    multi_heap_set_lock(heap, &lock);
    const size_t all = multi_heap_free_size(heap);
    test_calls(heap, all);
    test_random_calls(heap, all);
    printf("app_esp_idf: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}

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
    expect(multi_heap_aligned_alloc(heap, 8, 0) == NULL && multi_heap_aligned_alloc(heap, 8, 3) == NULL,
           "an alignment that is no power of two is refused");
    expect(multi_heap_aligned_alloc_offs(heap, 8, 0, 4) == NULL &&
               multi_heap_aligned_alloc_offs(heap, 8, 48, 4) == NULL,
           "with an offset, too");
    expect(multi_heap_malloc(heap, ARENA) == NULL, "what there is not is refused");
    expect(multi_heap_free_size(heap) == all, "all is given back");
    expect(multi_heap_minimum_free_size(heap) + 1000 <= all, "least ever free is kept");
}

/* Objects that begin 4 bytes before an aligned address, which ESP-IDF requests if each block begins with its owner. */
static void test_offsets(multi_heap_handle_t heap, size_t all)
{
    unsigned char *plain = multi_heap_aligned_alloc_offs(heap, 100, 64, 0);
    unsigned char *owned = multi_heap_aligned_alloc_offs(heap, 104, 64, 4);
    expect(plain && (uintptr_t)plain % 64 == 0, "without an offset the object is aligned");
    expect(owned && ((uintptr_t)owned + 4) % 64 == 0, "with one its byte there is");
    expect(multi_heap_get_allocated_size(heap, owned) >= 104, "an object's size, from there");
    expect(multi_heap_get_full_block_size(heap, owned) > 104, "and that of its block");
    memset(plain, 6, 100);
    memset(owned, 7, multi_heap_get_allocated_size(heap, owned));
    check_counts(heap, all);
    owned = multi_heap_realloc(heap, owned, 300);
    expect(owned && owned[0] == 7 && owned[103] == 7 && plain[99] == 6, "realloc keeps an object's bytes");
    multi_heap_free(heap, owned);
    owned = multi_heap_aligned_alloc_offs(heap, 40, 128, 4);
    multi_heap_free(heap, owned);
    expect(multi_heap_aligned_alloc_offs(heap, 40, 128, 3) == NULL, "an offset that is no word's is refused");
    expect(multi_heap_aligned_alloc_offs(heap, SIZE_MAX, 64, 4) == NULL, "what there is not is refused");
    multi_heap_free(heap, plain);
    expect(multi_heap_free_size(heap) == all, "all is given back");
}

struct walked {
    void *wanted;
    size_t found, blocks, free;
};

static bool walk(void *block_ptr, size_t block_size, int block_used, void *user_data)
{
    struct walked *walked = user_data;
    walked->blocks++;
    walked->free += block_used ? 0 : block_size;
    walked->found += block_ptr == walked->wanted && block_size >= 200 && block_used;
    return walked->blocks < 1000;
}

static bool stop(void *block_ptr, size_t block_size, int block_used, void *user_data)
{
    (void)block_ptr, (void)block_size, (void)block_used;
    ++*(size_t *)user_data;
    return false;
}

static void test_walks(multi_heap_handle_t heap)
{
    size_t calls = 0;
    unsigned char *first = multi_heap_malloc(heap, 100), *second = multi_heap_malloc(heap, 200);
    struct walked walked = {second, 0, 0, 0};
    multi_heap_walk(heap, walk, &walked);
    expect(walked.found == 1 && walked.blocks >= 2, "a walk finds an object, once");
    expect(walked.free > ARENA / 2 && walked.free <= multi_heap_free_size(heap), "and what is free");
    multi_heap_walk(heap, stop, &calls);
    expect(calls == 1, "a walk ends when its callback says so");
    expect(multi_heap_find_containing_block(heap, second + 150) == second, "whose an address is");
    multi_heap_free(heap, second);
    const size_t before = multi_heap_minimum_free_size(heap);
    expect(multi_heap_reset_minimum_free_bytes(heap) == before, "the least that was free");
    expect(multi_heap_minimum_free_size(heap) == multi_heap_free_size(heap), "the minimum restarts");
    multi_heap_restore_minimum_free_bytes(heap, before + 1);
    multi_heap_restore_minimum_free_bytes(heap, SIZE_MAX);
    expect(multi_heap_minimum_free_size(heap) == before + 1, "and takes the value that is set, if that is less");
    multi_heap_free(heap, first);
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
    test_offsets(heap, all);
    test_walks(heap);
    test_random_calls(heap, all);
    printf("app_esp_idf: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}

/* app_nuttx_test.c: whether NuttX's heap functions are served from app_heap, on a region of its own.
 *
 * As an application of NuttX: main prints "app_nuttx: ok".
 */
#include "app_heap.h"

#include <nuttx/config.h>

#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include <nuttx/mm/mm.h>

enum { ARENA = 32768, OBJECTS = 32, ROUNDS = 20000 };

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[ARENA];
static int failures;

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("FAILED: %s\n", what);
        failures++;
    }
}

static void check_counts(struct mm_heap_s *heap)
{
    const struct mallinfo info = mm_mallinfo(heap);
    expect(info.uordblks + info.fordblks == info.arena && info.arena < ARENA, "used and free bytes are all");
    expect(info.usmblks >= info.uordblks, "the most that was used");
    expect((info.aordblks == 0) == (info.uordblks == 0), "blocks and bytes");
    expect(info.mxordblk <= info.fordblks, "the largest free block is free");
    expect(mm_heapfree(heap) == (size_t)info.fordblks && mm_heapfree(heap) != 0, "free bytes, both ways");
    expect(mm_heapfree_largest(heap) == (size_t)info.mxordblk, "the largest free block, both ways");
}

static void test_calls(struct mm_heap_s *heap)
{
    unsigned char *zero = mm_zalloc(heap, 300);
    expect(zero && zero[0] == 0 && zero[299] == 0, "mm_zalloc clears");
    memset(zero, 7, 300);
    expect(mm_malloc_size(heap, zero) >= 300, "an object's size");
    zero = mm_realloc(heap, zero, 600);
    expect(zero && zero[299] == 7, "realloc keeps an object's bytes");
    void *aligned = mm_memalign(heap, 1024, 100);
    expect(aligned && (uintptr_t)aligned % 1024 == 0, "mm_memalign");
    check_counts(heap);
    expect(mm_mallinfo(heap).aordblks == 2, "both are in the heap");
    expect(mm_heapmember(heap, aligned) && !mm_heapmember(heap, &failures), "what is its own");
    expect(mm_brkaddr(heap, 0) == arena + sizeof arena, "the end of the heap");
    mm_free(heap, aligned);
    mm_free(heap, NULL);
    memset(zero, 0xff, 600);
    expect(mm_realloc(heap, zero, 0) == NULL, "realloc to 0 frees");
    zero = mm_calloc(heap, 30, 20);
    expect(zero && zero[0] == 0 && zero[599] == 0, "mm_calloc clears");
    mm_free(heap, zero);
    expect(mm_calloc(heap, SIZE_MAX / 2, 4) == NULL, "a product that overflows is refused");
    expect(mm_malloc(heap, ARENA) == NULL, "what there is not is refused");
    expect(mm_mallinfo(heap).uordblks == 0, "all is given back");
}

static void test_random_calls(struct mm_heap_s *heap)
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
        mm_free(heap, objects[i]);
        sizes[i] = (uint16_t)((state >> 16) % 200u);
        objects[i] = mm_malloc(heap, sizes[i]);
        expect(objects[i] && (uintptr_t)objects[i] % APP_ALIGNMENT == 0, "there is room for an aligned object");
        memset(objects[i], (int)i, sizes[i]);
        if (round % 500 == 0) {
            check_counts(heap);
        }
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        mm_free(heap, objects[i]);
    }
    check_counts(heap);
    expect(mm_mallinfo(heap).uordblks == 0, "all is given back");
}

#ifdef KRN_HEAP /* as in app_nuttx.c */
/* A heap whose own data lie in another one. */
static void test_heap_of_a_heap(struct mm_heap_s *heap)
{
    static _Alignas(APP_ARENA_ALIGNMENT) unsigned char region[ARENA / 2];
    struct mm_heap_config_s config;
    memset(&config, 0, sizeof config);
    config.heap = heap;
    config.name = "inner";
    config.start = region;
    config.size = sizeof region;
    struct mm_heap_s *inner = mm_initialize_heap(&config);
    expect(inner && mm_heapmember(heap, inner), "its own data lie in the other heap");
    unsigned char *memory = mm_malloc(inner, 100);
    expect(memory >= region && memory < region + sizeof region, "its objects in its region");
    mm_free(inner, memory);
    mm_uninitialize(inner);
    mm_free(heap, inner);
}
#endif

int main(void)
{
    struct mm_heap_s *heap = mm_initialize("test", arena, sizeof arena);
    test_calls(heap);
    test_random_calls(heap);
#ifdef KRN_HEAP
    test_heap_of_a_heap(heap);
#endif
    mm_uninitialize(heap);
    printf("app_nuttx: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}

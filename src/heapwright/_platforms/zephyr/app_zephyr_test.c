/* app_zephyr_test.c: whether malloc and a pool are served from app_heap, and a thread that waits for memory gets it.
 *
 * As an application of Zephyr: CONFIG_HEAPWRIGHT=y, CONFIG_COMMON_LIBC_MALLOC=n, CONFIG_MULTITHREADING=y.
 */
#include "app_zephyr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zephyr/sys/printk.h>
#include <zephyr/sys/sys_heap.h>

enum { ARENA = 8192, OBJECTS = 32, ROUNDS = 20000, STACK = 1024 };

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[ARENA];
static struct app_pool pool;
static void *held;
static int failures;

K_THREAD_STACK_DEFINE(giver_stack, STACK);
static struct k_thread giver;

static void expect(int holds, const char *what)
{
    if (!holds) {
        printk("FAILED: %s\n", what);
        failures++;
    }
}

static void give_later(void *unused, void *unused2, void *unused3)
{
    (void)unused;
    (void)unused2;
    (void)unused3;
    k_sleep(K_MSEC(50));
    app_pool_free(&pool, held);
}

static void test_waiting(void)
{
    expect(app_pool_init(&pool, arena, 8) == -ENOMEM, "an arena that is too small is rejected");
    expect(app_pool_init(&pool, arena, sizeof arena) == 0, "a pool is made");
    held = app_pool_alloc(&pool, ARENA / 2, K_NO_WAIT);
    expect(held && app_pool_alloc(&pool, ARENA / 2, K_NO_WAIT) == NULL, "what there is not is refused at once");
    expect(app_pool_alloc(&pool, ARENA / 2, K_MSEC(20)) == NULL, "or after a while");
    expect(pool.waiting == 0, "no thread waits any more");
    k_thread_create(&giver, giver_stack, STACK, give_later, NULL, NULL, NULL, 5, 0, K_NO_WAIT);
    void *memory = app_pool_alloc(&pool, ARENA / 2, K_FOREVER);
    expect(memory != NULL, "who waits gets what another frees");
    k_thread_join(&giver, K_FOREVER);
    void *aligned = app_pool_aligned_alloc(&pool, 64, 100, K_NO_WAIT);
    expect(aligned && (uintptr_t)aligned % 64 == 0, "an alignment is kept");
    struct sys_memory_stats stats;
    app_pool_runtime_stats_get(&pool, &stats);
    expect(stats.allocated_bytes == app_statistics(pool.heap).used, "allocated bytes and the walk");
    expect(app_pool_largest_free(&pool) == app_statistics(pool.heap).largest_free,
           "the largest free block and the walk");
    app_pool_free(&pool, aligned);
    app_pool_free(&pool, memory);
    app_pool_runtime_stats_get(&pool, &stats);
    expect(stats.allocated_bytes == 0 && stats.max_allocated_bytes > ARENA / 2, "the most that was ever allocated");
    app_pool_runtime_stats_reset_max(&pool);
    app_pool_runtime_stats_get(&pool, &stats);
    expect(stats.max_allocated_bytes == 0 && stats.free_bytes < ARENA, "which restarts");
    app_pool_free(&pool, NULL);
    expect(app_check(pool.heap) == 0 && app_statistics(pool.heap).used_blocks == 0, "all is given back");
}

static void test_malloc(void)
{
    static volatile size_t huge = SIZE_MAX / 4;
    unsigned char *zero = calloc(10, 30);
    expect(zero && zero[0] == 0 && zero[299] == 0, "calloc clears");
    memset(zero, 7, 300);
    zero = realloc(zero, 600);
    expect(zero && zero[299] == 7, "realloc keeps an object's bytes");
    zero = reallocarray(zero, 10, 10);
    void *aligned = aligned_alloc(64, 100);
    expect(aligned && (uintptr_t)aligned % 64 == 0, "aligned_alloc");
    expect(app_statistics(app_malloc_pool()->heap).used_blocks >= 2, "they are in the heap");
    free(aligned);
    free(zero);
    free(NULL);
    errno = 0;
    expect(malloc(huge) == NULL && errno == ENOMEM, "too large a request fails with ENOMEM");
    errno = 0;
    expect(calloc(huge, 8) == NULL && errno == ENOMEM, "a product that overflows fails with ENOMEM");
}

static void test_random_calls(void)
{
    static unsigned char *objects[OBJECTS];
    static uint16_t sizes[OBJECTS];
    const uint32_t before = app_statistics(app_malloc_pool()->heap).used_blocks;
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
        sizes[i] = objects[i] ? sizes[i] : 0;
        expect((uintptr_t)objects[i] % APP_ALIGNMENT == 0, "an object is aligned");
        memset(objects[i], (int)i, sizes[i]);
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        free(objects[i]);
    }
    expect(app_check(app_malloc_pool()->heap) == 0, "the heap's invariants hold");
    expect(app_statistics(app_malloc_pool()->heap).used_blocks == before, "free gives back");
}

#ifdef CONFIG_HEAPWRIGHT_SYS_HEAP
/* As the kernel calls a heap, with a word before what it aligns. */
static void test_sys_heap(void)
{
    static struct sys_heap heap;
    struct sys_memory_stats stats;
    const size_t word = sizeof(void *);
    sys_heap_init(&heap, arena, 8);
    expect(sys_heap_alloc(&heap, 8) == NULL, "too small a memory serves nothing");
    sys_heap_init(&heap, arena, APP_LEAST_ARENA + APP_ARENA_ALIGNMENT);
    expect(heap.heap == NULL, "nor does one that the heap's own data fill");
    sys_heap_init(&heap, arena + 1, APP_SYS_HEAP_OWN_BYTES + 128);
    expect(sys_heap_alloc(&heap, 64) != NULL, "one with room for an object serves it");
    sys_heap_init(&heap, arena + 1, sizeof arena - 1);
    unsigned char *plain = sys_heap_alloc(&heap, 100);
    unsigned char *aligned = sys_heap_aligned_alloc(&heap, 64, 100);
    unsigned char *behind = sys_heap_aligned_alloc(&heap, 2 * word | word, 100);
    expect(behind && (uintptr_t)(behind + word) % (2 * word) == 0, "a word before an alignment of two");
    sys_heap_free(&heap, behind);
    behind = sys_heap_aligned_alloc(&heap, 64 | word, 100);
    expect(plain && (uintptr_t)plain % APP_ALIGNMENT == 0, "an object is aligned");
    expect(aligned && (uintptr_t)aligned % 64 == 0, "and to more on request");
    expect(behind && (uintptr_t)(behind + word) % 64 == 0, "or from its second word on");
    expect(sys_heap_usable_size(&heap, plain) >= 100 && sys_heap_usable_size(&heap, behind) >= 100, "their sizes");
    memset(plain, 5, 100);
    memset(aligned, 6, 100);
    memset(behind, 7, sys_heap_usable_size(&heap, behind));
    behind = sys_heap_aligned_realloc(&heap, behind, 128 | word, 900);
    expect(behind && behind[99] == 7 && (uintptr_t)(behind + word) % 128 == 0, "realloc keeps bytes, and aligns");
    aligned = sys_heap_realloc(&heap, aligned, 300);
    expect(aligned && aligned[99] == 6 && plain[99] == 5, "an object keeps its bytes");
    sys_heap_runtime_stats_get(&heap, &stats);
    expect(stats.allocated_bytes > 1300 && stats.allocated_bytes + stats.free_bytes < ARENA, "bytes are counted");
    sys_heap_free(&heap, behind);
    sys_heap_free(&heap, aligned);
    sys_heap_free(&heap, NULL);
    expect(sys_heap_realloc(&heap, plain, 0) == NULL, "realloc to 0 frees");
    expect(sys_heap_alloc(&heap, 0) == NULL && sys_heap_noalign_alloc(&heap, 64, ARENA) == NULL, "what is refused");
    expect(sys_heap_aligned_alloc(&heap, 64 | word, SIZE_MAX) == NULL, "and a size that overflows");
    sys_heap_runtime_stats_get(&heap, &stats);
    expect(stats.allocated_bytes == 0 && stats.max_allocated_bytes > 1300, "all is given back");
    sys_heap_runtime_stats_reset_max(&heap);
    sys_heap_runtime_stats_get(&heap, &stats);
    expect(stats.max_allocated_bytes == 0, "the peak restarts");
    expect(sys_heap_validate(&heap), "the heap is whole");
}
#endif

int main(void)
{
    test_waiting();
    test_malloc();
#ifdef CONFIG_HEAPWRIGHT_SYS_HEAP
    test_sys_heap();
#endif
    test_random_calls();
    printk("app_zephyr: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}

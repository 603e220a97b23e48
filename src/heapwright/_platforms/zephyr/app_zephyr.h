/* app_zephyr.h: app_heap for Zephyr: heaps whose callers may wait for memory, as with struct k_heap. */
#ifndef APP_ZEPHYR_H
#define APP_ZEPHYR_H

#include "app_heap.h"

#include <zephyr/kernel.h>
#include <zephyr/sys/mem_stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes of a sys_heap's memory (K_HEAP_DEFINE, CONFIG_HEAP_MEM_POOL_SIZE) that hold the heap's own data, at most.
 * The smallest useful heap has these and its objects, with their headers. */
#define APP_SYS_HEAP_OWN_BYTES (APP_LEAST_ARENA + APP_ARENA_ALIGNMENT + 3u * sizeof(void *))

/* A heap, the lock around its calls, and the threads that wait for memory. */
struct app_pool {
    struct app_heap *heap;
    size_t bytes; /* free at first */
    struct k_spinlock lock;
    struct k_sem freed;
    unsigned int waiting;
};

/* Makes a heap of the `bytes` bytes at `memory`. Returns 0, or -ENOMEM if they are too few for the heap's own data
 * and an object. */
int app_pool_init(struct app_pool *pool, void *memory, size_t bytes);

/* Memory for `bytes` bytes, or NULL where there is none before the time is up. In interrupts only with K_NO_WAIT. */
void *app_pool_alloc(struct app_pool *pool, size_t bytes, k_timeout_t timeout);

/* The same at a multiple of `align`, a power of two. */
void *app_pool_aligned_alloc(struct app_pool *pool, size_t align, size_t bytes, k_timeout_t timeout);

/* Gives memory back, and lets all that wait try again. NULL is allowed; interrupts may call it. */
void app_pool_free(struct app_pool *pool, void *memory);

/* Free and allocated bytes, headers included, and the peak since the start or the reset: like
 * sys_heap_runtime_stats_get() and sys_heap_runtime_stats_reset_max() for a sys_heap. O(1). */
void app_pool_runtime_stats_get(struct app_pool *pool, struct sys_memory_stats *stats);
void app_pool_runtime_stats_reset_max(struct app_pool *pool);

/* The largest request that one free block could serve, of at most 32 that are inspected: a bounded time under the lock.
 */
size_t app_pool_largest_free(struct app_pool *pool);

#ifdef CONFIG_HEAPWRIGHT_MALLOC
/* The heap behind malloc. */
struct app_pool *app_malloc_pool(void);
#endif

#ifdef __cplusplus
}
#endif

#endif

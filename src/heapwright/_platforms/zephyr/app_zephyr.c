/* app_zephyr.c: app_heap for Zephyr: heaps whose callers may wait, and the C library's malloc.
 *
 * Each call of the heap is made under a spinlock, as k_heap's are, with interrupts masked. A free lets all that wait
 * try again.
 */
#include "app_zephyr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int app_pool_init(struct app_pool *pool, void *memory, size_t bytes)
{
    const size_t skipped = (size_t)(-(uintptr_t)memory & (APP_ARENA_ALIGNMENT - 1u));
    memset(pool, 0, sizeof *pool);
    k_sem_init(&pool->freed, 0, K_SEM_MAX_LIMIT);
    pool->heap = bytes > skipped ? app_init((char *)memory + skipped, bytes - skipped) : NULL;
    if (pool->heap != NULL && app_largest_free(pool->heap, 32) == 0) {
        pool->heap = NULL;
    }
    pool->bytes = pool->heap ? app_counters(pool->heap).free : 0;
    return pool->heap ? 0 : -ENOMEM;
}

static void *serve(struct app_pool *pool, size_t align, size_t bytes)
{
    if (pool->heap == NULL) {
        return NULL;
    }
    return align <= APP_ALIGNMENT ? app_malloc(pool->heap, bytes) : app_aligned_alloc(pool->heap, align, bytes);
}

void *app_pool_aligned_alloc(struct app_pool *pool, size_t align, size_t bytes, k_timeout_t timeout)
{
    const k_timepoint_t end = sys_timepoint_calc(timeout);
    k_spinlock_key_t key = k_spin_lock(&pool->lock);
    void *memory = serve(pool, align, bytes);
    int woken = 0;
    while (memory == NULL && !K_TIMEOUT_EQ(timeout, K_NO_WAIT) && woken == 0) {
        pool->waiting++;
        k_spin_unlock(&pool->lock, key);
        woken = k_sem_take(&pool->freed, sys_timepoint_timeout(end));
        key = k_spin_lock(&pool->lock);
        if (woken != 0 && pool->waiting != 0) {
            pool->waiting--;
        }
        memory = serve(pool, align, bytes);
    }
    k_spin_unlock(&pool->lock, key);
    return memory;
}

void *app_pool_alloc(struct app_pool *pool, size_t bytes, k_timeout_t timeout)
{
    return app_pool_aligned_alloc(pool, APP_ALIGNMENT, bytes, timeout);
}

void app_pool_free(struct app_pool *pool, void *memory)
{
    if (memory == NULL) {
        return;
    }
    const k_spinlock_key_t key = k_spin_lock(&pool->lock);
    app_free(pool->heap, memory);
    unsigned int waiting = pool->waiting;
    pool->waiting = 0;
    k_spin_unlock(&pool->lock, key);
    for (; waiting != 0; waiting--) {
        k_sem_give(&pool->freed);
    }
}

void app_pool_runtime_stats_get(struct app_pool *pool, struct sys_memory_stats *stats)
{
    const k_spinlock_key_t key = k_spin_lock(&pool->lock);
    const struct app_counters counters = app_counters(pool->heap);
    k_spin_unlock(&pool->lock, key);
    stats->free_bytes = counters.free;
    stats->allocated_bytes = pool->bytes - counters.free;
    stats->max_allocated_bytes = pool->bytes - counters.least_free;
}

void app_pool_runtime_stats_reset_max(struct app_pool *pool)
{
    const k_spinlock_key_t key = k_spin_lock(&pool->lock);
    app_reset_least_free(pool->heap);
    k_spin_unlock(&pool->lock, key);
}

size_t app_pool_largest_free(struct app_pool *pool)
{
    const k_spinlock_key_t key = k_spin_lock(&pool->lock);
    const size_t largest = app_largest_free(pool->heap, 32);
    k_spin_unlock(&pool->lock, key);
    return largest;
}

/* ---- malloc ---------------------------------------------------------------------------------------------------------
 */

#ifdef CONFIG_HEAPWRIGHT_MALLOC

_Static_assert(CONFIG_HEAPWRIGHT_MALLOC_BYTES >= APP_LEAST_ARENA,
               "CONFIG_HEAPWRIGHT_MALLOC_BYTES cannot hold the heap's control data, APP_LEAST_ARENA bytes");

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[CONFIG_HEAPWRIGHT_MALLOC_BYTES];
static struct app_pool pool;

struct app_pool *app_malloc_pool(void)
{
    return &pool;
}

/* Calls before the kernel has started are served, too: no thread waits for malloc. */
static k_spinlock_key_t enter(void)
{
    const k_spinlock_key_t key = k_spin_lock(&pool.lock);
    if (pool.heap == NULL) {
        pool.heap = app_init(arena, sizeof arena);
        pool.bytes = pool.heap ? app_counters(pool.heap).free : 0;
    }
    return key;
}

static void *leave(k_spinlock_key_t key, void *memory)
{
    k_spin_unlock(&pool.lock, key);
    if (memory == NULL) {
        errno = ENOMEM;
    }
    return memory;
}

void *malloc(size_t size)
{
    const k_spinlock_key_t key = enter();
    return leave(key, serve(&pool, APP_ALIGNMENT, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    const k_spinlock_key_t key = enter();
    return leave(key, serve(&pool, alignment, size));
}

void *realloc(void *memory, size_t size)
{
    const k_spinlock_key_t key = enter();
    return leave(key, pool.heap ? app_realloc(pool.heap, memory, size) : NULL);
}

void *calloc(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    void *memory = malloc(count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

void *reallocarray(void *memory, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(memory, count * size);
}

void free(void *memory)
{
    if (memory != NULL) {
        const k_spinlock_key_t key = enter();
        app_free(pool.heap, memory);
        k_spin_unlock(&pool.lock, key);
    }
}

#endif

/* app_threadx.c: app_heap for ThreadX.
 *
 * A mutex with priority inheritance is held during each call of the heap, so that interrupts are never masked. A
 * release lets all that wait try again; as with byte pools only threads allocate and release.
 */
#include "app_threadx.h"

enum { CREATED = 0x48454150 }; /* else the pool was not created, or is deleted */

static int is_pool(const app_pool *pool)
{
    return pool != NULL && pool->id == CREATED;
}

/* The mutex first: ThreadX rejects one that exists, and a pool in use must stay as it is. */
UINT app_pool_create(app_pool *pool, CHAR *name, VOID *start, ULONG size)
{
    const ULONG skipped = (ULONG)(-(uintptr_t)start & (APP_ARENA_ALIGNMENT - 1u));
    if (pool == NULL) {
        return TX_POOL_ERROR;
    }
    if (start == NULL) {
        return TX_PTR_ERROR;
    }
    if (size < skipped || size - skipped < APP_LEAST_ARENA) {
        return TX_SIZE_ERROR;
    }
    UINT status = tx_mutex_create(&pool->mutex, name, TX_INHERIT);
    if (status != TX_SUCCESS) {
        return status == TX_MUTEX_ERROR ? TX_POOL_ERROR : status;
    }
    status = tx_semaphore_create(&pool->freed, name, 0);
    if (status != TX_SUCCESS) {
        tx_mutex_delete(&pool->mutex);
        return status;
    }
    pool->id = CREATED;
    pool->waiting = 0;
    pool->heap = app_init((UCHAR *)start + skipped, size - skipped);
    pool->bytes = app_counters(pool->heap).free;
    return TX_SUCCESS;
}

UINT app_pool_delete(app_pool *pool)
{
    if (!is_pool(pool)) {
        return TX_POOL_ERROR;
    }
    pool->id = 0;
    const UINT status = tx_semaphore_delete(&pool->freed);
    return status == TX_SUCCESS ? tx_mutex_delete(&pool->mutex) : status;
}

/* How much of `wait_option` is left after the ticks since `begin`. */
static ULONG left(ULONG wait_option, ULONG begin)
{
    const ULONG gone = tx_time_get() - begin;
    if (wait_option == TX_WAIT_FOREVER) {
        return TX_WAIT_FOREVER;
    }
    return gone < wait_option ? wait_option - gone : TX_NO_WAIT;
}

UINT app_pool_allocate(app_pool *pool, VOID **memory, ULONG size, ULONG wait_option)
{
    const ULONG begin = tx_time_get();
    if (!is_pool(pool)) {
        return TX_POOL_ERROR;
    }
    if (memory == NULL) {
        return TX_PTR_ERROR;
    }
    *memory = NULL;
    if (size == 0 || size > pool->bytes) {
        return TX_SIZE_ERROR;
    }
    UINT status = tx_mutex_get(&pool->mutex, wait_option);
    if (status != TX_SUCCESS) {
        return status;
    }
    UINT woken = TX_SUCCESS;
    *memory = app_malloc(pool->heap, size);
    while (*memory == NULL && wait_option != TX_NO_WAIT && woken == TX_SUCCESS) {
        pool->waiting++;
        tx_mutex_put(&pool->mutex);
        woken = tx_semaphore_get(&pool->freed, left(wait_option, begin));
        if (woken == TX_DELETED) {
            return woken;
        }
        tx_mutex_get(&pool->mutex, TX_WAIT_FOREVER);
        if (woken != TX_SUCCESS && pool->waiting != 0) {
            pool->waiting--;
        }
        *memory = app_malloc(pool->heap, size);
    }
    tx_mutex_put(&pool->mutex);
    if (*memory != NULL) {
        return TX_SUCCESS;
    }
    return woken == TX_SUCCESS || woken == TX_NO_INSTANCE ? TX_NO_MEMORY : woken;
}

UINT app_pool_release(app_pool *pool, VOID *memory)
{
    if (!is_pool(pool)) {
        return TX_POOL_ERROR;
    }
    if (memory == NULL) {
        return TX_PTR_ERROR;
    }
    const UINT status = tx_mutex_get(&pool->mutex, TX_WAIT_FOREVER);
    if (status != TX_SUCCESS) {
        return status;
    }
    app_free(pool->heap, memory);
    ULONG waiting = pool->waiting;
    pool->waiting = 0;
    tx_mutex_put(&pool->mutex);
    for (; waiting != 0; waiting--) {
        tx_semaphore_put(&pool->freed);
    }
    return TX_SUCCESS;
}

UINT app_pool_info_get(app_pool *pool, ULONG *available_bytes, ULONG *least_available, ULONG *largest)
{
    if (!is_pool(pool)) {
        return TX_POOL_ERROR;
    }
    const UINT status = tx_mutex_get(&pool->mutex, TX_WAIT_FOREVER);
    if (status != TX_SUCCESS) {
        return status;
    }
    const struct app_counters counters = app_counters(pool->heap);
    if (available_bytes != NULL) {
        *available_bytes = counters.free;
    }
    if (least_available != NULL) {
        *least_available = counters.least_free;
    }
    if (largest != NULL) {
        *largest = (ULONG)app_largest_free(pool->heap, 32);
    }
    return tx_mutex_put(&pool->mutex);
}

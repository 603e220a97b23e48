/* app_tx_byte.c: ThreadX's byte pools by their own names, over app_threadx.c. */
#include "app_tx_byte.h"

/* All that were made and not deleted. Threads change it with interrupts masked, for a few instructions. */
static app_byte_pool *pools;

UINT app_byte_pool_create(app_byte_pool *pool, CHAR *name, VOID *start, ULONG size)
{
    if (pool == NULL) {
        return TX_POOL_ERROR;
    }
    const UINT status = app_pool_create(&pool->pool, name, start, size);
    if (status == TX_SUCCESS) {
        const UINT posture = tx_interrupt_control(TX_INT_DISABLE);
        pool->name = name;
        pool->next = pools;
        pools = pool;
        tx_interrupt_control(posture);
    }
    return status;
}

UINT app_byte_pool_delete(app_byte_pool *pool)
{
    const UINT posture = tx_interrupt_control(TX_INT_DISABLE);
    app_byte_pool **at = &pools;
    while (*at != NULL && *at != pool) {
        at = &(*at)->next;
    }
    const int known = *at != NULL;
    if (known) {
        *at = pool->next;
    }
    tx_interrupt_control(posture);
    return known ? app_pool_delete(&pool->pool) : TX_POOL_ERROR;
}

UINT app_byte_allocate(app_byte_pool *pool, VOID **memory, ULONG size, ULONG wait_option)
{
    return pool ? app_pool_allocate(&pool->pool, memory, size, wait_option) : TX_POOL_ERROR;
}

UINT app_byte_release(VOID *memory)
{
    app_byte_pool *pool = pools;
    while (pool != NULL && !app_owns(pool->pool.heap, memory)) {
        pool = pool->next;
    }
    return memory != NULL && pool != NULL ? app_pool_release(&pool->pool, memory) : TX_PTR_ERROR;
}

UINT app_byte_pool_info_get(app_byte_pool *pool, CHAR **name, ULONG *available_bytes, ULONG *fragments,
                            TX_THREAD **first_suspended, ULONG *suspended_count, app_byte_pool **next_pool)
{
    ULONG available = 0;
    if (pool == NULL) {
        return TX_POOL_ERROR;
    }
    const UINT status = app_pool_info_get(&pool->pool, &available, NULL, NULL);
    if (status != TX_SUCCESS) {
        return status;
    }
    if (name != NULL) {
        *name = pool->name;
    }
    if (available_bytes != NULL) {
        *available_bytes = available;
    }
    if (fragments != NULL) {
        *fragments = available != 0;
    }
    if (next_pool != NULL) {
        *next_pool = pool->next;
    }
    return tx_semaphore_info_get(&pool->pool.freed, NULL, NULL, first_suspended, suspended_count, NULL);
}

UINT app_byte_pool_prioritize(app_byte_pool *pool)
{
    if (pool == NULL || pool->pool.id == 0) {
        return TX_POOL_ERROR;
    }
    return tx_semaphore_prioritize(&pool->pool.freed);
}

/* app_threadx.h: app_heap for ThreadX: pools with the calls of a TX_BYTE_POOL. */
#ifndef APP_THREADX_H
#define APP_THREADX_H

#include "app_heap.h"

#include "tx_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A heap, the mutex around its calls, and the threads that wait for memory. */
typedef struct app_pool {
    ULONG id;
    struct app_heap *heap;
    ULONG bytes; /* free at first */
    TX_MUTEX mutex;
    TX_SEMAPHORE freed;
    ULONG waiting; /* since the last release; a thread that was terminated stays counted */
} app_pool;

/* Makes a pool of the `size` bytes at `start`. Returns TX_SUCCESS, TX_SIZE_ERROR if they are too few for the heap's
 * own data, TX_POOL_ERROR if the pool exists already, TX_PTR_ERROR if `start` is NULL, or what making the mutex or the
 * semaphore returned. All other calls return TX_POOL_ERROR for NULL, and for a pool that was not created. */
UINT app_pool_create(app_pool *pool, CHAR *name, VOID *start, ULONG size);

/* Deletes the pool's mutex and semaphore. Waiting threads get TX_DELETED. */
UINT app_pool_delete(app_pool *pool);

/* Puts memory for `size` bytes at *memory. Returns TX_SUCCESS, or TX_NO_MEMORY with *memory NULL if there is none
 * before `wait_option` ticks are over (TX_NO_WAIT, TX_WAIT_FOREVER), or what waiting returned; at once TX_SIZE_ERROR
 * for 0 bytes and for more than the pool ever has, TX_PTR_ERROR if `memory` is NULL. From threads. */
UINT app_pool_allocate(app_pool *pool, VOID **memory, ULONG size, ULONG wait_option);

/* Gives memory back, and lets all that wait try again. Returns TX_SUCCESS, or TX_PTR_ERROR for NULL. From threads. */
UINT app_pool_release(app_pool *pool, VOID *memory);

/* Returns the free bytes, their minimum, and the largest request that one free block could serve, of at most 32 that
 * are inspected; each pointer may be NULL. A bounded time under the mutex. Returns TX_SUCCESS, or the error of
 * tx_mutex_get(). From threads. */
UINT app_pool_info_get(app_pool *pool, ULONG *available_bytes, ULONG *least_available, ULONG *largest);

#ifdef __cplusplus
}
#endif

#endif

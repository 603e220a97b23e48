/* app_tx_byte.h: ThreadX's byte pools by their own names, served by app_heap.
 *
 * Include it after tx_api.h, or make it every file's with -include: TX_BYTE_POOL and the calls of tx_byte_ are those of
 * app_tx_byte.c from there on. Files that do not include it keep ThreadX's own.
 */
#ifndef APP_TX_BYTE_H
#define APP_TX_BYTE_H

#include "app_threadx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pool, its name, and the pool that was made before it. */
typedef struct app_byte_pool {
    app_pool pool;
    CHAR *name;
    struct app_byte_pool *next;
} app_byte_pool;

/* As tx_byte_pool_create(), tx_byte_pool_delete(), tx_byte_allocate() and tx_byte_release(). A release finds the pool
 * by the address: O(pools). It returns TX_PTR_ERROR for memory of none. */
UINT app_byte_pool_create(app_byte_pool *pool, CHAR *name, VOID *start, ULONG size);
UINT app_byte_pool_delete(app_byte_pool *pool);
UINT app_byte_allocate(app_byte_pool *pool, VOID **memory, ULONG size, ULONG wait_option);
UINT app_byte_release(VOID *memory);

/* As tx_byte_pool_info_get(); each pointer may be NULL. The heap does not count fragments: 1 where anything is free,
 * else 0. A bounded time under the mutex. */
UINT app_byte_pool_info_get(app_byte_pool *pool, CHAR **name, ULONG *available_bytes, ULONG *fragments,
                            TX_THREAD **first_suspended, ULONG *suspended_count, app_byte_pool **next_pool);

/* The first that waits is the one of the highest priority. All try again with each release, in any case. */
UINT app_byte_pool_prioritize(app_byte_pool *pool);

#undef tx_byte_allocate
#undef tx_byte_pool_create
#undef tx_byte_pool_delete
#undef tx_byte_pool_info_get
#undef tx_byte_pool_prioritize
#undef tx_byte_release
#define TX_BYTE_POOL app_byte_pool
#define tx_byte_allocate app_byte_allocate
#define tx_byte_pool_create app_byte_pool_create
#define tx_byte_pool_delete app_byte_pool_delete
#define tx_byte_pool_info_get app_byte_pool_info_get
#define tx_byte_pool_prioritize app_byte_pool_prioritize
#define tx_byte_release app_byte_release

#ifdef __cplusplus
}
#endif

#endif

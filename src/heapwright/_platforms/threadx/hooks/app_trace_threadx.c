/* app_trace_threadx.c: records the calls of ThreadX's byte pools and block pools.
 *
 * Linked with -Wl,--wrap=_tx_byte_allocate,--wrap=_tx_byte_release,--wrap=_tx_block_allocate,--wrap=_tx_block_release,
 * which the checking functions (_txe_...) call, too.
 */
#include "tx_api.h"

#define APP_TRACE_ENTER()                                                                                              \
    TX_INTERRUPT_SAVE_AREA;                                                                                            \
    TX_DISABLE
#define APP_TRACE_LEAVE() TX_RESTORE

#ifndef APP_TRACE_TICKS
#define APP_TRACE_TICKS() ((uint32_t)tx_time_get())
#define APP_TRACE_TICKS_PER_SECOND TX_TIMER_TICKS_PER_SECOND
#endif
#define APP_TRACE_THREAD() ((uint32_t)(uintptr_t)tx_thread_identify())

#include "app_trace_ring.h"

UINT __real__tx_byte_allocate(TX_BYTE_POOL *pool, VOID **pointer, ULONG size, ULONG wait);
UINT __real__tx_byte_release(VOID *pointer);
UINT __real__tx_block_allocate(TX_BLOCK_POOL *pool, VOID **pointer, ULONG wait);
UINT __real__tx_block_release(VOID *pointer);

UINT __wrap__tx_byte_allocate(TX_BYTE_POOL *pool, VOID **pointer, ULONG size, ULONG wait);
UINT __wrap__tx_byte_release(VOID *pointer);
UINT __wrap__tx_block_allocate(TX_BLOCK_POOL *pool, VOID **pointer, ULONG wait);
UINT __wrap__tx_block_release(VOID *pointer);

UINT __wrap__tx_byte_allocate(TX_BYTE_POOL *pool, VOID **pointer, ULONG size, ULONG wait)
{
    const UINT status = __real__tx_byte_allocate(pool, pointer, size, wait);
    app_trace_allocated(status == TX_SUCCESS ? *pointer : NULL, size);
    return status;
}

UINT __wrap__tx_byte_release(VOID *pointer)
{
    app_trace_freed(pointer);
    return __real__tx_byte_release(pointer);
}

UINT __wrap__tx_block_allocate(TX_BLOCK_POOL *pool, VOID **pointer, ULONG wait)
{
    const UINT status = __real__tx_block_allocate(pool, pointer, wait);
    app_trace_allocated(status == TX_SUCCESS ? *pointer : NULL, pool->tx_block_pool_block_size);
    return status;
}

UINT __wrap__tx_block_release(VOID *pointer)
{
    app_trace_freed(pointer);
    return __real__tx_block_release(pointer);
}

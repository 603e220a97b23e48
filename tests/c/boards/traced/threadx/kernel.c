/* A stub of ThreadX's kernel, over the machine's heap. */
#include <assert.h>
#include <stdlib.h>

#include "tx_api.h"

static UINT masked;

UINT tx_disable(void)
{
    const UINT before = masked;
    masked = 1;
    return before;
}

void tx_restore(UINT before)
{
    assert(masked);
    masked = before;
}

ULONG tx_time_get(VOID)
{
    static ULONG now;
    return ++now;
}

TX_THREAD *tx_thread_identify(VOID)
{
    return NULL;
}

UINT _tx_byte_allocate(TX_BYTE_POOL *pool_ptr, VOID **memory_ptr, ULONG memory_size, ULONG wait_option)
{
    (void)wait_option;
    if (memory_size > pool_ptr->tx_byte_pool_available) {
        return TX_NO_MEMORY;
    }
    *memory_ptr = malloc(memory_size);
    return TX_SUCCESS;
}

UINT _tx_byte_release(VOID *memory_ptr)
{
    free(memory_ptr);
    return TX_SUCCESS;
}

UINT _tx_block_allocate(TX_BLOCK_POOL *pool_ptr, VOID **block_ptr, ULONG wait_option)
{
    (void)wait_option;
    *block_ptr = malloc(pool_ptr->tx_block_pool_block_size);
    return TX_SUCCESS;
}

UINT _tx_block_release(VOID *block_ptr)
{
    free(block_ptr);
    return TX_SUCCESS;
}

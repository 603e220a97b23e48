/* What app_trace_threadx.c uses of ThreadX, declared as in common/inc/tx_api.h and tx_byte_pool.h of ThreadX 6; what
 * the structures hold in addition is the stub's. */
#ifndef TX_API_H
#define TX_API_H

typedef void VOID;
typedef unsigned int UINT;
typedef unsigned long ULONG;

#define TX_SUCCESS ((UINT)0x00)
#define TX_NO_MEMORY ((UINT)0x10)
#define TX_TIMER_TICKS_PER_SECOND ((ULONG)100)
#define TX_INTERRUPT_SAVE_AREA UINT interrupt_save
#define TX_DISABLE interrupt_save = tx_disable();
#define TX_RESTORE tx_restore(interrupt_save);

typedef struct TX_THREAD_STRUCT TX_THREAD;
typedef struct TX_BYTE_POOL_STRUCT {
    ULONG tx_byte_pool_available;
} TX_BYTE_POOL;
typedef struct TX_BLOCK_POOL_STRUCT {
    UINT tx_block_pool_block_size;
} TX_BLOCK_POOL;

UINT tx_disable(void);
void tx_restore(UINT before);
ULONG tx_time_get(VOID);
TX_THREAD *tx_thread_identify(VOID);
UINT _tx_byte_allocate(TX_BYTE_POOL *pool_ptr, VOID **memory_ptr, ULONG memory_size, ULONG wait_option);
UINT _tx_byte_release(VOID *memory_ptr);
UINT _tx_block_allocate(TX_BLOCK_POOL *pool_ptr, VOID **block_ptr, ULONG wait_option);
UINT _tx_block_release(VOID *block_ptr);

#endif

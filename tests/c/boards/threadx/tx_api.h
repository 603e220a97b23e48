/* What app_threadx.c uses of ThreadX, declared as in common/inc/tx_api.h of ThreadX 6, with the plain names of its
 * functions; what the structures hold is the stub's. */
#ifndef TX_API_H
#define TX_API_H

#include <stddef.h>
#include <stdint.h>

typedef void VOID;
typedef char CHAR;
typedef unsigned char UCHAR;
typedef unsigned int UINT;
typedef unsigned long ULONG;

#define TX_SUCCESS ((UINT)0x00)
#define TX_DELETED ((UINT)0x01)
#define TX_POOL_ERROR ((UINT)0x02)
#define TX_PTR_ERROR ((UINT)0x03)
#define TX_SIZE_ERROR ((UINT)0x05)
#define TX_NO_INSTANCE ((UINT)0x0D)
#define TX_NO_MEMORY ((UINT)0x10)
#define TX_NO_WAIT ((ULONG)0)
#define TX_MUTEX_ERROR ((UINT)0x1C)
#define TX_WAIT_FOREVER ((ULONG)0xFFFFFFFFUL)
#define TX_INHERIT ((UINT)1)
#define TX_INT_DISABLE ((UINT)1)
#define TX_INT_ENABLE ((UINT)0)
#define TX_AUTO_START ((UINT)1)
#define TX_DONT_START ((UINT)0)
#define TX_NO_TIME_SLICE ((ULONG)0)

typedef struct TX_MUTEX_STRUCT {
    int created;
    int held;
} TX_MUTEX;
typedef struct TX_SEMAPHORE_STRUCT {
    ULONG count;
    ULONG suspended;
    struct TX_THREAD_STRUCT *first;
} TX_SEMAPHORE;
typedef struct TX_THREAD_STRUCT {
    unsigned long thread;
    int terminated;
    VOID (*entry)(ULONG);
} TX_THREAD;

UINT tx_mutex_create(TX_MUTEX *mutex_ptr, CHAR *name_ptr, UINT inherit);
UINT tx_mutex_delete(TX_MUTEX *mutex_ptr);
UINT tx_mutex_get(TX_MUTEX *mutex_ptr, ULONG wait_option);
UINT tx_mutex_put(TX_MUTEX *mutex_ptr);
UINT tx_semaphore_create(TX_SEMAPHORE *semaphore_ptr, CHAR *name_ptr, ULONG initial_count);
UINT tx_semaphore_delete(TX_SEMAPHORE *semaphore_ptr);
UINT tx_semaphore_get(TX_SEMAPHORE *semaphore_ptr, ULONG wait_option);
UINT tx_semaphore_info_get(TX_SEMAPHORE *semaphore_ptr, CHAR **name, ULONG *current_value, TX_THREAD **first_suspended,
                           ULONG *suspended_count, TX_SEMAPHORE **next_semaphore);
UINT tx_semaphore_prioritize(TX_SEMAPHORE *semaphore_ptr);
UINT tx_semaphore_put(TX_SEMAPHORE *semaphore_ptr);
UINT tx_thread_create(TX_THREAD *thread_ptr, CHAR *name_ptr, VOID (*entry_function)(ULONG entry_input),
                      ULONG entry_input, VOID *stack_start, ULONG stack_size, UINT priority, UINT preempt_threshold,
                      ULONG time_slice, UINT auto_start);
UINT tx_thread_resume(TX_THREAD *thread_ptr);
UINT tx_thread_terminate(TX_THREAD *thread_ptr);
UINT tx_thread_sleep(ULONG timer_ticks);
ULONG tx_time_get(VOID);
UINT tx_interrupt_control(UINT new_posture);

/* ThreadX's own byte pools, which must not be called where app_tx_byte.h is included. */
typedef struct TX_BYTE_POOL_STRUCT {
    ULONG id;
} THREADX_BYTE_POOL;
#define tx_byte_allocate _txe_byte_allocate
#define tx_byte_release _txe_byte_release
void tx_application_define(void *first_unused_memory);

#endif

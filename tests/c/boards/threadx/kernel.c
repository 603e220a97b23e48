/* A kernel for the test of the platform threadx: POSIX threads behind ThreadX's functions, ticks of 10 ms. It aborts
 * where a mutex is put that is not held, something waits under one, or waits for ever. */
#include "tx_api.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Ticks after which no thread will come any more. */
enum { PATIENCE = 300 };

static _Thread_local int held;

ULONG tx_time_get(VOID)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (ULONG)time.tv_sec * 100u + (ULONG)time.tv_nsec / 10000000u;
}

/* It aborts where interrupts are masked twice, or let in twice. */
UINT tx_interrupt_control(UINT new_posture)
{
    static _Thread_local UINT posture;
    const UINT before = posture;
    if (new_posture == before || held) {
        abort();
    }
    posture = new_posture;
    return before;
}

UINT tx_mutex_create(TX_MUTEX *mutex_ptr, CHAR *name_ptr, UINT inherit)
{
    (void)name_ptr;
    mutex_ptr->held = 0;
    return inherit == TX_INHERIT ? TX_SUCCESS : TX_PTR_ERROR;
}

UINT tx_mutex_delete(TX_MUTEX *mutex_ptr)
{
    return mutex_ptr->held ? TX_PTR_ERROR : TX_SUCCESS;
}

UINT tx_mutex_get(TX_MUTEX *mutex_ptr, ULONG wait_option)
{
    (void)wait_option;
    while (__atomic_exchange_n(&mutex_ptr->held, 1, __ATOMIC_ACQUIRE)) {
        usleep(100);
    }
    held++;
    return TX_SUCCESS;
}

UINT tx_mutex_put(TX_MUTEX *mutex_ptr)
{
    if (held-- != 1) {
        abort();
    }
    __atomic_store_n(&mutex_ptr->held, 0, __ATOMIC_RELEASE);
    return TX_SUCCESS;
}

UINT tx_semaphore_create(TX_SEMAPHORE *semaphore_ptr, CHAR *name_ptr, ULONG initial_count)
{
    (void)name_ptr;
    semaphore_ptr->count = initial_count;
    return TX_SUCCESS;
}

UINT tx_semaphore_delete(TX_SEMAPHORE *semaphore_ptr)
{
    (void)semaphore_ptr;
    return TX_SUCCESS;
}

UINT tx_semaphore_get(TX_SEMAPHORE *semaphore_ptr, ULONG wait_option)
{
    const ULONG begin = tx_time_get();
    if (held) {
        abort();
    }
    for (;;) {
        ULONG count = __atomic_load_n(&semaphore_ptr->count, __ATOMIC_ACQUIRE);
        if (count != 0 && __atomic_compare_exchange_n(&semaphore_ptr->count, &count, count - 1, 0, __ATOMIC_ACQUIRE,
                                                      __ATOMIC_RELAXED)) {
            return TX_SUCCESS;
        }
        if (wait_option != TX_WAIT_FOREVER && tx_time_get() - begin >= wait_option) {
            return TX_NO_INSTANCE;
        }
        if (tx_time_get() - begin > PATIENCE) {
            abort();
        }
        usleep(1000);
    }
}

UINT tx_semaphore_put(TX_SEMAPHORE *semaphore_ptr)
{
    __atomic_add_fetch(&semaphore_ptr->count, 1, __ATOMIC_RELEASE);
    return TX_SUCCESS;
}

static void *run(void *thread)
{
    ((TX_THREAD *)thread)->entry(0);
    return NULL;
}

UINT tx_thread_create(TX_THREAD *thread_ptr, CHAR *name_ptr, VOID (*entry_function)(ULONG entry_input),
                      ULONG entry_input, VOID *stack_start, ULONG stack_size, UINT priority, UINT preempt_threshold,
                      ULONG time_slice, UINT auto_start)
{
    (void)name_ptr, (void)entry_input, (void)stack_start, (void)stack_size, (void)priority, (void)preempt_threshold;
    (void)time_slice;
    thread_ptr->entry = entry_function;
    return auto_start ? tx_thread_resume(thread_ptr) : TX_SUCCESS;
}

UINT tx_thread_resume(TX_THREAD *thread_ptr)
{
    return pthread_create((pthread_t *)&thread_ptr->thread, NULL, run, thread_ptr) ? TX_PTR_ERROR : TX_SUCCESS;
}

UINT tx_thread_sleep(ULONG timer_ticks)
{
    usleep((unsigned)timer_ticks * 10000u);
    return TX_SUCCESS;
}

/* The last line ends the program. */
void app_threadx_say(const char *line)
{
    puts(line);
    fflush(stdout);
    if (strncmp(line, "app_threadx: ", 13) == 0) {
        _exit(strcmp(line, "app_threadx: ok") != 0);
    }
}

int main(void)
{
    tx_application_define(NULL);
    pthread_exit(NULL);
}

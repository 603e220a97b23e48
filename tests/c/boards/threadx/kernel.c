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
static _Thread_local TX_THREAD *self;

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
    if (mutex_ptr->created) {
        return TX_MUTEX_ERROR;
    }
    *mutex_ptr = (TX_MUTEX){1, 0};
    return inherit == TX_INHERIT ? TX_SUCCESS : TX_PTR_ERROR;
}

UINT tx_mutex_delete(TX_MUTEX *mutex_ptr)
{
    mutex_ptr->created = 0;
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
    *semaphore_ptr = (TX_SEMAPHORE){initial_count, 0, NULL};
    return TX_SUCCESS;
}

UINT tx_semaphore_delete(TX_SEMAPHORE *semaphore_ptr)
{
    (void)semaphore_ptr;
    return TX_SUCCESS;
}

static UINT wait_for(TX_SEMAPHORE *semaphore_ptr, ULONG wait_option)
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
        if (__atomic_load_n(&self->terminated, __ATOMIC_ACQUIRE)) {
            return TX_PTR_ERROR;
        }
        usleep(1000);
    }
}

/* One thread at a time waits for a semaphore in this test. A terminated one ends here, and waits no more. */
UINT tx_semaphore_get(TX_SEMAPHORE *semaphore_ptr, ULONG wait_option)
{
    semaphore_ptr->first = self;
    __atomic_add_fetch(&semaphore_ptr->suspended, 1, __ATOMIC_RELEASE);
    const UINT status = wait_for(semaphore_ptr, wait_option);
    semaphore_ptr->first = NULL;
    __atomic_sub_fetch(&semaphore_ptr->suspended, 1, __ATOMIC_RELEASE);
    if (self->terminated) {
        __atomic_store_n(&self->terminated, 2, __ATOMIC_RELEASE);
        pthread_exit(NULL);
    }
    return status;
}

UINT tx_semaphore_info_get(TX_SEMAPHORE *semaphore_ptr, CHAR **name, ULONG *current_value, TX_THREAD **first_suspended,
                           ULONG *suspended_count, TX_SEMAPHORE **next_semaphore)
{
    if (name || current_value || next_semaphore) {
        abort();
    }
    if (first_suspended) {
        *first_suspended = semaphore_ptr->first;
    }
    if (suspended_count) {
        *suspended_count = __atomic_load_n(&semaphore_ptr->suspended, __ATOMIC_ACQUIRE);
    }
    return TX_SUCCESS;
}

UINT tx_semaphore_prioritize(TX_SEMAPHORE *semaphore_ptr)
{
    (void)semaphore_ptr;
    return TX_SUCCESS;
}

UINT tx_semaphore_put(TX_SEMAPHORE *semaphore_ptr)
{
    __atomic_add_fetch(&semaphore_ptr->count, 1, __ATOMIC_RELEASE);
    return TX_SUCCESS;
}

static void *run(void *thread)
{
    self = thread;
    self->entry(0);
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

/* Returns when the thread has ended. */
UINT tx_thread_terminate(TX_THREAD *thread_ptr)
{
    __atomic_store_n(&thread_ptr->terminated, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&thread_ptr->terminated, __ATOMIC_ACQUIRE) != 2) {
        usleep(1000);
    }
    return TX_SUCCESS;
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

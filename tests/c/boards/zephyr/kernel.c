/* A kernel for the test of the platform zephyr: POSIX threads behind Zephyr's functions. It aborts where a spinlock is
 * taken twice by a thread, something waits under one, or waits for ever. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

/* Milliseconds after which no thread will come any more. */
enum { PATIENCE = 3000 };

static _Thread_local int spinning;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000u + (uint64_t)time.tv_nsec / 1000000u;
}

k_timepoint_t sys_timepoint_calc(k_timeout_t timeout)
{
    return (k_timepoint_t){timeout.ticks < 0 ? UINT64_MAX : now() + (uint64_t)timeout.ticks};
}

k_timeout_t sys_timepoint_timeout(k_timepoint_t timepoint)
{
    const uint64_t time = now();
    if (timepoint.tick == UINT64_MAX) {
        return K_FOREVER;
    }
    return (k_timeout_t){timepoint.tick > time ? (k_ticks_t)(timepoint.tick - time) : 0};
}

k_spinlock_key_t k_spin_lock(struct k_spinlock *l)
{
    if (spinning++) {
        abort();
    }
    while (__atomic_exchange_n(&l->locked, 1, __ATOMIC_ACQUIRE)) {
    }
    return (k_spinlock_key_t){7};
}

void k_spin_unlock(struct k_spinlock *l, k_spinlock_key_t key)
{
    if (key.key != 7 || --spinning) {
        abort();
    }
    __atomic_store_n(&l->locked, 0, __ATOMIC_RELEASE);
}

int k_sem_init(struct k_sem *sem, unsigned int initial_count, unsigned int limit)
{
    sem->count = initial_count;
    sem->limit = limit;
    return 0;
}

int k_sem_take(struct k_sem *sem, k_timeout_t timeout)
{
    const k_timepoint_t end = sys_timepoint_calc(timeout);
    const uint64_t begin = now();
    if (spinning) {
        abort();
    }
    for (;;) {
        unsigned int count = __atomic_load_n(&sem->count, __ATOMIC_ACQUIRE);
        if (count != 0 &&
            __atomic_compare_exchange_n(&sem->count, &count, count - 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return 0;
        }
        if (now() >= end.tick) {
            return -11; /* -EAGAIN */
        }
        if (now() - begin > PATIENCE) {
            abort();
        }
        usleep(1000);
    }
}

void k_sem_give(struct k_sem *sem)
{
    __atomic_add_fetch(&sem->count, 1, __ATOMIC_RELEASE);
}

static void *run(void *thread)
{
    ((struct k_thread *)thread)->entry(NULL, NULL, NULL);
    return NULL;
}

k_tid_t k_thread_create(struct k_thread *new_thread, k_thread_stack_t *stack, size_t stack_size, k_thread_entry_t entry,
                        void *p1, void *p2, void *p3, int prio, uint32_t options, k_timeout_t delay)
{
    (void)stack, (void)stack_size, (void)p1, (void)p2, (void)p3, (void)prio, (void)options, (void)delay;
    new_thread->entry = entry;
    pthread_create(&new_thread->thread, NULL, run, new_thread);
    return new_thread;
}

int k_thread_join(struct k_thread *thread, k_timeout_t timeout)
{
    (void)timeout;
    return pthread_join(thread->thread, NULL);
}

int32_t k_sleep(k_timeout_t timeout)
{
    usleep((unsigned)timeout.ticks * 1000u);
    return 0;
}

void printk(const char *fmt, ...)
{
    char line[200];
    va_list words;
    va_start(words, fmt);
    const int length = vsnprintf(line, sizeof line, fmt, words);
    va_end(words);
    (void)!write(1, line, (size_t)length);
}

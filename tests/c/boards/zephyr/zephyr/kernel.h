/* What app_zephyr.c uses of Zephyr's kernel, declared as in include/zephyr/kernel.h, kernel_structs.h, spinlock.h and
 * sys_clock.h, with a kernel of POSIX threads behind it. */
#ifndef ZEPHYR_KERNEL_H
#define ZEPHYR_KERNEL_H

#include <stddef.h>
#include <stdint.h>

typedef int64_t k_ticks_t;
typedef struct {
    k_ticks_t ticks;
} k_timeout_t;
typedef struct {
    uint64_t tick;
} k_timepoint_t;

#define K_NO_WAIT ((k_timeout_t){0})
#define K_FOREVER ((k_timeout_t){-1})
#define K_MSEC(ms) ((k_timeout_t){(ms)})
#define K_TIMEOUT_EQ(a, b) ((a).ticks == (b).ticks)

k_timepoint_t sys_timepoint_calc(k_timeout_t timeout);
k_timeout_t sys_timepoint_timeout(k_timepoint_t timepoint);

struct k_spinlock {
    volatile int locked;
};
typedef struct {
    int key;
} k_spinlock_key_t;

k_spinlock_key_t k_spin_lock(struct k_spinlock *l);
void k_spin_unlock(struct k_spinlock *l, k_spinlock_key_t key);

struct k_sem {
    volatile unsigned int count;
    unsigned int limit;
};

#define K_SEM_MAX_LIMIT 0xffffffffu

int k_sem_init(struct k_sem *sem, unsigned int initial_count, unsigned int limit);
int k_sem_take(struct k_sem *sem, k_timeout_t timeout);
void k_sem_give(struct k_sem *sem);

struct k_thread {
    unsigned long thread;
    void (*entry)(void *, void *, void *);
};
typedef struct k_thread *k_tid_t;
typedef char k_thread_stack_t;
typedef void (*k_thread_entry_t)(void *p1, void *p2, void *p3);

#define K_THREAD_STACK_DEFINE(sym, size) static k_thread_stack_t sym[size]

k_tid_t k_thread_create(struct k_thread *new_thread, k_thread_stack_t *stack, size_t stack_size, k_thread_entry_t entry,
                        void *p1, void *p2, void *p3, int prio, uint32_t options, k_timeout_t delay);
int k_thread_join(struct k_thread *thread, k_timeout_t timeout);
int32_t k_sleep(k_timeout_t timeout);

#endif

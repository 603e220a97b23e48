/* What app_trace_zephyr.c uses of Zephyr's kernel, declared as in include/zephyr/kernel.h and spinlock.h. */
#ifndef ZEPHYR_KERNEL_H
#define ZEPHYR_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC 1000000

struct k_spinlock {
    volatile int locked;
};
typedef struct {
    int key;
} k_spinlock_key_t;
typedef struct k_thread *k_tid_t;

k_spinlock_key_t k_spin_lock(struct k_spinlock *l);
void k_spin_unlock(struct k_spinlock *l, k_spinlock_key_t key);
uint32_t k_cycle_get_32(void);
k_tid_t k_current_get(void);

#endif

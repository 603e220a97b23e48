/* A stub of Zephyr's kernel and heap, over the machine's. */
#include <zephyr/kernel.h>
#include <zephyr/sys/sys_heap.h>

#include <assert.h>
#include <stdlib.h>

static uint32_t now;

k_spinlock_key_t k_spin_lock(struct k_spinlock *l)
{
    assert(!l->locked);
    l->locked = 1;
    return (k_spinlock_key_t){7};
}

void k_spin_unlock(struct k_spinlock *l, k_spinlock_key_t key)
{
    assert(l->locked && key.key == 7);
    l->locked = 0;
}

uint32_t k_cycle_get_32(void)
{
    return now += 5000;
}

k_tid_t k_current_get(void)
{
    return (k_tid_t)0x20000040;
}

void *sys_heap_alloc(struct sys_heap *heap, size_t bytes)
{
    return bytes && heap ? malloc(bytes) : NULL;
}

void *sys_heap_aligned_alloc(struct sys_heap *heap, size_t align, size_t bytes)
{
    return align ? aligned_alloc(align, bytes) : sys_heap_alloc(heap, bytes);
}

void *sys_heap_noalign_alloc(struct sys_heap *heap, size_t align, size_t bytes)
{
    (void)align;
    return sys_heap_alloc(heap, bytes);
}

void sys_heap_free(struct sys_heap *heap, void *mem)
{
    (void)heap;
    free(mem);
}

void *sys_heap_realloc(struct sys_heap *heap, void *ptr, size_t bytes)
{
    (void)heap;
    return bytes > 1u << 30 ? NULL : realloc(ptr, bytes);
}

void *sys_heap_aligned_realloc(struct sys_heap *heap, void *ptr, size_t align, size_t bytes)
{
    (void)align;
    return sys_heap_realloc(heap, ptr, bytes);
}

/* Zephyr's sys_heap, declared as in include/zephyr/sys/sys_heap.h. */
#ifndef ZEPHYR_INCLUDE_SYS_SYS_HEAP_H_
#define ZEPHYR_INCLUDE_SYS_SYS_HEAP_H_

#include <stddef.h>

struct sys_heap {
    struct z_heap *heap;
    void *init_mem;
    size_t init_bytes;
};

void *sys_heap_alloc(struct sys_heap *heap, size_t bytes);
void *sys_heap_aligned_alloc(struct sys_heap *heap, size_t align, size_t bytes);
void *sys_heap_noalign_alloc(struct sys_heap *heap, size_t align, size_t bytes);
void sys_heap_free(struct sys_heap *heap, void *mem);
void *sys_heap_realloc(struct sys_heap *heap, void *ptr, size_t bytes);
void *sys_heap_aligned_realloc(struct sys_heap *heap, void *ptr, size_t align, size_t bytes);

#endif

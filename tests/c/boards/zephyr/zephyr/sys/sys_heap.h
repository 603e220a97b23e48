/* What app_sys_heap.c has to define, declared as in include/zephyr/sys/sys_heap.h. */
#ifndef ZEPHYR_SYS_SYS_HEAP_H
#define ZEPHYR_SYS_SYS_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zephyr/sys/mem_stats.h>

struct sys_heap {
    struct z_heap *heap;
    void *init_mem;
    size_t init_bytes;
};

int sys_heap_runtime_stats_get(struct sys_heap *heap, struct sys_memory_stats *stats);
int sys_heap_runtime_stats_reset_max(struct sys_heap *heap);
void sys_heap_init(struct sys_heap *heap, void *mem, size_t bytes);
void *sys_heap_alloc(struct sys_heap *heap, size_t bytes);
void *sys_heap_aligned_alloc(struct sys_heap *heap, size_t align, size_t bytes);
void *sys_heap_noalign_alloc(struct sys_heap *heap, size_t align, size_t bytes);
void sys_heap_free(struct sys_heap *heap, void *mem);
#ifdef ZEPHYR_3_7 /* until 4.1 */
#define sys_heap_realloc(heap, ptr, bytes) sys_heap_aligned_realloc(heap, ptr, 0, bytes)
#else
void *sys_heap_realloc(struct sys_heap *heap, void *ptr, size_t bytes);
#endif
void *sys_heap_aligned_realloc(struct sys_heap *heap, void *ptr, size_t align, size_t bytes);
size_t sys_heap_usable_size(struct sys_heap *heap, void *mem);
bool sys_heap_validate(struct sys_heap *heap);
void sys_heap_print_info(struct sys_heap *heap, bool dump_chunks);

#endif

/* app_multi_heap.c: app_heap behind the functions of ESP-IDF's multi_heap.h, in the place of multi_heap.c.
 *
 * What is known of a heap lies at the start of its region. Interrupts allocate, too, so each call is made under the
 * spinlock that multi_heap_set_lock() was given, as ESP-IDF's own are.
 */
#include "app_heap.h"

#include <multi_heap.h>
#include <stdio.h>
#include <string.h>

#include <freertos/FreeRTOS.h>

struct multi_heap_info {
    struct app_heap *heap;
    void *lock;
    size_t bytes; /* free at first */
};

static void enter(multi_heap_handle_t heap)
{
    if (heap->lock != NULL) {
        portENTER_CRITICAL((portMUX_TYPE *)heap->lock);
    }
}

static void leave(multi_heap_handle_t heap)
{
    if (heap->lock != NULL) {
        portEXIT_CRITICAL((portMUX_TYPE *)heap->lock);
    }
}

multi_heap_handle_t multi_heap_register(void *start, size_t size)
{
    const uintptr_t most = APP_ARENA_ALIGNMENT - 1u;
    const uintptr_t begin = ((uintptr_t)start + sizeof(void *) - 1u) & ~(uintptr_t)(sizeof(void *) - 1u);
    const uintptr_t arena = (begin + sizeof(struct multi_heap_info) + most) & ~most;
    if (size < arena - (uintptr_t)start) {
        return NULL;
    }
    multi_heap_handle_t heap = (multi_heap_handle_t)begin;
    const size_t bytes = size - (size_t)(arena - (uintptr_t)start);
    heap->lock = NULL;
    heap->heap = app_init((void *)arena, bytes);
    if (heap->heap == NULL) {
        return NULL;
    }
    heap->bytes = app_counters(heap->heap).free;
    return heap;
}

void multi_heap_set_lock(multi_heap_handle_t heap, void *lock)
{
    heap->lock = lock;
}

void *multi_heap_aligned_alloc(multi_heap_handle_t heap, size_t size, size_t alignment)
{
    if (heap == NULL || size == 0) {
        return NULL;
    }
    enter(heap);
    void *memory =
        alignment <= APP_ALIGNMENT ? app_malloc(heap->heap, size) : app_aligned_alloc(heap->heap, alignment, size);
    leave(heap);
    return memory;
}

void *multi_heap_malloc(multi_heap_handle_t heap, size_t size)
{
    return multi_heap_aligned_alloc(heap, size, 1);
}

void multi_heap_free(multi_heap_handle_t heap, void *p)
{
    if (heap == NULL || p == NULL) {
        return;
    }
    enter(heap);
    app_free(heap->heap, p);
    leave(heap);
}

void multi_heap_aligned_free(multi_heap_handle_t heap, void *p)
{
    multi_heap_free(heap, p);
}

void *multi_heap_realloc(multi_heap_handle_t heap, void *p, size_t size)
{
    if (p == NULL) {
        return multi_heap_malloc(heap, size);
    }
    if (heap == NULL) {
        return NULL;
    }
    if (size == 0) {
        multi_heap_free(heap, p);
        return NULL;
    }
    enter(heap);
    void *memory = app_realloc(heap->heap, p, size);
    leave(heap);
    return memory;
}

size_t multi_heap_get_allocated_size(multi_heap_handle_t heap, void *p)
{
    enter(heap);
    const size_t bytes = app_usable_size(heap->heap, p);
    leave(heap);
    return bytes;
}

size_t multi_heap_free_size(multi_heap_handle_t heap)
{
    return heap ? app_counters(heap->heap).free : 0;
}

size_t multi_heap_minimum_free_size(multi_heap_handle_t heap)
{
    return heap ? app_counters(heap->heap).least_free : 0;
}

/* Under the lock, at a bounded cost. Only a walk over all blocks can number the free ones, and add up payloads: define
 * APP_MULTI_HEAP_WALKS where that is wanted. Without, what is allocated counts headers, too, and the largest free block
 * is that among 32 of the heap's largest list. */
void multi_heap_get_info(multi_heap_handle_t heap, multi_heap_info_t *info)
{
    memset(info, 0, sizeof *info);
    if (heap == NULL) {
        return;
    }
    enter(heap);
    const struct app_counters told = app_counters(heap->heap);
    info->total_free_bytes = told.free;
    info->minimum_free_bytes = told.least_free;
    info->allocated_blocks = told.mallocs - told.frees;
#ifdef APP_MULTI_HEAP_WALKS
    struct app_block block = {0, 0, 0, 0, 0};
    while (app_next_block(heap->heap, &block)) {
        info->free_blocks += block.state != APP_BLOCK_USED;
        info->total_allocated_bytes += block.state == APP_BLOCK_USED ? block.size - block.header : 0;
    }
    info->largest_free_block = app_largest_free(heap->heap, UINT32_MAX);
#else
    info->total_allocated_bytes = heap->bytes - told.free;
    info->largest_free_block = app_largest_free(heap->heap, 32);
    info->free_blocks = info->largest_free_block != 0;
#endif
    info->total_blocks = info->allocated_blocks + info->free_blocks;
    leave(heap);
}

bool multi_heap_check(multi_heap_handle_t heap, bool print_errors)
{
    enter(heap);
    const int broken = app_check(heap->heap);
    leave(heap);
    if (broken && print_errors) {
        fprintf(stderr, "CORRUPT HEAP: %p: %d\n", (void *)heap, broken);
    }
    return broken == 0;
}

/* Not under the lock: to print may allocate. */
void multi_heap_dump(multi_heap_handle_t heap)
{
    struct app_block block = {0, 0, 0, 0, 0};
    while (app_next_block(heap->heap, &block)) {
        printf("%8lu: %lu bytes, %s\n", (unsigned long)block.offset, (unsigned long)block.size,
               block.state == APP_BLOCK_USED ? "used" : "free");
    }
}

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

#if defined(CONFIG_HEAP_TASK_TRACKING) || defined(CONFIG_HEAP_POISONING_LIGHT) ||                                      \
    defined(CONFIG_HEAP_POISONING_COMPREHENSIVE) || defined(CONFIG_HEAP_TLSF_USE_ROM_IMPL)
#error "app_multi_heap.c: task tracking, poisoning and the heap in ROM need ESP-IDF's own blocks"
#endif

struct multi_heap_info {
    struct app_heap *heap;
    void *lock;
    size_t least_free; /* the least ever before the heap's own counter was reset */
};

static void enter(multi_heap_handle_t heap)
{
    if (heap->lock != NULL) {
        portENTER_CRITICAL_SAFE((portMUX_TYPE *)heap->lock);
    }
}

static void leave(multi_heap_handle_t heap)
{
    if (heap->lock != NULL) {
        portEXIT_CRITICAL_SAFE((portMUX_TYPE *)heap->lock);
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
    if (heap->heap == NULL || app_largest_free(heap->heap, 32) == 0) {
        return NULL;
    }
    heap->least_free = SIZE_MAX;
    return heap;
}

void multi_heap_set_lock(multi_heap_handle_t heap, void *lock)
{
    heap->lock = lock;
}

void *multi_heap_aligned_alloc(multi_heap_handle_t heap, size_t size, size_t alignment)
{
    if (heap == NULL || size == 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) {
        return NULL;
    }
    enter(heap);
    void *memory =
        alignment <= APP_ALIGNMENT ? app_malloc(heap->heap, size) : app_aligned_alloc(heap->heap, alignment, size);
    leave(heap);
    return memory;
}

/* An object whose byte `offset` is to be aligned may have to begin where no object of the heap does. Then it lies in a
 * larger one, and the word before it says how far behind that one's begin. */
static void *origin(void *p)
{
    return (uintptr_t)p % APP_ALIGNMENT == 0 ? p : (unsigned char *)p - ((const uint32_t *)p)[-1];
}

/* NULL also where the offset asks for a begin that an object of the heap might have had, or for one that is not a
 * word's. */
void *multi_heap_aligned_alloc_offs(multi_heap_handle_t heap, size_t size, size_t alignment, size_t offset)
{
    const size_t shift = (size_t)-offset & (alignment - 1);
    if (shift == 0) {
        return multi_heap_aligned_alloc(heap, size, alignment);
    }
    if (size > SIZE_MAX - shift || shift % APP_ALIGNMENT == 0 || shift % sizeof(uint32_t) != 0) {
        return NULL;
    }
    unsigned char *whole = size == 0 ? NULL : multi_heap_aligned_alloc(heap, size + shift, alignment);
    if (whole == NULL) {
        return NULL;
    }
    uint32_t *p = (uint32_t *)(whole + shift);
    p[-1] = (uint32_t)shift;
    return p;
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
    app_free(heap->heap, origin(p));
    leave(heap);
}

void multi_heap_aligned_free(multi_heap_handle_t heap, void *p)
{
    multi_heap_free(heap, p);
}

static size_t payload(multi_heap_handle_t heap, void *p)
{
    return app_usable_size(heap->heap, origin(p)) - (size_t)((unsigned char *)p - (unsigned char *)origin(p));
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
    void *memory;
    if (origin(p) == p) {
        memory = app_realloc(heap->heap, p, size);
    } else if ((memory = app_malloc(heap->heap, size)) != NULL) {
        const size_t bytes = payload(heap, p);
        memcpy(memory, p, bytes < size ? bytes : size);
        app_free(heap->heap, origin(p));
    }
    leave(heap);
    return memory;
}

size_t multi_heap_get_allocated_size(multi_heap_handle_t heap, void *p)
{
    enter(heap);
    const size_t bytes = payload(heap, p);
    leave(heap);
    return bytes;
}

size_t multi_heap_free_size(multi_heap_handle_t heap)
{
    return heap ? app_counters(heap->heap).free : 0;
}

static size_t least_free(multi_heap_handle_t heap)
{
    const size_t counted = app_counters(heap->heap).least_free;
    return counted < heap->least_free ? counted : heap->least_free;
}

size_t multi_heap_minimum_free_size(multi_heap_handle_t heap)
{
    return heap ? least_free(heap) : 0;
}

size_t multi_heap_reset_minimum_free_bytes(multi_heap_handle_t heap)
{
    enter(heap);
    const size_t before = least_free(heap);
    app_reset_least_free(heap->heap);
    heap->least_free = SIZE_MAX;
    leave(heap);
    return before;
}

void multi_heap_restore_minimum_free_bytes(multi_heap_handle_t heap, const size_t new_minimum_free_bytes_value)
{
    enter(heap);
    if (new_minimum_free_bytes_value < heap->least_free) {
        heap->least_free = new_minimum_free_bytes_value;
    }
    leave(heap);
}

/* A walk under the lock, as ESP-IDF's own: only it can number the free blocks and add up payloads. */
void multi_heap_get_info(multi_heap_handle_t heap, multi_heap_info_t *info)
{
    memset(info, 0, sizeof *info);
    if (heap == NULL) {
        return;
    }
    enter(heap);
    const struct app_counters counters = app_counters(heap->heap);
    info->total_free_bytes = counters.free;
    info->minimum_free_bytes = least_free(heap);
    info->allocated_blocks = counters.mallocs - counters.frees;
    struct app_block block = {0, 0, 0, 0, 0};
    size_t fresh = counters.free; /* what no block has covered yet: one free block, or a rest too small for one */
    while (app_next_block(heap->heap, &block)) {
        if (block.state == APP_BLOCK_USED) {
            info->total_allocated_bytes += block.size - block.header;
        } else {
            info->free_blocks++;
            fresh -= block.size;
        }
    }
    info->free_blocks += fresh >= 2u * APP_ALIGNMENT;
    info->largest_free_block = app_largest_free(heap->heap, UINT32_MAX);
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

static void *payload_of(multi_heap_handle_t heap, const struct app_block *block)
{
    return (unsigned char *)heap->heap + block->offset + block->header;
}

/* Under the lock: the walker must not allocate from this heap. */
void multi_heap_walk(multi_heap_handle_t heap, multi_heap_walker_cb_t walker_func, void *user_data)
{
    struct app_block block = {0, 0, 0, 0, 0};
    enter(heap);
    while (app_next_block(heap->heap, &block) &&
           walker_func(payload_of(heap, &block), block.size - block.header, block.state == APP_BLOCK_USED, user_data)) {
    }
    leave(heap);
}

/* The block in use that holds an address, or NULL. A walk. */
static bool find_block(multi_heap_handle_t heap, const void *address, struct app_block *block)
{
    const size_t offset = (size_t)((const unsigned char *)address - (const unsigned char *)heap->heap);
    memset(block, 0, sizeof *block);
    while (app_next_block(heap->heap, block)) {
        if (block->state == APP_BLOCK_USED && offset - block->offset < block->size) {
            return true;
        }
    }
    return false;
}

void *multi_heap_find_containing_block(multi_heap_handle_t heap, void *ptr)
{
    struct app_block block;
    enter(heap);
    const bool found = find_block(heap, ptr, &block);
    leave(heap);
    return found ? payload_of(heap, &block) : NULL;
}

/* With the header: a walk. */
size_t multi_heap_get_full_block_size(multi_heap_handle_t heap, void *p)
{
    struct app_block block;
    enter(heap);
    const bool found = find_block(heap, origin(p), &block);
    leave(heap);
    return found ? block.size : 0;
}

/* ESP-IDF's own files hold the lock while they look. */
void multi_heap_internal_lock(multi_heap_handle_t heap)
{
    enter(heap);
}

void multi_heap_internal_unlock(multi_heap_handle_t heap)
{
    leave(heap);
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

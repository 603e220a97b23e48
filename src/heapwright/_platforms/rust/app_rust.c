/* app_rust.c: the functions of app_heap that GlobalAlloc needs. They take no lock: app_rust.rs does. */
#include "app_heap.h"

#include <string.h>

struct app_heap *app_rust_init(unsigned char *arena, size_t bytes)
{
    const size_t skipped = (size_t)(-(uintptr_t)arena & (APP_ARENA_ALIGNMENT - 1u));
    return bytes > skipped ? app_init(arena + skipped, bytes - skipped) : NULL;
}

void *app_rust_alloc(struct app_heap *heap, size_t alignment, size_t size)
{
    return alignment <= APP_ALIGNMENT ? app_malloc(heap, size) : app_aligned_alloc(heap, alignment, size);
}

void *app_rust_realloc(struct app_heap *heap, void *pointer, size_t alignment, size_t had, size_t size)
{
    if (alignment <= APP_ALIGNMENT) {
        return app_realloc(heap, pointer, size);
    }
    void *memory = app_aligned_alloc(heap, alignment, size);
    if (memory != NULL) {
        memcpy(memory, pointer, had < size ? had : size);
        app_free(heap, pointer);
    }
    return memory;
}

void app_rust_statistics(struct app_heap *heap, struct app_statistics *statistics)
{
    *statistics = app_statistics(heap);
}

/* app_trace_esp_idf.c: records the calls of ESP-IDF's heaps: malloc() and its family, heap_caps_malloc() and its kin.
 *
 * Linked with -Wl,--wrap=heap_caps_malloc_base,--wrap=heap_caps_calloc_base,--wrap=heap_caps_realloc_base,
 * --wrap=heap_caps_aligned_alloc_base,--wrap=heap_caps_free. ESP-IDF's own hooks (CONFIG_HEAP_USE_HOOKS) would do
 * without, but report a free when another core may have the memory already.
 */
#include <stddef.h>
#include <stdint.h>

#include "esp_attr.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

static portMUX_TYPE trace_lock = portMUX_INITIALIZER_UNLOCKED;

#define APP_TRACE_ENTER() portENTER_CRITICAL_SAFE(&trace_lock)
#define APP_TRACE_LEAVE() portEXIT_CRITICAL_SAFE(&trace_lock)

#ifndef APP_TRACE_TICKS
#define APP_TRACE_TICKS() ((uint32_t)esp_timer_get_time())
#define APP_TRACE_TICKS_PER_SECOND 1000000u
#endif
#define APP_TRACE_THREAD() ((uint32_t)(uintptr_t)xTaskGetCurrentTaskHandle())

#include "app_trace_ring.h"

void *__real_heap_caps_malloc_base(size_t size, uint32_t caps);
void *__real_heap_caps_calloc_base(size_t count, size_t size, uint32_t caps);
void *__real_heap_caps_realloc_base(void *pointer, size_t size, uint32_t caps);
void *__real_heap_caps_aligned_alloc_base(size_t alignment, size_t size, uint32_t caps);
void __real_heap_caps_free(void *pointer);

void *__wrap_heap_caps_malloc_base(size_t size, uint32_t caps);
void *__wrap_heap_caps_calloc_base(size_t count, size_t size, uint32_t caps);
void *__wrap_heap_caps_realloc_base(void *pointer, size_t size, uint32_t caps);
void *__wrap_heap_caps_aligned_alloc_base(size_t alignment, size_t size, uint32_t caps);
void __wrap_heap_caps_free(void *pointer);

/* With external RAM malloc() asks for one kind of memory first, and then for any: the first is no failure. */
#if CONFIG_SPIRAM_USE_MALLOC
#include "esp_heap_caps.h"
#define IS_FIRST(caps) (((caps) & MALLOC_CAP_DEFAULT) != 0 && ((caps) & (MALLOC_CAP_INTERNAL | MALLOC_CAP_SPIRAM)) != 0)
#else
#define IS_FIRST(caps) 0
#endif

IRAM_ATTR void *__wrap_heap_caps_malloc_base(size_t size, uint32_t caps)
{
    void *pointer = __real_heap_caps_malloc_base(size, caps);
    if (pointer != NULL || !IS_FIRST(caps)) {
        app_trace_allocated(pointer, size);
    }
    return pointer;
}

IRAM_ATTR void *__wrap_heap_caps_calloc_base(size_t count, size_t size, uint32_t caps)
{
    void *pointer = __real_heap_caps_calloc_base(count, size, caps);
    if (pointer != NULL || !IS_FIRST(caps)) {
        app_trace_cleared(pointer, count * size);
    }
    return pointer;
}

IRAM_ATTR void *__wrap_heap_caps_realloc_base(void *pointer, size_t size, uint32_t caps)
{
    app_trace_resizing(pointer);
    void *moved = __real_heap_caps_realloc_base(pointer, size, caps);
    app_trace_resized(pointer, moved, size);
    return moved;
}

IRAM_ATTR void *__wrap_heap_caps_aligned_alloc_base(size_t alignment, size_t size, uint32_t caps)
{
    void *pointer = __real_heap_caps_aligned_alloc_base(alignment, size, caps);
    if (pointer != NULL || !IS_FIRST(caps)) {
        app_trace_allocated(pointer, size);
    }
    return pointer;
}

IRAM_ATTR void __wrap_heap_caps_free(void *pointer)
{
    app_trace_freed(pointer);
    __real_heap_caps_free(pointer);
}

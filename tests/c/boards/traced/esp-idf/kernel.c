/* A stub of ESP-IDF's heaps and kernel. A realloc is in the middle of it interrupted by another task, which gets
 * the memory that it frees. */
#include <assert.h>
#include <stdlib.h>

#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "heap_caps.h"

static int64_t now;
static _Alignas(16) char memory[3][64];

void interrupted(void *freed);

void enter_critical(portMUX_TYPE *lock)
{
    assert(lock->owner++ == 0);
}

void exit_critical(portMUX_TYPE *lock)
{
    assert(--lock->owner == 0);
}

int64_t esp_timer_get_time(void)
{
    return now += 3000; /* lines have times in units of 512 us */
}

TaskHandle_t xTaskGetCurrentTaskHandle(void)
{
    return NULL;
}

void *heap_caps_malloc_base(size_t size, uint32_t caps)
{
    return size > sizeof memory[0] ? NULL : memory[caps];
}

void *heap_caps_calloc_base(size_t n, size_t size, uint32_t caps)
{
    return heap_caps_malloc_base(n * size, caps);
}

void *heap_caps_realloc_base(void *ptr, size_t size, uint32_t caps)
{
    interrupted(ptr);
    return size > sizeof memory[0] ? NULL : memory[caps];
}

void *heap_caps_aligned_alloc_base(size_t alignment, size_t size, uint32_t caps)
{
    (void)alignment;
    return heap_caps_malloc_base(size, caps);
}

void heap_caps_free(void *ptr)
{
    (void)ptr;
}

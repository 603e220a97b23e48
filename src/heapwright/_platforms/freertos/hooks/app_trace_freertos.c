/* app_trace_freertos.c: records the calls of FreeRTOS's heap: any of heap_1.c to heap_5.c, or your own.
 *
 * Linked with -Wl,--wrap=pvPortMalloc,--wrap=pvPortCalloc,--wrap=vPortFree.
 */
#define MPU_WRAPPERS_INCLUDED_FROM_API_FILE
#include "FreeRTOS.h"
#include "task.h"
#undef MPU_WRAPPERS_INCLUDED_FROM_API_FILE

#define APP_TRACE_ENTER() const UBaseType_t trace_state = taskENTER_CRITICAL_FROM_ISR()
#define APP_TRACE_LEAVE() taskEXIT_CRITICAL_FROM_ISR(trace_state)

#ifndef APP_TRACE_TICKS
#define APP_TRACE_TICKS() ((uint32_t)xTaskGetTickCountFromISR())
#define APP_TRACE_TICKS_PER_SECOND configTICK_RATE_HZ
#endif

/* Of heap_3.c and heap_5.c, which do not look at it, give the size, or 0. */
#if !defined(APP_TRACE_ARENA) && defined(configTOTAL_HEAP_SIZE)
#define APP_TRACE_ARENA ((uint32_t)(configTOTAL_HEAP_SIZE))
#endif

#if INCLUDE_xTaskGetCurrentTaskHandle == 1 || configUSE_MUTEXES == 1
#define APP_TRACE_THREAD() ((uint32_t)(uintptr_t)xTaskGetCurrentTaskHandle())
#endif

#include "app_trace_ring.h"

void *__real_pvPortMalloc(size_t size);
void *__real_pvPortCalloc(size_t count, size_t size);
void __real_vPortFree(void *pointer);

void *__wrap_pvPortMalloc(size_t size);
void *__wrap_pvPortCalloc(size_t count, size_t size);
void __wrap_vPortFree(void *pointer);

void *__wrap_pvPortMalloc(size_t size)
{
    void *pointer = __real_pvPortMalloc(size);
    app_trace_allocated(pointer, size);
    return pointer;
}

void *__wrap_pvPortCalloc(size_t count, size_t size)
{
    void *pointer = __real_pvPortCalloc(count, size);
    app_trace_cleared(pointer, count * size);
    return pointer;
}

void __wrap_vPortFree(void *pointer)
{
    app_trace_freed(pointer);
    __real_vPortFree(pointer);
}

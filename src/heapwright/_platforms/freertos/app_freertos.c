/* app_freertos.c: app_heap as the heap of the FreeRTOS kernel, in the place of heap_1.c to heap_5.c.
 *
 * It includes app_heap.c, so that the kernel's CMake, which takes one file (FREERTOS_HEAP), has all. As in heap_4.c
 * the scheduler is suspended during each call, and interrupts must not make any; with APP_FREERTOS_CRITICAL 1 a call of
 * pvPortMalloc or vPortFree is a critical section instead, which is shorter.
 */
#include "app_heap.c"

#include <string.h>

/* As in the kernel's own heaps: the functions here are not those that the MPU's wrappers stand for. */
#define MPU_WRAPPERS_INCLUDED_FROM_API_FILE
#include "FreeRTOS.h"
#include "task.h"
#undef MPU_WRAPPERS_INCLUDED_FROM_API_FILE

#if configSUPPORT_DYNAMIC_ALLOCATION == 0
#error "configSUPPORT_DYNAMIC_ALLOCATION is 0: leave this file out"
#endif

#ifndef APP_FREERTOS_CRITICAL
#define APP_FREERTOS_CRITICAL 0
#endif

#ifndef configHEAP_CLEAR_MEMORY_ON_FREE
#define configHEAP_CLEAR_MEMORY_ON_FREE 0
#endif

_Static_assert(APP_ALIGNMENT >= portBYTE_ALIGNMENT,
               "the port wants objects aligned to more: take a recipe with that align");

#if configAPPLICATION_ALLOCATED_HEAP == 1
extern uint8_t ucHeap[configTOTAL_HEAP_SIZE];
#else
PRIVILEGED_DATA static _Alignas(APP_ARENA_ALIGNMENT) uint8_t ucHeap[configTOTAL_HEAP_SIZE];
#endif

PRIVILEGED_DATA static struct app_heap *heap;

/* Cortex-M's ports mask interrupts, and put back what was masked, in a few instructions, in a task as in an interrupt;
 * taskENTER_CRITICAL also counts how deep it is. Other ports may have nothing of the kind behind these names. */
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' && portHAS_NESTED_INTERRUPTS
#define APP_FREERTOS_MASKS 1
#else
#define APP_FREERTOS_MASKS 0
#endif

/* Around each call; returns what unlock() takes. A critical section masks the interrupts that may call the kernel
 * during the call: for heaps whose calls are bounded. */
static inline UBaseType_t lock(void)
{
#if APP_FREERTOS_CRITICAL && APP_FREERTOS_MASKS
    return portSET_INTERRUPT_MASK_FROM_ISR();
#elif APP_FREERTOS_CRITICAL
    taskENTER_CRITICAL();
    return 0;
#else
    vTaskSuspendAll();
    return 0;
#endif
}

static inline void unlock(UBaseType_t locked)
{
    (void)locked;
#if APP_FREERTOS_CRITICAL && APP_FREERTOS_MASKS
    portCLEAR_INTERRUPT_MASK_FROM_ISR(locked);
#elif APP_FREERTOS_CRITICAL
    taskEXIT_CRITICAL();
#else
    (void)xTaskResumeAll();
#endif
}

/* The heap's function becomes part of the kernel's, with what it does as a rule. */
#if defined(__GNUC__)
#define APP_FREERTOS_WHOLE __attribute__((__flatten__))
#define APP_FREERTOS_RARE __attribute__((__noinline__))
#else
#define APP_FREERTOS_WHOLE
#define APP_FREERTOS_RARE
#endif

/* The heap as the first call makes it; NULL where configTOTAL_HEAP_SIZE is too small for its own data. */
APP_FREERTOS_RARE static struct app_heap *make_heap(void)
{
    const size_t skipped = (size_t)(-(uintptr_t)ucHeap & (APP_ARENA_ALIGNMENT - 1u));
    size_t bytes = configTOTAL_HEAP_SIZE - skipped;
    if (bytes > APP_REACH) {
        bytes = APP_REACH;
    }
    heap = app_init(ucHeap + skipped, bytes);
    configASSERT(heap != NULL);
    return heap;
}

/* What the heap counted; all 0 before the first call. */
static struct app_counters counted(void)
{
    const struct app_counters nothing = {0, 0, 0, 0, 0};
    return heap ? app_counters(heap) : nothing;
}

/* For app_next_block() and app_check(), with the scheduler suspended. NULL before the first call. */
struct app_heap *app_freertos_heap(void)
{
    return heap;
}

APP_FREERTOS_WHOLE void *pvPortMalloc(size_t xWantedSize)
{
    void *memory = NULL;
    const UBaseType_t locked = lock();
    {
        struct app_heap *const made = heap != NULL ? heap : make_heap();
        if (made != NULL && xWantedSize != 0) {
            memory = app_malloc(made, xWantedSize);
        }
        traceMALLOC(memory, xWantedSize);
    }
    unlock(locked);
#if configUSE_MALLOC_FAILED_HOOK == 1
    if (memory == NULL) {
        vApplicationMallocFailedHook();
    }
#endif
    return memory;
}

void *pvPortCalloc(size_t xNum, size_t xSize)
{
    if (xSize != 0 && xNum > SIZE_MAX / xSize) {
        return NULL;
    }
    void *memory = pvPortMalloc(xNum * xSize);
    return memory ? memset(memory, 0, xNum * xSize) : NULL;
}

APP_FREERTOS_WHOLE void vPortFree(void *pv)
{
    if (pv == NULL) {
        return;
    }
    configASSERT(heap != NULL && (size_t)((uintptr_t)pv - (uintptr_t)ucHeap) < configTOTAL_HEAP_SIZE);
    const UBaseType_t locked = lock();
    {
        const size_t bytes = app_block_bytes(heap, pv); /* left out where neither of what follows asks for it */
#ifdef APP_MISUSED
        configASSERT(bytes != 0); /* a recipe with checks returns 0 for an invalid pointer */
#endif
#if configHEAP_CLEAR_MEMORY_ON_FREE == 1
        if (bytes != 0) {
            (void)memset(pv, 0, app_usable_size(heap, pv));
        }
#endif
        app_free(heap, pv);
        traceFREE(pv, bytes);
        (void)bytes;
    }
    unlock(locked);
}

size_t xPortGetFreeHeapSize(void)
{
    return counted().free;
}

size_t xPortGetMinimumEverFreeHeapSize(void)
{
    return counted().least_free;
}

void xPortResetHeapMinimumEverFreeHeapSize(void)
{
    vTaskSuspendAll();
    if (heap != NULL) {
        app_reset_least_free(heap);
    }
    (void)xTaskResumeAll();
}

void vPortInitialiseBlocks(void)
{
    /* The first call makes the heap. */
}

/* Adds the free blocks of a walk: their number, the smallest, their bytes. */
static size_t walk_free_blocks(HeapStats_t *stats)
{
    struct app_block block = {0, 0, 0, 0, 0};
    size_t bytes = 0;
    while (app_next_block(heap, &block)) {
        if (block.state == APP_BLOCK_USED) {
            continue;
        }
        bytes += block.size;
        stats->xNumberOfFreeBlocks++;
        if (block.size < stats->xSizeOfSmallestFreeBlockInBytes) {
            stats->xSizeOfSmallestFreeBlockInBytes = block.size;
        }
        if (block.size > stats->xSizeOfLargestFreeBlockInBytes) {
            stats->xSizeOfLargestFreeBlockInBytes = block.size;
        }
    }
    return bytes;
}

/* Sizes are those of whole blocks, header included, as in heap_4.c. Memory that no block has covered yet counts as one
 * block more, if it is large enough for one. O(blocks). */
void vPortGetHeapStats(HeapStats_t *pxHeapStats)
{
    HeapStats_t stats = {0, 0, (size_t)-1, 0, 0, 0, 0};
    vTaskSuspendAll();
    {
        const struct app_counters counters = counted();
        stats.xAvailableHeapSpaceInBytes = counters.free;
        stats.xMinimumEverFreeBytesRemaining = counters.least_free;
        stats.xNumberOfSuccessfulAllocations = counters.mallocs;
        stats.xNumberOfSuccessfulFrees = counters.frees;
        const size_t fresh = heap ? counters.free - walk_free_blocks(&stats) : 0;
        if (fresh >= 2u * APP_ALIGNMENT) {
            stats.xNumberOfFreeBlocks++;
            if (fresh < stats.xSizeOfSmallestFreeBlockInBytes) {
                stats.xSizeOfSmallestFreeBlockInBytes = fresh;
            }
            if (fresh > stats.xSizeOfLargestFreeBlockInBytes) {
                stats.xSizeOfLargestFreeBlockInBytes = fresh;
            }
        }
    }
    (void)xTaskResumeAll();
    *pxHeapStats = stats;
}

void vPortHeapResetState(void)
{
    heap = NULL;
}

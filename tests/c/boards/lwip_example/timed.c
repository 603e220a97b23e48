/* timed.c: times the heap's calls of the example application with TIMER0 of the AN385, which counts down at 25 MHz; a
 * linker's --wrap puts it around pvPortMalloc and vPortFree. Interrupts are masked meanwhile, so that no other task's
 * time is counted. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "FreeRTOS.h"
#include "task.h"

#include "board.h"

#define TIMER ((volatile uint32_t *)0x40000000u)
enum { CONTROL, VALUE, RELOAD, CALIBRATIONS = 64 };

void *__real_pvPortMalloc(size_t size);
void __real_vPortFree(void *pointer);
void *__wrap_pvPortMalloc(size_t size);
void __wrap_vPortFree(void *pointer);

static uint64_t malloc_ticks, free_ticks;
static uint32_t mallocs, frees;

__attribute__((noinline)) static void *nothing(size_t size)
{
    __asm__ volatile("");
    return (void *)size;
}

static void start(void)
{
    TIMER[RELOAD] = UINT32_MAX;
    TIMER[VALUE] = UINT32_MAX;
    TIMER[CONTROL] = 1;
    __real_vPortFree(__real_pvPortMalloc(1)); /* makes the heap */
}

void *__wrap_pvPortMalloc(size_t size)
{
    if (TIMER[CONTROL] == 0) {
        start();
    }
    const UBaseType_t masked = portSET_INTERRUPT_MASK_FROM_ISR();
    const uint32_t before = TIMER[VALUE];
    void *memory = __real_pvPortMalloc(size);
    malloc_ticks += before - TIMER[VALUE];
    mallocs++;
    portCLEAR_INTERRUPT_MASK_FROM_ISR(masked);
    return memory;
}

void __wrap_vPortFree(void *pointer)
{
    if (pointer == NULL) {
        return;
    }
    const UBaseType_t masked = portSET_INTERRUPT_MASK_FROM_ISR();
    const uint32_t before = TIMER[VALUE];
    __real_vPortFree(pointer);
    free_ticks += before - TIMER[VALUE];
    frees++;
    portCLEAR_INTERRUPT_MASK_FROM_ISR(masked);
}

void print_timed(void)
{
    uint32_t empty = 0;
    for (unsigned i = 0; i < CALIBRATIONS; i++) {
        const uint32_t before = TIMER[VALUE];
        nothing(i);
        empty += before - TIMER[VALUE];
    }
    const double each = (double)empty / CALIBRATIONS;
    printf("ticks: malloc %u free %u in thousandths\n", (unsigned)(1000 * ((double)malloc_ticks / mallocs - each)),
           (unsigned)(1000 * ((double)free_ticks / frees - each)));
}

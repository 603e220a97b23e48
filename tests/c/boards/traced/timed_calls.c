/* timed_calls.c: times the heap's calls of a FreeRTOS program with a timer of the board; a linker's --wrap puts it
 * around pvPortMalloc and vPortFree. TIMER0 of the AN385 counts down at 25 MHz. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "timed_calls.h"

#define TIMER ((volatile uint32_t *)0x40000000u)
enum { CONTROL, VALUE, RELOAD, CALIBRATIONS = 64 };

void *__real_pvPortMalloc(size_t size);
void __real_vPortFree(void *pointer);

static uint32_t malloc_ticks, mallocs, free_ticks, frees;

__attribute__((noinline)) static void *nothing(size_t size)
{
    __asm__ volatile("");
    return (void *)size;
}

static void start(void)
{
    TIMER[RELOAD] = 0xffffffffu;
    TIMER[VALUE] = 0xffffffffu;
    TIMER[CONTROL] = 1;
    __real_vPortFree(__real_pvPortMalloc(1)); /* makes the heap */
}

void *__wrap_pvPortMalloc(size_t size)
{
    if (TIMER[CONTROL] == 0) {
        start();
    }
    const uint32_t before = TIMER[VALUE];
    void *memory = __real_pvPortMalloc(size);
    malloc_ticks += before - TIMER[VALUE];
    mallocs++;
    return memory;
}

void __wrap_vPortFree(void *pointer)
{
    if (pointer == NULL) {
        return;
    }
    const uint32_t before = TIMER[VALUE];
    __real_vPortFree(pointer);
    free_ticks += before - TIMER[VALUE];
    frees++;
}

void print_timed(void)
{
    uint32_t empty = 0;
    for (unsigned i = 0; i < CALIBRATIONS; i++) {
        const uint32_t before = TIMER[VALUE];
        nothing(i);
        empty += before - TIMER[VALUE];
    }
    printf("ticks: malloc %u of %u, free %u of %u, empty %u of %u\n", (unsigned)malloc_ticks, (unsigned)mallocs,
           (unsigned)free_ticks, (unsigned)frees, (unsigned)empty, (unsigned)CALIBRATIONS);
}

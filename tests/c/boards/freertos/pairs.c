/* A program that times the kernel's heap in a task: pairs of a free and a malloc, sizes and lifetimes drawn, by a timer
 * of the board that the kernel does not use. It prints the ticks of all pairs, and of the loop without its calls. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "FreeRTOS.h"
#include "task.h"

enum { LIVE = 48, PAIRS = 4000, WARM = 500 };

#define TIMER_CTRL (*(volatile uint32_t *)0x40000000)
#define TIMER_VALUE (*(volatile uint32_t *)0x40000004)

typedef void *allocate(size_t size);
typedef void release(void *pointer);

static void *objects[LIVE];

void vApplicationMallocFailedHook(void)
{
    puts("no memory");
    exit(1);
}

__attribute__((noinline)) static void *no_malloc(size_t size)
{
    static char some[1600];
    __asm__ volatile("" ::"r"(size));
    return some;
}

__attribute__((noinline)) static void no_free(void *pointer)
{
    __asm__ volatile("" ::"r"(pointer));
}

static uint32_t drawn(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Frees an object and makes another; through pointers that the compiler does not see through. */
static void run(allocate *volatile *make, release *volatile *end, unsigned pairs)
{
    uint32_t state = 1;
    for (unsigned i = 0; i < pairs; i++) {
        const uint32_t number = drawn(&state);
        const size_t size = number % 8u ? 16u + number / 8u % 112u : 200u + number / 8u % 1300u;
        void **object = &objects[drawn(&state) % LIVE];
        (*end)(*object);
        *object = (*make)(size);
    }
}

static void measure(void *unused)
{
    static allocate *volatile make = pvPortMalloc, *volatile made_none = no_malloc;
    static release *volatile end = vPortFree, *volatile ended_none = no_free;
    (void)unused;
    for (unsigned i = 0; i < LIVE; i++) {
        objects[i] = pvPortMalloc(40);
    }
    run(&make, &end, WARM);
    TIMER_VALUE = UINT32_MAX;
    TIMER_CTRL = 1;
    const uint32_t begin = TIMER_VALUE;
    run(&make, &end, PAIRS);
    const uint32_t between = TIMER_VALUE;
    run(&made_none, &ended_none, PAIRS);
    const uint32_t last = TIMER_VALUE;
    printf("%u pairs in %u ticks, %u without\n", PAIRS, (unsigned)(begin - between), (unsigned)(between - last));
    exit(0);
}

int main(void)
{
    xTaskCreate(measure, "measure", 4 * configMINIMAL_STACK_SIZE, NULL, 2, NULL);
    vTaskStartScheduler();
    return 1;
}

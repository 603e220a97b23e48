/* board.c: runs lwIP's example application in a task until the console sends a byte, then prints what its heap refused,
 * the most bytes that it ever had taken, and, where calls are recorded, what its ring has. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "FreeRTOS.h"
#include "task.h"

#include "../traced/drain.h"
#include "board.h"

/* UART0 of the AN385, in words. */
#define UART ((volatile uint32_t *)0x40004000u)
enum { DATA, STATE, CONTROL, DIVISOR = 4, RECEIVED = 1u << 1, BOTH_WAYS = 3, FASTEST = 16, STACK_WORDS = 1024 };

int lwip_example_main(void);
void *__real_sys_thread_new(const char *name, void (*run)(void *), void *argument, int stack, int priority);
void *__wrap_sys_thread_new(const char *name, void (*run)(void *), void *argument, int stack, int priority);

static unsigned refused;

void vApplicationMallocFailedHook(void)
{
    refused++;
}

void vApplicationIdleHook(void)
{
    __asm__ volatile("wfi");
}

/* The generator of characters asks for a stack of 0 bytes and the priority 254, "really low". */
void *__wrap_sys_thread_new(const char *name, void (*run)(void *), void *argument, int stack, int priority)
{
    const int usual = 2048, low = 1;
    return __real_sys_thread_new(name, run, argument, stack != 0 ? stack : usual,
                                 priority < configMAX_PRIORITIES ? priority : low);
}

void board_ready(void)
{
    if (UART[CONTROL] == 0) {
        UART[DIVISOR] = FASTEST;
        UART[CONTROL] = BOTH_WAYS;
        UART[DATA] = 'r';
    }
}

int board_over(void)
{
    return (UART[STATE] & RECEIVED) != 0;
}

static void run(void *unused)
{
    (void)unused;
    (void)lwip_example_main();
    vTaskSuspendAll();
    HeapStats_t told;
    vPortGetHeapStats(&told);
    printf("mallocs %u frees %u refused %u most %u\n", (unsigned)told.xNumberOfSuccessfulAllocations,
           (unsigned)told.xNumberOfSuccessfulFrees, refused,
           (unsigned)(configTOTAL_HEAP_SIZE - told.xMinimumEverFreeBytesRemaining));
    print_timed();
    drain();
    exit(0);
}

int main(void)
{
    xTaskCreate(run, "example", STACK_WORDS, NULL, 2, NULL);
    vTaskStartScheduler();
    return 1;
}

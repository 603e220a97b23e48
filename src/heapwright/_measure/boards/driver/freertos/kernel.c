/* kernel.c: runs the driver, whose entry is hw_replay() here, in a task of the FreeRTOS kernel. */
#include "FreeRTOS.h"
#include "task.h"

enum { STACK_WORDS = 1024 };

void hw_replay(void);
void hw_exit(uint32_t status);

/* In place of the port's: the driver reads SysTick as a counter, and no tick interrupts a call that is counted. */
void vPortSetupTimerInterrupt(void)
{
}

static void run(void *unused)
{
    (void)unused;
    hw_replay();
}

void hw_main(void)
{
    static StackType_t stack[STACK_WORDS];
    static StaticTask_t task;
    (void)xTaskCreateStatic(run, "driver", STACK_WORDS, NULL, 1, stack, &task);
    vTaskStartScheduler();
    hw_exit(4);
}

/* drained.c: hands out the calls that the ring has while the board is idle, so that a run may have any length, and
 * before the board takes more packets where it is never idle. A line is one semihosting call, which no other task's
 * output comes between; a linker's --wrap puts both before the functions of board.c and lan9118.c.
 */
#include <stdint.h>

#include "FreeRTOS.h"
#include "task.h"

#include "app_trace.h"

enum { WRITE0 = 4, CALLS = 32 };

void __real_vApplicationIdleHook(void);
void __wrap_vApplicationIdleHook(void);
void __real_default_netif_poll(void);
void __wrap_default_netif_poll(void);

static void write_line(const char *text)
{
    register uint32_t operation __asm__("r0") = WRITE0;
    register const char *argument __asm__("r1") = text;
    __asm__ volatile("bkpt 0xab" : "+r"(operation) : "r"(argument) : "memory");
}

/* One task at a time makes a line. */
static uint32_t drain_some(void)
{
    vTaskSuspendAll();
    const uint32_t left = app_trace_drain_some(write_line, CALLS);
    (void)xTaskResumeAll();
    return left;
}

void __wrap_vApplicationIdleHook(void)
{
    if (drain_some() == 0) {
        __real_vApplicationIdleHook();
    }
}

void __wrap_default_netif_poll(void)
{
    if (app_trace_ring.end - app_trace_ring.begin > APP_TRACE_RECORDS / 4) {
        while (drain_some() != 0) {
        }
    }
    __real_default_netif_poll();
}

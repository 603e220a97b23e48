/* drained.c: hands out the calls that the ring has while the board is idle, so that a run may have any length. A line
 * is one semihosting call, which no other task's output comes between; a linker's --wrap puts it before board.c's idle
 * hook.
 */
#include <stdint.h>

#include "app_trace.h"

enum { WRITE0 = 4, CALLS = 32 };

void __real_vApplicationIdleHook(void);
void __wrap_vApplicationIdleHook(void);

static void write_line(const char *text)
{
    register uint32_t operation __asm__("r0") = WRITE0;
    register const char *argument __asm__("r1") = text;
    __asm__ volatile("bkpt 0xab" : "+r"(operation) : "r"(argument) : "memory");
}

void __wrap_vApplicationIdleHook(void)
{
    if (app_trace_drain_some(write_line, CALLS) == 0) {
        __real_vApplicationIdleHook();
    }
}

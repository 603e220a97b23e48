/* mps2_start.c: vectors of a Cortex-M, and what newlib needs of a board: characters out and the way out, by
 * semihosting.
 */
#include <stdint.h>
#include <stdlib.h>

enum { SYS_WRITEC = 0x03, SYS_EXIT_EXTENDED = 0x20, FAULT_STATUS = 99 };

extern unsigned char __stack[];
int main(void);

static void semihosting(uint32_t operation, const void *arguments)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt #0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void _exit(int status)
{
    const uint32_t arguments[2] = {0x20026u /* the application's own end */, (uint32_t)status};
    for (;;) {
        semihosting(SYS_EXIT_EXTENDED, arguments);
    }
}

int _write(int file, const char *bytes, int count)
{
    (void)file;
    for (int i = 0; i < count; i++) {
        semihosting(SYS_WRITEC, bytes + i);
    }
    return count;
}

/* Newlib's exit and start call these. */
void _init(void)
{
}

void _fini(void)
{
}

static void reset(void)
{
    exit(main());
}

static void fault(void)
{
    _exit(FAULT_STATUS);
}

/* An RTOS's port has handlers of its own for three of them. */
__attribute__((weak, alias("fault"))) void SVC_Handler(void);
__attribute__((weak, alias("fault"))) void PendSV_Handler(void);
__attribute__((weak, alias("fault"))) void SysTick_Handler(void);

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    __stack,
    (const void *)reset,
    (const void *)fault,
    (const void *)fault,
    (const void *)fault,
    (const void *)fault,
    (const void *)fault,
    NULL,
    NULL,
    NULL,
    NULL,
    (const void *)SVC_Handler,
    (const void *)fault,
    NULL,
    (const void *)PendSV_Handler,
    (const void *)SysTick_Handler,
};

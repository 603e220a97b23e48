/* start_arm.c: vectors, the measured call, stubs, and the way out on Cortex-M. */
#include <stdint.h>

#include "reset.h"

extern unsigned char hw_stack_top[];
uint32_t hw_ticks, hw_stack_pointer;

/* A kernel's, where there is one. */
__attribute__((weak, alias("hw_fault"))) void hw_supervisor_call(void);
__attribute__((weak, alias("hw_fault"))) void hw_pending_call(void);
__attribute__((weak, alias("hw_fault"))) void hw_tick(void);

__attribute__((section(".vectors"), used)) const void *const hw_vectors[16] = {
    hw_stack_top,
    (const void *)hw_reset,
    (const void *)hw_fault,
    (const void *)hw_fault,
    (const void *)hw_fault,
    (const void *)hw_fault,
    (const void *)hw_fault,
    [11] = (const void *)hw_supervisor_call,
    [14] = (const void *)hw_pending_call,
    [15] = (const void *)hw_tick,
};

/* SysTick counts down from 2^24 - 1 at the processor's clock. */
void hw_start_counter(void)
{
    volatile uint32_t *systick = (volatile uint32_t *)0xe000e010u;
    systick[1] = 0xffffffu;
    systick[2] = 0;
    systick[0] = 5;
}

/* hw_call(function, a, b, c): hw_call_begin is a block of its own, the call alone. */
__asm__(".syntax unified\n.thumb\n.text\n"
        ".balign 4\n.global hw_call\n.type hw_call, %function\n.thumb_func\nhw_call:\n"
        "push {r4-r6, lr}\n"
        "ldr r4, =hw_stack_pointer\n"
        "mov r5, sp\n"
        "str r5, [r4]\n"
        "mov r4, r0\n"
        "mov r0, r1\n"
        "mov r1, r2\n"
        "mov r2, r3\n"
        "ldr r5, =0xe000e018\n"
        "ldr r6, [r5]\n"
        "b hw_call_begin\n"
        ".global hw_call_begin\n.type hw_call_begin, %function\n.thumb_func\nhw_call_begin:\n"
        "blx r4\n"
        ".global hw_call_end\n.type hw_call_end, %function\n.thumb_func\nhw_call_end:\n"
        "ldr r1, [r5]\n"
        "subs r6, r6, r1\n"
        "lsls r6, r6, #8\n"
        "lsrs r6, r6, #8\n"
        "ldr r1, =hw_ticks\n"
        "str r6, [r1]\n"
        "pop {r4-r6, pc}\n"
        ".pool\n");

__asm__(".balign 4\n.global hw_stub_1\n.type hw_stub_1, %function\n.thumb_func\nhw_stub_1:\n"
        "bx lr\n"
        ".global hw_stub_10\n.type hw_stub_10, %function\n.thumb_func\nhw_stub_10:\n"
        "nop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nbx lr\n");

/* hw_stub_if(scratch): an IT block of stores just before the end of a page of 1 KB, where emulators end a translated
 * block. Unicorn 2.1.4 skips instructions behind it when it watches memory. 15 instructions, 14 where there are no IT
 * blocks; 0x5a in either case. */
__asm__(".section .stub, \"ax\"\n.balign 1024\n.space 1006\n"
        ".global hw_stub_if\n.type hw_stub_if, %function\n.thumb_func\nhw_stub_if:\n"
        "movs r1, #0x50\n"
        "movs r2, #7\n"
        "movs r3, #0\n"
        "cmp r1, r2\n"
#if __ARM_ARCH >= 7
        "itet hi\n"
        "strhi r1, [r0]\n"
        "strls r3, [r0]\n"
        "strhi r2, [r0, #4]\n"
        "adds r3, #1\n"
        "adds r3, #1\n"
        "adds r3, #1\n"
        "ldrd r1, r2, [r0]\n"
#else
        "str r1, [r0]\n"
        "str r2, [r0, #4]\n"
        "adds r3, #1\n"
        "adds r3, #1\n"
        "adds r3, #1\n"
        "ldr r1, [r0]\n"
        "ldr r2, [r0, #4]\n"
#endif
        "adds r1, r1, r2\n"
        "adds r0, r1, r3\n"
        "bx lr\n"
        ".text\n");

/* Semihosting: emulators that stop at hw_done() never come here. */
static uint32_t semihosting(uint32_t operation, const void *arguments)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

#include "semihosting.h"

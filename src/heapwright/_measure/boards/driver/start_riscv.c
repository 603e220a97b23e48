/* start_riscv.c: entry, the measured call, stubs, and the way out on RV32 in machine mode. */
#include <stdint.h>

#include "reset.h"

uint32_t hw_ticks, hw_stack_pointer;

__asm__(".option arch, +zicsr\n");

__asm__(".section .vectors, \"ax\"\n.balign 4\n.global hw_entry\n.type hw_entry, @function\nhw_entry:\n"
        ".option push\n.option norelax\n"
        "la gp, __global_pointer$\n"
        ".option pop\n"
        "la sp, hw_stack_top\n"
        "la t0, hw_fault\n"
        "csrw mtvec, t0\n"
        "j hw_reset\n"
        ".text\n");

/* minstret counts from reset. */
void hw_start_counter(void)
{
}

/* hw_call(function, a, b, c): hw_call_begin is a block of its own, the call alone. */
__asm__(".text\n.balign 4\n.global hw_call\n.type hw_call, @function\nhw_call:\n"
        "addi sp, sp, -16\n"
        "sw ra, 12(sp)\n"
        "sw s0, 8(sp)\n"
        "sw s1, 4(sp)\n"
        "la t0, hw_stack_pointer\n"
        "sw sp, 0(t0)\n"
        "mv s0, a0\n"
        "mv a0, a1\n"
        "mv a1, a2\n"
        "mv a2, a3\n"
        "csrr s1, minstret\n"
        "j hw_call_begin\n"
        ".global hw_call_begin\n.type hw_call_begin, @function\nhw_call_begin:\n"
        "jalr s0\n"
        ".global hw_call_end\n.type hw_call_end, @function\nhw_call_end:\n"
        "csrr t0, minstret\n"
        "sub t0, t0, s1\n"
        "slli t0, t0, 8\n"
        "srli t0, t0, 8\n"
        "la t1, hw_ticks\n"
        "sw t0, 0(t1)\n"
        "lw ra, 12(sp)\n"
        "lw s0, 8(sp)\n"
        "lw s1, 4(sp)\n"
        "addi sp, sp, 16\n"
        "ret\n");

__asm__(".balign 4\n.global hw_stub_1\n.type hw_stub_1, @function\nhw_stub_1:\n"
        "ret\n"
        ".global hw_stub_10\n.type hw_stub_10, @function\nhw_stub_10:\n"
        "nop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nret\n");

/* hw_stub_if(scratch): a taken and an untaken branch around stores. 11 instructions; 0x5a. */
__asm__(".balign 4\n.global hw_stub_if\n.type hw_stub_if, @function\nhw_stub_if:\n"
        "li t0, 0x50\n"
        "li t1, 0x0a\n"
        "sw t0, 0(a0)\n"
        "sw zero, 4(a0)\n"
        "bltu t0, t1, 1f\n"
        "sw t1, 4(a0)\n"
        "bgeu t0, t1, 1f\n"
        "sw zero, 0(a0)\n"
        "1: lw t0, 0(a0)\n"
        "lw t1, 4(a0)\n"
        "add a0, t0, t1\n"
        "ret\n");

/* Semihosting: emulators that stop at hw_done() never come here. */
static uint32_t semihosting(uint32_t operation, const void *arguments)
{
    register uint32_t a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = arguments;
    __asm__ volatile(".option push\n.option norvc\n.balign 16\n"
                     "slli zero, zero, 0x1f\nebreak\nsrai zero, zero, 7\n.option pop\n"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return a0;
}

#include "semihosting.h"

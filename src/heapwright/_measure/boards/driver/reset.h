/* reset.h: what happens before the driver runs, and after a fault of the processor. */
#ifndef HW_RESET_H
#define HW_RESET_H

#include <stdint.h>

extern uint32_t hw_data_load[], hw_data_start[], hw_data_end[], hw_bss_start[], hw_bss_end[];

void hw_main(void);
void hw_exit(uint32_t status);

__attribute__((noreturn, used)) void hw_reset(void)
{
    const uint32_t *from = hw_data_load;
    for (volatile uint32_t *to = hw_data_start; to < hw_data_end; to++) {
        *to = *from++;
    }
    for (volatile uint32_t *to = hw_bss_start; to < hw_bss_end; to++) {
        *to = 0;
    }
    hw_main();
    __builtin_unreachable();
}

__attribute__((aligned(4), used)) void hw_fault(void)
{
    for (;;) {
        hw_exit(3);
    }
}

#endif

/* counter.h: counts what an emulated core executes between two markers. Host only; read by cffi as it stands.
 *
 * The functions are hooks of the Unicorn emulator, which calls them through plain pointers: nothing of it is needed to
 * compile them. */
#ifndef HW_COUNTER_H
#define HW_COUNTER_H

#include <stdint.h>

/* What one measured call did. Cycles are 0 where the core's timing is not known. */
struct hw_call_counts {
    uint32_t instructions; /* from the function's first to its return; those that an IT block skips count, too */
    uint32_t loads;
    uint32_t stores;
    uint32_t arena_loads; /* of the above, inside the arena */
    uint32_t arena_stores;
    uint32_t stack_lowest; /* address of the lowest byte of the stack written; UINT32_MAX for none */
    uint32_t cycles_minimum;
    uint32_t cycles_nominal;
    uint32_t cycles_maximum;
};

/* What a block of straight code costs when it is executed once; decoded when it is first met. */
struct hw_code_block {
    uint32_t bytes; /* 0: not met yet */
    uint32_t instructions;
    uint32_t cycles_minimum;
    uint32_t cycles_nominal;
    uint32_t cycles_maximum;
};

/* Instruction sets and timings. */
enum hw_timing { HW_RISCV, HW_THUMB_UNTIMED, HW_THUMB_M3, HW_THUMB_M4 };

struct hw_counter {
    enum hw_timing timing;
    uint32_t begin; /* the block that calls, alone; counting starts behind it */
    uint32_t end;   /* where the call returns to */
    uint32_t arena;
    uint32_t arena_end;
    uint32_t stack; /* the lowest byte of the stack */
    uint32_t stack_end;
    const uint8_t *code; /* the image from `code_base`, `code_bytes` long */
    uint32_t code_base;
    uint32_t code_bytes;
    struct hw_code_block *blocks; /* one for every 2 bytes of code, all zero at first */
    struct hw_call_counts *calls; /* room for `room`; those beyond are counted in `count` alone */
    uint64_t room;
    uint64_t count;
    int counting;
    int outside;           /* a block lay outside the code: the counts are void */
    uint32_t previous_end; /* end of the last block; 0 where none was counted yet */
    struct hw_call_counts now;
};

/* The hook for blocks; O(1), and the length of a block that is new. */
void hw_counter_block(void *engine, uint64_t address, uint32_t size, void *counter);

/* The hook for loads and stores; `type` is 16 for a load, 17 for a store. O(1). */
void hw_counter_access(void *engine, int type, uint64_t address, int size, int64_t value, void *counter);

#endif

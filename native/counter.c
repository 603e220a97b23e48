/* counter.c: instructions, memory accesses, stack and cycles of single calls on an emulated core.
 *
 * Cycles follow the instruction timings of the Cortex-M3 (Arm DDI 0337, "Processor timing") and the Cortex-M4
 * (Arm DDI 0439, "Instruction set summary") at zero wait states: what the manuals leave open makes the interval.
 */
#include "counter.h"

enum { LOAD = 16 };

struct cycles {
    uint32_t minimum;
    uint32_t nominal;
    uint32_t maximum;
};

static const struct cycles PLAIN = {1, 1, 1};
static const struct cycles LOADING = {1, 2, 2}; /* 1 where it follows another load or store */
static const struct cycles STORING = {1, 2, 2}; /* 1 where the write buffer takes it */
static const struct cycles REFILL = {1, 2, 3};  /* of the pipeline, after a taken branch */
static const struct cycles DIVIDING = {2, 7, 12};

static uint32_t bits_set(uint32_t value)
{
    uint32_t bits = 0;
    for (; value; value &= value - 1u) {
        bits++;
    }
    return bits;
}

/* A transfer of several registers: one cycle and one for each. */
static struct cycles multiple(uint32_t registers)
{
    const struct cycles cycles = {1u + registers, 1u + registers, 1u + registers};
    return cycles;
}

static struct cycles thumb16(uint32_t code)
{
    const uint32_t group = code >> 12;
    if (code >> 11 == 0x9u) { /* load of a literal */
        return LOADING;
    }
    if (group == 5u) {
        return (code >> 9 & 7u) < 3u ? STORING : LOADING;
    }
    if (group >= 6u && group <= 9u) {
        return code & 0x800u ? LOADING : STORING;
    }
    if ((code & 0xf600u) == 0xb400u) { /* push and pop */
        return multiple(bits_set(code & 0x1ffu));
    }
    return group == 12u ? multiple(bits_set(code & 0xffu)) : PLAIN;
}

static struct cycles thumb_multiply(uint32_t first, uint32_t second, enum hw_timing timing)
{
    static const struct cycles accumulate = {2, 2, 2}, wide = {3, 4, 5}, wide_accumulate = {4, 5, 7};
    if ((first & 0xffd0u) == 0xfb90u) {
        return DIVIDING;
    }
    if (timing == HW_THUMB_M4) {
        return PLAIN;
    }
    if (first < 0xfb80u) {
        return second >> 12 == 15u ? PLAIN : accumulate;
    }
    return (first & 0x40u) ? wide_accumulate : wide;
}

static struct cycles thumb32(uint32_t first, uint32_t second, enum hw_timing timing)
{
    if ((first & 0xfe40u) == 0xe800u) {
        return multiple(bits_set(second));
    }
    if ((first & 0xfe40u) == 0xe840u) { /* two registers, exclusive, or a table branch */
        const int table = (first & 0xfff0u) == 0xe8d0u && (second & 0xffe0u) == 0xf000u;
        const int exclusive = (first & 0xff60u) == 0xe840u;
        return table || exclusive ? LOADING : multiple(2);
    }
    if ((first & 0xfe00u) == 0xf800u) {
        return first & 0x10u ? LOADING : STORING;
    }
    return (first & 0xff00u) == 0xfb00u ? thumb_multiply(first, second, timing) : PLAIN;
}

static uint32_t halfword(const struct hw_counter *c, uint32_t address)
{
    const uint32_t at = address - c->code_base;
    return at + 1u < c->code_bytes ? c->code[at] | (uint32_t)c->code[at + 1u] << 8 : 0;
}

static void decode(const struct hw_counter *c, struct hw_code_block *block, uint32_t address, uint32_t bytes)
{
    block->bytes = bytes;
    for (uint32_t at = address; at < address + bytes;) {
        const uint32_t first = halfword(c, at);
        const int wide = c->timing == HW_RISCV ? (first & 3u) == 3u : first >> 11 >= 0x1du;
        const struct cycles cycles = wide ? thumb32(first, halfword(c, at + 2u), c->timing) : thumb16(first);
        block->instructions++;
        block->cycles_minimum += cycles.minimum;
        block->cycles_nominal += cycles.nominal;
        block->cycles_maximum += cycles.maximum;
        at += wide ? 4u : 2u;
    }
}

static void finish(struct hw_counter *c)
{
    c->counting = 0;
    if (c->timing == HW_RISCV || c->timing == HW_THUMB_UNTIMED) {
        c->now.cycles_minimum = c->now.cycles_nominal = c->now.cycles_maximum = 0;
    }
    if (c->count < c->room) {
        c->calls[c->count] = c->now;
    }
    c->count++;
}

static void add_refill(struct hw_call_counts *now)
{
    now->cycles_minimum += REFILL.minimum;
    now->cycles_nominal += REFILL.nominal;
    now->cycles_maximum += REFILL.maximum;
}

void hw_counter_block(void *engine, uint64_t address, uint32_t size, void *counter)
{
    static const struct hw_call_counts nothing;
    struct hw_counter *c = counter;
    const uint32_t at = (uint32_t)address;
    (void)engine;
    if (at == c->begin) {
        c->counting = 1;
        c->previous_end = 0;
        c->now = nothing;
        c->now.stack_lowest = UINT32_MAX;
        return;
    }
    if (!c->counting) {
        return;
    }
    if (c->previous_end && c->previous_end != at) {
        add_refill(&c->now);
    }
    if (at == c->end) {
        finish(c);
        return;
    }
    if (at - c->code_base >= c->code_bytes) {
        c->outside = 1;
        return;
    }
    struct hw_code_block *block = &c->blocks[(at - c->code_base) / 2u];
    if (block->bytes != size) {
        static const struct hw_code_block unknown;
        *block = unknown;
        decode(c, block, at, size);
    }
    c->now.instructions += block->instructions;
    c->now.cycles_minimum += block->cycles_minimum;
    c->now.cycles_nominal += block->cycles_nominal;
    c->now.cycles_maximum += block->cycles_maximum;
    c->previous_end = at + size;
}

void hw_counter_access(void *engine, int type, uint64_t address, int size, int64_t value, void *counter)
{
    struct hw_counter *c = counter;
    const uint32_t at = (uint32_t)address;
    const uint32_t in_arena = at >= c->arena && at < c->arena_end;
    (void)engine;
    (void)size;
    (void)value;
    if (!c->counting) {
        return;
    }
    if (type == LOAD) {
        c->now.loads++;
        c->now.arena_loads += in_arena;
        return;
    }
    c->now.stores++;
    c->now.arena_stores += in_arena;
    if (at >= c->stack && at < c->stack_end && at < c->now.stack_lowest) {
        c->now.stack_lowest = at;
    }
}

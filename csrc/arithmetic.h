/* arithmetic.h: bits and bounds of numbers. */
#ifndef HW_ARITHMETIC_H
#define HW_ARITHMETIC_H

#include <stdint.h>

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
static inline uint32_t highest_bit(uint32_t x)
{
    return (uint32_t)__builtin_clz(x) ^ 31u; /* one instruction, which counts from this end */
}

static inline uint32_t lowest_bit(uint32_t x)
{
    return (uint32_t)__builtin_ctz(x);
}
#elif defined(__GNUC__) && __SIZEOF_INT__ == 4
static inline uint32_t highest_bit(uint32_t x)
{
    return 31u - (uint32_t)__builtin_clz(x);
}

static inline uint32_t lowest_bit(uint32_t x)
{
    return (uint32_t)__builtin_ctz(x);
}
#elif defined(__GNUC__) && __SIZEOF_LONG__ == 4
static inline uint32_t highest_bit(uint32_t x)
{
    return 31u - (uint32_t)__builtin_clzl(x);
}

static inline uint32_t lowest_bit(uint32_t x)
{
    return (uint32_t)__builtin_ctzl(x);
}
#else
static inline uint32_t highest_bit(uint32_t x)
{
    uint32_t bit = 0;
    for (; x > 1u; x >>= 1) {
        bit++;
    }
    return bit;
}

static inline uint32_t lowest_bit(uint32_t x)
{
    return highest_bit(x & (~x + 1u));
}
#endif

/* The smallest power of two that is at least x, 2 <= x <= 2^31. */
static inline uint32_t power_of_two_above(uint32_t x)
{
    return (uint32_t)2 << highest_bit(x - 1u);
}

static inline uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static inline uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

#endif

/* arithmetic.h: bits and bounds of numbers. */
#ifndef HW_ARITHMETIC_H
#define HW_ARITHMETIC_H

#include <stdint.h>

#if (defined(__arm__) && !defined(__ARM_FEATURE_CLZ)) || (defined(__riscv) && !defined(__riscv_zbb))
/* No instruction counts bits here: most numbers are below 4096, and one multiplication moves what is left of a single
 * bit to where five bits of it differ from all others (Leiserson, Prokop and Randall 1998). */
static inline uint32_t highest_bit(uint32_t x)
{
    static const unsigned char of_six_bits[64] = {
        0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
        5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5,
    };
    uint32_t bit = 0;
    for (; x >= 4096u; x >>= 12) {
        bit += 12u;
    }
    return bit + (x >= 64u ? 6u + of_six_bits[x >> 6] : of_six_bits[x]);
}

static inline uint32_t lowest_bit(uint32_t x)
{
    static const unsigned char of_five_bits[32] = {
        0,  1,  28, 2,  29, 14, 24, 3, 30, 22, 20, 15, 25, 17, 4,  8,
        31, 27, 13, 23, 21, 19, 16, 7, 26, 12, 18, 6,  11, 5,  10, 9,
    };
    return of_five_bits[((x & (~x + 1u)) * UINT32_C(0x077cb531)) >> 27];
}
#elif defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
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

/* lanes.h: loops over 64 numbers below 2^31, which compilers make AVX2, NEON or SSE2 of. */
#ifndef HW_LANES_H
#define HW_LANES_H

#include <stdint.h>
#include <string.h>

enum { CHUNK = 64 };

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__AVX2__)
#define HW_AVX2 __attribute__((target("avx2")))
#define HW_BY_PROCESSOR(name, ...)                                                                                     \
    (__builtin_cpu_supports("avx2") ? name##_avx2(__VA_ARGS__) : name##_plain(__VA_ARGS__))
#else
#define HW_BY_PROCESSOR(name, ...) name##_plain(__VA_ARGS__)
#endif

#if defined(__GNUC__)
#define HW_ALWAYS_INLINE inline __attribute__((always_inline))
#define HW_NOINLINE __attribute__((noinline))
#else
#define HW_ALWAYS_INLINE inline
#define HW_NOINLINE
#endif

/* Index of the first number from `least` to `most`; 64 where there is none. */
static HW_ALWAYS_INLINE uint32_t first_between_plain(const uint32_t *a, uint32_t least, uint32_t most)
{
    int32_t first = CHUNK;
    for (int32_t i = 0; i < CHUNK; i++) {
        const int32_t wanted = ((int32_t)a[i] >= (int32_t)least) & ((int32_t)a[i] <= (int32_t)most);
        const int32_t index = wanted ? i : CHUNK;
        first = index < first ? index : first;
    }
    return (uint32_t)first;
}

/* Which sets share an element with `wanted`, a bit for each. */
static HW_ALWAYS_INLINE uint64_t sharing_plain(const uint64_t *sets, uint64_t wanted)
{
    uint64_t sharing = 0;
    for (uint64_t i = 0; i < CHUNK; i++) {
        sharing |= (uint64_t)((sets[i] & wanted) != 0) << i;
    }
    return sharing;
}

/* The class of a size, four an octave from 16 bytes on, by the bits of a floating-point number: never falling. */
static HW_ALWAYS_INLINE uint32_t class_of(uint32_t size)
{
    const float number = (float)(int32_t)size;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    const int32_t octaves = (int32_t)(bits >> 21) - (int32_t)((127u + 4u) << 2);
    return octaves < 0 ? 0u : octaves > 63 ? 63u : (uint32_t)octaves;
}

/* The set of the classes of sizes that are not 0. */
static HW_ALWAYS_INLINE uint64_t classes_plain(const uint32_t *sizes)
{
    uint64_t classes = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        classes |= (uint64_t)(sizes[i] != 0) << class_of(sizes[i]);
    }
    return classes;
}

static HW_ALWAYS_INLINE uint32_t largest_plain(const uint32_t *a)
{
    int32_t largest = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        largest = (int32_t)a[i] > largest ? (int32_t)a[i] : largest;
    }
    return (uint32_t)largest;
}

static HW_ALWAYS_INLINE uint32_t sum_plain(const uint32_t *a)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        sum += a[i];
    }
    return sum;
}

/* The least excess over `size` of the numbers that are not below it; more than 2^31 where there is none. */
static HW_ALWAYS_INLINE uint32_t least_excess_plain(const uint32_t *a, uint32_t size)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < CHUNK; i++) {
        const uint32_t excess = a[i] - size;
        least = excess < least ? excess : least;
    }
    return least;
}

/* Of blocks by address and size, those that are higher and larger than this one, or lower and smaller. */
static HW_ALWAYS_INLINE uint32_t concordant_plain(const uint32_t *at, const uint32_t *size, uint32_t this_at,
                                                  uint32_t this_size)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        const int32_t lower = (int32_t)at[i] < (int32_t)this_at;
        const int32_t smaller = (int32_t)size[i] < (int32_t)this_size;
        const int32_t higher = (int32_t)at[i] > (int32_t)this_at;
        const int32_t larger = (int32_t)size[i] > (int32_t)this_size;
        count += (uint32_t)((lower & smaller) | (higher & larger));
    }
    return count;
}

/* Of blocks by rising size and, where sizes are equal, by falling address: those ahead of this one. */
static HW_ALWAYS_INLINE uint32_t count_ahead_plain(const uint32_t *at, const uint32_t *size, uint32_t this_at,
                                                   uint32_t this_size)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        const int32_t smaller = (int32_t)size[i] < (int32_t)this_size;
        const int32_t equal = size[i] == this_size;
        const int32_t higher = (int32_t)at[i] > (int32_t)this_at;
        count += (uint32_t)(smaller | (equal & higher));
    }
    return count;
}

#ifdef HW_AVX2
HW_AVX2 static uint32_t concordant_avx2(const uint32_t *at, const uint32_t *size, uint32_t this_at, uint32_t this_size)
{
    return concordant_plain(at, size, this_at, this_size);
}

HW_AVX2 static uint32_t count_ahead_avx2(const uint32_t *at, const uint32_t *size, uint32_t this_at, uint32_t this_size)
{
    return count_ahead_plain(at, size, this_at, this_size);
}

HW_AVX2 static uint32_t first_between_avx2(const uint32_t *a, uint32_t least, uint32_t most)
{
    return first_between_plain(a, least, most);
}

HW_AVX2 static uint64_t sharing_avx2(const uint64_t *sets, uint64_t wanted)
{
    return sharing_plain(sets, wanted);
}

HW_AVX2 static uint64_t classes_avx2(const uint32_t *sizes)
{
    return classes_plain(sizes);
}

HW_AVX2 static uint32_t largest_avx2(const uint32_t *a)
{
    return largest_plain(a);
}

HW_AVX2 static uint32_t sum_avx2(const uint32_t *a)
{
    return sum_plain(a);
}

HW_AVX2 static uint32_t least_excess_avx2(const uint32_t *a, uint32_t size)
{
    return least_excess_plain(a, size);
}
#endif

#endif

/* memory.c: the functions that compilers call by themselves, for images without a C library. Word by word where the
 * addresses allow, as small C libraries do. Compile with -fno-builtin, or they would call themselves. */
#include <stddef.h>
#include <stdint.h>

typedef uint32_t __attribute__((__may_alias__)) word;

static int aligned(const void *a, const void *b)
{
    return (((uintptr_t)a | (uintptr_t)b) & 3u) == 0;
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    if (aligned(to, from)) {
        for (; bytes >= 4; bytes -= 4, target += 4, source += 4) {
            *(word *)(void *)target = *(const word *)(const void *)source;
        }
    }
    for (; bytes; bytes--) {
        *target++ = *source++;
    }
    return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    if (target <= source || target >= source + bytes) {
        return memcpy(to, from, bytes);
    }
    while (bytes--) {
        target[bytes] = source[bytes];
    }
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    unsigned char *target = to;
    const uint32_t pattern = (unsigned char)value * 0x01010101u;
    for (; bytes && ((uintptr_t)target & 3u); bytes--) {
        *target++ = (unsigned char)value;
    }
    for (; bytes >= 4; bytes -= 4, target += 4) {
        *(word *)(void *)target = pattern;
    }
    for (; bytes; bytes--) {
        *target++ = (unsigned char)value;
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
    const unsigned char *left = a;
    const unsigned char *right = b;
    for (; bytes; bytes--, left++, right++) {
        if (*left != *right) {
            return *left - *right;
        }
    }
    return 0;
}

/* payload.h: copying and clearing payloads, 64 bytes at a time, then words, then bytes.
 *
 * Small targets have no fast memcpy() and memset(), and a libc may implement realloc() and calloc() with this heap: so
 * the core calls neither. The largest access follows from the recipe's alignment, a constant in generated code.
 */
#ifndef HW_PAYLOAD_H
#define HW_PAYLOAD_H

#include "arena.h"

/* Largest access for a copy between addresses that are multiples of `align`, or lie `header` bytes ahead of one. */
static inline uint32_t copy_step(const uint32_t align, const uint32_t header)
{
    if ((align | header) % 8u == 0) {
        return 8u;
    }
    return (align | header) % 4u == 0 ? 4u : 1u;
}

static inline void copy4(struct hw_heap *h, uint32_t to, uint32_t from)
{
    *(hw_u32 *)(void *)(arena_base(h) + to) = *(const hw_u32 *)(const void *)(arena_base(h) + from);
}

static inline void copy8(const uint32_t step, struct hw_heap *h, uint32_t to, uint32_t from)
{
    if (step == 8u) {
        *(hw_u64 *)(void *)(arena_base(h) + to) = *(const hw_u64 *)(const void *)(arena_base(h) + from);
    } else {
        copy4(h, to, from);
        copy4(h, to + 4u, from + 4u);
    }
}

/* Copies 64 bytes, without a loop that a compiler would make a call of memcpy. */
static inline void copy64(const uint32_t step, struct hw_heap *h, uint32_t to, uint32_t from)
{
    copy8(step, h, to, from);
    copy8(step, h, to + 8u, from + 8u);
    copy8(step, h, to + 16u, from + 16u);
    copy8(step, h, to + 24u, from + 24u);
    copy8(step, h, to + 32u, from + 32u);
    copy8(step, h, to + 40u, from + 40u);
    copy8(step, h, to + 48u, from + 48u);
    copy8(step, h, to + 56u, from + 56u);
}

/* Copies `bytes` payload bytes; the areas do not overlap, or `to` is below `from`. */
static inline void copy_payload(const uint32_t step, struct hw_heap *h, uint32_t to, uint32_t from, uint32_t bytes)
{
    if (!skip_copying(h, to, from, bytes)) {
        uint32_t at = 0;
        if (step > 1u) {
            while (bytes - at >= 64u) {
                copy64(step, h, to + at, from + at);
                at += 64u;
            }
            while (bytes - at >= 4u) {
                copy4(h, to + at, from + at);
                at += 4u;
            }
        }
        while (at < bytes) {
            arena_base(h)[to + at] = arena_base(h)[from + at];
            at++;
        }
    }
    note_moved(h, bytes);
}

/* Moves `bytes` bytes of blocks to an area that may overlap. */
static inline void move_payload(const uint32_t step, struct hw_heap *h, uint32_t to, uint32_t from, uint32_t bytes)
{
    if (to < from) {
        copy_payload(step, h, to, from, bytes);
        return;
    }
    if (!skip_copying(h, to, from, bytes)) {
        /* the last bytes first: they lie where the first ones go */
        uint32_t at = bytes;
        while (at > 0 && (step == 1u || at % 4u != 0)) {
            at--;
            arena_base(h)[to + at] = arena_base(h)[from + at];
        }
        while (at > 0) {
            at -= 4u;
            copy4(h, to + at, from + at);
        }
    }
    note_moved(h, bytes);
}

static inline void clear4(struct hw_heap *h, uint32_t at)
{
    *(hw_u32 *)(void *)(arena_base(h) + at) = 0;
}

static inline void clear8(const uint32_t step, struct hw_heap *h, uint32_t at)
{
    if (step == 8u) {
        *(hw_u64 *)(void *)(arena_base(h) + at) = 0;
    } else {
        clear4(h, at);
        clear4(h, at + 4u);
    }
}

/* Clears 64 bytes, without a loop that a compiler would make a call of memset. */
static inline void clear64(const uint32_t step, struct hw_heap *h, uint32_t at)
{
    clear8(step, h, at);
    clear8(step, h, at + 8u);
    clear8(step, h, at + 16u);
    clear8(step, h, at + 24u);
    clear8(step, h, at + 32u);
    clear8(step, h, at + 40u);
    clear8(step, h, at + 48u);
    clear8(step, h, at + 56u);
}

/* Clears the payload bytes from `at` up to `end`. */
static inline void clear_payload(const uint32_t step, struct hw_heap *h, uint32_t at, uint32_t end)
{
    if (step > 1u) {
        while (end - at >= 64u) {
            clear64(step, h, at);
            at += 64u;
        }
        while (end - at >= 4u) {
            clear4(h, at);
            at += 4u;
        }
    }
    while (at < end) {
        arena_base(h)[at] = 0;
        at++;
    }
}

#endif

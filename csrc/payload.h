/* payload.h: copying and clearing payloads, many words at a time.
 *
 * Small targets have no fast memcpy() and memset(), and a libc may implement realloc() and calloc() with this heap: so
 * the core calls neither. Loops run from the last byte to the first: the count of what is left is then all that they
 * need, and no compiler makes a call of memset() of one that takes several words at a time.
 *
 * The largest access follows from the recipe's alignment, a constant in generated code.
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

static inline hw_u32 *word_at(struct hw_heap *h, uint32_t at)
{
    return (hw_u32 *)(void *)(arena_base(h) + at);
}

static inline hw_u64 *pair_at(struct hw_heap *h, uint32_t at)
{
    return (hw_u64 *)(void *)(arena_base(h) + at);
}

/* Copies 16 bytes, the last ones first. */
HW_HOT void copy16(const uint32_t step, struct hw_heap *h, uint32_t to, uint32_t from)
{
    if (step == 8u) {
        *pair_at(h, to + 8u) = *pair_at(h, from + 8u);
        *pair_at(h, to) = *pair_at(h, from);
    } else {
        *word_at(h, to + 12u) = *word_at(h, from + 12u);
        *word_at(h, to + 8u) = *word_at(h, from + 8u);
        *word_at(h, to + 4u) = *word_at(h, from + 4u);
        *word_at(h, to) = *word_at(h, from);
    }
}

/* Copies `bytes` payload bytes, the last ones first; the areas do not overlap, or `to` is above `from`. */
static inline void copy_payload(const uint32_t step, struct hw_heap *h, uint32_t to, uint32_t from, uint32_t bytes)
{
    if (!skip_copying(h, to, from, bytes)) {
        uint32_t left = bytes;
        while (step == 1u ? left != 0 : left % 4u != 0) {
            left--;
            arena_base(h)[to + left] = arena_base(h)[from + left];
        }
        if (step > 1u) {
            while (left % 32u != 0) {
                left -= 4u;
                *word_at(h, to + left) = *word_at(h, from + left);
            }
            while (left != 0) {
                left -= 32u;
                copy16(step, h, to + left + 16u, from + left + 16u);
                copy16(step, h, to + left, from + left);
            }
        }
    }
    note_moved(h, bytes);
}

/* Moves `bytes` bytes of blocks to an area that may overlap. */
static inline void move_payload(const uint32_t step, struct hw_heap *h, uint32_t to, uint32_t from, uint32_t bytes)
{
    if (to > from) {
        copy_payload(step, h, to, from, bytes);
        return;
    }
    if (!skip_copying(h, to, from, bytes)) {
        /* the first bytes first: the last ones go where they lie */
        uint32_t at = 0;
        if (step > 1u) {
            while (bytes - at >= 16u) {
                *word_at(h, to + at) = *word_at(h, from + at);
                *word_at(h, to + at + 4u) = *word_at(h, from + at + 4u);
                *word_at(h, to + at + 8u) = *word_at(h, from + at + 8u);
                *word_at(h, to + at + 12u) = *word_at(h, from + at + 12u);
                at += 16u;
            }
            while (bytes - at >= 4u) {
                *word_at(h, to + at) = *word_at(h, from + at);
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

HW_HOT void clear16(const uint32_t step, struct hw_heap *h, uint32_t at)
{
    if (step == 8u) {
        *pair_at(h, at) = 0;
        *pair_at(h, at + 8u) = 0;
    } else {
        *word_at(h, at) = 0;
        *word_at(h, at + 4u) = 0;
        *word_at(h, at + 8u) = 0;
        *word_at(h, at + 12u) = 0;
    }
}

/* Clears `bytes` payload bytes from `at` on, the last ones first. */
static inline void clear_payload(const uint32_t step, struct hw_heap *h, uint32_t at, uint32_t bytes)
{
    uint32_t left = bytes;
    while (step == 1u ? left != 0 : left % 4u != 0) {
        left--;
        arena_base(h)[at + left] = 0;
    }
    if (step > 1u) {
        while (left % 64u != 0) {
            left -= 4u;
            *word_at(h, at + left) = 0;
        }
        while (left != 0) {
            left -= 64u;
            clear16(step, h, at + left);
            clear16(step, h, at + left + 16u);
            clear16(step, h, at + left + 32u);
            clear16(step, h, at + left + 48u);
        }
    }
}

#endif

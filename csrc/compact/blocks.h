/* compact/blocks.h: handles, the headers of blocks, and how blocks move. */
#ifndef HW_COMPACT_BLOCKS_H
#define HW_COMPACT_BLOCKS_H

#include "payload.h"
#include "references.h"

/* ---- handles ----------------------------------------------------------------------------------------------------- */

/* Bytes of the block of handle k, where blocks have no header. */
static inline uint32_t load_handle_size(struct hw_heap *h, uint32_t k)
{
    return load_outside(h, &handle_outside(h, k)->size);
}

static inline void store_handle_size(struct hw_heap *h, uint32_t k, uint32_t size)
{
    store_outside(h, &handle_outside(h, k)->size, size);
}

/* The handle of the next block by address, where blocks have no header; 0 behind the last one. */
static inline uint32_t load_handle_next(struct hw_heap *h, uint32_t k)
{
    return load_outside(h, &handle_outside(h, k)->next);
}

static inline void store_handle_next(struct hw_heap *h, uint32_t k, uint32_t next)
{
    store_outside(h, &handle_outside(h, k)->next, next);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* Bytes of the block for a request of n bytes, 1 <= n <= HW_MAX_REQUEST. */
static inline uint32_t compact_size_for(const struct hw_compact *c, uint32_t n)
{
    return (n + c->header + c->align - 1u) & ~(c->align - 1u);
}

static inline uint32_t header_size(const struct hw_compact *c, struct hw_heap *h, uint32_t b)
{
    return load_field(&c->word, h, b) << c->size_shift;
}

/* The handle of the block b, from its header; 0 is a hole. */
static inline uint32_t header_handle(const struct hw_compact *c, struct hw_heap *h, uint32_t b)
{
    return load_field(&c->word, h, b + c->word.bytes);
}

static inline void write_header(const struct hw_compact *c, struct hw_heap *h, uint32_t b, uint32_t size, uint32_t k)
{
    store_field(&c->word, h, b, size >> c->size_shift);
    store_field(&c->word, h, b + c->word.bytes, k);
}

/* Bytes of the block b, whose handle is k. */
static inline uint32_t compact_size(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t b)
{
    if (c->header) {
        return header_size(c, h, b);
    }
    return load_handle_size(h, k);
}

static inline void store_compact_size(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t b,
                                      uint32_t size)
{
    if (c->header) {
        store_field(&c->word, h, b, size >> c->size_shift);
        return;
    }
    store_handle_size(h, k, size);
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

/* Updates the handles of the blocks with headers from b up to `top`. O(blocks). */
static inline void tell_headers(const struct hw_compact *c, struct hw_heap *h, uint32_t b, uint32_t top)
{
    while (b < top) {
        const uint32_t k = header_handle(c, h, b);
        if (k) {
            store_reference(h, k, b + c->header);
        }
        b += header_size(c, h, b);
    }
}

/* Adds `by`, modulo 2^32, to the addresses in the chained handles from k on, after their blocks moved. O(blocks). */
static inline void tell_chain(struct hw_heap *h, uint32_t k, uint32_t by)
{
    while (k) {
        store_reference(h, k, load_reference(h, k) + by);
        k = load_handle_next(h, k);
    }
}

/* Moves the blocks from `from` up to the top, which are those behind the block of handle k, so that they begin at `to`.
 * O(blocks), and a copy of their bytes. */
static inline void compact_shift(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t from, uint32_t to)
{
    if (skip_shifting(c, h, k, from, to)) {
        return;
    }
    const uint32_t top = load4(h, c->top_at);
    move_payload(copy_step(c->align, c->header), h, to, from, top - from);
    store4(h, c->top_at, top - from + to);
    if (c->header) {
        tell_headers(c, h, to, top - from + to);
    } else {
        tell_chain(h, load_handle_next(h, k), to - from);
    }
}

/* Closes all holes between blocks with headers; returns the top. */
static inline uint32_t slide_headers(const struct hw_compact *c, struct hw_heap *h)
{
    const uint32_t top = load4(h, c->top_at);
    uint32_t from = c->start;
    uint32_t to = c->start;
    while (from < top) {
        const uint32_t size = header_size(c, h, from);
        const uint32_t k = header_handle(c, h, from);
        if (k == 0) {
            note_block_gone(h, c->header);
        } else {
            if (to != from) {
                move_payload(copy_step(c->align, c->header), h, to, from, size);
                store_reference(h, k, to + c->header);
            }
            to += size;
        }
        from += size;
    }
    return to;
}

/* Closes all holes between blocks whose handles are chained; returns the top. */
static inline uint32_t slide_chain(const struct hw_compact *c, struct hw_heap *h)
{
    uint32_t to = c->start;
    uint32_t k = load4(h, c->head_at);
    while (k) {
        const uint32_t size = load_handle_size(h, k);
        const uint32_t from = load_reference(h, k);
        if (to != from) {
            move_payload(copy_step(c->align, c->header), h, to, from, size);
            store_reference(h, k, to);
        }
        to += size;
        k = load_handle_next(h, k);
    }
    return to;
}

/* Slides all blocks down (lazy). O(blocks), and a copy of those above the first hole. */
static inline void compact_slide(const struct hw_compact *c, struct hw_heap *h)
{
    if (skip_sliding(c, h)) {
        return;
    }
    if (c->header) {
        store4(h, c->top_at, slide_headers(c, h));
    } else {
        store4(h, c->top_at, slide_chain(c, h));
    }
    store4(h, c->holes_at, 0);
}

/* Makes sure of `size` bytes above the top; returns the top, or 0. Holes are closed before the high-water mark is
 * raised. */
static inline uint32_t compact_make_room(const struct hw_compact *c, struct hw_heap *h, uint32_t size)
{
    uint32_t top = load4(h, c->top_at);
    const uint32_t high = load4(h, c->high_at);
    if (c->lazy && high - top < size && load4(h, c->holes_at) != 0) {
        compact_slide(c, h);
        top = load4(h, c->top_at);
    }
    const uint32_t end = high - top < size ? top + size : high;
    if (end == high) {
        return top;
    }
    if (end > load4(h, c->limit_at)) {
        return 0;
    }
    store4(h, c->high_at, end);
    note_covered(h, end - high);
    return top;
}

#endif

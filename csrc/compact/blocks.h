/* compact/blocks.h: handles, the headers of blocks, and how blocks move. */
#ifndef HW_COMPACT_BLOCKS_H
#define HW_COMPACT_BLOCKS_H

#include "arena.h"

/* ---- handles ----------------------------------------------------------------------------------------------------- */

/* Where the handles in the arena end. */
static inline uint32_t handle_table(const struct hw_compact *c, struct hw_heap *h)
{
    if (c->in_arena) {
        return load4(h, c->end_at);
    }
    return 0;
}

static inline uint32_t handle_at(const struct hw_compact *c, uint32_t table, uint32_t k)
{
    return table - k * c->handle;
}

/* The address of the payload that handle k leads to. */
static inline uint32_t load_handle(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k)
{
    if (c->in_arena) {
        return load_link(&c->links, h, handle_at(c, table, k));
    }
    return load_reference(h, k);
}

static inline void store_handle(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k, uint32_t at)
{
    if (c->in_arena) {
        store_link(&c->links, h, handle_at(c, table, k), at);
        return;
    }
    store_reference(h, k, at);
}

/* Bytes of the block of handle k, where blocks have no header. */
static inline uint32_t load_handle_size(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k)
{
    if (c->in_arena) {
        return load_field(&c->links.field, h, handle_at(c, table, k) + c->links.field.bytes) << c->size_shift;
    }
    return load_outside(h, &handle_outside(h, k)->size);
}

static inline void store_handle_size(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k,
                                     uint32_t size)
{
    if (c->in_arena) {
        const uint32_t at = handle_at(c, table, k) + c->links.field.bytes;
        store_field(&c->links.field, h, at, size >> c->size_shift);
        return;
    }
    store_outside(h, &handle_outside(h, k)->size, size);
}

/* The handle of the next block by address, where blocks have no header; 0 behind the last one. */
static inline uint32_t load_handle_next(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k)
{
    if (c->in_arena) {
        return load_field(&c->links.field, h, handle_at(c, table, k) + 2u * c->links.field.bytes);
    }
    return load_outside(h, &handle_outside(h, k)->next);
}

static inline void store_handle_next(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k,
                                     uint32_t next)
{
    if (c->in_arena) {
        store_field(&c->links.field, h, handle_at(c, table, k) + 2u * c->links.field.bytes, next);
        return;
    }
    store_outside(h, &handle_outside(h, k)->next, next);
}

/* The number of the handle that was given back before handle k, 0 if none. It is stored inverted: no address is that
 * large, so that a handle that was given back cannot be taken for one that leads to an object. */
static inline uint32_t load_unused(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k)
{
    const uint32_t at = handle_at(c, table, k);
    return ~(load_field(&c->links.field, h, at) ^ link_mask(&c->links, h, at)) & c->most;
}

/* Takes handle k in the arena: a new one, or the first of those that were given back. */
static inline void take_handle(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k, int is_new)
{
    if (is_new) {
        store4(h, c->handles_at, k);
        note_block_made(h, c->handle);
    } else {
        store4(h, c->unused_at, load_unused(c, h, table, k));
    }
}

static inline void give_handle_back(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k)
{
    const uint32_t at = handle_at(c, table, k);
    store_field(&c->links.field, h, at, ~load4(h, c->unused_at) ^ link_mask(&c->links, h, at));
    store4(h, c->unused_at, k);
}

/* The handle behind a reference that leads to an object. */
static inline uint32_t handle_of(const struct hw_compact *c, struct hw_heap *h, uint32_t table, void **reference)
{
    if (c->in_arena) {
        return (table - (uint32_t)((uintptr_t)*reference - (uintptr_t)arena_base(h))) / c->handle;
    }
    return reference_number(h, reference);
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
static inline uint32_t compact_size(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k,
                                    uint32_t b)
{
    if (c->header) {
        return header_size(c, h, b);
    }
    return load_handle_size(c, h, table, k);
}

static inline void store_compact_size(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k,
                                      uint32_t b, uint32_t size)
{
    if (c->header) {
        store_field(&c->word, h, b, size >> c->size_shift);
        return;
    }
    store_handle_size(c, h, table, k, size);
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

/* Tells the handles of the blocks with headers from b up to `top` where they are. O(blocks). */
static inline void tell_headers(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t b, uint32_t top)
{
    while (b < top) {
        const uint32_t k = header_handle(c, h, b);
        if (k) {
            store_handle(c, h, table, k, b + c->header);
        }
        b += header_size(c, h, b);
    }
}

/* Tells the chained handles from k on that their blocks have moved by so many bytes, modulo 2^32. O(blocks). */
static inline void tell_chain(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k, uint32_t by)
{
    while (k) {
        store_handle(c, h, table, k, load_handle(c, h, table, k) + by);
        k = load_handle_next(c, h, table, k);
    }
}

/* Moves the blocks from `from` up to the top, which are those behind the block of handle k, so that they begin at `to`.
 * O(blocks), and a copy of their bytes. */
static inline void compact_shift(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k,
                                 uint32_t from, uint32_t to)
{
    if (skip_shifting(c, h, k, from, to)) {
        return;
    }
    const uint32_t top = load4(h, c->top_at);
    move_payload(h, to, from, top - from);
    store4(h, c->top_at, top - from + to);
    if (c->header) {
        tell_headers(c, h, table, to, top - from + to);
    } else {
        tell_chain(c, h, table, load_handle_next(c, h, table, k), to - from);
    }
}

/* Closes all holes between blocks with headers; returns the top. */
static inline uint32_t slide_headers(const struct hw_compact *c, struct hw_heap *h, uint32_t table)
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
                move_payload(h, to, from, size);
                store_handle(c, h, table, k, to + c->header);
            }
            to += size;
        }
        from += size;
    }
    return to;
}

/* Closes all holes between blocks whose handles are chained; returns the top. */
static inline uint32_t slide_chain(const struct hw_compact *c, struct hw_heap *h, uint32_t table)
{
    uint32_t to = c->start;
    uint32_t k = load4(h, c->head_at);
    while (k) {
        const uint32_t size = load_handle_size(c, h, table, k);
        const uint32_t from = load_handle(c, h, table, k);
        if (to != from) {
            move_payload(h, to, from, size);
            store_handle(c, h, table, k, to);
        }
        to += size;
        k = load_handle_next(c, h, table, k);
    }
    return to;
}

/* Slides all blocks down (lazy). O(blocks), and a copy of those above the first hole. */
static inline void compact_slide(const struct hw_compact *c, struct hw_heap *h, uint32_t table)
{
    if (skip_sliding(c, h)) {
        return;
    }
    if (c->header) {
        store4(h, c->top_at, slide_headers(c, h, table));
    } else {
        store4(h, c->top_at, slide_chain(c, h, table));
    }
    store4(h, c->holes_at, 0);
}

/* Makes sure of `size` bytes above the top, and of memory for a new handle if one is asked for; returns the top, or 0.
 * Holes are closed before the high-water mark is raised. */
static inline uint32_t compact_make_room(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t size,
                                         uint32_t handle)
{
    uint32_t top = load4(h, c->top_at);
    const uint32_t high = load4(h, c->high_at);
    if (c->lazy && high - top < size && load4(h, c->holes_at) != 0) {
        compact_slide(c, h, table);
        top = load4(h, c->top_at);
    }
    const uint32_t end = high - top < size ? top + size : high;
    if (end == high && handle == 0) {
        return top;
    }
    const uint32_t limit = load4(h, c->limit_at);
    if (end > limit || limit - end < handle) {
        return 0;
    }
    store4(h, c->high_at, end);
    note_covered(h, end - high + handle);
    if (c->in_arena) {
        store4(h, c->limit_at, limit - handle);
    }
    return top;
}

#endif

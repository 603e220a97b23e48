/* pool_compact.h: blocks that move, reached through handles.
 *
 *   start                                        top         high-water mark                   limit
 *   |                                            |           |                                 |
 *   +------+------+------+--------+------+-------+-----------+---------------------------------+---------+
 *   | used | hole | used | hole   | used | used  | was used  | never used                      | handles |
 *   +------+------+------+--------+------+-------+-----------+---------------------------------+---------+
 *
 * Every request is served at the top. Holes are closed by sliding the blocks above them down and telling their handles:
 * at once when a block is freed (eager), or when the memory above the top is too short to serve a request below the
 * high-water mark (lazy). So what is live always fits into what was ever used, and the high-water mark is the smallest
 * arena that serves the same requests.
 *
 * What is known of a block stands in its header, or in its handle:
 *
 *     header:     | size | handle | not used |      handle 0: a hole
 *     no header:  handle = | address | size | next block's handle |
 *
 * A handle is a reference in the caller's memory, known by its distance from the arena; or it lies in the arena, where
 * handles grow from the end downwards and are numbered from 1. With headers only the address is in the handle, and the
 * blocks are found one behind the other; without, the handles are chained in order of address, and a hole is where a
 * block does not begin at the end of the one before.
 *
 * Sources: Das et al., "A low overhead dynamic memory management system for constrained memory embedded systems",
 * section V.B (ST_COMPACT_MEMMGR: headers of 2 + 2 bytes, references that the heap rewrites); Contiki's managed memory
 * (mmem: chained handles with the caller, eager).
 */
#ifndef HW_POOL_COMPACT_H
#define HW_POOL_COMPACT_H

#include "arena.h"

/* ---- handles -------------------------------------------------------------------------------------------------------
 */

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

/* ---- blocks
 * ---------------------------------------------------------------------------------------------------------- */

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

/* ---- moving
 * ---------------------------------------------------------------------------------------------------------- */

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

/* ---- allocating
 * ------------------------------------------------------------------------------------------------------ */

/* Adds handle k, which is that of the last block, to the chain. O(blocks). */
static inline void chain_append(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k)
{
    uint32_t last = load4(h, c->head_at);
    uint32_t next = last;
    while (next) {
        last = next;
        next = load_handle_next(c, h, table, last);
    }
    if (last) {
        store_handle_next(c, h, table, last, k);
    } else {
        store4(h, c->head_at, k);
    }
    store_handle_next(c, h, table, k, 0);
}

/* Serves n bytes for handle k, which may need memory of its own: the address of the payload, or 0. */
static inline uint32_t compact_place(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k,
                                     uint32_t handle, uint32_t n)
{
    const uint32_t size = compact_size_for(c, n);
    const uint32_t b = compact_make_room(c, h, table, size, handle);
    if (b == 0) {
        return 0;
    }
    store4(h, c->top_at, b + size);
    note_block_made(h, c->header);
    if (c->in_arena) {
        take_handle(c, h, table, k, handle != 0);
    }
    if (c->header) {
        write_header(c, h, b, size, k);
    } else {
        store_handle_size(c, h, table, k, size);
        chain_append(c, h, table, k);
    }
    store_handle(c, h, table, k, b + c->header);
    return b + c->header;
}

/* Serves n bytes and makes *reference lead to them; 0 where there is no room, or no handle. */
static inline int compact_malloc(const struct hw_compact *c, struct hw_heap *h, void **reference, uint32_t n)
{
    const uint32_t table = handle_table(c, h);
    if (c->in_arena) {
        uint32_t handle = 0;
        uint32_t k = load4(h, c->unused_at);
        if (k == 0) {
            handle = c->handle;
            k = load4(h, c->handles_at) + 1u;
        }
        if (k > c->most || compact_place(c, h, table, k, handle, n) == 0) {
            return 0;
        }
        *reference = arena_pointer(h, handle_at(c, table, k));
        return 1;
    }
    const uint32_t number = reference_number(h, reference);
    return number != 0 && number <= c->most && compact_place(c, h, table, number, 0, n) != 0;
}

/* The handle behind a reference that leads to an object. */
static inline uint32_t handle_of(const struct hw_compact *c, struct hw_heap *h, uint32_t table, void **reference)
{
    if (c->in_arena) {
        return (table - (uint32_t)((uintptr_t)*reference - (uintptr_t)arena_base(h))) / c->handle;
    }
    return reference_number(h, reference);
}

/* ---- freeing
 * --------------------------------------------------------------------------------------------------------- */

/* Takes handle k out of the chain. O(blocks). */
static inline void chain_remove(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k)
{
    const uint32_t next = load_handle_next(c, h, table, k);
    uint32_t before = load4(h, c->head_at);
    if (before == k) {
        store4(h, c->head_at, next);
        return;
    }
    uint32_t ahead = load_handle_next(c, h, table, before);
    while (ahead != k) {
        before = ahead;
        ahead = load_handle_next(c, h, table, before);
    }
    store_handle_next(c, h, table, before, next);
}

static inline void count_hole(const struct hw_compact *c, struct hw_heap *h, uint32_t size)
{
    store4(h, c->holes_at, load4(h, c->holes_at) + size);
}

/* Frees the block of handle k. */
static inline void compact_release(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k)
{
    const uint32_t b = load_handle(c, h, table, k) - c->header;
    const uint32_t size = compact_size(c, h, table, k, b);
    if (b + size == load4(h, c->top_at)) {
        store4(h, c->top_at, b);
        note_block_gone(h, c->header);
    } else if (c->lazy) {
        count_hole(c, h, size);
        if (c->header) {
            store_field(&c->word, h, b + c->word.bytes, 0);
        }
    } else {
        compact_shift(c, h, table, k, b + size, b);
        note_block_gone(h, c->header);
    }
    if (c->header == 0) {
        chain_remove(c, h, table, k);
    }
    if (c->in_arena) {
        give_handle_back(c, h, table, k);
    }
}

/* ---- resizing
 * -------------------------------------------------------------------------------------------------------- */

/* Gives back the end of the block b of handle k; where that cannot even hold a header, the block keeps it. */
static inline void compact_shrink(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k, uint32_t b,
                                  uint32_t had, uint32_t size)
{
    if (b + had == load4(h, c->top_at)) {
        store4(h, c->top_at, b + size);
    } else if (c->lazy) {
        if (had - size < c->header) {
            return;
        }
        if (c->header) {
            write_header(c, h, b + size, had - size, 0);
            note_block_made(h, c->header);
        }
        count_hole(c, h, had - size);
    } else {
        compact_shift(c, h, table, k, b + had, b + size);
    }
    store_compact_size(c, h, table, k, b, size);
}

/* Makes the object of handle k n bytes large: what lies behind it moves. 0 where there is no room. */
static inline int compact_resize(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k, uint32_t n)
{
    uint32_t b = load_handle(c, h, table, k) - c->header;
    const uint32_t had = compact_size(c, h, table, k, b);
    const uint32_t size = compact_size_for(c, n);
    if (size < had) {
        compact_shrink(c, h, table, k, b, had, size);
    }
    if (size <= had) {
        return 1;
    }
    const uint32_t top = compact_make_room(c, h, table, size - had, 0);
    if (top == 0) {
        return 0;
    }
    if (c->lazy) {
        b = load_handle(c, h, table, k) - c->header;
    }
    if (b + had == top) {
        store4(h, c->top_at, b + size);
    } else {
        compact_shift(c, h, table, k, b + had, b + size);
    }
    store_compact_size(c, h, table, k, b, size);
    return 1;
}

/* ---- checks
 * ---------------------------------------------------------------------------------------------------------- */

/* Whether a handle is in the chain and leads to where its block can be. O(blocks). */
static inline int is_chained(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k)
{
    uint32_t end = c->start;
    uint32_t other = load4(h, c->head_at);
    while (other && other != k) {
        end = load_handle(c, h, table, other) + load_handle_size(c, h, table, other);
        other = load_handle_next(c, h, table, other);
    }
    if (other == 0) {
        return 0;
    }
    const uint32_t at = load_handle(c, h, table, k);
    const uint32_t next = load_handle_next(c, h, table, k);
    const uint32_t behind = next ? load_handle(c, h, table, next) : load4(h, c->top_at);
    if (c->lazy == 0 && at != end) {
        return 0;
    }
    return at >= end && at < behind && load_handle_size(c, h, table, k) <= behind - at &&
           ((at - c->start) & (c->align - 1u)) == 0;
}

/* Whether a reference leads to an object: the block it leads to knows it. */
static inline int leads_to_object(const struct hw_compact *c, struct hw_heap *h, void **reference)
{
    const uint32_t table = handle_table(c, h);
    const uintptr_t place = (uintptr_t)*reference - (uintptr_t)arena_base(h);
    if (exceeds(place, UINT32_MAX)) {
        return 0;
    }
    uint32_t at = (uint32_t)place;
    if (c->in_arena) {
        if (at < load4(h, c->limit_at) || at >= table || (table - at) % c->handle != 0) {
            return 0;
        }
        at = raw_link(&c->links, h, at); /* one that was given back leads out of the arena */
    }
    const uint32_t k = handle_of(c, h, table, reference);
    if (at < c->start + c->header || at >= load4(h, c->top_at) || (at & (c->align - 1u)) != 0) {
        return 0;
    }
    if (c->header == 0) {
        return is_chained(c, h, table, k);
    }
    return header_handle(c, h, at - c->header) == k;
}

static inline void compact_init(const struct hw_compact *c, struct hw_heap *h)
{
    store4(h, c->top_at, c->start);
    store4(h, c->high_at, c->start);
    if (c->lazy) {
        store4(h, c->holes_at, 0);
    }
    if (c->header == 0) {
        store4(h, c->head_at, 0);
    }
    if (c->in_arena) {
        store4(h, c->unused_at, 0);
        store4(h, c->handles_at, 0);
    }
}

#endif

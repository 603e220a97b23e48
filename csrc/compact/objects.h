/* compact/objects.h: serving, freeing and resizing the objects that handles lead to. */
#ifndef HW_COMPACT_OBJECTS_H
#define HW_COMPACT_OBJECTS_H

#include "compact/blocks.h"

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* Adds handle k, which is that of the last block, to the chain. O(blocks). */
static inline void chain_append(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k)
{
    uint32_t last = load4(h, c->head_at);
    skip_to_chain_end(c, h, &last);
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
    HW_ASSERT(b + size <= load4(h, c->limit_at));
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
    note_placed(c, h, k, size);
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

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

/* Takes handle k out of the chain. O(blocks). */
static inline void chain_remove(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k)
{
    const uint32_t next = load_handle_next(c, h, table, k);
    uint32_t before = load4(h, c->head_at);
    if (before == k) {
        store4(h, c->head_at, next);
        return;
    }
    skip_to_chained(c, h, &before, k);
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
    HW_ASSERT(size != 0 && (size & (c->align - 1u)) == 0);
    HW_ASSERT(b + size <= load4(h, c->top_at));
    if (b + size == load4(h, c->top_at)) {
        store4(h, c->top_at, b);
        note_block_gone(h, c->header);
    } else if (c->lazy) {
        count_hole(c, h, size);
        note_hole(c, h, k, size);
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
    note_released(c, h, k);
    if (c->in_arena) {
        give_handle_back(c, h, table, k);
    }
}

/* ---- resizing ---------------------------------------------------------------------------------------------------- */

/* Gives back the end of the block b of handle k; where that cannot even hold a header, the block keeps it. */
static inline void compact_shrink(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k, uint32_t b,
                                  uint32_t had, uint32_t size)
{
    if (b + had == load4(h, c->top_at)) {
        note_stretched(c, h, k, size - had);
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
        note_hole(c, h, k, had - size);
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
        note_stretched(c, h, k, size - had);
        store4(h, c->top_at, b + size);
    } else {
        compact_shift(c, h, table, k, b + had, b + size);
    }
    store_compact_size(c, h, table, k, b, size);
    return 1;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

/* Whether a handle is in the chain and leads to where its block can be. O(blocks). */
static inline int is_chained(const struct hw_compact *c, struct hw_heap *h, uint32_t table, uint32_t k)
{
    uint32_t end = c->start;
    uint32_t other = load4(h, c->head_at);
    skip_to_checked(c, h, &other, k);
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

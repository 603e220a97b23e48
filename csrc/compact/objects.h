/* compact/objects.h: serving, freeing and resizing the objects that handles lead to. */
#ifndef HW_COMPACT_OBJECTS_H
#define HW_COMPACT_OBJECTS_H

#include "compact/blocks.h"

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* Adds handle k, which is that of the last block, to the chain. O(blocks). */
static inline void chain_append(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    uint32_t last = load4(h, c->head_at);
    skip_to_chain_end(c, h, &last);
    uint32_t next = last;
    while (next) {
        last = next;
        next = load_handle_next(h, last);
    }
    if (last) {
        store_handle_next(h, last, k);
    } else {
        store4(h, c->head_at, k);
    }
    store_handle_next(h, k, 0);
}

/* Serves n bytes for handle k: the address of the payload, or 0. */
static inline uint32_t compact_place(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t n)
{
    const uint32_t size = compact_size_for(c, n);
    const uint32_t b = compact_make_room(c, h, size);
    if (b == 0) {
        return 0;
    }
    HW_ASSERT(b + size <= load4(h, c->limit_at));
    store4(h, c->top_at, b + size);
    note_block_made(h, c->header);
    if (c->header) {
        write_header(c, h, b, size, k);
    } else {
        store_handle_size(h, k, size);
        chain_append(c, h, k);
    }
    store_reference(h, k, b + c->header);
    note_placed(c, h, k, size);
    return b + c->header;
}

/* Serves n bytes and makes *reference lead to them; 0 where there is no room, or no handle. */
static inline int compact_malloc(const struct hw_compact *c, struct hw_heap *h, void **reference, uint32_t n)
{
    const uint32_t number = reference_number(h, reference);
    return number != 0 && number <= c->most && compact_place(c, h, number, n) != 0;
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

/* Takes handle k out of the chain. O(blocks). */
static inline void chain_remove(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    const uint32_t next = load_handle_next(h, k);
    uint32_t before = load4(h, c->head_at);
    if (before == k) {
        store4(h, c->head_at, next);
        return;
    }
    skip_to_chained(c, h, &before, k);
    uint32_t ahead = load_handle_next(h, before);
    while (ahead != k) {
        before = ahead;
        ahead = load_handle_next(h, before);
    }
    store_handle_next(h, before, next);
}

static inline void count_hole(const struct hw_compact *c, struct hw_heap *h, uint32_t size)
{
    store4(h, c->holes_at, load4(h, c->holes_at) + size);
}

/* Frees the block of handle k. */
static inline void compact_release(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    const uint32_t b = load_reference(h, k) - c->header;
    const uint32_t size = compact_size(c, h, k, b);
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
        compact_shift(c, h, k, b + size, b);
        note_block_gone(h, c->header);
    }
    if (c->header == 0) {
        chain_remove(c, h, k);
    }
    note_released(c, h, k);
}

/* ---- resizing ---------------------------------------------------------------------------------------------------- */

/* Gives back the end of the block b of handle k; where that cannot even hold a header, the block keeps it. */
static inline void compact_shrink(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t b, uint32_t had,
                                  uint32_t size)
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
        compact_shift(c, h, k, b + had, b + size);
    }
    store_compact_size(c, h, k, b, size);
}

/* Makes the object of handle k n bytes large: what lies behind it moves. 0 where there is no room. */
static inline int compact_resize(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t n)
{
    uint32_t b = load_reference(h, k) - c->header;
    const uint32_t had = compact_size(c, h, k, b);
    const uint32_t size = compact_size_for(c, n);
    if (size < had) {
        compact_shrink(c, h, k, b, had, size);
    }
    if (size <= had) {
        return 1;
    }
    const uint32_t top = compact_make_room(c, h, size - had);
    if (top == 0) {
        return 0;
    }
    if (c->lazy) {
        b = load_reference(h, k) - c->header;
    }
    if (b + had == top) {
        note_stretched(c, h, k, size - had);
        store4(h, c->top_at, b + size);
    } else {
        compact_shift(c, h, k, b + had, b + size);
    }
    store_compact_size(c, h, k, b, size);
    return 1;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

/* Whether a handle is in the chain and leads to where its block can be. O(blocks). */
static inline int is_chained(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    uint32_t end = c->start;
    uint32_t other = load4(h, c->head_at);
    skip_to_checked(c, h, &other, k);
    while (other && other != k) {
        end = load_reference(h, other) + load_handle_size(h, other);
        other = load_handle_next(h, other);
    }
    if (other == 0) {
        return 0;
    }
    const uint32_t at = load_reference(h, k);
    const uint32_t next = load_handle_next(h, k);
    const uint32_t behind = next ? load_reference(h, next) : load4(h, c->top_at);
    if (c->lazy == 0 && at != end) {
        return 0;
    }
    return at >= end && at < behind && load_handle_size(h, k) <= behind - at &&
           ((at - c->start) & (c->align - 1u)) == 0;
}

/* Whether a reference leads to an object: the block it leads to knows it. */
static inline int leads_to_object(const struct hw_compact *c, struct hw_heap *h, void **reference)
{
    const uintptr_t place = arena_offset(h, *reference);
    if (exceeds(place, UINT32_MAX)) {
        return 0;
    }
    const uint32_t at = (uint32_t)place;
    const uint32_t k = reference_number(h, reference);
    if (at < c->start + c->header || at >= load4(h, c->top_at) || (at & (c->align - 1u)) != 0) {
        return 0;
    }
    if (c->header == 0) {
        return is_chained(c, h, k);
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
}

#endif

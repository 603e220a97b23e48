/* compact/check.h: the walk over the blocks, what a request could have, the invariants. */
#ifndef HW_COMPACT_CHECK_H
#define HW_COMPACT_CHECK_H

#include "compact/blocks.h"
#include "statistics.h"

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Describes the block or hole that begins at `at` where blocks have no header. O(blocks). */
static inline int compact_describe_chained(const struct hw_compact *c, struct hw_heap *h, uint32_t at, uint32_t top,
                                           struct hw_block *block)
{
    uint32_t left = (top - c->start) / c->align;
    uint32_t k = load4(h, c->head_at);
    while (k && left != 0 && load_reference(h, k) < at) {
        left--;
        k = load_handle_next(h, k);
    }
    if (k && left == 0) {
        return 0;
    }
    const uint32_t next = k ? load_reference(h, k) : top;
    block->offset = at;
    block->header = 0;
    block->state = HW_BLOCK_FREE;
    block->size = next - at;
    if (k && next == at) {
        block->state = HW_BLOCK_USED;
        block->size = load_handle_size(h, k);
    }
    return block->size != 0 && block->size <= top - at;
}

/* Whether a block with a header can have `size` bytes, where there are `room`. */
static inline int is_compact_size(const struct hw_compact *c, uint32_t size, uint32_t room)
{
    return size >= c->header && size <= room && (size & (c->align - 1u)) == 0;
}

/* Describes the block or hole that begins at `at` in a compact pool; 0 behind the last one, or where none can be. */
static inline int compact_describe(const struct hw_compact *c, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    const uint32_t top = load4(h, c->top_at);
    if (at >= top) {
        return 0;
    }
    if (c->header == 0) {
        return compact_describe_chained(c, h, at, top, block);
    }
    if (top - at < c->header) {
        return 0;
    }
    block->offset = at;
    block->size = header_size(c, h, at);
    block->header = c->header;
    block->state = header_handle(c, h, at) ? HW_BLOCK_USED : HW_BLOCK_FREE;
    return is_compact_size(c, block->size, top - at);
}

static inline int compact_block_at(const struct hw_compact *c, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    return compact_describe(c, h, at ? at : c->start, block);
}

/* ---- what a request could have ----------------------------------------------------------------------------------- */

/* Payload of the largest object that fits once all holes are closed. */
static inline uint32_t compact_above(const struct hw_compact *c, struct hw_heap *h)
{
    uint32_t left = load4(h, c->limit_at) - load4(h, c->top_at);
    if (c->lazy) {
        left += load4(h, c->holes_at);
    }
    left &= ~(c->align - 1u);
    return left < c->header + c->align ? 0 : left - c->header;
}

static inline uint32_t compact_largest(const struct hw_compact *c, struct hw_heap *h, uint32_t looks)
{
    (void)looks;
    return compact_above(c, h);
}

/* ---- invariants -------------------------------------------------------------------------------------------------- */

static inline int compact_is_bounded(const struct hw_compact *c, struct hw_heap *h, uint32_t end)
{
    const uint32_t top = load4(h, c->top_at);
    const uint32_t high = load4(h, c->high_at);
    const uint32_t limit = load4(h, c->limit_at);
    return limit <= end && high <= limit && top >= c->start && top <= high && ((top - c->start) & (c->align - 1u)) == 0;
}

/* Checks the blocks by their headers; counts the used ones and the bytes in holes. */
static inline int check_headers(const struct hw_compact *c, struct hw_heap *h, uint32_t *used, uint32_t *holes)
{
    const uint32_t top = load4(h, c->top_at);
    uint32_t b = c->start;
    while (b < top) {
        if (top - b < c->header) {
            return HW_BROKEN_BOUNDS;
        }
        const uint32_t size = header_size(c, h, b);
        const uint32_t k = header_handle(c, h, b);
        if (!is_compact_size(c, size, top - b)) {
            return HW_BROKEN_SIZE;
        }
        if (k && load_reference(h, k) != b + c->header) {
            return HW_BROKEN_LINK;
        }
        *used += k != 0;
        *holes += k ? 0 : size;
        b += size;
    }
    return 0;
}

/* Checks the blocks by their chained handles; counts them and the bytes between them. */
static inline int check_chain(const struct hw_compact *c, struct hw_heap *h, uint32_t *used, uint32_t *holes)
{
    const uint32_t top = load4(h, c->top_at);
    uint32_t end = c->start;
    uint32_t k = load4(h, c->head_at);
    while (k) {
        const uint32_t at = load_reference(h, k);
        const uint32_t size = load_handle_size(h, k);
        if (at < end || at > top || size > top - at) {
            return HW_BROKEN_BOUNDS;
        }
        if (size == 0 || ((at - c->start) & (c->align - 1u)) != 0 || (size & (c->align - 1u)) != 0) {
            return HW_BROKEN_SIZE;
        }
        *used += 1u;
        *holes += at - end;
        end = at + size;
        k = load_handle_next(h, k);
    }
    *holes += top - end;
    return 0;
}

static inline int compact_check(const struct hw_compact *c, struct hw_heap *h)
{
    uint32_t used = 0;
    uint32_t holes = 0;
    int broken;
    if (c->header) {
        broken = check_headers(c, h, &used, &holes);
    } else {
        broken = check_chain(c, h, &used, &holes);
    }
    if (broken) {
        return broken;
    }
    if (holes != (c->lazy ? load4(h, c->holes_at) : 0)) {
        return HW_BROKEN_COUNT;
    }
    return 0;
}

#endif

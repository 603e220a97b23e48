/* compact/check.h: the walk over the blocks, what a request could have, the invariants. */
#ifndef HW_COMPACT_CHECK_H
#define HW_COMPACT_CHECK_H

#include "compact/blocks.h"
#include "statistics.h"

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Whether a handle with this number can be: what the caller keeps is taken on trust. */
static inline int is_handle(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    return !c->in_arena || k <= load4(h, c->handles_at);
}

/* Describes the block or hole that begins at `at` where blocks have no header. O(blocks). */
static inline int compact_describe_chained(const struct hw_compact *c, struct hw_heap *h, uint32_t at, uint32_t top,
                                           struct hw_block *block)
{
    const uint32_t table = handle_table(c, h);
    uint32_t left = (top - c->start) / c->align;
    uint32_t k = load4(h, c->head_at);
    while (k && left != 0 && is_handle(c, h, k) && load_handle(c, h, table, k) < at) {
        left--;
        k = load_handle_next(c, h, table, k);
    }
    if (k && (left == 0 || !is_handle(c, h, k))) {
        return 0;
    }
    const uint32_t next = k ? load_handle(c, h, table, k) : top;
    block->offset = at;
    block->header = 0;
    block->state = HW_BLOCK_FREE;
    block->size = next - at;
    if (k && next == at) {
        block->state = HW_BLOCK_USED;
        block->size = load_handle_size(c, h, table, k);
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
    const uint32_t high = load4(h, c->high_at);
    uint32_t left = load4(h, c->limit_at) - load4(h, c->top_at);
    if (c->in_arena && load4(h, c->unused_at) == 0) {
        const uint32_t above = load4(h, c->limit_at) - high;
        if (above < c->handle) {
            return 0;
        }
        left -= c->handle;
    }
    if (c->lazy) {
        left += load4(h, c->holes_at);
    }
    left &= ~(c->align - 1u);
    return left < c->header + c->align ? 0 : left - c->header;
}

static inline void compact_tell(const struct hw_compact *c, struct hw_heap *h, struct hw_statistics *told)
{
    tell_free(told, compact_above(c, h));
    if (c->in_arena) {
        told->peak += load4(h, c->end_at) - load4(h, c->limit_at);
    }
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
    if (limit > end || high > limit || top < c->start || top > high || ((top - c->start) & (c->align - 1u)) != 0) {
        return 0;
    }
    return !c->in_arena || load4(h, c->handles_at) <= (end - limit) / c->handle;
}

/* Checks the handles in the arena: `used` lead to objects, all others are listed as given back. */
static inline int check_handles(const struct hw_compact *c, struct hw_heap *h, uint32_t used)
{
    const uint32_t table = handle_table(c, h);
    const uint32_t handles = load4(h, c->handles_at);
    uint32_t unused = 0;
    uint32_t k = load4(h, c->unused_at);
    if (table - handles * c->handle != load4(h, c->limit_at) || used > handles) {
        return HW_BROKEN_BOUNDS;
    }
    while (k) {
        if (k > handles || unused == handles - used) {
            return HW_BROKEN_LIST;
        }
        unused++;
        k = load_unused(c, h, table, k);
    }
    return unused + used == handles ? 0 : HW_BROKEN_COUNT;
}

/* Checks the blocks by their headers; tells how many are used, and the bytes in holes. */
static inline int check_headers(const struct hw_compact *c, struct hw_heap *h, uint32_t *used, uint32_t *holes)
{
    const uint32_t table = handle_table(c, h);
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
        if (!is_handle(c, h, k)) {
            return HW_BROKEN_BOUNDS;
        }
        if (k && load_handle(c, h, table, k) != b + c->header) {
            return HW_BROKEN_LINK;
        }
        *used += k != 0;
        *holes += k ? 0 : size;
        b += size;
    }
    return 0;
}

/* Checks the blocks by their chained handles; tells how many there are, and the bytes between them. */
static inline int check_chain(const struct hw_compact *c, struct hw_heap *h, uint32_t *used, uint32_t *holes)
{
    const uint32_t table = handle_table(c, h);
    const uint32_t top = load4(h, c->top_at);
    uint32_t end = c->start;
    uint32_t k = load4(h, c->head_at);
    while (k) {
        if (!is_handle(c, h, k)) {
            return HW_BROKEN_BOUNDS;
        }
        const uint32_t at = load_handle(c, h, table, k);
        const uint32_t size = load_handle_size(c, h, table, k);
        if (at < end || at > top || size > top - at) {
            return HW_BROKEN_BOUNDS;
        }
        if (size == 0 || ((at - c->start) & (c->align - 1u)) != 0 || (size & (c->align - 1u)) != 0) {
            return HW_BROKEN_SIZE;
        }
        *used += 1u;
        *holes += at - end;
        end = at + size;
        k = load_handle_next(c, h, table, k);
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
    return c->in_arena ? check_handles(c, h, used) : 0;
}

#endif

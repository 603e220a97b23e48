/* fixed/check.h: looking at the classes from outside: the walk over them, what a request could have, the invariants. */
#ifndef HW_FIXED_CHECK_H
#define HW_FIXED_CHECK_H

#include "fixed/classes.h"
#include "statistics.h"

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static inline void describe_fixed(const struct hw_fixed *f, uint32_t class_, uint32_t b, struct hw_block *block)
{
    block->offset = b;
    block->size = fixed_stride(f, class_);
    block->header = f->header;
    block->state = HW_BLOCK_USED;
}

/* Describes the first block at or behind `at` of classes with counts; 0 behind the last one. */
static inline int fixed_describe_counted(const struct hw_fixed *f, struct hw_heap *h, uint32_t at,
                                         struct hw_block *block)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const uint32_t end = f->blocks_at[i] + load4(h, f->carved_at + 4u * i) * fixed_stride(f, i);
        if (at < f->blocks_at[i]) {
            at = f->blocks_at[i];
        }
        if (at < end) {
            describe_fixed(f, i, at, block);
            return 1;
        }
    }
    return 0;
}

/* Describes the block at `at` of classes that grow; 0 behind the last one, or where none can be. */
static inline int fixed_describe_grown(const struct hw_fixed *f, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    const uint32_t end = load4(h, f->end_at);
    if (at >= end || end - at < fixed_stride(f, 0)) {
        return 0;
    }
    const uint32_t class_ = fixed_class_of(f, h, at + f->header);
    if (class_ >= f->count || fixed_stride(f, class_) > end - at) {
        return 0;
    }
    describe_fixed(f, class_, at, block);
    return 1;
}

static inline int fixed_block_at(const struct hw_fixed *f, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    if (f->grow) {
        return fixed_describe_grown(f, h, at ? at : load4(h, f->limit_at), block);
    }
    return fixed_describe_counted(f, h, at, block);
}

/* ---- what a request could have ----------------------------------------------------------------------------------- */

/* Adds the free blocks of a fixed pool whose blocks bear no mark. O(free blocks). */
static inline void count_fixed_lists(const struct hw_fixed *f, struct hw_heap *h, struct hw_statistics *stats)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const uint32_t most = fixed_blocks(f, h, i);
        uint32_t blocks = 0;
        uint32_t node = load_link(&f->links, h, fixed_head(f, i));
        while (blocks != most && (node & (f->align - 1u)) == 0 && fixed_is_payload(f, h, node)) {
            blocks++;
            node = load_link(&f->links, h, node);
        }
        count_listed(stats, blocks, fixed_stride(f, i));
    }
}

/* Whether a class can have a block that it never had. */
static inline int fixed_has_more(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    if (f->grow == 0) {
        return load4(h, fixed_carved_at(f, class_)) < f->counts[fixed_at(f, class_)];
    }
    const uint32_t stride = fixed_stride(f, class_);
    const uint32_t blocks = stride < f->page ? f->page / stride : 1u;
    return load4(h, f->limit_at) - load4(h, f->high_at) >= blocks * stride;
}

static inline void fixed_statistics(const struct hw_fixed *f, struct hw_heap *h, struct hw_statistics *stats)
{
    if (f->grow) {
        stats->peak += load4(h, f->end_at) - load4(h, f->limit_at);
        return;
    }
    for (uint32_t i = 0; i < f->count; i++) {
        stats->peak -= (f->counts[i] - load4(h, f->carved_at + 4u * i)) * fixed_stride(f, i);
    }
}

/* Whether one of the first `looks` blocks in the chain of a class is free. */
static inline int is_any_unchained(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t looks)
{
    uint32_t left = smaller(looks, fixed_blocks(f, h, class_));
    uint32_t at = load_link(&f->links, h, fixed_head(f, class_));
    for (; left != 0 && (at & (f->align - 1u)) == 0 && fixed_is_payload(f, h, at); left--) {
        if ((load_class(f, h, at) & HW_FIXED_TAKEN) == 0) {
            return 1;
        }
        at = load_link(&f->links, h, fixed_chain_at(f, at));
    }
    return 0;
}

/* Whether one of the first `looks` flags of a class is clear. */
static inline int is_any_unflagged(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t looks)
{
    const uint32_t carved = load4(h, fixed_carved_at(f, class_));
    for (uint32_t i = 0; i < carved && i < looks; i++) {
        if (load1(h, f->flags_at[fixed_at(f, class_)] + i) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Whether a class has a free block. If free blocks are not listed, only the first `looks` blocks of the class are
 * examined. */
static inline int fixed_has_free(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t looks)
{
    if (fixed_has_more(f, h, class_)) {
        return 1;
    }
    if (f->first_fit) {
        return f->grow ? is_any_unchained(f, h, class_, looks) : is_any_unflagged(f, h, class_, looks);
    }
    return load_link(&f->links, h, fixed_head(f, class_)) != 0;
}

static inline uint32_t fixed_largest(const struct hw_fixed *f, struct hw_heap *h, uint32_t looks)
{
    if (f->count == 1u) {
        return fixed_has_free(f, h, 0, looks) ? f->sizes[0] : 0;
    }
    for (uint32_t class_ = f->count; class_-- > 0;) {
        if (fixed_has_free(f, h, class_, looks)) {
            return f->sizes[fixed_at(f, class_)];
        }
    }
    return 0;
}

/* ---- invariants -------------------------------------------------------------------------------------------------- */

static inline int fixed_is_sound(const struct hw_fixed *f, struct hw_heap *h, uint32_t at)
{
    (void)f;
    (void)h;
    (void)at;
    return 1;
}

/* Adds the upper end of the grown classes to a seal; flags protect the numbers of blocks of counted ones. */
static inline uint32_t fixed_sum_of_bounds(const struct hw_fixed *f, struct hw_heap *h, uint32_t sum)
{
    return f->end_at ? with_bound(sum, load4(h, f->end_at)) : sum;
}

static inline int fixed_is_bounded(const struct hw_fixed *f, struct hw_heap *h, uint32_t end)
{
    if (f->grow) {
        const uint32_t limit = load4(h, f->limit_at);
        return limit <= end && load4(h, f->high_at) <= limit && ((limit + f->header) & (f->align - 1u)) == 0;
    }
    for (uint32_t i = 0; i < f->count; i++) {
        if (load4(h, f->carved_at + 4u * i) > f->counts[i]) {
            return 0;
        }
    }
    return 1;
}

/* Checks the list of one class: every entry is a block of the class. */
static inline int check_class(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    if (f->first_fit && f->grow == 0) {
        return 0;
    }
    uint32_t left = fixed_blocks(f, h, class_);
    uint32_t node = load_link(&f->links, h, fixed_head(f, class_));
    while (node) {
        if ((node & (f->align - 1u)) != 0 || !fixed_is_payload(f, h, node) || fixed_class_of(f, h, node) != class_) {
            return HW_BROKEN_CLASS;
        }
        if (left == 0) {
            return HW_BROKEN_LIST;
        }
        left--;
        if (f->first_fit) {
            node = load_link(&f->links, h, fixed_chain_at(f, node));
        } else {
            node = load_link(&f->links, h, node);
        }
    }
    return 0;
}

static inline int fixed_check(const struct hw_fixed *f, struct hw_heap *h)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const int broken = check_class(f, h, i);
        if (broken) {
            return broken;
        }
    }
    if (f->grow) {
        struct hw_block block = {load4(h, f->limit_at), 0, 0, 0, 0};
        while (fixed_describe_grown(f, h, block.offset + block.size, &block)) {
        }
        if (block.offset + block.size != load4(h, f->end_at)) {
            return HW_BROKEN_CLASS;
        }
    }
    return 0;
}

#endif

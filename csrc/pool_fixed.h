/* pool_fixed.h: classes of fixed-size blocks; none is ever split or merged.
 *
 * Classes with counts own contiguous regions, one after another, and an address names its class:
 *
 *     | flags of class 0, 1, ... | ... | class 0: b b b b | class 1: b b b | ...
 *
 * These lie where the policy says, so constant maps, one of sizes and one of addresses, name the class in steps of a
 * power of two bytes. A step names its first class; comparing with that class's largest size, or with its end, finds a
 * later one. So no region is padded to a step, and maps stay small.
 *
 * Classes that grow carve blocks, one or a page at a time, from the end of the arena downwards, and each block's header
 * names its class:
 *
 *     | other pools ->          <- limit |h b|h b|h bbb|h b|h bbb| end of the arena
 *
 * Free blocks are listed, LIFO, through their payloads; or every block has a flag, and the first free one in order of
 * carving is taken: a walk over all blocks of the class, as in Mamagkakis et al. (WiFi middleware), Fig. 2. The flags
 * of counted classes are bytes in the control data; those of classes that grow are in the headers, which are chained.
 */
#ifndef HW_POOL_FIXED_H
#define HW_POOL_FIXED_H

#include "fixed/check.h"

/* Flags a listed block as used or free, if flags are kept in addition to the lists so that a check is O(1). */
static inline void fixed_flag(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at, uint32_t taken)
{
    if (f->flags && !f->first_fit && at != 0) {
        if (f->grow) {
            store_class(f, h, at, class_ << 1 | taken);
        } else {
            store1(h, f->flags_at[fixed_at(f, class_)] + fixed_index_of(f, class_, at), taken);
        }
    }
}

/* A free block, without growth; 0 if there is none. No other class is searched. */
static inline uint32_t fixed_find_in(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    if (f->first_fit) {
        if (f->grow) {
            return fixed_first_in_chain(f, h, class_);
        }
        return fixed_first_unflagged(f, h, class_);
    }
    const uint32_t at = fixed_pop(f, h, class_);
    if (f->grow || at) {
        return at;
    }
    return fixed_carve(f, h, class_);
}

/* The same, and the block is flagged as taken where flags are kept. */
static inline uint32_t fixed_take(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    if (f->flags && !f->first_fit) {
        const uint32_t at = fixed_find_in(f, h, class_);
        fixed_flag(f, h, class_, at, HW_FIXED_TAKEN);
        return at;
    }
    return fixed_find_in(f, h, class_);
}

/* Serves a request of n bytes without raising the high-water mark: the address of the payload, or 0. */
static inline uint32_t fixed_find(const struct hw_fixed *f, struct hw_heap *h, uint32_t n)
{
    if (f->count == 1u) {
        return n <= f->sizes[0] ? fixed_take(f, h, 0) : 0;
    }
    if (f->mapped && n > f->sizes[f->count - 1u]) {
        return 0;
    }
    uint32_t class_ = fixed_class(f, n);
    if (f->mapped == 0 && class_ == f->count) {
        return 0;
    }
    uint32_t at = fixed_take(f, h, class_);
    if (f->fall_through && f->grow == 0) {
        while (at == 0 && ++class_ < f->count) {
            at = fixed_take(f, h, class_);
        }
    }
    return at;
}

/* Serves a request by growing its class. */
static inline uint32_t fixed_grow(const struct hw_fixed *f, struct hw_heap *h, uint32_t n)
{
    uint32_t class_ = f->doubles ? fixed_class_doubled(f, n) : fixed_class_for(f, n);
    if (f->grow == 0 || class_ == f->count) {
        return 0;
    }
    uint32_t at = fixed_grow_class(f, h, class_);
    fixed_flag(f, h, class_, at, HW_FIXED_TAKEN);
    if (f->fall_through) {
        /* a class that cannot grow borrows from larger ones */
        while (at == 0 && ++class_ < f->count) {
            at = fixed_take(f, h, class_);
        }
    }
    return at;
}

static inline void fixed_release(const struct hw_fixed *f, struct hw_heap *h, uint32_t at)
{
    if (f->first_fit && f->grow) {
        const uint32_t word = load_class(f, h, at);
        note_flag(f, h, word >> 1, at, 0);
        store_class(f, h, at, word & ~(uint32_t)HW_FIXED_TAKEN);
        return;
    }
    const uint32_t class_ = fixed_class_of(f, h, at);
    if (f->first_fit) {
        note_flag(f, h, class_, f->flags_at[fixed_at(f, class_)] + fixed_index_of(f, class_, at), 0);
        store1(h, f->flags_at[fixed_at(f, class_)] + fixed_index_of(f, class_, at), 0);
        return;
    }
    const uint32_t head = fixed_head(f, class_);
    HW_ASSERT(at != raw_link(&f->links, h, head)); /* else it is freed twice */
    fixed_flag(f, h, class_, at, 0);
    store_link(&f->links, h, at, load_link(&f->links, h, head));
    store_link(&f->links, h, head, at);
}

/* Whether the block with this payload is free. */
static inline int fixed_is_free(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at)
{
    if (f->flags) {
        return fixed_is_flagged_free(f, h, class_, at);
    }
    uint32_t left = fixed_blocks(f, h, class_);
    uint32_t node = load_link(&f->links, h, fixed_head(f, class_)); /* O(free blocks of the class) */
    while (node != at && left != 0 && (node & (f->align - 1u)) == 0 && fixed_is_payload(f, h, node)) {
        left--;
        node = load_link(&f->links, h, node);
    }
    return node == at;
}

/* Whether `at` is the payload of a block in use. */
static inline int fixed_is_used(const struct hw_fixed *f, struct hw_heap *h, uint32_t at)
{
    return fixed_is_payload(f, h, at) && !fixed_is_free(f, h, fixed_class_of(f, h, at), at);
}

/* Whether the payload lies where the pool's blocks do. */
static inline int fixed_owns(const struct hw_fixed *f, struct hw_heap *h, uint32_t at)
{
    if (f->grow) {
        return at >= load4(h, f->limit_at);
    }
    return at >= f->blocks_at[0] && at < f->end;
}

static inline uint32_t fixed_capacity(const struct hw_fixed *f, struct hw_heap *h, uint32_t at)
{
    return f->sizes[fixed_class_of(f, h, at)];
}

/* A block serves n bytes where it lies, or not at all: returns `at`, or 0. */
static inline uint32_t fixed_resize(const struct hw_fixed *f, struct hw_heap *h, uint32_t at, uint32_t n)
{
    return n <= fixed_capacity(f, h, at) ? at : 0;
}

static inline void fixed_init(const struct hw_fixed *f, struct hw_heap *h)
{
    if (f->grow || f->first_fit == 0) {
        for (uint32_t i = 0; i < f->count; i++) {
            store_link(&f->links, h, fixed_head(f, i), 0);
        }
    }
    if (f->grow == 0) {
        for (uint32_t i = 0; i < f->count; i++) {
            store4(h, f->carved_at + 4u * i, 0);
        }
    }
    if (f->grow && f->first_fit) {
        for (uint32_t i = 0; i < f->count; i++) {
            store_link(&f->links, h, f->tails_at + i * f->links.field.bytes, 0);
        }
    }
}

static inline uint32_t fixed_block_bytes(const struct hw_fixed *f, struct hw_heap *h, uint32_t at)
{
    return fixed_stride(f, fixed_class_of(f, h, at));
}

#endif

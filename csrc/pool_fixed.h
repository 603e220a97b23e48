/* pool_fixed.h: classes of fixed-size blocks; none is ever split or merged.
 *
 * Classes with counts own contiguous regions, one after another, and an address names its class:
 *
 *     | flags of class 0, 1, ... | ... | class 0: b b b b | class 1: b b b | ...
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

#include "block.h"
#include "arena.h"

enum { HW_FIXED_TAKEN = 1 /* in a header that is chained: the block is in use */ };

/* The word of the header in front of a payload. */
static inline uint32_t load_class(const struct hw_fixed *f, struct hw_heap *h, uint32_t at)
{
    return load_masked(&f->links, &f->word, h, at - f->header);
}

static inline void store_class(const struct hw_fixed *f, struct hw_heap *h, uint32_t at, uint32_t word)
{
    store_masked(&f->links, &f->word, h, at - f->header, word);
}

/* Bytes from one block of a class to the next. */
static inline uint32_t fixed_stride(const struct hw_fixed *f, uint32_t class_)
{
    return (f->sizes[class_] + f->header + f->trailer + f->align - 1u) & ~(f->align - 1u);
}

/* The smallest class that holds n bytes, where each is twice as large as the one before but for the same few bytes; the
 * number of classes where there is none. */
static inline uint32_t fixed_class_doubled(const struct hw_fixed *f, uint32_t n)
{
    const uint32_t least = f->sizes[0] + f->lacks - 1u;
    const uint32_t less = f->lacks ? n + f->lacks - 1u : n - (n != 0);
    const uint32_t class_ = highest_bit(less | least) - highest_bit(least);
    return class_ < f->count ? class_ : f->count;
}

/* The smallest class that holds n bytes; the number of classes where there is none. O(classes). */
static inline uint32_t fixed_class_for(const struct hw_fixed *f, uint32_t n)
{
    uint32_t class_ = 0;
    while (class_ < f->count && f->sizes[class_] < n) {
        class_++;
    }
    return class_;
}

static inline uint32_t fixed_head(const struct hw_fixed *f, uint32_t class_)
{
    return f->heads_at + class_ * f->links.field.bytes;
}

/* The class whose region holds this payload. O(classes). */
static inline uint32_t fixed_class_of_address(const struct hw_fixed *f, uint32_t at)
{
    uint32_t class_ = f->count - 1u;
    while (class_ > 0 && at < f->blocks_at[class_]) {
        class_--;
    }
    return class_;
}

static inline uint32_t fixed_class_of(const struct hw_fixed *f, struct hw_heap *h, uint32_t at)
{
    if (f->grow) {
        return load_class(f, h, at) >> 1;
    }
    return fixed_class_of_address(f, at);
}

static inline uint32_t fixed_index_of(const struct hw_fixed *f, uint32_t class_, uint32_t at)
{
    return (at - f->header - f->blocks_at[class_]) / fixed_stride(f, class_);
}

/* Most blocks of a class that there can be. */
static inline uint32_t fixed_blocks(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    if (f->grow) {
        return (load4(h, f->end_at) - load4(h, f->limit_at)) / fixed_stride(f, class_);
    }
    return f->counts[class_];
}

/* Whether `at` can be the payload of one of the pool's blocks. */
static inline int fixed_is_payload(const struct hw_fixed *f, struct hw_heap *h, uint32_t at)
{
    if (f->grow) {
        const uint32_t end = load4(h, f->end_at);
        if (at < load4(h, f->limit_at) + f->header || at >= end) {
            return 0;
        }
        const uint32_t named = fixed_class_of(f, h, at);
        return named < f->count && f->sizes[named] <= end - at;
    }
    if (at < f->blocks_at[0] + f->header || at >= f->end) {
        return 0;
    }
    const uint32_t class_ = fixed_class_of_address(f, at);
    const uint32_t index = fixed_index_of(f, class_, at);
    return index < load4(h, f->carved_at + 4u * class_) &&
           f->blocks_at[class_] + index * fixed_stride(f, class_) + f->header == at;
}

/* Whether the flag of a block says that it is free. */
static inline int fixed_is_flagged_free(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at)
{
    if (f->grow) {
        return (load_class(f, h, at) & HW_FIXED_TAKEN) == 0;
    }
    return load1(h, f->flags_at[class_] + fixed_index_of(f, class_, at)) == 0;
}

/* Whether what a class's list leads to is a free block of the class; what is not is counted. */
HW_COLD int fixed_may_pop(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at)
{
    if ((at & (f->align - 1u)) == 0 && fixed_is_payload(f, h, at) && fixed_class_of(f, h, at) == class_ &&
        fixed_is_flagged_free(f, h, class_, at)) {
        return 1;
    }
    count_misuse(f->links.misused_at, h);
    return 0;
}

/* The block freed last; 0 where the class's list is empty. */
static inline uint32_t fixed_pop(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    const uint32_t head = fixed_head(f, class_);
    const uint32_t at = load_link(&f->links, h, head);
    if (f->links.hardened && at && !fixed_may_pop(f, h, class_, at)) {
        return 0;
    }
    if (at) {
        store_link(&f->links, h, head, load_link(&f->links, h, at));
    }
    return at;
}

/* ---- classes with counts --------------------------------------------------------------------------------------- */

/* A block of the class's region that was never used; 0 where all have been. */
static inline uint32_t fixed_carve(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    const uint32_t carved_at = f->carved_at + 4u * class_;
    const uint32_t carved = load4(h, carved_at);
    if (carved == f->counts[class_]) {
        return 0;
    }
    if (f->links.hardened && (carved > f->counts[class_] || load1(h, f->flags_at[class_] + carved) != 0)) {
        count_misuse(f->links.misused_at, h); /* blocks beyond the last carved are flagged as free */
        return 0;
    }
    store4(h, carved_at, carved + 1u);
    const uint32_t stride = fixed_stride(f, class_);
    note_covered(h, stride);
    note_block_made(h, f->header + f->trailer);
    return f->blocks_at[class_] + carved * stride + f->header;
}

/* The first block whose flag is clear. O(blocks of the class). */
static inline uint32_t fixed_first_unflagged(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    const uint32_t carved = load4(h, f->carved_at + 4u * class_);
    if (f->links.hardened && carved > f->counts[class_]) {
        count_misuse(f->links.misused_at, h);
        return 0;
    }
    for (uint32_t i = 0; i < carved; i++) {
        if (!skip_flags(f, h, class_, &i)) {
            break;
        }
        if (load1(h, f->flags_at[class_] + i) == 0) {
            note_flag(f, h, class_, f->flags_at[class_] + i, 1);
            store1(h, f->flags_at[class_] + i, 1);
            return f->blocks_at[class_] + i * fixed_stride(f, class_) + f->header;
        }
    }
    const uint32_t at = fixed_carve(f, h, class_);
    if (at) {
        note_flag(f, h, class_, f->flags_at[class_] + carved, 1);
        store1(h, f->flags_at[class_] + carved, 1);
    }
    return at;
}

/* ---- classes that grow ----------------------------------------------------------------------------------------- */

/* Chain links of headers that are chained; the chain runs through payload addresses. */
static inline uint32_t fixed_chain_at(const struct hw_fixed *f, uint32_t at)
{
    return at - f->header + 4u;
}

/* The first block of the chain that is not taken. O(blocks of the class). */
static inline uint32_t fixed_first_in_chain(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    uint32_t at = load_link(&f->links, h, fixed_head(f, class_));
    skip_taken(f, h, class_, &at);
    while (at) {
        const uint32_t word = load_class(f, h, at);
        if (f->links.hardened && word >> 1 != class_) {
            count_misuse(f->links.misused_at, h);
            return 0;
        }
        if ((word & HW_FIXED_TAKEN) == 0) {
            note_flag(f, h, class_, at, 1);
            store_class(f, h, at, word | HW_FIXED_TAKEN);
            return at;
        }
        at = load_link(&f->links, h, fixed_chain_at(f, at));
    }
    return 0;
}

/* Adds one carved block to its class; `state` is what its header says beside the class. */
static inline void fixed_add(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at, uint32_t state)
{
    const uint32_t head = fixed_head(f, class_);
    store_class(f, h, at, class_ << 1 | state);
    note_block_made(h, f->header + f->trailer);
    if (f->first_fit) {
        note_flag(f, h, class_, at, state);
        const uint32_t tail_at = f->tails_at + class_ * f->links.field.bytes;
        const uint32_t tail = load_link(&f->links, h, tail_at);
        store_link(&f->links, h, fixed_chain_at(f, at), 0);
        store_link(&f->links, h, tail ? fixed_chain_at(f, tail) : head, at);
        store_link(&f->links, h, tail_at, at);
        return;
    }
    store_link(&f->links, h, at, load_link(&f->links, h, head));
    store_link(&f->links, h, head, at);
}

/* Carves blocks for a class from the end of the free part of the arena and takes the one that a search would find: the
 * address of its payload, or 0 where the arena is too small. */
static inline uint32_t fixed_grow_class(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    const uint32_t stride = fixed_stride(f, class_);
    const uint32_t blocks = stride < f->page ? f->page / stride : 1u;
    const uint32_t limit = load4(h, f->limit_at);
    if (limit - load4(h, f->high_at) < blocks * stride) {
        return 0;
    }
    store4(h, f->limit_at, limit - blocks * stride);
    note_covered(h, blocks * stride);
    for (uint32_t i = 1; i <= blocks; i++) {
        fixed_add(f, h, class_, limit - i * stride + f->header, f->first_fit && i == 1u ? HW_FIXED_TAKEN : 0);
    }
    return f->first_fit ? limit - stride + f->header : fixed_pop(f, h, class_);
}

/* ---- all classes ----------------------------------------------------------------------------------------------- */

/* Flags a listed block as taken or free, where flags are kept beside the lists so that a check is O(1). */
static inline void fixed_flag(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at, uint32_t taken)
{
    if (f->flags && !f->first_fit && at != 0) {
        if (f->grow) {
            store_class(f, h, at, class_ << 1 | taken);
        } else {
            store1(h, f->flags_at[class_] + fixed_index_of(f, class_, at), taken);
        }
    }
}

/* A free block of this very class, without growing; 0 where there is none. */
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
    uint32_t class_ = f->doubles ? fixed_class_doubled(f, n) : fixed_class_for(f, n);
    if (class_ == f->count) {
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
        note_flag(f, h, class_, f->flags_at[class_] + fixed_index_of(f, class_, at), 0);
        store1(h, f->flags_at[class_] + fixed_index_of(f, class_, at), 0);
        return;
    }
    const uint32_t head = fixed_head(f, class_);
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

#endif

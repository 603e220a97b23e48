/* fixed/classes.h: the blocks of a class: which they are, which are free, and how there come to be more. */
#ifndef HW_FIXED_CLASSES_H
#define HW_FIXED_CLASSES_H

#include "arena.h"
#include "arithmetic.h"

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

/* The index of a class in the arrays of the policy: a constant if there is only one class. */
static inline uint32_t fixed_at(const struct hw_fixed *f, uint32_t class_)
{
    if (f->count == 1u) {
        return 0;
    }
    return class_;
}

/* Where the number of blocks of a class that were ever used is kept. */
static inline uint32_t fixed_carved_at(const struct hw_fixed *f, uint32_t class_)
{
    if (f->count == 1u) {
        return f->carved_at;
    }
    return f->carved_at + 4u * class_;
}

/* Bytes from one block to the next. */
static inline uint32_t fixed_stride(const struct hw_fixed *f, uint32_t class_)
{
    return (f->sizes[fixed_at(f, class_)] + f->header + f->trailer + f->align - 1u) & ~(f->align - 1u);
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
    while (class_ < f->count && f->sizes[fixed_at(f, class_)] < n) {
        class_++;
    }
    return class_;
}

/* Looks up the smallest class that holds n bytes, which are no more than the largest holds. */
HW_HOT uint32_t fixed_class_mapped(const struct hw_fixed *f, uint32_t n)
{
    const uint32_t step = (uint32_t)1 << f->size_step;
    uint32_t class_ = f->size_map[(n + step - 1u) >> f->size_step];
    if (f->size_even == 0) {
        while (f->sizes[fixed_at(f, class_)] < n) {
            class_++;
        }
    }
    return class_;
}

/* The smallest class that holds n bytes; the number of classes where there is none, unless a map is looked at. */
HW_HOT uint32_t fixed_class(const struct hw_fixed *f, uint32_t n)
{
    if (f->doubles) {
        return fixed_class_doubled(f, n);
    }
    if (f->mapped) {
        return fixed_class_mapped(f, n);
    }
    return fixed_class_for(f, n);
}

static inline uint32_t fixed_head(const struct hw_fixed *f, uint32_t class_)
{
    if (f->count == 1u) {
        return f->heads_at;
    }
    return f->heads_at + class_ * f->links.field.bytes;
}

/* Looks up the class whose region holds this payload. */
HW_HOT uint32_t fixed_class_in_map(const struct hw_fixed *f, uint32_t at)
{
    uint32_t class_ = f->region_map[(at - f->blocks_at[0]) >> f->region_step];
    if (f->region_even == 0) {
        while (at >= f->ends_at[class_]) {
            class_++;
        }
    }
    return class_;
}

/* The class whose region holds this payload. O(classes). */
static inline uint32_t fixed_class_of_address(const struct hw_fixed *f, uint32_t at)
{
    if (f->count == 1u) {
        return 0;
    }
    if (f->mapped) {
        return fixed_class_in_map(f, at);
    }
    uint32_t class_ = f->count - 1u;
    while (class_ > 0 && at < f->blocks_at[fixed_at(f, class_)]) {
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
    return (at - f->header - f->blocks_at[fixed_at(f, class_)]) / fixed_stride(f, class_);
}

/* Most blocks of a class that there can be. */
static inline uint32_t fixed_blocks(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    if (f->grow) {
        return (load4(h, f->end_at) - load4(h, f->limit_at)) / fixed_stride(f, class_);
    }
    return f->counts[fixed_at(f, class_)];
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
    return index < load4(h, fixed_carved_at(f, class_)) &&
           f->blocks_at[fixed_at(f, class_)] + index * fixed_stride(f, class_) + f->header == at;
}

/* Whether the flag of a block says that it is free. */
static inline int fixed_is_flagged_free(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at)
{
    if (f->grow) {
        return (load_class(f, h, at) & HW_FIXED_TAKEN) == 0;
    }
    return load1(h, f->flags_at[fixed_at(f, class_)] + fixed_index_of(f, class_, at)) == 0;
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

/* The block freed last; 0 if there is none. */
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

/* ---- classes with counts ----------------------------------------------------------------------------------------- */

/* A block that was never used; 0 if there is none. */
static inline uint32_t fixed_carve(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    const uint32_t carved_at = fixed_carved_at(f, class_);
    const uint32_t carved = load4(h, carved_at);
    if (carved == f->counts[fixed_at(f, class_)]) {
        return 0;
    }
    if (f->links.hardened &&
        (carved > f->counts[fixed_at(f, class_)] || load1(h, f->flags_at[fixed_at(f, class_)] + carved) != 0)) {
        count_misuse(f->links.misused_at, h); /* blocks beyond the last carved are flagged as free */
        return 0;
    }
    HW_ASSERT(carved < f->counts[fixed_at(f, class_)]);
    store4(h, carved_at, carved + 1u);
    const uint32_t stride = fixed_stride(f, class_);
    note_covered(h, stride);
    note_block_made(h, f->header + f->trailer);
    return f->blocks_at[fixed_at(f, class_)] + carved * stride + f->header;
}

/* The first block whose flag is clear. O(blocks of the class). */
static inline uint32_t fixed_first_unflagged(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    const uint32_t carved = load4(h, fixed_carved_at(f, class_));
    if (f->links.hardened && carved > f->counts[fixed_at(f, class_)]) {
        count_misuse(f->links.misused_at, h);
        return 0;
    }
    for (uint32_t i = 0; i < carved; i++) {
        if (!skip_flags(f, h, class_, &i)) {
            break;
        }
        if (load1(h, f->flags_at[fixed_at(f, class_)] + i) == 0) {
            note_flag(f, h, class_, f->flags_at[fixed_at(f, class_)] + i, 1);
            store1(h, f->flags_at[fixed_at(f, class_)] + i, 1);
            return f->blocks_at[fixed_at(f, class_)] + i * fixed_stride(f, class_) + f->header;
        }
    }
    const uint32_t at = fixed_carve(f, h, class_);
    if (at) {
        note_flag(f, h, class_, f->flags_at[fixed_at(f, class_)] + carved, 1);
        store1(h, f->flags_at[fixed_at(f, class_)] + carved, 1);
    }
    return at;
}

/* ---- classes that grow ------------------------------------------------------------------------------------------- */

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

/* Adds one carved block to its class; `state` is what its header holds in addition to the class. */
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

#endif

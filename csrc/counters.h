/* counters.h: running counters, so that usage is known without a walk of the heap.
 *
 *     objects allocated | bytes in used blocks | objects freed | peak of the bytes up to the last free | most refused
 *
 * Five words of the control data, present if the recipe enables them. Each call updates them, at a cost of up to six
 * accesses and a load of the block's size. The peak is updated when bytes are about to fall and when it is read: in
 * between they only rise, so malloc need not compare. Words that one call changes are adjacent, for processors that
 * load two words at once. The checker compares the counters with a walk.
 *
 * Behind them, if the recipe counts by class:
 *
 *     blocks of class 0: in use, peak up to the last free | class 1 | ...
 *
 * Class i has blocks of 2^(3+i) to 2^(4+i)-1 bytes, header included: a free knows no other size. The first also has
 * smaller ones, the last larger ones.
 */
#ifndef HW_COUNTERS_H
#define HW_COUNTERS_H

#include "arena.h"
#include "arithmetic.h"

enum { HW_COUNT_MALLOCS = 0, HW_COUNT_USED = 4, HW_COUNT_FREES = 8, HW_COUNT_MOST = 12, HW_COUNT_REFUSED = 16 };

/* ---- by class ---------------------------------------------------------------------------------------------------- */

/* Where the blocks of a class are counted. */
static inline uint32_t size_class_at(const struct hw_policy *p, uint32_t of)
{
    return p->classes_at + of * 2u * p->tally.bytes;
}

/* The class of a block of `bytes` bytes. */
static inline uint32_t size_class(const struct hw_policy *p, uint32_t bytes)
{
    const uint32_t of = highest_bit(bytes | (uint32_t)1 << HW_CLASS_SHIFT) - HW_CLASS_SHIFT;
    return p->reach >> (HW_CLASS_SHIFT + HW_CLASSES) ? smaller(of, HW_CLASSES - 1u) : of;
}

/* Counts a block that is handed out in its class. */
static inline void count_in_class(const struct hw_policy *p, struct hw_heap *h, uint32_t bytes)
{
    const uint32_t at = size_class_at(p, size_class(p, bytes));
    store_field(&p->tally, h, at, load_field(&p->tally, h, at) + 1u);
}

/* Few calls come here, as to keep_most(). */
HW_COLD void keep_class_peak(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t blocks)
{
    store_field(&p->tally, h, at + p->tally.bytes, blocks);
}

/* Counts a block that is given back out of its class. */
static inline void count_out_of_class(const struct hw_policy *p, struct hw_heap *h, uint32_t bytes)
{
    const uint32_t at = size_class_at(p, size_class(p, bytes));
    const uint32_t blocks = load_field(&p->tally, h, at);
    HW_ASSERT(blocks != 0);
    if (blocks > load_field(&p->tally, h, at + p->tally.bytes)) {
        keep_class_peak(p, h, at, blocks);
    }
    store_field(&p->tally, h, at, blocks - 1u);
}

/* The most blocks of a class that ever were in use. */
static inline uint32_t class_peak(const struct hw_policy *p, struct hw_heap *h, uint32_t of)
{
    const uint32_t at = size_class_at(p, of);
    return larger(load_field(&p->tally, h, at), load_field(&p->tally, h, at + p->tally.bytes));
}

/* Keeps the size of the largest request that was refused in the end. */
HW_COLD void keep_refused(const struct hw_policy *p, struct hw_heap *h, size_t size)
{
    const uint32_t bytes = exceeds(size, HW_MAX_REQUEST) ? UINT32_MAX : (uint32_t)size;
    if (bytes > load4(h, p->counters_at + HW_COUNT_REFUSED)) {
        store4(h, p->counters_at + HW_COUNT_REFUSED, bytes);
    }
}

/* ---- in all ------------------------------------------------------------------------------------------------------ */

/* The most bytes that ever were in used blocks. */
static inline uint32_t most_used(const struct hw_policy *p, struct hw_heap *h)
{
    const uint32_t used = load4(h, p->counters_at + HW_COUNT_USED);
    const uint32_t most = load4(h, p->counters_at + HW_COUNT_MOST);
    return used > most ? used : most;
}

/* Counts a used block that had `had` bytes and has `has` now. */
static inline void count_change(const struct hw_policy *p, struct hw_heap *h, uint32_t had, uint32_t has)
{
    store4(h, p->counters_at + HW_COUNT_MOST, most_used(p, h));
    store4(h, p->counters_at + HW_COUNT_USED, load4(h, p->counters_at + HW_COUNT_USED) + (has - had));
    if (p->classes_at && size_class(p, had) != size_class(p, has)) {
        count_out_of_class(p, h, had);
        count_in_class(p, h, has);
    }
}

/* Counts an object that is handed out in a block of `bytes` bytes. */
static inline void count_malloc(const struct hw_policy *p, struct hw_heap *h, uint32_t bytes)
{
    const uint32_t mallocs = load4(h, p->counters_at + HW_COUNT_MALLOCS);
    const uint32_t used = load4(h, p->counters_at + HW_COUNT_USED);
    store4(h, p->counters_at + HW_COUNT_MALLOCS, mallocs + 1u);
    store4(h, p->counters_at + HW_COUNT_USED, used + bytes);
    if (p->classes_at) {
        count_in_class(p, h, bytes);
    }
}

/* Few calls come here: a branch that is not taken costs less than a store that is passed over. */
HW_COLD void keep_most(const struct hw_policy *p, struct hw_heap *h, uint32_t used)
{
    store4(h, p->counters_at + HW_COUNT_MOST, used);
}

/* Counts an object that is given back in a block of `bytes` bytes. */
static inline void count_free_call(const struct hw_policy *p, struct hw_heap *h, uint32_t bytes)
{
    const uint32_t used = load4(h, p->counters_at + HW_COUNT_USED);
    const uint32_t frees = load4(h, p->counters_at + HW_COUNT_FREES);
    HW_ASSERT(bytes <= used);
    if (used > load4(h, p->counters_at + HW_COUNT_MOST)) {
        keep_most(p, h, used);
    }
    store4(h, p->counters_at + HW_COUNT_USED, used - bytes);
    store4(h, p->counters_at + HW_COUNT_FREES, frees + 1u);
    if (p->classes_at) {
        count_out_of_class(p, h, bytes);
    }
}

#endif

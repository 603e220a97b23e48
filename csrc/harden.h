/* harden.h: what a free looks at before it believes a pointer and the metadata beside it.
 *
 *     none         nothing
 *     frees        that the pointer is an object's: inside the heap, aligned, its block in use and in no quick list
 *     neighbours   and that the block's size lies within the pool, and its neighbours' words and tags agree with it
 *     full         and that nobody wrote behind the object, or into it once it was freed; and links that are followed
 *
 * A wrong pointer is counted, the hook HW_MISUSED() is called, and the heap stays as it is. Each look is O(1), and none
 * leaves the arena: a size is believed only once it is known to lie between the pool's first block and its last.
 *
 * At level full a guard lies behind each payload, and in front of it padding up to what was asked for:
 *
 *     +--------+-----------------------+---------+-------+        +--------+--------------------+---------+-------+
 *     | header | object                | padding | guard |   or   | header | filled             |         | guard |
 *     +--------+-----------------------+---------+-------+        +--------+--------------------+---------+-------+
 *                                                                   freed, and waits
 *
 * The guard holds the bytes of padding, mixed with the heap's secret, the block's address and its capacity, so that it
 * vouches for the header, too. A freed block is filled and waits behind a few others before its pool has it back; then
 * what it is filled with is looked at. Whatever waits is given back before a request is refused.
 *
 * Sources: glibc 2.26 and later ("corrupted size vs. prev_size"); Zephyr's CONFIG_SYS_HEAP_HARDENING, for the levels;
 * OpenBSD's malloc, for blocks that wait ("delayed free") and what they are filled with; glibc 2.32, for masked links.
 */
#ifndef HW_HARDEN_H
#define HW_HARDEN_H

#include "pool_buddy.h"
#include "pool_compact.h"
#include "pool_fixed.h"
#include "pool_general.h"
#include "pool_partition.h"

/* Whether the block that ends at b, which a flag or tag says is free, tells of itself what its tag does. */
HW_HOT int is_free_ahead_sound(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    const uint32_t size = size_before(g, h, b);
    if (g->tag_in_header && size == 0) {
        return 1; /* none to merge with */
    }
    if (!is_size_within(g, g->start, size, b)) {
        return 0;
    }
    return (load_word(g, h, b - size) | HW_PREV_USED) == size_word(g, size, HW_PREV_USED);
}

/* Whether what the free block b, with this word, tells of itself can be. */
static inline int is_free_sound(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word, uint32_t top)
{
    const uint32_t size = word_size(g, word);
    if (!is_size_within(g, b, size, top)) {
        return 0;
    }
    return !g->boundary_tags || (b + size == top && !g->end_word) || size_before(g, h, b + size) == size;
}

/* Whether the block at `next` knows that the one before it is in use, and could lie there. */
HW_HOT int is_next_sound(const struct hw_general *g, struct hw_heap *h, uint32_t next, uint32_t top)
{
    if (next == top && !g->end_word) {
        return 1;
    }
    if (g->victim_up_to && next == load4(h, g->victim_at)) {
        return 1;
    }
    const uint32_t word = load_word(g, h, next);
    if (has_flag_before(g) && (word & HW_PREV_USED) == 0) {
        return 0;
    }
    if (g->tag_in_header && size_before(g, h, next) != 0) {
        return 0;
    }
    if (g->checks == HW_CHECKS_FULL && merges_with(g, h, word)) {
        return is_free_sound(g, h, next, word, top);
    }
    return word_size(g, word) <= top - next;
}

/* Whether the metadata at the used block with this payload, and beside it, agrees. The kinds whose blocks lie in fixed
 * places have none that could disagree. */

HW_HOT int general_is_sound(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = block_of(g, h, at);
    const uint32_t top = load4(h, g->top_at);
    const uint32_t word = load_word(g, h, b);
    const uint32_t size = word_size(g, word);
    if (!is_size_within(g, b, size, top)) {
        return 0;
    }
    if (g->checks != HW_CHECKS_FULL && g->word.bytes == 4) {
        return 1; /* the header is masked, which vouches for the size; neighbours are looked at when they are merged */
    }
    if (!is_next_sound(g, h, b + size, top)) {
        return 0;
    }
    if (!g->boundary_tags || (has_flag_before(g) && (word & HW_PREV_USED))) {
        return 1;
    }
    return is_free_ahead_sound(g, h, b);
}

static inline int fixed_is_sound(const struct hw_fixed *f, struct hw_heap *h, uint32_t at)
{
    (void)f;
    (void)h;
    (void)at;
    return 1;
}

static inline int buddy_is_sound(const struct hw_buddy *y, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = at - y->header;
    const uint32_t top = load4(h, y->top_at);
    const uint32_t size = order_size(y, load_order(y, h, b) >> 1);
    if (((b - y->start) & (size - 1u)) != 0 || size > top - b) {
        return 0;
    }
    return b + size == top || load_order(y, h, b + size) >> 1 < y->orders;
}

static inline int partition_is_sound(const struct hw_partition *g, struct hw_heap *h, uint32_t at)
{
    const uint32_t table = partition_table(g, h);
    const uint32_t i = partition_number(g, at);
    const uint32_t count = load_number(g, h, count_at(g, table, i)) >> 1;
    if (count == 0 || count > load4(h, g->top_at) + 1u - i) {
        return 0;
    }
    return g->coalesce == HW_NEVER || load_number(g, h, first_at(g, table, i + count - 1u)) == i;
}

/* ---- boundaries ------------------------------------------------------------------------------------------------- */

/* Whether what a pool's control data says of its boundaries can be, in an arena that ends at `end`. */

static inline int general_is_bounded(const struct hw_general *g, struct hw_heap *h, uint32_t end)
{
    const uint32_t top = load4(h, g->top_at);
    const uint32_t high = load4(h, g->high_at);
    const uint32_t limit = load4(h, g->limit_at);
    if (limit > (g->region ? g->start + g->region : end) || high > limit || top < g->start || top > limit) {
        return 0;
    }
    if (g->victim_up_to) {
        const uint32_t victim = load4(h, g->victim_at);
        const uint32_t victim_end = load4(h, g->victim_at + 4u);
        if (victim_end != 0 &&
            (victim < g->start || victim > victim_end || victim_end > top ||
             (((victim - g->start) | (victim_end - g->start)) & (((uint32_t)1 << g->unit_shift) - 1u)) != 0)) {
            return 0;
        }
    }
    if (g->end_word && top != g->start) {
        return limit - top >= g->header && ((top - g->start) & (((uint32_t)1 << g->unit_shift) - 1u)) == 0;
    }
    return g->top == HW_TOP_LIST || top <= high;
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

static inline int buddy_is_bounded(const struct hw_buddy *y, struct hw_heap *h, uint32_t end)
{
    const uint32_t top = load4(h, y->top_at);
    const uint32_t high = load4(h, y->high_at);
    const uint32_t limit = load4(h, y->limit_at);
    return limit <= (y->region ? y->start + y->region : end) && high <= limit && top >= y->start && top <= high &&
           ((top - y->start) & (order_size(y, 0) - 1u)) == 0;
}

static inline int partition_is_bounded(const struct hw_partition *g, struct hw_heap *h, uint32_t end)
{
    const uint32_t top = load4(h, g->top_at);
    const uint32_t high = load4(h, g->high_at);
    if (high < g->start || top > g->most || top > (high - g->start) / g->partition) {
        return 0;
    }
    if (g->grow) {
        const uint32_t limit = load4(h, g->limit_at);
        return limit <= end && high <= limit && top <= (end - limit) / g->descriptor;
    }
    return high <= g->end;
}

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

/* ---- guards ------------------------------------------------------------------------------------------------------ */

/* What the guard of a block is mixed with. */
HW_HOT uint32_t guard_key(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity)
{
    return mixed(h, p->keys_at, at * 0x85ebca6bu + capacity);
}

/* What fills the padding in front of a guard; never 0, which programs write behind their texts. */
HW_HOT uint32_t guard_padding(uint32_t key)
{
    return key >> 24 | 1u;
}

/* An odd factor, and the one that undoes it: any changed bit of a guard makes of its padding an impossible number. */
HW_HOT uint32_t guard_word(uint32_t key, uint32_t padding)
{
    return (padding ^ key) * 0x9e3779b1u;
}

HW_HOT uint32_t guard_tells(uint32_t key, uint32_t word)
{
    return word * 0x0e8b2f51u ^ key;
}

/* Marks where an object of n bytes ends. */
HW_HOT void guard_set(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity, uint32_t n)
{
    const uint32_t key = guard_key(p, h, at, capacity);
    const uint32_t padding = capacity - n;
    const uint32_t filled = padding < HW_PADDED ? padding : HW_PADDED;
    for (uint32_t i = 0; i < filled; i++) {
        store1(h, at + n + i, guard_padding(key));
    }
    store_field(&p->guard, h, at + capacity, guard_word(key, padding));
}

/* Bytes between an object and its guard; more than the capacity where the guard is no object's. */
HW_HOT uint32_t guarded_padding(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity)
{
    return guard_tells(guard_key(p, h, at, capacity), load_field(&p->guard, h, at + capacity));
}

/* Whether nobody wrote behind the object. */
HW_HOT int is_guard_whole(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity)
{
    const uint32_t padding = guarded_padding(p, h, at, capacity);
    if (padding > capacity) {
        return 0;
    }
    const uint32_t filler = guard_padding(guard_key(p, h, at, capacity));
    const uint32_t filled = padding < HW_PADDED ? padding : HW_PADDED;
    for (uint32_t i = 0; i < filled; i++) {
        if (load1(h, at + capacity - padding + i) != filler) {
            return 0;
        }
    }
    return 1;
}

/* ---- freed blocks that wait -------------------------------------------------------------------------------------- */

/* What the guard of a block says that waits: no object's does. */
HW_HOT uint32_t waiting_word(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity)
{
    return guard_word(~guard_key(p, h, at, capacity), 0);
}

/* What fills the word i of a freed payload: of one block's words another one's tell nothing. */
HW_HOT uint32_t fill_word(uint32_t key, uint32_t i)
{
    return (key ^ i) * 0x9e3779b1u;
}

HW_HOT uint32_t fill_key(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    return mixed(h, p->keys_at, ~at);
}

/* Words from one that is filled to the next between both ends of a payload. */
HW_HOT uint32_t fill_stride(uint32_t words)
{
    return words / HW_SAMPLED + 1u;
}

/* The word of a freed payload that is filled after the word i: all of the first and of the last HW_FILLED bytes, and
 * between them at most HW_SAMPLED words in equal steps. */
HW_HOT uint32_t next_filled(uint32_t words, uint32_t stride, uint32_t i)
{
    return i < HW_FILLED / 4u || i + HW_FILLED / 4u + stride > words ? i + 1u : i + stride;
}

/* Fills a freed block, and marks that it waits. */
HW_HOT void wait_fill(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity)
{
    const uint32_t key = fill_key(p, h, at);
    const uint32_t words = capacity / 4u;
    const uint32_t stride = fill_stride(words);
    for (uint32_t i = 0; i < words; i = next_filled(words, stride, i)) {
        store_field(&p->guard, h, at + 4u * i, fill_word(key, i));
    }
    store_field(&p->guard, h, at + capacity, waiting_word(p, h, at, capacity));
}

/* Whether a block waits, as its guard tells. */
HW_HOT int is_waiting(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity)
{
    return load_field(&p->guard, h, at + capacity) == waiting_word(p, h, at, capacity);
}

/* Whether nobody wrote into a block while it waited. */
HW_HOT int is_fill_whole(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity)
{
    const uint32_t key = fill_key(p, h, at);
    const uint32_t words = capacity / 4u;
    const uint32_t stride = fill_stride(words);
    for (uint32_t i = 0; i < words; i = next_filled(words, stride, i)) {
        if (load_field(&p->guard, h, at + 4u * i) != fill_word(key, i)) {
            return 0;
        }
    }
    return 1;
}

#endif

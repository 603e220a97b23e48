/* harden.h: what free validates before it trusts a pointer and the metadata around it.
 *
 *     none         nothing
 *     frees        the pointer is an object's: inside the heap, aligned, its block in use and not cached
 *     neighbours   and the block's size lies within the pool, and its neighbours' words and tags agree with it
 *     full         and no write went past the object, or into it after it was freed; and each link that is followed
 *
 * An invalid pointer is counted, the hook HW_MISUSED() is called, and the heap stays unchanged. Each check is O(1) and
 * stays inside the arena: a size is used only if the block it implies lies between the pool's first and last.
 *
 * At level full each payload ends with a guard, preceded by the padding behind the requested size:
 *
 *     +--------+-----------------------+---------+-------+        +--------+--------------------+---------+-------+
 *     | header | object                | padding | guard |   or   | header | filled             |         | guard |
 *     +--------+-----------------------+---------+-------+        +--------+--------------------+---------+-------+
 *                                                                   freed, quarantined
 *
 * The guard holds the number of padding bytes, mixed with the heap's secret, the block's address and its capacity, so
 * that it also authenticates the header. A freed block is filled and quarantined behind a few others before its pool
 * gets it back; its fill is verified then. All quarantined blocks are released before a request fails.
 *
 * Sources: glibc 2.26 and later ("corrupted size vs. prev_size"); Zephyr's CONFIG_SYS_HEAP_HARDENING, for the levels;
 * OpenBSD's malloc, for the quarantine ("delayed free") and its fill; glibc 2.32, for masked links.
 */
#ifndef HW_HARDEN_H
#define HW_HARDEN_H

#include "heap.h"

/* ---- guards ------------------------------------------------------------------------------------------------------ */

/* What the guard of a block is mixed with. */
HW_HOT uint32_t guard_key(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity)
{
    if (skip_mixing(h)) {
        return 0;
    }
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
    if (!skip_padding(h, filled, 1)) {
        for (uint32_t i = 0; i < filled; i++) {
            store1(h, at + n + i, guard_padding(key));
        }
    }
    store_field(&p->guard, h, at + capacity, guard_word(key, padding));
}

/* Bytes between an object and its guard; more than the capacity where the guard is no object's. */
HW_HOT uint32_t guarded_padding(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity)
{
    return guard_tells(guard_key(p, h, at, capacity), load_field(&p->guard, h, at + capacity));
}

/* Whether the guard is intact: no write went past the object. */
HW_HOT int is_guard_whole(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity)
{
    const uint32_t padding = guarded_padding(p, h, at, capacity);
    if (padding > capacity) {
        return 0;
    }
    const uint32_t filler = guard_padding(guard_key(p, h, at, capacity));
    const uint32_t filled = padding < HW_PADDED ? padding : HW_PADDED;
    if (skip_padding(h, filled, 0)) {
        return 1;
    }
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

/* The fill of word i of a freed payload: the words of one block do not reveal those of another. */
HW_HOT uint32_t fill_word(uint32_t key, uint32_t i)
{
    return (key ^ i) * 0x9e3779b1u;
}

HW_HOT uint32_t fill_key(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (skip_mixing(h)) {
        return 0;
    }
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
    if (!skip_filling(p, h, words, 1)) {
        for (uint32_t i = 0; i < words; i = next_filled(words, stride, i)) {
            store_field(&p->guard, h, at + 4u * i, fill_word(key, i));
        }
    }
    store_field(&p->guard, h, at + capacity, waiting_word(p, h, at, capacity));
}

/* Whether a block is quarantined, by its guard. */
HW_HOT int is_waiting(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity)
{
    return load_field(&p->guard, h, at + capacity) == waiting_word(p, h, at, capacity);
}

/* Whether the fill is intact: no write went into the block while it was quarantined. */
HW_HOT int is_fill_whole(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t capacity)
{
    const uint32_t key = fill_key(p, h, at);
    const uint32_t words = capacity / 4u;
    const uint32_t stride = fill_stride(words);
    if (skip_filling(p, h, words, 0)) {
        return 1;
    }
    for (uint32_t i = 0; i < words; i = next_filled(words, stride, i)) {
        if (load_field(&p->guard, h, at + 4u * i) != fill_word(key, i)) {
            return 0;
        }
    }
    return 1;
}

/* ---- what may be used -------------------------------------------------------------------------------------------- */

/* The address of a pointer into the arena. */
static inline uint32_t address_of(const struct hw_policy *p, struct hw_heap *h, const void *pointer)
{
    if (p->checks && UINTPTR_MAX > UINT32_MAX && exceeds(arena_offset(h, pointer), p->reach)) {
        return 0; /* not a payload's address; with 32-bit addresses the check against the arena's end suffices */
    }
    return (uint32_t)arena_offset(h, pointer);
}

/* Whether a block in use is an object: in no quick list, and at level full with a guard behind it. */
HW_HOT int heap_has_object(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (p->checks == HW_CHECKS_FULL) {
        return is_guard_whole(p, h, at, heap_capacity(p, h, at));
    }
    return !heap_is_cached(p, h, at);
}

/* Whether the boundaries that each pool keeps in the control data can be, so that no call leaves the arena by them. */
HW_COLD int heap_is_bounded(const struct hw_policy *p, struct hw_heap *h)
{
    if (skip_bounds(h)) {
        return 1;
    }
    for (uint32_t i = 0; i < p->pool_count; i++) {
        if (holds_blocks(&p->pools[i]) && !pool_is_bounded(p, &p->pools[i], h)) {
            count_misuse(p->misused_at, h);
            return 0;
        }
    }
    return 1;
}

/* Counts a pointer that is no used block; 0 for such a one. */
HW_HOT int is_usable(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (p->checks == HW_CHECKS_FULL && !heap_is_bounded(p, h)) {
        return 0;
    }
    if (p->checks && (!heap_has_used(p, h, at) || !heap_has_object(p, h, at))) {
        count_misuse(p->misused_at, h);
        return 0;
    }
    return 1;
}

/* ---- waiting, at level full -------------------------------------------------------------------------------------- */

/* Releases a quarantined block to its pool; one that was written to meanwhile is leaked on purpose. */
HW_COLD void end_wait(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (!heap_has_used(p, h, at) || !is_waiting(p, h, at, heap_capacity(p, h, at)) ||
        !is_fill_whole(p, h, at, heap_capacity(p, h, at))) {
        count_misuse(p->misused_at, h);
        return;
    }
    sealed_free(p, h, at);
}

/* Lets a freed block wait, in the place of the one that waited longest. */
static inline void start_wait(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    const uint32_t turn = load4(h, p->waiting_at) % HW_WAITING;
    const uint32_t place = p->waiting_at + 4u + 4u * turn;
    const uint32_t longest = load4(h, place);
    wait_fill(p, h, at, heap_capacity(p, h, at));
    store4(h, place, at);
    store4(h, p->waiting_at, turn + 1u);
    if (longest) {
        end_wait(p, h, longest);
    }
}

/* Gives all blocks that wait to their pools, and returns how many did. */
HW_COLD uint32_t end_all_waits(const struct hw_policy *p, struct hw_heap *h)
{
    uint32_t ended = 0;
    for (uint32_t i = 0; i < HW_WAITING; i++) {
        const uint32_t place = p->waiting_at + 4u + 4u * i;
        const uint32_t at = load4(h, place);
        if (at) {
            store4(h, place, 0);
            end_wait(p, h, at);
            ended++;
        }
    }
    return ended;
}

/* Gives all blocks that wait to their pools, so that a request need not be refused; the refusal is forgotten. 0 where
 * none waits. */
static inline int can_try_again(const struct hw_policy *p, struct hw_heap *h)
{
    if (end_all_waits(p, h) == 0) {
        return 0;
    }
    store4(h, p->refused_at, load4(h, p->refused_at) - 1u);
    return 1;
}

/* ---- serving and freeing as the level says ----------------------------------------------------------------------- */

/* At level full, marks where an object of n bytes ends; an empty one has a byte. */
HW_HOT void mark_end(const struct hw_policy *p, struct hw_heap *h, uint32_t at, size_t n)
{
    if (p->checks == HW_CHECKS_FULL) {
        guard_set(p, h, at, heap_capacity(p, h, at), n == 0 ? 1u : (uint32_t)n);
    }
}

/* Whether a block about to be returned still matches its header; one that was overwritten is leaked on purpose. */
HW_COLD int is_sound_still(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (heap_has_used(p, h, at)) {
        return 1;
    }
    count_misuse(p->misused_at, h);
    return 0;
}

/* Serves a request that is guarded. */
HW_HOT void *malloc_guarded(const struct hw_policy *p, struct hw_heap *h, size_t size, uint32_t site)
{
    void *memory;
    if (!heap_is_bounded(p, h)) {
        count_refused(p, h);
        return NULL;
    }
    do {
        memory = sealed_malloc(p, h, size, site);
    } while (memory ? !is_sound_still(p, h, address_of(p, h, memory)) : can_try_again(p, h));
    if (memory) {
        mark_end(p, h, address_of(p, h, memory), size);
    }
    return memory;
}

static inline uint32_t malloc_aligned_guarded(const struct hw_policy *p, struct hw_heap *h, uint32_t alignment,
                                              uint32_t n)
{
    uint32_t at;
    if (!heap_is_bounded(p, h)) {
        count_refused(p, h);
        return 0;
    }
    do {
        at = sealed_malloc_aligned(p, h, alignment, n);
    } while (at ? !is_sound_still(p, h, at) : can_try_again(p, h));
    if (at) {
        mark_end(p, h, at, (size_t)n);
    }
    return at;
}

/* Serves `size` bytes, guarded where the level says so: the payload, or NULL. */
HW_HOT void *heap_serve(const struct hw_policy *p, struct hw_heap *h, size_t size, uint32_t site)
{
    if (p->checks == HW_CHECKS_FULL) {
        return malloc_guarded(p, h, size, site);
    }
    return sealed_malloc(p, h, size, site);
}

/* Serves n bytes at a larger alignment, guarded where the level says so: the address of the payload, or 0. */
static inline uint32_t serve_aligned(const struct hw_policy *p, struct hw_heap *h, uint32_t alignment, uint32_t n)
{
    if (p->checks == HW_CHECKS_FULL) {
        return malloc_aligned_guarded(p, h, alignment, n);
    }
    return sealed_malloc_aligned(p, h, alignment, n);
}

/* Frees an object, at level full once it has waited. */
HW_HOT void free_object(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (p->checks == HW_CHECKS_FULL) {
        start_wait(p, h, at);
        return;
    }
    sealed_free(p, h, at);
}

/* Bytes that an object may have: those asked for where a guard lies behind them. */
static inline uint32_t usable_bytes(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (p->checks == HW_CHECKS_FULL) {
        const uint32_t capacity = heap_capacity(p, h, at);
        const uint32_t padding = guarded_padding(p, h, at, capacity);
        return padding > capacity ? 0 : capacity - padding;
    }
    return heap_capacity(p, h, at);
}

#endif

/* pool.h: one pool of any kind.
 *
 * All pools have one interface. Each kind implements it in a file of its own, or a folder of the same name, with
 * functions prefixed by its name. Only this file knows which kinds there are. `at` is the address of a payload:
 *
 *     init         writes the pool's control data
 *     find         serves n bytes without raising the high-water mark: the address of the payload, or 0
 *     grow         serves n bytes with memory that was never used: the address of the payload, or 0
 *     owns         whether the payload lies in the pool's part of the arena
 *     capacity     bytes that the payload can hold
 *     block_bytes  bytes of its block, header included
 *     is_used      whether a block with this payload is allocated or cached, by its metadata
 *     is_sound     whether its metadata and that of its neighbours agree
 *     release      takes the block back
 *     resize       makes the block hold n bytes without a search: the address of the payload; 0: nothing changed
 *     is_bounded   whether the pool's boundaries in the control data are plausible
 *     block_at     describes the block at an address, 0 being the pool's first; returns 0 behind the last one
 *     statistics   adds to the statistics what memory beyond the blocks could serve, and corrects the
 *                  peak, which counts all regions and nothing at the arena's end
 *     largest      the largest request that one free block could serve, after at most `looks` blocks
 *     check        the broken invariant, HW_BROKEN_...; 0 if there is none
 *
 * Two kinds implement less: a quick pool has no blocks of its own, and implements only find; the blocks of a compact
 * pool move, so none of its functions takes an address.
 */
#ifndef HW_POOL_H
#define HW_POOL_H

#include "pool_buddy.h"
#include "pool_compact.h"
#include "pool_fixed.h"
#include "pool_general.h"
#include "pool_partition.h"
#include "pool_quick.h"
#include "requests.h"

/* Asks a pool whose blocks stay where they are: HW_ASK_OWNER(pool, find, h, n) is general_find(&pool->general, h, n)
 * where the pool is a general one. */
#define HW_ASK_OWNER(pool, what, ...)                                                                                  \
    ((pool)->kind == HW_GENERAL ? general_##what(&(pool)->general, __VA_ARGS__)                                        \
     : (pool)->kind == HW_FIXED ? fixed_##what(&(pool)->fixed, __VA_ARGS__)                                            \
     : (pool)->kind == HW_BUDDY ? buddy_##what(&(pool)->buddy, __VA_ARGS__)                                            \
                                : partition_##what(&(pool)->partition, __VA_ARGS__))

/* Asks a pool whose blocks may also move. */
#define HW_ASK(pool, what, ...)                                                                                        \
    ((pool)->kind == HW_COMPACT ? compact_##what(&(pool)->compact, __VA_ARGS__) : HW_ASK_OWNER(pool, what, __VA_ARGS__))

/* Whether a block that looks used is a free one, where the pool lists such. O(list). */
#define HW_IS_LISTED_FREE(pool, h, at)                                                                                 \
    ((pool)->kind == HW_FIXED && fixed_##is_free(&(pool)->fixed, h, fixed_class_of(&(pool)->fixed, h, at), at))

/* ---- what sets kinds apart --------------------------------------------------------------------------------------- */

/* Whether blocks are made by the pool: a quick one only keeps those of the pools below it. */
static inline int holds_blocks(const struct hw_pool *pool)
{
    return pool->kind != HW_QUICK;
}

/* Whether a block can be cut into several at any multiple of the alignment. */
static inline int cuts_blocks(const struct hw_pool *pool)
{
    return pool->kind == HW_GENERAL;
}

/* Whether blocks move, so that only their handles lead to them. */
static inline int pool_moves(const struct hw_pool *pool)
{
    return pool->kind == HW_COMPACT;
}

/* Whether blocks that look used may be free. */
static inline int lists_used(const struct hw_pool *pool)
{
    return pool->kind == HW_FIXED;
}

/* Whether blocks that come back may serve a request for which the pool has none: not where each size has a number of
 * blocks of its own. */
static inline int pool_gains(const struct hw_pool *pool)
{
    return pool->kind != HW_FIXED || pool->fixed.grow;
}

/* Whether a block that is made smaller may have to move. */
static inline int pool_moves_to_shrink(const struct hw_pool *pool)
{
    return pool->kind == HW_GENERAL &&
           (pool->general.resize == HW_RESIZE_MOVE || pool->general.resize == HW_RESIZE_KEEP_HALF ||
            pool->general.resize == HW_RESIZE_SHRINK);
}

/* ---- serving ----------------------------------------------------------------------------------------------------- */

static inline void pool_init(const struct hw_pool *pool, struct hw_heap *h)
{
    if (pool->kind == HW_QUICK) {
        quick_init(&pool->quick, h);
        return;
    }
    HW_ASK(pool, init, h);
}

/* Whether a pool is offered a request of a size that nothing has bounded. */
static inline int pool_admits(const struct hw_pool *pool, const uint32_t most, size_t size)
{
    if (pool->min_size > 1u && !exceeds(size, pool->min_size - 1u)) {
        return 0;
    }
    if (pool->kind == HW_QUICK && most == HW_MAX_REQUEST) {
        return 1; /* what its lists do not hold, it has not */
    }
    return !exceeds(size, most);
}

/* Whether a pool serves a class of call sites; requests of class 0 are those that name none. */
static inline int pool_serves_site(const struct hw_pool *pool, uint32_t site)
{
    return pool->site == 0 || pool->site == site;
}

/* Serves n bytes from what is at hand: the address of the payload, or 0. */
HW_HOT uint32_t pool_hit(const struct hw_pool *pool, struct hw_heap *h, uint32_t n)
{
    if (pool->kind == HW_GENERAL) {
        return general_hit(&pool->general, h, n);
    }
    return HW_ASK_OWNER(pool, find, h, n);
}

/* Whether what is at hand is not all that the pool has without growing. */
static inline int pool_searches(const struct hw_pool *pool)
{
    return pool->kind == HW_GENERAL && pool->general.victim_up_to;
}

/* Goes on where nothing is at hand, without growing: the address of the payload, or 0. */
static inline uint32_t pool_search(const struct hw_pool *pool, struct hw_heap *h, uint32_t n)
{
    return general_search(&pool->general, h, n);
}

/* Serves n bytes without growing: the address of the payload, or 0. */
static inline uint32_t pool_find(const struct hw_pool *pool, struct hw_heap *h, uint32_t n)
{
    if (pool->kind == HW_QUICK) {
        return quick_find(&pool->quick, h, n);
    }
    return HW_ASK_OWNER(pool, find, h, n);
}

/* Serves `size` bytes from quick lists alone: the address of the payload, or 0. */
static inline uint32_t pool_find_cached(const struct hw_pool *pool, struct hw_heap *h, size_t size)
{
    if (pool->kind == HW_QUICK) {
        return quick_find(&pool->quick, h, size);
    }
    return 0;
}

static inline uint32_t pool_grow(const struct hw_pool *pool, struct hw_heap *h, uint32_t n)
{
    return HW_ASK_OWNER(pool, grow, h, n);
}

/* A block of `size` bytes or a little more, without growing: for calls that are rare. */
HW_COLD uint32_t find_again(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    return find_block(g, h, size);
}

/* Serves n bytes without growing, once lists were emptied: the address of the payload, or 0. */
static inline uint32_t pool_find_again(const struct hw_pool *pool, struct hw_heap *h, uint32_t n)
{
    if (pool->kind == HW_GENERAL) {
        const uint32_t b = find_again(&pool->general, h, block_size_for(&pool->general, n));
        return b ? hand_out(&pool->general, h, b) : 0;
    }
    return pool_find(pool, h, n);
}

/* ---- one block --------------------------------------------------------------------------------------------------- */

/* Whether the block with this payload came from the pool. The last pool is only asked about what no other owns. */
static inline int pool_owns(const struct hw_pool *pool, struct hw_heap *h, uint32_t at)
{
    if (pool->kind == HW_QUICK) {
        return 0;
    }
    if (pool->last) {
        return 1;
    }
    return HW_ASK_OWNER(pool, owns, h, at);
}

static inline uint32_t pool_capacity(const struct hw_pool *pool, struct hw_heap *h, uint32_t at)
{
    return HW_ASK_OWNER(pool, capacity, h, at);
}

HW_HOT int pool_is_used(const struct hw_pool *pool, struct hw_heap *h, uint32_t at)
{
    return HW_ASK_OWNER(pool, is_used, h, at);
}

HW_HOT int pool_is_sound(const struct hw_pool *pool, struct hw_heap *h, uint32_t at)
{
    return HW_ASK_OWNER(pool, is_sound, h, at);
}

/* Gives a block back to the pool that made it, past the quick lists. */
static inline void pool_release(const struct hw_pool *pool, struct hw_heap *h, uint32_t at)
{
    HW_ASK_OWNER(pool, release, h, at);
}

static inline uint32_t pool_resize(const struct hw_pool *pool, struct hw_heap *h, uint32_t at, uint32_t n)
{
    return HW_ASK_OWNER(pool, resize, h, at, n);
}

/* ---- blocks that can be cut: in bytes with their headers -----------------------------------------------------------
 */

/* Bytes of a block for n bytes. */
static inline uint32_t pool_block_size(const struct hw_pool *pool, uint32_t n)
{
    if (pool->kind == HW_GENERAL) {
        return block_size_for(&pool->general, n);
    }
    return 0;
}

/* Bytes of a block in which n bytes can be aligned so. */
static inline uint32_t pool_aligned_size(const struct hw_pool *pool, const uint32_t search, uint32_t n,
                                         uint32_t alignment)
{
    if (pool->kind == HW_GENERAL) {
        return aligned_size_for(&pool->general, search, n, alignment);
    }
    return 0;
}

/* A used block of `size` bytes or a little more, without growing; 0 where there is none. */
static inline uint32_t pool_find_block(const struct hw_pool *pool, struct hw_heap *h, uint32_t size)
{
    if (pool->kind == HW_GENERAL) {
        return find_again(&pool->general, h, size);
    }
    return 0;
}

/* A used block from memory that was never used; 0 where there is none. */
static inline uint32_t pool_grow_block(const struct hw_pool *pool, struct hw_heap *h, uint32_t size)
{
    if (pool->kind == HW_GENERAL) {
        return grow_block(&pool->general, h, size);
    }
    return 0;
}

/* Moves the start of a used block up to where its payload is aligned; returns where it is then. */
static inline uint32_t pool_align_block(const struct hw_pool *pool, struct hw_heap *h, uint32_t b, uint32_t alignment)
{
    if (pool->kind == HW_GENERAL) {
        return align_block(&pool->general, h, b, alignment);
    }
    return b;
}

/* Gives back what a used block has beyond `size` behind its aligned payload. */
static inline void pool_trim_block(const struct hw_pool *pool, const uint32_t search, struct hw_heap *h, uint32_t b,
                                   uint32_t size)
{
    pool->kind == HW_GENERAL ? trim_aligned(&pool->general, search, h, b, size) : (void)0;
}

/* The payload of a used block that is handed out. */
static inline uint32_t pool_hand_out(const struct hw_pool *pool, struct hw_heap *h, uint32_t b)
{
    if (pool->kind == HW_GENERAL) {
        return hand_out(&pool->general, h, b);
    }
    return b;
}

/* ---- looking from outside ---------------------------------------------------------------------------------------- */

/* Describes the block at `at`, 0 being the pool's first; returns 0 behind the last one. In a fixed pool, and in one
 * below quick lists, a block reported as used may also be one cached in a list, see block_state().
 */
static inline int pool_block_at(const struct hw_pool *pool, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    return HW_ASK(pool, block_at, h, at, block);
}

/* Bytes that the payload of a used block holds. */
static inline uint32_t block_capacity(const struct hw_pool *pool, struct hw_heap *h, const struct hw_block *block)
{
    if (pool->kind == HW_FIXED) {
        return fixed_capacity(&pool->fixed, h, block->offset + block->header);
    }
    if (pool->kind == HW_GENERAL) {
        return block->size - block->header - pool->general.trailer;
    }
    return block->size - block->header - (pool->kind == HW_BUDDY ? pool->buddy.trailer : pool->partition.trailer);
}

/* Whether all free neighbours are one block. */
static inline int pool_merges_at_once(const struct hw_pool *pool)
{
    return pool->kind == HW_GENERAL && merges_at_once(&pool->general);
}

/* The largest request that the block serves once it is free, with what is free in `before` bytes in front of it; or
 * less. */
static inline uint32_t pool_within(const struct hw_pool *pool, struct hw_heap *h, const struct hw_block *block,
                                   uint32_t before)
{
    if (pool->kind == HW_GENERAL) {
        return general_within(&pool->general, h, block->offset - before, before + block->size);
    }
    return block_capacity(pool, h, block);
}

/* Bytes of a block whose payload holds `capacity` bytes; of the largest class if none does, as on a damaged list. */
static inline uint32_t bytes_with(const struct hw_pool *pool, uint32_t capacity)
{
    if (pool->kind == HW_GENERAL) {
        return capacity + pool->general.overhead;
    }
    if (pool->kind == HW_FIXED) {
        const uint32_t class_ = fixed_class_for(&pool->fixed, capacity);
        return fixed_stride(&pool->fixed, class_ < pool->fixed.count ? class_ : pool->fixed.count - 1u);
    }
    return pool->kind == HW_BUDDY ? capacity + pool->buddy.header + pool->buddy.trailer
                                  : capacity + pool->partition.trailer;
}

/* Whether a block's own metadata shows that it is free, without a walk. */
static inline int pool_marks_free(const struct hw_pool *pool)
{
    return pool->kind == HW_FIXED && pool->fixed.flags;
}

/* Adds free blocks to the statistics that were taken for used ones, because they bear no mark. O(free blocks). */
static inline void pool_count_unmarked(const struct hw_pool *pool, struct hw_heap *h, struct hw_statistics *stats)
{
    pool->kind == HW_FIXED && !pool->fixed.flags ? count_fixed_lists(&pool->fixed, h, stats) : (void)0;
}

#endif

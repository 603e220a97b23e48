/* quick_lists.h: free-list caches (quick lists) of freed blocks in front of the pools that own them.
 *
 *     free:    owner -> a quick list above it that takes the block; else the owner itself
 *     flush:   quick list -> owner, when its limit is reached, before the heap grows, or before a request fails
 *     turn:    quick list -> older list -> owner, as requests miss the lists
 */
#ifndef HW_CACHING_H
#define HW_CACHING_H

#include "ownership.h"

/* ---- flushing ---------------------------------------------------------------------------------------------------- */

/* Empties one quick list into the pools below. O(blocks in the list) releases. */
HW_COLD void flush_list(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h, uint32_t list)
{
    uint32_t at = quick_pop(q, h, list);
    while (at) {
        heap_release(p, h, at);
        at = quick_pop(q, h, list);
    }
}

/* Gives back what has waited in a list since the last turn; 0 where nothing has. O(blocks of it) releases. */
static inline int release_older(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h, uint32_t list)
{
    int released = 0;
    uint32_t at = quick_pop(q, h, quick_older(q, list));
    while (at) {
        heap_release(p, h, at);
        released = 1;
        at = quick_pop(q, h, quick_older(q, list));
    }
    return released;
}

/* Gives back all that has waited since the last turn; 0 where nothing has. O(lists + blocks of it) releases. */
HW_COLD int release_idle(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h)
{
    int released = 0;
    for (uint32_t list = 0; list < q->count; list++) {
        skip_empty_lists(q, h, &list, 0, 1);
        if (release_older(p, q, h, list)) {
            released = 1;
        }
    }
    return released;
}

/* Least number of bytes per list that must be requested between two turns, so that small heaps do not turn all the
 * time. */
enum { HW_TURN_LEAST = 32 };

/* Sets the number of bytes that requests may take past the lists until the next turn. */
static inline void set_next_turn(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h)
{
    const uint32_t share = heap_covered(p, h) / 1024u * q->idle_share;
    const uint32_t least = q->count * HW_TURN_LEAST;
    store4(h, q->left_at, share > least ? share : least);
}

/* Takes what waits in a list for the older. */
static inline void age_list(const struct hw_quick *q, struct hw_heap *h, uint32_t list)
{
    const uint32_t at = load_link(&q->links, h, quick_head(q, list));
    if (at) {
        store_link(&q->links, h, quick_head(q, quick_older(q, list)), at);
        store_link(&q->links, h, quick_head(q, list), 0);
    }
    if (q->refill) {
        store1(h, q->refills_at + list, load1(h, q->refills_at + list) >> 1);
    }
}

/* A turn: gives back what has waited since the last one, and takes what waits now for the older. As lists are last in,
 * first out, what no request took in between has idled all that time: a low-water mark that costs a hit nothing.
 * O(lists + blocks that idled) releases. */
HW_COLD void turn_lists(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h)
{
    for (uint32_t list = 0; list < q->count; list++) {
        skip_empty_lists(q, h, &list, 1, 1);
        (void)release_older(p, q, h, list);
        age_list(q, h, list);
    }
    set_next_turn(p, q, h);
}

/* With it, and the list where a turn goes on, the word says so that else has the bytes until the next turn. */
#define HW_TURNING 0x80000000u

/* Goes on with a turn where the word `left` says, or begins one, for a few blocks and lists; 0 where no block came
 * back. One that is `hurried` does not let what waits now become the older, but gives it back, too. */
HW_COLD int turn_some(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h, uint32_t left,
                      int hurried)
{
    uint32_t list = left < HW_TURNING ? 0 : left - HW_TURNING;
    const uint32_t end = smaller(list + HW_TURN_LISTS, q->count);
    uint32_t released = 0;
    while (list < end && released < q->release_most) {
        uint32_t at = quick_pop(q, h, quick_older(q, list));
        if (at == 0 && hurried) {
            at = quick_pop(q, h, list);
        }
        if (at) {
            heap_release(p, h, at);
            released++;
            if (q->refill) {
                store1(h, q->refills_at + list, 0);
            }
        } else {
            if (!hurried) {
                age_list(q, h, list);
            }
            list++;
        }
    }
    if (list < q->count) {
        store4(h, q->left_at, HW_TURNING + list);
    } else {
        set_next_turn(p, q, h);
    }
    return released != 0;
}

/* Counts a request that missed the lists, by its block's bytes, and makes a turn if it is due. */
static inline void count_past(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h, uint32_t block)
{
    const uint32_t left = load4(h, q->left_at);
    if (q->release_most && (left < block || left >= HW_TURNING)) {
        (void)turn_some(p, q, h, left, 0);
        return;
    }
    if (q->release_most == 0 && left < block) {
        turn_lists(p, q, h);
        return;
    }
    store4(h, q->left_at, left - block);
}

/* Counts a request that bypasses the lists above pool `owner` although one of them may take its block when it is freed.
 */
static inline void heap_count_past(const struct hw_policy *p, const uint32_t owner, struct hw_heap *h, uint32_t n)
{
    for (uint32_t i = 0; i < owner; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK && pool->quick.flush == HW_FLUSH_IDLE) {
            count_past(p, &pool->quick, h, n);
        }
    }
}

/* Serves a request that a list had no block for from what has waited there since the last turn, else counts it: the
 * address of the payload, or 0. */
static inline uint32_t find_idle(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h, size_t size)
{
    if (exceeds(size, q->largest)) {
        return 0;
    }
    const uint32_t block = quick_block(q, (uint32_t)size);
    const uint32_t list = q->by_size ? quick_index(q, block) : quick_list(q, block);
    const uint32_t at = list < q->count ? quick_pop(q, h, quick_older(q, list)) : 0;
    if (at) {
        return at;
    }
    count_past(p, q, h, block);
    return 0;
}

/* Serves a request that no list above pool `from` had a block for from what idles there: the payload's address, or 0.
 */
static inline uint32_t heap_find_idle(const struct hw_policy *p, const uint32_t from, struct hw_heap *h, size_t size)
{
    for (uint32_t i = 0; i < from; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK && pool->quick.flush == HW_FLUSH_IDLE && pool_admits(pool, pool->max_size, size)) {
            const uint32_t at = find_idle(p, &pool->quick, h, size);
            if (at) {
                return at;
            }
        }
    }
    return 0;
}

/* A request rounded up to the size of the blocks of the list that it has in a quick pool, if it has one. */
static inline size_t rounded_to_list(const struct hw_pool *pool, size_t size)
{
    if (pool->kind == HW_QUICK && pool->quick.octave_log2 && pool_admits(pool, pool->max_size, size) &&
        !exceeds(size, pool->quick.largest)) {
        const struct hw_quick *q = &pool->quick;
        const uint32_t block = quick_block(q, (uint32_t)size);
        if (block > quick_linear(q)) {
            const uint32_t mask = ((uint32_t)1 << quick_step(q, block)) - 1u;
            return (size_t)(((block + mask) & ~mask) - q->block_header);
        }
    }
    return size;
}

/* What to ask the pools below for, so that a list takes the block when it is freed. The lists are those of pool `from`
 * and the following ones above pool `owner`. */
static inline size_t rounded_request(const struct hw_policy *p, const uint32_t from, const uint32_t owner, size_t size)
{
    for (uint32_t i = from; i < owner; i++) {
        size = rounded_to_list(&p->pools[i], size);
    }
    return size;
}

/* The largest request up to `most` bytes that lists round up to no more than that. */
static inline uint32_t within_rounding(const struct hw_policy *p, const uint32_t owner, uint32_t most)
{
    for (uint32_t i = 0; i < owner; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK && pool->quick.octave_log2 && most >= pool->min_size &&
            most <= pool->quick.largest) {
            const struct hw_quick *q = &pool->quick;
            const uint32_t block = quick_block(q, most);
            if (block > quick_linear(q)) {
                const uint32_t step = highest_bit(block - 1u) - q->octave_log2;
                most = smaller(most, (block >> step << step) - q->block_header);
            }
        }
    }
    return most;
}

/* Empties every list of a quick pool; 0 where all were empty. O(lists + blocks in them) releases. */
HW_COLD int flush_pool(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h)
{
    int flushed = 0;
    if (q->flush == HW_FLUSH_IDLE) {
        flushed = release_idle(p, q, h);
    }
    for (uint32_t list = 0; list < q->count; list++) {
        skip_empty_lists(q, h, &list, 1, 0);
        uint32_t at = quick_pop(q, h, list);
        while (at) {
            heap_release(p, h, at);
            flushed = 1;
            at = quick_pop(q, h, list);
        }
    }
    return flushed;
}

/* Releases cached blocks because the heap would have to grow for a request of this size that no list serves: a smaller
 * request has continued a turn before it searched. 0 if nothing was released. */
static inline int release_before_growing(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h,
                                         uint32_t request)
{
    if (request <= q->largest) {
        return 0;
    }
    return q->release_most == 0 ? flush_pool(p, q, h) : turn_some(p, q, h, load4(h, q->left_at), 1);
}

/* Returns cached blocks to their pools because the heap would have to grow for a request of this size; 0 if nothing was
 * returned. Only the lists above pool `owner`, which would grow, hold blocks of it. */
static inline int flush_before_growing(const struct hw_policy *p, const uint32_t owner, struct hw_heap *h,
                                       uint32_t request)
{
    int flushed = 0;
    for (uint32_t i = 0; i < owner; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK && pool->quick.flush == HW_FLUSH_BEFORE_GROWING) {
            if (flush_pool(p, &pool->quick, h)) {
                flushed = 1;
            }
        }
        if (pool->kind == HW_QUICK && pool->quick.flush == HW_FLUSH_IDLE) {
            if (release_before_growing(p, &pool->quick, h, request)) {
                flushed = 1;
            }
        }
    }
    return flushed;
}

/* Returns all cached blocks to their pools because a request would fail otherwise, also if a pool's own rule never
 * flushes; 0 if nothing was returned. */
static inline int flush_before_refusing(const struct hw_policy *p, struct hw_heap *h)
{
    int flushed = 0;
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK && flush_pool(p, &pool->quick, h)) {
            flushed = 1;
        }
    }
    return flushed;
}

/* Empties the lists of a quick pool ahead of a large request. */
static inline void flush_ahead(const struct hw_policy *p, const struct hw_pool *pool, struct hw_heap *h, size_t size)
{
    if (pool->kind == HW_QUICK && pool->quick.flush_from && exceeds(size, pool->quick.flush_from - 1u) &&
        !exceeds(size, HW_MAX_REQUEST)) {
        (void)flush_pool(p, &pool->quick, h);
    }
}

/* ---- caching ----------------------------------------------------------------------------------------------------- */

/* Keeps a freed block in the quick list of its size; 0 where that is full. */
HW_HOT int cache_on(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h, uint32_t list, uint32_t at)
{
    if (quick_is_full(q, h, list)) {
        if (q->flush != HW_FLUSH_OVER_LIMIT) {
            return 0;
        }
        flush_list(p, q, h, list);
    }
    quick_push(q, h, list, at);
    return 1;
}

/* Keeps a freed block in a quick list; 0 where none wants it. */
HW_HOT int cache_in(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h, uint32_t at,
                    uint32_t capacity)
{
    const uint32_t block = capacity + q->block_header;
    uint32_t known = q->count;
    if (skip_to_list(q, h, capacity, block, &known)) {
        return known < q->count ? cache_on(p, q, h, known, at) : 0;
    }
    if (quick_is_direct(q)) {
        for (uint32_t list = 0; list < q->count; list++) {
            if (quick_caches(q, list, block)) {
                return cache_on(p, q, h, list, at);
            }
        }
        return 0;
    }
    if (q->by_size) {
        return quick_holds(q, block) ? cache_on(p, q, h, quick_index(q, block), at) : 0;
    }
    const uint32_t list = quick_list(q, block);
    return list < q->count ? cache_on(p, q, h, list, at) : 0;
}

/* Offers a freed block to the quick pools above its own; 0 where none wants it. */
HW_HOT int heap_cache(const struct hw_policy *p, const uint32_t owner, struct hw_heap *h, uint32_t at,
                      uint32_t capacity)
{
    for (uint32_t i = 0; i < owner; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK && cache_in(p, &pool->quick, h, at, capacity)) {
            return 1;
        }
    }
    return 0;
}

/* Whether every quick pool above pool `owner` keeps apart. */
static inline int keeps_apart(const struct hw_policy *p, const uint32_t owner)
{
    for (uint32_t i = 0; i < owner; i++) {
        if (p->pools[i].kind == HW_QUICK && !p->pools[i].quick.apart) {
            return 0;
        }
    }
    return 1;
}

HW_HOT void heap_free(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            if (pool->kind != HW_GENERAL) {
                if (pool->cached && heap_cache(p, i, h, at, pool_capacity(pool, h, at))) {
                    return;
                }
                pool_release(pool, h, at);
                return;
            }
            const struct hw_general *g = &pool->general;
            const uint32_t b = block_of(g, h, at);
            const uint32_t word = load_word(g, h, b);
            if (pool->cached && keeps_apart(p, i)) {
                if (!release_beside_free(g, h, b, word) && !heap_cache(p, i, h, at, word_size(g, word) - g->overhead)) {
                    release_apart(g, h, b, word);
                }
                return;
            }
            if (pool->cached) {
                if (!heap_cache(p, i, h, at, word_size(g, word) - g->overhead)) {
                    release_rarely(g, h, b, word);
                }
                return;
            }
            release_block(g, h, b, word);
            return;
        }
    }
}

/* ---- what is cached ---------------------------------------------------------------------------------------------- */

/* Whether a quick list above the block's pool holds it among its first `most` blocks. O(blocks of that list, or
 * `most`). */
HW_HOT int is_cached(const struct hw_policy *p, const uint32_t owner, struct hw_heap *h, uint32_t at, uint32_t capacity,
                     uint32_t most)
{
    for (uint32_t i = 0; i < owner; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK) {
            const struct hw_quick *q = &pool->quick;
            const uint32_t list = quick_list(q, capacity + q->block_header);
            if (list < q->count && quick_is_marked(q, h, at) &&
                ((q->marks && q->links.keyed && q->links.field.bytes == 4u) ||
                 quick_lists(q, h, quick_head(q, list), at, p->control, arena_end(p, h), most))) {
                return 1;
            }
            if (q->flush == HW_FLUSH_IDLE && list < q->count && quick_is_marked(q, h, at) &&
                quick_lists(q, h, quick_head(q, quick_older(q, list)), at, p->control, arena_end(p, h), most)) {
                return 1;
            }
        }
    }
    return 0;
}

/* Whether a quick list holds the block. O(blocks of its list). */
HW_HOT int heap_is_cached(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            return pool->cached && is_cached(p, i, h, at, pool_capacity(pool, h, at), UINT32_MAX);
        }
    }
    return 0;
}

/* Moves one cached block in the statistics from used, as the walk counted it, to unused. */
static inline void count_cached(const struct hw_policy *p, const uint32_t quick, struct hw_heap *h, uint32_t at,
                                uint32_t capacity, struct hw_statistics *stats)
{
    for (uint32_t i = quick; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            count_listed(stats, 1, bytes_with(pool, capacity));
            return;
        }
    }
}

/* Adds what the quick lists of a pool hold. O(cached blocks). */
static inline void count_quick(const struct hw_policy *p, const uint32_t quick, struct hw_heap *h,
                               struct hw_statistics *stats)
{
    const struct hw_quick *q = &p->pools[quick].quick;
    const uint32_t end = arena_end(p, h);
    uint32_t left = end / q->block_least;
    for (uint32_t list = 0; list < q->count; list++) {
        uint32_t node = load_link(&q->links, h, quick_head(q, list));
        while (left != 0 && quick_may_list(q, node, p->control, end)) {
            count_cached(p, quick, h, node, quick_list_capacity(q, list), stats);
            left--;
            node = load_link(&q->links, h, node);
        }
        if (q->flush == HW_FLUSH_IDLE) {
            node = load_link(&q->links, h, quick_head(q, quick_older(q, list)));
            while (left != 0 && quick_may_list(q, node, p->control, end)) {
                count_cached(p, quick, h, node, quick_list_capacity(q, list), stats);
                left--;
                node = load_link(&q->links, h, node);
            }
        }
    }
}

/* What is broken in what has waited since the last turn; 0 where nothing is. O(blocks of it). */
static inline int older_check(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h)
{
    uint32_t left = arena_end(p, h) / q->block_least;
    for (uint32_t list = 0; list < q->count; list++) {
        uint32_t node = load_link(&q->links, h, quick_head(q, quick_older(q, list)));
        while (node) {
            if (left == 0 || !heap_has_used(p, h, node) || heap_capacity(p, h, node) != quick_list_capacity(q, list)) {
                return HW_BROKEN_QUICK;
            }
            left--;
            node = load_link(&q->links, h, node);
        }
    }
    return 0;
}

static inline int quick_check(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h)
{
    uint32_t left = arena_end(p, h) / q->block_least;
    for (uint32_t list = 0; list < q->count; list++) {
        const uint32_t capacity = quick_list_capacity(q, list);
        uint32_t blocks = 0;
        uint32_t node = load_link(&q->links, h, quick_head(q, list));
        while (node) {
            if (left == 0 || !heap_has_used(p, h, node) || heap_capacity(p, h, node) != capacity) {
                return HW_BROKEN_QUICK;
            }
            left--;
            blocks++;
            node = load_link(&q->links, h, node);
        }
        if (q->limit_blocks) {
            if (load4(h, q->counts_at + 4u * list) != blocks) {
                return HW_BROKEN_COUNT;
            }
        }
        if (q->limit_blocks && blocks > q->limit_blocks) {
            return HW_BROKEN_QUICK;
        }
    }
    if (q->flush == HW_FLUSH_IDLE) {
        return older_check(p, q, h);
    }
    return 0;
}

/* Adds what the lists of pool `i` hold to the statistics, where it has lists. O(cached blocks). */
static inline void count_lists(const struct hw_policy *p, const uint32_t i, struct hw_heap *h,
                               struct hw_statistics *stats)
{
    p->pools[i].kind == HW_QUICK ? count_quick(p, i, h, stats) : (void)0;
}

/* What is broken in the lists of pool `i`, where it has lists; 0 where nothing is. */
static inline int lists_check(const struct hw_policy *p, const uint32_t i, struct hw_heap *h)
{
    if (p->pools[i].kind == HW_QUICK) {
        return quick_check(p, &p->pools[i].quick, h);
    }
    return 0;
}

#endif

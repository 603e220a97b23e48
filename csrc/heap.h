/* heap.h: the way of a request through the pools, and the public entry points.
 *
 *     malloc:   pool 1 -> pool 2 -> ... each: what it has, then a flush of the quick lists, then new memory
 *     free:     address or header -> owner; quick lists above the owner first
 *
 * The control data lies at the start of the arena:
 *
 *     0: null node | refused, misused, seal of the arena's end | end of the shared part | counters | pool by pool
 */
#ifndef HW_HEAP_H
#define HW_HEAP_H

#include "counters.h"
#include "events.h"

/* ---- quick lists and their owners ------------------------------------------------------------------------------ */

/* What is stored beside the address of the arena's end, to vouch for it. */
static inline uint32_t end_seal(uint32_t end)
{
    return (end ^ 0x5bd1e995u) * 0x9e3779b1u;
}

/* Where the arena ends; 0 where the word that tells it was damaged. */
static inline uint32_t arena_end(const struct hw_policy *p, struct hw_heap *h)
{
    const uint32_t end = load4(h, p->shared_end_at);
    if (p->checks && load4(h, p->end_seal_at) != end_seal(end)) {
        return 0;
    }
    return end;
}

static inline int pool_is_bounded(const struct hw_policy *p, const struct hw_pool *pool, struct hw_heap *h)
{
    const uint32_t end = arena_end(p, h);
    return end != 0 && HW_ASK(pool, is_bounded, h, end);
}

/* Gives a block back to its owner, past the quick lists; one whose metadata was damaged meanwhile is lost. */
static inline void heap_release(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            if (p->checks >= HW_CHECKS_NEIGHBOURS && !(pool_is_used(pool, h, at) && pool_is_sound(pool, h, at))) {
                count_misuse(p->misused_at, h);
                return;
            }
            pool_release(pool, h, at);
            return;
        }
    }
}

/* Empties one quick list into the pools below. O(blocks in the list) releases. */
HW_COLD void flush_list(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h, uint32_t list,
                        uint32_t capacity)
{
    uint32_t at = quick_pop(q, h, list, capacity);
    while (at) {
        heap_release(p, h, at);
        at = quick_pop(q, h, list, capacity);
    }
}

static inline uint32_t quick_list_capacity(const struct hw_quick *q, uint32_t list)
{
    if (q->by_size && q->block_doubles) {
        return (q->block_least << list) - q->block_header;
    }
    if (q->by_size) {
        return q->block_least + (list << q->block_unit_shift) - q->block_header;
    }
    return q->sizes[list];
}

/* Bytes that the heap has ever covered. */
static inline uint32_t heap_covered(const struct hw_policy *p, struct hw_heap *h)
{
    return load4(h, p->shared_high_at) - p->fixed_end;
}

/* Misses of quick lists in a row that free memory served: from so many on a heap that would grow is no program's that
 * has just begun. */
enum { HW_STEADY_MISSES = 32 };

/* Counts a request that no quick list served. */
static inline void count_miss(const struct hw_policy *p, struct hw_heap *h)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK && pool->quick.flush_growth) {
            store4(h, pool->quick.misses_at, load4(h, pool->quick.misses_at) + 1u);
        }
    }
}

/* Whether a quick pool waits with its flush although the heap has to grow for a request of so many bytes: while all
 * that is asked for makes it grow, up to a share of it. */
static inline int may_grow_first(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h,
                                 uint32_t request)
{
    const uint32_t misses = load4(h, q->misses_at);
    store4(h, q->misses_at, 0);
    return request < q->flush_large && misses < HW_STEADY_MISSES && heap_covered(p, h) < load4(h, q->grown_at);
}

/* Whether a flush of this quick pool is worth its while before the heap grows for a request of so many bytes. */
static inline int is_worth_a_flush(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h,
                                   uint32_t request)
{
    if (q->flush_growth && may_grow_first(p, q, h, request)) {
        return 0;
    }
    if (q->flush_share) {
        return load4(h, q->cached_at) >= heap_covered(p, h) / 1024u * q->flush_share;
    }
    return 1;
}

/* Empties every list of a quick pool; 0 where all were empty. O(lists + blocks in them) releases. */
HW_COLD int flush_pool(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h)
{
    int flushed = 0;
    for (uint32_t list = 0; list < q->count; list++) {
        const uint32_t capacity = quick_list_capacity(q, list);
        uint32_t at = quick_pop(q, h, list, capacity);
        while (at) {
            heap_release(p, h, at);
            flushed = 1;
            at = quick_pop(q, h, list, capacity);
        }
    }
    return flushed;
}

/* Sets up to where the heap may grow until the next flush. */
static inline void set_next_flush(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h)
{
    if (q->flush_growth) {
        const uint32_t covered = heap_covered(p, h);
        store4(h, q->grown_at, covered + covered / 1024u * q->flush_growth);
    }
}

/* Returns cached blocks to their pools because the heap would have to grow for a request of so many bytes; 0 where
 * nothing came back. */
static inline int flush_before_growing(const struct hw_policy *p, struct hw_heap *h, uint32_t request)
{
    int flushed = 0;
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK && pool->quick.flush == HW_FLUSH_BEFORE_GROWING) {
            if (is_worth_a_flush(p, &pool->quick, h, request)) {
                set_next_flush(p, &pool->quick, h);
                if (flush_pool(p, &pool->quick, h)) {
                    flushed = 1;
                }
            }
        }
    }
    return flushed;
}

/* Returns all cached blocks to their pools because a request would have to be refused, whatever the pools' own rule of
 * flushing; 0 where nothing came back. */
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

/* Keeps a freed block in the quick list of its size; 0 where that is full. */
HW_HOT int cache_on(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h, uint32_t list, uint32_t at,
                    uint32_t capacity)
{
    if (quick_is_full(q, h, list, capacity)) {
        if (q->flush != HW_FLUSH_OVER_LIMIT || (q->limit_bytes && capacity > q->limit_bytes)) {
            return 0;
        }
        flush_list(p, q, h, list, capacity);
    }
    quick_push(q, h, list, capacity, at);
    return 1;
}

/* Keeps a freed block in a quick list; 0 where none wants it. */
HW_HOT int cache_in(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h, uint32_t at,
                    uint32_t capacity)
{
    const uint32_t block = capacity + q->block_header;
    uint32_t known = q->count;
    if (skip_to_list(q, h, capacity, block, &known)) {
        return known < q->count ? cache_on(p, q, h, known, at, capacity) : 0;
    }
    if (quick_is_direct(q)) {
        for (uint32_t list = 0; list < q->count; list++) {
            if (quick_caches(q, list, block)) {
                return cache_on(p, q, h, list, at, capacity);
            }
        }
        return 0;
    }
    if (q->by_size) {
        return quick_holds(q, block) ? cache_on(p, q, h, quick_index(q, block), at, capacity) : 0;
    }
    const uint32_t list = quick_list(q, block);
    return list < q->count ? cache_on(p, q, h, list, at, capacity) : 0;
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

/* ---- the heap in offsets --------------------------------------------------------------------------------------- */

static inline void count_refused(const struct hw_policy *p, struct hw_heap *h)
{
    store4(h, p->refused_at, load4(h, p->refused_at) + 1u);
}

static inline int heap_init(const struct hw_policy *p, struct hw_heap *h, size_t bytes)
{
    uint32_t end = (exceeds(bytes, p->reach) ? p->reach : (uint32_t)bytes) + p->end_header;
    if (p->grows_down && p->align > 1u) {
        /* blocks end where the payload of one behind them would be aligned */
        end &= ~(p->align - 1u);
    }
    if (end < p->fixed_end + p->end_header) {
        return 0;
    }
    for (uint32_t at = 0; at < p->control; at++) {
        store1(h, at, 0);
    }
    store4(h, p->shared_limit_at, end - p->end_header);
    if (p->grows_down) {
        store4(h, p->shared_end_at, end - p->end_header);
    }
    if (p->checks) {
        store4(h, p->end_seal_at, end_seal(end - p->end_header));
    }
    for (uint32_t word = 0; word < p->keys; word++) {
        store4(h, p->keys_at + 4u * word, HW_SECRET(h));
    }
    store4(h, p->shared_high_at, p->fixed_end);
    for (uint32_t i = 0; i < p->pool_count; i++) {
        pool_init(&p->pools[i], h);
    }
    return 1;
}

/* What a request of `size` bytes asks the pools for. */
static inline size_t request_for(const struct hw_policy *p, size_t size)
{
    if (p->empty_as_one == 0 && size == 0) {
        return 1u; /* an empty object is served as one byte */
    }
    return size;
}

/* Empties the lists of a quick pool ahead of a large request. */
static inline void flush_ahead(const struct hw_policy *p, const struct hw_pool *pool, struct hw_heap *h, size_t size)
{
    if (pool->kind == HW_QUICK && pool->quick.flush_from && exceeds(size, pool->quick.flush_from - 1u) &&
        !exceeds(size, HW_MAX_REQUEST)) {
        (void)flush_pool(p, &pool->quick, h);
    }
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

/* Serves n bytes from a pool that has nothing at hand: the address of the payload, or 0. */
static inline uint32_t pool_strive(const struct hw_policy *p, const struct hw_pool *pool, struct hw_heap *h, uint32_t n)
{
    if (pool_searches(pool)) {
        const uint32_t found = pool_search(pool, h, n);
        if (found) {
            return found;
        }
    }
    if (p->flushes && flush_before_growing(p, h, n)) {
        const uint32_t freed = pool_find_again(pool, h, n);
        if (freed) {
            return freed;
        }
    }
    return pool_grow(pool, h, n);
}

/* Serves `size` bytes from a pool that admits them, by any of its ways: the address of the payload, or 0. */
static inline uint32_t pool_serve(const struct hw_policy *p, const struct hw_pool *pool, struct hw_heap *h, size_t size)
{
    if (pool->kind == HW_QUICK) {
        return quick_find(&pool->quick, h, size); /* alone it admits more than 32 bits, and bounds them itself */
    }
    const uint32_t n = (uint32_t)size;
    const uint32_t hit = pool->at_hand < pool->max_size && n > pool->at_hand ? 0 : pool_hit(pool, h, n);
    return hit ? hit : pool_strive(p, pool, h, n);
}

/* Goes on where nothing is at hand: the payload, or NULL. */
HW_COLD void *heap_malloc_from(const struct hw_policy *p, const uint32_t from, struct hw_heap *h, size_t size)
{
    uint32_t at = 0;
    count_miss(p, h);
    do {
        for (uint32_t i = from; i < p->pool_count; i++) {
            const struct hw_pool *pool = &p->pools[i];
            flush_ahead(p, pool, h, size);
            if (pool_admits(pool, pool->max_size, size)) {
                at = i == 0 ? pool_strive(p, pool, h, (uint32_t)size) : pool_serve(p, pool, h, size);
                if (at) {
                    return arena_pointer(h, at);
                }
            }
        }
    } while (p->keeps && flush_before_refusing(p, h));
    count_refused(p, h);
    return NULL;
}

/* Serves a request: the payload, or NULL. Each pool bounds by itself what it takes. */
HW_HOT void *heap_malloc(const struct hw_policy *p, struct hw_heap *h, size_t size)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind != HW_QUICK) {
            if (i != 0) {
                return heap_malloc_from(p, i, h, size); /* behind quick lists even what is at hand is less frequent */
            }
            if (pool_admits(pool, pool->at_hand, size)) {
                const uint32_t at = pool_hit(pool, h, (uint32_t)size);
                if (at) {
                    return arena_pointer(h, at);
                }
            }
            return heap_malloc_from(p, i, h, size);
        }
        flush_ahead(p, pool, h, size);
        if (pool_admits(pool, pool->max_size, size)) {
            const uint32_t at = quick_find(&pool->quick, h, size);
            if (at) {
                return arena_pointer(h, at);
            }
        }
    }
    return NULL;
}

/* Serves n bytes without growing: the address of the payload, or 0, which is no refusal. */
HW_COLD uint32_t heap_find(const struct hw_policy *p, struct hw_heap *h, uint32_t n)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_admits(pool, pool->max_size, n)) {
            const uint32_t at = pool->kind == HW_QUICK ? quick_find(&pool->quick, h, n) : pool_find(pool, h, n);
            if (at) {
                return at;
            }
        }
    }
    return 0;
}

/* A block of a general pool for n bytes, cut so that its payload is aligned: the address of the payload, or 0. */
static inline uint32_t pool_malloc_aligned(const struct hw_policy *p, const struct hw_general *g, struct hw_heap *h,
                                           uint32_t alignment, uint32_t n)
{
    const uint32_t size = aligned_size_for(g, n, alignment);
    if (size >= p->reach) {
        return 0;
    }
    uint32_t b = find_again(g, h, size);
    if (p->flushes && b == 0 && flush_before_growing(p, h, size)) {
        b = find_again(g, h, size);
    }
    if (b == 0) {
        b = grow_block(g, h, size);
    }
    if (b == 0) {
        return 0;
    }
    b = align_block(g, h, b, alignment);
    trim_block(g, h, b, block_size_for(g, n));
    return hand_out(g, h, b);
}

/* Serves n bytes at a larger alignment than payloads have as a rule: the address of the payload, or 0. */
static inline uint32_t heap_malloc_aligned(const struct hw_policy *p, struct hw_heap *h, uint32_t alignment, uint32_t n)
{
    uint32_t at = 0;
    do {
        for (uint32_t i = 0; i < p->pool_count; i++) {
            const struct hw_pool *pool = &p->pools[i];
            if (pool->kind == HW_GENERAL && pool_takes(pool, n)) {
                /* a block with a header can be cut to it */
                at = pool_malloc_aligned(p, &pool->general, h, alignment, n);
                if (at) {
                    return at;
                }
            }
        }
    } while (p->keeps && flush_before_refusing(p, h));
    count_refused(p, h);
    return 0;
}

static inline uint32_t heap_capacity(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            return pool_capacity(pool, h, at);
        }
    }
    return 0;
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

/* Makes an object n bytes large without a search, and returns where it is; 0 where it cannot, and nothing has changed.
 */
static inline uint32_t heap_resize(const struct hw_policy *p, struct hw_heap *h, uint32_t at, uint32_t n)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            return pool_takes(pool, n) ? pool_resize(pool, h, at, n) : 0;
        }
    }
    return 0;
}

/* Whether a quick list above the block's pool holds it. O(blocks of that list). */
static inline int is_cached(const struct hw_policy *p, const uint32_t owner, struct hw_heap *h, uint32_t at,
                            uint32_t capacity)
{
    for (uint32_t i = 0; i < owner; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK) {
            const struct hw_quick *q = &pool->quick;
            const uint32_t list = quick_list(q, capacity + q->block_header);
            if (list < q->count && quick_is_marked(q, h, at) &&
                ((q->marks && q->links.keyed) ||
                 quick_lists(q, h, quick_head(q, list), at, p->control, arena_end(p, h)))) {
                return 1;
            }
        }
    }
    return 0;
}

/* Whether `at` is the payload of a block that is not free, as far as the metadata of its owner, and what the level of
 * checks looks at beside it, tells. */
HW_HOT int heap_has_used(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (at < p->control || (at & (p->align - 1u)) != 0) {
        return 0;
    }
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            return pool_is_used(pool, h, at) && (p->checks < HW_CHECKS_NEIGHBOURS || pool_is_sound(pool, h, at));
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
            return pool->cached && is_cached(p, i, h, at, pool_capacity(pool, h, at));
        }
    }
    return 0;
}

/* ---- public entry points, see heapwright.h ---------------------------------------------------------------------- */

/* The address of a pointer into the arena. */
static inline uint32_t address_of(const struct hw_policy *p, struct hw_heap *h, const void *pointer)
{
    const uintptr_t offset = (uintptr_t)pointer - (uintptr_t)arena_base(h);
    if (p->checks && UINTPTR_MAX > UINT32_MAX && offset > p->reach) {
        return 0; /* no payload's; where addresses have 32 bits, the arena's end tells */
    }
    return (uint32_t)offset;
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
    for (uint32_t i = 0; i < p->pool_count; i++) {
        if (p->pools[i].kind != HW_QUICK && !pool_is_bounded(p, &p->pools[i], h)) {
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

/* ---- freed blocks that wait, at level full ----------------------------------------------------------------------- */

/* Gives a block that waited to its pool; one that somebody wrote to meanwhile is lost. */
HW_COLD void end_wait(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (!heap_has_used(p, h, at) || !is_waiting(p, h, at, heap_capacity(p, h, at)) ||
        !is_fill_whole(p, h, at, heap_capacity(p, h, at))) {
        count_misuse(p->misused_at, h);
        return;
    }
    heap_free(p, h, at);
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

/* Gives all blocks that wait to their pools, so that a request need not be refused; the refusal is forgotten. 0 where
 * none waits. */
HW_COLD int end_all_waits(const struct hw_policy *p, struct hw_heap *h)
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
    if (ended == 0) {
        return 0;
    }
    store4(h, p->refused_at, load4(h, p->refused_at) - 1u);
    return 1;
}

/* At level full, marks where an object of n bytes ends; an empty one has a byte. */
HW_HOT void mark_end(const struct hw_policy *p, struct hw_heap *h, uint32_t at, size_t n)
{
    if (p->checks == HW_CHECKS_FULL) {
        guard_set(p, h, at, heap_capacity(p, h, at), n == 0 ? 1u : (uint32_t)n);
    }
}

/* Whether a block that was just handed out is what its header says; one that somebody wrote to is lost. */
HW_COLD int is_sound_still(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (heap_has_used(p, h, at)) {
        return 1;
    }
    count_misuse(p->misused_at, h);
    return 0;
}

/* Serves a request that is guarded. */
HW_HOT void *malloc_guarded(const struct hw_policy *p, struct hw_heap *h, size_t size)
{
    void *memory;
    if (!heap_is_bounded(p, h)) {
        count_refused(p, h);
        return NULL;
    }
    do {
        memory = heap_malloc(p, h, size);
    } while (memory ? !is_sound_still(p, h, address_of(p, h, memory)) : end_all_waits(p, h));
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
        at = heap_malloc_aligned(p, h, alignment, n);
    } while (at ? !is_sound_still(p, h, at) : end_all_waits(p, h));
    if (at) {
        mark_end(p, h, at, n);
    }
    return at;
}

/* Serves `size` bytes, guarded where the level says so: the payload, or NULL. */
HW_HOT void *heap_serve(const struct hw_policy *p, struct hw_heap *h, size_t size)
{
    if (p->checks == HW_CHECKS_FULL) {
        return malloc_guarded(p, h, size);
    }
    return heap_malloc(p, h, size);
}

/* Serves n bytes at a larger alignment, guarded where the level says so: the address of the payload, or 0. */
static inline uint32_t serve_aligned(const struct hw_policy *p, struct hw_heap *h, uint32_t alignment, uint32_t n)
{
    if (p->checks == HW_CHECKS_FULL) {
        return malloc_aligned_guarded(p, h, alignment, n);
    }
    return heap_malloc_aligned(p, h, alignment, n);
}

/* Frees an object, at level full once it has waited. */
HW_HOT void free_object(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    if (p->checks == HW_CHECKS_FULL) {
        start_wait(p, h, at);
        return;
    }
    heap_free(p, h, at);
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

static inline void *hw_malloc(const struct hw_policy *p, struct hw_heap *heap, size_t size)
{
    if (p->counters_at) {
        return HW_TOLD(heap, counted(p, heap, heap_serve(p, heap, request_for(p, size))), size);
    }
    if (tells(p)) {
        return HW_TOLD(heap, heap_serve(p, heap, request_for(p, size)), size);
    }
    return heap_serve(p, heap, request_for(p, size));
}

static inline void *hw_calloc(const struct hw_policy *p, struct hw_heap *heap, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        count_refused(p, heap);
        HW_REFUSED(heap, SIZE_MAX);
        return NULL;
    }
    unsigned char *memory = hw_malloc(p, heap, count * size);
    if (memory) {
        for (size_t i = 0; i < count * size; i++) {
            memory[i] = 0;
        }
    }
    return memory;
}

static inline void hw_free(const struct hw_policy *p, struct hw_heap *heap, void *pointer)
{
    if (pointer == NULL) {
        return;
    }
    const uint32_t at = address_of(p, heap, pointer);
    if (is_usable(p, heap, at)) {
        if (tells(p)) {
            HW_FREED(heap, pointer);
        }
        if (p->counters_at) {
            count_free_call(p, heap, heap_block_bytes(p, heap, at));
        }
        free_object(p, heap, at);
    }
}

/* Whether a block that is made smaller may have to move, which may fail. */
static inline int moves_to_shrink(const struct hw_policy *p)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind != HW_QUICK && pool->min_size > 1u) {
            return 1;
        }
        if (pool->cached && pool->max_size < HW_MAX_REQUEST) {
            return 1; /* a quick list may have given one of its blocks for more than it takes itself */
        }
        if (pool->kind == HW_GENERAL &&
            (pool->general.resize == HW_RESIZE_MOVE || pool->general.resize == HW_RESIZE_KEEP_HALF)) {
            return 1;
        }
    }
    return 0;
}

/* Whether an object for which there is no other memory may stay where it is after all. */
static inline int may_stay(const struct hw_policy *p)
{
    return p->keeps || moves_to_shrink(p);
}

/* Memory for an object that could not be resized where it is. Where it may stay after all, no refusal is told. */
static inline void *malloc_to_move(const struct hw_policy *p, struct hw_heap *heap, size_t size)
{
    if (p->counters_at && may_stay(p)) {
        return counted(p, heap, heap_serve(p, heap, request_for(p, size)));
    }
    if (may_stay(p)) {
        return HW_UNTOLD(heap_serve(p, heap, request_for(p, size)), hw_malloc(p, heap, size));
    }
    return hw_malloc(p, heap, size);
}

static inline void *hw_realloc(const struct hw_policy *p, struct hw_heap *heap, void *pointer, size_t size)
{
    if (pointer == NULL) {
        return hw_malloc(p, heap, size);
    }
    const uint32_t at = address_of(p, heap, pointer);
    if (exceeds(size, HW_MAX_REQUEST)) {
        count_refused(p, heap);
        if (tells(p)) {
            HW_REFUSED(heap, size);
        }
        return NULL;
    }
    if (!is_usable(p, heap, at)) {
        return NULL;
    }
    const uint32_t bytes = p->counters_at ? heap_block_bytes(p, heap, at) : 0;
    void *moved = NULL;
    uint32_t refused = 0;
    do {
        const uint32_t resized = heap_resize(p, heap, at, (uint32_t)request_for(p, size));
        if (resized) {
            if (p->keeps && refused) {
                store4(heap, p->refused_at, load4(heap, p->refused_at) - 1u); /* it is served after all */
            }
            mark_end(p, heap, resized, size);
            if (p->counters_at) {
                count_used(p, heap, heap_block_bytes(p, heap, resized) - bytes);
            }
            if (tells(p)) {
                return HW_TOLD_RESIZED(heap, pointer, arena_pointer(heap, resized), size);
            }
            return arena_pointer(heap, resized);
        }
        if (p->keeps && refused) {
            break;
        }
        moved = malloc_to_move(p, heap, size);
        refused = 1; /* lists that were emptied in vain may have held what lies beside the object */
    } while (p->keeps && moved == NULL);
    if (moves_to_shrink(p) && moved == NULL && size <= heap_capacity(p, heap, at)) {
        store4(heap, p->refused_at, load4(heap, p->refused_at) - 1u); /* it is served after all */
        mark_end(p, heap, at, size);
        if (tells(p)) {
            HW_RESIZED(heap, pointer, pointer, size);
        }
        return pointer;
    }
    if (may_stay(p) && tells(p)) {
        (void)HW_TOLD(heap, moved, size);
    }
    if (moved) {
        const uint32_t had = usable_bytes(p, heap, at);
        copy_payload(heap, address_of(p, heap, moved), at, had < size ? had : (uint32_t)size);
        hw_free(p, heap, pointer);
    }
    return moved;
}

static inline void *hw_aligned_alloc(const struct hw_policy *p, struct hw_heap *heap, size_t alignment, size_t size)
{
    if (alignment <= p->align && alignment != 0 && (alignment & (alignment - 1u)) == 0) {
        return hw_malloc(p, heap, size);
    }
    if (alignment == 0 || (alignment & (alignment - 1u)) != 0 || exceeds(size, HW_MAX_REQUEST / 4u) ||
        exceeds(alignment, HW_MAX_REQUEST / 4u)) {
        count_refused(p, heap);
        if (tells(p)) {
            HW_REFUSED(heap, size);
        }
        return NULL;
    }
    const uint32_t at = serve_aligned(p, heap, (uint32_t)alignment, (uint32_t)request_for(p, size));
    if (p->counters_at && at) {
        count_malloc(p, heap, heap_block_bytes(p, heap, at));
    }
    if (tells(p)) {
        return HW_TOLD(heap, at ? arena_pointer(heap, at) : NULL, size);
    }
    return at ? arena_pointer(heap, at) : NULL;
}

static inline size_t hw_usable_size(const struct hw_policy *p, struct hw_heap *heap, const void *pointer)
{
    if (p->checks && p->threads != HW_THREADS_CACHED && pointer &&
        !heap_has_used(p, heap, address_of(p, heap, pointer))) {
        return 0;
    }
    return pointer ? (size_t)usable_bytes(p, heap, address_of(p, heap, pointer)) : 0;
}

/* ---- objects that move: the compact pool is its recipe's only one -------------------------------------------------
 */

/* Bytes of an object's block, header included. */
static inline uint32_t object_bytes(const struct hw_compact *c, struct hw_heap *h, void **reference)
{
    const uint32_t table = handle_table(c, h);
    const uint32_t k = handle_of(c, h, table, reference);
    return compact_size(c, h, table, k, load_handle(c, h, table, k) - c->header);
}

/* Counts a reference that leads to no object; 0 for such a one. */
static inline int is_reference(const struct hw_policy *p, struct hw_heap *h, void **reference)
{
    if (p->checks && !leads_to_object(&p->pools[0].compact, h, reference)) {
        count_misuse(p->misused_at, h);
        return 0;
    }
    return 1;
}

static inline int hw_handle_alloc(const struct hw_policy *p, struct hw_heap *heap, void **reference, size_t size)
{
    const uint32_t n = size ? (uint32_t)size : 1u;
    *reference = NULL;
    if (!exceeds(size, HW_MAX_REQUEST) && pool_takes(&p->pools[0], n) &&
        compact_malloc(&p->pools[0].compact, heap, reference, n)) {
        if (p->counters_at) {
            count_malloc(p, heap, object_bytes(&p->pools[0].compact, heap, reference));
        }
        HW_ALLOCATED(heap, reference, size);
        return 1;
    }
    count_refused(p, heap);
    HW_REFUSED(heap, size);
    return 0;
}

/* Whether an object may be made n bytes large: a smaller one it may always become. */
static inline int may_resize_to(const struct hw_pool *pool, uint32_t n)
{
    if (pool->min_size > 1u && n < pool->min_size) {
        return 1;
    }
    return pool_takes(pool, n);
}

static inline int hw_handle_realloc(const struct hw_policy *p, struct hw_heap *heap, void **reference, size_t size)
{
    const struct hw_compact *c = &p->pools[0].compact;
    const uint32_t n = size ? (uint32_t)size : 1u;
    if (*reference == NULL) {
        return hw_handle_alloc(p, heap, reference, size);
    }
    if (!is_reference(p, heap, reference)) {
        return 0;
    }
    const uint32_t bytes = p->counters_at ? object_bytes(c, heap, reference) : 0;
    const uint32_t table = handle_table(c, heap);
    if (!exceeds(size, HW_MAX_REQUEST) && may_resize_to(&p->pools[0], n) &&
        compact_resize(c, heap, table, handle_of(c, heap, table, reference), n)) {
        if (p->counters_at) {
            count_used(p, heap, object_bytes(c, heap, reference) - bytes);
        }
        HW_RESIZED(heap, reference, reference, size);
        return 1;
    }
    count_refused(p, heap);
    HW_REFUSED(heap, size);
    return 0;
}

static inline void hw_handle_free(const struct hw_policy *p, struct hw_heap *heap, void **reference)
{
    const struct hw_compact *c = &p->pools[0].compact;
    if (*reference == NULL || !is_reference(p, heap, reference)) {
        return;
    }
    HW_FREED(heap, reference);
    if (p->counters_at) {
        count_free_call(p, heap, object_bytes(c, heap, reference));
    }
    const uint32_t table = handle_table(c, heap);
    compact_release(c, heap, table, handle_of(c, heap, table, reference));
    *reference = NULL;
}

static inline void *hw_handle_pointer(const struct hw_policy *p, struct hw_heap *heap, void **reference)
{
    const struct hw_compact *c = &p->pools[0].compact;
    if (c->in_arena && *reference) {
        const uint32_t table = handle_table(c, heap);
        return arena_pointer(heap, load_handle(c, heap, table, handle_of(c, heap, table, reference)));
    }
    return *reference;
}

static inline size_t hw_handle_usable_size(const struct hw_policy *p, struct hw_heap *heap, void **reference)
{
    const struct hw_compact *c = &p->pools[0].compact;
    if (*reference == NULL) {
        return 0;
    }
    return (size_t)(object_bytes(c, heap, reference) - c->header);
}

static inline struct hw_counters hw_counters(const struct hw_policy *p, struct hw_heap *heap)
{
    struct hw_counters told = {0, 0, 0, 0, 0};
    const uint32_t bytes = load4(heap, p->shared_end_at) - p->spent;
    told.free = bytes - load4(heap, p->counters_at + HW_COUNT_USED);
    told.least_free = bytes - load4(heap, p->counters_at + HW_COUNT_MOST);
    told.refused = load4(heap, p->refused_at);
    told.mallocs = load4(heap, p->counters_at + HW_COUNT_MALLOCS);
    told.frees = load4(heap, p->counters_at + HW_COUNT_FREES);
    return told;
}

static inline void hw_reset_least_free(const struct hw_policy *p, struct hw_heap *heap)
{
    store4(heap, p->counters_at + HW_COUNT_MOST, load4(heap, p->counters_at + HW_COUNT_USED));
}

static inline int hw_owns(const struct hw_policy *p, struct hw_heap *heap, const void *pointer)
{
    const uintptr_t at = (uintptr_t)pointer;
    const uintptr_t base = (uintptr_t)arena_base(heap);
    return at >= base + p->control && at - base < load4(heap, p->shared_end_at);
}

static inline uint32_t hw_misused(const struct hw_policy *p, struct hw_heap *heap)
{
    return p->checks ? load4(heap, p->misused_at) : 0;
}

#ifndef HW_EXPLORE
static inline struct hw_heap *hw_init(const struct hw_policy *p, void *arena, size_t bytes)
{
    if (arena == NULL || (uintptr_t)arena % p->arena_align != 0) {
        return NULL;
    }
    struct hw_heap *heap = arena;
    return heap_init(p, heap, bytes) ? heap : NULL;
}
#endif

#endif

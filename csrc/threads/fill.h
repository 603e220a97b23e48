/* threads/fill.h: filling the lists of a thread, and emptying them; under the lock, see threads.h. */
#ifndef HW_THREADS_FILL_H
#define HW_THREADS_FILL_H

#include "threads/depot.h"

/* ---- how much a list holds --------------------------------------------------------------------------------------- */

/* Gives back blocks of a list until it holds at most `kept`, but at most a batch. */
static inline void cache_give_back(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t list,
                                   uint32_t kept)
{
    const uint32_t head = cache_head(cache, list);
    const uint32_t held = cache_held(h, head);
    if (held > kept) {
        const uint32_t blocks = held - kept < HW_CACHE_BATCH ? held - kept : HW_CACHE_BATCH;
        depot_give(p, h, list, head, blocks);
        cache_set(h, head, cache_most(h, head), held - blocks);
    }
}

/* Lets another list hold half as many blocks as before: the next one that holds no more than a batch above that. */
static inline void cache_shrink_one(const struct hw_policy *p, struct hw_heap *h, uint32_t cache)
{
    uint32_t list = load4(h, cache + HW_CACHE_TURN);
    uint32_t most = 0;
    for (uint32_t looks = 0; looks < HW_CACHE_LOOKS && most == 0; looks++) {
        list = list + 1u < p->cache.count ? list + 1u : 0;
        most = cache_most(h, cache_head(cache, list));
    }
    store4(h, cache + HW_CACHE_TURN, list);
    const uint32_t head = cache_head(cache, list);
    cache_give_back(p, h, cache, list, most / 2u);
    const uint32_t held = cache_held(h, head);
    const uint32_t left = held > most / 2u ? held : most / 2u;
    cache_set(h, head, left, held);
    store4(h, cache + HW_CACHE_GRANTED,
           load4(h, cache + HW_CACHE_GRANTED) - (most - left) * cache_capacity(&p->cache, list));
}

/* Lets a list hold more, if need be at the cost of another; 0 where it cannot. */
static inline int cache_grow_list(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t list)
{
    if (cache_widen(p, h, cache, list)) {
        return 1;
    }
    if (cache_most(h, cache_head(cache, list)) >= HW_CACHE_MOST) {
        return 0;
    }
    cache_shrink_one(p, h, cache);
    return cache_widen(p, h, cache, list);
}

/* Gives back blocks of the lists from `list` on, at most a batch; returns the list to go on with, the number of lists
 * at the end. Looks at links alone: a thread that a fork ended may not have come to count what it took. */
HW_COLD uint32_t cache_empty(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t list)
{
    for (uint32_t blocks = 0; list < p->cache.count && blocks < HW_CACHE_BATCH; blocks++) {
        const uint32_t head = cache_head(cache, list);
        const uint32_t at = load4(h, head);
        if (at) {
            store4(h, head, load4(h, at));
            sealed_free(p, h, at);
        } else {
            cache_set(h, head, cache_most(h, head), 0);
            list++;
        }
    }
    return list;
}

/* ---- a thread begins --------------------------------------------------------------------------------------------- */

/* Serves n bytes or nothing; a refusal does not count. */
static inline void *malloc_uncounted(const struct hw_policy *p, struct hw_heap *h, uint32_t n)
{
    const uint32_t refused = load4(h, p->refused_at);
    void *memory = hw_malloc(p, h, n);
    store4(h, p->refused_at, refused);
    return memory;
}

/* Makes a cache for a thread that has none; 1 where it has one now. */
HW_COLD int cache_open(const struct hw_policy *p, struct hw_heap *h, struct hw_thread *t)
{
    void *memory = t->heap == NULL ? malloc_uncounted(p, h, p->cache_object) : NULL;
    if (memory == NULL) {
        return 0;
    }
    const uint32_t cache = address_of(p, h, memory);
    for (uint32_t at = 0; at < p->cache_object; at += 4u) {
        store4(h, cache + at, 0);
    }
    store4(h, cache + HW_CACHE_NEXT, load4(h, p->caches_at));
    store4(h, p->caches_at, cache);
    t->cache = cache;
    t->heap = h;
    return 1;
}

/* ---- a batch ----------------------------------------------------------------------------------------------------- */

/* Serves n bytes, growing only where `grows`: the address of the payload, or 0. */
static inline uint32_t serve(const struct hw_policy *p, struct hw_heap *h, uint32_t n, int grows)
{
    if (!grows) {
        if (!is_sealed(p, h)) {
            return 0;
        }
        const uint32_t high = load4(h, p->shared_high_at);
        uint32_t at = heap_find(p, h, n);
        if (p->cache_finds_new && at && load4(h, p->shared_high_at) != high) {
            heap_release(p, h, at); /* it was never used, and there may be a smaller block that was */
            store4(h, p->shared_high_at, high);
            at = 0;
        }
        seal(p, h);
        return at;
    }
    const void *memory = malloc_uncounted(p, h, n);
    return memory ? address_of(p, h, memory) : 0;
}

/* One block of the heap cut into several: the last one may be larger by what was too little for a block. */
static inline struct hw_batch cut_batch(const struct hw_policy *p, struct hw_heap *h, uint32_t size, uint32_t most,
                                        int grows)
{
    const struct hw_general *g = &p->pools[p->pool_count - 1u].general;
    struct hw_batch got = {0, 0, 0};
    got.at = serve(p, h, (most + 1u) * size - p->cache.block_header, grows);
    if (got.at == 0) {
        return got;
    }
    uint32_t b = block_of(g, h, got.at);
    uint32_t word = load_word(g, h, b);
    uint32_t left = word_size(g, word);
    got.first = got.at;
    while (got.blocks < most) {
        got.blocks++;
        store_word(g, h, b, size_word(g, size, word_flags(g, word)));
        store4(h, payload_of(g, b), got.blocks < most ? payload_of(g, b + size) : 0);
        b += size;
        left -= size;
        write_used(g, h, b, left, HW_PREV_USED);
        clear_tag(g, h, b);
        note_block_made(h, g->overhead);
        word = load_word(g, h, b);
    }
    got.at = payload_of(g, b);
    return got;
}

/* One block of the heap after the other. */
static inline struct hw_batch single_blocks(const struct hw_policy *p, struct hw_heap *h, uint32_t list, uint32_t most,
                                            int grows)
{
    const uint32_t n = cache_block(&p->cache, list) - p->cache.block_header;
    struct hw_batch got = {0, 0, 0};
    got.at = serve(p, h, n, grows);
    while (got.at && got.blocks < most) {
        const uint32_t at = serve(p, h, n, grows);
        if (at == 0) {
            break;
        }
        if (cache_list_of(p, h, at) != list) {
            sealed_free(p, h, at); /* larger than it had to be: the rest was too small for a block */
            break;
        }
        store4(h, at, got.first);
        got.first = at;
        got.blocks++;
    }
    return got;
}

/* A block of a list's size out of the heap, and up to `most` with it. */
static inline struct hw_batch heap_take(const struct hw_policy *p, struct hw_heap *h, uint32_t list, uint32_t most,
                                        int grows)
{
    const uint32_t size = cache_block(&p->cache, list);
    const uint32_t fit = HW_CACHE_CUT / size;
    if (p->cache_cuts && most && fit) {
        const struct hw_batch got = cut_batch(p, h, size, most < fit ? most : fit, grows);
        if (got.at) {
            return got;
        }
    }
    return single_blocks(p, h, list, most, grows);
}

/* After a miss: lets the list of requests for n bytes hold more, and fills half of it. Returns one more block's
 * payload, for the request; 0 where there is none. What the heap refuses meanwhile does not count. */
HW_COLD uint32_t cache_fill(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t n)
{
    const uint32_t list = cache_list_for(p, n);
    const uint32_t head = cache_head(cache, list);
    (void)cache_grow_list(p, h, cache, list);
    const uint32_t most = cache_most(h, head);
    const uint32_t half = most / 2u < HW_CACHE_BATCH ? most / 2u : HW_CACHE_BATCH - 1u;
    struct hw_batch got = depot_take(p, h, list, most < HW_CACHE_BATCH ? most : HW_CACHE_BATCH - 1u);
    for (int grows = 0; got.at == 0 && grows < 2; grows++) {
        got = heap_take(p, h, list, half, grows);
    }
    store4_last(h, head, got.first);
    cache_set(h, head, most, got.blocks);
    return got.at;
}

/* After a free that found its list full: lets it hold more, at the cost of another only where it may hold next to
 * nothing; else gives half of it back. */
static inline void cache_relieve(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t list)
{
    const uint32_t most = cache_most(h, cache_head(cache, list));
    const int grown = most < 2u ? cache_grow_list(p, h, cache, list) : cache_widen(p, h, cache, list);
    if (!grown) {
        cache_give_back(p, h, cache, list, most / 2u);
    }
}

/* ---- giving back ------------------------------------------------------------------------------------------------- */

/* After a refusal: whether the thread's cache or the depot had something to give back. The refusal, which raised the
 * number of them beyond `refused`, is forgotten then. */
static inline int cache_yields(const struct hw_policy *p, struct hw_heap *h, struct hw_thread *t, uint32_t refused)
{
    int yielded = 0;
    if (t->heap == h) {
        for (uint32_t list = 0; list < p->cache.count; list++) {
            while (cache_held(h, cache_head(t->cache, list))) {
                cache_give_back(p, h, t->cache, list, 0);
                yielded = 1;
            }
        }
    }
    while (depot_yield(p, h)) {
        yielded = 1;
    }
    if (yielded) {
        store4(h, p->refused_at, refused);
    }
    return yielded;
}

/* Takes a cache out of the heap's list of caches, and gives it back. O(threads). */
static inline void cache_close(const struct hw_policy *p, struct hw_heap *h, uint32_t cache)
{
    uint32_t before = p->caches_at;
    while (load4(h, before) != cache) {
        before = load4(h, before) + HW_CACHE_NEXT;
    }
    store4(h, before, load4(h, cache + HW_CACHE_NEXT));
    sealed_free(p, h, cache);
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

/* The number of blocks in a list, no more than `most`; UINT32_MAX where one is no used block of the list's class. */
static inline uint32_t count_list(const struct hw_policy *p, struct hw_heap *h, uint32_t list, uint32_t head,
                                  uint32_t most)
{
    uint32_t blocks = 0;
    uint32_t at = load4(h, head);
    while (at && blocks < most) {
        if (!heap_has_used(p, h, at) || cache_list_of(p, h, at) != list) {
            return UINT32_MAX;
        }
        blocks++;
        at = load4(h, at);
    }
    return at ? UINT32_MAX : blocks;
}

/* The same for the batches that the depot has of a class. */
static inline uint32_t count_depot(const struct hw_policy *p, struct hw_heap *h, uint32_t list, uint32_t most)
{
    uint32_t head = depot_head(p, list);
    uint32_t sum = 0;
    if (!keeps_batches(p)) {
        return count_list(p, h, list, head, most);
    }
    while (load4(h, head)) {
        const uint32_t blocks = count_list(p, h, list, head, most - sum);
        if (blocks == UINT32_MAX || blocks == 0 || load4(h, load4(h, head) + HW_BATCH_BLOCKS) != blocks) {
            return UINT32_MAX;
        }
        sum += blocks;
        head = load4(h, head) + HW_BATCH_NEXT;
    }
    return sum;
}

static inline int check_depot(const struct hw_policy *p, struct hw_heap *h)
{
    const uint32_t stats = load4(h, p->depot_at);
    uint32_t bytes = 0;
    if (stats > heap_covered(p, h)) {
        return HW_BROKEN_QUICK;
    }
    for (uint32_t list = 0; list < p->cache.count; list++) {
        const uint32_t capacity = cache_capacity(&p->cache, list);
        const uint32_t blocks = count_depot(p, h, list, stats / capacity);
        if (blocks == UINT32_MAX) {
            return HW_BROKEN_QUICK;
        }
        bytes += blocks * capacity;
    }
    return bytes == stats ? 0 : HW_BROKEN_QUICK;
}

static inline int check_cache(const struct hw_policy *p, struct hw_heap *h, uint32_t cache)
{
    uint32_t granted = 0;
    for (uint32_t list = 0; list < p->cache.count; list++) {
        const uint32_t head = cache_head(cache, list);
        if (count_list(p, h, list, head, cache_most(h, head)) != cache_held(h, head)) {
            return HW_BROKEN_QUICK;
        }
        granted += cache_most(h, head) * cache_capacity(&p->cache, list);
    }
    return granted == load4(h, cache + HW_CACHE_GRANTED) && granted <= p->cache_bytes ? 0 : HW_BROKEN_QUICK;
}

/* Checks also the depot and the calling thread's cache; another thread's cache must not be accessed. Needs the lock. */
static inline int caches_check(const struct hw_policy *p, struct hw_heap *h, const struct hw_thread *t)
{
    const int broken = check_depot(p, h);
    return broken || t->heap != h ? broken : check_cache(p, h, t->cache);
}

#endif
